// The functions of mpi_module.h, in terms of MPI. Compiled once for each MPI that the build finds.
#include "collectives/transport/mpi/mpi_module.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Without a lock: written by the thread that starts MPI before it says that it is done
// (mpi_start.c), and read by the progress thread, which is created after that. The other three are
// written then, by the thread that joins, and read inside MPI_Finalize, which may not run
// concurrently with anything.
static MPI_Comm g_comm;
static MPI_Request g_joining;
static int g_key = MPI_KEYVAL_INVALID;
static void (*g_stop)(void *context);
static void *g_stop_context;

_Static_assert(sizeof(MPI_Request) <= sizeof(mp_mpi_request_t), "a request fits");

static MPI_Request mpi_module_get_request(const mp_mpi_request_t *request) {
  MPI_Request result;
  memcpy(&result, &request->opaque, sizeof(result));
  return result;
}

static void mpi_module_put_request(mp_mpi_request_t *request, MPI_Request value) {
  request->opaque = 0;
  memcpy(&request->opaque, &value, sizeof(value));
}

// 0, or -1 with the text of the MPI error.
static int mpi_module_check(int code, const char *call, char *error) {
  if (code == MPI_SUCCESS) return 0;
  char text[MPI_MAX_ERROR_STRING] = "?";
  int length = 0;
  MPI_Error_string(code, text, &length);
  snprintf(error, MP_MPI_ERROR_BYTES, "%s: %s", call, text);
  return -1;
}

static mp_mpi_state_t mpi_module_state(void) {
  int flag = 0;
  MPI_Finalized(&flag);
  if (flag) return MP_MPI_FINALIZED;
  MPI_Initialized(&flag);
  return flag ? MP_MPI_RUNNING : MP_MPI_NOT_STARTED;
}

static void mpi_module_describe(char *out_text) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  snprintf(out_text, MP_MPI_ERROR_BYTES, "%.*s", (int)strcspn(text, "\n"), text);
}

// MPI opens plugins of its own, and in some builds those look for its symbols among the global
// ones, which do not include those of a library that was installed with minipod.
static void mpi_module_make_symbols_global(void) {
  Dl_info info;
  if (dladdr((void *)(uintptr_t)&MPI_Init_thread, &info) == 0 || info.dli_fname == NULL) return;
  void *handle = dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  if (handle != NULL) dlclose(handle);
}

// Sets variables that Open MPI reads when it starts; variables that the user has set stay.
static void mpi_module_set_environment(void) {
  // Open MPI would take over SIGSEGV and similar signals, which Python handles (faulthandler).
  setenv("OMPI_MCA_opal_signal", "", 0);
  // A header with 64 KiB of data behind it, and a piece of 1 MiB (hosts/mpi.c), go over TCP as one
  // message each: above its own limit, 64 KiB with headers, Open MPI asks the receiver first.
  static const char *const limits[] = {"OMPI_MCA_btl_tcp_eager_limit",
                                       "OMPI_MCA_btl_tcp_rndv_eager_limit",
                                       "OMPI_MCA_btl_tcp_max_send_size"};
  for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); ++i) setenv(limits[i], "1114112", 0);
}

static int mpi_module_init(int *out_is_ours, char *error) {
  int is_running = 0, level = MPI_THREAD_SINGLE;
  MPI_Initialized(&is_running);
  if (!is_running) {
    mpi_module_make_symbols_global();
    mpi_module_set_environment();
    if (mpi_module_check(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level),
                         "MPI_Init_thread", error)) {
      return -1;
    }
  } else if (mpi_module_check(MPI_Query_thread(&level), "MPI_Query_thread", error)) {
    return -1;
  }
  if (level != MPI_THREAD_MULTIPLE) {
    snprintf(error, MP_MPI_ERROR_BYTES,
             is_running ? "MPI was initialized without MPI_THREAD_MULTIPLE: ask for it there, or "
                          "use minipod's devices first"
                        : "this MPI does not offer MPI_THREAD_MULTIPLE");
    return -1;
  }
  *out_is_ours = !is_running;
  return 0;
}

static int mpi_module_join_begin(char *error) {
  return mpi_module_check(MPI_Comm_idup(MPI_COMM_WORLD, &g_comm, &g_joining), "MPI_Comm_idup",
                          error);
}

// The communicator exists: finds this process's rank, and the ranks that share its memory.
static int mpi_module_look_around(mp_mpi_who_t *out_who, char *error) {
  mp_mpi_who_t who;
  MPI_Comm_set_errhandler(g_comm, MPI_ERRORS_RETURN);
  if (mpi_module_check(MPI_Comm_rank(g_comm, &who.rank), "MPI_Comm_rank", error) ||
      mpi_module_check(MPI_Comm_size(g_comm, &who.size), "MPI_Comm_size", error)) {
    return -1;
  }
  MPI_Comm host;
  if (mpi_module_check(
          MPI_Comm_split_type(g_comm, MPI_COMM_TYPE_SHARED, who.rank, MPI_INFO_NULL, &host),
          "MPI_Comm_split_type", error)) {
    return -1;
  }
  MPI_Group all, near;
  int first = 0;
  MPI_Comm_size(host, &who.num_near);
  MPI_Comm_group(g_comm, &all);
  MPI_Comm_group(host, &near);
  int failed = mpi_module_check(MPI_Group_translate_ranks(near, 1, &first, all, &who.leader),
                                "MPI_Group_translate_ranks", error);
  MPI_Group_free(&near);
  MPI_Group_free(&all);
  MPI_Comm_free(&host);
  if (!failed) *out_who = who;
  return failed;
}

static int mpi_module_join_test(int *out_done, mp_mpi_who_t *out_who, char *error) {
  int done = 0;
  if (mpi_module_check(MPI_Test(&g_joining, &done, MPI_STATUS_IGNORE), "MPI_Test", error))
    return -1;
  if (done && mpi_module_look_around(out_who, error) != 0) return -1;
  *out_done = done;
  return 0;
}

// Attributes of MPI_COMM_SELF are deleted first of all by MPI_Finalize.
static int mpi_module_on_self_deleted(MPI_Comm comm, int key, void *value, void *extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  if (g_stop != NULL) g_stop(g_stop_context);
  g_stop = NULL;
  return MPI_SUCCESS;
}

static int mpi_module_on_finalize(void (*stop)(void *), void *context, char *error) {
  g_stop = stop;
  g_stop_context = context;
  if (mpi_module_check(
          MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, mpi_module_on_self_deleted, &g_key, NULL),
          "MPI_Comm_create_keyval", error)) {
    return -1;
  }
  return mpi_module_check(MPI_Comm_set_attr(MPI_COMM_SELF, g_key, &g_stop_context),
                          "MPI_Comm_set_attr", error);
}

static int mpi_module_send(const void *data, size_t bytes, int to, int tag,
                           mp_mpi_request_t *out_request, char *error) {
  MPI_Request request;
  if (mpi_module_check(MPI_Isend(data, (int)bytes, MPI_BYTE, to, tag, g_comm, &request),
                       "MPI_Isend", error)) {
    return -1;
  }
  mpi_module_put_request(out_request, request);
  return 0;
}

static int mpi_module_receive(void *data, size_t bytes, int from, int tag,
                              mp_mpi_request_t *out_request, char *error) {
  MPI_Request request;
  int source = from == MP_MPI_ANY ? MPI_ANY_SOURCE : from;
  if (mpi_module_check(MPI_Irecv(data, (int)bytes, MPI_BYTE, source, tag, g_comm, &request),
                       "MPI_Irecv", error)) {
    return -1;
  }
  mpi_module_put_request(out_request, request);
  return 0;
}

static int mpi_module_test(mp_mpi_request_t *request, int *out_done, int *out_from,
                           size_t *out_bytes, char *error) {
  MPI_Request value = mpi_module_get_request(request);
  MPI_Status status;
  int done = 0, count = 0;
  if (mpi_module_check(MPI_Test(&value, &done, &status), "MPI_Test", error)) return -1;
  mpi_module_put_request(request, value);
  *out_done = done;
  if (!done) return 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  *out_from = status.MPI_SOURCE;
  *out_bytes = count < 0 ? 0 : (size_t)count;
  return 0;
}

static void mpi_module_cancel(mp_mpi_request_t *request) {
  MPI_Request value = mpi_module_get_request(request);
  if (value == MPI_REQUEST_NULL) return;
  MPI_Cancel(&value);
  MPI_Wait(&value, MPI_STATUS_IGNORE);
  mpi_module_put_request(request, MPI_REQUEST_NULL);
}

static void mpi_module_finalize(void) {
  g_stop = NULL;
  MPI_Finalize();
}

static void mpi_module_abort(int status) {
  MPI_Abort(MPI_COMM_WORLD, status);
}

__attribute__((visibility("default"))) mp_mpi_module_fn minipod_mpi_module;

const mp_mpi_module_t *minipod_mpi_module(void) {
  static const mp_mpi_module_t module = {
      .version = MP_MPI_MODULE_VERSION,
      .state = mpi_module_state,
      .describe = mpi_module_describe,
      .init = mpi_module_init,
      .join_begin = mpi_module_join_begin,
      .join_test = mpi_module_join_test,
      .on_finalize = mpi_module_on_finalize,
      .send = mpi_module_send,
      .receive = mpi_module_receive,
      .test = mpi_module_test,
      .cancel = mpi_module_cancel,
      .finalize = mpi_module_finalize,
      .abort = mpi_module_abort,
  };
  return &module;
}
