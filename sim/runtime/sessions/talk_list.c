// The talks of a session: their release, and messages about them.
#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/runtime/sessions/talks.h"

void mp_session_release_talk(mp_session_talk_t *talk) {
  talk->kernel->talk->release(talk->talk);
  mp_free(talk);
}

void mp_session_release_talks(mp_session_t *session) {
  for (mp_session_talk_t *talk; (talk = session->talks) != NULL;) {
    session->talks = talk->next;
    mp_session_release_talk(talk);
  }
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

void mp_session_describe_talks(const mp_session_t *session, mp_strbuf_t *out) {
  mp_lock_assert_held(&session->lock);
  uint32_t count = 0;
  for (const mp_session_talk_t *talk = session->talks; talk != NULL; talk = talk->next) {
    for (uint32_t i = 0; i < session->num_participants; ++i) {
      if (talk->states[i] != MP_TALK_WAITS) continue;
      if (++count > TALK_LIST_MOST_SHOWN) continue;
      mp_strbuf_printf(out, "%sdevice %" PRIu32 " waits in ",
                       count == 1 ? "kernels are stuck: " : "; ", session->names[i]);
      talk->kernel->talk->describe(talk->talk, i, out);
    }
  }
  if (count > TALK_LIST_MOST_SHOWN) {
    mp_strbuf_printf(out, "; %" PRIu32 " more devices wait", count - TALK_LIST_MOST_SHOWN);
  }
  if (count != 0) talk_list_print_done(session, out);
}
