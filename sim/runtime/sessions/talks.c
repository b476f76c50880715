#include "sim/runtime/sessions/talks.h"

#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/sessions/session_impl.h"

// ---- A talk ----

// A participant that waits may go on. Called by the kernel, on the thread of another participant.
static void talks_wake(void *context, uint32_t logical) {
  mp_session_talk_t *talk = context;
  mp_session_t *session = talk->session;
  mp_device_list_t resumed = {0};
  mp_lock(&session->lock);
  // One that has not parked yet will find that it may go on.
  if (talk->states[logical] == MP_TALK_WAITS) {
    talk->states[logical] = MP_TALK_INSIDE;
    mp_session_resume(session, logical, &resumed);
  }
  mp_unlock(&session->lock);
  mp_schedule(&resumed);
}

static mp_status_t talks_create(mp_session_t *session, const mp_talk_call_t *call, uint32_t round,
                                mp_session_talk_t **out_talk) {
  mp_session_talk_t *talk = mp_calloc(1, sizeof(*talk) + session->num_participants);
  MP_RETURN_IF_NULL(talk);
  talk->session = session;
  talk->call = *call;
  talk->round = round;
  talk->states = (uint8_t *)(talk + 1);
  mp_talk_link_t link = {.context = talk,
                         .num_devices = session->num_participants,
                         .names = session->names,
                         .wake = talks_wake};
  mp_session_link_talk(&link);
  mp_status_t status = call->kernel->talk->create(call->kernel, &link, &talk->talk);
  if (status != NULL) {
    mp_free(talk);
    return status;
  }
  *out_talk = talk;
  return NULL;
}

// How often each participant has come to the command; a new row if none has.
static mp_status_t talks_find_rounds(mp_session_t *session, uint32_t number,
                                     mp_talk_rounds_t **out_rounds) {
  mp_talk_rounds_t **place = &session->talk_rounds;
  while (*place != NULL && (*place)->number != number) place = &(*place)->next;
  if (*place == NULL) {
    *place = mp_calloc(1, sizeof(**place) + session->num_participants * sizeof(uint32_t));
    MP_RETURN_IF_NULL(*place);
    (*place)->number = number;
  }
  *out_rounds = *place;
  return NULL;
}

// The talk of the command in this round, or a new one.
static mp_status_t talks_find(mp_session_t *session, const mp_talk_call_t *call, uint32_t round,
                              mp_session_talk_t **out_talk) {
  mp_session_talk_t **place = &session->talks;
  for (; *place != NULL; place = &(*place)->next) {
    if ((*place)->call.kernel == call->kernel && (*place)->round == round) break;
  }
  if (*place == NULL) MP_RETURN_IF_ERROR(talks_create(session, call, round, place));
  *out_talk = *place;
  return NULL;
}

// ---- A participant ----

static mp_status_t talks_begin(mp_session_t *session, const mp_talk_call_t *call, uint32_t logical,
                               mp_session_talk_t **out_talk) {
  mp_lock_assert_held(&session->lock);
  mp_talk_rounds_t *rounds = NULL;
  mp_session_talk_t *talk = NULL;
  MP_RETURN_IF_ERROR(talks_find_rounds(session, call->number, &rounds));
  MP_RETURN_IF_ERROR(talks_find(session, call, rounds->counts[logical], &talk));
  rounds->counts[logical] += 1;
  talk->states[logical] = MP_TALK_INSIDE;
  talk->num_inside += 1;
  *out_talk = talk;
  return NULL;
}

mp_status_t mp_session_enter_talk(mp_session_t *session, const mp_talk_call_t *call,
                                  uint32_t logical, const void *const *operands,
                                  void *const *results, mp_session_talk_t **out_talk) {
  mp_session_talk_t *talk = NULL;
  MP_ASSERT(session != NULL && call->kernel->talk != NULL);
  mp_lock(&session->lock);
  mp_status_t status = talks_begin(session, call, logical, &talk);
  mp_unlock(&session->lock);
  MP_RETURN_IF_ERROR(status);
  *out_talk = talk;
  return call->kernel->talk->enter(talk->talk, logical, operands, results);
}

// Does what has come from other processes.
static mp_status_t talks_take_packets(mp_session_t *session, const mp_session_talk_t *talk,
                                      uint32_t logical) {
  mp_status_t status = NULL;
  while (session->peers != NULL && status == NULL) {
    mp_lock(&session->lock);
    mp_packet_t *packet = mp_session_next_talk_packet(session, talk, logical);
    mp_unlock(&session->lock);
    if (packet == NULL) break;
    status = talk->call.kernel->talk->deliver(talk->talk, logical, packet->data, packet->bytes);
    mp_packet_release(packet);
  }
  return status;
}

// Parks the participant, unless it may go on already.
static mp_status_t talks_park(mp_session_t *session, mp_session_talk_t *talk, uint32_t logical,
                              bool *out_is_parked) {
  mp_device_list_t resumed = {0};
  mp_lock(&session->lock);
  mp_status_t status = mp_status_retain(session->error);
  // Under the lock under which others wake it: so none does so before it has parked.
  *out_is_parked = status == NULL && !talk->call.kernel->talk->may_go_on(talk->talk, logical);
  // A packet that has come since the last one was taken is taken first.
  if (*out_is_parked && mp_session_has_talk_packet(session, talk, logical)) *out_is_parked = false;
  if (*out_is_parked) {
    talk->states[logical] = MP_TALK_WAITS;
    if (session->peers != NULL) session->peers->num_changes += 1;
    mp_session_park(session, logical);
    mp_session_poison_if_stuck(session, &resumed);
  }
  mp_unlock(&session->lock);
  mp_schedule(&resumed);
  return status;
}

mp_status_t mp_session_go_on_talk(mp_session_t *session, mp_session_talk_t *talk, uint32_t logical,
                                  mp_arrived_t *out_arrived) {
  *out_arrived = MP_ARRIVED_GO_ON;
  for (;;) {
    mp_talk_stop_t stop = MP_TALK_RUN_IS_OVER;
    bool is_parked = false;
    MP_RETURN_IF_ERROR(talks_take_packets(session, talk, logical));
    MP_RETURN_IF_ERROR(talk->call.kernel->talk->go_on(talk->talk, logical, &stop));
    if (stop == MP_TALK_RUN_YIELDS) *out_arrived = MP_ARRIVED_YIELDS;
    if (stop != MP_TALK_RUN_WAITS) return NULL;
    MP_RETURN_IF_ERROR(talks_park(session, talk, logical, &is_parked));
    if (!is_parked) continue;
    *out_arrived = MP_ARRIVED_PARKED;
    return NULL;
  }
}

// Removes a talk from the list when all participants of this process have been there.
static bool talks_remove(mp_session_t *session, const mp_session_talk_t *talk) {
  mp_lock_assert_held(&session->lock);
  if (talk->num_inside != 0 || talk->num_gone != session->num_local) return false;
  mp_session_talk_t **place = &session->talks;
  while (*place != talk) place = &(*place)->next;
  *place = talk->next;
  return true;
}

void mp_session_leave_talk(mp_session_t *session, mp_session_talk_t *talk, uint32_t logical) {
  talk->call.kernel->talk->leave(talk->talk, logical);
  mp_lock(&session->lock);
  MP_ASSERT(talk->states[logical] == MP_TALK_INSIDE || talk->states[logical] == MP_TALK_WAITS);
  talk->states[logical] = MP_TALK_GONE;
  talk->num_inside -= 1;
  talk->num_gone += 1;
  const bool is_over = talks_remove(session, talk);
  mp_unlock(&session->lock);
  if (is_over) mp_session_release_talk(talk);
}
