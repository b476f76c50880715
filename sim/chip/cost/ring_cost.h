// What a matmul takes of which a compiler for TPUs makes a ring: parts of it, one after the other,
// each beside messages that bring what the next one reads, or take away what it has made.
// README.md has the formulas and what they come from.
//
// Pure functions; thread-safe.
#ifndef MINIPOD_SIM_CHIP_COST_RING_COST_H_
#define MINIPOD_SIM_CHIP_COST_RING_COST_H_

#include "sim/chip/cost/chip.h"
#include "sim/chip/fuse/chip_fusion.h"

typedef enum {
  MP_RING_NONE,
  MP_RING_OF_SLICES,    // of a gather: parts of the result
  MP_RING_OF_SUMS,      // of a gather along k: each part adds to the result
  MP_RING_OF_SCATTERS,  // parts of the result that are added to what comes from others
} mp_ring_matmul_kind_t;

typedef struct {
  mp_ring_matmul_kind_t kind;
  uint32_t members;
} mp_ring_matmul_t;

// The seconds of all parts, without waiting for messages; no less than those of the matmul as a
// whole, with which `bytes` go through memory.
double mp_ring_seconds(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                       const mp_chip_fusion_t *fusion, double bytes, const mp_ring_matmul_t *ring);

#endif  // MINIPOD_SIM_CHIP_COST_RING_COST_H_
