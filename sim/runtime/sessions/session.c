#include "sim/runtime/sessions/session.h"

#include "sim/base/alloc.h"
#include "sim/base/containers/list.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/sessions/session_impl.h"
#include "sim/runtime/sessions/talks.h"
#include "sim/runtime/workers/workers.h"

mp_status_t mp_session_create(uint32_t num_participants, const uint32_t *device_ids,
                              mp_session_t **out_session) {
  size_t n = num_participants;
  mp_session_t *session = mp_calloc(
      1, sizeof(*session) +
             n * (sizeof(mp_run_t *) + sizeof(mp_device_t *) + sizeof(uint32_t) + sizeof(uint8_t)));
  MP_RETURN_IF_NULL(session);
  atomic_init(&session->references, 1);
  session->num_participants = num_participants;
  session->num_local = num_participants;
  mp_lock_init(&session->lock, MP_LOCK_SESSION);
  session->runs = (mp_run_t **)(session + 1);
  session->devices = (mp_device_t **)(session->runs + n);
  uint32_t *names = (uint32_t *)(session->devices + n);
  memcpy(names, device_ids, n * sizeof(*names));
  session->names = names;
  session->states = (uint8_t *)(names + n);
  mp_rendezvous_init(&session->rendezvous, names, num_participants);
  mp_mailbox_init(&session->mailbox, names);
  *out_session = session;
  return NULL;
}

mp_status_t mp_session_connect(mp_session_t *session, const mp_session_link_t *link) {
  MP_RETURN_IF_ERROR(mp_peers_create(session, &session->lock, link, &session->peers));
  session->rendezvous.ranks_of = link->ranks_of;
  session->rendezvous.self = session->peers->self;
  for (uint32_t i = 0; i < session->num_participants; ++i) {
    if (link->ranks_of[i] == session->peers->self) continue;
    session->states[i] = MP_PARTICIPANT_REMOTE;
    session->num_local -= 1;
  }
  return mp_endpoint_enter(link->endpoint, link->devices, link->number, session->peers);
}

void mp_session_leave_out(mp_session_t *session, uint32_t logical) {
  mp_lock(&session->lock);
  MP_ASSERT(session->runs[logical] == NULL);
  session->num_joined += session->states[logical] == MP_PARTICIPANT_ABSENT;
  session->states[logical] = MP_PARTICIPANT_DONE;
  MP_ASSERT(session->num_joined < session->num_local);
  mp_unlock(&session->lock);
}

mp_world_t *mp_session_world(const mp_session_t *session) {
  return session->peers == NULL ? NULL : mp_endpoint_world(session->peers->endpoint);
}

mp_session_t *mp_session_retain(mp_session_t *session) {
  // Relaxed: the caller has a reference, or a lock under which another one is kept.
  if (session != NULL) atomic_fetch_add_explicit(&session->references, 1, memory_order_relaxed);
  return session;
}

void mp_session_release(mp_session_t *session) {
  if (session == NULL) return;
  // Acquire: the last one frees the session without the lock, so it must see what all others did.
  const int before = atomic_fetch_sub_explicit(&session->references, 1, memory_order_acq_rel);
  MP_ASSERT(before > 0);
  if (before != 1) return;
  MP_ASSERT(session->num_active == 0 && session->num_parked == 0);  // their runs would hold it
  mp_remote_collective_end_all(session->peers);
  mp_peers_release(session->peers);
  mp_rendezvous_deinit(&session->rendezvous);
  mp_mailbox_deinit(&session->mailbox);
  mp_session_release_talks(session);
  mp_status_release(session->error);
  mp_free(session->caller);
  mp_lock_deinit(&session->lock);
  mp_free(session);
}

bool mp_session_is_poisoned(const mp_session_t *session) {
  // Without the lock, because runs check before each command. Acquire, paired with the store that
  // poisons: a thread that sees the flag may read the error.
  return atomic_load_explicit(&session->is_poisoned, memory_order_acquire);
}

mp_status_t mp_session_error(mp_session_t *session) {
  if (!mp_session_is_poisoned(session)) return NULL;
  return mp_status_retain(session->error);  // written before the flag, then constant
}

const mp_mailbox_t *mp_session_mailbox(const mp_session_t *session) {
  return &session->mailbox;
}

// ---- States; the lock is held ----

void mp_session_park(mp_session_t *session, uint32_t logical) {
  mp_lock_assert_held(&session->lock);
  MP_ASSERT(session->states[logical] == MP_PARTICIPANT_ACTIVE);
  // After poisoning no thread would resume it. The caller has checked that under this lock.
  MP_ASSERT(session->error == NULL);
  mp_device_hand_over(session->devices[logical], MP_OWNER_WORKER, MP_OWNER_SESSION);
  session->states[logical] = MP_PARTICIPANT_PARKED;
  session->num_active -= 1;
  session->num_parked += 1;
  mp_workers_need_look(session->devices[logical]->client->workers);
}

static void session_unpark(mp_session_t *session, uint32_t logical) {
  mp_lock_assert_held(&session->lock);
  MP_ASSERT(session->states[logical] == MP_PARTICIPANT_PARKED);
  mp_device_hand_over(session->devices[logical], MP_OWNER_SESSION, MP_OWNER_LIST);
  session->states[logical] = MP_PARTICIPANT_ACTIVE;
  session->num_active += 1;
  session->num_parked -= 1;
  // Under the lock, so that a deadlock look that has read it as parked notices the change
  // (deadlock.c).
  mp_workers_need_look(session->devices[logical]->client->workers);
}

void mp_session_resume(mp_session_t *session, uint32_t logical, mp_device_list_t *resumed) {
  session_unpark(session, logical);
  mp_device_list_push(resumed, session->devices[logical]);
}

void mp_session_resume_members(mp_session_t *session, const mp_meeting_t *meeting,
                               const mp_arrival_t *except, mp_device_list_t *resumed) {
  for (uint32_t i = 0; i < meeting->num_members; ++i) {
    mp_arrival_t *arrival = meeting->arrivals[i];
    if (arrival != NULL && arrival != except) mp_session_resume(session, arrival->logical, resumed);
  }
}

static void session_resume_talks(mp_session_t *session, mp_device_list_t *resumed) {
  for (mp_session_talk_t *talk = session->talks; talk != NULL; talk = talk->next) {
    for (uint32_t i = 0; i < session->num_participants; ++i) {
      if (talk->states[i] != MP_TALK_WAITS) continue;
      talk->states[i] = MP_TALK_INSIDE;
      mp_session_resume(session, i, resumed);
    }
  }
}

// Ends every wait of a failed session: removes all parked participants from meetings, the mailbox
// and remote collectives, and resumes them.
static void session_resume_all(mp_session_t *session, mp_device_list_t *resumed) {
  mp_lock_assert_held(&session->lock);
  mp_meeting_t *meeting = NULL;
  while ((meeting = mp_rendezvous_next(&session->rendezvous, meeting)) != NULL) {
    mp_session_resume_members(session, meeting, NULL, resumed);
  }
  mp_rendezvous_abandon(&session->rendezvous);
  for (mp_receiver_t *receiver; (receiver = session->mailbox.receivers.first) != NULL;) {
    MP_QUEUE_POP(&session->mailbox.receivers, next);
    session->mailbox.num_receivers -= 1;
    mp_session_resume(session, receiver->target, resumed);
  }
  session_resume_talks(session, resumed);
  mp_remote_collective_t *next = session->peers == NULL ? NULL : session->peers->remotes;
  while (next != NULL) {
    mp_remote_collective_t *remote = next;
    next = remote->next;
    // The thread that works on it (its holder, or the one that continues it) finds the error.
    if (!remote->is_waiting && !remote->is_ready) continue;
    // A holder that is already runnable will find the error instead of its remote collective.
    mp_session_resume_members(session, remote->meeting, remote->is_ready ? remote->holder : NULL,
                              resumed);
    mp_remote_collective_end(session->peers, remote);
  }
}

static bool session_tells_all(uint32_t rank, const void *context) {
  (void)rank, (void)context;
  return true;
}

// Sends the session's error to the other processes.
static void session_tell_peers(const mp_session_t *session,
                               bool (*is_told)(uint32_t rank, const void *context),
                               const void *context) {
  const mp_peers_t *peers = session->peers;
  if (peers == NULL || is_told == NULL) return;
  mp_envelope_t envelope = mp_peers_envelope(peers, MP_PACKET_POISON);
  envelope.words[1] = (uint32_t)mp_status_code(session->error);
  const char *text = mp_status_message(session->error);
  for (uint32_t i = 0; i < peers->num_ranks; ++i) {
    if (peers->has_left[i] || !is_told(peers->ranks[i], context)) continue;
    mp_peers_send(peers, peers->ranks[i], &envelope, text, strlen(text));
  }
}

void mp_session_poison_quietly(mp_session_t *session, mp_status_t error,
                               mp_device_list_t *resumed) {
  mp_lock_assert_held(&session->lock);
  if (session->error != NULL) {
    mp_status_release(error);
    return;
  }
  MP_ASSERT(error != NULL);
  session->error = error;
  // Release: the error is written before the flag that lets other threads read it without the lock.
  atomic_store_explicit(&session->is_poisoned, true, memory_order_release);
  session_resume_all(session, resumed);
}

void mp_session_poison_locked(mp_session_t *session, mp_status_t error, mp_device_list_t *resumed) {
  const bool is_first = session->error == NULL;
  mp_session_poison_quietly(session, error, resumed);
  if (is_first) session_tell_peers(session, session_tells_all, NULL);
}

// True when packets of other processes may still resume a parked participant.
static bool session_may_be_moved(const mp_session_t *session) {
  mp_lock_assert_held(&session->lock);
  const mp_peers_t *peers = session->peers;
  if (peers == NULL) return false;
  for (const mp_remote_collective_t *remote = peers->remotes; remote != NULL;
       remote = remote->next) {
    // A thread that continues a remote collective changes what the check for lost processes would
    // read.
    if (remote->is_carried || !mp_remote_collective_is_lost(peers, remote)) return true;
  }
  for (const mp_receiver_t *r = session->mailbox.receivers.first; r != NULL; r = r->next) {
    if (session->states[r->source] == MP_PARTICIPANT_REMOTE) return true;
  }
  return mp_session_talks_miss(session, -1);
}

// True when a participant waits for a process that has left the launch.
static bool session_is_let_down(const mp_session_t *session) {
  mp_lock_assert_held(&session->lock);
  const mp_peers_t *peers = session->peers;
  if (peers == NULL) return false;
  for (const mp_remote_collective_t *remote = peers->remotes; remote != NULL;
       remote = remote->next) {
    if (remote->is_waiting && mp_remote_collective_is_lost(peers, remote)) return true;
  }
  for (const mp_receiver_t *r = session->mailbox.receivers.first; r != NULL; r = r->next) {
    if (mp_peers_has_left(peers, peers->ranks_of[r->source])) return true;
  }
  return false;
}

void mp_session_poison_if_stuck(mp_session_t *session, mp_device_list_t *resumed) {
  mp_lock_assert_held(&session->lock);
  if (session->error != NULL || session->num_parked == 0) return;
  if (!session_is_let_down(session)) {
    if (session->num_active != 0 || session->num_joined != session->num_local) return;
    if (session_may_be_moved(session)) return;
  }
  mp_session_poison_locked(session, mp_session_describe_stuck(session), resumed);
}

// ---- Coming and going ----

void mp_session_name_caller(mp_session_t *session, const char *caller) {
  if (session->peers == NULL) return;
  mp_lock(&session->lock);
  // Without memory messages do not name the caller.
  if (session->caller == NULL) session->caller = mp_strdup(caller);
  mp_unlock(&session->lock);
}

void mp_session_mean(mp_session_t *session, size_t count, const int *ranks,
                     const int64_t *incarnations) {
  if (session->peers == NULL) return;
  mp_endpoint_mean(session->peers->endpoint, session->peers, count, ranks, incarnations);
}

bool mp_session_join(mp_session_t *session, uint32_t logical, mp_device_t *device, mp_run_t *run) {
  MP_ASSERT(logical < session->num_participants);
  mp_lock(&session->lock);
  MP_ASSERT(session->states[logical] == MP_PARTICIPANT_ABSENT && session->runs[logical] == NULL);
  session->runs[logical] = run;
  session->devices[logical] = device;
  session->states[logical] = MP_PARTICIPANT_ACTIVE;
  session->num_joined += 1;
  session->num_active += 1;
  // Computed under the lock, so that exactly one of several joining participants learns that it was
  // the last.
  bool is_complete = session->num_joined == session->num_local;
  mp_unlock(&session->lock);
  return is_complete;
}

// True when all participants of this process are done and other processes must be notified.
static bool session_is_over(const mp_session_t *session) {
  mp_lock_assert_held(&session->lock);
  return session->peers != NULL && session->num_joined == session->num_local &&
         session->num_active == 0 && session->num_parked == 0;
}

// Notifies the other processes that no participant of this process will come to another meeting
// (after a failure they know that), and removes the session from the endpoint.
static void session_say_goodbye(mp_session_t *session) {
  // The router's lock precedes the session's in the lock order, so this leaves the endpoint after
  // releasing the session's lock.
  mp_lock(&session->lock);
  if (session->error == NULL) {
    const mp_envelope_t envelope = mp_peers_envelope(session->peers, MP_PACKET_LEAVE);
    mp_peers_send_all(session->peers, &envelope, NULL, 0);
  }
  mp_unlock(&session->lock);
  mp_endpoint_leave(session->peers->endpoint, session->peers);
}

bool mp_session_skip(mp_session_t *session, uint32_t logical) {
  mp_lock(&session->lock);
  MP_ASSERT(session->states[logical] == MP_PARTICIPANT_ABSENT);
  session->states[logical] = MP_PARTICIPANT_DONE;
  session->num_joined += 1;
  bool is_complete = session->num_joined == session->num_local;
  bool must_leave = session_is_over(session);
  mp_unlock(&session->lock);
  if (must_leave) session_say_goodbye(session);
  return is_complete;
}

void mp_session_leave(mp_session_t *session, uint32_t logical) {
  mp_device_list_t resumed = {0};
  mp_lock(&session->lock);
  MP_ASSERT(session->runs[logical] != NULL);
  if (session->states[logical] == MP_PARTICIPANT_PARKED) {
    session->num_parked -= 1;  // the client is stopping and ends runs in any state
  } else {
    MP_ASSERT(session->states[logical] == MP_PARTICIPANT_ACTIVE && session->num_active != 0);
    session->num_active -= 1;
  }
  session->states[logical] = MP_PARTICIPANT_DONE;
  session->runs[logical] = NULL;
  // Under the same lock as the change: so if several participants leave at the same time, one of
  // them sees the state that proves the others stuck, and one sees the session over.
  mp_session_poison_if_stuck(session, &resumed);
  bool must_leave = session_is_over(session);
  mp_unlock(&session->lock);
  mp_schedule(&resumed);
  if (must_leave) session_say_goodbye(session);
}

void mp_session_poison(mp_session_t *session, mp_status_t error) {
  // Resumed runs are scheduled when the lock is free, because another worker may run one of them at
  // once, and would wait for the lock.
  mp_device_list_t resumed = {0};
  mp_lock(&session->lock);
  mp_session_poison_locked(session, error, &resumed);
  mp_unlock(&session->lock);
  mp_schedule(&resumed);
}

void mp_session_poison_some(mp_session_t *session, mp_status_t error,
                            bool (*is_told)(uint32_t rank, const void *context),
                            const void *context) {
  mp_device_list_t resumed = {0};
  mp_lock(&session->lock);
  const bool is_first = session->error == NULL;
  mp_session_poison_quietly(session, error, &resumed);
  if (is_first) session_tell_peers(session, is_told, context);
  mp_unlock(&session->lock);
  mp_schedule(&resumed);
}

void mp_session_poison_stuck(mp_session_t *session) {
  mp_device_list_t resumed = {0};
  mp_lock(&session->lock);
  if (session->error == NULL && session->num_parked != 0) {
    mp_session_poison_locked(session, mp_session_describe_stuck(session), &resumed);
  }
  mp_unlock(&session->lock);
  mp_schedule(&resumed);
}

bool mp_session_is_parked(mp_session_t *session, uint32_t logical) {
  mp_lock(&session->lock);
  bool is_parked = session->states[logical] == MP_PARTICIPANT_PARKED;
  mp_unlock(&session->lock);
  return is_parked;
}

bool mp_session_is_moving(mp_session_t *session) {
  mp_lock(&session->lock);
  bool is_moving = session->num_active + session->num_parked != 0;
  mp_unlock(&session->lock);
  return is_moving;
}

bool mp_session_is_carried(mp_session_t *session) {
  mp_lock(&session->lock);
  const bool is_carried = mp_session_carried(session) != NULL;
  mp_unlock(&session->lock);
  return is_carried;
}

bool mp_session_is_complete(mp_session_t *session) {
  mp_lock(&session->lock);
  bool is_complete = session->num_joined == session->num_local;
  mp_unlock(&session->lock);
  return is_complete;
}
