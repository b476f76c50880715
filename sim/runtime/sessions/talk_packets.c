// Messages between devices of different processes that are in the same kernel.
//
// A packet waits in the session until its receiver is in the kernel. The receiver does what it says
// itself, on its own thread: between two waits, and before it parks.
#include <inttypes.h>

#include "sim/base/hash.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/sessions/session_impl.h"
#include "sim/runtime/sessions/talks.h"

// Two packets of one process to one receiver arrive in order.
static uint64_t talk_packets_key(const mp_session_talk_t *talk, uint32_t logical) {
  uint64_t hash = mp_hash_u64(MP_HASH_START, talk->call.program);
  hash = mp_hash_u64(hash, (uint64_t)talk->call.number << 32 | talk->round);
  return mp_hash_u64(hash, logical);
}

// ---- Sending ----

static bool talk_packets_is_far(void *context, uint32_t logical) {
  const mp_session_talk_t *talk = context;
  const mp_peers_t *peers = talk->session->peers;
  return peers != NULL && peers->ranks_of[logical] != peers->self;
}

static mp_status_t talk_packets_send(void *context, uint32_t logical, bool is_lasting,
                                     mp_talk_write_t write, const void *message, size_t bytes) {
  const mp_session_talk_t *talk = context;
  const mp_peers_t *peers = talk->session->peers;
  mp_world_t *world = mp_endpoint_world(peers->endpoint);
  mp_envelope_t envelope = mp_peers_envelope(peers, MP_PACKET_TALK);
  envelope.words[0] |= (uint32_t)is_lasting << 8;
  envelope.words[1] = logical;
  envelope.words[2] = talk->call.number;
  envelope.key[2] = talk_packets_key(talk, logical);
  envelope.key[3] = talk->round;
  mp_payload_t *payload = NULL;
  MP_RETURN_IF_ERROR(mp_payload_create(world, bytes, &payload));
  mp_status_t status = write(message, payload->data);
  if (status == NULL) status = mp_world_send(world, peers->ranks_of[logical], &envelope, payload);
  mp_payload_release(payload);
  return status;
}

void mp_session_link_talk(mp_talk_link_t *link) {
  link->is_far = talk_packets_is_far;
  link->send = talk_packets_send;
}

// ---- Receiving ----

static bool talk_packets_is(const mp_packet_t *packet, uint64_t key) {
  return packet->envelope.key[2] == key;
}

bool mp_session_has_talk_packet(const mp_session_t *session, const mp_session_talk_t *talk,
                                uint32_t logical) {
  mp_lock_assert_held(&session->lock);
  if (session->talk_packets.first == NULL) return false;
  const uint64_t key = talk_packets_key(talk, logical);
  for (const mp_packet_t *packet = session->talk_packets.first; packet != NULL;
       packet = packet->next) {
    if (talk_packets_is(packet, key)) return true;
  }
  return false;
}

mp_packet_t *mp_session_next_talk_packet(mp_session_t *session, const mp_session_talk_t *talk,
                                         uint32_t logical) {
  mp_lock_assert_held(&session->lock);
  if (session->talk_packets.first == NULL) return NULL;
  return mp_packet_list_take(&session->talk_packets, talk_packets_is,
                             talk_packets_key(talk, logical));
}

// The talk that the packet's receiver is in; NULL: it has not come yet, or has left.
static mp_session_talk_t *talk_packets_find(const mp_session_t *session, const mp_packet_t *packet,
                                            bool *out_has_left) {
  const uint32_t logical = packet->envelope.words[1];
  const mp_talk_rounds_t *rounds = session->talk_rounds;
  while (rounds != NULL && rounds->number != packet->envelope.words[2]) rounds = rounds->next;
  const bool has_come = rounds != NULL && rounds->counts[logical] > packet->envelope.key[3];
  for (mp_session_talk_t *talk = session->talks; talk != NULL; talk = talk->next) {
    if (!talk_packets_is(packet, talk_packets_key(talk, logical))) continue;
    const uint8_t state = talk->states[logical];
    if (state == MP_TALK_INSIDE || state == MP_TALK_WAITS) return talk;
  }
  *out_has_left = has_come || session->states[logical] == MP_PARTICIPANT_DONE;
  return NULL;
}

static mp_status_t talk_packets_refuse(const mp_session_t *session, const mp_packet_t *packet) {
  return mp_status_make(MP_FAILED_PRECONDITION,
                        "device %" PRIu32
                        " has ended a kernel before a copy or signal of process "
                        "%" PRIu32 " reached it",
                        session->names[packet->envelope.words[1]], packet->from);
}

void mp_session_take_talk_packet(mp_session_t *session, mp_packet_t *packet,
                                 mp_device_list_t *resumed) {
  mp_lock_assert_held(&session->lock);
  const uint32_t logical = packet->envelope.words[1];
  bool has_left = false;
  if (logical >= session->num_participants) {
    mp_packet_release(packet);
    return;
  }
  mp_session_talk_t *talk = talk_packets_find(session, packet, &has_left);
  if (has_left) {
    const bool is_lasting = mp_packet_place(packet) != 0;
    if (!is_lasting) {
      mp_session_poison_locked(session, talk_packets_refuse(session, packet), resumed);
    }
    mp_packet_release(packet);
    return;
  }
  mp_packet_list_push(&session->talk_packets, packet);
  if (talk == NULL || talk->states[logical] != MP_TALK_WAITS) return;
  talk->states[logical] = MP_TALK_INSIDE;
  mp_session_resume(session, logical, resumed);
}
