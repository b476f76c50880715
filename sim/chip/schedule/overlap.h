// Which collectives a chip's compiler overlaps with compute. README.md has the evidence.
#ifndef MINIPOD_SIM_CHIP_SCHEDULE_OVERLAP_H_
#define MINIPOD_SIM_CHIP_SCHEDULE_OVERLAP_H_

#include "collectives/collective.h"
#include "topology/figures/figures.h"

// Synchronous: devices wait for the collective at once. Asynchronous: they start it and wait later.
// Decomposed into a collective matmul: its messages overlap with parts of the matmul that reads its
// result, or makes its operand.
typedef enum {
  MP_OVERLAP_SYNC,
  MP_OVERLAP_ASYNC,
  MP_OVERLAP_DECOMPOSED,
  MP_OVERLAP_COUNT,
} mp_overlap_t;

// "sync", "async" or "decomposed".
const char *mp_overlap_name(mp_overlap_t order);

// How far collectives of a kind and group size may overlap. DECOMPOSED ones without a matmul are as
// in mp_overlap_without_ring. Groups of more than `overlap.ring_members` have no collective
// matmuls.
mp_overlap_t mp_overlap_order(const mp_chip_figures_t *figures, mp_collective_kind_t kind,
                              uint32_t members);

// The same for collectives that could be decomposed, but are not: by `overlap.no_ring`, by default
// ASYNC. On TPUs reduce_scatters are as all_reduces.
mp_overlap_t mp_overlap_without_ring(const mp_chip_figures_t *figures, mp_collective_kind_t kind);

// What decides whether a matmul becomes a collective matmul.
typedef struct {
  uint32_t members, num_dims;  // chips of the group, and the dimensions of the network they span
  double message;              // seconds of one member's part on a link
  double matmul;               // seconds at the chip's peak rate
} mp_overlap_ring_t;

// Whether the partitioner takes the ring with the matmul for faster than the matmul after the whole
// collective.
bool mp_overlap_ring_is_faster(const mp_chip_figures_t *figures, const mp_overlap_ring_t *ring);

// Whether a collective that is not decomposed becomes an all_reduce of the whole array: on TPUs an
// all_gather whose parts have fewer `elements` than a row of lanes, and, if the chip's file says
// so, collectives of all devices.
bool mp_overlap_sums_whole(const mp_chip_figures_t *figures, mp_collective_kind_t kind,
                           uint32_t members, double elements, bool is_of_all);

// Whether a collective is SYNC because it has few bytes: an all_reduce of less than
// `overlap.least`.
bool mp_overlap_is_too_small(const mp_chip_figures_t *figures, mp_collective_kind_t kind,
                             double bytes);

// Whether collectives of a kind are combined: all_reduces; on chips other than TPUs also
// reduce_scatters and all_gathers.
bool mp_overlap_may_combine(const mp_chip_figures_t *figures, mp_collective_kind_t kind);

#endif  // MINIPOD_SIM_CHIP_SCHEDULE_OVERLAP_H_
