// Exponentials, logarithms, powers and roots that undo each other: avoids the intermediate number,
// which may overflow or underflow. XLA has these rules for real numbers.
#include "sim/passes/rewrite/rewrite.h"
#include "sim/passes/xla/xla_rules.h"

static bool xla_powers_is_real(const mp_op_t *op) {
  return mp_dtype_is_float(op->results[0].type->dtype);
}

// log(exp(a)) => a
mp_status_t mp_xla_log_exp(mp_xla_t *x, mp_op_t *op, mp_xla_outcome_t *out) {
  (void)x;
  const mp_op_t *exp = mp_xla_operand(op, op->operands[0], MP_OP_EXPONENTIAL);
  if (exp != NULL && xla_powers_is_real(op)) out->by = exp->operands[0];
  return NULL;
}

// Whether XLA replaces the power by another op before it reaches the logarithm.
static bool xla_powers_is_special(double exponent) {
  return exponent == 0 || exponent == 1 || exponent == 2 || exponent == 3 || exponent == -1 ||
         exponent == 0.5 || exponent == -0.5;
}

// Makes `op` select(b == 0, 0, product): the logarithm of a power of zero is that of one.
static mp_status_t xla_powers_unless_zero(mp_xla_t *x, mp_op_t *op, mp_value_t *b,
                                          mp_value_t *product, mp_xla_outcome_t *out) {
  mp_value_t *zero = NULL, *is_zero = NULL;
  const mp_attr_t *equal = NULL, *floats = NULL;
  mp_type_t *type = mp_arena_copy(x->module->arena, b->type, sizeof(*b->type));
  MP_RETURN_IF_NULL(type);
  type->dtype = MP_DTYPE_BOOL;
  MP_RETURN_IF_ERROR(
      mp_attr_make_enum(x->module->arena, MP_ENUM_COMPARISON_DIRECTION, MP_CMP_EQ, &equal));
  MP_RETURN_IF_ERROR(
      mp_attr_make_enum(x->module->arena, MP_ENUM_COMPARISON_TYPE, MP_CMP_FLOAT, &floats));
  const mp_named_attr_t attrs[] = {mp_rewrite_attr(MP_ATTR_COMPARISON_DIRECTION, equal),
                                   mp_rewrite_attr(MP_ATTR_COMPARE_TYPE, floats)};
  MP_RETURN_IF_ERROR(mp_xla_insert_number(x, op, b->type, 0, &zero));
  mp_value_t *const compared[] = {b, zero};
  const mp_op_one_t made = {.code = MP_OP_COMPARE,
                            .type = type,
                            .operands = compared,
                            .num_operands = 2,
                            .attrs = attrs,
                            .num_attrs = 2};
  MP_RETURN_IF_ERROR(mp_xla_insert(x, op, &made, &is_zero));
  mp_value_t *const operands[] = {is_zero, zero, product};
  out->is_changed = true;
  MP_RETURN_IF_ERROR(mp_rewrite_set_operands(x->module, op, operands, 3));
  return mp_rewrite_become(x->module, op, MP_OP_SELECT, NULL, 0);
}

// log(a ** b) => log(|a|) * b
mp_status_t mp_xla_log_power(mp_xla_t *x, mp_op_t *op, mp_xla_outcome_t *out) {
  const mp_op_t *power = mp_xla_operand(op, op->operands[0], MP_OP_POWER);
  if (power == NULL || !xla_powers_is_real(op) || !mp_type_is_static(op->results[0].type))
    return NULL;
  mp_value_t *b = power->operands[1], *value = NULL;
  double exponent = 0;
  const bool is_known = mp_xla_number(b, &exponent);
  if (is_known && xla_powers_is_special(exponent)) return NULL;
  MP_RETURN_IF_ERROR(mp_xla_compute(x, op, MP_OP_ABS, power->operands[0], NULL, &value));
  MP_RETURN_IF_ERROR(mp_xla_compute(x, op, MP_OP_LOG, value, NULL, &value));
  if (is_known) return mp_xla_become(x, op, MP_OP_MULTIPLY, value, b, out);
  MP_RETURN_IF_ERROR(mp_xla_compute(x, op, MP_OP_MULTIPLY, value, b, &value));
  return xla_powers_unless_zero(x, op, b, value, out);
}

static mp_status_t xla_powers_of_exps(mp_xla_t *x, mp_op_t *op, mp_opcode_t code,
                                      mp_xla_outcome_t *out) {
  const mp_op_t *a = mp_xla_operand(op, op->operands[0], MP_OP_EXPONENTIAL);
  const mp_op_t *b = mp_xla_operand(op, op->operands[1], MP_OP_EXPONENTIAL);
  mp_value_t *exponent = NULL;
  if (a == NULL || b == NULL || !xla_powers_is_real(op)) return NULL;
  MP_RETURN_IF_ERROR(mp_xla_compute(x, op, code, a->operands[0], b->operands[0], &exponent));
  return mp_xla_become(x, op, MP_OP_EXPONENTIAL, exponent, NULL, out);
}

// exp(a) * exp(b) => exp(a + b)
mp_status_t mp_xla_exp_times_exp(mp_xla_t *x, mp_op_t *op, mp_xla_outcome_t *out) {
  return xla_powers_of_exps(x, op, MP_OP_ADD, out);
}

// exp(a) / exp(b) => exp(a - b)
mp_status_t mp_xla_exp_over_exp(mp_xla_t *x, mp_op_t *op, mp_xla_outcome_t *out) {
  return xla_powers_of_exps(x, op, MP_OP_SUBTRACT, out);
}

// exp(a) ** b => exp(a * b)
mp_status_t mp_xla_power_exp(mp_xla_t *x, mp_op_t *op, mp_xla_outcome_t *out) {
  const mp_op_t *exp = mp_xla_operand(op, op->operands[0], MP_OP_EXPONENTIAL);
  mp_value_t *exponent = NULL;
  double number = 0;
  if (exp == NULL || !xla_powers_is_real(op)) return NULL;
  if (mp_xla_number(op->operands[1], &number) && xla_powers_is_special(number)) return NULL;
  MP_RETURN_IF_ERROR(
      mp_xla_compute(x, op, MP_OP_MULTIPLY, exp->operands[0], op->operands[1], &exponent));
  return mp_xla_become(x, op, MP_OP_EXPONENTIAL, exponent, NULL, out);
}

// sqrt(a * a) => |a|
mp_status_t mp_xla_sqrt_square(mp_xla_t *x, mp_op_t *op, mp_xla_outcome_t *out) {
  const mp_op_t *square = mp_xla_operand(op, op->operands[0], MP_OP_MULTIPLY);
  if (square == NULL || square->operands[0] != square->operands[1] || !xla_powers_is_real(op))
    return NULL;
  return mp_xla_become(x, op, MP_OP_ABS, square->operands[0], NULL, out);
}
