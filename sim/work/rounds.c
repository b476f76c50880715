#include "sim/work/rounds.h"

#include <string.h>

// MOST_STEPS: a value is followed so far. Numbers beyond 2^LARGEST_BITS are not counted with, so
// that no sum of them overflows.
enum { ROUNDS_MOST_STEPS = 64, ROUNDS_LARGEST_BITS = 60 };

// The value itself, or that outside or inside of a fused op which it is.
static const mp_value_t *rounds_resolve(const mp_value_t *value) {
  for (int i = 0; i < ROUNDS_MOST_STEPS; ++i) {
    const mp_op_t *around = value->block == NULL ? NULL : value->block->parent_op;
    if (value->op != NULL && value->op->code == MP_OP_FUSION) {
      value = mp_block_terminator(value->op->regions[0])->operands[value->index];
    } else if (around != NULL && around->code == MP_OP_FUSION) {
      value = around->operands[value->index];
    } else {
      break;
    }
  }
  return value;
}

// What a loop carries as its argument `index` from one round into the next.
static const mp_value_t *rounds_next(const mp_op_t *loop, uint32_t index) {
  return rounds_resolve(mp_block_terminator(loop->regions[1])->operands[index]);
}

static bool rounds_read_constant(const mp_op_t *op, int64_t *out) {
  const mp_attr_t *value = mp_op_attr(op, MP_ATTR_VALUE);
  const mp_type_t *type = op->results[0].type;
  int64_t count = 0;
  if (value == NULL || value->kind != MP_KIND_DENSE || !mp_type_num_elements(type, &count)) {
    return false;
  }
  const int bits = mp_dtype_bits(type->dtype);
  if (count != 1 || !mp_dtype_is_integer(type->dtype) || bits < 8) return false;
  uint64_t number = 0;
  memcpy(&number, value->u.dense.data, (size_t)bits / 8);
  const bool is_negative =
      mp_dtype_class(type->dtype) != MP_CLASS_UNSIGNED && (number >> (bits - 1) & 1) != 0;
  if (is_negative && bits < 64) number |= UINT64_MAX << bits;
  const int64_t most = INT64_C(1) << ROUNDS_LARGEST_BITS;
  *out = (int64_t)number;
  return *out > -most && *out < most;
}

// Whether the value is a constant, also one that loops carry without changing it.
static bool rounds_is_constant(const mp_value_t *value, int64_t *out) {
  for (int i = 0; i < ROUNDS_MOST_STEPS; ++i) {
    value = rounds_resolve(value);
    if (value->op != NULL) {
      return value->op->code == MP_OP_CONSTANT && rounds_read_constant(value->op, out);
    }
    const mp_op_t *loop = value->block->parent_op;
    if (loop == NULL || loop->code != MP_OP_WHILE) return false;
    if (rounds_next(loop, value->index) != &loop->regions[1]->args[value->index]) return false;
    value = loop->operands[value->index];
  }
  return false;
}

// By how much a round changes what the loop carries as argument `index`.
static bool rounds_step_of(const mp_op_t *loop, uint32_t index, int64_t *out_step) {
  const mp_op_t *op = rounds_next(loop, index)->op;
  const mp_value_t *counter = &loop->regions[1]->args[index];
  if (op == NULL || (op->code != MP_OP_ADD && op->code != MP_OP_SUBTRACT)) return false;
  for (uint32_t i = 0; i < 2; ++i) {
    if (op->code == MP_OP_SUBTRACT && i == 1) return false;
    if (rounds_resolve(op->operands[i]) != counter) continue;
    if (!rounds_is_constant(op->operands[1 - i], out_step)) continue;
    if (op->code == MP_OP_SUBTRACT) *out_step = -*out_step;
    return *out_step != 0;
  }
  return false;
}

// Rounds of a counter from `start` as long as it is below `end`.
static int64_t rounds_below(int64_t start, int64_t end, int64_t step) {
  if (start >= end) return 0;
  return step <= 0 ? MP_ROUNDS_UNKNOWN : (end - start + step - 1) / step;
}

static int64_t rounds_until(uint32_t direction, int64_t start, int64_t end, int64_t step) {
  switch (direction) {
    case MP_CMP_LT:
      return rounds_below(start, end, step);
    case MP_CMP_LE:
      return rounds_below(start, end + 1, step);
    case MP_CMP_GT:
      return rounds_below(-start, -end, -step);
    case MP_CMP_GE:
      return rounds_below(-start, -end + 1, -step);
    case MP_CMP_NE:
      if ((end - start) % step != 0 || (end - start) / step < 0) return MP_ROUNDS_UNKNOWN;
      return (end - start) / step;
    default:
      return MP_ROUNDS_UNKNOWN;
  }
}

// The direction when the sides of a comparison change places.
static uint32_t rounds_mirror(uint32_t direction) {
  static const uint32_t mirrored[MP_CMP_COUNT] = {
      [MP_CMP_EQ] = MP_CMP_EQ, [MP_CMP_NE] = MP_CMP_NE, [MP_CMP_GE] = MP_CMP_LE,
      [MP_CMP_GT] = MP_CMP_LT, [MP_CMP_LE] = MP_CMP_GE, [MP_CMP_LT] = MP_CMP_GT};
  return mirrored[direction];
}

int64_t mp_work_rounds(const mp_op_t *loop) {
  const mp_op_t *compare = rounds_resolve(mp_block_terminator(loop->regions[0])->operands[0])->op;
  if (compare == NULL || compare->code != MP_OP_COMPARE) return MP_ROUNDS_UNKNOWN;
  const uint32_t direction = mp_op_enum(compare, MP_ATTR_COMPARISON_DIRECTION, MP_CMP_EQ);
  for (uint32_t side = 0; side < 2; ++side) {
    const mp_value_t *counter = rounds_resolve(compare->operands[side]);
    int64_t start, end, step;
    if (counter->block != loop->regions[0]) continue;
    if (!rounds_is_constant(compare->operands[1 - side], &end)) continue;
    if (!rounds_is_constant(loop->operands[counter->index], &start)) continue;
    if (!rounds_step_of(loop, counter->index, &step)) continue;
    return rounds_until(side == 0 ? direction : rounds_mirror(direction), start, end, step);
  }
  return MP_ROUNDS_UNKNOWN;
}
