// Sending, and leaving: a world's last packets are its goodbyes.
#include <string.h>

#include "collectives/transport/world_impl.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/process.h"

static mp_status_t world_send_to_self(mp_world_t *world, const mp_envelope_t *envelope,
                                      mp_payload_block_t *block) {
  mp_packet_t *packet = mp_packet_create(world, world->rank, envelope, block);
  MP_RETURN_IF_NULL(packet);
  if (block != NULL) mp_payload_block_retain(block);
  mp_world_post(world, packet);
  return NULL;
}

static mp_status_t world_send_hand_over(mp_peer_state_t *peer, uint32_t to,
                                        const mp_envelope_t *envelope, mp_payload_block_t *block) {
  mp_transport_t *transport = atomic_load(&peer->transport);
  if (transport == NULL) {  // this process was restarted, and that rank has never connected to it
    return mp_status_make(MP_UNAVAILABLE, "process %u does not exist", to);
  }
  return transport->ops->send(transport, to, envelope, block);
}

// Sends the envelopes that are owed to a peer, because there was no memory, as far as there is some
// now. The caller holds the peer's send lock.
static void world_send_pay(mp_world_t *world, uint32_t to) {
  mp_peer_state_t *peer = &world->peers[to];
  uint32_t num_paid = 0;
  for (; num_paid < peer->num_owed; ++num_paid) {
    const mp_envelope_t *envelope = &peer->owed[num_paid];
    const bool is_in_vain = atomic_load(&peer->is_gone) && !mp_world_is_goodbye(envelope);
    mp_status_t status = is_in_vain ? NULL : world_send_hand_over(peer, to, envelope, NULL);
    const bool has_memory = mp_status_code(status) != MP_RESOURCE_EXHAUSTED;
    mp_status_ignore(status);
    if (!has_memory) break;
  }
  if (num_paid == 0) return;
  peer->num_owed -= num_paid;
  memmove(peer->owed, peer->owed + num_paid, peer->num_owed * sizeof(*peer->owed));
  // After the transport has them, for world_send_is_drained.
  atomic_fetch_sub(&world->num_owed, num_paid);
}

void mp_world_pay_all(mp_world_t *world) {
  for (uint32_t rank = 0; rank < world->size; ++rank) {
    mp_peer_state_t *peer = &world->peers[rank];
    mp_lock(&peer->send_lock);
    world_send_pay(world, rank);
    mp_unlock(&peer->send_lock);
  }
}

// How many envelopes may be owed, this one included. A process that waits for a goodbye or for an
// agreement would wait for ever if that could never be sent, so these have places of their own.
static uint32_t world_send_debt_limit(const mp_envelope_t *envelope, bool is_last) {
  if (is_last) return MP_MAX_OWED;
  return envelope->channel == MP_WORLD_OWN_CHANNEL ? MP_MAX_OWED - 1 : MP_MAX_OWED - 2;
}

// Sends a packet after what is owed; if there is no memory, an envelope alone is owed from now on.
// The caller holds the peer's send lock.
static mp_status_t world_send_or_owe(mp_world_t *world, uint32_t to, const mp_envelope_t *envelope,
                                     mp_payload_block_t *block, bool is_last) {
  mp_peer_state_t *peer = &world->peers[to];
  world_send_pay(world, to);
  mp_status_t status = peer->num_owed == 0 ? world_send_hand_over(peer, to, envelope, block)
                                           : mp_status_out_of_memory();
  if (mp_status_code(status) != MP_RESOURCE_EXHAUSTED || block != NULL) return status;
  if (peer->num_owed >= world_send_debt_limit(envelope, is_last)) return status;
  mp_status_ignore(status);
  peer->owed[peer->num_owed++] = *envelope;
  atomic_fetch_add(&world->num_owed, 1);
  mp_world_ring(world);
  return NULL;
}

static mp_status_t world_send_to_peer(mp_world_t *world, uint32_t to, const mp_envelope_t *envelope,
                                      mp_payload_block_t *block, bool is_last) {
  mp_peer_state_t *peer = &world->peers[to];
  // A process that has left waits only for this process's goodbye. It may leave right after this
  // look; then the packet goes nowhere, as one that it has not read before its end.
  if (!is_last) MP_RETURN_IF_ERROR(mp_world_loss(world, to));
  mp_lock(&peer->send_lock);
  mp_status_t status = peer->is_closed
                           ? mp_status_make(MP_UNAVAILABLE, "this process has left the job")
                           : world_send_or_owe(world, to, envelope, block, is_last);
  peer->is_closed = peer->is_closed || is_last;
  mp_unlock(&peer->send_lock);
  return status;
}

mp_status_t mp_world_send(mp_world_t *world, uint32_t to, const mp_envelope_t *envelope,
                          mp_payload_t *payload) {
  if (world->generation != mp_process_generation()) {
    return mp_status_make(MP_FAILED_PRECONDITION,
                          "this is a forked child: it has no part in its parent's job");
  }
  mp_payload_block_t *block = payload == NULL ? NULL : mp_payload_block_of(payload);
  return to == world->rank ? world_send_to_self(world, envelope, block)
                           : world_send_to_peer(world, to, envelope, block, false);
}

// ---- Leaving ----

bool mp_world_is_goodbye(const mp_envelope_t *envelope) {
  return envelope->channel == MP_WORLD_OWN_CHANNEL && envelope->words[0] == MP_WORLD_GOODBYE;
}

void mp_world_skip_end(mp_world_t *world) {
  mp_lock(&world->lock);
  world->skips_end = true;
  mp_unlock(&world->lock);
}

void mp_world_say_goodbye(mp_world_t *world, uint32_t exit_status) {
  // Said only once, although the end of an attempt to join and the end of the process may both come
  // here. It is sent without this lock, since sending takes each peer's lock.
  mp_lock(&world->lock);
  bool is_first = !world->has_said_goodbye;
  world->has_said_goodbye = true;
  const bool skips_end = world->skips_end;
  mp_unlock(&world->lock);
  mp_envelope_t goodbye = {.channel = MP_WORLD_OWN_CHANNEL,
                           .words = {MP_WORLD_GOODBYE, exit_status, skips_end}};
  for (uint32_t rank = 0; is_first && rank < world->size; ++rank) {
    // If the goodbye cannot be sent, the other process is gone and does not wait for it.
    if (rank != world->rank)
      mp_status_ignore(world_send_to_peer(world, rank, &goodbye, NULL, true));
  }
}

static bool world_send_is_drained(mp_world_t *world) {
  // Before the transports: a thread that sees that a debt is paid sees it in its transport, which
  // counts it.
  if (atomic_load(&world->num_owed) != 0) return false;
  for (uint32_t i = 0; i < world->num_transports; ++i) {
    if (!world->transports[i]->ops->drained(world->transports[i])) return false;
  }
  return true;
}

bool mp_world_drain(mp_world_t *world, double timeout_s) {
  double deadline = mp_clock_seconds() + timeout_s;
  // Polling will do: this happens only when the process leaves, and is short.
  for (struct timespec pause = {.tv_nsec = 20000}; !world_send_is_drained(world);) {
    if (mp_clock_seconds() >= deadline) return false;
    nanosleep(&pause, NULL);
    if (pause.tv_nsec < 1000000) pause.tv_nsec *= 2;
  }
  return true;
}

bool mp_transport_close(mp_transport_t *transport, double timeout_s) {
  const double deadline = mp_clock_seconds() + timeout_s;
  transport->ops->close(transport);
  const struct timespec pause = {.tv_nsec = 1000000};
  while (!transport->ops->is_closed(transport)) {
    if (mp_clock_seconds() >= deadline) return false;
    nanosleep(&pause, NULL);
  }
  return true;
}

bool mp_world_await_goodbyes(mp_world_t *world, double timeout_s) {
  double deadline = mp_clock_seconds() + timeout_s;
  bool in_time = true;
  mp_lock(&world->lock);
  for (uint32_t rank = 0; rank < world->size && in_time;) {
    if (rank == world->rank || atomic_load(&world->peers[rank].is_gone)) {
      ++rank;
    } else {
      in_time = mp_world_wait_changed(world, deadline);
    }
  }
  mp_unlock(&world->lock);
  return in_time;
}
