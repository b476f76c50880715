// Inside a world: what its parts (world.c, exchange.c) and its makers (world_local.c,
// bootstrap.c) share.
//
// Locks: `channel->calls` is held while a handler runs and is taken before `lock`; `lock` protects
// the peers' fates and exchanges; `inbox_lock` the inbox alone. None is held while waiting for
// anything but memory.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_WORLD_INTERNAL_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_WORLD_INTERNAL_H_

#include <stdatomic.h>

#include "collectives/transport/transport.h"
#include "sim/base/os/lock.h"

typedef struct mp_packet_node_s {
  mp_packet_t packet;
  struct mp_packet_node_s *next;
  mp_world_t *world;
  mp_payload_block_t *block;
  _Alignas(MP_PAYLOAD_ALIGNMENT) unsigned char bytes[MP_INLINE_BYTES];
} mp_packet_node_t;

typedef struct {
  mp_packet_node_t *first;
  mp_packet_node_t *last;
} mp_packet_list_t;

typedef struct {
  mp_lock_t calls;
  mp_handler_t handler;
  bool is_attached;
  bool *was_told;  // of each rank's loss
  mp_packet_list_t backlog;
  atomic_bool has_news;  // something may be in the backlog, or losses untold
} mp_channel_state_t;

typedef struct {
  mp_peer_t peer;
  mp_transport_t *transport;  // NULL: this rank itself
  mp_lock_t send_lock;
  bool is_closed;  // by our goodbye; under send_lock
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
  mp_channel_state_t channels[MP_CHANNEL_COUNT];

  mp_lock_t inbox_lock;
  mp_packet_list_t inbox;

  mp_lock_t lock;
  pthread_cond_t changed;  // an exchange packet came, or a peer went
  mp_packet_list_t blobs;  // of exchanges, in order of arrival
  uint64_t num_exchanges;  // calls so far
  bool has_said_goodbye;

  pthread_t thread;
  bool is_started;
  atomic_bool must_stop;
  atomic_uint rounds;  // of the progress thread, for those who wait for it to pass by
  mp_doorbell_t *doorbell;
  mp_doorbell_t own_doorbell;
  mp_segment_t *segment;  // where payloads lie; NULL: on the heap
};

// What packets of MP_CHANNEL_WORLD are, in words[0].
typedef enum {
  MP_WORLD_EXCHANGE,  // key[0]: number of the call
  MP_WORLD_GOODBYE,
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

void mp_packet_list_push(mp_packet_list_t *list, mp_packet_node_t *node);
mp_packet_node_t *mp_packet_list_pop(mp_packet_list_t *list);

// An exchange's packet has come (exchange.c).
void mp_world_take_blob(mp_world_t *world, mp_packet_node_t *node);

// Waits on `changed` until `deadline` (mp_clock_seconds); false once that is over.
bool mp_world_wait_changed(mp_world_t *world, double deadline);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_WORLD_INTERNAL_H_
