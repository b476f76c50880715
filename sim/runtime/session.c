#include "sim/runtime/session.h"

#include "sim/base/alloc.h"
#include "sim/runtime/quiet.h"
#include "sim/runtime/run.h"

mp_status_t mp_session_create(uint32_t num_participants, const uint32_t *device_ids,
                              mp_session_t **out_session) {
  size_t n = num_participants;
  mp_session_t *session = mp_calloc(
      1, sizeof(*session) + n * (sizeof(mp_run_t *) + sizeof(uint32_t) + sizeof(uint8_t)));
  MP_RETURN_IF_NULL(session);
  atomic_init(&session->references, 1);
  session->num_participants = num_participants;
  pthread_mutex_init(&session->lock, NULL);
  session->runs = (mp_run_t **)(session + 1);
  uint32_t *names = (uint32_t *)(session->runs + n);
  memcpy(names, device_ids, n * sizeof(*names));
  session->names = names;
  session->states = (uint8_t *)(names + n);
  mp_rendezvous_init(&session->rendezvous, names, num_participants);
  mp_mailbox_init(&session->mailbox, names);
  *out_session = session;
  return NULL;
}

mp_session_t *mp_session_retain(mp_session_t *session) {
  if (session != NULL) atomic_fetch_add_explicit(&session->references, 1, memory_order_relaxed);
  return session;
}

void mp_session_release(mp_session_t *session) {
  if (session == NULL) return;
  if (atomic_fetch_sub_explicit(&session->references, 1, memory_order_acq_rel) != 1) return;
  mp_rendezvous_deinit(&session->rendezvous);
  mp_mailbox_deinit(&session->mailbox);
  mp_status_release(session->error);
  pthread_mutex_destroy(&session->lock);
  mp_free(session);
}

bool mp_session_is_poisoned(const mp_session_t *session) {
  return atomic_load_explicit(&session->is_poisoned, memory_order_acquire);
}

mp_status_t mp_session_error(mp_session_t *session) {
  if (!mp_session_is_poisoned(session)) return NULL;
  return mp_status_retain(session->error);  // set before the flag, never changed
}

const mp_mailbox_t *mp_session_mailbox(const mp_session_t *session) {
  return &session->mailbox;
}

// ---- States; the lock is held ----

static void park(mp_session_t *session, uint32_t logical) {
  session->states[logical] = MP_PARTICIPANT_PARKED;
  session->num_active -= 1;
  session->num_parked += 1;
  mp_quiet_needs_look(mp_run_device(session->runs[logical])->client);
}

static void unpark(mp_session_t *session, uint32_t logical) {
  session->states[logical] = MP_PARTICIPANT_ACTIVE;
  session->num_active += 1;
  session->num_parked -= 1;
}

// Takes all who wait out of their meetings; they go onto `resumed`.
static void resume_all(mp_session_t *session, mp_device_list_t *resumed) {
  mp_meeting_t *meeting = NULL;
  while ((meeting = mp_rendezvous_next(&session->rendezvous, meeting)) != NULL) {
    for (uint32_t i = 0; i < meeting->num_members; ++i) {
      if (meeting->arrivals[i] == NULL) continue;
      uint32_t logical = meeting->members[i];
      unpark(session, logical);
      mp_device_list_push(resumed, mp_run_device(session->runs[logical]));
    }
  }
  mp_rendezvous_abandon(&session->rendezvous);
  while (session->mailbox.receivers != NULL) {
    mp_receiver_t *receiver = session->mailbox.receivers;
    session->mailbox.receivers = receiver->next;
    session->mailbox.num_receivers -= 1;
    unpark(session, receiver->target);
    mp_device_list_push(resumed, mp_run_device(session->runs[receiver->target]));
  }
}

static void poison_locked(mp_session_t *session, mp_status_t error, mp_device_list_t *resumed) {
  if (session->error != NULL) {
    mp_status_release(error);
    return;
  }
  session->error = error;
  atomic_store_explicit(&session->is_poisoned, true, memory_order_release);
  resume_all(session, resumed);
}

// Nobody is left who could come to where others wait.
static void poison_if_stuck(mp_session_t *session, mp_device_list_t *resumed) {
  if (session->num_parked == 0 || session->num_active != 0) return;
  if (session->num_joined != session->num_participants) return;
  poison_locked(session, mp_session_describe_stuck(session), resumed);
}

// ---- Coming and going ----

bool mp_session_join(mp_session_t *session, uint32_t logical, mp_run_t *run) {
  pthread_mutex_lock(&session->lock);
  session->runs[logical] = run;
  session->states[logical] = MP_PARTICIPANT_ACTIVE;
  session->num_joined += 1;
  session->num_active += 1;
  bool is_complete = session->num_joined == session->num_participants;
  pthread_mutex_unlock(&session->lock);
  return is_complete;
}

void mp_session_leave(mp_session_t *session, uint32_t logical) {
  mp_device_list_t resumed = {0};
  pthread_mutex_lock(&session->lock);
  if (session->states[logical] == MP_PARTICIPANT_PARKED) {
    session->num_parked -= 1;  // shutting down
  } else {
    session->num_active -= 1;
  }
  session->states[logical] = MP_PARTICIPANT_DONE;
  session->runs[logical] = NULL;
  poison_if_stuck(session, &resumed);
  pthread_mutex_unlock(&session->lock);
  mp_schedule(&resumed);
}

void mp_session_poison(mp_session_t *session, mp_status_t error) {
  mp_device_list_t resumed = {0};
  pthread_mutex_lock(&session->lock);
  poison_locked(session, error, &resumed);
  pthread_mutex_unlock(&session->lock);
  mp_schedule(&resumed);
}

void mp_session_poison_stuck(mp_session_t *session) {
  mp_device_list_t resumed = {0};
  pthread_mutex_lock(&session->lock);
  if (session->error == NULL && session->num_parked != 0) {
    poison_locked(session, mp_session_describe_stuck(session), &resumed);
  }
  pthread_mutex_unlock(&session->lock);
  mp_schedule(&resumed);
}

bool mp_session_is_parked(mp_session_t *session, uint32_t logical) {
  pthread_mutex_lock(&session->lock);
  bool is_parked = session->states[logical] == MP_PARTICIPANT_PARKED;
  pthread_mutex_unlock(&session->lock);
  return is_parked;
}

// ---- Meetings ----

typedef struct {
  mp_job_t job;  // first
  const mp_meeting_t *meeting;
} mp_meeting_job_t;

static mp_status_t run_chunk(mp_job_t *job, uint32_t part, void *scratch) {
  const mp_meeting_t *meeting = ((mp_meeting_job_t *)job)->meeting;
  return mp_collective_run(meeting->collective, meeting->group, meeting->contributions, part,
                           scratch);
}

// Does a complete meeting's work and resumes all but the caller.
static mp_status_t hold_meeting(mp_session_t *session, mp_worker_t *self, mp_meeting_t *meeting,
                                uint32_t caller) {
  mp_meeting_job_t job = {
      .job = {.run = run_chunk,
              .num_parts = mp_collective_num_chunks(meeting->collective, meeting->group),
              .scratch_bytes = mp_collective_scratch_bytes(meeting->collective, meeting->group)},
      .meeting = meeting,
  };
  mp_status_t status = mp_job_attend(self->client, self, &job.job);
  mp_device_list_t resumed = {0};
  pthread_mutex_lock(&session->lock);
  for (uint32_t i = 0; i < meeting->num_members; ++i) {
    uint32_t logical = meeting->members[i];
    if (logical == caller) continue;
    unpark(session, logical);
    mp_device_list_push(&resumed, mp_run_device(session->runs[logical]));
  }
  if (status != NULL) poison_locked(session, mp_status_retain(status), &resumed);
  pthread_mutex_unlock(&session->lock);
  mp_meeting_release(meeting);
  mp_schedule(&resumed);
  return status;
}

mp_status_t mp_session_meet(mp_session_t *session, mp_worker_t *self, mp_arrival_t *arrival,
                            mp_arrived_t *out_arrived) {
  uint32_t logical = arrival->logical;
  if (arrival->collective->groups->group_of[logical] < 0) {
    mp_collective_zero_outputs(arrival->collective, arrival);
    *out_arrived = MP_ARRIVED_GO_ON;
    return NULL;
  }
  mp_device_list_t resumed = {0};
  mp_meeting_t *meeting = NULL;
  pthread_mutex_lock(&session->lock);
  mp_status_t status = mp_status_retain(session->error);
  if (status == NULL) status = mp_rendezvous_arrive(&session->rendezvous, arrival, &meeting);
  if (status == NULL && meeting == NULL) {
    park(session, logical);
    poison_if_stuck(session, &resumed);
  }
  pthread_mutex_unlock(&session->lock);
  // From here on a parked run may be on another thread.
  mp_schedule(&resumed);
  if (status != NULL) return status;
  *out_arrived = meeting == NULL ? MP_ARRIVED_PARKED : MP_ARRIVED_GO_ON;
  return meeting == NULL ? NULL : hold_meeting(session, self, meeting, logical);
}

void mp_session_send(mp_session_t *session, mp_message_t *message) {
  mp_device_list_t resumed = {0};
  pthread_mutex_lock(&session->lock);
  mp_receiver_t *receiver = mp_mailbox_post(&session->mailbox, message);
  if (receiver != NULL) {
    unpark(session, receiver->target);
    mp_device_list_push(&resumed, mp_run_device(session->runs[receiver->target]));
  }
  pthread_mutex_unlock(&session->lock);
  mp_schedule(&resumed);
}

void mp_session_receive(mp_session_t *session, mp_receiver_t *receiver, mp_arrived_t *out_arrived) {
  mp_device_list_t resumed = {0};
  pthread_mutex_lock(&session->lock);
  // In a poisoned session nobody parks: the run notices it at its next command.
  bool goes_on = session->error != NULL || mp_mailbox_receive(&session->mailbox, receiver);
  if (!goes_on) {
    park(session, receiver->target);
    poison_if_stuck(session, &resumed);
  }
  pthread_mutex_unlock(&session->lock);
  mp_schedule(&resumed);
  *out_arrived = goes_on ? MP_ARRIVED_GO_ON : MP_ARRIVED_PARKED;
}
