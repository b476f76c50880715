// The vector unit: its arithmetic by kind of op, and, for kernels of TPUs in VMEM, loads, stores
// and moves across the lanes and sublanes of registers.
//
// Pure functions; thread-safe.
#ifndef MINIPOD_SIM_CHIP_COST_VECTOR_COST_H_
#define MINIPOD_SIM_CHIP_COST_VECTOR_COST_H_

#include "sim/chip/cost/chip.h"
#include "sim/chip/fuse/chip_fusion.h"

// Simple operations a second on 32-bit numbers: additions, comparisons, selections.
double mp_vector_rate(const mp_chip_t *chip);

// The simple operations of a function on elements, of a reduction for example; one at least.
double mp_vector_region_operations(const mp_chip_t *chip, const mp_block_t *region, double times);

// The seconds that an op takes on the vector unit; 0 of matmuls, and of what only moves elements.
double mp_vector_seconds(const mp_chip_t *chip, const mp_op_t *op);

// The parameter that decides most of these seconds.
mp_chip_figure_t mp_vector_figure(const mp_chip_t *chip, const mp_op_t *op);

// ---- vmem_cost.c ----

// Each bundle of instructions has slots for each unit, so that the unit with the most to do
// decides. All are 0 on a chip without parameters of VMEM.
typedef struct {
  double vector;   // seconds of rotations along sublanes, and of selections: as arithmetic is
  double others;   // of the busiest of the other units
  double latency;  // until the first element has crossed the lanes
} mp_vmem_seconds_t;

bool mp_vmem_is_known(const mp_chip_t *chip);
mp_vmem_seconds_t mp_vmem_seconds(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                                  const mp_chip_fusion_t *fusion);

// The elements that the arithmetic of an op goes through, as a multiple of those that it has: tiles
// that are not full take as long.
double mp_vmem_padding(const mp_chip_t *chip, const mp_op_t *op);

// The seconds of kernels that copy so many bytes within VMEM, or elements into another layout
// there.
double mp_vmem_copy_seconds(const mp_chip_t *chip, double bytes);
double mp_vmem_transpose_seconds(const mp_chip_t *chip, double elements);

#endif  // MINIPOD_SIM_CHIP_COST_VECTOR_COST_H_
