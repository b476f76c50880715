// Rendezvous: the meetings of a collective's participants (StableHLO spec, "Execution of collective
// ops").
//
// One table serves one launch on a set of participants. A participant arrives with its description
// of the collective and its contribution; a meeting is found by the list of its members alone. That
// is enough to pair the n-th collective of each member with that of the others, because no member
// can reach the next one before all have met at this one. It never depends on which program a
// participant runs. But their descriptions must agree (collective_traits.h), or the one that comes
// later gets an error that shows both sides.
//
// Not thread-safe: the caller holds the lock of the table's owner. Arrivals belong to their
// participants and must stay until their meeting was run or abandoned.
#ifndef MINIPOD_COLLECTIVES_RENDEZVOUS_H_
#define MINIPOD_COLLECTIVES_RENDEZVOUS_H_

#include "collectives/collective.h"

typedef struct {
  const mp_collective_t *collective;
  uint64_t program_digest;  // in equal programs the ordinals must be equal too
  uint32_t logical;         // the participant
  mp_contribution_t contribution;
  // Used by the runtime only.
  bool is_over;  // the meeting was held
  void *work;    // the remote collective that the participant should continue; NULL: none
} mp_arrival_t;

typedef struct mp_meeting_s mp_meeting_t;
struct mp_meeting_s {
  mp_meeting_t *prev, *next;  // of its bucket
  uint32_t bucket;
  const mp_collective_t *collective;  // from the first arrival
  uint32_t group;
  uint32_t num_members, num_arrived;
  uint32_t num_needed;               // members of this process
  const uint32_t *names;             // the participants' names in messages; the table's
  const uint32_t *members;           // logical numbers; from the first arrival's description
  mp_arrival_t **arrivals;           // [num_members]; NULL: missing
  mp_contribution_t *contributions;  // [num_members]
};

typedef struct {
  const uint32_t *names;  // [participants]: their names in messages (global device ids)
  uint32_t num_buckets;
  mp_meeting_t **buckets;  // NULL before the first arrival
  uint32_t num_open;       // meetings at which a participant waits
  // [participants] the ranks they belong to, and this process's; NULL: all are in this process.
  // Only participants of this process arrive here, and a meeting is complete when they all have.
  const uint32_t *ranks_of;
  uint32_t self;
} mp_rendezvous_t;

// Makes an empty table for participants of this process; `names` is borrowed. The owner sets
// `ranks_of` and `self` afterwards if there are participants in other processes.
void mp_rendezvous_init(mp_rendezvous_t *table, const uint32_t *names, uint32_t num_participants);
// Drops all open meetings and frees the table's memory.
void mp_rendezvous_deinit(mp_rendezvous_t *table);

// Registers `arrival`, whose participant is in one of the collective's groups. `out_complete`
// receives the meeting when this was its last member of this process, else NULL; then the meeting
// is no longer in the table, and the caller owns it. INVALID_ARGUMENT when it disagrees with
// earlier arrivals, RESOURCE_EXHAUSTED when memory is short: the arrival is not registered.
MP_NODISCARD mp_status_t mp_rendezvous_arrive(mp_rendezvous_t *table, mp_arrival_t *arrival,
                                              mp_meeting_t **out_complete);
// Frees a meeting that mp_rendezvous_arrive returned. NULL has no effect.
void mp_meeting_release(mp_meeting_t *meeting);

// Any open meeting after `meeting` (NULL: the first), in no special order; NULL: no more.
mp_meeting_t *mp_rendezvous_next(const mp_rendezvous_t *table, const mp_meeting_t *meeting);
// Drops all open meetings. The caller resumes the participants that wait at them.
void mp_rendezvous_abandon(mp_rendezvous_t *table);

// Sets the results of a device that is in none of the groups to zero (StableHLO spec,
// collective_broadcast and collective_permute).
void mp_collective_zero_outputs(const mp_collective_t *collective, const mp_arrival_t *arrival);

#endif  // MINIPOD_COLLECTIVES_RENDEZVOUS_H_
