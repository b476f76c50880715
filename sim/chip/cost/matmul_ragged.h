// Matmuls of which each group of rows has a factor of its own (`ragged_dot`), as JAX writes them
// for any backend: all rows by each group's matrix, masked, and added up.
//
// Pure functions; thread-safe.
#ifndef MINIPOD_SIM_CHIP_COST_MATMUL_RAGGED_H_
#define MINIPOD_SIM_CHIP_COST_MATMUL_RAGGED_H_

#include "sim/chip/cost/chip.h"
#include "sim/chip/fuse/chip_fusion.h"

// What a fusion's matmul is of that kind where a compiler for TPUs makes such a kernel of it.
typedef struct {
  double groups;     // 0: it is none
  bool is_gradient;  // each group has a result of its own, and its rows are summed up
  uint32_t side;     // of the masked factor, for a gradient of the first one
  double masked;     // elements of the masked factor, with all rows for each group
} mp_matmul_ragged_t;

mp_matmul_ragged_t mp_matmul_ragged_find(const mp_chip_t *chip, const mp_chip_fusion_t *fusion);
// `matmul` becomes what the kernel's steps multiply: a matmul for each group, with the rows of a
// mean group. Returns what the steps take besides, in seconds.
double mp_matmul_ragged(const mp_chip_t *chip, const mp_matmul_ragged_t *ragged,
                        mp_work_matmul_t *matmul);

#endif  // MINIPOD_SIM_CHIP_COST_MATMUL_RAGGED_H_
