// Workers: the threads that run devices, and the queues that feed them.
//
// Each core group of the machine has a queue of runnable devices and its workers. A worker takes a
// device and runs its current run until that is over, parks at a collective, or yields at a back
// edge; between devices it helps with jobs. A worker never takes devices of another core group.
//
// A thread that launches a tiny program acts as a worker for that launch (`is_inline`): its new
// runs go to its own list and not into a queue, so that no worker has to be woken for them.
#ifndef MINIPOD_SIM_RUNTIME_WORKERS_WORKER_H_
#define MINIPOD_SIM_RUNTIME_WORKERS_WORKER_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/base/os/lock.h"
#include "sim/runtime/devices/runner.h"

typedef struct mp_client_s mp_client_t;
typedef struct mp_device_s mp_device_t;

// Devices whose first runs can continue, in order, linked by device->next_runnable. A device is in
// one list at most.
typedef struct {
  mp_device_t *first, *last;  // MP_QUEUE by next_runnable
  uint32_t length;
} mp_device_list_t;

// The queue of a core group.
typedef struct mp_core_queue_s {
  mp_client_t *client;
  uint32_t index;  // of the core group
  uint32_t num_workers;
  mp_lock_t lock;            // of `devices`
  mp_device_list_t devices;  // runnable, in order
  // Of `devices`. Changed under the lock; read without it, so that idle workers do not hold the
  // lock against threads that queue devices.
  atomic_uint length;
  atomic_uint epoch;     // futex word: changes when there is new work for sleepers
  atomic_uint sleepers;  // workers that sleep, or are about to: no wake-up is needed while it is 0
} mp_core_queue_t;

// A worker. Everything but `is_started` and `thread` is used by its own thread alone.
typedef struct mp_worker_s {
  mp_client_t *client;
  mp_core_queue_t *queue;  // NULL: a thread in an inline run
  uint32_t index;          // of a thread in an inline run: that of the worker of its core
  int32_t cpu;             // to bind to; -1: to the whole core group, or nowhere
  bool is_inline;
  bool has_help;  // in an inline run: workers help with its jobs
  bool is_started;
  bool is_loose;    // it may currently leave its core (bind.h)
  bool is_to_look;  // it looks into its queue soon, so no other worker was woken for the device
                    // that it will take
  pthread_t thread;
  void *scratch;
  size_t scratch_bytes;
  mp_device_list_t own;  // of an inline run: devices to run on this thread
} mp_worker_t;

// The worker that the calling thread is, or acts as in an inline run; NULL: neither.
mp_worker_t *mp_worker_current(void);
// Makes the calling thread this worker; NULL: no longer any.
void mp_worker_become(mp_worker_t *worker);

// Scratch memory of at least `bytes`, 64-byte aligned, which the worker keeps until the next call.
// NULL when memory is short. `self` is the calling thread's own.
void *mp_worker_scratch(mp_worker_t *self, size_t bytes);

// Makes devices runnable (their first run can continue), and wakes a worker for each if any sleep:
// the caller may be a worker that continues with other work. Devices of one list may be of any core
// group. Empties the list.
void mp_schedule(mp_device_list_t *devices);
// The same for a caller that, if it is a worker, looks into its queue soon: no worker is woken for
// the device that the caller will take itself.
void mp_schedule_and_look(mp_device_list_t *devices);
// Called before long work, on any thread: if the caller is a worker that has promised to look into
// its queue soon, wakes another worker to do so.
void mp_worker_looks_later(void);
// Takes the first device off the queue, which the calling worker runs now; NULL: there is none.
mp_device_t *mp_core_queue_take(mp_core_queue_t *queue);
// Appends a device that is in no list.
void mp_device_list_push(mp_device_list_t *list, mp_device_t *device);
// Takes the first device off the list; NULL: the list is empty.
mp_device_t *mp_device_list_pop(mp_device_list_t *list);
// Wakes up to `count` sleeping workers of the queue that should help the calling thread, which acts
// as `self` (NULL: as no worker). Excludes the worker of its own core, which would only take turns
// with it.
void mp_core_queue_wake_helpers(mp_core_queue_t *queue, uint32_t count, const mp_worker_t *self);
// The mark with which a worker sleeps, so that a wake-up can exclude it (mp_futex_wait_marked).
unsigned mp_worker_mark(const mp_worker_t *worker);
// True when other devices wait for this worker, so a run in a loop should yield.
bool mp_worker_is_wanted(const mp_worker_t *self);

#endif  // MINIPOD_SIM_RUNTIME_WORKERS_WORKER_H_
