// Transports: how packets get from one process to another. What lies below the world (world.h).
//
// A world has up to two of them, and each peer is reached by one. A transport never blocks: what
// cannot go at once waits in a queue of its own until progress() is called. Packets go out in the
// order of send() per destination and are handed to mp_world_arrive in the order they were sent.
//
// Everything but send() and drained() is called on the progress thread of the world alone.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_TRANSPORT_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_TRANSPORT_H_

#include "collectives/transport/segment.h"
#include "collectives/transport/world.h"

typedef struct mp_transport_s mp_transport_t;

typedef struct {
  const char *name;
  // Any thread; calls for one destination come one at a time. `payload` may be NULL; what is kept
  // of it is retained.
  mp_status_t (*send)(mp_transport_t *transport, uint32_t to, const mp_envelope_t *envelope,
                      mp_payload_block_t *block);
  // Moves what can be moved without waiting; true when anything did.
  bool (*progress)(mp_transport_t *transport);
  // Once a second: looks whether the peers are alive (mp_world_lose). May be NULL.
  void (*tick)(mp_transport_t *transport);
  // How long the thread may sleep, in microseconds, if nobody rings; 0 = as long as it likes. May
  // be NULL: as long as it likes.
  uint32_t (*poll_after_us)(mp_transport_t *transport);
  // Whether all that was sent has left this process for good. Any thread.
  bool (*drained)(mp_transport_t *transport);
  void (*release)(mp_transport_t *transport);
} mp_transport_ops_t;

// The first member of each transport.
struct mp_transport_s {
  const mp_transport_ops_t *ops;
};

// ---- What transports call ----

// A packet with room for `envelope`; keeps a reference of `payload` (may be NULL), which it takes
// over. NULL when memory is short; the payload then stays the caller's. Any thread.
mp_packet_t *mp_packet_create(mp_world_t *world, uint32_t from, const mp_envelope_t *envelope,
                              mp_payload_block_t *block);
// The same with a copy of up to MP_INLINE_BYTES bytes inside.
mp_packet_t *mp_packet_create_inline(mp_world_t *world, uint32_t from,
                                     const mp_envelope_t *envelope, const void *data, size_t bytes);

// Hands a packet to its channel. Progress thread.
void mp_world_arrive(mp_world_t *world, mp_packet_t *packet);
// Any thread: queues a packet for mp_world_arrive and rings.
void mp_world_post(mp_world_t *world, mp_packet_t *packet);
// `rank` sends no more. Takes `why` over; only the first loss of a rank counts. Progress thread.
void mp_world_lose(mp_world_t *world, uint32_t rank, mp_status_t why);
// Wakes the progress thread. Any thread.
void mp_world_ring(mp_world_t *world);

// Whether this is the last thing that a process says: to be sent even to those who have left.
bool mp_world_is_goodbye(const mp_envelope_t *envelope);

// "process 1 (pid 4711 on host a)" in `out_text`.
enum { MP_PEER_NAME_BYTES = 160 };
void mp_world_peer_name(const mp_world_t *world, uint32_t rank, char out_text[MP_PEER_NAME_BYTES]);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_TRANSPORT_H_
