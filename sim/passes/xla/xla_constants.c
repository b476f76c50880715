// Sums and products with several constants: the constants are combined first.
#include "sim/passes/rewrite/rewrite.h"
#include "sim/passes/xla/xla_rules.h"

static bool xla_constants_is_real(const mp_op_t *op) {
  return mp_dtype_is_float(op->results[0].type->dtype) && mp_type_is_static(op->results[0].type);
}

// Splits an op into a value and a constant; false if it has no constant. In a - c and a / c the
// constant must be on the right, unless `reversed` is not NULL: then it may be on the left, and
// `*reversed` is set.
static bool xla_constants_split(const mp_op_t *op, mp_value_t **out_a, mp_value_t **out_c,
                                bool *reversed) {
  for (uint32_t i = 2; i-- > 0;) {
    if (!mp_xla_is_constant(op->operands[i]) || mp_xla_is_constant(op->operands[1 - i])) continue;
    const bool is_ordered = op->code == MP_OP_SUBTRACT || op->code == MP_OP_DIVIDE;
    if (i == 0 && is_ordered && reversed == NULL) continue;
    if (reversed != NULL) *reversed = i == 0 && is_ordered;
    *out_a = op->operands[1 - i];
    *out_c = op->operands[i];
    return true;
  }
  return false;
}

static double xla_constants_combine(mp_opcode_t code, double a, double b) {
  switch (code) {
    case MP_OP_ADD:
      return a + b;
    case MP_OP_SUBTRACT:
      return a - b;
    case MP_OP_MULTIPLY:
      return a * b;
    default:
      return a / b;
  }
}

// a `code` b of two constants: a constant, if each is one number, otherwise an op. Rounding the
// double to the element type rounds as an op of that type does, as it has over twice the bits.
static mp_status_t xla_constants_compute(mp_xla_t *x, mp_op_t *op, mp_opcode_t code, mp_value_t *a,
                                         mp_value_t *b, mp_value_t **out_value) {
  double left = 0, right = 0;
  if (mp_xla_number(a, &left) && mp_xla_number(b, &right))
    return mp_xla_insert_number(x, op, a->type, xla_constants_combine(code, left, right),
                                out_value);
  return mp_xla_compute(x, op, code, a, b, out_value);
}

// ---- sums ----

// The op of `op`'s block that adds or subtracts a constant and whose result `value` is.
static const mp_op_t *xla_constants_sum(const mp_op_t *op, const mp_value_t *value) {
  const mp_op_t *sum = mp_xla_operand(op, value, MP_OP_ADD);
  return sum != NULL ? sum : mp_xla_operand(op, value, MP_OP_SUBTRACT);
}

// (a + b) + c => a + (b + c), also where a sign is minus.
mp_status_t mp_xla_plus_constants(mp_xla_t *x, mp_op_t *op, mp_xla_outcome_t *out) {
  mp_value_t *sum = NULL, *a = NULL, *b = NULL, *c = NULL, *constant = NULL;
  bool is_reversed = false;
  if (!xla_constants_is_real(op) || !xla_constants_split(op, &sum, &c, NULL)) return NULL;
  const mp_op_t *inner = xla_constants_sum(op, sum);
  if (inner == NULL || !xla_constants_split(inner, &a, &b, &is_reversed)) return NULL;
  const bool is_minus = inner->code == MP_OP_SUBTRACT && !is_reversed;
  if (is_minus) {  // (a - b) + c: a + (c - b); (a - b) - c: a - (b + c)
    const mp_opcode_t code = op->code == MP_OP_ADD ? MP_OP_SUBTRACT : MP_OP_ADD;
    MP_RETURN_IF_ERROR(code == MP_OP_ADD ? xla_constants_compute(x, op, code, b, c, &constant)
                                         : xla_constants_compute(x, op, code, c, b, &constant));
    return mp_xla_become(x, op, op->code, a, constant, out);
  }
  MP_RETURN_IF_ERROR(xla_constants_compute(x, op, op->code, b, c, &constant));
  if (is_reversed) return mp_xla_become(x, op, MP_OP_SUBTRACT, constant, a, out);
  return mp_xla_become(x, op, MP_OP_ADD, a, constant, out);
}

// a + 0 => a, a - 0 => a
mp_status_t mp_xla_plus_zero(mp_xla_t *x, mp_op_t *op, mp_xla_outcome_t *out) {
  (void)x;
  mp_value_t *a = NULL, *c = NULL;
  double number = 0;
  if (!xla_constants_split(op, &a, &c, NULL)) return NULL;
  if (mp_xla_number(c, &number) && number == 0) out->by = a;
  return NULL;
}

// ---- products ----

static const mp_op_t *xla_constants_product(const mp_op_t *op, const mp_value_t *value) {
  const mp_op_t *product = mp_xla_operand(op, value, MP_OP_MULTIPLY);
  return product != NULL ? product : mp_xla_operand(op, value, MP_OP_DIVIDE);
}

// The number that the op multiplies by: its constant, or the constant's reciprocal.
static mp_status_t xla_constants_factor(mp_xla_t *x, mp_op_t *position, mp_opcode_t code,
                                        mp_value_t *c, mp_value_t **out_value) {
  mp_value_t *one = NULL;
  *out_value = c;
  if (code == MP_OP_MULTIPLY) return NULL;
  MP_RETURN_IF_ERROR(mp_xla_insert_number(x, position, c->type, 1, &one));
  return xla_constants_compute(x, position, MP_OP_DIVIDE, one, c, out_value);
}

// (a * b) * c => a * (b * c), also where a constant divides.
mp_status_t mp_xla_times_constants(mp_xla_t *x, mp_op_t *op, mp_xla_outcome_t *out) {
  mp_value_t *product = NULL, *a = NULL, *b = NULL, *c = NULL, *constant = NULL;
  if (!xla_constants_is_real(op) || !xla_constants_split(op, &product, &c, NULL)) return NULL;
  const mp_op_t *inner = xla_constants_product(op, product);
  if (inner == NULL || !xla_constants_split(inner, &a, &b, NULL)) return NULL;
  MP_RETURN_IF_ERROR(xla_constants_factor(x, op, inner->code, b, &b));
  MP_RETURN_IF_ERROR(xla_constants_factor(x, op, op->code, c, &c));
  MP_RETURN_IF_ERROR(xla_constants_compute(x, op, MP_OP_MULTIPLY, b, c, &constant));
  return mp_xla_become(x, op, MP_OP_MULTIPLY, a, constant, out);
}

// a * 1 => a, a / 1 => a
mp_status_t mp_xla_times_one(mp_xla_t *x, mp_op_t *op, mp_xla_outcome_t *out) {
  (void)x;
  mp_value_t *a = NULL, *c = NULL;
  double number = 0;
  if (!xla_constants_split(op, &a, &c, NULL)) return NULL;
  if (mp_xla_number(c, &number) && number == 1) out->by = a;
  return NULL;
}
