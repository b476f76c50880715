// Attending: threads that launch and wait at once process messages themselves.
//
// A small launch over several processes consists of a few messages, and spends much of its time on
// waking threads: the launching thread wakes the world's thread, which wakes the launching thread
// at the end, and each of them may find its core busy. So a thread that is expected to wait for its
// launch at once (mp_launching_note) makes progress itself meanwhile, until the launch is over or
// nothing comes for a while (mp_world_attend_begin). A thread that launches ahead does not.
#ifndef MINIPOD_SIM_RUNTIME_SESSIONS_ATTEND_H_
#define MINIPOD_SIM_RUNTIME_SESSIONS_ATTEND_H_

#include "sim/runtime/sessions/session.h"

typedef struct {
  mp_session_t *session;  // retained; NULL: nothing is attended to
  mp_world_t *world;
} mp_attend_t;

// Called before the runs of a launch are released; `session` (may be NULL) is their session. Until
// mp_attend_end, which must follow soon, this thread processes the session's messages. Does nothing
// if the launch is in one process, or another thread attends. `attend` must be zeroed.
void mp_attend_begin(mp_attend_t *attend, mp_session_t *session);
// Makes progress until the launch is over in this process, or for as long as it is worth while. The
// caller holds no lock, and has left the launch.
void mp_attend_end(mp_attend_t *attend);

#endif  // MINIPOD_SIM_RUNTIME_SESSIONS_ATTEND_H_
