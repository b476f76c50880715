// Restarted processes of this host: knocking, and answering knocks.
#include <string.h>
#include <unistd.h>

#include "collectives/transport/shm_impl.h"
#include "collectives/transport/world_return.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"

// ---- Answering knocks ----

// The predecessor must have ended: two processes cannot be one.
static mp_status_code_t shm_return_end_predecessor(mp_shm_t *self, mp_shm_peer_t *peer) {
  if (!mp_shm_is_there(peer)) return MP_OK;
  if (mp_shm_is_dead(peer)) {
    mp_shm_bury(self, peer);
    // There is no memory yet for what it has sent.
    if (peer->pid != 0) return MP_RESOURCE_EXHAUSTED;
  }
  return peer->pid == 0 ? MP_OK : MP_ALREADY_EXISTS;
}

static void shm_return_connect(mp_shm_t *self, mp_shm_peer_t *peer, const mp_knock_t *knock,
                               mp_segment_t *segment) {
  mp_lock_t *lock = &self->world->peers[knock->rank].send_lock;
  mp_lock(lock);
  mp_segment_t *old = NULL;
  if (mp_shm_is_there(peer)) {
    while (peer->late.first != NULL) mp_shm_drop_first_late(peer);
    old = peer->segment;
  }
  peer->rank = knock->rank;
  mp_shm_connect(self, peer, segment, knock->pid);
  // Drops the packets that the predecessor has left in the ring; the newcomer writes there after
  // its welcome.
  peer->tail = atomic_load(&peer->in->head);
  atomic_store(&peer->in->tail, peer->tail);
  atomic_store(&peer->in->writer_waits, 0);
  self->by_rank[knock->rank] = peer;
  atomic_store_explicit(&peer->is_there, true, memory_order_release);
  mp_unlock(lock);
  mp_segment_release(old);
}

// Whether the knock is that of the process whose ring lies beside the door.
static mp_status_code_t shm_return_check(const mp_shm_t *self, uint32_t index,
                                         const mp_knock_t *knock) {
  const mp_world_t *world = self->world;
  const mp_status_code_t code = mp_world_check_knock(world, knock);
  if (code != MP_OK) return code;
  const mp_peer_t *peer = &world->peers[knock->rank].peer, *own = &world->peers[world->rank].peer;
  return peer->host == own->host && peer->rank_on_host == index ? MP_OK : MP_INVALID_ARGUMENT;
}

static mp_status_code_t shm_return_answer(mp_shm_t *self, uint32_t index, const mp_knock_t *knock) {
  mp_shm_peer_t *peer = &self->peers[index];
  mp_status_code_t code = shm_return_check(self, index, knock);
  if (code == MP_OK) code = shm_return_end_predecessor(self, peer);
  if (code != MP_OK) return code;
  mp_segment_t *segment = NULL;
  mp_bygone_t *bygone = mp_calloc(1, sizeof(*bygone));
  mp_status_t status =
      bygone == NULL ? mp_status_out_of_memory() : mp_segment_open(&knock->address, &segment);
  if (status == NULL && mp_segment_num_rings(segment) != mp_segment_num_rings(self->own)) {
    status = mp_status_make(MP_INVALID_ARGUMENT, "another job's segment");
  }
  code = mp_status_code(status);
  mp_status_ignore(status);
  if (code == MP_OK) {
    shm_return_connect(self, peer, knock, segment);
    mp_world_take_back(self->world, knock, &self->base, bygone);
  } else {
    mp_free(bygone);
  }
  mp_segment_release(segment);
  return code;
}

static bool shm_return_open_door(mp_shm_t *self, uint32_t index) {
  mp_door_t *door = &mp_segment_ring(self->own, index)->door;
  unsigned state = MP_DOOR_KNOCKED;
  // Acquire: the contents of the knock are written. The release that publishes the answer is in the
  // store.
  if (!atomic_compare_exchange_strong(&door->state, &state, MP_DOOR_READING)) return false;
  const mp_knock_t knock = door->knock;
  door->answer = (uint32_t)shm_return_answer(self, index, &knock);
  atomic_store(&door->state, MP_DOOR_ANSWERED);
  return true;
}

bool mp_shm_open_doors(mp_shm_t *self) {
  // Acquire: the knocks that are counted have been made.
  const unsigned count = atomic_load(mp_segment_num_knocks(self->own));
  if (count == self->num_knocks) return false;
  self->num_knocks = count;
  bool did = false;
  for (uint32_t i = 0; i < self->num_peers; ++i) did |= shm_return_open_door(self, i);
  return did;
}

// ---- Knocking ----

static mp_door_t *shm_return_door(const mp_world_t *world, mp_segment_t *segment) {
  return &mp_segment_ring(segment, world->peers[world->rank].peer.rank_on_host)->door;
}

bool mp_shm_knock(mp_transport_t *transport, mp_segment_t *segment, const mp_knock_t *knock) {
  mp_door_t *door = shm_return_door(((const mp_shm_t *)transport)->world, segment);
  unsigned state = atomic_load(&door->state);
  // This process takes over a door that its predecessor has left in any state, but not while the
  // owner reads it.
  if (state == MP_DOOR_READING) return false;
  if (!atomic_compare_exchange_strong(&door->state, &state, MP_DOOR_WRITING)) return false;
  door->knock = *knock;
  atomic_store(&door->state, MP_DOOR_KNOCKED);
  atomic_fetch_add(mp_segment_num_knocks(segment), 1);
  mp_doorbell_ring(mp_segment_doorbell(segment));
  return true;
}

bool mp_shm_is_answered(mp_transport_t *transport, mp_segment_t *segment,
                        mp_status_code_t *out_code) {
  mp_door_t *door = shm_return_door(((const mp_shm_t *)transport)->world, segment);
  if (atomic_load(&door->state) != MP_DOOR_ANSWERED) return false;
  *out_code = mp_status_code_of_number(door->answer);
  return true;
}
