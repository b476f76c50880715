// Recognises a region that chooses by its results, not by its ops. The results depend only on how
// the two values and the two positions compare, so the region is evaluated once for each possible
// outcome of these comparisons.
#include "sim/kernels/reduction/best.h"

// How the accumulator's value (position) compares with the element's. Positions are never NaN.
typedef enum { BELOW, EQUAL, ABOVE, FIRST_NAN, SECOND_NAN, BOTH_NAN, NUM_RELATIONS } relation_t;

typedef struct {
  const mp_block_t *region;
  relation_t values, positions;
  int visits;
} world_t;

// A value of the region: a truth value, or one of the region's arguments.
typedef enum { UNKNOWN, NO, YES, VALUE_A, POSITION_A, VALUE_B, POSITION_B } what_t;

enum { MAX_VISITS = 256 };

static what_t best_region_evaluate(world_t *world, const mp_value_t *value);

static bool best_region_is_value(what_t x) {
  return x == VALUE_A || x == VALUE_B;
}

static bool best_region_is_position(what_t x) {
  return x == POSITION_A || x == POSITION_B;
}

// How x and y compare, both of them values or both positions; BOTH_NAN when they do not.
static relation_t best_region_relation(const world_t *world, what_t x, what_t y) {
  const relation_t r = best_region_is_value(x) ? world->values : world->positions;
  const bool nan_a = r == FIRST_NAN || r == BOTH_NAN, nan_b = r == SECOND_NAN || r == BOTH_NAN;
  const bool is_a = x == VALUE_A || x == POSITION_A;
  if (x == y) return (is_a ? nan_a : nan_b) ? BOTH_NAN : EQUAL;
  if (nan_a || nan_b) return BOTH_NAN;
  if (r == EQUAL || is_a) return r;
  return r == BELOW ? ABOVE : BELOW;
}

static what_t best_region_compare(world_t *world, const mp_op_t *op) {
  const what_t x = best_region_evaluate(world, op->operands[0]);
  const what_t y = best_region_evaluate(world, op->operands[1]);
  const bool are_values = best_region_is_value(x) && best_region_is_value(y);
  if (!are_values && !(best_region_is_position(x) && best_region_is_position(y))) return UNKNOWN;
  if (mp_op_enum(op, MP_ATTR_COMPARE_TYPE, MP_CMP_NOTYPE) == MP_CMP_TOTALORDER) return UNKNOWN;
  const relation_t r = best_region_relation(world, x, y);
  switch (mp_op_enum(op, MP_ATTR_COMPARISON_DIRECTION, MP_CMP_EQ)) {
    case MP_CMP_EQ:
      return r == EQUAL ? YES : NO;
    case MP_CMP_NE:
      return r != EQUAL ? YES : NO;
    case MP_CMP_GE:
      return r == ABOVE || r == EQUAL ? YES : NO;
    case MP_CMP_GT:
      return r == ABOVE ? YES : NO;
    case MP_CMP_LE:
      return r == BELOW || r == EQUAL ? YES : NO;
    case MP_CMP_LT:
      return r == BELOW ? YES : NO;
    default:
      return UNKNOWN;
  }
}

// and, or, xor of truth values; minimum and maximum of positions.
static what_t best_region_binary(world_t *world, const mp_op_t *op) {
  const what_t x = best_region_evaluate(world, op->operands[0]);
  const what_t y = best_region_evaluate(world, op->operands[1]);
  if (op->code == MP_OP_MINIMUM || op->code == MP_OP_MAXIMUM) {
    if (!best_region_is_position(x) || !best_region_is_position(y)) return UNKNOWN;
    const relation_t r = best_region_relation(world, x, y);
    return (r == ABOVE) == (op->code == MP_OP_MAXIMUM) ? x : y;
  }
  if ((x != YES && x != NO) || (y != YES && y != NO)) return UNKNOWN;
  if (op->code == MP_OP_AND) return x == YES && y == YES ? YES : NO;
  if (op->code == MP_OP_OR) return x == YES || y == YES ? YES : NO;
  return x != y ? YES : NO;
}

static what_t best_region_evaluate(world_t *world, const mp_value_t *value) {
  if (++world->visits > MAX_VISITS) return UNKNOWN;
  if (value->block == world->region) return (what_t)((uint32_t)VALUE_A + value->index);
  const mp_op_t *op = value->op;
  if (op == NULL || op->parent != world->region) return UNKNOWN;
  switch (op->code) {
    case MP_OP_COMPARE:
      return best_region_compare(world, op);
    case MP_OP_AND:
    case MP_OP_OR:
    case MP_OP_XOR:
    case MP_OP_MINIMUM:
    case MP_OP_MAXIMUM:
      return best_region_binary(world, op);
    case MP_OP_NOT: {
      const what_t x = best_region_evaluate(world, op->operands[0]);
      return x == YES ? NO : x == NO ? YES : UNKNOWN;
    }
    case MP_OP_SELECT: {
      const what_t which = best_region_evaluate(world, op->operands[0]);
      if (which != YES && which != NO) return UNKNOWN;
      return best_region_evaluate(world, op->operands[which == YES ? 1 : 2]);
    }
    default:
      return UNKNOWN;
  }
}

// Whether the region's results are the right ones in this world.
static bool best_region_is_right(world_t *world, bool is_min, bool is_float) {
  const mp_op_t *end = mp_block_terminator(world->region);
  const bool is_better = world->values == (is_min ? BELOW : ABOVE);
  const bool keeps = is_better || world->values == FIRST_NAN || world->values == BOTH_NAN;
  const bool ties = world->values == EQUAL;
  const bool is_lower = world->positions == BELOW;
  const what_t value = best_region_evaluate(world, end->operands[0]);
  const what_t position = best_region_evaluate(world, end->operands[1]);
  // Equal integers are the same, and so are equal positions; of floating-point numbers, 0 equals
  // -0.
  const bool any_value = ties && !is_float && best_region_is_value(value);
  const bool any_position = world->positions == EQUAL && best_region_is_position(position);
  return (any_value || value == (keeps ? VALUE_A : VALUE_B)) &&
         (any_position || position == (keeps || (ties && is_lower) ? POSITION_A : POSITION_B));
}

bool mp_best_is_choice(const mp_block_t *region, bool is_min) {
  const mp_op_t *end = mp_block_terminator(region);
  if (region->num_args != 4 || end == NULL || end->num_operands != 2) return false;
  const bool is_float = mp_dtype_is_float(region->args[0].type->dtype);
  for (int v = BELOW; v < (is_float ? NUM_RELATIONS : FIRST_NAN); ++v) {
    for (int p = BELOW; p <= ABOVE; ++p) {
      world_t world = {.region = region, .values = (relation_t)v, .positions = (relation_t)p};
      if (!best_region_is_right(&world, is_min, is_float)) return false;
    }
  }
  return true;
}
