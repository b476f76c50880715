// Elementwise operations (StableHLO specification, under their names).
#include "sim/ir/verify/verify_rules.h"

enum {
  ANY = MP_IS_BOOL | MP_IS_INTEGER | MP_IS_FLOAT | MP_IS_COMPLEX,
  NUMBER = MP_IS_INTEGER | MP_IS_FLOAT | MP_IS_COMPLEX,
  ANALYTIC = MP_IS_FLOAT | MP_IS_COMPLEX,
  BITS = MP_IS_BOOL | MP_IS_INTEGER,
};

// The result's element type, as it follows from the operands'.
typedef enum { SAME, BOOL, REAL_PART, FROM_PARTS, FREE } mp_result_rule_t;

static const struct {
  uint8_t classes;
  uint8_t result;
} g_rules[MP_OP_COUNT] = {
    [MP_OP_ABS] = {NUMBER, REAL_PART},
    [MP_OP_ADD] = {ANY, SAME},
    [MP_OP_AND] = {BITS, SAME},
    [MP_OP_ATAN2] = {ANALYTIC, SAME},
    [MP_OP_CBRT] = {ANALYTIC, SAME},
    [MP_OP_CEIL] = {MP_IS_FLOAT, SAME},
    [MP_OP_COMPLEX] = {MP_IS_FLOAT, FROM_PARTS},
    [MP_OP_CONVERT] = {ANY, FREE},
    [MP_OP_COSINE] = {ANALYTIC, SAME},
    [MP_OP_COUNT_LEADING_ZEROS] = {MP_IS_INTEGER, SAME},
    [MP_OP_DIVIDE] = {NUMBER, SAME},
    [MP_OP_EXPONENTIAL] = {ANALYTIC, SAME},
    [MP_OP_EXPONENTIAL_MINUS_ONE] = {ANALYTIC, SAME},
    [MP_OP_FLOOR] = {MP_IS_FLOAT, SAME},
    [MP_OP_IMAG] = {ANALYTIC, REAL_PART},
    [MP_OP_IS_FINITE] = {MP_IS_FLOAT, BOOL},
    [MP_OP_LOG] = {ANALYTIC, SAME},
    [MP_OP_LOG_PLUS_ONE] = {ANALYTIC, SAME},
    [MP_OP_LOGISTIC] = {ANALYTIC, SAME},
    [MP_OP_MAXIMUM] = {ANY, SAME},
    [MP_OP_MINIMUM] = {ANY, SAME},
    [MP_OP_MULTIPLY] = {ANY, SAME},
    [MP_OP_NEGATE] = {NUMBER, SAME},
    [MP_OP_NOT] = {BITS, SAME},
    [MP_OP_OR] = {BITS, SAME},
    [MP_OP_POPCNT] = {MP_IS_INTEGER, SAME},
    [MP_OP_POWER] = {NUMBER, SAME},
    [MP_OP_REAL] = {ANALYTIC, REAL_PART},
    [MP_OP_REMAINDER] = {NUMBER, SAME},
    [MP_OP_ROUND_NEAREST_AFZ] = {MP_IS_FLOAT, SAME},
    [MP_OP_ROUND_NEAREST_EVEN] = {MP_IS_FLOAT, SAME},
    [MP_OP_RSQRT] = {ANALYTIC, SAME},
    [MP_OP_SHIFT_LEFT] = {MP_IS_INTEGER, SAME},
    [MP_OP_SHIFT_RIGHT_ARITHMETIC] = {MP_IS_INTEGER, SAME},
    [MP_OP_SHIFT_RIGHT_LOGICAL] = {MP_IS_INTEGER, SAME},
    [MP_OP_SIGN] = {NUMBER, SAME},
    [MP_OP_SINE] = {ANALYTIC, SAME},
    [MP_OP_SQRT] = {ANALYTIC, SAME},
    [MP_OP_SUBTRACT] = {NUMBER, SAME},
    [MP_OP_TAN] = {ANALYTIC, SAME},
    [MP_OP_TANH] = {ANALYTIC, SAME},
    [MP_OP_XOR] = {BITS, SAME},
};

// Whether the rule gives this element type of the result for that of the operands.
static bool verify_elementwise_result_fits(mp_result_rule_t rule, mp_dtype_t operand,
                                           mp_dtype_t result) {
  switch (rule) {
    case SAME:
      return result == operand;
    case BOOL:
      return result == MP_DTYPE_BOOL;
    case REAL_PART:
      return result == mp_dtype_real_part(operand);
    case FROM_PARTS:
      return mp_dtype_is_complex(result) && mp_dtype_real_part(result) == operand;
    case FREE:
      return true;
  }
  return false;
}

// All operands have one type, and the result has their shape. The table above has the element
// types.
mp_status_t mp_verify_elementwise(const mp_op_t *op) {
  const mp_type_t *first = mp_operand_type(op, 0), *result = mp_result_type(op, 0);
  MP_RETURN_IF_ERROR(mp_verify_dtype(op, first, g_rules[op->code].classes, "an operand"));
  for (uint32_t i = 1; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_same_type(op, mp_operand_type(op, i), first, "the operands"));
  }
  MP_RETURN_IF_ERROR(mp_verify_same_shape(op, result, first, "the result and the operand"));
  MP_CHECK(op,
           verify_elementwise_result_fits((mp_result_rule_t)g_rules[op->code].result, first->dtype,
                                          result->dtype),
           "the result cannot be of type %s for an operand of type %s",
           mp_dtype_name(result->dtype), mp_dtype_name(first->dtype));
  return NULL;
}

// The bounds have the operand's shape, or are scalars that hold for the whole tensor.
mp_status_t mp_verify_clamp(const mp_op_t *op) {
  const mp_type_t *operand = mp_operand_type(op, 1);
  for (uint32_t i = 0; i < 3; i += 2) {
    const mp_type_t *bound = mp_operand_type(op, i);
    MP_CHECK(op, bound->dtype == operand->dtype, "a bound has type %s, the operand %s",
             mp_dtype_name(bound->dtype), mp_dtype_name(operand->dtype));
    if (bound->rank != 0) {
      MP_RETURN_IF_ERROR(mp_verify_same_shape(op, bound, operand, "a bound and the operand"));
    }
  }
  return mp_verify_same_type(op, mp_result_type(op, 0), operand, "the result and the operand");
}

mp_status_t mp_verify_compare(const mp_op_t *op) {
  const mp_type_t *operand = mp_operand_type(op, 0), *result = mp_result_type(op, 0);
  MP_RETURN_IF_ERROR(mp_verify_same_type(op, mp_operand_type(op, 1), operand, "the operands"));
  MP_RETURN_IF_ERROR(mp_verify_same_shape(op, result, operand, "the result and the operands"));
  MP_CHECK(op, result->dtype == MP_DTYPE_BOOL, "the result is not boolean");
  // The type of the comparison follows from the element type; only floating-point has a choice.
  static const uint32_t classes[] = {
      [MP_CMP_NOTYPE] = ANY,
      [MP_CMP_FLOAT] = ANALYTIC,
      [MP_CMP_TOTALORDER] = MP_IS_FLOAT,
      [MP_CMP_SIGNED] = MP_IS_SIGNED,
      [MP_CMP_UNSIGNED] = MP_IS_UNSIGNED | MP_IS_BOOL,
  };
  uint32_t type = mp_op_enum(op, MP_ATTR_COMPARE_TYPE, MP_CMP_NOTYPE);
  MP_CHECK(op, mp_dtype_in(operand->dtype, classes[type]), "compare_type %s does not fit type %s",
           mp_enum_value_name(MP_ENUM_COMPARISON_TYPE, type), mp_dtype_name(operand->dtype));
  uint32_t direction = mp_op_enum(op, MP_ATTR_COMPARISON_DIRECTION, MP_CMP_EQ);
  MP_CHECK(op,
           !mp_dtype_is_complex(operand->dtype) || direction == MP_CMP_EQ || direction == MP_CMP_NE,
           "complex numbers have no order");
  return NULL;
}

// The predicate has the operands' shape, or is a scalar that holds for the whole tensor.
mp_status_t mp_verify_select(const mp_op_t *op) {
  const mp_type_t *pred = mp_operand_type(op, 0), *on_true = mp_operand_type(op, 1);
  MP_CHECK(op, pred->dtype == MP_DTYPE_BOOL, "the predicate is not boolean");
  if (pred->rank != 0) {
    MP_RETURN_IF_ERROR(mp_verify_same_shape(op, pred, on_true, "the predicate and the values"));
  }
  MP_RETURN_IF_ERROR(mp_verify_same_type(op, mp_operand_type(op, 2), on_true, "the two values"));
  return mp_verify_same_type(op, mp_result_type(op, 0), on_true, "the result and the values");
}

// An exponent of 0 bits would leave no numbers, but a mantissa of 0 bits leaves the powers of two.
mp_status_t mp_verify_reduce_precision(const mp_op_t *op) {
  const mp_type_t *operand = mp_operand_type(op, 0);
  MP_RETURN_IF_ERROR(mp_verify_dtype(op, operand, MP_IS_FLOAT, "the operand"));
  int64_t exponent = mp_op_int(op, MP_ATTR_EXPONENT_BITS, 0);
  int64_t mantissa = mp_op_int(op, MP_ATTR_MANTISSA_BITS, -1);
  MP_CHECK(op, exponent >= 1 && exponent <= INT32_MAX, "exponent_bits is %lld",
           (long long)exponent);
  MP_CHECK(op, mantissa >= 0 && mantissa <= INT32_MAX, "mantissa_bits is %lld",
           (long long)mantissa);
  return mp_verify_same_type(op, mp_result_type(op, 0), operand, "the result and the operand");
}
