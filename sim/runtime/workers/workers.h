// The workers of a client, and their queues and jobs.
#ifndef MINIPOD_SIM_RUNTIME_WORKERS_WORKERS_H_
#define MINIPOD_SIM_RUNTIME_WORKERS_WORKERS_H_

#include "sim/base/status.h"
#include "sim/runtime/workers/caller.h"
#include "sim/runtime/workers/job.h"
#include "sim/runtime/workers/worker.h"

// The first group of fields is constant once the client is made.
typedef struct mp_workers_s {
  uint32_t num_queues;
  mp_core_queue_t *queues;  // one per core group
  uint32_t num_workers;
  mp_worker_t *workers;

  mp_job_list_t jobs;
  atomic_uint num_calling;  // workers that are in a foreign function (runs/call.c)
  // For the deadlock proof (runs/deadlock.h).
  atomic_uint num_idle;         // workers that found nothing to do
  atomic_uint num_inline_runs;  // launching threads that run devices themselves
  // Runs were parked, resumed or queued after others since the last look began.
  atomic_bool needs_look;

  _Atomic(mp_worker_t *) spare_inline_worker;  // kept for the next inline run; NULL: none
  mp_callers_t callers;
} mp_workers_t;

// Makes client->workers and its queues, as the client's pod describes them. No thread runs yet.
// After a failure mp_workers_destroy frees the parts made so far. RESOURCE_EXHAUSTED when memory is
// short.
MP_NODISCARD mp_status_t mp_workers_create(mp_client_t *client);
// Frees the workers of a client that ends; their threads have exited. NULL has no effect.
void mp_workers_destroy(mp_workers_t *all);
// Starts the client's workers. RESOURCE_EXHAUSTED when a thread cannot be started; those that run
// are stopped again.
MP_NODISCARD mp_status_t mp_workers_start(mp_client_t *client);
// Wakes all workers and waits until they have exited (`is_stopping` must be set). May be called on
// a worker, which then exits by itself afterwards.
void mp_workers_stop(mp_client_t *client);

// Records that a run was parked, resumed, or queued after another one: the next look for deadlocks
// (runs/deadlock.h) has something to find, and a look in progress proves nothing. Called under
// the lock under which the look reads what has changed.
static inline void mp_workers_need_look(mp_workers_t *all) {
  // Relaxed, and without a store if it is already set, because every meeting calls this. After a
  // look has cleared the flag and read under the caller's lock, the lock keeps this thread from
  // seeing the old `true`.
  if (atomic_load_explicit(&all->needs_look, memory_order_relaxed)) return;
  atomic_store(&all->needs_look, true);
}

// Runs the devices on an inline worker's own list, on the caller's thread, until the list is empty.
void mp_inline_run(mp_worker_t *inline_worker);
// Frees an inline worker with its scratch memory. NULL: nothing.
void mp_worker_free_inline(mp_worker_t *inline_worker);

#endif  // MINIPOD_SIM_RUNTIME_WORKERS_WORKERS_H_
