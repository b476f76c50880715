// Operands of matmuls as they are in memory, before transposes: compilers fold these into matmuls.
#ifndef MINIPOD_SIM_CHIP_FUSE_MATMUL_OPERAND_H_
#define MINIPOD_SIM_CHIP_FUSE_MATMUL_OPERAND_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/work/work.h"

// A value, and its batch and contracted dimensions: a bit for each.
typedef struct {
  const mp_value_t *value;
  uint64_t batch, summed;
} mp_matmul_operand_t;

// A bit for each dimension of a list, up to 64.
uint64_t mp_matmul_dims(mp_index_list_t dims);
// Operand 0 or 1 of a dot_general.
mp_matmul_operand_t mp_matmul_operand(const mp_op_t *op, uint32_t operand);
// Whether each matrix of the batch is contiguous: batch dimensions are outermost, and contracted
// dimensions are adjacent, as are the others.
bool mp_matmul_is_contiguous(const mp_matmul_operand_t *operand);

#endif  // MINIPOD_SIM_CHIP_FUSE_MATMUL_OPERAND_H_
