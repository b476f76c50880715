#include "collectives/transport/bootstrap/mpi_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/transport/bootstrap/leave.h"
#include "collectives/transport/bootstrap/mpi_start.h"
#include "collectives/transport/bootstrap/near.h"
#include "collectives/transport/hosts/mpi.h"
#include "collectives/transport/world_impl.h"
#include "sim/base/alloc.h"
#include "sim/base/log.h"

// How long a peer may be dead before it counts as lost. By then a launcher has ended the job, if it
// ends jobs at all, and no process has printed errors that only follow from the first one.
enum { MP_LOSS_GRACE_SECONDS = 4 };

// ---- Hosts ----

// Checks the ranks' leaders: a leader must be its own leader, and no higher than the ranks that it
// leads.
static bool mpi_world_are_leaders_sound(uint32_t size, const int64_t *leaders) {
  for (uint32_t rank = 0; rank < size; ++rank) {
    if (leaders[rank] < 0 || leaders[rank] > rank || leaders[leaders[rank]] != leaders[rank]) {
      return false;
    }
  }
  return true;
}

static mp_status_t mpi_world_take_hellos(mp_world_t *world, void *const *bytes, const size_t *sizes,
                                         int64_t *leaders) {
  for (uint32_t rank = 0; rank < world->size; ++rank) {
    MP_RETURN_IF_ERROR(mp_hello_compare(0, (mp_str_t){bytes[0], sizes[0]}, rank,
                                        (mp_str_t){bytes[rank], sizes[rank]}));
  }
  for (uint32_t rank = 0; rank < world->size; ++rank) {
    const mp_hello_t *hello = bytes[rank];
    mp_hello_take(world, rank, hello);
    leaders[rank] = hello->leader;
  }
  if (!mpi_world_are_leaders_sound(world->size, leaders)) {
    return mp_status_make(MP_INTERNAL, "MPI's groups of processes with common memory overlap");
  }
  return NULL;
}

// ---- Shared memory ----

// If a process of a host could not map the memory of another one, all processes of that host use
// MPI, each as a separate host. `reasons` has the error of each rank, "" if it could map all.
static void mpi_world_split_unmapped(mp_world_t *world, void *const *reasons, const size_t *sizes,
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

// Maps the memory of the processes of this host, and agrees with them whether to use it.
static mp_status_t mpi_world_share_memory(mp_world_t *world, mp_agreement_t *agreement,
                                          void *const *hellos, int64_t *leaders,
                                          mp_segment_t **segments) {
  mp_status_t failed = mp_near_open(world, hellos, leaders, segments);
  const char *reason = mp_status_message(failed);
  void **reasons = NULL;
  size_t *sizes = NULL;
  mp_status_t status = mp_agreement_exchange(agreement, reason, strlen(reason), &reasons, &sizes);
  mp_status_release(failed);
  MP_RETURN_IF_ERROR(status);
  bool is_split = false;
  mpi_world_split_unmapped(world, reasons, sizes, leaders, &is_split);
  mp_free(reasons);
  mp_near_number_hosts(world, leaders);
  bool has_near = world->peers[world->rank].peer.ranks_on_host > 1;
  return is_split || !has_near ? NULL
                               : mp_near_connect(world, hellos, segments, MP_LOSS_GRACE_SECONDS);
}

// ---- Joining ----

static mp_status_t mpi_world_meet(mp_world_t *world, mp_agreement_t *agreement,
                                  const mp_mpi_who_t *who) {
  const mp_hello_t hello = mp_hello_make(world->size, who->leader, world->segment);
  void **hellos = NULL;
  size_t *sizes = NULL;
  MP_RETURN_IF_ERROR(mp_agreement_exchange(agreement, &hello, sizeof(hello), &hellos, &sizes));
  int64_t *leaders = mp_calloc(world->size, sizeof(*leaders));
  mp_segment_t **segments = mp_calloc(world->size, sizeof(mp_segment_t *));
  mp_status_t status = NULL;
  if (leaders == NULL || segments == NULL) status = mp_status_out_of_memory();
  if (status == NULL) status = mpi_world_take_hellos(world, hellos, sizes, leaders);
  if (status == NULL) status = mpi_world_share_memory(world, agreement, hellos, leaders, segments);
  for (uint32_t rank = 0; segments != NULL && rank < world->size; ++rank) {
    mp_segment_release(segments[rank]);
  }
  mp_free(segments);
  mp_free(leaders);
  mp_free(hellos);
  return status;
}

static mp_status_t mpi_world_greet(mp_world_t *world, const mp_mpi_who_t *who, double timeout_s) {
  mp_agreement_t agreement;
  mp_agreement_begin(world, timeout_s, &agreement);
  return mp_agreement_end(&agreement, mpi_world_meet(world, &agreement, who));
}

static mp_status_t mpi_world_make_world(const mp_mpi_module_t *module, const mp_mpi_who_t *who,
                                        double timeout_s, mp_world_t **out_world) {
  mp_world_t *world = NULL;
  mp_transport_t *mpi = NULL;
  MP_RETURN_IF_ERROR(mp_world_create((uint32_t)who->rank, (uint32_t)who->size, &world));
  mp_status_t status =
      mp_segment_create((uint32_t)who->num_near, (uint32_t)who->num_near, &world->segment);
  if (status != NULL) {
    // Without shared memory everything is sent by MPI, with payloads on the heap: slower, but
    // correct.
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
  MP_RETURN_IF_ERROR(mpi_world_greet(world, who, timeout_s));
  // If all ranks are on one host, nothing more comes by MPI, so the progress thread need not poll
  // it.
  if (world->num_hosts == 1 && mp_world_drain(world, timeout_s)) mpi->ops->close(mpi);
  *out_world = world;
  return NULL;
}

// Records in the environment, for the children of this process, that this process owns MPI. Other
// threads may be reading the environment at the same time; glibc keeps the memory that they read.
static void mpi_world_claim_mpi(void) {
  char pid[24];
  snprintf(pid, sizeof(pid), "%d", (int)getpid());
  (void)setenv(MP_MPI_OWNER_VARIABLE, pid, 1);
}

mp_status_t mp_mpi_world_join(const mp_options_t *options, const mp_launcher_t *launcher,
                              mp_world_t **out_world) {
  const mp_mpi_module_t *module = NULL;
  MP_RETURN_IF_ERROR(mp_mpi_open_module(options->mpi_module, launcher, &module));
  if (module->state() == MP_MPI_FINALIZED) {
    return mp_status_make(MP_FAILED_PRECONDITION, "MPI has been finalized already");
  }
  mpi_world_claim_mpi();
  double timeout_s = (double)options->init_timeout;
  mp_mpi_who_t who;
  bool is_ours = false;
  MP_RETURN_IF_ERROR(mp_mpi_start(module, launcher, timeout_s, &who, &is_ours));
  MP_RETURN_IF_ERROR(mp_leave_prepare(module, is_ours, who.rank, (double)options->exit_timeout));
  mp_mpi_error_t name;
  module->describe(name);
  mp_log(MP_LOG_INFO, "rank %d of %d by %s", who.rank, who.size, name);
  if (who.size == 1 && launcher != NULL && launcher->size > 1) {
    return mp_status_make(MP_UNAVAILABLE,
                          "it has started %" PRId64
                          " processes, but in %.*s each is alone: the launcher belongs to another "
                          "MPI, or cannot talk to this one",
                          launcher->size, (int)strcspn(name, ","), name);
  }
  if (who.size == 1) {
    *out_world = NULL;
    return NULL;
  }
  return mpi_world_make_world(module, &who, timeout_s, out_world);
}
