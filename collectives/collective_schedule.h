// Schedules: the part of a collective that goes from process to process.
//
// When a group has members in several processes, each process does its share in phases: in phase p
// it packs a payload for each other process (or one for all), and goes on when the payloads of all
// others of that phase have come; after the last phase it writes the results of its own members.
// What comes from others then looks like contributions of this process (whole inputs), like packed
// slices, or like partial results of the reduction's tree, and the algorithms of mp_collective_run
// do the rest. The results have the same bits as in one process, however the members are spread.
//
//   all_gather, broadcast     1 the inputs, the same payload for all
//   permute, all_to_all,
//   exchange, ragged          1 what the members of each process want, in their order
//   all_reduce, small         1 our pieces (group_layout.h), the same payload for all
//   reduce_scatter            1 our pieces of the parts of each process' members
//   all_reduce, large         1 our pieces of each process' share of the elements
//                             2 the results of our share, the same payload for all
//
// On a grid of hosts, what would go from every process of a host to every one of another goes once,
// along columns:
//
//   all_gather, broadcast     1 the inputs to our host and our column; 2 those of our column's
//   others
//                             to our host
//   reduce_scatter            1 on our host, pieces of what each column's processes need; 2 in our
//                             column, pieces of our host of what each process needs
//   all_reduce, large         1, 2 the same for shares; 3 results in our column; 4 those on our
//   host
//
// Pieces are partials in the accumulation type, or plain inputs where a process (or host) has
// single leaves only. In phase 0 everybody sends to everybody, if only an empty payload: so all
// find out that they are at the same collective before they touch data.
//
// This layer neither sends nor waits. One schedule serves one meeting; packing and finishing are
// cut into parts that may run at the same time, everything else is the owner's alone.
#ifndef MINIPOD_COLLECTIVES_COLLECTIVE_SCHEDULE_H_
#define MINIPOD_COLLECTIVES_COLLECTIVE_SCHEDULE_H_

#include "collectives/collective.h"
#include "collectives/group_layout.h"
#include "sim/base/assert.h"

enum { MP_SCHEDULE_MAX_PHASES = 4 };

#define MP_NO_PAYLOAD SIZE_MAX

typedef struct {
  const void *data;
  size_t bytes;
} mp_payload_view_t;

typedef struct {
  const mp_collective_t *collective;
  uint32_t group;
  const uint32_t *members;           // logical numbers, in group order
  const mp_group_layout_t *layout;   // borrowed
  const uint32_t *names;             // borrowed: what messages call the devices, or NULL
  mp_contribution_t *contributions;  // [layout->size] borrowed; inputs of others are filled in
  uint32_t num_phases;
  // Arrays over (phase, process): mp_collective_schedule_at.
  mp_payload_view_t *received;
  // What we send, set by the owner before packing. One for all is at all places, ours too.
  void **payloads;
  size_t *sizes;        // of payloads
  const void **inputs;  // of others: [layout->size][num_operands]
  // Where what a member wants begins in its payload: of other processes' members in the payload
  // that we send, of ours in each payload that comes ([num_processes][own members]).
  size_t *send_at, *find_at;
} mp_collective_schedule_t;

// `names` as for mp_collective_run.
MP_NODISCARD mp_status_t mp_collective_schedule_create(const mp_collective_t *collective,
                                                       uint32_t group,
                                                       const mp_group_layout_t *layout,
                                                       mp_contribution_t *contributions,
                                                       const uint32_t *names,
                                                       mp_collective_schedule_t **out_schedule);
void mp_collective_schedule_release(mp_collective_schedule_t *schedule);

static inline size_t mp_collective_schedule_at(const mp_collective_schedule_t *schedule,
                                               uint32_t phase, uint32_t process) {
  MP_ASSERT(phase < MP_SCHEDULE_MAX_PHASES && process < schedule->layout->num_processes);
  return (size_t)phase * schedule->layout->num_processes + process;
}

// Sets the sizes of the phase's payloads (0: an empty one; MP_NO_PAYLOAD: none, also for
// ourselves). `out_is_shared`: one payload serves all. The payloads of the phase before must have
// come. INVALID_ARGUMENT when a member's data make no sense (ragged sizes).
MP_NODISCARD mp_status_t mp_collective_schedule_plan(mp_collective_schedule_t *schedule,
                                                     uint32_t phase, bool *out_is_shared);
// Parts of the packing of a phase; of the finish for phase == num_phases.
uint32_t mp_collective_schedule_num_parts(const mp_collective_schedule_t *schedule, uint32_t phase);
size_t mp_collective_schedule_scratch_bytes(const mp_collective_schedule_t *schedule);
MP_NODISCARD mp_status_t mp_collective_schedule_pack(mp_collective_schedule_t *schedule,
                                                     uint32_t phase, uint32_t part, void *scratch);

// Whether the process sends a payload in this phase.
bool mp_collective_schedule_awaits(const mp_collective_schedule_t *schedule, uint32_t phase,
                                   uint32_t process);
// What a process sent; borrowed until the schedule's end. INVALID_ARGUMENT when it has not the size
// that it must have.
MP_NODISCARD mp_status_t mp_collective_schedule_receive(mp_collective_schedule_t *schedule,
                                                        uint32_t phase, uint32_t process,
                                                        const void *data, size_t bytes);

// Once before the parts of the finish, when everything has come.
MP_NODISCARD mp_status_t mp_collective_schedule_open(mp_collective_schedule_t *schedule);
// Writes the outputs of our members.
MP_NODISCARD mp_status_t mp_collective_schedule_finish(mp_collective_schedule_t *schedule,
                                                       uint32_t part, void *scratch);

#endif  // MINIPOD_COLLECTIVES_COLLECTIVE_SCHEDULE_H_
