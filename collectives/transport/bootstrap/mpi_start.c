#include "collectives/transport/bootstrap/mpi_start.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collectives/transport/bootstrap/roll_call.h"
#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/lock.h"
#include "sim/base/os/system.h"
#include "sim/base/str.h"

// ---- The module ----

// The modules next to the plugin do not link an MPI library, because they are in wheels for
// machines without one. Their MPI is opened first, with global symbols, which its own plugins also
// need. Another file name of the same library would be loaded as another library, so it is not
// tried if one was found.
typedef struct {
  const char *module;
  const char *libraries[2];
} mpi_start_needs_t;
static const mpi_start_needs_t g_needs[] = {
    {"minipod_mpi_ompi.so", {"libmpi.so.40", NULL}},
    {"minipod_mpi_mpich.so", {"libmpich.so.12", "libmpi.so.12"}}};

// False: the MPI of the module at `path` is not on this machine, as `tried` says. No MPI is opened
// for a missing module, because its global functions would replace those of the next MPI.
// *out_is_opened: an MPI was opened.
static bool mpi_start_open_mpi(const char *path, mp_strbuf_t *tried, bool *out_is_opened) {
  const char *slash = strrchr(path, '/'), *file = slash == NULL ? path : slash + 1;
  for (size_t i = 0; i < sizeof(g_needs) / sizeof(g_needs[0]); ++i) {
    if (strcmp(g_needs[i].module, file) != 0) continue;
    if (access(path, R_OK) != 0) {
      mp_strbuf_puts(tried, strerror(errno));
      return false;
    }
    for (int k = 0; k < 2 && g_needs[i].libraries[k] != NULL; ++k) {
      if (dlopen(g_needs[i].libraries[k], RTLD_NOW | RTLD_GLOBAL) == NULL) continue;
      *out_is_opened = true;
      return true;
    }
    const char *error = dlerror();
    mp_strbuf_puts(tried, error == NULL ? "there is no MPI" : error);
    return false;
  }
  return true;
}

static const mp_mpi_module_t *mpi_start_open_at(const char *path, mp_strbuf_t *tried,
                                                bool *out_is_opened) {
  mp_strbuf_printf(tried, "%s%s: ", tried->size == 0 ? "" : "; ", path);
  if (!mpi_start_open_mpi(path, tried, out_is_opened)) return NULL;
  // Never closed: MPI leaves threads and handlers behind.
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    const char *error = dlerror();
    mp_strbuf_puts(tried, error == NULL ? "cannot be opened" : error);
    return NULL;
  }
  void *symbol = dlsym(handle, MP_MPI_MODULE_SYMBOL);
  mp_mpi_module_fn *get = NULL;
  memcpy(&get, &symbol, sizeof(get));
  const mp_mpi_module_t *module = get == NULL ? NULL : get();
  if (module != NULL && module->version == MP_MPI_MODULE_VERSION) return module;
  mp_strbuf_puts(tried, "is of another version of minipod");
  return NULL;
}

// "/folder/of/the/plugin/minipod_mpi_<name>.so"
static void mpi_start_path_beside_us(const char *name, mp_strbuf_t *path) {
  Dl_info info;
  static const char here = 0;
  if (dladdr(&here, &info) != 0 && info.dli_fname != NULL) {
    const char *slash = strrchr(info.dli_fname, '/');
    if (slash != NULL) {
      mp_strbuf_append(path, info.dli_fname, (size_t)(slash + 1 - info.dli_fname));
    }
  }
  mp_strbuf_printf(path, "minipod_mpi_%s.so", name);
}

mp_status_t mp_mpi_open_module(const char *path, const mp_launcher_t *launcher,
                               const mp_mpi_module_t **out_module) {
  static const char *const all[2] = {"ompi", "mpich"};
  const char *const *names = launcher == NULL ? all : launcher->modules;
  mp_strbuf_t tried;
  mp_strbuf_init(&tried);
  const mp_mpi_module_t *module = NULL;
  bool is_opened = false;  // an MPI was opened, so no other one may be
  if (path[0] != '\0') module = mpi_start_open_at(path, &tried, &is_opened);
  for (int i = 0; path[0] == '\0' && i < 2 && !is_opened && names[i] != NULL; ++i) {
    mp_strbuf_t beside;
    mp_strbuf_init(&beside);
    mpi_start_path_beside_us(names[i], &beside);
    module = mpi_start_open_at(mp_strbuf_text(&beside), &tried, &is_opened);
    mp_strbuf_deinit(&beside);
  }
  mp_status_t status = NULL;
  if (module == NULL) {
    status = mp_status_make(MP_UNAVAILABLE, "tried %s", mp_strbuf_text(&tried));
  } else {
    *out_module = module;
  }
  mp_strbuf_deinit(&tried);
  return status;
}

// ---- Initializing ----

// Shared by the thread that waits and the thread that starts MPI, which may never return from it:
// the last one frees it. `module` is constant; `error` belongs to the starting thread until
// is_done, which is set under the lock, like everything else.
typedef struct {
  const mp_mpi_module_t *module;
  mp_lock_t lock;
  pthread_cond_t changed;
  int num_users;
  const char *step;  // what is being waited for
  bool is_done;
  bool is_ours;
  int failed;
  mp_mpi_who_t who;
  mp_mpi_error_t error;
} mpi_start_t;

static void mpi_start_leave(mpi_start_t *start) {
  // The number is decremented under the lock, so exactly one of the two is the last, and no other
  // thread uses the lock then.
  bool is_last = --start->num_users == 0;
  mp_unlock(&start->lock);
  if (!is_last) return;
  pthread_cond_destroy(&start->changed);
  mp_lock_deinit(&start->lock);
  mp_free(start);
}

static void *mpi_start_main(void *context) {
  mpi_start_t *start = context;
  const mp_mpi_module_t *module = start->module;
  (void)pthread_setname_np(pthread_self(), "mp-mpi-start");
  int is_ours = 0, done = 0;
  mp_mpi_who_t who = {0};
  int failed = module->init(&is_ours, start->error);
  mp_lock(&start->lock);
  start->is_ours = is_ours != 0;
  start->step = "minipod has started in some of the job's processes, but not in all";
  mp_unlock(&start->lock);
  if (failed == 0) failed = module->join_begin(start->error);
  for (struct timespec pause = {.tv_nsec = 20000}; failed == 0;) {
    failed = module->join_test(&done, &who, start->error);
    if (done) break;
    nanosleep(&pause, NULL);
    if (pause.tv_nsec < 1000000) pause.tv_nsec *= 2;
  }
  mp_lock(&start->lock);
  start->who = who;
  start->failed = failed;
  start->is_done = true;
  pthread_cond_broadcast(&start->changed);
  mpi_start_leave(start);
  return NULL;
}

static mp_status_t mpi_start_launch(mpi_start_t *start) {
  pthread_t thread;
  // Threads that MPI starts from it do not take the program's signals either.
  const int error = mp_thread_create(&thread, 0, mpi_start_main, start);
  if (error != 0) {
    return mp_status_make(MP_RESOURCE_EXHAUSTED, "no thread to start MPI on: %s", strerror(error));
  }
  pthread_detach(thread);
  return NULL;
}

static mp_status_t mpi_start_name_missing(const mpi_start_t *start, const mp_launcher_t *launcher,
                                          double timeout_s) {
  mp_strbuf_t missing;
  mp_strbuf_init(&missing);
  mp_roll_call_missing(launcher, &missing);
  mp_status_t status = mp_status_make(
      MP_DEADLINE_EXCEEDED, "the processes of the job did not all start within %g s: %s%s",
      timeout_s, start->step, mp_strbuf_text(&missing));
  mp_strbuf_deinit(&missing);
  return status;
}

mp_status_t mp_mpi_start(const mp_mpi_module_t *module, const mp_launcher_t *launcher,
                         double timeout_s, mp_mpi_who_t *out_who, bool *out_is_ours) {
  mpi_start_t *start = mp_calloc(1, sizeof(*start));
  MP_RETURN_IF_NULL(start);
  start->module = module;
  start->num_users = 2;
  start->step = "some process has not called MPI_Init (does each of them use minipod?)";
  mp_lock_init(&start->lock, MP_LOCK_MPI_START);
  mp_clock_cond_init(&start->changed);
  const struct timespec deadline = mp_clock_after(timeout_s);
  int answer = mp_roll_call_answer(launcher);
  mp_status_t status = mpi_start_launch(start);
  mp_lock(&start->lock);
  if (status != NULL) --start->num_users;
  while (status == NULL && !start->is_done) {
    bool is_in_time = mp_lock_wait_until(&start->lock, &start->changed, &deadline);
    if (!is_in_time && !start->is_done) status = mpi_start_name_missing(start, launcher, timeout_s);
  }
  if (status == NULL && start->failed != 0) {
    status = mp_status_make(MP_UNAVAILABLE, "%s", start->error);
  }
  if (status == NULL) {
    *out_who = start->who;
    *out_is_ours = start->is_ours;
  }
  mpi_start_leave(start);
  if (answer >= 0) close(answer);
  return status;
}
