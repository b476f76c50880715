// Inside a world: what its parts (world.c, world_send.c, world_exchange.c) and its makers
// (world_local.c, bootstrap.c) share.
//
// Locks: `channel->calls` is held while a handler runs and is taken before `lock`; `lock` protects
// the peers' fates and agreements; `inbox_lock` the inbox alone. None is held while waiting for
// anything but memory.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_WORLD_INTERNAL_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_WORLD_INTERNAL_H_

#include <stdatomic.h>

#include "collectives/transport/transport.h"
#include "sim/base/os/lock.h"

// What a packet is made of; the packet is the first member.
typedef struct {
  mp_packet_t packet;
  mp_world_t *world;
  mp_payload_block_t *block;
  _Alignas(16) unsigned char note[MP_PACKET_NOTE_BYTES];
  _Alignas(MP_PAYLOAD_ALIGNMENT) unsigned char bytes[MP_INLINE_BYTES];
} mp_packet_node_t;

typedef struct {
  mp_lock_t calls;
  mp_handler_t handler;
  bool is_attached;
  bool *was_told;  // of each rank's loss
  mp_packet_list_t backlog;
  atomic_bool has_news;  // something may be in the backlog, or losses untold
} mp_channel_state_t;

enum { MP_MAX_OWED = 16 };

typedef struct {
  mp_peer_t peer;
  mp_transport_t *transport;  // NULL: this rank itself
  mp_lock_t send_lock;
  bool is_closed;  // by our goodbye; under send_lock
  // Envelopes without data that the transport had no memory for, oldest first; under send_lock.
  // The progress thread sends them when there is some. The last place is our goodbye's, the one
  // before it an agreement's.
  mp_envelope_t owed[MP_MAX_OWED];
  uint32_t num_owed;
  atomic_bool is_gone;
  bool has_left;    // of its own will
  mp_status_t why;  // once gone
} mp_peer_state_t;

enum { MP_WORLD_MAX_TRANSPORTS = 2 };

struct mp_world_s {
  uint32_t rank;
  uint32_t size;
  uint32_t num_hosts;
  uint32_t generation;
  mp_peer_state_t *peers;
  mp_transport_t *transports[MP_WORLD_MAX_TRANSPORTS];
  atomic_uint num_transports;
  atomic_uint num_owed;  // of all peers
  mp_channel_state_t channels[MP_WORLD_CHANNELS];

  mp_lock_t inbox_lock;
  mp_packet_list_t inbox;

  mp_lock_t lock;
  pthread_cond_t changed;      // an agreement's packet came, or a peer went
  mp_packet_list_t blobs;      // of agreements that are not over, in order of arrival
  uint64_t num_agreements;     // begun so far
  mp_agreement_t *agreements;  // those in progress
  bool has_said_goodbye;

  pthread_t thread;
  bool is_started;
  atomic_bool must_stop;
  mp_doorbell_t *doorbell;
  mp_doorbell_t own_doorbell;
  mp_segment_t *segment;  // where payloads lie; NULL: on the heap
};

// The world's own channel, which has no handler.
enum { MP_WORLD_OWN_CHANNEL = MP_WORLD_CHANNELS };

// What packets of the world's own channel are, in words[0].
typedef enum {
  MP_WORLD_EXCHANGE,  // key[0]: number of the agreement, key[1]: of its exchange; the bytes
  MP_WORLD_GOODBYE,
  MP_WORLD_VERDICT,  // what became of an agreement: key[0] its number, words[1] a code; an error's
                     // text, if there was memory for it
} mp_world_word_t;

// Makes a world without transports; peers are the caller's to fill. mp_world_start begins its
// progress thread; mp_world_release stops and frees it (NULL-safe, started or not).
MP_NODISCARD mp_status_t mp_world_create(uint32_t rank, uint32_t size, mp_world_t **out_world);
MP_NODISCARD mp_status_t mp_world_start(mp_world_t *world);
void mp_world_release(mp_world_t *world);
// Takes a transport over; also while the progress thread runs.
void mp_world_add_transport(mp_world_t *world, mp_transport_t *transport);

// Tells all others that this rank sends no more. Later sends fail. Once.
void mp_world_say_goodbye(mp_world_t *world);
// Waits until every packet sent has left this process; false after `timeout_s`.
bool mp_world_drain(mp_world_t *world, double timeout_s);
// Waits until all others have said goodbye or are lost; false after `timeout_s`.
bool mp_world_await_goodbyes(mp_world_t *world, double timeout_s);

// Room for a message, in the segment where there is one. NULL when memory is short.
mp_payload_block_t *mp_world_take_block(mp_world_t *world, size_t bytes);

// An agreement's packet has come (world_exchange.c); takes it.
void mp_world_take_blob(mp_world_t *world, mp_packet_t *packet);

// The reason why `rank` is gone, retained, or OK while it is not.
MP_NODISCARD mp_status_t mp_world_loss(const mp_world_t *world, uint32_t rank);
// Sends what is owed (world_send.c), as far as there is memory now. Progress thread.
void mp_world_pay_all(mp_world_t *world);

// Waits on `changed` until `deadline` (mp_clock_seconds); false once that is over.
bool mp_world_wait_changed(mp_world_t *world, double deadline);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_WORLD_INTERNAL_H_
