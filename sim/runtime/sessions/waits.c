// What a parked participant waits for.
#include "sim/runtime/sessions/session_impl.h"

typedef struct {
  const mp_session_t *session;
  uint32_t logical;
  void (*visit)(const mp_wait_t *wait, void *context);
  void *context;
} visit_t;

// The participant's arrival at the meeting; NULL: it does not wait there.
static const mp_arrival_t *waits_arrival(const mp_meeting_t *meeting, uint32_t logical) {
  for (uint32_t i = 0; i < meeting->num_members; ++i) {
    const mp_arrival_t *arrival = meeting->arrivals[i];
    if (arrival != NULL && arrival->logical == logical) return arrival;
  }
  return NULL;
}

static bool waits_is_local(const mp_session_t *session, uint32_t logical) {
  return session->peers == NULL || session->peers->ranks_of[logical] == session->peers->self;
}

// A meeting that lacks participants of this process.
static void waits_visit_meeting(const visit_t *v, const mp_meeting_t *meeting) {
  const mp_arrival_t *own = waits_arrival(meeting, v->logical);
  for (uint32_t i = 0; i < meeting->num_members && own != NULL; ++i) {
    if (meeting->arrivals[i] != NULL || !waits_is_local(v->session, meeting->members[i])) continue;
    v->visit(
        &(mp_wait_t){
            .logical = v->logical, .missing = meeting->members[i], .collective = own->collective},
        v->context);
  }
}

static void waits_visit_remote(const visit_t *v, const mp_remote_collective_t *remote) {
  const mp_meeting_t *meeting = remote->meeting;
  const mp_arrival_t *own = remote->is_waiting ? waits_arrival(meeting, v->logical) : NULL;
  for (uint32_t i = 0; i < meeting->num_members && own != NULL; ++i) {
    if (!mp_remote_collective_misses(remote, remote->sequence->layout->process_of[i])) continue;
    v->visit(&(mp_wait_t){.logical = v->logical,
                          .missing = meeting->members[i],
                          .collective = own->collective,
                          .group = remote->sequence->group,
                          .number = remote->number},
             v->context);
  }
}

void mp_session_visit_waits(const mp_session_t *session, uint32_t logical,
                            void (*visit)(const mp_wait_t *wait, void *context), void *context) {
  mp_lock_assert_held(&session->lock);
  if (session->error != NULL || session->states[logical] != MP_PARTICIPANT_PARKED) return;
  const visit_t v = {session, logical, visit, context};
  mp_meeting_t *meeting = NULL;
  while ((meeting = mp_rendezvous_next(&session->rendezvous, meeting)) != NULL) {
    waits_visit_meeting(&v, meeting);
  }
  const mp_remote_collective_t *remote = session->peers == NULL ? NULL : session->peers->remotes;
  for (; remote != NULL; remote = remote->next) waits_visit_remote(&v, remote);
  for (const mp_receiver_t *r = session->mailbox.receivers.first; r != NULL; r = r->next) {
    if (r->target != logical) continue;
    visit(&(mp_wait_t){.logical = logical,
                       .missing = r->source,
                       .collective = r->collective,
                       .is_message = true},
          context);
  }
}

bool mp_session_has_begun(const mp_session_t *session, uint64_t group, uint32_t number) {
  mp_lock_assert_held(&session->lock);
  return session->peers != NULL && mp_peers_has_begun(session->peers, group, number);
}
