// The factors of matmuls as they lie in memory: a compiler reads what is transposed before it is.
#ifndef MINIPOD_SIM_CHIP_FUSE_FACTOR_H_
#define MINIPOD_SIM_CHIP_FUSE_FACTOR_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/work/work.h"

// A value, and what its dimensions are to the matmul: a bit for each.
typedef struct {
  const mp_value_t *value;
  uint64_t batch, summed;
} mp_matmul_factor_t;

// A bit for each dimension of a list, up to 64.
uint64_t mp_matmul_dims(mp_index_list_t dims);
// Factor 0 or 1 of a dot_general.
mp_matmul_factor_t mp_matmul_factor(const mp_op_t *op, uint32_t operand);
// Whether each matrix of the batch lies in one piece, with what is summed up on one side.
bool mp_matmul_is_whole(const mp_matmul_factor_t *factor);
// The same of a factor that is a reshape of the transpose's result, if that is left as the
// transpose's operand lies: nothing has to be moved.
bool mp_matmul_lies_whole(const mp_matmul_factor_t *factor, const mp_op_t *transpose);

#endif  // MINIPOD_SIM_CHIP_FUSE_FACTOR_H_
