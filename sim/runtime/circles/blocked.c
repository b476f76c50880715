#include "sim/runtime/circles/blocked.h"

#include <inttypes.h>

#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/order/launch_order.h"
#include "sim/runtime/runs/deadlock.h"
#include "sim/runtime/runs/run.h"
#include "sim/runtime/workers/workers.h"

// How often a search is repeated when runs move meanwhile.
enum { MP_SEARCHES = 3 };

// ---- What a parked participant waits for ----

typedef struct {
  mp_blocked_search_t *search;
  mp_session_t *session;  // its lock is held
  uint32_t index;         // of the participant in `blocked`
} expansion_t;

// Consumes the reference to the session.
static void blocked_add(mp_blocked_search_t *search, mp_session_t *session, uint32_t logical) {
  bool is_known = false;
  for (uint32_t i = 0; i < search->blocked.count && !is_known; ++i) {
    const mp_blocked_t *other = &search->blocked.items[i];
    is_known = other->session == session && other->logical == logical;
  }
  mp_status_t status = is_known
                           ? NULL
                           : MP_ARRAY_PUSH(NULL, &search->blocked,
                                           (mp_blocked_t){.session = session, .logical = logical});
  search->has_failed |= status != NULL;
  if (is_known || status != NULL) mp_session_release(session);
  mp_status_ignore(status);
}

static char *blocked_describe(const expansion_t *at, const mp_wait_t *wait) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  // The participant is parked, so its run exists.
  const mp_run_t *run = at->session->runs[wait->logical];
  mp_strbuf_printf(&text, "device %" PRIu32 " waits in %s at ", at->session->names[wait->logical],
                   run->executable->name->text);
  mp_session_describe_place(at->session, wait, &text);
  return mp_strbuf_take(&text, &(size_t){0});
}

static void blocked_add_wait(const expansion_t *at, const mp_wait_t *wait) {
  mp_blocked_search_t *search = at->search;
  mp_blocked_t *blocked = &search->blocked.items[at->index];
  if (blocked->place == NULL) blocked->place = blocked_describe(at, wait);
  mp_status_t status = MP_ARRAY_PUSH(NULL, &search->waits,
                                     (mp_blocked_wait_t){.blocked = at->index,
                                                         .missing = wait->missing,
                                                         .is_message = wait->is_message,
                                                         .group = wait->group,
                                                         .number = wait->number});
  search->has_failed |= status != NULL || blocked->place == NULL;
  mp_status_ignore(status);
}

static void blocked_visit(const mp_wait_t *wait, void *context) {
  const expansion_t *at = context;
  mp_session_t *session = at->session;
  const mp_participant_state_t state = session->states[wait->missing];
  if (state == MP_PARTICIPANT_REMOTE) {
    blocked_add_wait(at, wait);
  } else if (state == MP_PARTICIPANT_PARKED) {
    blocked_add(at->search, mp_session_retain(session), wait->missing);
  } else if (state == MP_PARTICIPANT_ACTIVE) {
    mp_status_t status = MP_ARRAY_PUSH(
        NULL, &at->search->queued,
        (mp_blocked_t){.session = mp_session_retain(session), .logical = wait->missing});
    at->search->has_failed |= status != NULL;
    if (status != NULL) mp_session_release(session);
    mp_status_ignore(status);
  }
}

static void blocked_expand(mp_blocked_search_t *search, uint32_t index) {
  mp_session_t *session = search->blocked.items[index].session;
  expansion_t at = {search, session, index};
  mp_lock(&session->lock);
  if (session->peers != NULL) search->blocked.items[index].changes = session->peers->num_changes;
  mp_session_visit_waits(session, search->blocked.items[index].logical, blocked_visit, &at);
  mp_unlock(&session->lock);
}

// ---- What a participant that has not begun waits for ----

// Adds the first run of the stream in which the participant's run is queued. Nothing is added if
// that is the first one itself.
static void blocked_add_first(mp_blocked_search_t *search, mp_session_t *session,
                              uint32_t logical) {
  mp_lock(&session->lock);
  mp_device_t *device =
      session->states[logical] == MP_PARTICIPANT_ACTIVE ? session->devices[logical] : NULL;
  mp_unlock(&session->lock);
  if (device == NULL) return;
  mp_lock(&device->lock);
  mp_lock(&session->lock);
  // The first run of a stream changes only under the device's lock.
  const mp_run_t *run = session->runs[logical];
  const mp_run_t *first = device->first;
  const bool is_queued =
      session->states[logical] == MP_PARTICIPANT_ACTIVE && first != NULL && first != run;
  mp_unlock(&session->lock);
  mp_session_t *before = is_queued ? mp_session_retain(first->session) : NULL;
  const uint32_t logical_before = is_queued ? first->logical : 0;
  mp_unlock(&device->lock);
  if (before != NULL) blocked_add(search, before, logical_before);
}

// ---- Searches ----

// Adds the first run of a stream, if there is one.
static bool blocked_add_first_of(mp_blocked_search_t *search, mp_device_t *device) {
  mp_lock(&device->lock);
  const mp_run_t *first = device->first;
  mp_session_t *session = first == NULL ? NULL : mp_session_retain(first->session);
  const uint32_t logical = first == NULL ? 0 : first->logical;
  mp_unlock(&device->lock);
  if (session != NULL) blocked_add(search, session, logical);
  return session != NULL;
}

// Begins with the run behind which a launch would be queued that has not come yet. The launch lock
// is held, so it does not come meanwhile.
static void blocked_begin_before_launch(mp_client_t *client, mp_blocked_search_t *search,
                                        const mp_blocked_question_t *question) {
  const uint32_t id = mp_packet_place(question->packet);
  if (client->launches->has_blocked || id >= client->num_devices) return;
  if (mp_endpoint_has_had_subject(client->endpoint, question->packet)) return;
  mp_device_t *device = mp_client_device(client, id);
  if (device->is_local) blocked_add_first_of(search, device);
}

static void blocked_begin(mp_blocked_search_t *search, const mp_blocked_question_t *question) {
  mp_session_t *session = question->session;
  mp_participant_state_t state = MP_PARTICIPANT_DONE;
  mp_lock(&session->lock);
  if (question->missing < session->num_participants && session->error == NULL) {
    state = session->states[question->missing];
    // A run that has begun may have sent the message.
    if (state == MP_PARTICIPANT_PARKED &&
        (question->is_message ||
         mp_session_has_begun(session, question->group, question->number))) {
      state = MP_PARTICIPANT_DONE;
    }
  }
  mp_unlock(&session->lock);
  if (state == MP_PARTICIPANT_PARKED) {
    blocked_add(search, mp_session_retain(session), question->missing);
  } else if (state == MP_PARTICIPANT_ACTIVE) {
    blocked_add_first(search, session, question->missing);
  }
}

static void blocked_search(mp_client_t *client, mp_blocked_search_t *search,
                           const mp_blocked_question_t *question) {
  if (question->session == NULL) {
    blocked_begin_before_launch(client, search, question);
  } else {
    blocked_begin(search, question);
  }
  for (uint32_t i = 0; i < search->blocked.count; ++i) {
    blocked_expand(search, i);
    while (search->queued.count != 0) {
      const mp_blocked_t queued = search->queued.items[--search->queued.count];
      blocked_add_first(search, queued.session, queued.logical);
      mp_session_release(queued.session);
    }
  }
}

bool mp_blocked_find(mp_client_t *client, const mp_blocked_question_t *question,
                     mp_blocked_search_t *out_search) {
  atomic_bool *needs_look = &client->workers->needs_look;
  bool must_look = false, is_proven = false;
  for (int i = 0; i < MP_SEARCHES && !is_proven; ++i) {
    mp_blocked_deinit(out_search);
    mp_lock(&client->launches->lock);
    // The flag shows, as in runs/deadlock.c, whether a run was parked or resumed during the search:
    // if not, all that was read was true at one time.
    must_look |= atomic_exchange(needs_look, false);
    blocked_search(client, out_search, question);
    is_proven = !atomic_load(needs_look) && !out_search->has_failed;
    if (must_look) atomic_store(needs_look, true);
    mp_unlock(&client->launches->lock);
  }
  // A thread that went to sleep meanwhile has found the flag cleared, and has not looked.
  if (must_look) mp_deadlock_check(client);
  return is_proven;
}

void mp_blocked_find_first(mp_device_t *device, mp_blocked_search_t *out_search) {
  mp_lock_assert_held(&device->client->launches->lock);
  if (blocked_add_first_of(out_search, device) && out_search->blocked.count != 0) {
    blocked_expand(out_search, 0);
  }
}

void mp_blocked_deinit(mp_blocked_search_t *search) {
  for (uint32_t i = 0; i < search->blocked.count; ++i) {
    mp_session_release(search->blocked.items[i].session);
    mp_free(search->blocked.items[i].place);
  }
  for (uint32_t i = 0; i < search->queued.count; ++i) {
    mp_session_release(search->queued.items[i].session);
  }
  MP_ARRAY_FREE(&search->blocked);
  MP_ARRAY_FREE(&search->waits);
  MP_ARRAY_FREE(&search->queued);
  search->has_failed = false;
}
