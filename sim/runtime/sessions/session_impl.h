// Shared by the files of sessions. The caller of each function holds the session's lock. Devices
// that become runnable are added to `resumed`, which the caller passes to mp_schedule when the lock
// is free.
#ifndef MINIPOD_SIM_RUNTIME_SESSIONS_SESSION_IMPL_H_
#define MINIPOD_SIM_RUNTIME_SESSIONS_SESSION_IMPL_H_

#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/sessions/session.h"
#include "sim/runtime/workers/workers.h"

// Parks the caller's own run, which is active, in a session that is not poisoned. The caller has
// put it into a meeting, a remote collective or the mailbox's list of receivers, where the thread
// that resumes it will find it.
void mp_session_park(mp_session_t *session, uint32_t logical);
// Makes a parked participant active again. Under the same lock the caller has removed it from what
// it waited in, or is about to.
void mp_session_resume(mp_session_t *session, uint32_t logical, mp_device_list_t *resumed);
// Resumes all participants of the meeting, except `except` (NULL: none is left out).
void mp_session_resume_members(mp_session_t *session, const mp_meeting_t *meeting,
                               const mp_arrival_t *except, mp_device_list_t *resumed);

// The launch fails with `error` (consumed) if it has not failed before: all parked participants are
// resumed, and the other processes are notified.
void mp_session_poison_locked(mp_session_t *session, mp_status_t error, mp_device_list_t *resumed);
// The same without telling the other processes: the error comes from one of them, or they know it
// by themselves.
void mp_session_poison_quietly(mp_session_t *session, mp_status_t error, mp_device_list_t *resumed);
// Poisons the session if participants wait in vain: because all are parked or done, or because they
// wait for a process that has left.
void mp_session_poison_if_stuck(mp_session_t *session, mp_device_list_t *resumed);

// Called when the meeting is complete and will be held: meanwhile its waiters are in no list. Kept
// for the checks of debug builds.
static inline void mp_session_begin_holding(mp_session_t *session, const mp_meeting_t *meeting) {
#ifdef MINIPOD_ASSERTS
  session->num_at_held += meeting->num_arrived - 1;
#else
  (void)session, (void)meeting;
#endif
}
// Called when its waiters are being resumed, or are now in the list of a remote collective.
static inline void mp_session_end_holding(mp_session_t *session, const mp_meeting_t *meeting) {
#ifdef MINIPOD_ASSERTS
  MP_ASSERT(session->num_at_held >= meeting->num_arrived - 1);
  session->num_at_held -= meeting->num_arrived - 1;
#else
  (void)session, (void)meeting;
#endif
}

// The remote collective that a thread continues in the place of its holder; NULL: there is none.
static inline mp_remote_collective_t *mp_session_carried(const mp_session_t *session) {
  mp_remote_collective_t *remote = session->peers == NULL ? NULL : session->peers->remotes;
  while (remote != NULL && !remote->is_carried) remote = remote->next;
  return remote;
}

// Records whether a thread continues the remote collective in the place of its holder, which is
// parked. A deadlock look that has read the old value notices the change (deadlock.c).
static inline void mp_session_set_carried(const mp_session_t *session,
                                          mp_remote_collective_t *remote, bool is_carried) {
  remote->is_carried = is_carried;
  mp_workers_need_look(session->devices[remote->holder->logical]->client->workers);
}

// Passes a message to its receiver, which is resumed, or puts it into the mailbox. Takes the
// message.
void mp_session_post(mp_session_t *session, mp_message_t *message, mp_device_list_t *resumed);

#endif  // MINIPOD_SIM_RUNTIME_SESSIONS_SESSION_IMPL_H_
