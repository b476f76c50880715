// Shared by the files of sessions. For all of these the session's lock is held; devices to be made
// runnable go onto `resumed`, for mp_schedule when the lock is free.
#ifndef MINIPOD_SIM_RUNTIME_LAUNCH_SESSION_IMPL_H_
#define MINIPOD_SIM_RUNTIME_LAUNCH_SESSION_IMPL_H_

#include "sim/runtime/launch/session.h"

void mp_session_park(mp_session_t *session, uint32_t logical);
void mp_session_resume(mp_session_t *session, uint32_t logical, mp_device_list_t *resumed);
// All who arrived at the meeting, but for `except`.
void mp_session_resume_members(mp_session_t *session, const mp_meeting_t *meeting,
                               const mp_arrival_t *except, mp_device_list_t *resumed);

// Consumes `error`; other processes hear of it.
void mp_session_poison_locked(mp_session_t *session, mp_status_t error, mp_device_list_t *resumed);
// The same with an error that comes from other processes, or that they know by themselves.
void mp_session_poison_quietly(mp_session_t *session, mp_status_t error, mp_device_list_t *resumed);
// When nobody is left who could come to where others wait.
void mp_session_poison_if_stuck(mp_session_t *session, mp_device_list_t *resumed);

// The meeting is complete and will be held: those who wait for it are in no list until it was.
static inline void mp_session_begin_holding(mp_session_t *session, const mp_meeting_t *meeting) {
#ifdef MINIPOD_ASSERTS
  session->num_at_held += meeting->num_arrived - 1;
#else
  (void)session, (void)meeting;
#endif
}
// They are resumed, or in the list of a remote collective now.
static inline void mp_session_end_holding(mp_session_t *session, const mp_meeting_t *meeting) {
#ifdef MINIPOD_ASSERTS
  MP_ASSERT(session->num_at_held >= meeting->num_arrived - 1);
  session->num_at_held -= meeting->num_arrived - 1;
#else
  (void)session, (void)meeting;
#endif
}

// Hands a message to its receiver, who goes on, or to the mailbox.
void mp_session_post(mp_session_t *session, mp_message_t *message, mp_device_list_t *resumed);

#endif  // MINIPOD_SIM_RUNTIME_LAUNCH_SESSION_IMPL_H_
