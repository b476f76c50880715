#include "collectives/transport/bootstrap/bootstrap.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/transport/bootstrap/launcher.h"
#include "collectives/transport/bootstrap/leave.h"
#include "collectives/transport/bootstrap/mpi_start.h"
#include "collectives/transport/mpi.h"
#include "collectives/transport/shm.h"
#include "collectives/transport/world_internal.h"
#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/base/log.h"
#include "sim/base/os/process.h"
#include "sim/base/os/system.h"

// Is raised with every change of what processes send each other.
enum { MP_WIRE_PROTOCOL = 3 };

// How long a peer may be dead before it counts as lost. By then a launcher has ended the job, if it
// ends jobs at all, and no process has printed errors that only follow from the first one.
enum { MP_LOSS_GRACE_SECONDS = 4 };

// What each process tells all others at the start. The first three members must stay as they are in
// all versions.
typedef struct {
  uint32_t protocol;
  char version[28];
  char hostname[64];
  uint64_t build;
  int64_t pid;
  int64_t leader;                // lowest rank that MPI says shares memory with this one
  mp_segment_address_t address;  // all zero: none
} hello_t;

// ---- Hello ----

// A fingerprint of the file that this code is in; 0 when it cannot be read.
static uint64_t bootstrap_build_id(void) {
  Dl_info info;
  static const char here = 0;
  if (dladdr(&here, &info) == 0 || info.dli_fname == NULL) return 0;
  FILE *file = mp_fopen(info.dli_fname, "re");
  if (file == NULL) return 0;
  uint64_t hash = MP_HASH_START;
  unsigned char buffer[1 << 14];
  for (size_t size; (size = fread(buffer, 1, sizeof(buffer), file)) != 0;) {
    hash = mp_hash_bytes(hash, buffer, size);
  }
  fclose(file);
  return hash;
}

static hello_t bootstrap_make_hello(const mp_mpi_who_t *who, const mp_segment_t *segment) {
  hello_t hello = {
      .protocol = MP_WIRE_PROTOCOL,
      .version = MINIPOD_VERSION,
      .build = bootstrap_build_id(),
      .pid = getpid(),
      .leader = who->leader,
  };
  if (segment != NULL) hello.address = mp_segment_address(segment);
  (void)gethostname(hello.hostname, sizeof(hello.hostname) - 1);
  return hello;
}

// All processes must run the same build; the error names the first that differs from rank 0.
static mp_status_t bootstrap_compare_hellos(uint32_t size, void *const *bytes,
                                            const size_t *sizes) {
  const hello_t *first = bytes[0];
  for (uint32_t rank = 0; rank < size; ++rank) {
    if (sizes[rank] < offsetof(hello_t, build)) {
      return mp_status_make(MP_FAILED_PRECONDITION, "rank %" PRIu32 " is no minipod", rank);
    }
    const hello_t *other = bytes[rank];
    const char *host = other->hostname;
    if (other->protocol != first->protocol || sizes[rank] != sizes[0] ||
        strncmp(other->version, first->version, sizeof(first->version)) != 0) {
      return mp_status_make(MP_FAILED_PRECONDITION,
                            "the job mixes versions of minipod: rank 0 (host %.63s) runs %.27s "
                            "(protocol %" PRIu32 "), rank %" PRIu32
                            " (host %.63s) runs %.27s (protocol %" PRIu32 ")",
                            first->hostname, first->version, first->protocol, rank, host,
                            other->version, other->protocol);
    }
    if (sizes[rank] == sizeof(hello_t) && other->build != first->build) {
      return mp_status_make(MP_FAILED_PRECONDITION,
                            "the job mixes builds of minipod %s: rank 0 (host %.63s) runs build "
                            "%016" PRIx64 ", rank %" PRIu32 " (host %.63s) runs build %016" PRIx64,
                            MINIPOD_VERSION, first->hostname, first->build, rank, host,
                            other->build);
    }
  }
  return NULL;
}

// ---- Hosts ----

// Numbers the hosts by lowest rank. `leaders[rank]` is the lowest rank of its host.
static void bootstrap_number_hosts(mp_world_t *world, const int64_t *leaders) {
  world->num_hosts = 0;
  for (uint32_t rank = 0; rank < world->size; ++rank) {
    mp_peer_t *peer = &world->peers[rank].peer;
    mp_peer_t *leader = &world->peers[leaders[rank]].peer;
    if (leaders[rank] == rank) {
      peer->host = world->num_hosts++;
      peer->ranks_on_host = 0;
    }
    peer->host = leader->host;
    peer->rank_on_host = leader->ranks_on_host++;
  }
  for (uint32_t rank = 0; rank < world->size; ++rank) {
    world->peers[rank].peer.ranks_on_host = world->peers[leaders[rank]].peer.ranks_on_host;
  }
}

// Checks what the ranks say of their leaders: a leader must be its own leader, and no higher than
// those it leads.
static bool bootstrap_are_leaders_sound(uint32_t size, const int64_t *leaders) {
  for (uint32_t rank = 0; rank < size; ++rank) {
    if (leaders[rank] < 0 || leaders[rank] > rank || leaders[leaders[rank]] != leaders[rank]) {
      return false;
    }
  }
  return true;
}

static mp_status_t bootstrap_take_hellos(mp_world_t *world, void *const *bytes, const size_t *sizes,
                                         int64_t *leaders) {
  MP_RETURN_IF_ERROR(bootstrap_compare_hellos(world->size, bytes, sizes));
  for (uint32_t rank = 0; rank < world->size; ++rank) {
    const hello_t *hello = bytes[rank];
    mp_peer_t *peer = &world->peers[rank].peer;
    char hostname[sizeof(hello->hostname) + 1];
    snprintf(hostname, sizeof(hostname), "%.*s", (int)sizeof(hello->hostname), hello->hostname);
    peer->hostname = mp_strdup(hostname);
    MP_RETURN_IF_NULL(peer->hostname);
    peer->pid = hello->pid;
    leaders[rank] = hello->leader;
  }
  if (!bootstrap_are_leaders_sound(world->size, leaders)) {
    return mp_status_make(MP_INTERNAL, "MPI's groups of processes with common memory overlap");
  }
  return NULL;
}

// ---- Shared memory ----

static mp_status_t bootstrap_open_near(mp_world_t *world, void *const *hellos,
                                       const int64_t *leaders, mp_segment_t **segments) {
  for (uint32_t rank = 0; rank < world->size; ++rank) {
    if (rank == world->rank || leaders[rank] != leaders[world->rank]) continue;
    const hello_t *hello = hellos[rank];
    if (world->segment == NULL || hello->address.pid == 0) {
      return mp_status_make(MP_UNAVAILABLE, "rank %" PRIu32 " has no memory to share",
                            world->segment == NULL ? world->rank : rank);
    }
    mp_status_t status = mp_segment_open(&hello->address, &segments[rank]);
    if (status != NULL) return mp_status_annotate(status, "rank %" PRIu32, rank);
  }
  return NULL;
}

// Where a process of a host could not map the memory of another one, all processes of that host use
// MPI, each as a host of its own. `reasons` are what each rank says, "" if it could map all.
static void bootstrap_split_unmapped(mp_world_t *world, void *const *reasons, const size_t *sizes,
                                     int64_t *leaders, bool *out_is_split) {
  bool is_split = false;
  for (uint32_t rank = 0; rank < world->size; ++rank) {
    is_split = is_split || (sizes[rank] != 0 && leaders[rank] == leaders[world->rank]);
  }
  for (uint32_t rank = 0; rank < world->size; ++rank) {
    if (sizes[rank] == 0) continue;
    mp_log(MP_LOG_WARNING,
           "the processes on the host of rank %" PRIu32 " use MPI, not shared memory: %.*s", rank,
           mp_str_precision(sizes[rank]), (const char *)reasons[rank]);
    int64_t leader = leaders[rank];
    for (uint32_t i = 0; i < world->size; ++i) {
      if (leaders[i] == leader) leaders[i] = i;
    }
  }
  *out_is_split = is_split;
}

static mp_status_t bootstrap_connect_near(mp_world_t *world, void *const *hellos,
                                          mp_segment_t **segments) {
  mp_transport_t *shm = NULL;
  MP_RETURN_IF_ERROR(mp_shm_create(world, world->segment, MP_LOSS_GRACE_SECONDS, &shm));
  mp_status_t status = NULL;
  for (uint32_t rank = 0; rank < world->size && status == NULL; ++rank) {
    if (segments[rank] == NULL) continue;
    status = mp_shm_add_peer(shm, rank, segments[rank], ((const hello_t *)hellos[rank])->pid);
  }
  mp_world_add_transport(world, shm);  // the world owns it in any case
  for (uint32_t rank = 0; rank < world->size && status == NULL; ++rank) {
    if (segments[rank] != NULL) world->peers[rank].transport = shm;
  }
  return status;
}

// Maps the memory of the processes of this host, and agrees with them on using it.
static mp_status_t bootstrap_share_memory(mp_world_t *world, mp_agreement_t *agreement,
                                          void *const *hellos, int64_t *leaders,
                                          mp_segment_t **segments) {
  mp_status_t failed = bootstrap_open_near(world, hellos, leaders, segments);
  const char *reason = mp_status_message(failed);
  void **reasons = NULL;
  size_t *sizes = NULL;
  mp_status_t status = mp_agreement_exchange(agreement, reason, strlen(reason), &reasons, &sizes);
  mp_status_release(failed);
  MP_RETURN_IF_ERROR(status);
  bool is_split = false;
  bootstrap_split_unmapped(world, reasons, sizes, leaders, &is_split);
  mp_free(reasons);
  bootstrap_number_hosts(world, leaders);
  bool has_near = world->peers[world->rank].peer.ranks_on_host > 1;
  return is_split || !has_near ? NULL : bootstrap_connect_near(world, hellos, segments);
}

// ---- Joining ----

static mp_status_t bootstrap_meet(mp_world_t *world, mp_agreement_t *agreement,
                                  const mp_mpi_who_t *who) {
  hello_t hello = bootstrap_make_hello(who, world->segment);
  void **hellos = NULL;
  size_t *sizes = NULL;
  MP_RETURN_IF_ERROR(mp_agreement_exchange(agreement, &hello, sizeof(hello), &hellos, &sizes));
  int64_t *leaders = mp_calloc(world->size, sizeof(*leaders));
  mp_segment_t **segments = mp_calloc(world->size, sizeof(mp_segment_t *));
  mp_status_t status = NULL;
  if (leaders == NULL || segments == NULL) status = mp_status_out_of_memory();
  if (status == NULL) status = bootstrap_take_hellos(world, hellos, sizes, leaders);
  if (status == NULL) status = bootstrap_share_memory(world, agreement, hellos, leaders, segments);
  for (uint32_t rank = 0; segments != NULL && rank < world->size; ++rank) {
    mp_segment_release(segments[rank]);
  }
  mp_free(segments);
  mp_free(leaders);
  mp_free(hellos);
  return status;
}

static mp_status_t bootstrap_greet(mp_world_t *world, const mp_mpi_who_t *who, double timeout_s) {
  mp_agreement_t agreement;
  mp_agreement_begin(world, timeout_s, &agreement);
  return mp_agreement_end(&agreement, bootstrap_meet(world, &agreement, who));
}

static mp_status_t bootstrap_make_world(const mp_mpi_module_t *module, const mp_mpi_who_t *who,
                                        double timeout_s, mp_world_t **out_world) {
  mp_world_t *world = NULL;
  mp_transport_t *mpi = NULL;
  MP_RETURN_IF_ERROR(mp_world_create((uint32_t)who->rank, (uint32_t)who->size, &world));
  mp_status_t status =
      mp_segment_create((uint32_t)who->num_near, (uint32_t)who->num_near, &world->segment);
  if (status != NULL) {
    // Without shared memory everything goes by MPI, with payloads on the heap: slower, but right.
    mp_log(MP_LOG_WARNING, "%s", mp_status_message(status));
    mp_status_release(status);
  } else {
    world->doorbell = mp_segment_doorbell(world->segment);
  }
  status = mp_mpi_create(world, module, &mpi);
  if (status == NULL) {
    mp_world_add_transport(world, mpi);
    for (uint32_t i = 0; i < world->size; ++i) {
      world->peers[i].transport = i == world->rank ? NULL : mpi;
    }
    status = mp_world_start(world);
  }
  if (status != NULL) {
    mp_world_release(world);
    return status;
  }
  mp_leave_set_world(world, mpi);
  // From here on the world stays, even if the greeting fails: others may be sending to it.
  MP_RETURN_IF_ERROR(bootstrap_greet(world, who, timeout_s));
  // When all ranks are on one host, nothing more comes by MPI, so the progress thread need not
  // poll.
  if (world->num_hosts == 1 && mp_world_drain(world, timeout_s)) mp_mpi_close(mpi);
  *out_world = world;
  return NULL;
}

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

// Tells the children of this process, by the environment, that MPI belongs to this process. Other
// threads may be reading the environment at the same time; glibc keeps the memory that they read.
static void bootstrap_claim_mpi(void) {
  char pid[24];
  snprintf(pid, sizeof(pid), "%d", (int)getpid());
  (void)setenv(MP_MPI_OWNER_VARIABLE, pid, 1);
}

static mp_status_t bootstrap_join_mpi(const mp_options_t *options, const mp_launcher_t *launcher,
                                      mp_world_t **out_world) {
  const mp_mpi_module_t *module = NULL;
  MP_RETURN_IF_ERROR(mp_mpi_open_module(options->mpi_module, launcher, &module));
  if (module->state() == MP_MPI_FINALIZED) {
    return mp_status_make(MP_FAILED_PRECONDITION, "MPI has been finalized already");
  }
  bootstrap_claim_mpi();
  double timeout_s = (double)options->init_timeout;
  mp_mpi_who_t who;
  bool is_ours = false;
  MP_RETURN_IF_ERROR(mp_mpi_start(module, launcher, timeout_s, &who, &is_ours));
  MP_RETURN_IF_ERROR(mp_leave_prepare(module, is_ours, &who, (double)options->exit_timeout));
  mp_mpi_error_t name;
  module->describe(name);
  mp_log(MP_LOG_INFO, "rank %d of %d by %s", who.rank, who.size, name);
  MP_RETURN_IF_ERROR(bootstrap_check_numbers(options, "MPI", who.rank, who.size));
  if (who.size == 1) {
    *out_world = NULL;
    return NULL;
  }
  return bootstrap_make_world(module, &who, timeout_s, out_world);
}

static mp_status_t bootstrap_join(const mp_options_t *options, mp_world_t **out_world) {
  bool is_auto = strcmp(options->bootstrap, "auto") == 0;
  bool is_forced = strcmp(options->bootstrap, "mpi") == 0;
  if (!is_auto && !is_forced && strcmp(options->bootstrap, "none") != 0) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "option 'bootstrap': expected auto, mpi or none, got '%s'",
                          options->bootstrap);
  }
  mp_launcher_t launcher;
  bool is_launched = mp_launcher_find(&launcher);
  bool is_alone = mp_launcher_is_child_of_rank() || (is_launched && launcher.size == 1);
  if ((!is_auto && !is_forced) || (is_auto && (!is_launched || is_alone))) {
    *out_world = NULL;
    return NULL;
  }
  if (!is_launched) {
    return mp_status_annotate(bootstrap_join_mpi(options, NULL, out_world),
                              "option 'bootstrap' is mpi");
  }
  MP_RETURN_IF_ERROR(bootstrap_check_numbers(options, launcher.name, launcher.rank, launcher.size));
  mp_status_t status = bootstrap_join_mpi(options, &launcher, out_world);
  if (mp_status_code(status) != MP_UNAVAILABLE) return status;
  return mp_status_annotate(status,
                            "%s started this process as rank %" PRId64
                            " (%s), but MPI cannot be used (MINIPOD_BOOTSTRAP=none lets each "
                            "process work alone)",
                            launcher.name, launcher.rank, launcher.rank_variable);
}

// What joining came to, for the whole life of the process.
static mp_lock_t g_lock = MP_LOCK_INITIALIZER(MP_LOCK_BOOTSTRAP);
static bool g_is_done;
static uint32_t g_generation;  // of the process that joined
static mp_world_t *g_world;
static mp_status_t g_failure;

mp_status_t mp_world_join(const mp_options_t *options, mp_world_t **out_world) {
  mp_process_watch_forks();
  mp_lock(&g_lock);
  mp_status_t status = NULL;
  if (g_is_done && g_generation != mp_process_generation()) {
    *out_world = NULL;  // this is a forked child, whose parent is the rank
  } else if (g_is_done) {
    status = mp_status_retain(g_failure);
    if (status == NULL) *out_world = g_world;
  } else if (strcmp(options->bootstrap, "none") == 0) {
    *out_world = NULL;  // not final: the next call may have other options
  } else {
    g_generation = mp_process_generation();
    g_failure = bootstrap_join(options, &g_world);
    g_is_done = true;
    status = mp_status_retain(g_failure);
    if (status == NULL) *out_world = g_world;
  }
  mp_unlock(&g_lock);
  return status;
}

mp_world_t *mp_world_joined(void) {
  mp_lock(&g_lock);
  const bool is_own = g_is_done && g_generation == mp_process_generation();
  mp_world_t *world = is_own && g_failure == NULL ? g_world : NULL;
  mp_unlock(&g_lock);
  return world;
}
