// Talks: the runs of a kernel that communicates, on the participants of a session
// (sim/kernels/talk.h).
//
// The n-th time that a participant comes to a kernel, it enters the kernel's n-th talk. It may be
// the first or the last one there. While it waits for another participant it is parked.
#ifndef MINIPOD_SIM_RUNTIME_SESSIONS_TALKS_H_
#define MINIPOD_SIM_RUNTIME_SESSIONS_TALKS_H_

#include "sim/kernels/talk.h"
#include "sim/runtime/sessions/session.h"

typedef enum {
  MP_TALK_NOT_YET,
  MP_TALK_INSIDE,
  MP_TALK_WAITS,  // inside, and parked
  MP_TALK_GONE,
} mp_talk_state_t;

typedef struct mp_session_talk_s mp_session_talk_t;
struct mp_session_talk_s {
  mp_session_talk_t *next;  // in the session's list, the oldest first
  mp_session_t *session;
  const mp_kernel_t *kernel;  // of the participants' executable, which they hold
  mp_talk_t *talk;            // owned
  // Under the session's lock:
  uint32_t num_inside, num_gone;
  uint8_t *states;  // [num_participants] mp_talk_state_t
};

// The participant, which is active, enters. The arrays and their contents stay until it leaves.
// *out_talk is set unless the talk cannot be made; the participant must leave it, even after an
// error. UNIMPLEMENTED if participants are in other processes.
MP_NODISCARD mp_status_t mp_session_enter_talk(mp_session_t *session, const mp_kernel_t *kernel,
                                               uint32_t logical, const void *const *operands,
                                               void *const *results, mp_session_talk_t **out_talk);
// Runs the kernel until it is over for the participant, or has to wait and parks: then this is
// called again when it is resumed. Errors: the kernel's, or the session's.
MP_NODISCARD mp_status_t mp_session_go_on_talk(mp_session_t *session, mp_session_talk_t *talk,
                                               uint32_t logical, mp_arrived_t *out_arrived);
// Called when the kernel is over for the participant, or has failed, or the run ends.
void mp_session_leave_talk(mp_session_t *session, mp_session_talk_t *talk, uint32_t logical);

// ---- talk_list.c ----

// Frees a talk that no participant is in, or all of a session.
void mp_session_release_talk(mp_session_talk_t *talk);
void mp_session_release_talks(mp_session_t *session);
// Appends which participants wait where in kernels, and which have finished; nothing if none waits.
// The caller holds the lock.
void mp_session_describe_talks(const mp_session_t *session, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_RUNTIME_SESSIONS_TALKS_H_
