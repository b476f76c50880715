#include "collectives/transport/bootstrap/bootstrap.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "collectives/transport/bootstrap/launcher.h"
#include "collectives/transport/bootstrap/mpi_start.h"
#include "collectives/transport/bootstrap/mpi_world.h"
#include "collectives/transport/bootstrap/store_world.h"
#include "collectives/transport/bootstrap/tpu_world.h"
#include "collectives/transport/store/presence.h"
#include "collectives/transport/store/store_talk.h"
#include "collectives/transport/store/subset.h"
#include "sim/base/alloc.h"
#include "sim/base/log.h"
#include "sim/base/os/lock.h"
#include "sim/base/os/process.h"

// Checks the framework's process numbers against the real ones.
static mp_status_t bootstrap_check_numbers(const mp_options_t *options, const char *launcher,
                                           int64_t rank, int64_t size) {
  if (options->num_nodes != MP_OPTION_UNSET && size >= 0 && options->num_nodes != size) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "jax.distributed says that there are %" PRId64
                          " processes (num_nodes), %s that there are %" PRId64,
                          options->num_nodes, launcher, size);
  }
  if (options->node_id != MP_OPTION_UNSET && options->node_id != rank) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "jax.distributed says that this is process %" PRId64
                          " (node_id), %s that it is rank %" PRId64,
                          options->node_id, launcher, rank);
  }
  return NULL;
}

// Whether the launcher's MPI is on this machine, or the user has named one.
static bool bootstrap_has_mpi(const mp_options_t *options, const mp_launcher_t *launcher) {
  if (options->mpi_module[0] != '\0') return true;
  const mp_mpi_module_t *module = NULL;
  mp_status_t status = mp_mpi_open_module(options->mpi_module, launcher, &module);
  mp_status_ignore(status);
  return module != NULL;
}

// Warns that processes that were started together and never joined have separate pods: otherwise
// their common results would silently be wrong.
static void bootstrap_warn_of_others(void) {
  static atomic_bool has_warned;
  mp_launcher_t starter;
  if (!mp_launcher_find_starter(&starter) || starter.size < 2 || starter.rank != 0) return;
  if (mp_launcher_is_child_of_rank() || atomic_exchange(&has_warned, true)) return;
  mp_log(MP_LOG_WARNING,
         "%s has started %" PRId64
         " processes, but each has a pod of its own. One pod takes jax.distributed.initialize() "
         "before anything else, or torch.distributed.init_process_group(\"xla\", "
         "init_method=\"xla://\"); MINIPOD_BOOTSTRAP=none says that several are meant",
         starter.name, starter.size);
}

// How this process finds the others.
typedef enum { BOOTSTRAP_ALONE, BOOTSTRAP_MPI, BOOTSTRAP_STORE, BOOTSTRAP_TPU } bootstrap_way_t;

static mp_status_t bootstrap_choose(const mp_options_t *options, const mp_launcher_t *launcher,
                                    const mp_key_value_store_t *store, mp_tpu_job_t *job,
                                    bootstrap_way_t *out_way) {
  const bool has_store = store != NULL && options->num_nodes > 1;
  const bool is_rank = launcher != NULL && launcher->size != 1 && !mp_launcher_is_child_of_rank();
  const char *name = options->bootstrap;
  *job = (mp_tpu_job_t){.size = 0};
  if (!has_store && strcmp(name, "mpi") != 0) MP_RETURN_IF_ERROR(mp_tpu_job_read(options, job));
  const bootstrap_way_t other = has_store       ? BOOTSTRAP_STORE
                                : job->size > 1 ? BOOTSTRAP_TPU
                                                : BOOTSTRAP_ALONE;
  const bool has_other = other != BOOTSTRAP_ALONE;
  if (strcmp(name, "mpi") == 0) {
    *out_way = BOOTSTRAP_MPI;
  } else if (strcmp(name, "kv") == 0 && has_other) {
    *out_way = other;
  } else if (strcmp(name, "kv") == 0) {
    return mp_status_make(
        MP_FAILED_PRECONDITION,
        "option 'bootstrap' is kv, but the client does not bring what that needs: "
        "key-value callbacks and the options node_id and num_nodes, as after "
        "jax.distributed.initialize(), nor do the variables TPU_PROCESS_ADDRESSES and "
        "CLOUD_TPU_TASK_ID list the processes");
  } else if (strcmp(name, "auto") == 0) {
    const bool has_mpi = is_rank && (!has_other || bootstrap_has_mpi(options, launcher));
    *out_way = has_mpi ? BOOTSTRAP_MPI : other;
    if (*out_way == BOOTSTRAP_ALONE) bootstrap_warn_of_others();
  } else {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "option 'bootstrap': expected auto, mpi, kv, none or absent, got '%s'",
                          name);
  }
  return NULL;
}

// A dead process may be restarted without the launcher if the framework has a store: there it looks
// for the processes, which are connected by MPI, and finds the reason why they do not come.
static void bootstrap_tell_latecomers(const mp_key_value_store_t *store, const char *launcher) {
  const mp_store_talk_t talk = {.store = store};
  mp_status_ignore(mp_store_tell(
      &talk, MP_STORE_HELLOS,
      mp_status_make(
          MP_FAILED_PRECONDITION,
          "%s has started it, and MPI connects the processes of this job: a process that "
          "dies ends the job and cannot be restarted. To restart processes, start the "
          "job without an MPI launcher, with jax.distributed.initialize() alone (or "
          "MINIPOD_BOOTSTRAP=kv)",
          launcher),
      MP_STR("")));
}

static mp_status_t bootstrap_find_mpi(const mp_options_t *options, const mp_launcher_t *launcher,
                                      mp_world_t **out_world) {
  if (launcher == NULL) {
    return mp_status_annotate(mp_mpi_world_join(options, NULL, out_world),
                              "option 'bootstrap' is mpi");
  }
  MP_RETURN_IF_ERROR(
      bootstrap_check_numbers(options, launcher->name, launcher->rank, launcher->size));
  mp_status_t status = mp_mpi_world_join(options, launcher, out_world);
  if (mp_status_code(status) != MP_UNAVAILABLE) return status;
  return mp_status_annotate(status,
                            "%s started this process as rank %" PRId64
                            " (%s), but MPI cannot be used (jax.distributed.initialize() joins "
                            "processes without it, MINIPOD_BOOTSTRAP=none lets each work alone)",
                            launcher->name, launcher->rank, launcher->rank_variable);
}

// If there is a store, too, processes that join only a part of the job see there that this one
// joins all.
static mp_status_t bootstrap_join_mpi(const mp_options_t *options, const mp_launcher_t *launcher,
                                      const mp_key_value_store_t *store, mp_world_t **out_world) {
  if (store == NULL || options->node_id < 0)
    return bootstrap_find_mpi(options, launcher, out_world);
  const mp_presence_join_t join = mp_presence_of_options(options, store, NULL);
  mp_presence_tell(&join);
  mp_status_t status = bootstrap_find_mpi(options, launcher, out_world);
  if (status != NULL) mp_presence_give_up(&join, status);
  return status;
}

// The outcome of joining, for the whole life of the process. Being alone is not final: the next
// client may have other options, or a store. The lock is held until the process has joined or
// failed, however long that takes: a process can join once, and a second client that is made
// meanwhile needs the first one's outcome.
static mp_lock_t g_lock = MP_LOCK_INITIALIZER(MP_LOCK_BOOTSTRAP);
static bool g_is_done;
static mp_world_t *g_world;
static mp_status_t g_failure;
// The generation of the process that has begun to join, plus 1; 0: none has. Written under the
// lock. Atomic, because a forked child must read it without the lock, which a thread of its parent
// may have held for minutes.
static atomic_uint g_joiner;

// Whether this is a forked child of a process that has joined, or was about to: it is not part of
// the world, and takes no lock.
static bool bootstrap_is_forked(void) {
  const uint32_t joiner = atomic_load(&g_joiner);
  return joiner != 0 && joiner != mp_process_generation() + 1;
}

// ---- Some processes of the job ----

// A world of a part of the job that this process has joined, or failed to join.
typedef struct bootstrap_part_s {
  struct bootstrap_part_s *next;
  mp_subset_t subset;
  mp_world_t *world;
  mp_status_t failure;
} bootstrap_part_t;
static bootstrap_part_t *g_parts;  // under the lock

static mp_status_t bootstrap_make_part(const mp_options_t *options,
                                       const mp_key_value_store_t *store, const mp_subset_t *subset,
                                       bootstrap_part_t **out_part) {
  if (store == NULL) {
    return mp_status_make(
        MP_FAILED_PRECONDITION,
        "a client of %" PRIu32
        " of the job's processes requires the key-value store of jax.distributed.initialize(), "
        "which this client does not have. A program on some of the processes needs no client of "
        "its own: use a mesh of their devices",
        subset->size);
  }
  bootstrap_part_t *part = mp_calloc(1, sizeof(*part));
  MP_RETURN_IF_NULL(part);
  part->subset = *subset;
  part->next = g_parts;
  const bool is_first = g_world == NULL && g_parts == NULL;
  g_parts = part;
  atomic_store(&g_joiner, mp_process_generation() + 1);
  part->failure = mp_status_annotate(
      mp_store_world_join(options, store, subset, is_first, &part->world),
      "a client of %" PRIu32 " of the job's processes, in which this is number %" PRIu32,
      subset->size, subset->rank);
  *out_part = part;
  return NULL;
}

// The world of these processes; the caller holds the lock. NULL: this one alone.
static mp_status_t bootstrap_join_part(const mp_options_t *options,
                                       const mp_key_value_store_t *store, const mp_subset_t *subset,
                                       mp_world_t **out_world) {
  *out_world = NULL;
  if (subset->size == 1) {
    const mp_presence_join_t join = mp_presence_of_options(options, store, subset);
    if (store != NULL) mp_presence_tell(&join);
    return NULL;
  }
  bootstrap_part_t *part = g_parts;
  while (part != NULL && (part->subset.name != subset->name || part->subset.rank != subset->rank)) {
    part = part->next;
  }
  if (part == NULL) MP_RETURN_IF_ERROR(bootstrap_make_part(options, store, subset, &part));
  *out_world = part->world;
  return mp_status_retain(part->failure);
}

// The world of the processes that the option `subset` lists.
static mp_status_t bootstrap_join_listed(const mp_options_t *options,
                                         const mp_key_value_store_t *store,
                                         mp_world_t **out_world) {
  mp_subset_t subset;
  MP_RETURN_IF_ERROR(mp_subset_read(options, &subset));
  return bootstrap_join_part(options, store, &subset, out_world);
}

// In a job of `world`: that world, or one of as many of its processes as the options say.
static mp_status_t bootstrap_join_numbered(const mp_options_t *options,
                                           const mp_key_value_store_t *store, mp_world_t *world,
                                           mp_world_t **out_world) {
  const int64_t rank = mp_world_rank(world), size = mp_world_size(world);
  *out_world = world;
  if (options->num_nodes == MP_OPTION_UNSET || options->num_nodes >= size) {
    return bootstrap_check_numbers(options, "the job", rank, size);
  }
  if (options->node_id < 0 || options->node_id >= options->num_nodes) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "option 'node_id': a client of %" PRId64
                          " processes (num_nodes) in a job of %" PRId64
                          " needs a number for each of them, 0 to %" PRId64 "; got %" PRId64,
                          options->num_nodes, size, options->num_nodes - 1, options->node_id);
  }
  const mp_subset_t subset = mp_subset_of_numbers(options, (uint32_t)rank, (uint32_t)size);
  return bootstrap_join_part(options, store, &subset, out_world);
}

// ---- All processes ----

// Joins in this way; `job` is that of BOOTSTRAP_TPU.
static mp_status_t bootstrap_join_by(bootstrap_way_t way, const mp_options_t *options,
                                     const mp_launcher_t *launcher,
                                     const mp_key_value_store_t *store, const mp_tpu_job_t *job) {
  if (way == BOOTSTRAP_MPI) return bootstrap_join_mpi(options, launcher, store, &g_world);
  if (way == BOOTSTRAP_TPU) return mp_tpu_world_join(options, job, &g_world);
  return mp_store_world_join(options, store, NULL, true, &g_world);
}

// Joins for the first time; the caller holds the lock.
static mp_status_t bootstrap_join(const mp_options_t *options, const mp_key_value_store_t *store) {
  mp_launcher_t found;
  const mp_launcher_t *launcher = mp_launcher_find(&found) ? &found : NULL;
  bootstrap_way_t way = BOOTSTRAP_ALONE;
  mp_tpu_job_t job;
  MP_RETURN_IF_ERROR(bootstrap_choose(options, launcher, store, &job, &way));
  if (way == BOOTSTRAP_ALONE) return NULL;
  if (g_parts != NULL) {
    return mp_status_make(MP_FAILED_PRECONDITION,
                          "this process has made a client of some processes of the job (option "
                          "'subset'); one of all of them has to come before it");
  }
  atomic_store(&g_joiner, mp_process_generation() + 1);
  g_failure = bootstrap_join_by(way, options, launcher, store, &job);
  if (way == BOOTSTRAP_MPI && store != NULL && g_failure == NULL && g_world != NULL &&
      mp_world_rank(g_world) == 0) {
    bootstrap_tell_latecomers(store, launcher == NULL ? "MPI" : launcher->name);
  }
  g_is_done = true;
  return mp_status_retain(g_failure);
}

bool mp_bootstrap_is_absent(const mp_options_t *options) {
  return strcmp(options->bootstrap, "absent") == 0;
}

mp_status_t mp_world_join(const mp_options_t *options, const mp_key_value_store_t *store,
                          mp_world_t **out_world) {
  mp_process_watch_forks();
  // A forked child is no rank, only its parent is; and a client with bootstrap: none or absent is
  // alone, whatever clients this process has made before.
  if (bootstrap_is_forked() || strcmp(options->bootstrap, "none") == 0 ||
      mp_bootstrap_is_absent(options)) {
    *out_world = NULL;
    return NULL;
  }
  mp_world_t *world = NULL;
  mp_status_t status = NULL;
  mp_lock(&g_lock);
  if (options->subset[0] != '\0') {
    status = bootstrap_join_listed(options, store, &world);
  } else {
    status = g_is_done ? mp_status_retain(g_failure) : bootstrap_join(options, store);
    if (status == NULL && g_world != NULL) {
      status = bootstrap_join_numbered(options, store, g_world, &world);
    }
  }
  mp_unlock(&g_lock);
  if (status == NULL) *out_world = world;
  return status;
}

// If a process has joined only a part of the job, that part is its job.
static mp_world_t *bootstrap_first_part(void) {
  mp_world_t *world = NULL;
  for (const bootstrap_part_t *part = g_parts; part != NULL; part = part->next) {
    if (part->world != NULL) world = part->world;
  }
  return world;
}

mp_world_t *mp_world_joined(void) {
  if (bootstrap_is_forked()) return NULL;
  mp_lock(&g_lock);
  mp_world_t *world = g_is_done && g_failure == NULL ? g_world : NULL;
  if (world == NULL) world = bootstrap_first_part();
  mp_unlock(&g_lock);
  return world;
}
