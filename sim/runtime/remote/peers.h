// Peers: what a session knows of the other processes that take part in its launch.
//
// A meeting whose group has members in several processes becomes a *remote collective* when all
// members of this process have arrived: the last one packs and sends what the others need and parks
// like the rest when something is missing; the last packet to come makes it go on. Remote
// collectives of one group are numbered, in a *group sequence*, in each process alike; packets that
// are early wait there, or with the session while there is no line.
//
// Under the session's lock unless said otherwise.
#ifndef MINIPOD_SIM_RUNTIME_REMOTE_PEERS_H_
#define MINIPOD_SIM_RUNTIME_REMOTE_PEERS_H_

#include "collectives/collective_schedule.h"
#include "collectives/rendezvous.h"
#include "sim/base/os/lock.h"
#include "sim/runtime/devices/worker.h"
#include "sim/runtime/remote/router.h"

typedef struct mp_remote_collective_s mp_remote_collective_t;

// One group, in the order of its meetings.
typedef struct mp_group_sequence_s mp_group_sequence_t;
struct mp_group_sequence_s {
  mp_group_sequence_t *next;
  uint64_t group;                  // the hash of its members
  mp_group_layout_t *layout;       // NULL: none of ours has come there yet
  uint32_t num_begun;              // remote collectives so far
  mp_remote_collective_t *remote;  // the one in progress
  mp_packet_list_t early;
};

struct mp_remote_collective_s {
  mp_remote_collective_t *next;  // of the session's
  mp_group_sequence_t *sequence;
  uint32_t number;                     // in its sequence
  mp_meeting_t *meeting;               // owned
  mp_collective_schedule_t *schedule;  // owned
  mp_arrival_t *holder;                // who works on it
  uint32_t phase;                      // that payloads are sent and awaited of
  uint32_t num_missing;                // of them
  bool is_waiting;                     // its holder is parked until num_missing is 0
  bool is_ready;                       // its holder was resumed for that and has not gone on yet
  mp_packet_t **packets;               // [phases][processes], owned
  mp_payload_t **payloads;             // the same; of a payload for all only one place is filled
};

// How far watch.c has come with a wait.
typedef enum {
  MP_ALARM_NONE,
  MP_ALARM_ASKED,
  MP_ALARM_TOLD,
} mp_alarm_t;

struct mp_peers_s {
  mp_session_t *session;  // whose they are; not looked into here
  mp_lock_t *lock;        // the session's
  mp_endpoint_t *endpoint;
  uint64_t devices, number;  // the key of the launch
  mp_peers_t *next;          // in the endpoint's list, under the router's lock
  const uint32_t *ranks_of;  // [participants]; borrowed from the device set
  uint32_t self;
  uint32_t num_ranks;     // other ranks that take part
  const uint32_t *ranks;  // [num_ranks]; borrowed
  bool *has_left;         // [num_ranks]
  mp_group_sequence_t *sequences;
  mp_packet_list_t early;           // of groups that none of ours has come to yet
  mp_remote_collective_t *remotes;  // in progress
  uint64_t num_meetings;            // remote collectives so far
  uint64_t num_changes;             // grows when anything moves
  // Of watch.c:
  uint64_t watched_changes;
  double still_since, asked_at;
  mp_alarm_t alarm;
  mp_packet_t **answers;  // [num_ranks] what they said, owned; NULL: nothing
};

MP_NODISCARD mp_status_t mp_peers_create(mp_session_t *session, mp_lock_t *lock,
                                         mp_endpoint_t *endpoint, uint64_t devices, uint64_t number,
                                         const uint32_t *ranks_of, uint32_t num_ranks,
                                         const uint32_t *ranks, mp_peers_t **out_peers);
void mp_peers_release(mp_peers_t *peers);

// The index among `ranks`, or -1.
int64_t mp_peers_find(const mp_peers_t *peers, uint32_t rank);
// Nobody of this rank will do anything any more.
bool mp_peers_has_left(const mp_peers_t *peers, uint32_t rank);

// An envelope with the launch's key.
mp_envelope_t mp_peers_envelope(const mp_peers_t *peers, mp_packet_kind_t kind);
// To one rank, with a copy of the bytes, if there are any. No lock needed. Losses are told
// elsewhere, so errors are dropped.
void mp_peers_send(const mp_peers_t *peers, uint32_t rank, const mp_envelope_t *envelope,
                   const void *bytes, size_t size);
// To all ranks that have not left.
void mp_peers_send_all(const mp_peers_t *peers, const mp_envelope_t *envelope, const void *bytes,
                       size_t size);

// ---- Remote collectives (remote_collective.c) ----

// Makes a remote collective of a meeting where all of this process have arrived. Adopts it, on
// success.
MP_NODISCARD mp_status_t mp_remote_collective_begin(mp_peers_t *peers, mp_meeting_t *meeting,
                                                    mp_arrival_t *holder,
                                                    mp_remote_collective_t **out_remote);
// Files what has come early. Fails like mp_remote_collective_file.
MP_NODISCARD mp_status_t mp_remote_collective_take_early(mp_peers_t *peers,
                                                         mp_remote_collective_t *remote);
// Files a packet of another process (PARCEL or DISPUTE); takes it. `out_ready` receives the remote
// collective that may go on now, or NULL. INVALID_ARGUMENT with both sides when they are not at the
// same collective: who finds out tells the other side, which knows both then.
MP_NODISCARD mp_status_t mp_remote_collective_file(mp_peers_t *peers, mp_packet_t *packet,
                                                   mp_remote_collective_t **out_ready);
// Packs and sends the phase's payloads. Without the lock, by the holder.
MP_NODISCARD mp_status_t mp_remote_collective_send(mp_peers_t *peers,
                                                   mp_remote_collective_t *remote,
                                                   mp_worker_t *self);
// Looks what of the phase has come; true: everything. False: it waits now.
bool mp_remote_collective_has_all(mp_remote_collective_t *remote);
// Reads what has come in this phase and goes to the next one; true: there is none. Without the
// lock, by the holder.
MP_NODISCARD mp_status_t mp_remote_collective_advance(mp_remote_collective_t *remote,
                                                      bool *out_is_last);
// Writes the results of our members. Without the lock, by the holder.
MP_NODISCARD mp_status_t mp_remote_collective_finish(mp_remote_collective_t *remote,
                                                     mp_worker_t *self);
// Off the lists; frees everything.
void mp_remote_collective_end(mp_peers_t *peers, mp_remote_collective_t *remote);

// True when the process's payload of the phase has not come.
bool mp_remote_collective_misses(const mp_remote_collective_t *remote, uint32_t process);
// Somebody whom the remote collective waits for will never send.
bool mp_remote_collective_is_lost(const mp_peers_t *peers, const mp_remote_collective_t *remote);

#endif  // MINIPOD_SIM_RUNTIME_REMOTE_PEERS_H_
