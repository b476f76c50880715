// Arithmetic, and functions of floating-point numbers.
#include <math.h>

#include "sim/mosaic/vectors/translate.h"

// The ops that StableHLO has, too.
static const struct {
  mp_mosaic_opcode_t from;
  mp_opcode_t to;
} g_same[] = {
    {MP_MOSAIC_ADDF, MP_OP_ADD},
    {MP_MOSAIC_SUBF, MP_OP_SUBTRACT},
    {MP_MOSAIC_MULF, MP_OP_MULTIPLY},
    {MP_MOSAIC_DIVF, MP_OP_DIVIDE},
    {MP_MOSAIC_REMF, MP_OP_REMAINDER},
    {MP_MOSAIC_MAXIMUMF, MP_OP_MAXIMUM},
    {MP_MOSAIC_MINIMUMF, MP_OP_MINIMUM},
    {MP_MOSAIC_ADDI, MP_OP_ADD},
    {MP_MOSAIC_SUBI, MP_OP_SUBTRACT},
    {MP_MOSAIC_MULI, MP_OP_MULTIPLY},
    {MP_MOSAIC_DIVSI, MP_OP_DIVIDE},
    {MP_MOSAIC_REMSI, MP_OP_REMAINDER},
    {MP_MOSAIC_MAXSI, MP_OP_MAXIMUM},
    {MP_MOSAIC_MINSI, MP_OP_MINIMUM},
    {MP_MOSAIC_ANDI, MP_OP_AND},
    {MP_MOSAIC_ORI, MP_OP_OR},
    {MP_MOSAIC_XORI, MP_OP_XOR},
    {MP_MOSAIC_SHLI, MP_OP_SHIFT_LEFT},
    {MP_MOSAIC_SHRSI, MP_OP_SHIFT_RIGHT_ARITHMETIC},
    {MP_MOSAIC_SHRUI, MP_OP_SHIFT_RIGHT_LOGICAL},
    {MP_MOSAIC_ATAN2, MP_OP_ATAN2},
    {MP_MOSAIC_POWF, MP_OP_POWER},
    {MP_MOSAIC_NEGF, MP_OP_NEGATE},
    {MP_MOSAIC_ABSF, MP_OP_ABS},
    {MP_MOSAIC_ABSI, MP_OP_ABS},
    {MP_MOSAIC_CBRT, MP_OP_CBRT},
    {MP_MOSAIC_CEIL, MP_OP_CEIL},
    {MP_MOSAIC_COS, MP_OP_COSINE},
    {MP_MOSAIC_CTLZ, MP_OP_COUNT_LEADING_ZEROS},
    {MP_MOSAIC_CTPOP, MP_OP_POPCNT},
    {MP_MOSAIC_EXP, MP_OP_EXPONENTIAL},
    {MP_MOSAIC_EXPM1, MP_OP_EXPONENTIAL_MINUS_ONE},
    {MP_MOSAIC_FLOOR, MP_OP_FLOOR},
    {MP_MOSAIC_LOG, MP_OP_LOG},
    {MP_MOSAIC_LOG1P, MP_OP_LOG_PLUS_ONE},
    {MP_MOSAIC_LOGISTIC, MP_OP_LOGISTIC},
    {MP_MOSAIC_ROUND, MP_OP_ROUND_NEAREST_AFZ},
    {MP_MOSAIC_ROUNDEVEN, MP_OP_ROUND_NEAREST_EVEN},
    {MP_MOSAIC_RSQRT, MP_OP_RSQRT},
    {MP_MOSAIC_SIN, MP_OP_SINE},
    {MP_MOSAIC_SQRT, MP_OP_SQRT},
    {MP_MOSAIC_TAN, MP_OP_TAN},
    {MP_MOSAIC_TANH, MP_OP_TANH},
};

// Those that it has of unsigned integers.
static const struct {
  mp_mosaic_opcode_t from;
  mp_opcode_t to;
} g_unsigned[] = {
    {MP_MOSAIC_DIVUI, MP_OP_DIVIDE},
    {MP_MOSAIC_REMUI, MP_OP_REMAINDER},
    {MP_MOSAIC_MAXUI, MP_OP_MAXIMUM},
    {MP_MOSAIC_MINUI, MP_OP_MINIMUM},
};

static const struct {
  mp_mosaic_opcode_t from;
  const char *name;
} g_functions[] = {
    {MP_MOSAIC_ACOS, "mhlo.acos"}, {MP_MOSAIC_ASIN, "mhlo.asin"}, {MP_MOSAIC_COSH, "mhlo.cosh"},
    {MP_MOSAIC_ERF, "mhlo.erf"},   {MP_MOSAIC_SINH, "mhlo.sinh"},
};

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

// ---- integers ----

static mp_value_t *translate_elementwise_unsigned(const mp_translate_t *t, mp_opcode_t code) {
  const mp_dtype_t dtype = mp_translate_unsigned(t->type->dtype);
  mp_value_t *x = mp_shlo_bits_as(t->hlo, t->in[0], dtype);
  mp_value_t *y = mp_shlo_bits_as(t->hlo, t->in[1], dtype);
  return mp_shlo_bits_as(t->hlo, mp_shlo_binary(t->hlo, code, x, y), t->type->dtype);
}

// Quotients that are not rounded to zero: `by` is added where there is a remainder and the operands
// have the same sign (is_same), or different ones.
static mp_value_t *translate_elementwise_quotient(mp_shlo_t *hlo, mp_value_t *x, mp_value_t *y,
                                                  bool is_same, int64_t by) {
  if (x == NULL || y == NULL) return NULL;
  mp_value_t *zero = mp_shlo_integer(hlo, x->type, 0);
  mp_value_t *quotient = mp_shlo_binary(hlo, MP_OP_DIVIDE, x, y);
  mp_value_t *rest = mp_shlo_binary(hlo, MP_OP_REMAINDER, x, y);
  mp_value_t *signs = mp_shlo_binary(hlo, MP_OP_XOR, x, y);
  mp_value_t *has_rest = mp_shlo_compare(hlo, MP_CMP_NE, rest, zero);
  mp_value_t *fits = mp_shlo_compare(hlo, is_same ? MP_CMP_GE : MP_CMP_LT, signs, zero);
  mp_value_t *moved = mp_shlo_binary(hlo, MP_OP_ADD, quotient, mp_shlo_integer(hlo, x->type, by));
  return mp_shlo_select(hlo, mp_shlo_binary(hlo, MP_OP_AND, has_rest, fits), moved, quotient);
}

static mp_value_t *translate_elementwise_ceil_unsigned(const mp_translate_t *t) {
  const mp_dtype_t dtype = mp_translate_unsigned(t->type->dtype);
  mp_value_t *x = mp_shlo_bits_as(t->hlo, t->in[0], dtype);
  mp_value_t *y = mp_shlo_bits_as(t->hlo, t->in[1], dtype);
  return mp_shlo_bits_as(t->hlo, translate_elementwise_quotient(t->hlo, x, y, true, 1),
                         t->type->dtype);
}

static mp_value_t *translate_elementwise_trailing_zeros(mp_shlo_t *hlo, mp_value_t *x) {
  mp_value_t *one = mp_shlo_integer(hlo, x->type, 1);
  mp_value_t *below = mp_shlo_binary(hlo, MP_OP_SUBTRACT, x, one);
  mp_value_t *low = mp_shlo_binary(hlo, MP_OP_AND, mp_shlo_unary(hlo, MP_OP_NOT, x), below);
  return mp_shlo_unary(hlo, MP_OP_POPCNT, low);
}

// The two halves of products of twice the width.
static void translate_elementwise_extended(const mp_translate_t *t, bool is_signed) {
  mp_shlo_t *hlo = t->hlo;
  const mp_dtype_t dtype = t->type->dtype;
  const mp_dtype_t narrow = is_signed ? dtype : mp_translate_unsigned(dtype);
  const mp_dtype_t wide = is_signed ? MP_DTYPE_S64 : MP_DTYPE_U64;
  mp_value_t *x = mp_shlo_convert(hlo, mp_shlo_bits_as(hlo, t->in[0], narrow), wide);
  mp_value_t *y = mp_shlo_convert(hlo, mp_shlo_bits_as(hlo, t->in[1], narrow), wide);
  mp_value_t *product = mp_shlo_binary(hlo, MP_OP_MULTIPLY, x, y);
  if (product == NULL) return;
  mp_value_t *by = mp_shlo_integer(hlo, product->type, mp_dtype_bits(dtype));
  mp_value_t *high = mp_shlo_binary(hlo, MP_OP_SHIFT_RIGHT_LOGICAL, product, by);
  t->out[0] = mp_shlo_convert(hlo, product, dtype);
  t->out[1] = mp_shlo_convert(hlo, high, dtype);
}

// ---- floating-point numbers ----

// The other operand where one is a NaN.
static mp_value_t *translate_elementwise_number(const mp_translate_t *t, mp_opcode_t code) {
  mp_shlo_t *hlo = t->hlo;
  mp_value_t *x = t->in[0], *y = t->in[1];
  mp_value_t *both = mp_shlo_binary(hlo, code, x, y);
  mp_value_t *unless_y = mp_shlo_select(hlo, mp_translate_is_nan(hlo, y), x, both);
  return mp_shlo_select(hlo, mp_translate_is_nan(hlo, x), y, unless_y);
}

static mp_value_t *translate_elementwise_copy_sign(const mp_translate_t *t) {
  mp_shlo_t *hlo = t->hlo;
  const int bits = mp_dtype_bits(t->type->dtype);
  const mp_dtype_t dtype = mp_translate_unsigned(t->type->dtype);
  mp_value_t *x = mp_shlo_bits_as(hlo, t->in[0], dtype), *y = mp_shlo_bits_as(hlo, t->in[1], dtype);
  if (x == NULL) return NULL;
  const uint64_t sign = UINT64_C(1) << (bits - 1);
  mp_value_t *rest =
      mp_shlo_binary(hlo, MP_OP_AND, x, mp_shlo_integer(hlo, x->type, (int64_t)(sign - 1)));
  mp_value_t *top = mp_shlo_binary(hlo, MP_OP_AND, y, mp_shlo_integer(hlo, x->type, (int64_t)sign));
  return mp_shlo_bits_as(hlo, mp_shlo_binary(hlo, MP_OP_OR, rest, top), t->type->dtype);
}

static mp_value_t *translate_elementwise_truncated(mp_shlo_t *hlo, mp_value_t *x) {
  mp_value_t *is_negative = mp_shlo_compare(hlo, MP_CMP_LT, x, mp_shlo_float(hlo, x->type, 0));
  return mp_shlo_select(hlo, is_negative, mp_shlo_unary(hlo, MP_OP_CEIL, x),
                        mp_shlo_unary(hlo, MP_OP_FLOOR, x));
}

static mp_value_t *translate_elementwise_scaled(mp_shlo_t *hlo, mp_value_t *x, double by) {
  return x == NULL ? NULL : mp_shlo_binary(hlo, MP_OP_MULTIPLY, x, mp_shlo_float(hlo, x->type, by));
}

static mp_value_t *translate_elementwise_is_infinite(mp_shlo_t *hlo, mp_value_t *x) {
  mp_value_t *size = mp_shlo_unary(hlo, MP_OP_ABS, x);
  return mp_shlo_compare(hlo, MP_CMP_EQ, size, mp_shlo_float(hlo, x->type, INFINITY));
}

static mp_value_t *translate_elementwise_is_finite(const mp_translate_t *t) {
  return mp_shlo_op(t->hlo, MP_OP_IS_FINITE, t->in, 1, t->type, NULL, 0);
}

static mp_value_t *translate_elementwise_binary_formula(const mp_translate_t *t) {
  switch (t->op->code) {
    case MP_MOSAIC_MAXNUMF:
      return translate_elementwise_number(t, MP_OP_MAXIMUM);
    case MP_MOSAIC_MINNUMF:
      return translate_elementwise_number(t, MP_OP_MINIMUM);
    case MP_MOSAIC_CEILDIVSI:
      return translate_elementwise_quotient(t->hlo, t->in[0], t->in[1], true, 1);
    case MP_MOSAIC_FLOORDIVSI:
      return translate_elementwise_quotient(t->hlo, t->in[0], t->in[1], false, -1);
    case MP_MOSAIC_CEILDIVUI:
      return translate_elementwise_ceil_unsigned(t);
    case MP_MOSAIC_COPYSIGN:
      return translate_elementwise_copy_sign(t);
    case MP_MOSAIC_FPOWI:
      return mp_shlo_binary(t->hlo, MP_OP_POWER, t->in[0],
                            mp_shlo_convert(t->hlo, t->in[1], t->type->dtype));
    case MP_MOSAIC_SELECT:
      return mp_shlo_select(t->hlo, t->in[0], t->in[1], t->in[2]);
    case MP_MOSAIC_FMA:
      return mp_shlo_binary(t->hlo, MP_OP_ADD,
                            mp_shlo_binary(t->hlo, MP_OP_MULTIPLY, t->in[0], t->in[1]), t->in[2]);
    default:
      return NULL;
  }
}

static mp_value_t *translate_elementwise_rounded(const mp_translate_t *t) {
  const int64_t exponent = mp_mosaic_op_int(t->op, "exponent_bits", 0);
  const int64_t mantissa = mp_mosaic_op_int(t->op, "mantissa_bits", -1);
  if (exponent < 1 || exponent > 64 || mantissa < 0 || mantissa > 64) return NULL;
  return mp_shlo_reduce_precision(t->hlo, t->in[0], exponent, mantissa);
}

static mp_value_t *translate_elementwise_unary_formula(const mp_translate_t *t) {
  mp_shlo_t *hlo = t->hlo;
  mp_value_t *x = t->in[0];
  switch (t->op->code) {
    case MP_MOSAIC_ATAN:
      return mp_shlo_binary(hlo, MP_OP_ATAN2, x, mp_shlo_float(hlo, x->type, 1));
    case MP_MOSAIC_CTTZ:
      return translate_elementwise_trailing_zeros(hlo, x);
    case MP_MOSAIC_EXP2:
      return mp_shlo_unary(hlo, MP_OP_EXPONENTIAL, translate_elementwise_scaled(hlo, x, M_LN2));
    case MP_MOSAIC_LOG2:
      return translate_elementwise_scaled(hlo, mp_shlo_unary(hlo, MP_OP_LOG, x), M_LOG2E);
    case MP_MOSAIC_TRUNC:
      return translate_elementwise_truncated(hlo, x);
    case MP_MOSAIC_RECIPROCAL:
      return mp_shlo_binary(hlo, MP_OP_DIVIDE, mp_shlo_float(hlo, x->type, 1), x);
    case MP_MOSAIC_REDUCE_PRECISION:
      return translate_elementwise_rounded(t);
    case MP_MOSAIC_ISFINITE:
      return translate_elementwise_is_finite(t);
    case MP_MOSAIC_ISINF:
      return translate_elementwise_is_infinite(hlo, x);
    case MP_MOSAIC_ISNAN:
      return mp_translate_is_nan(hlo, x);
    case MP_MOSAIC_WEIRD:
      return mp_shlo_unary(hlo, MP_OP_NOT, translate_elementwise_is_finite(t));
    default:
      return translate_elementwise_binary_formula(t);
  }
}

// ---- ----

static mp_value_t *translate_elementwise_by_table(const mp_translate_t *t) {
  const mp_mosaic_opcode_t code = t->op->code;
  for (size_t i = 0; i < COUNT_OF(g_same); ++i) {
    if (g_same[i].from != code) continue;
    return mp_shlo_op(t->hlo, g_same[i].to, t->in, t->op->num_operands, t->type, NULL, 0);
  }
  for (size_t i = 0; i < COUNT_OF(g_unsigned); ++i) {
    if (g_unsigned[i].from == code) return translate_elementwise_unsigned(t, g_unsigned[i].to);
  }
  for (size_t i = 0; i < COUNT_OF(g_functions); ++i) {
    if (g_functions[i].from == code) return mp_shlo_function(t->hlo, g_functions[i].name, t->in[0]);
  }
  return NULL;
}

mp_status_t mp_translate_elementwise(const mp_translate_t *t) {
  const mp_mosaic_opcode_t code = t->op->code;
  if (code == MP_MOSAIC_MULSI_EXTENDED || code == MP_MOSAIC_MULUI_EXTENDED) {
    translate_elementwise_extended(t, code == MP_MOSAIC_MULSI_EXTENDED);
    return NULL;
  }
  t->out[0] = translate_elementwise_by_table(t);
  if (t->out[0] == NULL && t->hlo->status == NULL)
    t->out[0] = translate_elementwise_unary_formula(t);
  if (t->out[0] == NULL && t->hlo->status == NULL) return mp_translate_refuse(t);
  return NULL;
}
