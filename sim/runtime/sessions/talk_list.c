// The talks of a session: their release, waits in them, and messages about them.
#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/runtime/sessions/talks.h"

void mp_session_release_talk(mp_session_talk_t *talk) {
  talk->call.kernel->talk->release(talk->talk);
  mp_free(talk);
}

void mp_session_release_talks(mp_session_t *session) {
  for (mp_session_talk_t *talk; (talk = session->talks) != NULL;) {
    session->talks = talk->next;
    mp_session_release_talk(talk);
  }
  for (mp_talk_rounds_t *rounds; (rounds = session->talk_rounds) != NULL;) {
    session->talk_rounds = rounds->next;
    mp_free(rounds);
  }
  mp_packet_list_clear(&session->talk_packets);
}

static bool talk_list_waits(const mp_session_t *session) {
  for (const mp_session_talk_t *talk = session->talks; talk != NULL; talk = talk->next) {
    for (uint32_t i = 0; i < session->num_participants; ++i) {
      if (talk->states[i] == MP_TALK_WAITS) return true;
    }
  }
  return false;
}

bool mp_session_talks_miss(const mp_session_t *session, int64_t rank) {
  if (session->peers == NULL || !talk_list_waits(session)) return false;
  for (uint32_t i = 0; i < session->num_participants; ++i) {
    if (session->states[i] != MP_PARTICIPANT_REMOTE) continue;
    if (rank < 0 || session->peers->ranks_of[i] == rank) return true;
  }
  return false;
}

// ---- Texts ----

enum { TALK_LIST_MOST_SHOWN = 8 };  // participants of which a message says where they wait

// Appends "; device 1 has ended" or "; devices 1, 2 have ended".
static void talk_list_print_done(const mp_session_t *session, mp_strbuf_t *out) {
  uint32_t count = 0, shown = 0;
  for (uint32_t i = 0; i < session->num_participants; ++i) {
    count += session->states[i] == MP_PARTICIPANT_DONE;
  }
  if (count == 0) return;
  mp_strbuf_puts(out, count == 1 ? "; device " : "; devices ");
  for (uint32_t i = 0; i < session->num_participants && shown < TALK_LIST_MOST_SHOWN; ++i) {
    if (session->states[i] != MP_PARTICIPANT_DONE) continue;
    mp_strbuf_printf(out, "%s%" PRIu32, shown == 0 ? "" : ", ", session->names[i]);
    shown += 1;
  }
  if (shown < count) mp_strbuf_printf(out, " and %" PRIu32 " more", count - shown);
  mp_strbuf_puts(out, count == 1 ? " has ended" : " have ended");
}

void mp_session_describe_talks(const mp_session_t *session, const char *words, mp_strbuf_t *out) {
  mp_lock_assert_held(&session->lock);
  uint32_t count = 0;
  for (const mp_session_talk_t *talk = session->talks; talk != NULL; talk = talk->next) {
    for (uint32_t i = 0; i < session->num_participants; ++i) {
      if (talk->states[i] != MP_TALK_WAITS) continue;
      if (++count > TALK_LIST_MOST_SHOWN) continue;
      mp_strbuf_printf(out, "%sdevice %" PRIu32 " waits in ", count == 1 ? words : "; ",
                       session->names[i]);
      talk->call.kernel->talk->describe(talk->talk, i, out);
    }
  }
  if (count > TALK_LIST_MOST_SHOWN) {
    mp_strbuf_printf(out, "; %" PRIu32 " more devices wait", count - TALK_LIST_MOST_SHOWN);
  }
}

void mp_session_describe_stuck_talks(const mp_session_t *session, mp_strbuf_t *out) {
  mp_session_describe_talks(session, "kernels are stuck: ", out);
  if (talk_list_waits(session)) talk_list_print_done(session, out);
}
