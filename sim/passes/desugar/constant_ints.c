#include "sim/passes/desugar/constant_ints.h"

#include <string.h>

#include "sim/numeric/words.h"

// Limits of following chains of ops. A value that is used twice is evaluated twice, so the number
// of evaluations has a limit, too.
enum { MAX_DEPTH = 16, MAX_EVALUATIONS = 512 };

typedef struct {
  uint32_t count;
  int64_t values[MP_CONSTANT_INTS_MAX];
} ints_t;

typedef struct {
  int depth;
  int evaluations;
} budget_t;

static bool constant_ints_evaluate(const mp_value_t *value, budget_t *budget, ints_t *out);

// ---- types ----

static bool constant_ints_has_type(mp_dtype_t dtype) {
  return dtype == MP_DTYPE_BOOL || (mp_dtype_is_integer(dtype) && mp_dtype_bits(dtype) >= 8);
}

static bool constant_ints_is_unsigned(mp_dtype_t dtype) {
  return mp_dtype_class(dtype) == MP_CLASS_UNSIGNED;
}

// The number that has the low bits of `bits` in the element type.
static int64_t constant_ints_wrap(mp_dtype_t dtype, uint64_t bits) {
  if (dtype == MP_DTYPE_BOOL) return bits != 0;
  const unsigned unused = 64 - (unsigned)mp_dtype_bits(dtype);
  if (constant_ints_is_unsigned(dtype)) return (int64_t)(bits << unused >> unused);
  return (int64_t)(bits << unused) >> unused;
}

// ---- ops that move elements ----

static bool constant_ints_constant(const mp_op_t *op, ints_t *out) {
  const mp_attr_t *attr = mp_op_attr(op, MP_ATTR_VALUE);
  if (attr == NULL || attr->kind != MP_KIND_DENSE) return false;
  const mp_dtype_t dtype = attr->u.dense.type->dtype;
  const size_t size = mp_dtype_size(dtype);
  for (uint32_t i = 0; i < out->count; ++i) {
    uint64_t bits = 0;
    memcpy(&bits, (const char *)attr->u.dense.data + (attr->u.dense.splat ? 0 : i * size), size);
    out->values[i] = constant_ints_wrap(dtype, bits);  // little-endian, like all stored elements
  }
  return true;
}

static bool constant_ints_iota(const mp_op_t *op, ints_t *out) {
  if (op->results[0].type->rank != 1) return false;
  for (uint32_t i = 0; i < out->count; ++i) out->values[i] = i;
  return true;
}

static bool constant_ints_concatenate(const mp_op_t *op, budget_t *budget, ints_t *out) {
  if (op->results[0].type->rank != 1) return false;
  uint32_t count = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    ints_t part;
    if (!constant_ints_evaluate(op->operands[i], budget, &part)) return false;
    if (part.count > out->count - count) return false;
    for (uint32_t k = 0; k < part.count; ++k) out->values[count++] = part.values[k];
  }
  return count == out->count;
}

static bool constant_ints_slice(const mp_op_t *op, const ints_t *in, ints_t *out) {
  const mp_index_list_t starts = mp_op_ints(op, MP_ATTR_START_INDICES);
  const mp_index_list_t strides = mp_op_ints(op, MP_ATTR_STRIDES);
  if (op->operands[0]->type->rank != 1 || starts.count != 1 || strides.count != 1) return false;
  for (uint32_t i = 0; i < out->count; ++i) {
    const int64_t at = starts.values[0] + (int64_t)i * strides.values[0];
    if (at < 0 || at >= (int64_t)in->count) return false;
    out->values[i] = in->values[at];
  }
  return true;
}

// A single element that is repeated, or a change of shape that keeps the order of elements.
static bool constant_ints_spread(const ints_t *in, ints_t *out) {
  if (in->count != 1 && in->count != out->count) return false;
  for (uint32_t i = 0; i < out->count; ++i) out->values[i] = in->values[in->count == 1 ? 0 : i];
  return true;
}

static bool constant_ints_broadcast(const mp_op_t *op, const ints_t *in, ints_t *out) {
  // With as many elements as before, all added dimensions have size 1. Dimensions of the operand
  // could still be permuted.
  if (in->count != 1 && op->operands[0]->type->rank != 1) return false;
  return constant_ints_spread(in, out);
}

// ---- ops that compute ----

// Ops that compute shapes, with the same meaning in 64 bits as in fewer: only the low bits of their
// results are used.
// clang-format off
#define OPS(X, sign, name)                                                      \
  X(INT, ADD, name) X(INT, SUBTRACT, name) X(INT, MULTIPLY, name)               \
  X(INT, MAXIMUM, name) X(INT, MINIMUM, name) X(INT, AND, name) X(INT, OR, name) \
  X(INT, NEGATE, name) X(INT, NOT, name) X(sign, ABS, name) X(sign, SIGN, name) \
  X(sign, DIVIDE, name) X(sign, REMAINDER, name)
#define BOOL_OPS(X, name)                                                       \
  X(BOOL, AND, name) X(BOOL, OR, name) X(BOOL, NOT, name)                       \
  X(INT, MAXIMUM, name) X(INT, MINIMUM, name)
// clang-format on
#define CASE(kind, op, name)                             \
  case MP_OP_##op:                                       \
    *out = (uint64_t)MP_MEANING(name, MP_##kind##_##op); \
    return true;

static bool constant_ints_signed(mp_opcode_t code, int64_t x, int64_t y, uint64_t *out) {
  switch (code) {
    OPS(CASE, SIGNED, S64)
    default:
      return false;
  }
}

static bool constant_ints_unsigned(mp_opcode_t code, uint64_t x, uint64_t y, uint64_t *out) {
  switch (code) {
    OPS(CASE, UNSIGNED, U64)
    default:
      return false;
  }
}

// Booleans add by "or" and multiply by "and".
static bool constant_ints_bool(mp_opcode_t code, uint8_t x, uint8_t y, uint64_t *out) {
  if (code == MP_OP_ADD) code = MP_OP_OR;
  if (code == MP_OP_MULTIPLY) code = MP_OP_AND;
  switch (code) {
    BOOL_OPS(CASE, BOOL)
    default:
      return false;
  }
}

static bool constant_ints_compare(uint32_t direction, bool is_unsigned, int64_t a, int64_t b) {
  switch (direction) {
#define DIRECTION(name, operator, with) \
  case MP_CMP_##name:                   \
    return is_unsigned ? (uint64_t)a operator(uint64_t) b : a operator b;
    MP_DIRECTIONS(DIRECTION, )
#undef DIRECTION
    default:
      return false;
  }
}

// One element of an op with one or two operands of `dtype`.
static bool constant_ints_element(const mp_op_t *op, mp_dtype_t dtype, int64_t a, int64_t b,
                                  uint64_t *out) {
  const bool is_unsigned = constant_ints_is_unsigned(dtype);
  switch (op->code) {
    case MP_OP_CONVERT:
      *out = (uint64_t)a;
      return true;
    case MP_OP_COMPARE:
      *out = constant_ints_compare(mp_op_enum(op, MP_ATTR_COMPARISON_DIRECTION, MP_CMP_EQ),
                                   is_unsigned, a, b);
      return true;
    case MP_OP_DIVIDE:
    case MP_OP_REMAINDER:
      // No shape comes from a division by zero, or one that overflows.
      if (b == 0 || (b == -1 && a == INT64_MIN)) return false;
      break;
    default:
      break;
  }
  if (dtype == MP_DTYPE_BOOL) return constant_ints_bool(op->code, (uint8_t)a, (uint8_t)b, out);
  return is_unsigned ? constant_ints_unsigned(op->code, (uint64_t)a, (uint64_t)b, out)
                     : constant_ints_signed(op->code, a, b, out);
}

static bool constant_ints_elementwise(const mp_op_t *op, const ints_t *in, ints_t *out) {
  const mp_dtype_t from = op->operands[0]->type->dtype, to = op->results[0].type->dtype;
  for (uint32_t i = 0; i < out->count; ++i) {
    uint64_t bits = 0;
    const int64_t a = in[0].values[i];
    const int64_t b = op->num_operands == 1 ? 0 : in[1].values[i];
    if (!constant_ints_element(op, from, a, b, &bits)) return false;
    out->values[i] = constant_ints_wrap(to, bits);
  }
  return true;
}

// The predicate may be a scalar.
static bool constant_ints_select(const ints_t *in, ints_t *out) {
  for (uint32_t i = 0; i < out->count; ++i) {
    const int64_t which = in[0].values[in[0].count == 1 ? 0 : i];
    out->values[i] = which != 0 ? in[1].values[i] : in[2].values[i];
  }
  return true;
}

// ---- evaluation ----

static bool constant_ints_of_operands(const mp_op_t *op, budget_t *budget, ints_t *out) {
  ints_t in[3];
  if (op->num_operands == 0 || op->num_operands > 3) return false;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (!constant_ints_evaluate(op->operands[i], budget, &in[i])) return false;
  }
  switch (op->code) {
    case MP_OP_RESHAPE:
      return constant_ints_spread(&in[0], out);
    case MP_OP_BROADCAST_IN_DIM:
      return constant_ints_broadcast(op, &in[0], out);
    case MP_OP_SLICE:
      return constant_ints_slice(op, &in[0], out);
    default:
      break;
  }
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const bool scalar_predicate = op->code == MP_OP_SELECT && i == 0 && in[0].count == 1;
    if (in[i].count != out->count && !scalar_predicate) return false;
  }
  if (op->num_operands == 3) return op->code == MP_OP_SELECT && constant_ints_select(in, out);
  return constant_ints_elementwise(op, in, out);
}

static bool constant_ints_of_op(const mp_op_t *op, budget_t *budget, ints_t *out) {
  switch (op->code) {
    case MP_OP_CONSTANT:
    case MP_OP_SDY_CONSTANT:
      return constant_ints_constant(op, out);
    case MP_OP_IOTA:
      return constant_ints_iota(op, out);
    case MP_OP_CONCATENATE:
      return constant_ints_concatenate(op, budget, out);
    default:
      return op->num_results == 1 && constant_ints_of_operands(op, budget, out);
  }
}

static bool constant_ints_evaluate(const mp_value_t *value, budget_t *budget, ints_t *out) {
  int64_t elements = 0;
  if (value->op == NULL || budget->depth == MAX_DEPTH || budget->evaluations == 0) return false;
  if (!mp_type_is_tensor(value->type) || !mp_type_is_static(value->type) ||
      !constant_ints_has_type(value->type->dtype) ||
      !mp_type_num_elements(value->type, &elements) || elements > MP_CONSTANT_INTS_MAX) {
    return false;
  }
  out->count = (uint32_t)elements;
  ++budget->depth;
  --budget->evaluations;
  const bool known = constant_ints_of_op(value->op, budget, out);
  --budget->depth;
  return known;
}

bool mp_constant_ints(const mp_value_t *value, int64_t *values, uint32_t count) {
  budget_t budget = {0, MAX_EVALUATIONS};
  ints_t found;
  if (!constant_ints_evaluate(value, &budget, &found) || found.count != count) return false;
  for (uint32_t i = 0; i < count; ++i) values[i] = found.values[i];
  return true;
}
