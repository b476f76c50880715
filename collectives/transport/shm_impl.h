// Inside the transport of one host: what its parts (shm.c, shm_return.c) share.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_SHM_IMPL_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_SHM_IMPL_H_

#include "collectives/transport/shm.h"
#include "collectives/transport/world_impl.h"
#include "sim/base/containers/list.h"

// A message that did not fit into a ring.
typedef struct mp_shm_late_s {
  struct mp_shm_late_s *next;
  mp_envelope_t envelope;
  mp_payload_block_t *block;
} mp_shm_late_t;

typedef struct {
  // The other members are set. Set once, after them, by the thread that adds the peer; when another
  // process replaces the peer, the world's thread changes the other members.
  atomic_bool is_there;
  uint32_t rank;
  mp_segment_t *segment;  // under the peer's send_lock
  mp_ring_t *out;         // in the peer's segment; under the peer's send_lock
  mp_ring_t *in;          // in this process's segment
  unsigned head;          // of `out`; under the peer's send_lock
  unsigned tail;          // of `in`; for the world's thread only, as all members that name no lock
  int64_t pid;            // 0: not watched (any more)
  int pidfd;              // -1: the kernel has none
  double dead_since;      // 0: alive; its goodbye may still lie in `in`
  bool is_damaged;        // `in` holds invalid messages
  bool is_buried;         // `out` has no reader any more; under the peer's send_lock
  MP_QUEUE(mp_shm_late_t) late;  // under the peer's send_lock
  // Whether there are any, for looking without the lock: the world's thread asks in each round, for
  // each peer. Changed under the lock; set before the bell is rung, cleared after the last message
  // is in the ring or given up.
  atomic_bool has_late;
} mp_shm_peer_t;

typedef struct {
  mp_transport_t base;
  mp_world_t *world;
  mp_segment_t *own;
  double grace_s;
  uint32_t num_peers;
  mp_shm_peer_t *peers;     // by rank on the host; not all are there
  mp_shm_peer_t **by_rank;  // NULL: not reached this way
  unsigned num_knocks;      // how many knocks at the doors of `own` were handled
  bool lacks_memory;  // there was no memory for a packet in a ring; used by the progress thread
} mp_shm_t;

// Whether there is a peer in this place.
static inline bool mp_shm_is_there(const mp_shm_peer_t *peer) {
  // Acquire, with mp_shm_add_peer: the rest of it is there, too.
  return atomic_load_explicit(&peer->is_there, memory_order_acquire);
}

// Frees the first message that waits.
void mp_shm_drop_first_late(mp_shm_peer_t *peer);
// A dead peer counts as lost, unless there is no memory for what it has sent.
void mp_shm_bury(mp_shm_t *self, mp_shm_peer_t *peer);
// Whether the peer's process has ended, and was not buried.
bool mp_shm_is_dead(const mp_shm_peer_t *peer);
// Connects with a segment, whose process is `pid`.
void mp_shm_connect(mp_shm_t *self, mp_shm_peer_t *peer, mp_segment_t *segment, int64_t pid);

// Answers those that knock at the doors (shm_return.c); true when there were any.
bool mp_shm_open_doors(mp_shm_t *self);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_SHM_IMPL_H_
