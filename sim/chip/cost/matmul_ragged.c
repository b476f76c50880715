#include <math.h>

#include "sim/chip/cost/matmul_cost.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/fuse/matmul_operand.h"

// The rows that libtpu 0.0.52 has in a step.
enum { MATMUL_RAGGED_ROWS = 128 };

static bool matmul_ragged_is(const mp_value_t *value, mp_opcode_t code) {
  return value->op != NULL && value->op->code == code;
}

// The groups of a factor: it selects, in each of them, some of the rows that are repeated for all
// groups, and zeros for the others. 0: it does not. Groups are summed up, or, in the gradient of
// the other factor, each has a result of its own, and rows are summed up (`out_is_batch`).
static double matmul_ragged_groups(const mp_op_t *op, uint32_t operand, bool *out_is_batch) {
  const mp_matmul_operand_t factor = mp_matmul_operand(op, operand);
  if (!matmul_ragged_is(factor.value, MP_OP_SELECT)) return 0;
  const mp_op_t *select = factor.value->op;
  const mp_value_t *rows = select->operands[1], *zero = select->operands[2];
  if (!matmul_ragged_is(rows, MP_OP_BROADCAST_IN_DIM)) return 0;
  if (!matmul_ragged_is(zero, MP_OP_BROADCAST_IN_DIM) || zero->op->operands[0]->type->rank > 0) {
    return 0;
  }
  const mp_type_t *type = rows->type;
  const uint64_t kept = mp_matmul_dims(mp_op_ints(rows->op, MP_ATTR_BROADCAST_DIMENSIONS));
  const uint64_t all = ((uint64_t)1 << type->rank) - 1, added = all & ~kept;
  *out_is_batch = added != 0 && (added & ~factor.batch) == 0;
  if (added == 0 || (!*out_is_batch && (added & ~factor.summed) != 0)) return 0;
  double groups = 1;
  for (uint32_t i = 0; i < type->rank; ++i) {
    if (added >> i & 1) groups *= (double)type->dims[i];
  }
  // What is summed up besides: the rows' elements.
  return (factor.summed & ~added) != 0 ? groups : 0;
}

mp_matmul_ragged_t mp_matmul_ragged_find(const mp_chip_t *chip, const mp_chip_fusion_t *fusion) {
  const mp_op_t *hero = fusion->hero;
  mp_matmul_ragged_t ragged = {0};
  if (chip->figures.compiler != MP_CHIP_COMPILER_TPU || hero == NULL ||
      hero->code != MP_OP_DOT_GENERAL) {
    return ragged;
  }
  bool is_batch[2];
  const double groups[2] = {matmul_ragged_groups(hero, 0, &is_batch[0]),
                            matmul_ragged_groups(hero, 1, &is_batch[1])};
  ragged.is_gradient = groups[0] > 1 && groups[1] > 1 && is_batch[0] && is_batch[1];
  for (uint32_t side = 0; side < 2; ++side) {
    if (groups[side] <= 1 || (is_batch[side] && !ragged.is_gradient)) continue;
    ragged.groups = groups[side];
    ragged.side = side;
  }
  return ragged;
}

// The kernel's grid has all rows for each group, some at a time, and that is what the compiler's
// count of cycles is of. Its loop leaves for the next group where that one's rows begin, so a step
// is done for each of the rows' parts, and one more for each group that begins inside of one.
double mp_matmul_ragged(const mp_chip_t *chip, const mp_matmul_ragged_t *ragged,
                        mp_work_matmul_t *matmul) {
  const double groups = ragged->groups;
  if (groups == 0) return 0;
  double *rows = ragged->is_gradient ? &matmul->k : ragged->side == 0 ? &matmul->m : &matmul->n;
  const double steps = ceil(*rows / MATMUL_RAGGED_ROWS) + groups - 1;
  *rows = fmin(steps * MATMUL_RAGGED_ROWS / groups, *rows);
  if (!ragged->is_gradient) {
    matmul->k /= groups;
    matmul->batch *= groups;
  }
  return steps * mp_figure_or(chip->figures.matmul_ragged, 0);
}
