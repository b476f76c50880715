// Inside a world: what its parts (world.c, world_send.c, world_exchange.c, packet.c), its
// transports and its makers (world_local.c, bootstrap.c) share.
//
// Locks: `afterwards` is held while a handler works off what packets have led to; `channel->calls`
// while it takes a packet; `lock` protects what became of the peers, and agreements; `inbox_lock`
// only the inbox; each peer's `send_lock` what goes to that peer. None of them is held while
// waiting for another process.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_WORLD_IMPL_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_WORLD_IMPL_H_

#include <stdatomic.h>

#include "collectives/transport/transport.h"
#include "sim/base/os/lock.h"

// A packet with its bookkeeping; the packet is the first member.
typedef struct {
  mp_packet_t packet;
  mp_world_t *world;
  mp_payload_block_t *block;
  mp_segment_t *segment;  // the segment of the block, if it belongs to another process; retained
  _Alignas(16) unsigned char note[MP_PACKET_NOTE_BYTES];
  _Alignas(MP_PAYLOAD_ALIGNMENT) unsigned char bytes[MP_INLINE_BYTES];
} mp_packet_node_t;

typedef struct {
  // Of all that follows, but for has_news. Held while the handler runs, so that detaching waits for
  // a call in progress and the handler's context may be freed right after.
  mp_lock_t calls;
  mp_handler_t handler;
  bool is_attached;
  bool *was_told;            // [ranks] the handler knows that the rank has left
  uint64_t *incarnations;    // [ranks] the incarnations that the handler knows of
  mp_packet_list_t backlog;  // packets that came before the handler
  // The backlog, or a loss, may have to be delivered. Outside the lock, because the world's thread
  // looks at it in each round; set after the news, cleared before they are looked at.
  atomic_bool has_news;
} mp_channel_state_t;

// How many envelopes without data are kept per peer while memory is short.
enum { MP_MAX_OWED = 16 };

enum { MP_HOSTNAME_BYTES = 65 };

typedef struct {
  mp_peer_t peer;
  char hostname[MP_HOSTNAME_BYTES];  // where that of `peer` lies, if it came from the peer itself
  // NULL: this rank itself. Atomic, because a peer of this host goes over from MPI to shared memory
  // while the world's thread runs, which may be paying what is owed or giving all of MPI up: a
  // thread that sees the new one sees its rings.
  _Atomic(mp_transport_t *) transport;
  // Makes the order of packets to this peer: the transport gets one at a time. It has one per peer,
  // so that sends to others do not wait.
  mp_lock_t send_lock;
  bool is_closed;  // this process has sent its goodbye; under send_lock
  // Envelopes without data that the transport had no memory for, oldest first; under send_lock. The
  // progress thread sends them when there is memory. The last place is for the goodbye, the one
  // before it for the verdict of an agreement.
  mp_envelope_t owed[MP_MAX_OWED];
  uint32_t num_owed;
  // It sends no more: it is lost, or has said goodbye, and then has_left was set first. Set once,
  // by the world's thread under the world's lock; read without, by senders, so that sending takes
  // only the lock of one peer.
  atomic_bool is_gone;
  atomic_bool is_silent;  // mp_world_note_silent
  bool has_left;          // it has said goodbye; under the world's lock
  bool has_succeeded;     // it has left with exit status 0; likewise
  bool skips_end;         // it skips the meeting at its end (mp_world_skip_end); likewise
  // The reason, written before is_gone. For a restarted process it is kept elsewhere, for threads
  // that were just reading it.
  _Atomic(mp_status_t) why;
  uint64_t incarnation;  // of the last restarted process in this place; 0: there was none; under
                         // the world's lock
} mp_peer_state_t;

// Data of a process that was replaced by another one; kept because other threads may be reading
// them.
typedef struct mp_bygone_s mp_bygone_t;
struct mp_bygone_s {
  mp_bygone_t *next;
  mp_status_t why;
  char hostname[MP_HOSTNAME_BYTES];  // of the new one
};

enum { MP_WORLD_MAX_TRANSPORTS = 2 };

// Information for restarted processes (mp_agreement_set_memo), or that this one received.
typedef struct {
  bool is_set;
  uint64_t number;
  void *bytes;
  size_t size;
} mp_world_memo_t;

struct mp_world_s {
  uint32_t rank;
  uint32_t size;
  uint32_t num_hosts;
  uint32_t generation;     // mp_process_generation() when it was made
  mp_peer_state_t *peers;  // [size]
  mp_transport_t *transports[MP_WORLD_MAX_TRANSPORTS];
  // Grows after the transport is in its place, also while the thread runs: the store publishes it.
  atomic_uint num_transports;
  // Of all peers; each changes under its peer's send_lock. It spares the world's thread the locks
  // of all peers in each round, and shows a leaving process whether anything is owed.
  atomic_uint num_owed;
  mp_channel_state_t channels[MP_WORLD_CHANNELS];
  mp_lock_t afterwards;  // held while a handler's function of this name runs
  mp_lock_t turn;        // held by the thread that makes progress, for a round
  // Another thread makes progress (mp_world_attend_begin). After a change to false it rings, if
  // anything may be left to do.
  atomic_bool is_attended;
  atomic_uint num_rounds;  // of progress, by any thread; shows whether the attending one is active
  // mp_clock_seconds until which the world's thread need not look unless a thread of this process
  // rings, which sets it to 0: the guess is that the attending thread is back by then.
  _Atomic double attended_until;
  atomic_bool is_dozing;  // the world's thread leaves all to the attending one, or will soon

  mp_lock_t inbox_lock;  // of the inbox alone; held for no longer than it takes to link a packet
  mp_packet_list_t inbox;

  // Protects all fields that follow, up to has_said_goodbye, and the peers' is_gone and has_left.
  // Agreements wait for a packet or a loss; both change under this lock, so that no waiter misses
  // `changed`.
  mp_lock_t lock;
  pthread_cond_t changed;      // a packet of an agreement came, or a peer has left
  mp_packet_list_t blobs;      // packets of agreements that are not over, in order of arrival
  uint64_t num_agreements;     // begun so far
  mp_agreement_t *agreements;  // those in progress
  bool skips_end;              // mp_world_skip_end
  bool has_said_goodbye;
  mp_bygone_t *bygones;       // owned
  mp_packet_list_t welcomes;  // that this process, if restarted, has received
  mp_world_memo_t memo;       // for restarted processes
  mp_world_memo_t told;       // received by this process, if restarted

  pthread_t thread;  // the progress thread
  bool is_started;
  atomic_bool must_stop;    // set before the bell, so that the thread does not sleep over it
  mp_doorbell_t *doorbell;  // the progress thread's: the segment's or own_doorbell
  mp_doorbell_t own_doorbell;
  mp_segment_t *segment;  // where payloads lie; NULL: on the heap
};

// The world's own channel, which has no handler.
enum { MP_WORLD_OWN_CHANNEL = MP_WORLD_CHANNELS };

// The kinds of packets of the world's own channel, in words[0].
typedef enum {
  MP_WORLD_EXCHANGE,  // key[0]: number of the agreement, key[1]: of its exchange; the bytes
  MP_WORLD_GOODBYE,   // words[1]: the exit status, words[2]: whether it skips the end
  MP_WORLD_VERDICT,   // what became of an agreement: key[0] its number, words[1] the status code;
                      // bytes: the error's text, if there was memory for it
  MP_WORLD_SILENT,    // words[1]: a rank that does not answer (mp_world_note_silent)
  MP_WORLD_WELCOME,   // to a restarted process; bytes: the state of the world (world_return.c)
} mp_world_word_t;

// Makes a world without transports; the caller fills in the peers. RESOURCE_EXHAUSTED when memory
// is short.
MP_NODISCARD mp_status_t mp_world_create(uint32_t rank, uint32_t size, mp_world_t **out_world);
// Starts the progress thread. RESOURCE_EXHAUSTED when the system refuses one.
MP_NODISCARD mp_status_t mp_world_start(mp_world_t *world);
// Stops the progress thread, if it was started, and frees the world with its transports. NULL:
// nothing.
void mp_world_release(mp_world_t *world);
// Adds a transport, which the world owns from now on; also while the progress thread runs.
void mp_world_add_transport(mp_world_t *world, mp_transport_t *transport);

// Tells all other ranks that this one sends no more, because it exits with this status. Later sends
// fail. A second call has no effect.
void mp_world_say_goodbye(mp_world_t *world, uint32_t exit_status);
// Before the goodbye: makes it say that this process skips the meeting at its end, because one of
// them is lost. The receivers need not know of the lost one.
void mp_world_skip_end(mp_world_t *world);
// Waits until every packet that was sent has left this process; false after `timeout_s` seconds.
bool mp_world_drain(mp_world_t *world, double timeout_s);
// Waits until all others have said goodbye or are lost; false after `timeout_s` seconds.
bool mp_world_await_goodbyes(mp_world_t *world, double timeout_s);

// A payload block with room for `bytes`, in the segment where there is one. NULL when memory is
// short.
mp_payload_block_t *mp_world_take_block(mp_world_t *world, size_t bytes);

// For the attending thread: whether the bell has rung since it asked last.
bool mp_world_hear_own_bell(mp_world_t *world);
// The thread stops attending: from now on the bell rings for the world's thread.
void mp_world_stop_attending(mp_world_t *world);

// Takes a packet of an agreement that has come (world_exchange.c).
void mp_world_take_blob(mp_world_t *world, mp_packet_t *packet);

// Takes a welcome (world_return.c).
void mp_world_take_welcome(mp_world_t *world, mp_packet_t *packet);
// Gives a channel's handler the packets that came before it, in order, and then the losses.
// Progress thread only.
void mp_world_catch_up(mp_world_t *world, mp_channel_state_t *channel);
// Notes a loss as mp_world_lose does, without notifying others; false when it is none. Consumes
// `why`. The caller holds the world's lock, sets all channels' has_news afterwards, and rings.
bool mp_world_note_loss(mp_world_t *world, uint32_t rank, mp_status_t why);

// The reason why `rank` is gone, retained, or OK while it is not.
MP_NODISCARD mp_status_t mp_world_loss(const mp_world_t *world, uint32_t rank);
// Sends the envelopes that are owed to peers (world_send.c), as far as there is memory now.
// Progress thread.
void mp_world_pay_all(mp_world_t *world);

// Waits until `changed` is signalled or the deadline (mp_clock_seconds) is over; false when it was
// over before. The caller holds the world's lock.
bool mp_world_wait_changed(mp_world_t *world, double deadline);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_WORLD_IMPL_H_
