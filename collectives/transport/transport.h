// Transports: how packets get from one process to another. They are the layer below the world
// (world.h).
//
// A world has up to two of them, and each peer is reached by one. A transport never blocks: packets
// that cannot be sent at once wait in its queue until progress() is called. Packets to one
// destination go out in the order of send(), and are handed to mp_world_arrive in that order.
//
// Between hosts there is one kind of transport in a job; other code uses it only through this
// table.
//
// All functions except send(), drained(), is_over(), close() and is_closed() are called on the
// progress thread of the world alone.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_TRANSPORT_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_TRANSPORT_H_

#include "collectives/transport/segment.h"
#include "collectives/transport/world.h"

enum { MP_PEER_NAME_BYTES = 160 };

typedef struct mp_transport_s mp_transport_t;

typedef struct {
  const char *name;
  // Sends a packet. Any thread; calls for one destination come one at a time, under its send lock.
  // `block` may be NULL; the transport retains it if it keeps it. RESOURCE_EXHAUSTED when memory is
  // short.
  mp_status_t (*send)(mp_transport_t *transport, uint32_t to, const mp_envelope_t *envelope,
                      mp_payload_block_t *block);
  // Sends and receives as much as possible without waiting; true when it did any of that.
  bool (*progress)(mp_transport_t *transport);
  // Called four times a second: looks whether the peers are alive (mp_world_lose). May be NULL.
  void (*tick)(mp_transport_t *transport);
  // How many microseconds the thread may sleep without a ring; 0, or no such function (NULL): no
  // limit.
  uint32_t (*poll_after_us)(mp_transport_t *transport);
  // True when all packets have left this process. Any thread.
  bool (*drained)(mp_transport_t *transport);
  // True when the process with this rank has ended, or cannot be reached any more. Any thread.
  // NULL: the transport cannot see that.
  bool (*is_over)(mp_transport_t *transport, uint32_t rank);
  // Asks the progress thread to stop using what lies below the transport (MPI, a network), for
  // good: no more messages come or go. Any thread; returns at once. NULL: there is nothing below.
  void (*close)(mp_transport_t *transport);
  // True when the progress thread has stopped using it. Any thread. NULL when close() is NULL.
  bool (*is_closed)(mp_transport_t *transport);
  // Frees the transport; the progress thread has ended.
  void (*release)(mp_transport_t *transport);
} mp_transport_ops_t;

// The first member of each transport.
struct mp_transport_s {
  const mp_transport_ops_t *ops;
};

// Closes a transport, and waits until that is done; false after `timeout_s` seconds. The progress
// thread runs, and is not the caller.
bool mp_transport_close(mp_transport_t *transport, double timeout_s);

// ---- Functions for transports ----

// A packet of rank `from` with a copy of `envelope`. It takes the caller's reference of `block`
// (may be NULL). NULL when memory is short; the reference then stays the caller's. Any thread.
mp_packet_t *mp_packet_create(mp_world_t *world, uint32_t from, const mp_envelope_t *envelope,
                              mp_payload_block_t *block);
// The packet's block is in this segment. Its owner may end, and be replaced, before the packet is
// released, so the packet keeps the mapping.
void mp_packet_keep_segment(mp_packet_t *packet, mp_segment_t *segment);
// The same with a copy of up to MP_INLINE_BYTES bytes inside the packet.
mp_packet_t *mp_packet_create_inline(mp_world_t *world, uint32_t from,
                                     const mp_envelope_t *envelope, const void *data, size_t bytes);

// Hands a packet to the handler of its channel, which owns it then. Progress thread only.
void mp_world_arrive(mp_world_t *world, mp_packet_t *packet);
// Makes the progress thread call mp_world_arrive soon. Any thread.
void mp_world_post(mp_world_t *world, mp_packet_t *packet);
// The process with this rank sends no more. Consumes `why`; only the first loss of a rank counts.
// Progress thread only.
void mp_world_lose(mp_world_t *world, uint32_t rank, mp_status_t why);
// Wakes the progress thread. Any thread.
void mp_world_ring(mp_world_t *world);

// True for the envelope of a goodbye, the last message of a process, which is sent even to
// processes that have left.
bool mp_world_is_goodbye(const mp_envelope_t *envelope);

// Writes "process 1 (pid 4711 on host a)" to `out_text`, cut off if it is longer.
void mp_world_peer_name(const mp_world_t *world, uint32_t rank, char out_text[MP_PEER_NAME_BYTES]);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_TRANSPORT_H_
