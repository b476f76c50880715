// The threads that are in a launch. After such a thread has enqueued its runs it still reads them,
// and it runs tiny programs itself. So a client that ends waits until these threads have left their
// launches before it cancels runs.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_LAUNCHING_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_LAUNCHING_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct mp_client_s mp_client_t;

// On the thread's stack during the launch.
typedef struct mp_launching_s {
  mp_client_t *client;
  struct mp_launching_s *outer;  // the launch whose callback makes this one, if any
} mp_launching_t;

// Marks the calling thread as being in a launch. Either the caller holds the launch lock and the
// client is not stopping; or the caller checks afterwards whether the client is stopping (by a
// sequentially consistent load), and leaves at once if so.
void mp_launching_enter(mp_launching_t *launching, mp_client_t *client);
// The calling thread leaves its launch. The caller must still hold the client by another hold,
// because this function uses it.
void mp_launching_leave(mp_launching_t *launching);
// Waits until no other thread is in a launch of this client, which is stopping. The caller holds no
// lock; it may itself be in launches whose callback ends the client.
void mp_launching_await(mp_client_t *client);

// A number of the calling thread, unique in the process also over time.
uint64_t mp_launching_thread(void);

// Between mp_launching_exempt and mp_launching_unexempt (which may be nested) the calling thread's
// launches never wait for a place in a stream (ahead.h), because something of the client waits for
// this thread: a worker, a callback of an event, or a run that has called back into the user's
// program.
void mp_launching_exempt(void);
void mp_launching_unexempt(void);
// True when launches of the calling thread may wait: it is not exempt and not already in a launch.
bool mp_launching_may_wait(void);

// Records that the calling thread begins to wait for a result.
void mp_launching_note_wait(void);
// Records a launch of the calling thread. True when the thread is expected to wait for this launch
// before it does anything else, because it did so for the last two launches.
bool mp_launching_note(void);

#endif  // MINIPOD_SIM_RUNTIME_DEVICES_LAUNCHING_H_
