// Caller threads: the threads that run code of others which may wait (Python callbacks above all).
//
// Workers never run such code, because while it waits for Python's lock, for a user or for another
// call, nobody would compute. Caller threads ("mp-c<n>") are made when the first call comes. Mostly
// there is one: calls queue, and the oldest is the next, so short calls keep their order, and what
// they print does not mix. When no call has ended for a while, the calls may compute at the same
// time or wait for each other, and there is another thread, which leaves when the queue is empty.
//
// Each caller thread holds the client's memory (mp_client_hold), so code that still runs when the
// client ends finds everything in place.
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

// A piece of work for a caller thread, embedded in what it is about. It belongs to the callers from
// mp_callers_submit on until `run` is called, which may free it. `is_dropped`: the client ends, and
// the work shall not be done; this is said on any thread.
typedef struct mp_blocking_s {
  void (*run)(struct mp_blocking_s *blocking, bool is_dropped);
  struct mp_blocking_s *next;
} mp_blocking_t;

// A client's caller threads. All is under the lock.
typedef struct {
  mp_lock_t lock;                 // a leaf of the lock order
  pthread_cond_t came;            // there is work, or `must_stop` was set: for threads that take
  pthread_cond_t watched;         // the same for the watcher
  MP_QUEUE(mp_blocking_t) queue;  // by next: what nobody has begun
  uint32_t length;                // of the queue
  uint32_t num_takers;            // threads that take from the queue
  uint32_t num_idle;              // of these, those that wait for work
  uint32_t num_made;              // threads so far; they are named by it
  uint64_t num_done;              // pieces of work that are over
  bool has_watcher;               // a thread looks whether the others get on
  bool is_watcher_asleep;         // it waits until there is work
  bool must_stop;
  MP_LIST(mp_caller_t) threads;  // all that have not left
} mp_callers_t;

// Makes a client's set of callers, which has no threads yet, and ends it when none is left.
void mp_callers_init(mp_callers_t *callers);
void mp_callers_deinit(mp_callers_t *callers);

// Has `blocking` run on a caller thread, or dropped when the client ends before that. No lock is
// held by the caller. RESOURCE_EXHAUSTED when there is no thread and none could be started: then
// blocking->run is not called.
MP_NODISCARD mp_status_t mp_callers_submit(mp_client_t *client, mp_blocking_t *blocking);
// Drops what nobody has begun and has all threads leave: waits for those that are idle, while those
// that run something leave when it is over. Called once, when the client ends, on any thread.
void mp_callers_stop(mp_client_t *client);

// The client that the calling thread is running something for; NULL: it is no caller thread. What
// such a thread launches must not wait for the run that has called.
mp_client_t *mp_caller_current(void);

// True on a caller thread that stays as long as its client; others come and go. What a function
// keeps for its thread is worth while there.
bool mp_caller_stays(void);

#endif  // MINIPOD_SIM_RUNTIME_WORKERS_CALLER_H_
