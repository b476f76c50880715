// Matmuls of which each group of rows has a factor of its own (`ragged_dot`), as JAX writes them
// for any backend: all rows by each group's matrix, masked, and added up.
//
// Pure functions; thread-safe.
#ifndef MINIPOD_SIM_CHIP_COST_MATMUL_RAGGED_H_
#define MINIPOD_SIM_CHIP_COST_MATMUL_RAGGED_H_

#include "sim/chip/cost/chip.h"
#include "sim/chip/fuse/chip_fusion.h"

// Where a compiler for TPUs makes such a kernel of it, `matmul` becomes what its steps multiply,
// and `out_steps` is what they take besides (else 0). They are those of the groups' own rows.
void mp_matmul_ragged(const mp_chip_t *chip, const mp_chip_fusion_t *fusion,
                      mp_work_matmul_t *matmul, double *out_steps);

#endif  // MINIPOD_SIM_CHIP_COST_MATMUL_RAGGED_H_
