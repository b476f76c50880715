// The vector unit: its arithmetic by kind of op, and, for kernels of TPUs in VMEM, loads, stores
// and moves across the lanes and sublanes of registers.
//
// Pure functions; thread-safe.
#ifndef MINIPOD_SIM_CHIP_COST_VECTOR_COST_H_
#define MINIPOD_SIM_CHIP_COST_VECTOR_COST_H_

#include "sim/chip/cost/chip.h"
#include "sim/chip/fuse/chip_fusion.h"

// The seconds of an op on the vector unit; 0 for matmuls, and for ops that only move elements.
double mp_vector_seconds(const mp_chip_t *chip, const mp_op_t *op);

// The parameter that decides most of these seconds.
mp_chip_figure_t mp_vector_figure(const mp_chip_t *chip, const mp_op_t *op);

// ---- vmem_cost.c ----

// A bundle of instructions has slots for each unit, so the busiest unit decides. All are 0 on a
// chip without parameters of VMEM.
typedef struct {
  double vector;   // seconds of rotations along sublanes and selections, which are arithmetic
  double others;   // of the busiest of the other units
  double latency;  // until the first element has crossed the lanes
} mp_vmem_seconds_t;

bool mp_vmem_is_known(const mp_chip_t *chip);
mp_vmem_seconds_t mp_vmem_seconds(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                                  const mp_chip_fusion_t *fusion);

// The padding of the array that the arithmetic of an op goes through, as a factor: tiles that are
// not full take as long as full ones.
double mp_vmem_padding(const mp_chip_t *chip, const mp_op_t *op);

// The seconds of a kernel that copies bytes within VMEM, or elements into another layout there.
double mp_vmem_copy_seconds(const mp_chip_t *chip, double bytes);
double mp_vmem_transpose_seconds(const mp_chip_t *chip, double elements);

#endif  // MINIPOD_SIM_CHIP_COST_VECTOR_COST_H_
