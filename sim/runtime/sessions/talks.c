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

static mp_status_t talks_create(mp_session_t *session, const mp_kernel_t *kernel,
                                mp_session_talk_t **out_talk) {
  mp_session_talk_t *talk = mp_calloc(1, sizeof(*talk) + session->num_participants);
  MP_RETURN_IF_NULL(talk);
  talk->session = session;
  talk->kernel = kernel;
  talk->states = (uint8_t *)(talk + 1);
  const mp_talk_link_t link = {.context = talk,
                               .num_devices = session->num_participants,
                               .names = session->names,
                               .wake = talks_wake};
  mp_status_t status = kernel->talk->create(kernel, &link, &talk->talk);
  if (status != NULL) {
    mp_free(talk);
    return status;
  }
  *out_talk = talk;
  return NULL;
}

// The kernel's first talk in which the participant has not been, or a new one.
static mp_status_t talks_find(mp_session_t *session, const mp_kernel_t *kernel, uint32_t logical,
                              mp_session_talk_t **out_talk) {
  mp_lock_assert_held(&session->lock);
  mp_session_talk_t **place = &session->talks;
  for (; *place != NULL; place = &(*place)->next) {
    if ((*place)->kernel == kernel && (*place)->states[logical] == MP_TALK_NOT_YET) break;
  }
  if (*place == NULL) MP_RETURN_IF_ERROR(talks_create(session, kernel, place));
  *out_talk = *place;
  return NULL;
}

// ---- A participant ----

mp_status_t mp_session_enter_talk(mp_session_t *session, const mp_kernel_t *kernel,
                                  uint32_t logical, const void *const *operands,
                                  void *const *results, mp_session_talk_t **out_talk) {
  mp_session_talk_t *talk = NULL;
  MP_ASSERT(session != NULL && kernel->talk != NULL);
  if (session->peers != NULL) {
    return mp_status_make(MP_UNIMPLEMENTED,
                          "kernels that communicate with devices of other processes");
  }
  mp_lock(&session->lock);
  mp_status_t status = talks_find(session, kernel, logical, &talk);
  if (status == NULL) {
    talk->states[logical] = MP_TALK_INSIDE;
    talk->num_inside += 1;
  }
  mp_unlock(&session->lock);
  MP_RETURN_IF_ERROR(status);
  *out_talk = talk;
  return kernel->talk->enter(talk->talk, logical, operands, results);
}

// Parks the participant, unless it may go on already.
static mp_status_t talks_park(mp_session_t *session, mp_session_talk_t *talk, uint32_t logical,
                              bool *out_is_parked) {
  mp_device_list_t resumed = {0};
  mp_lock(&session->lock);
  mp_status_t status = mp_status_retain(session->error);
  // Under the lock under which others wake it: so none does so before it has parked.
  *out_is_parked = status == NULL && !talk->kernel->talk->may_go_on(talk->talk, logical);
  if (*out_is_parked) {
    talk->states[logical] = MP_TALK_WAITS;
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
    bool waits = false, is_parked = false;
    MP_RETURN_IF_ERROR(talk->kernel->talk->go_on(talk->talk, logical, &waits));
    if (!waits) return NULL;
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
  talk->kernel->talk->leave(talk->talk, logical);
  mp_lock(&session->lock);
  MP_ASSERT(talk->states[logical] == MP_TALK_INSIDE || talk->states[logical] == MP_TALK_WAITS);
  talk->states[logical] = MP_TALK_GONE;
  talk->num_inside -= 1;
  talk->num_gone += 1;
  const bool is_over = talks_remove(session, talk);
  mp_unlock(&session->lock);
  if (is_over) mp_session_release_talk(talk);
}
