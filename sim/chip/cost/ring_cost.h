// The cost of a collective matmul on a TPU: its parts run one after the other, and each overlaps
// with messages that bring the next part's operand, or take away the result of the part before.
// README.md has the formulas and their sources.
//
// Pure functions; thread-safe.
#ifndef MINIPOD_SIM_CHIP_COST_RING_COST_H_
#define MINIPOD_SIM_CHIP_COST_RING_COST_H_

#include "sim/chip/cost/kernel_cost.h"

typedef enum {
  MP_RING_NONE,
  MP_RING_OF_SLICES,    // of an all_gather: each part is a part of the result
  MP_RING_OF_SUMS,      // of an all_gather along k: each part adds to the result
  MP_RING_OF_SCATTERS,  // parts of the result, added to those of other devices
} mp_ring_matmul_kind_t;

typedef struct {
  mp_ring_matmul_kind_t kind;
  uint32_t members;
} mp_ring_matmul_t;

// The time of all parts, without waiting for messages; no less than that of the whole matmul, which
// moves `bytes` through HBM.
mp_kernel_time_t mp_ring_time(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                              const mp_chip_fusion_t *fusion, double bytes,
                              const mp_ring_matmul_t *ring);

#endif  // MINIPOD_SIM_CHIP_COST_RING_COST_H_
