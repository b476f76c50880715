// Caller threads: the threads that run foreign code that may wait, mainly Python callbacks.
//
// Workers never run such code: while it waits for Python's lock, for a user or for another call, no
// worker would compute. Caller threads ("mp-c<n>") are made when the first call comes. Usually
// there is one, and it takes the oldest call from the queue, so short calls keep their order, and
// their output does not mix. If no call has ended for a while, the calls may need to compute at the
// same time or may wait for each other: then another thread starts, and exits when the queue is
// empty.
//
// Each caller thread holds the client's memory (mp_client_hold), so code that still runs when the
// client ends can use everything.
#ifndef MINIPOD_SIM_RUNTIME_WORKERS_CALLER_H_
#define MINIPOD_SIM_RUNTIME_WORKERS_CALLER_H_

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/base/containers/list.h"
#include "sim/base/os/lock.h"
#include "sim/base/status.h"

typedef struct mp_client_s mp_client_t;
typedef struct mp_caller_s mp_caller_t;

// A piece of work for a caller thread, embedded in the object that it works on. The caller threads
// own it from mp_callers_submit until they call `run`, which may free it. `is_dropped`: the client
// ends, and the work must not be done; this call may come on any thread.
typedef struct mp_blocking_s {
  void (*run)(struct mp_blocking_s *blocking, bool is_dropped);
  struct mp_blocking_s *next;
} mp_blocking_t;

// A client's caller threads. All fields are under the lock.
typedef struct {
  mp_lock_t lock;          // a leaf of the lock order
  pthread_cond_t came;     // for threads that take work: there is some, or `must_stop` was set
  pthread_cond_t watched;  // the same for the watcher
  MP_QUEUE(mp_blocking_t) queue;  // linked by `next`: work that no thread has begun
  uint32_t length;                // of the queue
  uint32_t num_takers;            // threads that take from the queue
  uint32_t num_idle;              // of these, those that wait for work
  uint32_t num_made;              // threads made so far; part of their names
  uint64_t num_done;              // finished pieces of work
  bool has_watcher;               // a thread watches whether the others make progress
  bool is_watcher_asleep;         // it waits until there is work
  bool must_stop;
  MP_LIST(mp_caller_t) threads;  // all that have not exited
} mp_callers_t;

// Make a client's set of callers, which has no threads yet, and free it when no thread is left.
void mp_callers_init(mp_callers_t *callers);
void mp_callers_deinit(mp_callers_t *callers);

// Runs `blocking` on a caller thread, or drops it if the client ends before that. The caller holds
// no lock. RESOURCE_EXHAUSTED when there is no thread and none could be started: then blocking->run
// is not called.
MP_NODISCARD mp_status_t mp_callers_submit(mp_client_t *client, mp_blocking_t *blocking);
// Drops work that no thread has begun, and stops all threads: waits for idle ones; the others exit
// when their work is done. Called once, when the client ends, on any thread.
void mp_callers_stop(mp_client_t *client);

// The client for which the calling thread runs a piece of work; NULL: it is no caller thread.
// Launches of such a thread must not wait for the run that has called.
mp_client_t *mp_caller_current(void);

// True on a caller thread that lives as long as its client; the others come and go. Only there is
// it worth while for a function to keep state per thread.
bool mp_caller_stays(void);

#endif  // MINIPOD_SIM_RUNTIME_WORKERS_CALLER_H_
