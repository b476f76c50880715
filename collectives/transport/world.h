// The world: the processes of one job, and messages between them.
//
// A process is named by its rank. Some ranks share a host (they can map each other's memory), the
// others are reached over the network; transports (transport.h) know how, users of this header do
// not. Messages are active: a packet is handed to the handler of its channel as soon as it is
// there, in memory that belongs to the transport, and stays valid until it is released. So nobody
// ever waits inside a receive, and what is no longer wanted is simply released when it comes.
//
// Packets from one rank on one channel are delivered in the order in which they were sent; what
// comes from different ranks, their ends included, comes in any order. Handlers are called on the
// progress thread, one at a time: they do not block and take only short-lived locks. Packets that
// come before a handler is attached wait for it. A packet that was sent is never dropped for want
// of memory: it waits until there is some.
//
// All functions are thread-safe. A world lives until the process ends (it is left by the exit
// handlers of bootstrap.h), so clients come and go within it. A forked child has no part in it:
// mp_world_send returns FAILED_PRECONDITION there.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_WORLD_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_WORLD_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/containers/list.h"
#include "sim/base/status.h"

typedef struct mp_world_s mp_world_t;

typedef struct {
  uint32_t host;  // ranks of equal numbers share a host; hosts count from 0 by lowest rank
  uint32_t rank_on_host;
  uint32_t ranks_on_host;
  int64_t pid;
  const char *hostname;
} mp_peer_t;

uint32_t mp_world_rank(const mp_world_t *world);
uint32_t mp_world_size(const mp_world_t *world);
uint32_t mp_world_num_hosts(const mp_world_t *world);
const mp_peer_t *mp_world_peer(const mp_world_t *world, uint32_t rank);

// ---- Sending ----

// Memory to be sent, to one rank or several. Ranks of the same host read it in place. Written by
// its creator before it is first sent, constant afterwards. Released by its creator after the last
// send; freed when all receivers have released their packets.
typedef struct {
  void *data;  // 64-byte aligned
  size_t bytes;
} mp_payload_t;

MP_NODISCARD mp_status_t mp_payload_create(mp_world_t *world, size_t bytes,
                                           mp_payload_t **out_payload);
void mp_payload_release(mp_payload_t *payload);

// Channels have numbers below this one. Which of them is whose is settled by those who use the
// world, the same in all processes.
enum { MP_WORLD_CHANNELS = 4 };

// What a packet is about, for its handler to read; the transport looks only at the channel.
typedef struct {
  uint32_t channel;
  uint32_t words[3];
  uint64_t key[4];
} mp_envelope_t;

// Never waits for the receiver. `payload` may be NULL: an envelope alone. Sending to one's own rank
// is allowed. UNAVAILABLE with the reason when the rank has left or is lost. RESOURCE_EXHAUSTED
// when memory is short; an envelope alone then still goes later, unless very many wait already.
MP_NODISCARD mp_status_t mp_world_send(mp_world_t *world, uint32_t to,
                                       const mp_envelope_t *envelope, mp_payload_t *payload);

// ---- Receiving ----

typedef struct mp_packet_s mp_packet_t;
struct mp_packet_s {
  uint32_t from;
  mp_envelope_t envelope;
  const void *data;  // NULL when bytes is 0; 64-byte aligned
  size_t bytes;
  mp_packet_t *next;  // in the list of whoever has the packet
};

void mp_packet_release(mp_packet_t *packet);

// Room in the packet for what its owner wants to remember of it (16-byte aligned, not
// initialized), so that keeping a packet takes no memory that might be missing.
enum { MP_PACKET_NOTE_BYTES = 64 };
void *mp_packet_note(mp_packet_t *packet);

// Packets that wait, in order. A packet is in one list at most. Not thread-safe: the list's owner
// locks.
typedef MP_QUEUE(mp_packet_t) mp_packet_list_t;

// Takes the packet over.
void mp_packet_list_push(mp_packet_list_t *list, mp_packet_t *packet);
// The first, off the list; NULL: there is none.
mp_packet_t *mp_packet_list_pop(mp_packet_list_t *list);
// The first one that is wanted, off the list; NULL: there is none.
mp_packet_t *mp_packet_list_take(mp_packet_list_t *list,
                                 bool (*is_wanted)(const mp_packet_t *packet, uint64_t number),
                                 uint64_t number);
// Releases all.
void mp_packet_list_clear(mp_packet_list_t *list);

typedef struct {
  // The packet belongs to the handler, which may keep it.
  void (*deliver)(void *context, mp_packet_t *packet);
  // `rank` sends no more: it has said goodbye or is lost; after its last packet, once. `why` is
  // borrowed ("process 1 (pid 4711 on host a) has exited").
  void (*lost)(void *context, uint32_t rank, mp_status_t why);
  void *context;
} mp_handler_t;

// One handler per channel; packets and losses so far are delivered on the progress thread soon.
// Detaching waits for a call in progress (not to be done within one).
void mp_world_attach(mp_world_t *world, uint32_t channel, const mp_handler_t *handler);
void mp_world_detach(mp_world_t *world, uint32_t channel);

// ---- Agreeing ----
//
// An agreement is work that all ranks do together and that succeeds in all of them or in none. A
// rank that fails on the way tells the others why, and they fail at once with its name and its
// error. Telling needs no memory, so a rank that has none left is still heard; only the words of
// its error may be lacking then.

typedef struct mp_agreement_s mp_agreement_t;
// On its caller's stack. The members are the world's.
struct mp_agreement_s {
  mp_world_t *world;
  mp_agreement_t *next;  // of the world's agreements in progress
  uint64_t number;
  double timeout_s;
  uint32_t num_rounds;  // exchanges so far
  bool has_heard;       // of the failure of another rank, which tells everybody itself
};

// The n-th agreements of all ranks belong together, so this counts even if all else fails, and
// cannot fail itself. The others wait for this rank from now on, until it ends the agreement.
void mp_agreement_begin(mp_world_t *world, double timeout_s, mp_agreement_t *out_agreement);

// Gives everybody everybody's bytes: out_bytes[rank] and out_sizes[rank], in one allocation that
// the caller frees by mp_free(out_bytes). An agreement's n-th exchanges belong together.
// DEADLINE_EXCEEDED after the agreement's timeout, naming the ranks that were not heard of;
// UNAVAILABLE when one has left; another rank's error when that has failed. Blocks (without burning
// a core). After a failure the agreement can only be ended.
MP_NODISCARD mp_status_t mp_agreement_exchange(mp_agreement_t *agreement, const void *bytes,
                                               size_t size, void ***out_bytes, size_t **out_sizes);

// Ends the agreement, with what has become of it here. OK: waits for the others to say the same,
// and fails like mp_agreement_exchange when one does not; what the caller has made must be kept
// ready until then and needs nothing any more that could fail afterwards. An error is told to the
// others and comes back; nobody is waited for.
MP_NODISCARD mp_status_t mp_agreement_end(mp_agreement_t *agreement, mp_status_t status);

// An agreement of one exchange, whose success here does not wait for the others'.
MP_NODISCARD mp_status_t mp_world_exchange(mp_world_t *world, const void *bytes, size_t size,
                                           double timeout_s, void ***out_bytes, size_t **out_sizes);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_WORLD_H_
