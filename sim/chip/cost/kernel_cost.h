// The time of a kernel on the described chip, by its ops, its bytes and the chip's parameters.
// README.md has the formulas.
//
// Pure functions; thread-safe.
#ifndef MINIPOD_SIM_CHIP_COST_KERNEL_COST_H_
#define MINIPOD_SIM_CHIP_COST_KERNEL_COST_H_

#include "sim/chip/cost/chip.h"
#include "sim/chip/fuse/chip_fusion.h"

// The parts of a kernel's time.
typedef enum {
  MP_KERNEL_SCALARS,         // single elements
  MP_KERNEL_LATENCY,         // until the kernel starts
  MP_KERNEL_VMEM_LATENCY,    // the same with all arrays in VMEM
  MP_KERNEL_MEMORY_LATENCY,  // until the first bytes arrive
  MP_KERNEL_BYTES,
  MP_KERNEL_VECTOR,     // arithmetic
  MP_KERNEL_VMEM,       // loads, stores and moves in VMEM
  MP_KERNEL_IRREGULAR,  // ops with their own access patterns
  MP_KERNEL_MATMUL,
} mp_kernel_part_t;

typedef struct {
  double seconds;            // of the kernel, with its latency
  mp_kernel_part_t longest;  // the part that takes longest
  const mp_op_t *op;         // of VECTOR and IRREGULAR: the op that takes longest
} mp_kernel_time_t;

// The time of a fusion's kernel that moves so many bytes through HBM.
mp_kernel_time_t mp_kernel_time(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                                const mp_chip_fusion_t *fusion, double bytes);
// Its operations: of a ragged_dot, those of the rows that a group has.
double mp_kernel_flops(const mp_chip_fusion_t *fusion);

// The time of a kernel that only moves so many bytes, and of one on single elements.
mp_kernel_time_t mp_kernel_copy_time(const mp_chip_t *chip, double bytes);
mp_kernel_time_t mp_kernel_scalar_time(const mp_chip_t *chip);

#endif  // MINIPOD_SIM_CHIP_COST_KERNEL_COST_H_
