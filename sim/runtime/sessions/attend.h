// Threads that launch and wait at once: they need not wait for the thread for messages.
//
// A small launch over several processes is a few messages, and much of its time it waits for
// threads to wake up: the launching thread wakes the world's, which wakes the launching thread at
// the end, and each of them may find its core taken. So a thread that is expected to wait for its
// launch at once (mp_launching_note) makes progress itself meanwhile, until the launch is over or
// nothing comes for a while (mp_world_attend_begin). One that launches ahead does not.
#ifndef MINIPOD_SIM_RUNTIME_SESSIONS_ATTEND_H_
#define MINIPOD_SIM_RUNTIME_SESSIONS_ATTEND_H_

#include "sim/runtime/sessions/session.h"

typedef struct {
  mp_session_t *session;  // retained; NULL: nothing is attended to
  mp_world_t *world;
} mp_attend_t;

// Before the runs of a launch are let go, in whose session (may be NULL) they meet: its messages
// are this thread's business until mp_attend_end, which must follow soon. Does nothing if the
// launch is in one process, or another thread attends. `attend` is zero before.
void mp_attend_begin(mp_attend_t *attend, mp_session_t *session);
// Makes progress until the launch is over here, or for as long as it is worth while. The caller
// holds no lock, and is in the launch no more.
void mp_attend_end(mp_attend_t *attend);

#endif  // MINIPOD_SIM_RUNTIME_SESSIONS_ATTEND_H_
