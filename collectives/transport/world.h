// The world: the processes of one job, and messages between them.
//
// A process is named by its rank. Some ranks share a host (they can map each other's memory), the
// others are reached over the network; transports (transport.h) know how, users of this header do
// not. Messages are active: a packet is handed to the handler of its channel as soon as it is
// there, in memory that belongs to the transport, and stays valid until it is released. So no
// thread ever waits inside a receive, and a packet that is no longer needed is released on arrival.
//
// Packets from one rank on one channel are delivered in the order in which they were sent. Between
// different ranks there is no order, neither of packets nor of the news that a rank has left.
// Handlers are called on the progress thread, or on one that attends in its place, one at a time:
// they do not block, and hold locks only briefly. Packets that come before a handler is attached
// wait for it. A packet that was sent is never dropped because memory is short: it waits until
// there is some.
//
// All functions are thread-safe. A world lives until the process ends (it is left by the exit
// handlers of bootstrap.h), so clients come and go within it. A forked child has no part in it:
// mp_world_send returns FAILED_PRECONDITION there.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_WORLD_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_WORLD_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/containers/list.h"
#include "sim/base/status.h"

typedef struct mp_world_s mp_world_t;

typedef struct {
  uint32_t host;  // number of its host; hosts count from 0, in the order of their lowest ranks
  uint32_t rank_on_host;
  uint32_t ranks_on_host;
  _Atomic int64_t pid;  // as the process itself sees it
  // NULL: not known yet. It comes while the world's thread already runs, and names peers in errors:
  // written after the pid and the text that it points at, so that a thread that sees it sees them.
  _Atomic(const char *) hostname;
} mp_peer_t;

// This process's rank (mp_world_rank), and how many ranks there are (mp_world_size).
uint32_t mp_world_rank(const mp_world_t *world);
uint32_t mp_world_size(const mp_world_t *world);
// The data about the process with this rank, which may be this one. Borrowed from the world.
const mp_peer_t *mp_world_peer(const mp_world_t *world, uint32_t rank);

// ---- Sending ----

// Memory to be sent, to one rank or several. Ranks of the same host read it in place. Written by
// its creator before it is first sent, constant afterwards. Released by its creator after the last
// send; freed when all receivers have released their packets.
typedef struct {
  void *data;  // 64-byte aligned
  size_t bytes;
} mp_payload_t;

// A payload of `bytes` (may be 0) that are not initialized. RESOURCE_EXHAUSTED when memory is
// short.
MP_NODISCARD mp_status_t mp_payload_create(mp_world_t *world, size_t bytes,
                                           mp_payload_t **out_payload);
// Gives the creator's reference back. NULL: nothing.
void mp_payload_release(mp_payload_t *payload);

// Channels have numbers below this one. The users of the world agree on what each is for, alike in
// all processes.
enum { MP_WORLD_CHANNELS = 4 };

// The description of a packet, for its handler; the transport reads only the channel.
typedef struct {
  uint32_t channel;
  uint32_t words[3];
  uint64_t key[4];
} mp_envelope_t;

// Sends a packet; never waits for the receiver. `payload` may be NULL: an envelope alone. Sending
// to one's own rank is allowed. UNAVAILABLE with the reason when the rank has left or is lost.
// RESOURCE_EXHAUSTED when memory is short; but an envelope alone is kept and sent later, unless 14
// already wait for this rank.
MP_NODISCARD mp_status_t mp_world_send(mp_world_t *world, uint32_t to,
                                       const mp_envelope_t *envelope, mp_payload_t *payload);

// A rank did not answer in time: until it sends something, neither this process nor the others,
// which are notified, wait for it when they end.
void mp_world_note_silent(mp_world_t *world, uint32_t rank);

// The reason why a process of the job sends no more, unless it has exited with success; NULL: there
// is no such process.
MP_NODISCARD mp_status_t mp_world_failure(mp_world_t *world);

// ---- Receiving ----

typedef struct mp_packet_s mp_packet_t;
struct mp_packet_s {
  uint32_t from;
  mp_envelope_t envelope;
  const void *data;  // NULL when bytes is 0; 64-byte aligned
  size_t bytes;
  mp_packet_t *next;  // in the list of the packet's owner
};

// Frees the packet and drops its reference to the sender's payload. NULL: nothing.
void mp_packet_release(mp_packet_t *packet);

enum { MP_PACKET_NOTE_BYTES = 64 };
// Room in the packet for its owner's notes about it (MP_PACKET_NOTE_BYTES, 16-byte aligned, not
// initialized), so that keeping a packet needs no allocation, which might fail.
void *mp_packet_note(mp_packet_t *packet);

// Packets that wait, in order. A packet is in one list at most. Not thread-safe: the list's owner
// locks.
typedef MP_QUEUE(mp_packet_t) mp_packet_list_t;

// Appends a packet, which the list owns from now on.
void mp_packet_list_push(mp_packet_list_t *list, mp_packet_t *packet);
// Takes the first packet off the list; NULL: there is none.
mp_packet_t *mp_packet_list_pop(mp_packet_list_t *list);
// Takes the first packet for which is_wanted(packet, number) is true off the list; NULL: there is
// none.
mp_packet_t *mp_packet_list_take(mp_packet_list_t *list,
                                 bool (*is_wanted)(const mp_packet_t *packet, uint64_t number),
                                 uint64_t number);
// Releases all packets of the list.
void mp_packet_list_clear(mp_packet_list_t *list);
// Releases the packets that the process with this rank has sent.
void mp_packet_list_drop_from(mp_packet_list_t *list, uint32_t rank);
// For mp_packet_list_take: whether the process with this rank has sent it.
bool mp_packet_is_from(const mp_packet_t *packet, uint64_t rank);

// Work that a thread with locks defers until it holds none.
typedef struct {
  void (*run)(void *context);  // NULL: there is none
  void *context;               // run releases it
} mp_followup_t;

typedef struct {
  // Takes a packet, which belongs to the handler and may be kept.
  void (*deliver)(void *context, mp_packet_t *packet);
  // The process with this rank sends no more: it has said goodbye or is lost. Called once, after
  // its last packet. `why` is borrowed ("process 1 (pid 4711 on host a) has exited"). May be NULL.
  void (*lost)(void *context, uint32_t rank, mp_status_t why);
  // Another process has replaced a lost one. Called after that loss was reported and before its
  // first packet, and within mp_world_attach for processes that came earlier. May be NULL.
  void (*returned)(void *context, uint32_t rank, uint64_t incarnation);
  // Called on the progress thread after it has delivered packets, until there is nothing left to
  // do: for work that a packet has led to, and that takes longer than `deliver` may. It does one
  // piece of work; false: there was none. Without any lock of the world's but one that is held for
  // as long; what needs that one free, too, is left in *followup, and need not be over when
  // mp_world_work_off or mp_world_detach returns. Packets wait meanwhile, so all of it should be
  // short all the same (about 100 us). May be NULL.
  bool (*afterwards)(void *context, mp_followup_t *followup);
  void *context;
} mp_handler_t;

// Gives a channel its handler, which is copied; a channel has one. Packets and losses from before
// are delivered soon, on the progress thread.
void mp_world_attach(mp_world_t *world, uint32_t channel, const mp_handler_t *handler);
// Takes the handler away. Waits for a call in progress, so it must not be called from within one.
void mp_world_detach(mp_world_t *world, uint32_t channel);
// Calls `afterwards` of the channel's handler on this thread: when it returns, the work that
// packets have caused so far is done, on whichever thread. Must not be called from within a
// handler.
void mp_world_work_off(mp_world_t *world, uint32_t channel);

// ---- Attending ----
//
// A thread that would only wait for the progress thread can do its work itself: no thread must be
// woken, and one thread less needs a core.

// From now on, until mp_world_attend_end, the calling thread makes progress in the place of the
// progress thread, so it should start that soon. False, without any effect: another thread attends,
// or this one does already. The caller calls no functions of the user's until then.
bool mp_world_attend_begin(mp_world_t *world);
// Makes progress for as long as is_going_on(context), which takes no lock that outranks those of
// handlers; but gives up when nothing comes for a while (0.3 ms), and after 0.1 s. Handlers, the
// work that packets cause, and callbacks that these call may run on this thread, which holds no
// lock.
void mp_world_attend_end(mp_world_t *world, bool (*is_going_on)(void *context), void *context);

// ---- Agreeing ----
//
// An agreement is work that all ranks do together and that succeeds in all of them or in none. A
// rank that fails on the way tells the others why, and they fail at once with its name and its
// error. Telling needs no memory, so a rank that has none left can still tell; only the text of its
// error may be missing then. No message can close the last gap: of ranks that hear the last verdict
// around the end of the timeout, one may still succeed while another reports DEADLINE_EXCEEDED.

typedef struct mp_agreement_s mp_agreement_t;
// Allocated on its caller's stack. The members are written by the functions below alone; `next` is
// under the world's lock.
struct mp_agreement_s {
  mp_world_t *world;
  mp_agreement_t *next;  // of the world's agreements in progress
  uint64_t number;
  double timeout_s;
  uint32_t num_rounds;  // exchanges so far
  bool is_broken;       // a process that had begun it was replaced by another one
  uint32_t broken_by;   // its rank
  bool has_memo;        // mp_agreement_set_memo
  void *memo;
  size_t memo_bytes;
  bool has_heard;  // another rank has failed, and reports that to all others itself
};

// Begins an agreement, whose exchanges may take `timeout_s` seconds each. The n-th agreements of
// all ranks belong together, so this one counts whatever happens afterwards, and beginning it
// cannot fail. The other ranks wait for this one from now on, until it ends the agreement.
void mp_agreement_begin(mp_world_t *world, double timeout_s, mp_agreement_t *out_agreement);

// Gives every rank the bytes of every rank: out_bytes[rank] and out_sizes[rank], in one allocation
// that the caller frees by mp_free(*out_bytes). The n-th exchanges of an agreement belong together.
// Blocks, asleep. DEADLINE_EXCEEDED after the agreement's timeout, naming the ranks whose bytes
// have not come; UNAVAILABLE when one of them has left; another rank's error when that has failed.
// After a failure the agreement can only be ended.
MP_NODISCARD mp_status_t mp_agreement_exchange(mp_agreement_t *agreement, const void *bytes,
                                               size_t size, void ***out_bytes, size_t **out_sizes);

// Whether the agreement can still succeed, as far as is known now: another rank's error when that
// has failed, UNAVAILABLE when one has left. Does not wait.
MP_NODISCARD mp_status_t mp_agreement_check(mp_agreement_t *agreement);

// With its success the agreement leaves the world this memo for restarted processes (copied), under
// the agreement's number. It replaces the previous one. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_agreement_set_memo(mp_agreement_t *agreement, const void *bytes,
                                               size_t size);

// Ends the agreement, with the result that it had here (`status`, consumed). If that is OK, this
// waits until all others have said the same, and fails like mp_agreement_exchange if one does not.
// The caller must have made everything by then, so that nothing can fail after a success, and must
// be able to drop it all. If it is an error, the others get it, and the call returns without
// waiting.
MP_NODISCARD mp_status_t mp_agreement_end(mp_agreement_t *agreement, mp_status_t status);

// An agreement of one exchange, which succeeds here without waiting for the success of the others.
MP_NODISCARD mp_status_t mp_world_exchange(mp_world_t *world, const void *bytes, size_t size,
                                           double timeout_s, void ***out_bytes, size_t **out_sizes);

// ---- Coming back ----
//
// Where no MPI launcher has started the processes, one that has died may be started again: it takes
// its old rank, with another incarnation (bootstrap/again.h). The others go on in the world that
// they have.

// Drops the memo for restarted processes (mp_agreement_set_memo), if it has this number.
void mp_world_drop_memo(mp_world_t *world, uint64_t number);
// True, once, in a restarted process that has received a memo, which the caller frees
// (mp_free(*out_bytes)).
bool mp_world_take_memo(mp_world_t *world, uint64_t *out_number, void **out_bytes,
                        size_t *out_size);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_WORLD_H_
