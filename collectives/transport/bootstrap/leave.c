#include "collectives/transport/bootstrap/leave.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/transport/world_impl.h"
#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/process.h"
#include "sim/base/os/system.h"

// The time for sending the goodbyes of a process that ends with an error.
static const double k_last_words_seconds = 1;
// How long MPI_Finalize may take if all have said goodbye before.
static const double k_finalize_seconds = 5;
// How long the progress thread may take to stop using the library below the transport between
// hosts.
static const double k_close_seconds = 5;

// Written by the thread that joins the job, and read at the end of the process, often on another
// thread, which may come while the first one is still joining. Two members publish the others.
static struct {
  atomic_bool is_prepared;  // set after the members up to `generation`, which do not change again
  const mp_mpi_module_t *module;  // NULL: a job without MPI
  bool is_ours;
  int rank;
  double timeout_s;
  uint32_t generation;
  bool has_heard_all;  // the goodbyes of all others; written and read by the thread that leaves
  atomic_bool is_finalized;
  // NULL: this process has not joined completely. Set after `far`: a thread that sees the world
  // also sees what to close before MPI is finalized.
  _Atomic(mp_world_t *) world;
  mp_transport_t *far;  // of the world, between hosts; may be NULL
  // The end of the process, a user's MPI_Finalize and the plugin's own end may all leave the job:
  // the first one does, and the others continue without waiting.
  atomic_bool is_left;
} g_leave;

// Worlds of some processes. Entries are never removed, and the head of the list publishes them.
typedef struct leave_part_s {
  struct leave_part_s *next;
  _Atomic(mp_world_t *) world;  // NULL: dropped
  mp_transport_t *far;
} leave_part_t;
static _Atomic(leave_part_t *) g_parts;

static bool leave_is_member(void) {
  return atomic_load(&g_leave.is_prepared) && g_leave.generation == mp_process_generation();
}

// Waits for the end of a process of another host. Its pid means nothing here, but its connection
// ends with it.
static void leave_await_far(uint32_t rank, double deadline) {
  if (g_leave.far == NULL || g_leave.far->ops->is_over == NULL) return;
  while (!g_leave.far->ops->is_over(g_leave.far, rank) && mp_clock_seconds() < deadline) {
    usleep(5000);
  }
}

// Says goodbye in the worlds of some processes.
static void leave_parts(uint32_t status, double timeout_s) {
  for (leave_part_t *part = atomic_load(&g_parts); part != NULL; part = part->next) {
    mp_world_t *world = atomic_load(&part->world);
    if (world == NULL) continue;
    mp_world_say_goodbye(world, status);
    (void)mp_world_drain(world, timeout_s);
  }
}

static void leave_close_parts(void) {
  for (leave_part_t *part = atomic_load(&g_parts); part != NULL; part = part->next) {
    if (atomic_load(&part->world) == NULL || part->far == NULL) continue;
    (void)mp_transport_close(part->far, k_close_seconds);
  }
}

static void leave_close_far(void) {
  if (g_leave.far != NULL) (void)mp_transport_close(g_leave.far, k_close_seconds);
}

// Without a launcher the first process usually has the service to which the other processes'
// frameworks are connected, and they treat the end of that service as a failure. So it leaves last.
static void leave_last(const mp_world_t *world, double deadline) {
  const uint32_t host = world->peers[world->rank].peer.host;
  for (uint32_t rank = 1; rank < world->size; ++rank) {
    const mp_peer_t *peer = &world->peers[rank].peer;
    if (atomic_load(&world->peers[rank].is_silent)) continue;  // it may never end
    if (peer->host == host) {
      (void)mp_process_await_end(peer->pid, deadline - mp_clock_seconds());
    } else {
      leave_await_far(rank, deadline);
    }
  }
}

// Says goodbye, gives the others time to do the same, and stops using MPI.
static void leave_world(void) {
  mp_world_t *world = atomic_load(&g_leave.world);
  if (world == NULL || atomic_exchange(&g_leave.is_left, true)) return;
  double deadline = mp_clock_seconds() + g_leave.timeout_s;
  mp_world_say_goodbye(world, 0);
  // Messages that the others have yet to read are in memory that they have mapped, or have arrived,
  // so they no longer need this process, unless MPI still sends something.
  if (mp_world_drain(world, g_leave.timeout_s) && g_leave.module != NULL) {
    // A process that still works after that will meet this one in MPI_Finalize.
    g_leave.has_heard_all = mp_world_await_goodbyes(world, deadline - mp_clock_seconds());
  }
  if (g_leave.module == NULL && g_leave.rank == 0) leave_last(world, deadline);
  if (g_leave.module != NULL) leave_close_far();
}

// Called when the program finalizes MPI itself.
static void leave_on_finalize(void *context) {
  (void)context;
  if (leave_is_member()) leave_world();
}

// Prints the reason with a single write, so that lines of several ranks do not mix, and after all
// that the program has printed.
static void leave_say_why(int status) {
  char host[64] = "?";
  (void)gethostname(host, sizeof(host) - 1);
  char line[200];
  int length =
      snprintf(line, sizeof(line), "minipod: rank %d (host %s, pid %d) exits with status %d%s\n",
               g_leave.rank, host, (int)getpid(), status,
               g_leave.module == NULL ? "" : "; stopping the job");
  // fflush(NULL) could wait for ever: another thread may hold a stream from which it reads.
  fflush(stdout);
  fflush(stderr);
  ssize_t written = write(STDERR_FILENO, line, (size_t)length);
  (void)written;
}

// Leaves a world without MPI with this exit status.
static void leave_quickly(uint32_t status) {
  mp_world_t *world = atomic_load(&g_leave.world);
  if (world == NULL || atomic_exchange(&g_leave.is_left, true)) return;
  mp_world_say_goodbye(world, status);
  (void)mp_world_drain(world, k_last_words_seconds);
}

bool mp_leave_is_quick(void) {
  return leave_is_member() && g_leave.module == NULL;
}

// Whether a process has ended without a goodbye, or has met such a process, or is silent.
static bool leave_is_lost(mp_world_t *world, uint32_t rank) {
  const mp_peer_state_t *peer = &world->peers[rank];
  // Both are read under one lock: a goodbye sets has_left first and is_gone later. If it came
  // between two separate reads, a process that has left in order would count as lost.
  mp_lock(&world->lock);
  const bool is_lost = peer->skips_end || atomic_load(&peer->is_silent) ||
                       (!peer->has_left && atomic_load(&peer->is_gone));
  mp_unlock(&world->lock);
  return rank != world->rank && is_lost;
}

bool mp_leave_early(uint32_t status) {
  mp_world_t *world = atomic_load(&g_leave.world);
  if (!mp_leave_is_quick() || world == NULL) return false;
  leave_parts(status, status == 0 ? g_leave.timeout_s : k_last_words_seconds);
  bool has_lost = false;
  for (uint32_t rank = 0; rank < world->size; ++rank) has_lost |= leave_is_lost(world, rank);
  if (has_lost) mp_world_skip_end(world);
  leave_quickly(status);
  if (has_lost && g_leave.rank == 0) leave_last(world, mp_clock_seconds() + g_leave.timeout_s);
  return has_lost;
}

// Ends the job as far as possible: without a launcher the other processes are only notified, and
// their waits fail.
static void leave_with_error(int status) {
  leave_say_why(status);
  mp_world_t *world = atomic_load(&g_leave.world);
  if (world != NULL && world->segment != NULL) mp_segment_explain(world->segment);
  if (g_leave.module != NULL) {
    if (g_leave.module->state() == MP_MPI_RUNNING) g_leave.module->abort(status);
  } else {
    leave_quickly((uint32_t)status);
    leave_close_far();
  }
}

// MPICH's MPI_Finalize (4.0, over UCX) may wait for a peer that has finished and waits in its
// launcher. Then everything else has been done, and this process ends with its exit status.
static void *leave_watch_finalize(void *context) {
  (void)context;
  const double deadline = mp_clock_seconds() + k_finalize_seconds;
  while (mp_clock_seconds() < deadline) {
    if (atomic_load(&g_leave.is_finalized)) return NULL;
    usleep(100000);
  }
  static const char line[] =
      "minipod: MPI_Finalize does not return, although all processes have ended; this one ends "
      "without it\n";
  ssize_t written = write(STDERR_FILENO, line, sizeof(line) - 1);
  (void)written;
  (void)fflush(NULL);  // the remaining work of exit
  _exit(0);
}

static void leave_finalize(void) {
  pthread_t watch;
  if (g_leave.has_heard_all && mp_thread_create(&watch, 0, leave_watch_finalize, NULL) == 0) {
    pthread_detach(watch);
  }
  g_leave.module->finalize();
  atomic_store(&g_leave.is_finalized, true);
}

static void leave_on_exit_status(int status, void *context) {
  (void)context;
  if (!leave_is_member()) return;
  const bool has_failed = (status & 0xff) != 0;
  leave_parts((uint32_t)status & 0xff, has_failed ? k_last_words_seconds : g_leave.timeout_s);
  leave_close_parts();
  if (has_failed) {
    leave_with_error(status & 0xff);
    return;
  }
  if (g_leave.module == NULL) {
    leave_world();
    leave_close_far();
  } else if (g_leave.module->state() == MP_MPI_RUNNING) {
    leave_world();
    if (g_leave.is_ours) leave_finalize();
  }
}

mp_status_t mp_leave_prepare(const mp_mpi_module_t *module, bool is_ours, int rank,
                             double timeout_s) {
  mp_process_watch_forks();
  g_leave.module = module;
  g_leave.is_ours = is_ours;
  g_leave.rank = rank;
  g_leave.timeout_s = timeout_s;
  g_leave.generation = mp_process_generation();
  atomic_store(&g_leave.is_prepared, true);
  if (on_exit(leave_on_exit_status, NULL) != 0) return mp_status_out_of_memory();
  mp_mpi_error_t error;
  if (module != NULL && module->on_finalize(leave_on_finalize, NULL, error) != 0) {
    return mp_status_make(MP_UNAVAILABLE, "%s", error);
  }
  return NULL;
}

mp_status_t mp_leave_add_world(mp_world_t *world, mp_transport_t *far) {
  leave_part_t *part = mp_calloc(1, sizeof(*part));
  MP_RETURN_IF_NULL(part);
  part->far = far;
  part->next = atomic_load(&g_parts);
  atomic_store(&part->world, world);
  atomic_store(&g_parts, part);
  return NULL;
}

void mp_leave_drop_world(mp_world_t *world) {
  for (leave_part_t *part = atomic_load(&g_parts); part != NULL; part = part->next) {
    if (atomic_load(&part->world) == world) atomic_store(&part->world, NULL);
  }
}

void mp_leave_set_world(mp_world_t *world, mp_transport_t *far) {
  g_leave.far = far;
  atomic_store(&g_leave.world, world);
}
