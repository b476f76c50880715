// Inside the UCX transport: what its parts (ucx.c, ucx_out.c, ucx_in.c) share.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_HOSTS_UCX_IMPL_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_HOSTS_UCX_IMPL_H_

#include "collectives/transport/hosts/polling.h"
#include "collectives/transport/hosts/ucx.h"
#include "collectives/transport/ucx/ucx_engine.h"
#include "collectives/transport/world_impl.h"
#include "sim/base/containers/list.h"

typedef enum {
  MP_UCX_PACKET,
  MP_UCX_HEARD,  // `number` is that of a goodbye: it and all before it have come
  MP_UCX_GREETING,
  // From a restarted process: its data are an mp_knock_t and its address; key[0] is their seal.
  MP_UCX_KNOCK,
} mp_ucx_kind_t;

typedef struct {
  uint64_t seal;  // of all that follows
  uint32_t kind;
  uint32_t from, to;
  uint32_t incarnation;  // the low word of the sender's
  uint64_t number;       // counts the packets of this sender to this receiver
  uint64_t bytes;        // of data
  mp_envelope_t envelope;
} mp_ucx_header_t;

_Static_assert(sizeof(mp_ucx_header_t) == 40 + sizeof(mp_envelope_t), "no gaps are sealed");

typedef struct mp_ucx_out_s mp_ucx_out_t;
struct mp_ucx_out_s {
  mp_ucx_item_t item;  // first: the engine gets a pointer to it
  mp_ucx_out_t *prev, *next;
  mp_payload_block_t *block;
  uint32_t connection;  // the number, among the connections with this peer, of the one that the
                        // message was sent on
  mp_ucx_header_t header;
};

// A knock to make, or one that has come.
typedef struct {
  void *address;      // of the peer
  mp_ucx_out_t *out;  // to be made
  mp_knock_t knock;   // has come
} mp_ucx_visit_t;

typedef enum {
  MP_UCX_HELD,      // waits for memory
  MP_UCX_FETCHING,  // its data are being fetched into the packet
  MP_UCX_THERE,
} mp_ucx_in_state_t;

typedef struct mp_ucx_in_s mp_ucx_in_t;
struct mp_ucx_in_s {
  mp_ucx_item_t item;
  mp_ucx_in_t *prev, *next;
  mp_ucx_in_state_t state;
  bool is_orphan;       // its peer was dropped while it was being fetched
  void *data;           // HELD: the engine's handle; may be NULL
  mp_packet_t *packet;  // not HELD
  mp_ucx_header_t header;
};

typedef MP_QUEUE(mp_ucx_out_t) mp_ucx_outs_t;
typedef MP_LIST(mp_ucx_out_t) mp_ucx_out_list_t;
typedef MP_LIST(mp_ucx_in_t) mp_ucx_in_list_t;

typedef struct {
  // Where it listens; NULL once the connection is begun. The lower rank begins it and greets, and
  // the higher one answers on it, so that UCX never has to match two connections of a pair while
  // one of the processes may be ending.
  void *address;
  bool is_known;  // has or had an address
  bool owes_greeting;
  bool was_greeted;
  unsigned num_ticks;    // without a greeting
  mp_ucx_outs_t outs;    // not begun
  uint64_t next_out;     // number of the next packet to this peer
  mp_ucx_in_list_t ins;  // by number
  uint64_t next_in;      // number of the packet to be delivered next
  bool awaits_heard;     // this process's goodbye is sent but not acknowledged
  uint64_t goodbye;      // the number of that goodbye
  bool owes_heard;       // its goodbye, number `heard`, is to be acknowledged
  uint64_t heard;
  // Nothing is sent to this peer or taken from it any more; it will be dropped.
  bool has_failed;
  mp_ucs_status_t failure;
  bool is_dropped;
  atomic_bool is_over;  // its process has ended or is out of reach
  // For restarted processes. A process that replaces the peer has another incarnation, and a
  // connection with another number.
  uint32_t incarnation;
  uint32_t connection;
  _Atomic(mp_ucx_visit_t *) errand;  // a knock that the progress thread shall make; owned
  mp_ucx_out_t *knock;               // the message of an errand, not sent yet
  mp_ucx_visit_t *visit;             // a knock that has come; owned
} mp_ucx_peer_t;

// How many arrivals can be noted when memory is short.
enum { MP_UCX_SPARE_INS = 256 };

typedef struct {
  mp_transport_t base;
  mp_world_t *world;
  mp_ucx_engine_t *engine;
  const mp_ucx_library_t *library;
  mp_seal_key_t key;
  mp_ucx_peer_t *peers;  // by rank
  mp_polling_t polling;
  bool lacks_memory;  // some message waits for memory

  // Guards the messages that senders hand over, as in mpi.c.
  mp_lock_t lock;
  mp_ucx_outs_t *fresh;  // by rank
  bool has_fresh;
  // Sends that are not done, and goodbyes that were not acknowledged.
  atomic_uint num_pending;

  mp_ucx_out_list_t sending;  // handed to the engine
  mp_ucx_in_list_t orphans;   // being fetched for dropped peers
  mp_ucx_in_t *spare;         // linked by `next`
  mp_ucx_in_t *spares;        // the allocation of all of them

  atomic_bool must_close;
  atomic_bool is_closed;
} mp_ucx_t;

enum { MP_UCX_MOST_TICKS = 12 };  // how long (3 s) to wait for a greeting

// Notes that a peer has failed; progress drops it.
static inline void mp_ucx_fail(mp_ucx_t *self, uint32_t rank, mp_ucs_status_t status) {
  mp_ucx_peer_t *peer = &self->peers[rank];
  if (peer->has_failed) return;
  peer->has_failed = true;
  peer->failure = status;
}

// Begins the connection with a peer, at its address.
MP_NODISCARD mp_status_t mp_ucx_open(mp_ucx_t *self, uint32_t rank);

// ---- ucx_out.c ----

// Makes a message of the transport itself, without data.
mp_ucx_out_t *mp_ucx_make_out(const mp_ucx_t *self, mp_ucx_kind_t kind, uint32_t to);
void mp_ucx_free_out(mp_ucx_out_t *out);

mp_status_t mp_ucx_send(mp_transport_t *transport, uint32_t to, const mp_envelope_t *envelope,
                        mp_payload_block_t *block);
// Moves what senders handed over to the peers.
void mp_ucx_take_fresh(mp_ucx_t *self);
// Begins to send the messages that wait for a peer; true when there were any.
bool mp_ucx_push_out(mp_ucx_t *self, uint32_t to);
// The engine is done with a message.
void mp_ucx_sent(void *context, mp_ucx_item_t *item, mp_ucs_status_t status);
// The peer has acknowledged this process's goodbye, or will never do so.
void mp_ucx_hear(mp_ucx_t *self, mp_ucx_peer_t *peer);
// Frees the messages that wait for a peer.
void mp_ucx_drop_outs(mp_ucx_t *self, uint32_t to);
// Frees what the engine had, which is closed.
void mp_ucx_forget_outs(mp_ucx_t *self);

// ---- ucx_in.c ----

MP_NODISCARD mp_status_t mp_ucx_make_spares(mp_ucx_t *self);
bool mp_ucx_came(void *context, const void *header, size_t header_bytes, void *data, size_t bytes,
                 bool is_here);
void mp_ucx_fetched(void *context, mp_ucx_item_t *item, mp_ucs_status_t status);
// Fetches and delivers the messages from a peer, in order; true when there were any.
bool mp_ucx_deliver_in(mp_ucx_t *self, uint32_t from);
void mp_ucx_drop_ins(mp_ucx_t *self, uint32_t from);
// Frees what the engine had, which is closed.
void mp_ucx_forget_ins(mp_ucx_t *self);

// ---- ucx_return.c ----

// Notes a knock whose header was found valid.
void mp_ucx_note_knock(mp_ucx_t *self, const mp_ucx_header_t *header, const void *data);
// Makes the knock at this rank that is to be made, and answers the process that has knocked as this
// rank; true when there was anything to do.
bool mp_ucx_receive_visit(mp_ucx_t *self, uint32_t rank);
// Frees all visits.
void mp_ucx_forget_visits(mp_ucx_t *self);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_HOSTS_UCX_IMPL_H_
