// The effects of packets from other processes on a session.
//
// All this runs on the world's progress thread or the launching thread, under the locks of the
// router and of the session. A run that a packet resumes is scheduled once the session's lock is
// free: a worker may run it at once, and its next meeting needs that lock.
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/table.h"
#include "sim/runtime/sessions/session_impl.h"
#include "sim/runtime/sessions/talks.h"

// True when the caller should continue the remote collective itself. If there are several, workers
// can do some at the same time.
static bool deliver_may_carry(const mp_session_t *session, const mp_remote_collective_t *remote) {
  return session->peers->remotes == remote && remote->next == NULL &&
         mp_endpoint_carries(session->peers->endpoint) && mp_remote_stripes_are_light(remote);
}

static void deliver_take_payload(mp_session_t *session, mp_packet_t *packet,
                                 mp_device_list_t *resumed) {
  mp_remote_collective_t *ready;
  mp_status_t status = mp_remote_collective_file(session->peers, packet, &ready);
  if (status != NULL) {
    mp_session_poison_locked(session, status, resumed);
  } else if (ready != NULL) {
    ready->is_waiting = false;
    if (deliver_may_carry(session, ready)) mp_session_set_carried(session, ready, true);
    ready->is_ready = !ready->is_carried;
    if (ready->is_ready) mp_session_resume(session, ready->holder->logical, resumed);
  }
}

static void deliver_take_message(mp_session_t *session, mp_packet_t *packet,
                                 mp_device_list_t *resumed) {
  const uint32_t source = packet->envelope.words[1], target = packet->envelope.words[2];
  if (source >= session->num_participants || target >= session->num_participants) {
    mp_packet_release(packet);
    return;
  }
  mp_session_post(session,
                  mp_message_of_packet((int64_t)packet->envelope.key[2], source, target,
                                       (uint32_t)packet->envelope.key[3],
                                       (uint32_t)(packet->envelope.key[3] >> 32), packet),
                  resumed);
}

static void deliver_take_poison(mp_session_t *session, mp_packet_t *packet,
                                mp_device_list_t *resumed) {
  const uint32_t word = packet->envelope.words[1];
  const mp_status_code_t code = word == MP_OK ? MP_UNKNOWN : mp_status_code_of_number(word);
  static const char wordless[] = "the launch failed; there was no memory for the reason";
  const bool has_words = packet->bytes != 0;
  const mp_status_t error =
      mp_status_make(code, "%.*s (on process %u)",
                     mp_str_precision(has_words ? packet->bytes : sizeof(wordless) - 1),
                     has_words ? (const char *)packet->data : wordless, packet->from);
  mp_packet_release(packet);
  mp_session_poison_quietly(session, error, resumed);
}

static void deliver_take_leave(mp_session_t *session, mp_packet_t *packet,
                               mp_device_list_t *resumed) {
  mp_peers_t *peers = session->peers;
  const int64_t i = mp_peers_find(peers, packet->from);
  // The lock joins this and the check below for participants that wait for that process: a
  // participant that parks later checks under the same lock, and finds that nothing will come.
  if (i >= 0) peers->has_left[i] = true;
  for (uint32_t p = 0; p < session->num_participants; ++p) {
    if (peers->ranks_of[p] == packet->from) session->states[p] = MP_PARTICIPANT_DONE;
  }
  mp_packet_release(packet);
  mp_session_poison_if_stuck(session, resumed);
}

static void deliver_take_ask(mp_session_t *session, mp_packet_t *packet,
                             mp_device_list_t *resumed) {
  (void)resumed;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_session_describe_own(session, &text);
  const mp_envelope_t envelope = mp_peers_envelope(session->peers, MP_PACKET_ANSWER);
  mp_peers_send(session->peers, packet->from, &envelope, mp_strbuf_text(&text), text.size);
  mp_strbuf_deinit(&text);
  mp_packet_release(packet);
}

static void deliver_take_answer(mp_session_t *session, mp_packet_t *packet,
                                mp_device_list_t *resumed) {
  (void)resumed;
  const int64_t i = mp_peers_find(session->peers, packet->from);
  if (i < 0) {
    mp_packet_release(packet);
    return;
  }
  mp_packet_release(session->peers->answers[i]);
  session->peers->answers[i] = packet;
}

static void deliver_take_talk(mp_session_t *session, mp_packet_t *packet,
                              mp_device_list_t *resumed) {
  mp_session_take_talk_packet(session, packet, resumed);
}

// The handler of each kind of packet.
#define PACKETS(X)    \
  X(PAYLOAD, payload) \
  X(MESSAGE, message) \
  X(TALK, talk)       \
  X(POISON, poison)   \
  X(LEAVE, leave)     \
  X(DISPUTE, payload) \
  X(ASK, ask)         \
  X(ANSWER, answer)
static void (*const k_packets[MP_PACKET_KINDS])(mp_session_t *session, mp_packet_t *packet,
                                                mp_device_list_t *resumed) = {
#define ROW(kind, taker) [MP_PACKET_##kind] = deliver_take_##taker,
    PACKETS(ROW)
#undef ROW
};
_Static_assert(MP_ROWS(PACKETS) == MP_PACKET_KINDS, "every packet is taken");

bool mp_session_deliver(mp_session_t *session, mp_packet_t *packet) {
  mp_device_list_t resumed = {0};
  bool is_carried = false;
  const size_t kind = (size_t)mp_packet_kind(packet);
  mp_lock(&session->lock);
  session->peers->num_changes += kind != MP_PACKET_ASK && kind != MP_PACKET_ANSWER;
  if (session->error != NULL || kind >= MP_PACKET_KINDS) {
    mp_packet_release(packet);
  } else {
    const bool was_carried = mp_session_carried(session) != NULL;
    k_packets[kind](session, packet, &resumed);
    is_carried = !was_carried && mp_session_carried(session) != NULL;
  }
  mp_unlock(&session->lock);
  mp_schedule(&resumed);
  return is_carried;
}

// The error of a session that has lost a process: why, and what waits here for other processes.
static mp_status_t deliver_explain_loss(const mp_session_t *session, mp_status_t why) {
  mp_lock_assert_held(&session->lock);
  if (!mp_session_waits_for_peers(session)) return mp_status_retain(why);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, "%s; ", mp_status_message(why));
  mp_session_describe_own(session, &text);
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) status = mp_status_make(mp_status_code(why), "%s", mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  return status;
}

// Fails the launch with `why` (borrowed), unless the process with this rank takes no part in it or
// has done its part.
static void deliver_fail_without(mp_session_t *session, uint32_t rank, mp_status_t why,
                                 bool is_told) {
  mp_device_list_t resumed = {0};
  mp_lock(&session->lock);
  const int64_t i = mp_peers_find(session->peers, rank);
  if (i >= 0 && !session->peers->has_left[i]) {
    mp_status_t error = deliver_explain_loss(session, why);
    if (is_told) {
      mp_session_poison_locked(session, error, &resumed);
    } else {
      session->peers->has_left[i] = true;
      mp_session_poison_quietly(session, error, &resumed);
    }
  }
  mp_unlock(&session->lock);
  mp_schedule(&resumed);
}

// Called when the process with this rank has ended. The other processes notice it by themselves.
static void deliver_lose(mp_session_t *session, uint32_t rank, mp_status_t why) {
  deliver_fail_without(session, rank, why, false);
}

// Called when another process has replaced the one with this rank. The new one is notified, too:
// its first launch is the one after this launch (mp_endpoint_first_number).
static void deliver_replace(mp_session_t *session, uint32_t rank, mp_status_t why) {
  deliver_fail_without(session, rank, why, true);
}

// Called for each launch of this process, when another process asks about one that has not come.
static void deliver_describe_wait(mp_session_t *session, mp_strbuf_t *out) {
  mp_lock(&session->lock);
  if (session->error == NULL && mp_session_waits_for_peers(session)) {
    mp_strbuf_puts(out, "; in another launch ");
    mp_session_describe_own(session, out);
  }
  mp_unlock(&session->lock);
}

const mp_session_calls_t mp_session_calls = {
    .retain = mp_session_retain,
    .release = mp_session_release,
    .deliver = mp_session_deliver,
    .carry_on = mp_session_carry_on,
    .lose = deliver_lose,
    .replace = deliver_replace,
    .poison = mp_session_poison,
    .describe_wait = deliver_describe_wait,
    .is_moving = mp_session_is_moving,
    .is_complete = mp_session_is_complete,
};
