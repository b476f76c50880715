// Crossings: the part of a collective that goes from process to process.
//
// When a group has members in several processes, each process does its share in phases: in phase p
// it packs a parcel for each other process (or one for all), and goes on when the parcels of all
// others of that phase have come; after the last phase it writes the results of its own members.
// What comes from others then looks like contributions of this process (whole inputs), like packed
// slices, or like partial results of the reduction's tree, and the algorithms of mp_collective_run
// do the rest. The results have the same bits as in one process, however the members are spread.
//
//   all_gather, broadcast     1 the inputs, the same parcel for all
//   permute, all_to_all,
//   exchange, ragged          1 what the members of each process want, in their order
//   all_reduce, small         1 our pieces (spread.h), the same parcel for all
//   reduce_scatter            1 our pieces of the parts of each process' members
//   all_reduce, large         1 our pieces of each process' share of the elements
//                             2 the results of our share, the same parcel for all
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
// single leaves only. In phase 0 everybody sends to everybody, if only an empty parcel: so all find
// out that they are at the same collective before they touch data.
//
// This layer neither sends nor waits. One crossing serves one meeting; packing and finishing are
// cut into parts that may run at the same time, everything else is the owner's alone.
#ifndef MINIPOD_COLLECTIVES_CROSSING_H_
#define MINIPOD_COLLECTIVES_CROSSING_H_

#include "collectives/collective.h"
#include "collectives/spread.h"

enum { MP_CROSSING_MAX_PHASES = 4 };

#define MP_NO_PARCEL SIZE_MAX

typedef struct {
  const void *data;
  size_t bytes;
} mp_shipment_t;

typedef struct {
  const mp_collective_t *collective;
  uint32_t group;
  const uint32_t *members;           // logical numbers, in group order
  const mp_spread_t *spread;         // borrowed
  mp_contribution_t *contributions;  // [spread->size] borrowed; inputs of others are filled in
  uint32_t num_phases;
  // Arrays over (phase, process): mp_crossing_at.
  mp_shipment_t *received;
  // What we send, set by the owner before packing. One for all is at all places, ours too.
  void **parcels;
  size_t *sizes;        // of parcels
  const void **inputs;  // of others: [spread->size][num_operands]
  // Where what a member wants begins in its parcel: of other processes' members in the parcel that
  // we send, of ours in each parcel that comes ([num_processes][own members]).
  size_t *send_at, *find_at;
} mp_crossing_t;

MP_NODISCARD mp_status_t mp_crossing_create(const mp_collective_t *collective, uint32_t group,
                                            const mp_spread_t *spread,
                                            mp_contribution_t *contributions,
                                            mp_crossing_t **out_crossing);
void mp_crossing_release(mp_crossing_t *crossing);

static inline size_t mp_crossing_at(const mp_crossing_t *crossing, uint32_t phase,
                                    uint32_t process) {
  return (size_t)phase * crossing->spread->num_processes + process;
}

// Sets the sizes of the phase's parcels (0: an empty one; MP_NO_PARCEL: none, also for ourselves).
// `out_is_shared`: one parcel serves all. The parcels of the phase before must have come.
// INVALID_ARGUMENT when a member's data make no sense (ragged sizes).
MP_NODISCARD mp_status_t mp_crossing_plan(mp_crossing_t *crossing, uint32_t phase,
                                          bool *out_is_shared);
// Parts of the packing of a phase; of the finish for phase == num_phases.
uint32_t mp_crossing_num_parts(const mp_crossing_t *crossing, uint32_t phase);
size_t mp_crossing_scratch_bytes(const mp_crossing_t *crossing);
MP_NODISCARD mp_status_t mp_crossing_pack(mp_crossing_t *crossing, uint32_t phase, uint32_t part,
                                          void *scratch);

// Whether the process sends a parcel in this phase.
bool mp_crossing_awaits(const mp_crossing_t *crossing, uint32_t phase, uint32_t process);
// What a process sent; borrowed until the crossing's end. INVALID_ARGUMENT when it has not the size
// that it must have.
MP_NODISCARD mp_status_t mp_crossing_receive(mp_crossing_t *crossing, uint32_t phase,
                                             uint32_t process, const void *data, size_t bytes);

// Once before the parts of the finish, when everything has come.
MP_NODISCARD mp_status_t mp_crossing_open(mp_crossing_t *crossing);
// Writes the outputs of our members.
MP_NODISCARD mp_status_t mp_crossing_finish(mp_crossing_t *crossing, uint32_t part, void *scratch);

#endif  // MINIPOD_COLLECTIVES_CROSSING_H_
