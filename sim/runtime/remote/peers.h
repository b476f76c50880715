// Peers: what a session knows about the other processes that take part in its launch.
//
// A meeting whose group has members in several processes becomes a *remote collective* when all
// members of this process have arrived. The last one to arrive is its *holder*: it packs and sends
// what the other processes need, and parks like the rest while payloads are missing; the last
// packet resumes it. A large remote collective is cut into stripes
// (collectives/collective_stripe.h), a few of which are in flight at a time, each in a phase of its
// own. The remote collectives of one group form a *group sequence*, in which they are numbered, in
// all processes alike. Early packets wait in their sequence, or in the peers if the sequence does
// not exist yet.
//
// The caller holds the session's lock unless noted otherwise.
#ifndef MINIPOD_SIM_RUNTIME_REMOTE_PEERS_H_
#define MINIPOD_SIM_RUNTIME_REMOTE_PEERS_H_

#include "collectives/collective_stripe.h"
#include "collectives/rendezvous.h"
#include "sim/base/os/lock.h"
#include "sim/runtime/remote/router.h"
#include "sim/runtime/workers/worker.h"

typedef struct mp_remote_collective_s mp_remote_collective_t;

// The meetings of one group, in their order.
typedef struct mp_group_sequence_s mp_group_sequence_t;
struct mp_group_sequence_s {
  mp_group_sequence_t *next;
  uint64_t group;                  // the hash of its members
  mp_group_layout_t *layout;       // owned; NULL until it is made
  uint32_t num_begun;              // remote collectives so far
  mp_remote_collective_t *remote;  // the current one, or NULL
  mp_packet_list_t early;          // of remote collectives that have not begun here
};

enum {
  // With two, one is transferred while a thread works on the other; with many, the stripes in
  // flight would not fit into the caches.
  MP_STRIPES_UNDER_WAY = 2,
  // The thread that gets the last packet itself continues steps of up to this many bytes. Within a
  // host data arrive at once, and several workers can share the work.
  MP_LIGHT_BYTES = 128 << 10,
  MP_LIGHT_FAR_BYTES = 1 << 20,  // between hosts, where that is not so
};

// A stripe of a remote collective. Only the thread that works on the collective changes it (its
// holder, or the thread that continues it), except for num_missing while it waits.
typedef struct {
  mp_collective_stripe_t *stripe;  // owned; NULL: it has not begun, or is over
  uint32_t phase;                  // the phase whose payloads are sent and awaited now
  uint32_t num_missing;  // payloads of the phase that have not come, while the holder waits
} mp_remote_stripe_t;

struct mp_remote_collective_s {
  mp_remote_collective_t *next;  // the next one of the session
  mp_group_sequence_t *sequence;
  uint32_t number;        // in its sequence
  mp_meeting_t *meeting;  // owned
  mp_arrival_t *holder;   // of the participant that works on it
  uint32_t num_stripes;
  uint32_t first_stripe, num_begun;  // stripes [first_stripe, num_begun) are under way
  mp_remote_stripe_t *stripes;       // [num_stripes], owned
  bool is_waiting;  // its holder is parked until a stripe has all payloads of its phase
  bool is_ready;    // its holder was resumed for that and has not continued yet
  // The thread that got the last packet continues in the place of its holder, which stays parked
  // (mp_session_carry_on).
  bool is_carried;
  // [num_stripes][MP_SCHEDULE_MAX_PHASES][processes] received, and sent; owned. A payload for all
  // processes takes only one place.
  mp_packet_t **packets;
  mp_payload_t **payloads;
};

// The index of the payload of process 0 in the two arrays, for a phase of a stripe.
static inline size_t mp_remote_place(const mp_remote_collective_t *remote, uint32_t stripe,
                                     uint32_t phase) {
  MP_ASSERT(stripe < remote->num_stripes && phase < MP_SCHEDULE_MAX_PHASES);
  return ((size_t)stripe * MP_SCHEDULE_MAX_PHASES + phase) *
         remote->sequence->layout->num_processes;
}

// What watch.c has done about a wait.
typedef enum {
  MP_ALARM_NONE,   // it has not taken too long
  MP_ALARM_ASKED,  // it has asked the missing processes what they are doing
  MP_ALARM_TOLD,   // it has printed a message
} mp_alarm_t;

// Which processes a launch was meant for (mp_endpoint_mean).
typedef enum {
  MP_MEANT_UNKNOWN,  // the coordinator was not asked, or knew more than the endpoint
  MP_MEANT_KNOWN,    // the processes that the endpoint knew
} mp_meant_t;

struct mp_peers_s {
  mp_session_t *session;  // the session that owns them; opaque here
  mp_lock_t *lock;        // the session's lock
  mp_endpoint_t *endpoint;
  uint64_t devices, number;  // the launch's key: hash of the list of devices, number on that list
  uint64_t num_returns;      // number of restarts when the hash was made
  mp_peers_t *next;          // in the endpoint's launch queue, under the router's lock
  mp_meant_t meant;          // likewise
  mp_peers_t *next_carried;  // in the router's list of sessions to continue; likewise
  const uint32_t *ranks_of;  // [participants]; borrowed from the device set
  uint32_t self;             // this process's rank
  uint32_t num_ranks;        // other ranks that take part
  const uint32_t *ranks;     // [num_ranks]; borrowed from the device set
  bool *has_left;            // [num_ranks] they have reported that they are done, or they are lost
  mp_group_sequence_t *sequences;  // owned
  mp_packet_list_t early;  // of groups at which no participant of this process has arrived yet
  mp_remote_collective_t *remotes;  // in progress, owned
  uint64_t num_meetings;            // remote collectives so far
  uint64_t num_changes;             // incremented when anything moves
  // Used by watch.c:
  uint64_t watched_changes;      // num_changes at its last check
  double still_since, asked_at;  // mp_clock_seconds
  mp_alarm_t alarm;
  uint64_t probe_mark;    // used by circles/circle.c: to see whether anything has moved
  uint32_t num_still;     // likewise: checks since then
  mp_packet_t **answers;  // [num_ranks] their answers, owned; NULL: none
};

// How a session reaches its participants in other processes. `devices` is the hash of the list of
// devices, made after `num_returns` (mp_endpoint_hash), and `number` the launch's number on it.
// `ranks_of` (by logical number) and `ranks` (of the other processes that take part) are borrowed
// for as long as the session lives.
typedef struct {
  mp_endpoint_t *endpoint;
  uint64_t devices, number, num_returns;
  const uint32_t *ranks_of, *ranks;
  uint32_t num_ranks;
} mp_session_link_t;

// The peers of a session, which owns them; `lock` is its lock. RESOURCE_EXHAUSTED when memory is
// short.
MP_NODISCARD mp_status_t mp_peers_create(mp_session_t *session, mp_lock_t *lock,
                                         const mp_session_link_t *link, mp_peers_t **out_peers);
// Frees the peers with the packets that they keep; no lock is needed. Their remote collectives have
// ended. NULL: nothing.
void mp_peers_release(mp_peers_t *peers);

// The index of a rank in `ranks`, or -1.
int64_t mp_peers_find(const mp_peers_t *peers, uint32_t rank);
// True when the process with this rank will send nothing more for this launch.
bool mp_peers_has_left(const mp_peers_t *peers, uint32_t rank);

// True when this remote collective (by the hash of its group, and its number in the sequence) has
// begun in this process.
bool mp_peers_has_begun(const mp_peers_t *peers, uint64_t group, uint32_t number);

// An envelope of this kind with the launch's key; the other words are 0. No lock is needed.
mp_envelope_t mp_peers_envelope(const mp_peers_t *peers, mp_packet_kind_t kind);
// Sends a packet to one rank, with a copy of the bytes, if there are any. No lock is needed. Errors
// are dropped: the router reports lost processes.
void mp_peers_send(const mp_peers_t *peers, uint32_t rank, const mp_envelope_t *envelope,
                   const void *bytes, size_t size);
// The same to all ranks that have not left.
void mp_peers_send_all(const mp_peers_t *peers, const mp_envelope_t *envelope, const void *bytes,
                       size_t size);

// ---- Remote collectives (remote_collective.c) ----

// Makes a remote collective of a complete meeting (all members of this process have arrived), which
// it adopts on success. `holder` is the arrival of the participant that will work on it.
// RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_remote_collective_begin(mp_peers_t *peers, mp_meeting_t *meeting,
                                                    mp_arrival_t *holder,
                                                    mp_remote_collective_t **out_remote);
// Files the early packets of this remote collective. Fails like mp_remote_collective_file.
MP_NODISCARD mp_status_t mp_remote_collective_take_early(mp_peers_t *peers,
                                                         mp_remote_collective_t *remote);
// Files a packet of another process (PAYLOAD or DISPUTE) where its remote collective will find it;
// takes the packet. `out_ready` receives the remote collective that can continue now, or NULL. If
// the two processes are not at the same collective, the process that notices sends a DISPUTE with
// its own side; the one that receives it fails with INVALID_ARGUMENT and a message with both sides.
MP_NODISCARD mp_status_t mp_remote_collective_file(mp_peers_t *peers, mp_packet_t *packet,
                                                   mp_remote_collective_t **out_ready);
// Finds a stripe in flight that has all payloads of its phase; -1: there is none. Then the missing
// payloads are counted, the remote collective waits from now on (is_waiting), and the caller parks
// the holder.
int64_t mp_remote_collective_find_complete(mp_remote_collective_t *remote);
// Drops what a stripe holds, its packets too. No other thread works on it; no lock is needed.
void mp_remote_collective_drop(mp_remote_collective_t *remote, uint32_t stripe);
// Removes the remote collective from the lists and frees it, with its meeting.
void mp_remote_collective_end(mp_peers_t *peers, mp_remote_collective_t *remote);
// The same for all current ones, before the peers are freed; no lock is needed. `peers` NULL has no
// effect.
void mp_remote_collective_end_all(mp_peers_t *peers);

// True when a process (by its number in the group layout) has yet to send a payload in the current
// phase of this stripe, which is in flight; and the same for any stripe.
bool mp_remote_stripe_misses(const mp_remote_collective_t *remote, uint32_t stripe,
                             uint32_t process);
bool mp_remote_collective_misses(const mp_remote_collective_t *remote, uint32_t process);
// True when a process whose payload is missing has left the launch, so that it will never come.
bool mp_remote_collective_is_lost(const mp_peers_t *peers, const mp_remote_collective_t *remote);

// ---- The holder's work (remote_stripes.c), without the lock ----

// Begins the stripes that may be in flight now: packs and sends their first payloads, with the help
// of idle workers. `self` NULL, here and below: the caller is no worker, and works alone.
MP_NODISCARD mp_status_t mp_remote_stripes_begin(mp_peers_t *peers, mp_remote_collective_t *remote,
                                                 mp_worker_t *self);
// Continues a stripe that has all payloads of its phase: with its next phase, or, after the last
// one, with the results of this process's members and then with stripes that have not begun.
// `out_is_over`: that was the last stripe. INVALID_ARGUMENT when a payload has the wrong size.
MP_NODISCARD mp_status_t mp_remote_stripes_go_on(mp_peers_t *peers, mp_remote_collective_t *remote,
                                                 uint32_t stripe, mp_worker_t *self,
                                                 bool *out_is_over);
// True when continuing is short work and the collective spans hosts. Then the thread that got the
// last packet should do it, because a worker would have to be woken for each of many stripes. The
// remote collective waits, or did until now.
bool mp_remote_stripes_are_light(const mp_remote_collective_t *remote);

// The envelope of packets of this remote collective, without the place (mp_packet_place).
mp_envelope_t mp_remote_collective_envelope(const mp_peers_t *peers,
                                            const mp_remote_collective_t *remote,
                                            mp_packet_kind_t kind);

#endif  // MINIPOD_SIM_RUNTIME_REMOTE_PEERS_H_
