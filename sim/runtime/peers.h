// Peers: what a session knows of the other processes that take part in its launch.
//
// A meeting whose group has members in several processes becomes a *passage* when all members of
// this process have arrived: the last one packs and sends what the others need and parks like the
// rest when something is missing; the last packet to come makes it go on. Passages of one group are
// numbered, on a *line*, in each process alike; packets that are early wait there.
//
// Under the session's lock unless said otherwise.
#ifndef MINIPOD_SIM_RUNTIME_PEERS_H_
#define MINIPOD_SIM_RUNTIME_PEERS_H_

#include "collectives/crossing.h"
#include "collectives/rendezvous.h"
#include "sim/runtime/hub.h"

typedef struct mp_peers_s mp_peers_t;
typedef struct mp_passage_s mp_passage_t;

// One group, in the order of its meetings.
typedef struct mp_line_s mp_line_t;
struct mp_line_s {
  mp_line_t *next;
  uint64_t group;         // the hash of its members
  mp_spread_t *spread;    // NULL: none of ours has come there yet
  uint32_t num_begun;     // passages so far
  mp_passage_t *passage;  // the one in progress
  mp_mail_list_t early;
};

struct mp_passage_s {
  mp_passage_t *next;  // of the session's
  mp_line_t *line;
  uint32_t number;          // on its line
  mp_meeting_t *meeting;    // owned
  const uint32_t *names;    // what messages call the participants
  mp_crossing_t *crossing;  // owned
  mp_arrival_t *holder;     // who works on it
  uint32_t phase;           // that parcels are sent and awaited of
  uint32_t num_missing;     // of them
  bool is_waiting;          // its holder is parked until num_missing is 0
  bool is_ready;            // its holder was resumed for that and has not gone on yet
  mp_packet_t **packets;    // [phases][processes], owned
  mp_parcel_t **parcels;    // the same; of a parcel for all only one place is filled
};

// How far watch.c has come with a wait.
typedef enum {
  MP_ALARM_NONE,
  MP_ALARM_ASKED,
  MP_ALARM_TOLD,
} mp_alarm_t;

struct mp_peers_s {
  mp_session_t *session;  // whose they are
  mp_port_t *port;
  uint64_t devices, number;  // the key of the launch
  mp_session_t *next;        // in the port's list, under the hub's lock
  const uint32_t *ranks_of;  // [participants]; borrowed from the device set
  uint32_t self;
  uint32_t num_ranks;     // other ranks that take part
  const uint32_t *ranks;  // [num_ranks]; borrowed
  bool *has_left;         // [num_ranks]
  mp_line_t *lines;
  mp_passage_t *passages;  // in progress
  uint64_t num_meetings;   // passages so far
  uint64_t num_changes;    // grows when anything moves
  // Of watch.c:
  uint64_t watched_changes;
  double still_since, asked_at;
  mp_alarm_t alarm;
  char **answers;  // [num_ranks] owned; NULL: none
};

static inline uint64_t mp_peers_number(const mp_peers_t *peers) {
  return peers->number;
}
static inline mp_session_t *mp_peers_next(const mp_peers_t *peers) {
  return peers->next;
}
static inline void mp_peers_set_next(mp_peers_t *peers, mp_session_t *next) {
  peers->next = next;
}

MP_NODISCARD mp_status_t mp_peers_create(mp_session_t *session, mp_port_t *port, uint64_t devices,
                                         uint64_t number, const uint32_t *ranks_of,
                                         uint32_t num_ranks, const uint32_t *ranks,
                                         mp_peers_t **out_peers);
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

// ---- Passages (passage.c) ----

// Makes a passage of a meeting where all of this process have arrived. Adopts it, on success.
MP_NODISCARD mp_status_t mp_passage_begin(mp_peers_t *peers, mp_meeting_t *meeting,
                                          mp_arrival_t *holder, const uint32_t *names,
                                          mp_passage_t **out_passage);
// Files what has come early. Fails like mp_passage_file.
MP_NODISCARD mp_status_t mp_passage_take_early(mp_peers_t *peers, mp_passage_t *passage);
// Files a packet of another process (PARCEL or DISPUTE); takes it. `out_ready` receives the passage
// that may go on now, or NULL. INVALID_ARGUMENT with both sides when they are not at the same
// collective: who finds out tells the other side, which knows both then.
MP_NODISCARD mp_status_t mp_passage_file(mp_peers_t *peers, mp_packet_t *packet,
                                         mp_passage_t **out_ready);
// Packs and sends the phase's parcels. Without the lock, by the holder.
MP_NODISCARD mp_status_t mp_passage_send(mp_peers_t *peers, mp_passage_t *passage,
                                         mp_worker_t *self);
// Looks what of the phase has come; true: everything. False: it waits now.
bool mp_passage_has_all(mp_passage_t *passage);
// Reads what has come in this phase and goes to the next one; true: there is none. Without the
// lock, by the holder.
MP_NODISCARD mp_status_t mp_passage_advance(mp_passage_t *passage, bool *out_is_last);
// Writes the results of our members. Without the lock, by the holder.
MP_NODISCARD mp_status_t mp_passage_finish(mp_passage_t *passage, mp_worker_t *self);
// Off the lists; frees everything.
void mp_passage_end(mp_peers_t *peers, mp_passage_t *passage);

// True when the process's parcel of the phase has not come.
bool mp_passage_misses(const mp_passage_t *passage, uint32_t process);
// Somebody whom the passage waits for will never send.
bool mp_passage_is_lost(const mp_peers_t *peers, const mp_passage_t *passage);

#endif  // MINIPOD_SIM_RUNTIME_PEERS_H_
