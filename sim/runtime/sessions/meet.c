// Meetings and messages: how participants of a session synchronize and exchange data.
#include "sim/base/assert.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/sessions/session_impl.h"
#include "sim/runtime/workers/job.h"
#include "sim/runtime/workers/worker.h"

// ---- Meetings ----

typedef struct {
  mp_job_t job;  // first, because its callback gets a pointer to it
  const mp_meeting_t *meeting;
} meeting_job_t;

static mp_status_t meet_run_chunk(mp_job_t *job, uint32_t part, void *scratch) {
  const mp_meeting_t *meeting = ((meeting_job_t *)job)->meeting;
  return mp_collective_run(meeting->collective, meeting->group, meeting->contributions,
                           meeting->names, part, scratch);
}

// Ends a meeting: all its arrivals are over, and all but the caller's are resumed.
static void meet_let_go(mp_session_t *session, const mp_meeting_t *meeting,
                        const mp_arrival_t *caller, mp_device_list_t *resumed) {
  mp_lock_assert_held(&session->lock);
  for (uint32_t i = 0; i < meeting->num_members; ++i) {
    if (meeting->arrivals[i] != NULL) meeting->arrivals[i]->is_over = true;
  }
  mp_session_resume_members(session, meeting, caller, resumed);
}

// Does a complete meeting's work and resumes all but the caller.
static mp_status_t meet_hold_meeting(mp_session_t *session, mp_worker_t *self,
                                     mp_meeting_t *meeting, const mp_arrival_t *caller) {
  meeting_job_t job = {
      .job = {.run = meet_run_chunk,
              .num_parts = mp_collective_num_chunks(meeting->collective, meeting->group),
              .scratch_bytes = mp_collective_scratch_bytes(meeting->collective, meeting->group)},
      .meeting = meeting,
  };
  // Without the lock: the meeting is out of the table, and its other members are parked, so their
  // operands and results do not change until this thread resumes them.
  mp_status_t status = mp_job_attend(self->client, self, &job.job);
  mp_device_list_t resumed = {0};
  mp_lock(&session->lock);
  mp_session_end_holding(session, meeting);
  meet_let_go(session, meeting, caller, &resumed);
  if (status != NULL) mp_session_poison_locked(session, mp_status_retain(status), &resumed);
  mp_unlock(&session->lock);
  mp_meeting_release(meeting);
  mp_schedule(&resumed);
  return status;
}

// Ends a remote collective, with success or failure, and resumes the participants that wait for it.
// Returns `status`; an error poisons the session.
static mp_status_t meet_end_remote(mp_session_t *session, mp_remote_collective_t *remote,
                                   mp_status_t status, mp_device_list_t *resumed) {
  mp_lock(&session->lock);
  meet_let_go(session, remote->meeting, remote->is_carried ? NULL : remote->holder, resumed);
  remote->holder->is_over = true;
  remote->holder->work = NULL;
  mp_remote_collective_end(session->peers, remote);
  if (status != NULL) mp_session_poison_locked(session, mp_status_retain(status), resumed);
  session->peers->num_changes += 1;
  mp_unlock(&session->lock);
  return status;
}

// Called when everything that can be sent was sent. `out_stripe`: a stripe whose payloads have
// already come, with which the caller continues at once. -1: the holder is parked, and may already
// run on another thread. Fails with the session's error.
static mp_status_t meet_await_payloads(mp_session_t *session, mp_remote_collective_t *remote,
                                       int64_t *out_stripe) {
  mp_device_list_t resumed = {0};
  mp_lock(&session->lock);
  mp_status_t status = mp_status_retain(session->error);
  // The last payload comes under this lock, too: so it is counted here, or it finds the holder
  // parked.
  *out_stripe = status == NULL ? mp_remote_collective_find_complete(remote) : -1;
  if (status == NULL && *out_stripe < 0) {
    if (remote->is_carried) {
      mp_session_set_carried(session, remote, false);
    } else {
      mp_session_park(session, remote->holder->logical);
    }
    session->peers->num_changes += 1;
    mp_session_poison_if_stuck(session, &resumed);
  }
  mp_unlock(&session->lock);
  mp_schedule(&resumed);
  return status;
}

// Works on a remote collective until it is over or has to wait. The caller schedules the runs that
// its end resumes.
static mp_status_t meet_go_through(mp_session_t *session, mp_worker_t *self,
                                   mp_remote_collective_t *remote, mp_device_list_t *resumed,
                                   mp_arrived_t *out_arrived) {
  mp_status_t status = mp_remote_stripes_begin(session->peers, remote, self);
  for (bool is_over = false; status == NULL && !is_over;) {
    int64_t stripe = -1;
    status = meet_await_payloads(session, remote, &stripe);
    if (status == NULL && stripe < 0) {
      *out_arrived = MP_ARRIVED_PARKED;
      return NULL;
    }
    if (status == NULL) {
      status = mp_remote_stripes_go_on(session->peers, remote, (uint32_t)stripe, self, &is_over);
    }
  }
  *out_arrived = MP_ARRIVED_GO_ON;
  return meet_end_remote(session, remote, status, resumed);
}

// Called by the last member of this process to arrive at a meeting with members in other processes:
// makes a remote collective of it. Takes the meeting.
static mp_status_t meet_set_out(mp_session_t *session, mp_worker_t *self, mp_meeting_t *meeting,
                                mp_arrival_t *arrival, mp_arrived_t *out_arrived) {
  mp_remote_collective_t *remote = NULL;
  mp_device_list_t resumed = {0};
  mp_lock(&session->lock);
  mp_session_end_holding(session, meeting);
  mp_status_t status = mp_remote_collective_begin(session->peers, meeting, arrival, &remote);
  if (status != NULL) mp_session_resume_members(session, meeting, arrival, &resumed);
  if (status != NULL) mp_session_poison_locked(session, mp_status_retain(status), &resumed);
  mp_unlock(&session->lock);
  mp_schedule(&resumed);
  if (status != NULL) {
    mp_meeting_release(meeting);
    return status;
  }
  arrival->work = remote;
  // Early packets are taken only now that the remote collective exists: so if one of them belongs
  // to another collective, this one fails in the usual way.
  mp_lock(&session->lock);
  status = mp_remote_collective_take_early(session->peers, remote);
  mp_unlock(&session->lock);
  status = status != NULL ? meet_end_remote(session, remote, status, &resumed)
                          : meet_go_through(session, self, remote, &resumed, out_arrived);
  mp_schedule(&resumed);
  return status;
}

// Called when the holder was resumed because all payloads of the phase have come. If the session
// was poisoned first, that has ended the remote collective (`remote` is freed) and resumed the
// others.
static mp_status_t meet_go_on(mp_session_t *session, mp_worker_t *self,
                              mp_remote_collective_t *remote, mp_arrived_t *out_arrived) {
  mp_lock(&session->lock);
  mp_status_t status = mp_status_retain(session->error);
  if (status == NULL) remote->is_ready = false;
  mp_unlock(&session->lock);
  if (status != NULL) return status;
  mp_device_list_t resumed = {0};
  status = meet_go_through(session, self, remote, &resumed, out_arrived);
  mp_schedule(&resumed);
  return status;
}

// Runs the devices that mp_session_carry_on has resumed; `context` is the first.
static void meet_let_carried_go(void *context) {
  mp_device_t *first = context;
  mp_client_t *client = first->client;
  client->runner->go_on(client, first);
  mp_client_unhold(client);
}

void mp_session_carry_on(mp_session_t *session, mp_followup_t *followup) {
  mp_lock(&session->lock);
  mp_remote_collective_t *remote = mp_session_carried(session);
  mp_unlock(&session->lock);
  MP_ASSERT(remote != NULL);  // it lives until this function is done with it
  mp_device_list_t resumed = {0};
  mp_arrived_t arrived;
  mp_status_ignore(meet_go_through(session, NULL, remote, &resumed, &arrived));
  if (resumed.first == NULL) return;
  // Held, because the client may end while no thread is in the run.
  mp_client_hold(resumed.first->client);
  *followup = (mp_followup_t){meet_let_carried_go, resumed.first};
}

mp_status_t mp_session_meet(mp_session_t *session, mp_worker_t *self, mp_arrival_t *arrival,
                            mp_arrived_t *out_arrived) {
  uint32_t logical = arrival->logical;
  MP_ASSERT(logical < session->num_participants && arrival->collective != NULL);
  if (arrival->work != NULL) return meet_go_on(session, self, arrival->work, out_arrived);
  if (arrival->collective->groups->group_of[logical] < 0) {
    mp_collective_zero_outputs(arrival->collective, arrival);
    *out_arrived = MP_ARRIVED_GO_ON;
    return NULL;
  }
  mp_device_list_t resumed = {0};
  mp_meeting_t *meeting = NULL;
  mp_lock(&session->lock);
  mp_status_t status = mp_status_retain(session->error);
  if (status == NULL) status = mp_rendezvous_arrive(&session->rendezvous, arrival, &meeting);
  if (status == NULL && meeting == NULL) {
    // Under the same lock as the arrival: so the participant that completes the meeting finds all
    // others parked.
    mp_session_park(session, logical);
    mp_session_poison_if_stuck(session, &resumed);
  }
  if (meeting != NULL) mp_session_begin_holding(session, meeting);
  mp_unlock(&session->lock);
  // From here on a parked run may be on another thread.
  mp_schedule(&resumed);
  if (status != NULL) return status;
  *out_arrived = meeting == NULL ? MP_ARRIVED_PARKED : MP_ARRIVED_GO_ON;
  if (meeting == NULL) return NULL;
  if (meeting->num_needed != meeting->num_members) {
    return meet_set_out(session, self, meeting, arrival, out_arrived);
  }
  return meet_hold_meeting(session, self, meeting, arrival);
}

// ---- Messages ----

void mp_session_post(mp_session_t *session, mp_message_t *message, mp_device_list_t *resumed) {
  mp_lock_assert_held(&session->lock);
  mp_receiver_t *receiver = mp_mailbox_post(&session->mailbox, message);
  if (receiver != NULL) mp_session_resume(session, receiver->target, resumed);
}

// Sends to a participant in another process.
static mp_status_t meet_send_far(mp_session_t *session, const mp_collective_t *collective,
                                 uint32_t source, uint32_t target, const void *const *inputs) {
  mp_peers_t *peers = session->peers;
  mp_world_t *world = mp_endpoint_world(peers->endpoint);
  mp_envelope_t envelope = mp_peers_envelope(peers, MP_PACKET_MESSAGE);
  envelope.words[1] = source;
  envelope.words[2] = target;
  envelope.key[2] = (uint64_t)collective->channel_id;
  envelope.key[3] = collective->num_operands | (uint64_t)mp_message_types(collective) << 32;
  const size_t bytes = mp_message_bytes(collective);
  mp_payload_t *payload = NULL;
  if (bytes != 0) {
    MP_RETURN_IF_ERROR(mp_payload_create(world, bytes, &payload));
    mp_message_pack(collective, inputs, payload->data);
  }
  mp_status_t status = mp_world_send(world, peers->ranks_of[target], &envelope, payload);
  if (payload != NULL) mp_payload_release(payload);
  return status;
}

mp_status_t mp_session_send(mp_session_t *session, const mp_collective_t *collective,
                            uint32_t source, uint32_t target, const void *const *inputs) {
  MP_ASSERT(source < session->num_participants && target < session->num_participants);
  if (session->peers != NULL && session->peers->ranks_of[target] != session->peers->self) {
    return meet_send_far(session, collective, source, target, inputs);
  }
  mp_device_list_t resumed = {0};
  mp_message_t *message;
  MP_RETURN_IF_ERROR(mp_message_create(collective, source, target, inputs, &message));
  mp_lock(&session->lock);
  mp_session_post(session, message, &resumed);
  mp_unlock(&session->lock);
  mp_schedule(&resumed);
  return NULL;
}

void mp_session_receive(mp_session_t *session, mp_receiver_t *receiver, mp_arrived_t *out_arrived) {
  mp_device_list_t resumed = {0};
  mp_lock(&session->lock);
  // In a poisoned session no run parks: the run notices the error at its next command.
  bool goes_on = session->error != NULL || mp_mailbox_receive(&session->mailbox, receiver);
  if (!goes_on) {
    mp_session_park(session, receiver->target);
    mp_session_poison_if_stuck(session, &resumed);
  }
  mp_unlock(&session->lock);
  mp_schedule(&resumed);
  *out_arrived = goes_on ? MP_ARRIVED_GO_ON : MP_ARRIVED_PARKED;
}
