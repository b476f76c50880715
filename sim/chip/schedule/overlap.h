// Which collectives a chip's compiler lets go on beside work. Facts of compilers: README.md says
// where each is from.
#ifndef MINIPOD_SIM_CHIP_SCHEDULE_OVERLAP_H_
#define MINIPOD_SIM_CHIP_SCHEDULE_OVERLAP_H_

#include "collectives/collective.h"
#include "topology/figures/figures.h"

// How a collective is done: devices wait where they meet; they start it and wait for it later; it
// is made of messages that go on beside the parts of a matmul that reads its result, or that makes
// its operand.
#define MP_OVERLAPS(X) \
  X(SYNC, "sync")      \
  X(ASYNC, "async")    \
  X(DECOMPOSED, "decomposed")

typedef enum {
#define MP_OVERLAP_ENUM(name, text) MP_OVERLAP_##name,
  MP_OVERLAPS(MP_OVERLAP_ENUM)
#undef MP_OVERLAP_ENUM
      MP_OVERLAP_COUNT
} mp_overlap_t;

// "sync", "async" or "decomposed".
const char *mp_overlap_name(mp_overlap_t order);

// How a kind of collective may be done at the most in groups of so many members: DECOMPOSED only
// where there is a matmul for it, else as mp_overlap_without_ring says. More members than
// `overlap.ring_members` make no rings.
mp_overlap_t mp_overlap_order(const mp_chip_figures_t *figures, mp_collective_kind_t kind,
                              uint32_t members);

// The same of one of which no ring is made: gathers as `overlap.no_ring` says, beside work if it is
// absent; scatters on TPUs as all_reduces are.
mp_overlap_t mp_overlap_without_ring(const mp_chip_figures_t *figures, mp_collective_kind_t kind);

// What decides whether a matmul becomes a collective matmul.
typedef struct {
  uint32_t members, num_dims;  // chips of the group, and the dimensions of the network they span
  double message;              // seconds of one member's part on a link
  double matmul;               // seconds at the chip's peak rate
} mp_overlap_ring_t;

// Whether the ring with the matmul takes less time than the matmul after the whole collective.
bool mp_overlap_ring_is_faster(const mp_chip_figures_t *figures, const mp_overlap_ring_t *ring);

// Whether gathers go on beside work in kernels of matmuls alone: without one before their end they
// are waited for.
bool mp_overlap_is_carried(const mp_chip_figures_t *figures);

// Whether a collective that is no ring becomes an all_reduce of the whole array: on TPUs an
// all_gather whose parts have fewer `elements` than a row of lanes, and, on chips whose file says
// so, collectives of all devices.
bool mp_overlap_sums_whole(const mp_chip_figures_t *figures, mp_collective_kind_t kind,
                           uint32_t members, double elements, bool is_of_all);

// Whether a collective of so many bytes is waited for whatever its kind may do: an all_reduce of
// less than `overlap.least`.
bool mp_overlap_is_too_small(const mp_chip_figures_t *figures, mp_collective_kind_t kind,
                             double bytes);

// Whether several of a kind may be made one: all_reduces, and on others than TPUs reduce_scatters
// and all_gathers.
bool mp_overlap_may_combine(const mp_chip_figures_t *figures, mp_collective_kind_t kind);

#endif  // MINIPOD_SIM_CHIP_SCHEDULE_OVERLAP_H_
