#include "collectives/transport/bootstrap/bootstrap.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "collectives/transport/bootstrap/launcher.h"
#include "collectives/transport/bootstrap/mpi_start.h"
#include "collectives/transport/bootstrap/mpi_world.h"
#include "collectives/transport/bootstrap/store_talk.h"
#include "collectives/transport/bootstrap/store_world.h"
#include "sim/base/log.h"
#include "sim/base/os/lock.h"
#include "sim/base/os/process.h"

// What the framework says of this process must be what is so.
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

// A client has all processes of the job.
static mp_status_t bootstrap_check_client(const mp_options_t *options, const mp_world_t *world) {
  const int64_t rank = mp_world_rank(world), size = mp_world_size(world);
  if (options->num_nodes != MP_OPTION_UNSET && options->num_nodes < size) {
    return mp_status_make(
        MP_INVALID_ARGUMENT,
        "a client of %" PRId64 " processes (num_nodes) is asked for in a job of %" PRId64
        ", and each client has all of them. Programs on some processes need no client of their "
        "own: a mesh of the devices of these does it. With the option bootstrap: none, and "
        "without num_nodes, a client has the devices of its process alone",
        options->num_nodes, size);
  }
  return bootstrap_check_numbers(options, "the job", rank, size);
}

// Whether the MPI that the launcher goes with is on this machine, or the user has named one.
static bool bootstrap_has_mpi(const mp_options_t *options, const mp_launcher_t *launcher) {
  if (options->mpi_module[0] != '\0') return true;
  const mp_mpi_module_t *module = NULL;
  mp_status_t status = mp_mpi_open_module(options->mpi_module, launcher, &module);
  mp_status_ignore(status);
  return module != NULL;
}

// Says of processes that were started together and never joined that each has a pod of its own:
// what they compute together would be wrong without a word.
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
typedef enum { BOOTSTRAP_ALONE, BOOTSTRAP_MPI, BOOTSTRAP_STORE } bootstrap_way_t;

static mp_status_t bootstrap_choose(const mp_options_t *options, const mp_launcher_t *launcher,
                                    const mp_key_value_store_t *store, bootstrap_way_t *out_way) {
  const bool has_store = store != NULL && options->num_nodes > 1;
  const bool is_rank = launcher != NULL && launcher->size != 1 && !mp_launcher_is_child_of_rank();
  const char *name = options->bootstrap;
  if (strcmp(name, "mpi") == 0) {
    *out_way = BOOTSTRAP_MPI;
  } else if (strcmp(name, "kv") == 0 && has_store) {
    *out_way = BOOTSTRAP_STORE;
  } else if (strcmp(name, "kv") == 0) {
    return mp_status_make(
        MP_FAILED_PRECONDITION,
        "option 'bootstrap' is kv, but the client does not bring what that needs: "
        "key-value callbacks and the options node_id and num_nodes, as after "
        "jax.distributed.initialize()");
  } else if (strcmp(name, "auto") == 0) {
    const bool has_mpi = is_rank && (!has_store || bootstrap_has_mpi(options, launcher));
    *out_way = has_mpi ? BOOTSTRAP_MPI : has_store ? BOOTSTRAP_STORE : BOOTSTRAP_ALONE;
    if (*out_way == BOOTSTRAP_ALONE) bootstrap_warn_of_others();
  } else {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "option 'bootstrap': expected auto, mpi, kv or none, got '%s'", name);
  }
  return NULL;
}

// A process that has died may be started again without the launcher, where the framework brings a
// store: there it looks for those who are connected by MPI now, and finds why they do not come.
static void bootstrap_tell_latecomers(const mp_key_value_store_t *store, const char *launcher) {
  const mp_store_talk_t talk = {.store = store};
  mp_status_ignore(mp_store_tell(
      &talk, MP_STORE_HELLOS,
      mp_status_make(MP_FAILED_PRECONDITION,
                     "%s has started it, and the processes of this job are connected by MPI, into "
                     "which nobody can come back: who has died ends the job. Jobs whose processes "
                     "shall come back are started without an MPI launcher, with "
                     "jax.distributed.initialize() alone (or MINIPOD_BOOTSTRAP=kv)",
                     launcher),
      MP_STR("")));
}

static mp_status_t bootstrap_join_mpi(const mp_options_t *options, const mp_launcher_t *launcher,
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

// What joining came to, for the whole life of the process. Being alone is not final: the next
// client may have other options, or bring a store. The lock is held until the process has joined or
// failed, however long that takes: a process can join once, and a second client that is made
// meanwhile wants what the first one gets.
static mp_lock_t g_lock = MP_LOCK_INITIALIZER(MP_LOCK_BOOTSTRAP);
static bool g_is_done;
static mp_world_t *g_world;
static mp_status_t g_failure;
// The generation of the process that has begun to join, plus 1; 0: none has. Written under the
// lock. Atomic, because a forked child has to look at it without: a thread of its parent may have
// held the lock, and joined for minutes.
static atomic_uint g_joiner;

// Whether this is a child of a process that has joined, or was about to: it has no part in the
// world, and takes no lock.
static bool bootstrap_is_forked(void) {
  const uint32_t joiner = atomic_load(&g_joiner);
  return joiner != 0 && joiner != mp_process_generation() + 1;
}

// Joins for the first time; the caller holds the lock.
static mp_status_t bootstrap_join(const mp_options_t *options, const mp_key_value_store_t *store) {
  mp_launcher_t found;
  const mp_launcher_t *launcher = mp_launcher_find(&found) ? &found : NULL;
  bootstrap_way_t way = BOOTSTRAP_ALONE;
  MP_RETURN_IF_ERROR(bootstrap_choose(options, launcher, store, &way));
  if (way == BOOTSTRAP_ALONE) return NULL;
  atomic_store(&g_joiner, mp_process_generation() + 1);
  g_failure = way == BOOTSTRAP_MPI ? bootstrap_join_mpi(options, launcher, &g_world)
                                   : mp_store_world_join(options, store, &g_world);
  if (way == BOOTSTRAP_MPI && store != NULL && g_failure == NULL && g_world != NULL &&
      mp_world_rank(g_world) == 0) {
    bootstrap_tell_latecomers(store, launcher == NULL ? "MPI" : launcher->name);
  }
  g_is_done = true;
  return mp_status_retain(g_failure);
}

mp_status_t mp_world_join(const mp_options_t *options, const mp_key_value_store_t *store,
                          mp_world_t **out_world) {
  mp_process_watch_forks();
  // A parent is the rank of its forked child; and a client that shall be alone is, whatever clients
  // this process has made before.
  if (bootstrap_is_forked() || strcmp(options->bootstrap, "none") == 0) {
    *out_world = NULL;
    return NULL;
  }
  mp_lock(&g_lock);
  mp_status_t status = g_is_done ? mp_status_retain(g_failure) : bootstrap_join(options, store);
  mp_world_t *world = g_world;
  mp_unlock(&g_lock);
  if (status == NULL && world != NULL) status = bootstrap_check_client(options, world);
  if (status == NULL) *out_world = world;
  return status;
}

mp_world_t *mp_world_joined(void) {
  if (bootstrap_is_forked()) return NULL;
  mp_lock(&g_lock);
  mp_world_t *world = g_is_done && g_failure == NULL ? g_world : NULL;
  mp_unlock(&g_lock);
  return world;
}
