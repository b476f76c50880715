// Messages about sessions whose participants wait: which wait where, and for which others.
#include <inttypes.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/sessions/session.h"
#include "sim/runtime/sessions/talks.h"

enum {
  MP_MAX_NAMES = 8,   // devices (or ranges of them) named per list; others are only counted
  MP_MAX_PLACES = 4,  // meeting points named; participants at others are counted
};

// Appends "device 2" or "devices 0, 1, 5-9": the participants with mark[i] == wanted. Returns their
// number.
static uint32_t stuck_print_devices(mp_strbuf_t *out, const mp_session_t *session,
                                    const uint32_t *mark, uint32_t wanted) {
  uint32_t total = 0, shown = 0, ranges = 0;
  for (uint32_t i = 0; i < session->num_participants; ++i) total += mark[i] == wanted;
  mp_strbuf_puts(out, total == 1 ? "device " : "devices ");
  for (uint32_t i = 0; i < session->num_participants && ranges < MP_MAX_NAMES; ++i) {
    if (mark[i] != wanted) continue;
    uint32_t end = i;
    while (end + 1 < session->num_participants && mark[end + 1] == wanted &&
           session->names[end + 1] == session->names[end] + 1) {
      ++end;
    }
    if (end - i < 2) end = i;  // a range has at least three devices
    mp_strbuf_printf(out, "%s%" PRIu32, ranges == 0 ? "" : ", ", session->names[i]);
    if (end != i) mp_strbuf_printf(out, "-%" PRIu32, session->names[end]);
    shown += end - i + 1;
    ranges += 1;
    i = end;
  }
  if (shown < total) mp_strbuf_printf(out, " and %" PRIu32 " more", total - shown);
  return total;
}

static void stuck_print_place(mp_strbuf_t *out, const mp_collective_t *collective) {
  mp_strbuf_printf(out, "%s (%s)", collective->name, collective->location);
}

// Where participants wait. Places are numbered from 1 in `mark`; 0: at none.
typedef struct {
  const mp_collective_t *collective;
  uint32_t count;  // participants that wait there
} place_t;

typedef struct {
  place_t places[MP_MAX_PLACES];
  uint32_t num_places, others;  // others: participants that wait at further places
  uint32_t *mark;               // [num_participants]
} places_t;

static void stuck_add_waiter(places_t *p, const mp_collective_t *collective, uint32_t logical) {
  uint32_t i = 0;
  while (i < p->num_places && p->places[i].collective != collective) ++i;
  if (i == MP_MAX_PLACES) {
    p->others += 1;
    return;
  }
  if (i == p->num_places) p->places[p->num_places++] = (place_t){collective, 0};
  p->places[i].count += 1;
  p->mark[logical] = i + 1;
}

static void stuck_add_meeting(places_t *p, const mp_meeting_t *meeting) {
  for (uint32_t i = 0; i < meeting->num_members; ++i) {
    const mp_arrival_t *arrival = meeting->arrivals[i];
    if (arrival != NULL) stuck_add_waiter(p, arrival->collective, arrival->logical);
  }
}

static const mp_remote_collective_t *stuck_first_remote(const mp_session_t *session) {
  return session->peers == NULL ? NULL : session->peers->remotes;
}

static void stuck_collect(const mp_session_t *session, places_t *p) {
  mp_meeting_t *meeting = NULL;
  while ((meeting = mp_rendezvous_next(&session->rendezvous, meeting)) != NULL) {
    stuck_add_meeting(p, meeting);
  }
  for (const mp_remote_collective_t *x = stuck_first_remote(session); x != NULL; x = x->next) {
    if (x->is_waiting) stuck_add_meeting(p, x->meeting);
  }
  for (const mp_receiver_t *r = session->mailbox.receivers.first; r != NULL; r = r->next) {
    stuck_add_waiter(p, r->collective, r->target);
  }
}

// Sets mark[i] = value for the participants in this state for which another one waits. Returns
// their number.
static uint32_t stuck_mark_missing(const mp_session_t *session, mp_participant_state_t state,
                                   uint32_t *mark, uint32_t value) {
  uint32_t count = 0;
  mp_meeting_t *meeting = NULL;
  while ((meeting = mp_rendezvous_next(&session->rendezvous, meeting)) != NULL) {
    for (uint32_t i = 0; i < meeting->num_members; ++i) {
      uint32_t logical = meeting->members[i];
      if (session->states[logical] != state || mark[logical] == value) continue;
      mark[logical] = value;
      ++count;
    }
  }
  for (const mp_remote_collective_t *x = stuck_first_remote(session); x != NULL; x = x->next) {
    for (uint32_t i = 0; i < x->meeting->num_members; ++i) {
      uint32_t logical = x->meeting->members[i];
      if (!x->is_waiting || !mp_remote_collective_misses(x, x->sequence->layout->process_of[i]))
        continue;
      if (session->states[logical] != state || mark[logical] == value) continue;
      mark[logical] = value;
      ++count;
    }
  }
  for (const mp_receiver_t *r = session->mailbox.receivers.first; r != NULL; r = r->next) {
    if (session->states[r->source] != state || mark[r->source] == value) continue;
    mark[r->source] = value;
    ++count;
  }
  return count;
}

static void stuck_print(mp_strbuf_t *out, const mp_session_t *session, places_t *p) {
  const uint32_t absent = MP_MAX_PLACES + 1, queued = absent + 1;
  uint32_t most = 0;
  for (uint32_t i = 1; i < p->num_places; ++i) {
    if (p->places[i].count > p->places[most].count) most = i;
  }
  mp_strbuf_puts(out, "collectives are stuck: ");
  bool has_absent = stuck_mark_missing(session, MP_PARTICIPANT_DONE, p->mark, absent) != 0;
  if (has_absent) {
    stuck_print_devices(out, session, p->mark, absent);
    mp_strbuf_puts(out, " finished without reaching ");
    stuck_print_place(out, p->places[most].collective);
    mp_strbuf_puts(out, " that ");
    uint32_t count = stuck_print_devices(out, session, p->mark, most + 1);
    mp_strbuf_puts(out, count == 1 ? " waits at" : " wait at");
  }
  bool is_first = !has_absent;
  for (uint32_t i = 0; i < p->num_places; ++i) {
    if (has_absent && i == most) continue;
    if (!is_first) mp_strbuf_puts(out, "; ");
    is_first = false;
    uint32_t count = stuck_print_devices(out, session, p->mark, i + 1);
    mp_strbuf_puts(out, count == 1 ? " waits at " : " wait at ");
    stuck_print_place(out, p->places[i].collective);
  }
  if (stuck_mark_missing(session, MP_PARTICIPANT_ACTIVE, p->mark, queued) != 0) {
    mp_strbuf_puts(out, "; on ");
    stuck_print_devices(out, session, p->mark, queued);
    mp_strbuf_puts(out, " the launch is queued behind one that is stuck as well");
  }
  if (p->others != 0) {
    mp_strbuf_printf(out, "; %" PRIu32 " more devices wait at other places", p->others);
  }
}

mp_status_t mp_session_describe_stuck(const mp_session_t *session) {
  mp_lock_assert_held(&session->lock);
  places_t places = {.mark = mp_calloc(session->num_participants, sizeof(uint32_t))};
  MP_RETURN_IF_NULL(places.mark);
  stuck_collect(session, &places);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_session_describe_stuck_talks(session, &text);
  if (text.size != 0 && places.num_places != 0) mp_strbuf_puts(&text, "; ");
  if (text.size == 0 || places.num_places != 0) stuck_print(&text, session, &places);
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) status = mp_status_make(MP_ABORTED, "%s", mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  mp_free(places.mark);
  return status;
}

// Appends ", called at train.py:12", unless the places printed from `begin` on already name it: a
// program that the framework has cached names the line that first called it.
static void stuck_print_caller(mp_strbuf_t *out, const mp_session_t *session, size_t begin) {
  if (session->caller == NULL || out->size == begin) return;
  const char *found = strstr(mp_strbuf_text(out) + begin, session->caller);
  const char next = found == NULL ? '0' : found[strlen(session->caller)];
  if (next < '0' || next > '9') return;
  mp_strbuf_printf(out, ", called at %s", session->caller);
}

void mp_session_describe_place(const mp_session_t *session, const mp_wait_t *wait,
                               mp_strbuf_t *out) {
  mp_lock_assert_held(&session->lock);
  const size_t begin = out->size;
  stuck_print_place(out, wait->collective);
  const mp_groups_t *groups = wait->collective->groups;
  const int32_t group = groups == NULL ? -1 : groups->group_of[wait->logical];
  uint32_t *mark =
      group < 0 ? NULL : mp_calloc(session->num_participants, sizeof(*mark));  // NULL: no memory
  if (mark != NULL) {
    for (uint32_t i = groups->offsets[group]; i < groups->offsets[group + 1]; ++i) {
      mark[groups->members[i]] = 1;
    }
    mp_strbuf_puts(out, " of ");
    stuck_print_devices(out, session, mark, 1);
    mp_free(mark);
  }
  stuck_print_caller(out, session, begin);
}

// ---- Waiting for other processes ----

bool mp_session_misses_rank(const mp_session_t *session, uint32_t rank) {
  mp_lock_assert_held(&session->lock);
  for (const mp_remote_collective_t *x = stuck_first_remote(session); x != NULL; x = x->next) {
    const int64_t process = mp_group_layout_find(x->sequence->layout, rank);
    if (x->is_waiting && process >= 0 && mp_remote_collective_misses(x, (uint32_t)process))
      return true;
  }
  for (const mp_receiver_t *r = session->mailbox.receivers.first; r != NULL; r = r->next) {
    if (session->peers->ranks_of[r->source] == rank) return true;
  }
  return mp_session_talks_miss(session, rank);
}

bool mp_session_waits_for_peers(const mp_session_t *session) {
  mp_lock_assert_held(&session->lock);
  for (const mp_remote_collective_t *x = stuck_first_remote(session); x != NULL; x = x->next) {
    if (x->is_waiting) return true;
  }
  for (const mp_receiver_t *r = session->mailbox.receivers.first; r != NULL; r = r->next) {
    if (session->states[r->source] == MP_PARTICIPANT_REMOTE) return true;
  }
  return mp_session_talks_miss(session, -1);
}

static void stuck_print_places(mp_strbuf_t *out, const mp_session_t *session, places_t *p) {
  const size_t begin = out->size;
  stuck_collect(session, p);
  for (uint32_t i = 0; i < p->num_places; ++i) {
    if (i != 0) mp_strbuf_puts(out, "; ");
    uint32_t count = stuck_print_devices(out, session, p->mark, i + 1);
    mp_strbuf_puts(out, count == 1 ? " waits at " : " wait at ");
    stuck_print_place(out, p->places[i].collective);
  }
  mp_session_describe_talks(session, p->num_places == 0 ? "" : "; ", out);
  stuck_print_caller(out, session, begin);
}

void mp_session_describe_wait(const mp_session_t *session, double seconds, mp_strbuf_t *out) {
  mp_lock_assert_held(&session->lock);
  const mp_peers_t *peers = session->peers;
  places_t places = {.mark = mp_calloc(session->num_participants, sizeof(uint32_t))};
  if (places.mark == NULL) return;
  mp_strbuf_printf(out, "launch %" PRIu64 ": ", peers->number);
  stuck_print_places(out, session, &places);
  mp_strbuf_printf(out, "; missing for %.0f s: ", seconds);
  bool is_first = true;
  for (uint32_t i = 0; i < peers->num_ranks; ++i) {
    if (!mp_session_misses_rank(session, peers->ranks[i])) continue;
    const uint32_t value = MP_MAX_PLACES + 1 + i;
    for (uint32_t d = 0; d < session->num_participants; ++d) {
      if (peers->ranks_of[d] == peers->ranks[i]) places.mark[d] = value;
    }
    if (!is_first) mp_strbuf_puts(out, ", ");
    is_first = false;
    stuck_print_devices(out, session, places.mark, value);
    mp_strbuf_printf(out, " of process %" PRIu32, peers->ranks[i]);
  }
  mp_free(places.mark);
}

// Appends "devices 1, 2" and `words` for the participants of this process in this state, if there
// are any.
static void stuck_print_state(mp_strbuf_t *out, const mp_session_t *session, uint32_t *mark,
                              mp_participant_state_t state, const char *words) {
  const uint32_t value = MP_MAX_PLACES + 1 + (uint32_t)state;
  bool has_any = false;
  for (uint32_t d = 0; d < session->num_participants; ++d) {
    if (session->states[d] != state || session->peers->ranks_of[d] != session->peers->self)
      continue;
    mark[d] = value;
    has_any = true;
  }
  if (!has_any) return;
  if (out->size != 0) mp_strbuf_puts(out, "; ");
  stuck_print_devices(out, session, mark, value);
  mp_strbuf_puts(out, words);
}

// Appends "; of these, devices 1, 2 in a foreign function" for the runs that are out.
static void stuck_print_out(mp_strbuf_t *out, const mp_session_t *session, uint32_t *mark) {
  const uint32_t value = MP_MAX_PLACES + 2 + (uint32_t)MP_PARTICIPANT_REMOTE;
  bool has_any = false;
  for (uint32_t d = 0; d < session->num_participants; ++d) {
    const mp_run_t *run = session->runs[d];
    if (run == NULL || !session->devices[d]->client->runner->is_out(run)) continue;
    mark[d] = value;
    has_any = true;
  }
  if (!has_any) return;
  mp_strbuf_puts(out, "; of these, ");
  stuck_print_devices(out, session, mark, value);
  mp_strbuf_puts(out, " in a foreign function (a Python callback, for one)");
}

void mp_session_describe_own(const mp_session_t *session, mp_strbuf_t *out) {
  mp_lock_assert_held(&session->lock);
  places_t places = {.mark = mp_calloc(session->num_participants, sizeof(uint32_t))};
  if (places.mark == NULL) return;
  stuck_print_places(out, session, &places);
  stuck_print_state(out, session, places.mark, MP_PARTICIPANT_ACTIVE, " running or queued");
  stuck_print_out(out, session, places.mark);
  stuck_print_state(out, session, places.mark, MP_PARTICIPANT_ABSENT, " not launched yet");
  stuck_print_state(out, session, places.mark, MP_PARTICIPANT_DONE, " done");
  mp_free(places.mark);
}
