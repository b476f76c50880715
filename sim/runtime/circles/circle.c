#include "sim/runtime/circles/circle.h"

#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/base/os/clock.h"
#include "sim/runtime/circles/blocked.h"
#include "sim/runtime/circles/probe.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/order/launch_order.h"
#include "sim/runtime/order/side_stream.h"

// Probes that were forwarded, so that each is forwarded from a participant only once.
enum { MP_FORWARDED = 1024 };

struct mp_circles_s {
  uint64_t round;  // of the last probe
  uint64_t forwarded[MP_FORWARDED];
  uint32_t num_forwarded;  // so far; the newest ones are kept
};

mp_status_t mp_circles_create(mp_circles_t **out_circles) {
  mp_circles_t *circles = mp_calloc(1, sizeof(*circles));
  MP_RETURN_IF_NULL(circles);
  // Not the rounds of an earlier process of this rank.
  circles->round = (uint64_t)(mp_clock_seconds() * 1e6);
  *out_circles = circles;
  return NULL;
}

void mp_circles_destroy(mp_circles_t *circles) {
  mp_free(circles);
}

static uint32_t circle_own_rank(const mp_client_t *client) {
  return mp_world_rank(client->world);
}

// ---- Sending probes ----

static bool circle_was_forwarded(mp_circles_t *circles, const mp_probe_t *probe,
                                 const mp_blocked_t *blocked) {
  const mp_peers_t *peers = blocked->session->peers;
  uint64_t hash = mp_hash_u64(mp_hash_u64(MP_HASH_START, probe->hops[0].rank), probe->round);
  hash = mp_hash_u64(mp_hash_u64(hash, peers->devices), peers->number);
  hash = mp_hash_u64(hash, blocked->logical);
  for (uint32_t i = 0; i < MP_FORWARDED; ++i) {
    if (circles->forwarded[i] == hash) return true;
  }
  circles->forwarded[circles->num_forwarded++ % MP_FORWARDED] = hash;
  return false;
}

// Adds the hop from a blocked participant along one of its waits, and sends the probe there.
static void circle_send_along(const mp_client_t *client, mp_probe_t *probe,
                              const mp_blocked_t *blocked, const mp_blocked_wait_t *wait) {
  const mp_session_t *session = blocked->session;
  const mp_peers_t *peers = session->peers;
  mp_strbuf_t text, bytes;
  mp_strbuf_init(&text);
  mp_strbuf_init(&bytes);
  mp_strbuf_printf(&text, "process %" PRIu32 ": %s for device %" PRIu32, circle_own_rank(client),
                   blocked->place, session->names[wait->missing]);
  probe->hops[probe->num_hops++] = (mp_probe_hop_t){
      .rank = circle_own_rank(client),
      .logical = blocked->logical,
      .devices = peers->devices,
      .number = peers->number,
      .text = mp_str(mp_strbuf_text(&text)),
  };
  mp_probe_write(probe, &bytes);
  mp_envelope_t envelope = mp_peers_envelope(peers, MP_PACKET_PROBE);
  envelope.words[0] |= session->names[wait->missing] << 8;
  envelope.words[1] = wait->missing;
  envelope.words[2] = wait->is_message;
  envelope.key[2] = wait->group;
  envelope.key[3] = wait->number;
  if (!text.failed && !bytes.failed) {
    mp_peers_send(peers, peers->ranks_of[wait->missing], &envelope, mp_strbuf_text(&bytes),
                  bytes.size);
  }
  probe->num_hops -= 1;
  mp_strbuf_deinit(&bytes);
  mp_strbuf_deinit(&text);
}

// True when nothing has moved here and in the launch since a number of calls that is a power of 2.
static bool circle_is_due(const mp_client_t *client, const mp_blocked_t *blocked) {
  mp_session_t *session = blocked->session;
  mp_lock(&session->lock);
  mp_peers_t *peers = session->peers;
  const uint64_t mark = peers->num_changes + client->launches->num_launches;
  if (peers->probe_mark != mark) {
    peers->probe_mark = mark;
    peers->num_still = 0;
  } else {
    peers->num_still += 1;
  }
  const uint32_t still = peers->num_still;
  mp_unlock(&session->lock);
  return still != 0 && (still & (still - 1)) == 0;
}

// Sends probes along the waits of the first run of a stream.
static void circle_probe_stream(mp_client_t *client, mp_device_t *device) {
  mp_blocked_search_t search = {0};
  mp_blocked_find_first(device, &search);
  if (search.waits.count != 0 && !search.has_failed &&
      circle_is_due(client, &search.blocked.items[0])) {
    mp_probe_t probe = {.round = ++client->circles->round,
                        .changes = search.blocked.items[0].changes};
    for (uint32_t i = 0; i < search.waits.count; ++i) {
      circle_send_along(client, &probe, &search.blocked.items[0], &search.waits.items[i]);
    }
  }
  mp_blocked_deinit(&search);
}

void mp_circles_probe(mp_client_t *client) {
  // No launch comes meanwhile, so the side streams stay as they are.
  mp_lock(&client->launches->lock);
  mp_device_t *device = NULL;
  while ((device = mp_side_stream_next(client, device)) != NULL) {
    circle_probe_stream(client, device);
  }
  mp_unlock(&client->launches->lock);
}

// ---- Answering ----

// The probe has returned to the process that sent it: whether its first participant still waits as
// it did then, and is what the last one waits for.
static bool circle_is_closed(const mp_probe_t *probe, const mp_blocked_search_t *search) {
  const mp_probe_hop_t *first = &probe->hops[0];
  for (uint32_t i = 0; i < search->waits.count; ++i) {
    const mp_blocked_t *blocked = &search->blocked.items[search->waits.items[i].blocked];
    const mp_peers_t *peers = blocked->session->peers;
    if (blocked->logical == first->logical && peers->devices == first->devices &&
        peers->number == first->number && blocked->changes == probe->changes) {
      return true;
    }
  }
  return false;
}

static bool circle_is_same_launch(const mp_probe_hop_t *a, const mp_probe_hop_t *b) {
  return a->devices == b->devices && a->number == b->number;
}

// Sends the circle to all processes in it, this one too.
static void circle_report(const mp_client_t *client, const mp_probe_t *probe) {
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  mp_probe_write(probe, &bytes);
  for (uint32_t i = 0; i < probe->num_hops && !bytes.failed; ++i) {
    const mp_probe_hop_t *hop = &probe->hops[i];
    const mp_envelope_t envelope = {
        .channel = MP_CHANNEL_SESSIONS,
        .words = {MP_PACKET_CIRCLE},
        .key = {hop->devices, mp_endpoint_launch_key(client->endpoint, hop->number)}};
    mp_endpoint_send(client->endpoint, hop->rank, &envelope, mp_strbuf_text(&bytes), bytes.size);
  }
  mp_strbuf_deinit(&bytes);
}

static void circle_forward(mp_client_t *client, mp_probe_t *probe,
                           const mp_blocked_search_t *search) {
  uint32_t last = UINT32_MAX;  // the waits of one participant are listed together
  bool is_new = false;
  for (uint32_t i = 0; i < search->waits.count; ++i) {
    const mp_blocked_wait_t *wait = &search->waits.items[i];
    const mp_blocked_t *blocked = &search->blocked.items[wait->blocked];
    if (wait->blocked != last) is_new = !circle_was_forwarded(client->circles, probe, blocked);
    last = wait->blocked;
    if (is_new) circle_send_along(client, probe, blocked, wait);
  }
}

static void circle_take_probe(mp_client_t *client, const mp_packet_t *packet) {
  mp_probe_t probe;
  if (!mp_probe_read(packet->data, packet->bytes, &probe)) return;
  mp_session_t *session = mp_endpoint_find_subject(client->endpoint, packet);
  const mp_blocked_question_t question = {.session = session,
                                          .missing = packet->envelope.words[1],
                                          .is_message = packet->envelope.words[2] != 0,
                                          .group = packet->envelope.key[2],
                                          .number = (uint32_t)packet->envelope.key[3],
                                          .packet = packet};
  mp_blocked_search_t search = {0};
  if (mp_blocked_find(client, &question, &search)) {
    if (probe.hops[0].rank == circle_own_rank(client)) {
      if (circle_is_closed(&probe, &search)) circle_report(client, &probe);
    } else if (probe.num_hops < MP_PROBE_HOPS) {
      circle_forward(client, &probe, &search);
    }
  }
  mp_blocked_deinit(&search);
  mp_session_release(session);
}

// ---- Failing the launches of a circle ----

// A launch of a circle, and the error of all of these.
typedef struct {
  const mp_probe_t *probe;
  const mp_probe_hop_t *hop;
  const char *text;
} failure_t;

// Whether the process of hop->rank, in which the launch fails, notifies the process with this rank:
// not if that one waits in the launch and is in the circle itself.
static bool circle_is_told(uint32_t rank, const void *context) {
  const failure_t *failure = context;
  for (uint32_t i = 0; i < failure->probe->num_hops; ++i) {
    const mp_probe_hop_t *hop = &failure->probe->hops[i];
    if (hop->rank == rank && circle_is_same_launch(hop, failure->hop)) return false;
  }
  return true;
}

static void circle_fail(mp_client_t *client, const failure_t *failure, bool tells) {
  mp_session_t *session =
      mp_endpoint_find_session(client->endpoint, failure->hop->devices, failure->hop->number);
  if (session == NULL) return;
  mp_session_poison_some(session, mp_status_make(MP_ABORTED, "%s", failure->text),
                         tells ? circle_is_told : NULL, failure);
  mp_session_release(session);
}

// All launches of a circle fail, and none of them continues because another one has failed. For
// that a process first fails those that wait for it (their runs here are queued), and then the one
// in which it waits; and no other process fails that one.
static void circle_fail_all(mp_client_t *client, const mp_probe_t *probe, const char *text) {
  for (int own = 0; own < 2; ++own) {
    for (uint32_t i = 0; i < probe->num_hops; ++i) {
      const failure_t failure = {probe, &probe->hops[i], text};
      const bool is_own = !circle_is_told(circle_own_rank(client), &failure);
      if (is_own == own) circle_fail(client, &failure, is_own);
    }
  }
}

static void circle_take_circle(mp_client_t *client, const mp_packet_t *packet) {
  mp_probe_t probe;
  if (!mp_probe_read(packet->data, packet->bytes, &probe)) return;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_probe_describe(&probe, &text);
  circle_fail_all(
      client, &probe,
      text.failed ? "collectives are stuck: processes wait for each other" : mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
}

void mp_circles_answer(mp_client_t *client) {
  mp_packet_t *packet;
  while ((packet = mp_endpoint_take_inquiry(client->endpoint)) != NULL) {
    if (mp_packet_kind(packet) == MP_PACKET_PROBE) circle_take_probe(client, packet);
    if (mp_packet_kind(packet) == MP_PACKET_CIRCLE) circle_take_circle(client, packet);
    mp_packet_release(packet);
  }
}
