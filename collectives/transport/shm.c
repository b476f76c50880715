#include "collectives/transport/shm.h"

#include <string.h>
#include <unistd.h>

#include "collectives/transport/shm_impl.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/log.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/process.h"

// How soon to try again to allocate, because nothing rings when memory becomes free.
enum { MP_SHM_RETRY_US = 1000 };

// ---- Sending ----

static bool shm_has_room(mp_shm_peer_t *peer) {
  // The load is the other side of the reader's store in shm_receive: the slots before that tail
  // have been read. For shm_await_room it must be sequentially consistent, too.
  return peer->head - atomic_load(&peer->out->tail) < MP_RING_SLOTS;
}

// True when the ring has room. Otherwise the peer will ring when it has taken something.
static bool shm_await_room(mp_shm_peer_t *peer) {
  if (shm_has_room(peer)) return true;
  // The reader moves its tail before it checks for waiting messages, both sequentially consistent:
  // either it sees this store, or the second check here sees the room.
  atomic_store(&peer->out->writer_waits, 1);
  return shm_has_room(peer);
}

// Puts a message into a ring that has room.
static void shm_put(mp_shm_t *self, mp_shm_peer_t *peer, const mp_envelope_t *envelope,
                    mp_payload_block_t *block) {
  mp_lock_assert_held(&self->world->peers[peer->rank].send_lock);
  MP_ASSERT(shm_has_room(peer));
  mp_ring_slot_t *slot = &peer->out->slots[peer->head % MP_RING_SLOTS];
  slot->envelope = *envelope;
  slot->offset = 0;
  slot->bytes = 0;
  if (block != NULL && block->payload.bytes <= MP_INLINE_BYTES) {
    slot->bytes = (uint32_t)block->payload.bytes;
    if (slot->bytes != 0) memcpy(slot->data, mp_payload_block_data(block), slot->bytes);
  } else if (block != NULL) {
    slot->offset = mp_segment_offset_of(self->own, block);
    MP_ASSERT(slot->offset != 0);
    mp_payload_block_retain(block);
  }
  // Release: the slot, and the bytes of the block, come before it. The room in it was read with
  // acquire, so that nothing is written before the reader has left the slot.
  atomic_store_explicit(&peer->out->head, ++peer->head, memory_order_release);
}

static mp_status_t shm_put_off(mp_shm_peer_t *peer, const mp_envelope_t *envelope,
                               mp_payload_block_t *block) {
  mp_shm_late_t *late = mp_malloc(sizeof(*late));
  MP_RETURN_IF_NULL(late);
  *late = (mp_shm_late_t){.envelope = *envelope, .block = block};
  if (block != NULL) mp_payload_block_retain(block);
  MP_QUEUE_PUSH(&peer->late, late, next);
  atomic_store(&peer->has_late, true);
  return NULL;
}

static mp_status_t shm_send(mp_transport_t *transport, uint32_t to, const mp_envelope_t *envelope,
                            mp_payload_block_t *block) {
  mp_shm_t *self = (mp_shm_t *)transport;
  mp_shm_peer_t *peer = self->by_rank[to];
  MP_ASSERT(peer != NULL && peer->rank == to);
  mp_lock_assert_held(&self->world->peers[to].send_lock);
  if (block != NULL && block->payload.bytes > MP_INLINE_BYTES &&
      mp_segment_offset_of(self->own, block) == 0) {
    return mp_status_make(MP_INTERNAL, "a payload of another world was to be sent");
  }
  if (peer->is_buried) return NULL;  // as if it had been sent before the peer's end
  if (peer->late.first != NULL) return shm_put_off(peer, envelope, block);
  if (!shm_await_room(peer)) {
    MP_RETURN_IF_ERROR(shm_put_off(peer, envelope, block));
    // The peer may have made room, and rung, before this message was in the list. So the progress
    // thread must look again.
    mp_world_ring(self->world);
    return NULL;
  }
  shm_put(self, peer, envelope, block);
  mp_doorbell_ring(mp_segment_doorbell(peer->segment));
  return NULL;
}

void mp_shm_drop_first_late(mp_shm_peer_t *peer) {
  mp_shm_late_t *late = peer->late.first;
  MP_ASSERT(late->next != NULL || late == peer->late.last);
  MP_QUEUE_POP(&peer->late, next);
  if (peer->late.first == NULL) atomic_store(&peer->has_late, false);
  mp_payload_block_release(late->block);
  mp_free(late);
}

// True when the first message that waits need not be sent any more: a process that has left waits
// only for this process's goodbye, and a dead one for nothing.
static bool shm_is_in_vain(const mp_shm_t *self, const mp_shm_peer_t *peer) {
  // Set by this same thread.
  if (!atomic_load(&self->world->peers[peer->rank].is_gone)) return false;
  bool is_alive = peer->pid != 0 && peer->dead_since == 0;
  return !is_alive || !mp_world_is_goodbye(&peer->late.first->envelope);
}

// Moves messages that wait into the ring, as far as there is room.
static bool shm_catch_up(mp_shm_t *self, mp_shm_peer_t *peer) {
  // Relaxed: a thread that defers a message rings afterwards, and this thread has read the bell.
  if (!atomic_load_explicit(&peer->has_late, memory_order_relaxed)) return false;
  mp_peer_state_t *state = &self->world->peers[peer->rank];
  bool did = false;
  mp_lock(&state->send_lock);
  while (peer->late.first != NULL) {
    if (!shm_is_in_vain(self, peer)) {
      if (!shm_await_room(peer)) break;
      shm_put(self, peer, &peer->late.first->envelope, peer->late.first->block);
    }
    mp_shm_drop_first_late(peer);
    did = true;
  }
  mp_unlock(&state->send_lock);
  if (did) mp_doorbell_ring(mp_segment_doorbell(peer->segment));
  return did;
}

// ---- Receiving ----

// A peer has sent an invalid message: it counts as lost. Its later messages are taken and dropped,
// so that its ring does not fill up: a process that leaves waits until all its messages were taken.
static void shm_lose_for_damage(mp_shm_t *self, mp_shm_peer_t *peer, const char *what) {
  peer->is_damaged = true;
  char name[MP_PEER_NAME_BYTES];
  mp_world_peer_name(self->world, peer->rank, name);
  mp_world_lose(self->world, peer->rank,
                mp_status_make(MP_UNAVAILABLE, "a message of %s %s", name, what));
}

// Takes one message; false: there is no memory for it, and it stays in the ring.
static bool shm_take_slot(mp_shm_t *self, mp_shm_peer_t *peer, const mp_ring_slot_t *slot) {
  if (peer->is_damaged) return true;
  mp_world_t *world = self->world;
  mp_packet_t *packet = NULL;
  if (slot->offset == 0) {
    size_t bytes = slot->bytes <= MP_INLINE_BYTES ? slot->bytes : MP_INLINE_BYTES;
    packet = mp_packet_create_inline(world, peer->rank, &slot->envelope, slot->data, bytes);
  } else {
    mp_payload_block_t *block = mp_segment_block_at(peer->segment, slot->offset);
    if (block == NULL) {
      shm_lose_for_damage(self, peer, "has no place in its memory");
      return true;
    }
    packet = mp_packet_create(world, peer->rank, &slot->envelope, block);
    if (packet != NULL) mp_packet_keep_segment(packet, peer->segment);
  }
  if (packet == NULL) return false;
  mp_world_arrive(world, packet);
  return true;
}

static bool shm_receive(mp_shm_t *self, mp_shm_peer_t *peer) {
  // Acquire, with shm_put in the other process: the slots up to here are written.
  unsigned head = atomic_load_explicit(&peer->in->head, memory_order_acquire);
  if (head == peer->tail) return false;
  bool did = false;
  while (head != peer->tail) {
    if (!shm_take_slot(self, peer, &peer->in->slots[peer->tail % MP_RING_SLOTS])) {
      self->lacks_memory = true;
      break;
    }
    // After the slot was read. Sequentially consistent, before the check below whether the writer
    // waits (shm_await_room).
    atomic_store(&peer->in->tail, ++peer->tail);
    did = true;
  }
  if (atomic_load(&peer->in->writer_waits) != 0) {
    // Cleared before the bell: a writer that finds the ring full again says so again.
    atomic_store(&peer->in->writer_waits, 0);
    mp_doorbell_ring(mp_segment_doorbell(peer->segment));
  }
  return did;
}

static bool shm_progress(mp_transport_t *transport) {
  mp_shm_t *self = (mp_shm_t *)transport;
  bool did = false;
  self->lacks_memory = false;
  for (uint32_t i = 0; i < self->num_peers; ++i) {
    if (!mp_shm_is_there(&self->peers[i])) continue;
    did |= shm_receive(self, &self->peers[i]);
    did |= shm_catch_up(self, &self->peers[i]);
  }
  did |= mp_shm_open_doors(self);
  return did;
}

static uint32_t shm_poll_after_us(mp_transport_t *transport) {
  return ((const mp_shm_t *)transport)->lacks_memory ? MP_SHM_RETRY_US : 0;
}

// Releases the payloads that a dead peer has not taken out of its ring: no other process would.
static void shm_take_back(mp_shm_t *self, mp_shm_peer_t *peer) {
  mp_lock_t *lock = &self->world->peers[peer->rank].send_lock;
  mp_lock(lock);
  // The tail does not move any more. The dead process had to release the payloads of the slots
  // before it; those that it did not release are lost to this segment.
  unsigned tail = atomic_load(&peer->out->tail);
  for (; tail != peer->head && peer->head - tail <= MP_RING_SLOTS; ++tail) {
    const uint64_t offset = peer->out->slots[tail % MP_RING_SLOTS].offset;
    if (offset != 0) mp_payload_block_release(mp_segment_block_at(self->own, offset));
  }
  peer->is_buried = true;
  mp_unlock(lock);
}

// A dead peer counts as lost, unless it has said goodbye: then it counts as gone already.
void mp_shm_bury(mp_shm_t *self, mp_shm_peer_t *peer) {
  (void)shm_receive(self, peer);  // what it sent before it died
  // If there is no memory for that, the loss has to wait: the next tick tries again.
  if (atomic_load(&peer->in->head) != peer->tail) return;
  char name[MP_PEER_NAME_BYTES];
  mp_world_peer_name(self->world, peer->rank, name);
  mp_world_lose(self->world, peer->rank,
                mp_status_make(MP_UNAVAILABLE, "%s has ended unexpectedly", name));
  if (peer->pidfd >= 0) close(peer->pidfd);
  peer->pidfd = -1;
  peer->pid = 0;
  shm_take_back(self, peer);
}

bool mp_shm_is_dead(const mp_shm_peer_t *peer) {
  return peer->pid != 0 && mp_process_has_ended(peer->pid, peer->pidfd);
}

static bool shm_is_gone(const mp_shm_t *self, const mp_shm_peer_t *peer) {
  return atomic_load(&self->world->peers[peer->rank].is_gone);
}

// A process that was killed cannot report its end. The lowest remaining rank of the host reports
// it, at once, because the launcher may soon end that rank, too.
static void shm_tell(const mp_shm_t *self, const mp_shm_peer_t *dead) {
  if (shm_is_gone(self, dead) || mp_segment_is_explained(dead->segment)) return;
  for (uint32_t i = 0; i < self->num_peers; ++i) {
    const mp_shm_peer_t *peer = &self->peers[i];
    if (!mp_shm_is_there(peer)) continue;
    bool is_left = peer->dead_since == 0 && !shm_is_gone(self, peer);
    if (is_left && peer->rank < self->world->rank) return;
  }
  char name[MP_PEER_NAME_BYTES];
  mp_world_peer_name(self->world, dead->rank, name);
  mp_log_notice("%s has ended unexpectedly: it was killed or crashed", name);
}

static void shm_tick(mp_transport_t *transport) {
  mp_shm_t *self = (mp_shm_t *)transport;
  double now = mp_clock_seconds();
  for (uint32_t i = 0; i < self->num_peers; ++i) {
    mp_shm_peer_t *peer = &self->peers[i];
    if (!mp_shm_is_there(peer) || !mp_shm_is_dead(peer)) continue;
    if (peer->dead_since == 0) {
      peer->dead_since = now;
      (void)shm_receive(self, peer);  // its goodbye may be there
      shm_tell(self, peer);
    }
    if (now - peer->dead_since >= self->grace_s) mp_shm_bury(self, peer);
  }
}

static bool shm_drained(mp_transport_t *transport) {
  mp_shm_t *self = (mp_shm_t *)transport;
  for (uint32_t i = 0; i < self->num_peers; ++i) {
    if (!mp_shm_is_there(&self->peers[i])) continue;
    // Acquire, by the default: a thread that sees that nothing is late sees it in the ring, which
    // outlives this process.
    if (atomic_load(&self->peers[i].has_late)) return false;
  }
  return true;
}

// ---- Life ----

static void shm_release(mp_transport_t *transport) {
  mp_shm_t *self = (mp_shm_t *)transport;
  for (uint32_t i = 0; i < self->num_peers; ++i) {
    mp_shm_peer_t *peer = &self->peers[i];
    if (!mp_shm_is_there(peer)) continue;
    while (peer->late.first != NULL) mp_shm_drop_first_late(peer);
    if (peer->pidfd >= 0) close(peer->pidfd);
    mp_segment_release(peer->segment);
  }
  mp_segment_release(self->own);
  mp_free(self->by_rank);
  mp_free(self->peers);
  mp_free(self);
}

static const mp_transport_ops_t g_shm_ops = {
    .name = "shared memory",
    .send = shm_send,
    .progress = shm_progress,
    .tick = shm_tick,
    .poll_after_us = shm_poll_after_us,
    .drained = shm_drained,
    .release = shm_release,
};

mp_status_t mp_shm_create(mp_world_t *world, mp_segment_t *own, double grace_s,
                          mp_transport_t **out_transport) {
  mp_shm_t *self = mp_calloc(1, sizeof(*self));
  MP_RETURN_IF_NULL(self);
  self->base.ops = &g_shm_ops;
  self->world = world;
  self->own = mp_segment_retain(own);
  self->grace_s = grace_s;
  self->peers = mp_calloc(mp_segment_num_rings(own), sizeof(*self->peers));
  self->by_rank = mp_calloc(world->size, sizeof(mp_shm_peer_t *));
  if (self->peers == NULL || self->by_rank == NULL) {
    shm_release(&self->base);
    return mp_status_out_of_memory();
  }
  self->num_peers = mp_segment_num_rings(own);
  *out_transport = &self->base;
  return NULL;
}

void mp_shm_connect(mp_shm_t *self, mp_shm_peer_t *peer, mp_segment_t *segment, int64_t pid) {
  const mp_world_t *world = self->world;
  const mp_peer_t *own = &world->peers[world->rank].peer;
  peer->segment = mp_segment_retain(segment);
  peer->out = mp_segment_ring(segment, own->rank_on_host);
  peer->in = mp_segment_ring(self->own, world->peers[peer->rank].peer.rank_on_host);
  // A predecessor of this process may have come so far. What is in our own ring may be the peer's.
  peer->head = atomic_load(&peer->out->head);
  peer->dead_since = 0;
  peer->is_damaged = false;
  peer->is_buried = false;
  peer->pid = 0;
  peer->pidfd = -1;
  if (pid == getpid()) return;
  peer->pid = pid;
  peer->pidfd = mp_process_open(pid);
}

mp_status_t mp_shm_add_peer(mp_transport_t *transport, uint32_t rank, mp_segment_t *segment,
                            int64_t pid) {
  mp_shm_t *self = (mp_shm_t *)transport;
  const mp_world_t *world = self->world;
  uint32_t own_index = world->peers[world->rank].peer.rank_on_host;
  uint32_t index = world->peers[rank].peer.rank_on_host;
  uint32_t most = mp_segment_num_rings(self->own);
  if (index >= most || own_index >= mp_segment_num_rings(segment) ||
      mp_shm_is_there(&self->peers[index])) {
    return mp_status_make(MP_INTERNAL, "no ring between ranks %u and %u", world->rank, rank);
  }
  mp_shm_peer_t *peer = &self->peers[index];
  peer->rank = rank;
  mp_shm_connect(self, peer, segment, pid);
  self->by_rank[rank] = peer;
  atomic_store_explicit(&peer->is_there, true, memory_order_release);
  return NULL;
}
