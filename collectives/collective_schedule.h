// Schedules: the payloads that each process packs, sends and awaits for a collective over several
// processes.
//
// When a group has members in several processes, each process does its share in phases. In phase p
// it packs a payload for each other process (or one for all), and continues when the others'
// payloads of that phase have come; after the last phase it writes the results of its own members.
// Received payloads are whole inputs, packed slices, or partial results of the reduction's tree,
// and the algorithms of mp_collective_run do the rest. The results have the same bits as in one
// process, however the members are distributed over processes.
//
//   all_gather, broadcast     1 the inputs, the same payload for all
//   permute, all_to_all,
//   exchange, ragged          1 what the members of each process want, in their order
//   all_reduce, small         1 our pieces (group_layout.h), the same payload for all
//   reduce_scatter            1 our pieces of the parts of each process' members
//   all_reduce, large         1 our pieces of each process' share of the elements
//                             2 the results of our share, the same payload for all
//
// On a grid of hosts data are sent only once from one host to another, along columns, instead of
// from every process to every one:
//
//   all_gather, broadcast     1 our inputs, to our host and our column
//                             2 the inputs of the others of our column, to our host
//   reduce_scatter            1 on our host: pieces of what each column's processes need
//                             2 in our column: our host's pieces of what each process needs
//   all_reduce, large         1, 2 the same for shares of the elements
//                             3 results, in our column
//                             4 the results of our column, on our host
//
// (The numbers here count from 1; `phase` counts from 0.) Pieces are partials in the accumulation
// type, or plain inputs if a process (or host) has only single leaves. In the first phase every
// process sends to every other one, if only an empty payload: so all check that they are at the
// same collective before they touch data.
//
// This layer neither sends nor waits. One schedule serves one meeting. Packing and finishing are
// cut into parts that may run at the same time; all other functions are for one thread at a time.
#ifndef MINIPOD_COLLECTIVES_COLLECTIVE_SCHEDULE_H_
#define MINIPOD_COLLECTIVES_COLLECTIVE_SCHEDULE_H_

#include "collectives/collective.h"
#include "collectives/group_layout.h"
#include "sim/base/assert.h"

enum { MP_SCHEDULE_MAX_PHASES = 4 };

// As the size of a payload: nothing is sent, not even an empty one.
#define MP_NO_PAYLOAD SIZE_MAX

// A payload that has come; borrowed.
typedef struct {
  const void *data;
  size_t bytes;
} mp_payload_view_t;

typedef struct {
  const mp_collective_t *collective;
  uint32_t group;
  const uint32_t *members;           // logical numbers, in group order
  const mp_group_layout_t *layout;   // borrowed
  const uint32_t *names;             // borrowed: the devices' names in messages, or NULL
  mp_contribution_t *contributions;  // [layout->size] borrowed; inputs of others are filled in
  uint32_t num_phases;
  // Three arrays over (phase, process), for which see mp_collective_schedule_at.
  mp_payload_view_t *received;
  // Memory for sent payloads, which the caller sets between planning and packing. One payload for
  // all is in the places of all processes, including this one's.
  void **payloads;
  size_t *sizes;        // of payloads, set by planning
  const void **inputs;  // [layout->size][num_operands] of members of other processes
  // The byte of a payload at which the data for a member begins: [layout->size] for members of
  // other processes, in the sent payload; [num_processes][own members] for this process's members,
  // in each received payload.
  size_t *send_at, *find_at;
} mp_collective_schedule_t;

// A schedule for one meeting of `group`. All arguments are borrowed until the schedule is released.
// `contributions` are in group order, `names` as for mp_collective_run. RESOURCE_EXHAUSTED when
// memory is short, INTERNAL for a kind that is no group collective.
MP_NODISCARD mp_status_t mp_collective_schedule_create(const mp_collective_t *collective,
                                                       uint32_t group,
                                                       const mp_group_layout_t *layout,
                                                       mp_contribution_t *contributions,
                                                       const uint32_t *names,
                                                       mp_collective_schedule_t **out_schedule);
// Frees the schedule, but not the payloads. NULL: nothing.
void mp_collective_schedule_release(mp_collective_schedule_t *schedule);

// The index of a phase and a process (its number in the layout) in the schedule's arrays.
static inline size_t mp_collective_schedule_at(const mp_collective_schedule_t *schedule,
                                               uint32_t phase, uint32_t process) {
  MP_ASSERT(phase < MP_SCHEDULE_MAX_PHASES && process < schedule->layout->num_processes);
  return (size_t)phase * schedule->layout->num_processes + process;
}

// Plans a phase: sets the sizes of its payloads in bytes (0: an empty one; MP_NO_PAYLOAD: none, as
// for this process itself). `out_is_shared`: one payload serves all. The payloads of the previous
// phase must have come. INVALID_ARGUMENT when a member's data are inconsistent (ragged sizes).
MP_NODISCARD mp_status_t mp_collective_schedule_plan(mp_collective_schedule_t *schedule,
                                                     uint32_t phase, bool *out_is_shared);
// The number of parts of packing a phase; for phase == num_phases: of the finish.
uint32_t mp_collective_schedule_num_parts(const mp_collective_schedule_t *schedule, uint32_t phase);
// The bytes of scratch memory that one part needs, 64-byte aligned.
size_t mp_collective_schedule_scratch_bytes(const mp_collective_schedule_t *schedule);
// Packs one part of the phase's payloads, into the memory that the caller has set in `payloads`.
MP_NODISCARD mp_status_t mp_collective_schedule_pack(mp_collective_schedule_t *schedule,
                                                     uint32_t phase, uint32_t part, void *scratch);

// True when another process sends this process a payload in this phase.
bool mp_collective_schedule_awaits(const mp_collective_schedule_t *schedule, uint32_t phase,
                                   uint32_t process);
// Records the payload of a process in this phase; the data are borrowed until the schedule's end.
// INVALID_ARGUMENT when it has the wrong size.
MP_NODISCARD mp_status_t mp_collective_schedule_receive(mp_collective_schedule_t *schedule,
                                                        uint32_t phase, uint32_t process,
                                                        const void *data, size_t bytes);

// Called once before the parts of the finish, when everything has come. INVALID_ARGUMENT when
// received data are inconsistent (ragged sizes).
MP_NODISCARD mp_status_t mp_collective_schedule_open(mp_collective_schedule_t *schedule);
// Does one part of the finish, which writes the outputs of this process's members. Fails like
// mp_collective_run.
MP_NODISCARD mp_status_t mp_collective_schedule_finish(mp_collective_schedule_t *schedule,
                                                       uint32_t part, void *scratch);

#endif  // MINIPOD_COLLECTIVES_COLLECTIVE_SCHEDULE_H_
