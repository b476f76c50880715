// What a kernel takes on the described chip, by what its ops do and what is known of the chip.
// README.md has the formulas.
//
// Pure functions; thread-safe.
#ifndef MINIPOD_SIM_CHIP_COST_KERNEL_COST_H_
#define MINIPOD_SIM_CHIP_COST_KERNEL_COST_H_

#include "sim/chip/cost/chip.h"
#include "sim/chip/fuse/chip_fusion.h"

// The seconds of a fusion's kernel that moves so many bytes through memory, with its latency.
double mp_kernel_seconds(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                         const mp_chip_fusion_t *fusion, double bytes);
// Its operations: of a ragged_dot, those of the rows that a group has.
double mp_kernel_flops(const mp_chip_t *chip, const mp_chip_fusion_t *fusion);

// The seconds of a kernel that does nothing but move so many bytes; of one on single elements.
double mp_kernel_copy_seconds(const mp_chip_t *chip, double bytes);
double mp_kernel_scalar_seconds(const mp_chip_t *chip);

// What a kernel that moves so many bytes waits for its memory with nothing beside.
double mp_kernel_memory_latency(const mp_chip_t *chip, double bytes);

#endif  // MINIPOD_SIM_CHIP_COST_KERNEL_COST_H_
