// The threads that are in a launch. After such a thread has enqueued its runs it still
// looks at them, and it runs tiny programs itself. So a client that ends waits until these threads
// have come out of the launch before it cancels runs.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_LAUNCHING_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_LAUNCHING_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct mp_client_s mp_client_t;

// Lies on the thread's stack for the time of the launch.
typedef struct mp_launching_s {
  mp_client_t *client;
  struct mp_launching_s *outer;  // the launch in whose callback this one is made, if any
} mp_launching_t;

// The calling thread is in a launch from now on. Either the caller holds the launch lock and the
// client is not stopping, or it asks only after this whether the client is (by an atomic_load in
// one order with all others), and leaves at once if so.
void mp_launching_enter(mp_launching_t *launching, mp_client_t *client);
// The calling thread leaves its launch. Something else must hold the client: this still uses it.
void mp_launching_leave(mp_launching_t *launching);
// Waits until no other thread is in a launch of this client, which is stopping. The caller holds no
// lock; it may itself be in launches, in whose callback the client is ended.
void mp_launching_await(mp_client_t *client);

// A number for the calling thread, which no other thread of the process has or will have.
uint64_t mp_launching_thread(void);

// Between mp_launching_exempt and mp_launching_unexempt (which may be nested) the calling thread's
// launches never wait for a place in a stream (ahead.h), because something of the client waits for
// this thread: a worker, a callback of an event, or a run that has called back into the user's
// program.
void mp_launching_exempt(void);
void mp_launching_unexempt(void);
// True when launches of the calling thread may wait: it is exempt in no way, and is in no launch
// already.
bool mp_launching_may_wait(void);

// The calling thread begins to wait for a result.
void mp_launching_note_wait(void);
// The calling thread launches. True when it is expected to wait for this launch before it does
// anything else, because it did so twice in a row before.
bool mp_launching_note(void);

#endif  // MINIPOD_SIM_RUNTIME_DEVICES_LAUNCHING_H_
