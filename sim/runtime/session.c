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
  session->num_local = num_participants;
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

mp_status_t mp_session_connect(mp_session_t *session, mp_port_t *port, uint64_t devices,
                               uint64_t number, const uint32_t *ranks_of, uint32_t num_ranks,
                               const uint32_t *ranks) {
  MP_RETURN_IF_ERROR(
      mp_peers_create(session, port, devices, number, ranks_of, num_ranks, ranks, &session->peers));
  session->rendezvous.ranks_of = ranks_of;
  session->rendezvous.self = session->peers->self;
  for (uint32_t i = 0; i < session->num_participants; ++i) {
    if (ranks_of[i] == session->peers->self) continue;
    session->states[i] = MP_PARTICIPANT_REMOTE;
    session->num_local -= 1;
  }
  return mp_port_enter(port, devices, number, session);
}

mp_session_t *mp_session_retain(mp_session_t *session) {
  if (session != NULL) atomic_fetch_add_explicit(&session->references, 1, memory_order_relaxed);
  return session;
}

void mp_session_release(mp_session_t *session) {
  if (session == NULL) return;
  if (atomic_fetch_sub_explicit(&session->references, 1, memory_order_acq_rel) != 1) return;
  mp_peers_release(session->peers);
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

static void resume(mp_session_t *session, uint32_t logical, mp_device_list_t *resumed) {
  unpark(session, logical);
  mp_device_list_push(resumed, mp_run_device(session->runs[logical]));
}

// All who arrived at the meeting, but for `except`.
static void resume_members(mp_session_t *session, const mp_meeting_t *meeting,
                           const mp_arrival_t *except, mp_device_list_t *resumed) {
  for (uint32_t i = 0; i < meeting->num_members; ++i) {
    mp_arrival_t *arrival = meeting->arrivals[i];
    if (arrival != NULL && arrival != except) resume(session, arrival->logical, resumed);
  }
}

// Takes all who wait out of their meetings; they go onto `resumed`.
static void resume_all(mp_session_t *session, mp_device_list_t *resumed) {
  mp_meeting_t *meeting = NULL;
  while ((meeting = mp_rendezvous_next(&session->rendezvous, meeting)) != NULL) {
    resume_members(session, meeting, NULL, resumed);
  }
  mp_rendezvous_abandon(&session->rendezvous);
  while (session->mailbox.receivers != NULL) {
    mp_receiver_t *receiver = session->mailbox.receivers;
    session->mailbox.receivers = receiver->next;
    session->mailbox.num_receivers -= 1;
    resume(session, receiver->target, resumed);
  }
  mp_passage_t *next = session->peers == NULL ? NULL : session->peers->passages;
  while (next != NULL) {
    mp_passage_t *passage = next;
    next = passage->next;
    if (!passage->is_waiting) continue;  // its holder will see
    resume_members(session, passage->meeting, NULL, resumed);
    mp_passage_end(session->peers, passage);
  }
}

// Other processes hear of it, unless it comes from one of them.
static void tell_peers(const mp_session_t *session) {
  if (session->peers == NULL) return;
  mp_envelope_t envelope = mp_peers_envelope(session->peers, MP_PACKET_POISON);
  envelope.words[1] = (uint32_t)mp_status_code(session->error);
  const char *text = mp_status_message(session->error);
  mp_peers_send_all(session->peers, &envelope, text, strlen(text));
}

static void poison_quietly(mp_session_t *session, mp_status_t error, mp_device_list_t *resumed) {
  if (session->error != NULL) {
    mp_status_release(error);
    return;
  }
  session->error = error;
  atomic_store_explicit(&session->is_poisoned, true, memory_order_release);
  resume_all(session, resumed);
}

static void poison_locked(mp_session_t *session, mp_status_t error, mp_device_list_t *resumed) {
  const bool is_first = session->error == NULL;
  poison_quietly(session, error, resumed);
  if (is_first) tell_peers(session);
}

// True when packets may still move somebody who waits.
static bool may_be_moved(const mp_session_t *session) {
  const mp_peers_t *peers = session->peers;
  if (peers == NULL) return false;
  for (const mp_passage_t *passage = peers->passages; passage != NULL; passage = passage->next) {
    if (!mp_passage_is_lost(peers, passage)) return true;
  }
  for (const mp_receiver_t *r = session->mailbox.receivers; r != NULL; r = r->next) {
    if (session->states[r->source] == MP_PARTICIPANT_REMOTE) return true;
  }
  return false;
}

// True when somebody waits for a process that has left.
static bool is_let_down(const mp_session_t *session) {
  const mp_peers_t *peers = session->peers;
  if (peers == NULL) return false;
  for (const mp_passage_t *passage = peers->passages; passage != NULL; passage = passage->next) {
    if (passage->is_waiting && mp_passage_is_lost(peers, passage)) return true;
  }
  for (const mp_receiver_t *r = session->mailbox.receivers; r != NULL; r = r->next) {
    if (mp_peers_has_left(peers, peers->ranks_of[r->source])) return true;
  }
  return false;
}

// Nobody is left who could come to where others wait.
static void poison_if_stuck(mp_session_t *session, mp_device_list_t *resumed) {
  if (session->error != NULL || session->num_parked == 0) return;
  if (!is_let_down(session)) {
    if (session->num_active != 0 || session->num_joined != session->num_local) return;
    if (may_be_moved(session)) return;
  }
  poison_locked(session, mp_session_describe_stuck(session), resumed);
}

// ---- Coming and going ----

bool mp_session_join(mp_session_t *session, uint32_t logical, mp_run_t *run) {
  pthread_mutex_lock(&session->lock);
  session->runs[logical] = run;
  session->states[logical] = MP_PARTICIPANT_ACTIVE;
  session->num_joined += 1;
  session->num_active += 1;
  bool is_complete = session->num_joined == session->num_local;
  pthread_mutex_unlock(&session->lock);
  return is_complete;
}

// All participants of this process are done: others need not wait for them.
static bool is_over(const mp_session_t *session) {
  return session->peers != NULL && session->num_joined == session->num_local &&
         session->num_active == 0 && session->num_parked == 0;
}

static void say_goodbye(mp_session_t *session) {
  pthread_mutex_lock(&session->lock);
  if (session->error == NULL) {
    const mp_envelope_t envelope = mp_peers_envelope(session->peers, MP_PACKET_LEAVE);
    mp_peers_send_all(session->peers, &envelope, NULL, 0);
  }
  pthread_mutex_unlock(&session->lock);
  mp_port_leave(session->peers->port, session);
}

bool mp_session_skip(mp_session_t *session, uint32_t logical) {
  pthread_mutex_lock(&session->lock);
  session->states[logical] = MP_PARTICIPANT_DONE;
  session->num_joined += 1;
  bool is_complete = session->num_joined == session->num_local;
  bool must_leave = is_over(session);
  pthread_mutex_unlock(&session->lock);
  if (must_leave) say_goodbye(session);
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
  bool must_leave = is_over(session);
  pthread_mutex_unlock(&session->lock);
  mp_schedule(&resumed);
  if (must_leave) say_goodbye(session);
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

bool mp_session_is_moving(mp_session_t *session) {
  pthread_mutex_lock(&session->lock);
  bool is_moving = session->num_active + session->num_parked != 0;
  pthread_mutex_unlock(&session->lock);
  return is_moving;
}

bool mp_session_is_complete(mp_session_t *session) {
  pthread_mutex_lock(&session->lock);
  bool is_complete = session->num_joined == session->num_local;
  pthread_mutex_unlock(&session->lock);
  return is_complete;
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

// The end of a meeting that the caller held: the others go on.
static void let_go(mp_session_t *session, const mp_meeting_t *meeting, const mp_arrival_t *caller,
                   mp_device_list_t *resumed) {
  for (uint32_t i = 0; i < meeting->num_members; ++i) {
    if (meeting->arrivals[i] != NULL) meeting->arrivals[i]->is_over = true;
  }
  resume_members(session, meeting, caller, resumed);
}

// Does a complete meeting's work and resumes all but the caller.
static mp_status_t hold_meeting(mp_session_t *session, mp_worker_t *self, mp_meeting_t *meeting,
                                const mp_arrival_t *caller) {
  mp_meeting_job_t job = {
      .job = {.run = run_chunk,
              .num_parts = mp_collective_num_chunks(meeting->collective, meeting->group),
              .scratch_bytes = mp_collective_scratch_bytes(meeting->collective, meeting->group)},
      .meeting = meeting,
  };
  mp_status_t status = mp_job_attend(self->client, self, &job.job);
  mp_device_list_t resumed = {0};
  pthread_mutex_lock(&session->lock);
  let_go(session, meeting, caller, &resumed);
  if (status != NULL) poison_locked(session, mp_status_retain(status), &resumed);
  pthread_mutex_unlock(&session->lock);
  mp_meeting_release(meeting);
  mp_schedule(&resumed);
  return status;
}

// Ends a passage, well or badly (consumes `status` and returns it).
static mp_status_t end_passage(mp_session_t *session, mp_passage_t *passage, mp_status_t status) {
  mp_device_list_t resumed = {0};
  pthread_mutex_lock(&session->lock);
  let_go(session, passage->meeting, passage->holder, &resumed);
  passage->holder->is_over = true;
  passage->holder->passage = NULL;
  mp_passage_end(session->peers, passage);
  if (status != NULL) poison_locked(session, mp_status_retain(status), &resumed);
  session->peers->num_changes += 1;
  pthread_mutex_unlock(&session->lock);
  mp_schedule(&resumed);
  return status;
}

// After sending: true when the holder may go on at once. Otherwise it is parked, and may run
// elsewhere already; or the session is poisoned.
static mp_status_t await_parcels(mp_session_t *session, mp_passage_t *passage, bool *out_has_all) {
  mp_device_list_t resumed = {0};
  pthread_mutex_lock(&session->lock);
  mp_status_t status = mp_status_retain(session->error);
  *out_has_all = status == NULL && mp_passage_has_all(passage);
  if (status == NULL && !*out_has_all) {
    park(session, passage->holder->logical);
    session->peers->num_changes += 1;
    poison_if_stuck(session, &resumed);
  }
  pthread_mutex_unlock(&session->lock);
  mp_schedule(&resumed);
  return status;
}

// Works on a passage until it is over or has to wait. `has_parcels`: those of this phase were sent,
// and the others' have come.
static mp_status_t go_through(mp_session_t *session, mp_worker_t *self, mp_passage_t *passage,
                              bool has_parcels, mp_arrived_t *out_arrived) {
  mp_status_t status = NULL;
  for (bool is_last = false; status == NULL && !is_last;) {
    if (!has_parcels) {
      status = mp_passage_send(session->peers, passage, self);
      if (status == NULL) status = await_parcels(session, passage, &has_parcels);
      if (status == NULL && !has_parcels) {
        *out_arrived = MP_ARRIVED_PARKED;
        return NULL;
      }
    }
    has_parcels = false;
    if (status == NULL) status = mp_passage_advance(passage, &is_last);
  }
  if (status == NULL) status = mp_passage_finish(passage, self);
  *out_arrived = MP_ARRIVED_GO_ON;
  return end_passage(session, passage, status);
}

// A meeting where all of this process are, and others are to come.
static mp_status_t set_out(mp_session_t *session, mp_worker_t *self, mp_meeting_t *meeting,
                           mp_arrival_t *arrival, mp_arrived_t *out_arrived) {
  mp_passage_t *passage = NULL;
  mp_device_list_t resumed = {0};
  pthread_mutex_lock(&session->lock);
  mp_status_t status = mp_passage_begin(session->peers, meeting, arrival, session->names, &passage);
  if (status != NULL) resume_members(session, meeting, arrival, &resumed);
  if (status != NULL) poison_locked(session, mp_status_retain(status), &resumed);
  pthread_mutex_unlock(&session->lock);
  mp_schedule(&resumed);
  if (status != NULL) {
    mp_meeting_release(meeting);
    return status;
  }
  arrival->passage = passage;
  // Only now: what differs from what has come is the passage's own failure.
  pthread_mutex_lock(&session->lock);
  status = mp_passage_take_early(session->peers, passage);
  pthread_mutex_unlock(&session->lock);
  if (status != NULL) return end_passage(session, passage, status);
  return go_through(session, self, passage, false, out_arrived);
}

mp_status_t mp_session_meet(mp_session_t *session, mp_worker_t *self, mp_arrival_t *arrival,
                            mp_arrived_t *out_arrived) {
  uint32_t logical = arrival->logical;
  if (arrival->passage != NULL) {
    return go_through(session, self, arrival->passage, true, out_arrived);
  }
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
  if (meeting == NULL) return NULL;
  if (meeting->num_needed != meeting->num_members) {
    return set_out(session, self, meeting, arrival, out_arrived);
  }
  return hold_meeting(session, self, meeting, arrival);
}

// ---- Messages ----

static void post(mp_session_t *session, mp_message_t *message, mp_device_list_t *resumed) {
  mp_receiver_t *receiver = mp_mailbox_post(&session->mailbox, message);
  if (receiver != NULL) resume(session, receiver->target, resumed);
}

static mp_status_t send_far(mp_session_t *session, const mp_collective_t *collective,
                            uint32_t source, uint32_t target, const void *const *inputs) {
  mp_peers_t *peers = session->peers;
  mp_world_t *world = mp_port_world(peers->port);
  mp_envelope_t envelope = mp_peers_envelope(peers, MP_PACKET_MESSAGE);
  envelope.words[1] = source;
  envelope.words[2] = target;
  envelope.key[2] = (uint64_t)collective->channel_id;
  envelope.key[3] = collective->num_operands;
  const size_t bytes = mp_message_bytes(collective);
  mp_parcel_t *parcel = NULL;
  if (bytes != 0) {
    MP_RETURN_IF_ERROR(mp_parcel_create(world, bytes, &parcel));
    mp_message_pack(collective, inputs, parcel->data);
  }
  mp_status_t status = mp_world_send(world, peers->ranks_of[target], &envelope, parcel);
  if (parcel != NULL) mp_parcel_release(parcel);
  return status;
}

mp_status_t mp_session_send(mp_session_t *session, const mp_collective_t *collective,
                            uint32_t source, uint32_t target, const void *const *inputs) {
  if (session->peers != NULL && session->peers->ranks_of[target] != session->peers->self) {
    return send_far(session, collective, source, target, inputs);
  }
  mp_device_list_t resumed = {0};
  mp_message_t *message;
  MP_RETURN_IF_ERROR(mp_message_create(collective, source, target, inputs, &message));
  pthread_mutex_lock(&session->lock);
  post(session, message, &resumed);
  pthread_mutex_unlock(&session->lock);
  mp_schedule(&resumed);
  return NULL;
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

// ---- Packets ----

static void take_parcel(mp_session_t *session, mp_packet_t *packet, mp_device_list_t *resumed) {
  mp_passage_t *ready;
  mp_status_t status = mp_passage_file(session->peers, packet, &ready);
  if (status != NULL) {
    poison_locked(session, status, resumed);
  } else if (ready != NULL) {
    ready->is_waiting = false;
    resume(session, ready->holder->logical, resumed);
  }
}

static void take_message(mp_session_t *session, mp_packet_t *packet, mp_device_list_t *resumed) {
  const uint32_t source = packet->envelope.words[1], target = packet->envelope.words[2];
  mp_message_t *message;
  if (source >= session->num_participants || target >= session->num_participants) {
    mp_packet_release(packet);
    return;
  }
  mp_status_t status = mp_message_of_packet((int64_t)packet->envelope.key[2], source, target,
                                            (uint32_t)packet->envelope.key[3], packet, &message);
  if (status != NULL) {
    mp_packet_release(packet);
    poison_locked(session, status, resumed);
    return;
  }
  post(session, message, resumed);
}

static void take_poison(mp_session_t *session, mp_packet_t *packet, mp_device_list_t *resumed) {
  const mp_status_code_t code = (mp_status_code_t)packet->envelope.words[1];
  const mp_status_t error =
      mp_status_make(code == MP_OK ? MP_UNKNOWN : code, "%.*s (on process %u)", (int)packet->bytes,
                     packet->bytes == 0 ? "" : (const char *)packet->data, packet->from);
  mp_packet_release(packet);
  poison_quietly(session, error, resumed);
}

static void take_leave(mp_session_t *session, mp_packet_t *packet, mp_device_list_t *resumed) {
  mp_peers_t *peers = session->peers;
  const int64_t i = mp_peers_find(peers, packet->from);
  if (i >= 0) peers->has_left[i] = true;
  for (uint32_t p = 0; p < session->num_participants; ++p) {
    if (peers->ranks_of[p] == packet->from) session->states[p] = MP_PARTICIPANT_DONE;
  }
  mp_packet_release(packet);
  poison_if_stuck(session, resumed);
}

static void take_ask(mp_session_t *session, mp_packet_t *packet, mp_device_list_t *resumed) {
  (void)resumed;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_session_describe_own(session, &text);
  const mp_envelope_t envelope = mp_peers_envelope(session->peers, MP_PACKET_ANSWER);
  mp_peers_send(session->peers, packet->from, &envelope, mp_strbuf_text(&text), text.size);
  mp_strbuf_deinit(&text);
  mp_packet_release(packet);
}

static void take_answer(mp_session_t *session, mp_packet_t *packet, mp_device_list_t *resumed) {
  (void)resumed;
  const int64_t i = mp_peers_find(session->peers, packet->from);
  char *text = i < 0 ? NULL : mp_calloc(1, packet->bytes + 1);
  if (text != NULL) {
    if (packet->bytes != 0) memcpy(text, packet->data, packet->bytes);
    mp_free(session->peers->answers[i]);
    session->peers->answers[i] = text;
  }
  mp_packet_release(packet);
}

static void (*const k_packets[])(mp_session_t *session, mp_packet_t *packet,
                                 mp_device_list_t *resumed) = {
    [MP_PACKET_PARCEL] = take_parcel,   [MP_PACKET_DISPUTE] = take_parcel,
    [MP_PACKET_MESSAGE] = take_message, [MP_PACKET_POISON] = take_poison,
    [MP_PACKET_LEAVE] = take_leave,     [MP_PACKET_ASK] = take_ask,
    [MP_PACKET_ANSWER] = take_answer,
};

void mp_session_deliver(mp_session_t *session, mp_packet_t *packet) {
  mp_device_list_t resumed = {0};
  const size_t kind = (size_t)mp_packet_kind(packet);
  pthread_mutex_lock(&session->lock);
  session->peers->num_changes += kind != MP_PACKET_ASK && kind != MP_PACKET_ANSWER;
  if (session->error != NULL || kind >= sizeof(k_packets) / sizeof(k_packets[0]) ||
      k_packets[kind] == NULL) {
    mp_packet_release(packet);
  } else {
    k_packets[kind](session, packet, &resumed);
  }
  pthread_mutex_unlock(&session->lock);
  mp_schedule(&resumed);
}

void mp_session_lose(mp_session_t *session, uint32_t rank, mp_status_t why) {
  mp_device_list_t resumed = {0};
  pthread_mutex_lock(&session->lock);
  // Who has left the launch is needed no more. The others hear of the loss themselves.
  const int64_t i = mp_peers_find(session->peers, rank);
  if (i >= 0 && !session->peers->has_left[i]) {
    session->peers->has_left[i] = true;
    poison_quietly(session, mp_status_retain(why), &resumed);
  }
  pthread_mutex_unlock(&session->lock);
  mp_schedule(&resumed);
}
