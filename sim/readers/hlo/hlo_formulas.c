// Functions that StableHLO does not have, by others: the formulas are those of frameworks that
// compile to StableHLO, so that both ways give the same bits.
#include <float.h>
#include <math.h>

#include "sim/readers/hlo/hlo_ops.h"

// Values of one type on the way to a result. After the first error nothing more is made.
typedef struct {
  mp_hlo_build_t *b;
  const mp_hlo_inst_t *inst;
  const mp_type_t *type;
  mp_status_t status;
} maker_t;

// ---- arithmetic ----

static mp_value_t *hlo_formulas_make(maker_t *m, mp_opcode_t code, mp_value_t *const *operands,
                                     uint32_t count, const mp_type_t *type) {
  mp_value_t *value = NULL;
  if (m->status != NULL) return NULL;
  m->status = mp_hlo_emit_one(m->b, m->inst, code, operands, count, type, NULL, &value);
  return value;
}

static mp_value_t *hlo_formulas_unary(maker_t *m, mp_opcode_t code, mp_value_t *x) {
  return hlo_formulas_make(m, code, &x, 1, m->type);
}

static mp_value_t *hlo_formulas_binary(maker_t *m, mp_opcode_t code, mp_value_t *x, mp_value_t *y) {
  mp_value_t *const operands[] = {x, y};
  return hlo_formulas_make(m, code, operands, 2, m->type);
}

static mp_value_t *hlo_formulas_ternary(maker_t *m, mp_opcode_t code, mp_value_t *x, mp_value_t *y,
                                        mp_value_t *z) {
  mp_value_t *const operands[] = {x, y, z};
  return hlo_formulas_make(m, code, operands, 3, m->type);
}

static mp_value_t *hlo_formulas_number(maker_t *m, double number) {
  char data[16];
  mp_value_t *value = NULL;
  if (m->status != NULL) return NULL;
  mp_float_encode(m->type->dtype, number, data);
  m->status = mp_hlo_emit_constant(m->b, m->inst, m->type, data, mp_dtype_size(m->type->dtype),
                                   true, &value);
  return value;
}

static mp_value_t *hlo_formulas_compare(maker_t *m, mp_value_t *x, uint32_t direction,
                                        mp_value_t *y) {
  mp_value_t *value = NULL, *const operands[] = {x, y};
  const mp_type_t *type = NULL;
  mp_hlo_attrs_t attrs = mp_hlo_attrs(m->b);
  mp_hlo_put_enum(&attrs, MP_ATTR_COMPARE_TYPE, MP_ENUM_COMPARISON_TYPE, MP_CMP_FLOAT);
  mp_hlo_put_enum(&attrs, MP_ATTR_COMPARISON_DIRECTION, MP_ENUM_COMPARISON_DIRECTION, direction);
  if (m->status == NULL) {
    m->status = mp_hlo_tensor(m->b, MP_DTYPE_BOOL, m->type->dims, m->type->rank, &type);
  }
  if (m->status != NULL) return NULL;
  m->status = mp_hlo_emit_one(m->b, m->inst, MP_OP_COMPARE, operands, 2, type, &attrs, &value);
  return value;
}

static mp_value_t *hlo_formulas_less(maker_t *m, mp_value_t *x, mp_value_t *y) {
  return hlo_formulas_compare(m, x, MP_CMP_LT, y);
}

// The polynomial with these coefficients, that of the highest power first.
static mp_value_t *hlo_formulas_polynomial(maker_t *m, mp_value_t *x, const double *coefficients,
                                           size_t count) {
  mp_value_t *sum = hlo_formulas_number(m, coefficients[0]);
  for (size_t i = 1; i < count; ++i) {
    sum = hlo_formulas_binary(m, MP_OP_MULTIPLY, sum, x);
    sum = hlo_formulas_binary(m, MP_OP_ADD, sum, hlo_formulas_number(m, coefficients[i]));
  }
  return sum;
}
#define POLYNOMIAL(m, x, list) hlo_formulas_polynomial(m, x, list, sizeof(list) / sizeof((list)[0]))

// ---- erf in single precision, a quotient of polynomials ----

static mp_value_t *hlo_formulas_single(maker_t *m, mp_value_t *x) {
  static const double above[] = {-2.72614237e-10, 2.77068146e-8, -2.10102394e-6, -5.69250624e-5,
                                 -7.34990637e-4,  -2.954600e-3,  -0.0160960332};
  static const double below[] = {-1.45660715e-5, -2.13374049e-4, -0.00168282702, -0.00737332925,
                                 -0.0142647391};
  x = hlo_formulas_ternary(m, MP_OP_CLAMP, hlo_formulas_number(m, -4), x,
                           hlo_formulas_number(m, 4));
  mp_value_t *square = hlo_formulas_binary(m, MP_OP_MULTIPLY, x, x);
  mp_value_t *top = hlo_formulas_binary(m, MP_OP_MULTIPLY, x, POLYNOMIAL(m, square, above));
  mp_value_t *value = hlo_formulas_binary(m, MP_OP_DIVIDE, top, POLYNOMIAL(m, square, below));
  return hlo_formulas_ternary(m, MP_OP_CLAMP, hlo_formulas_number(m, -1), value,
                              hlo_formulas_number(m, 1));
}

// ---- erf in double precision ----

// erf(x) for |x| < 1.
static mp_value_t *hlo_formulas_inner(maker_t *m, mp_value_t *x, mp_value_t *square) {
  static const double above[] = {9.60497373987051638749e0, 9.00260197203842689217e1,
                                 2.23200534594684319226e3, 7.00332514112805075473e3,
                                 5.55923013010394962768e4};
  static const double below[] = {1,
                                 3.35617141647503099647e1,
                                 5.21357949780152679795e2,
                                 4.59432382970980127987e3,
                                 2.26290000613890934246e4,
                                 4.92673942608635921086e4};
  mp_value_t *top = hlo_formulas_binary(m, MP_OP_MULTIPLY, x, POLYNOMIAL(m, square, above));
  return hlo_formulas_binary(m, MP_OP_DIVIDE, top, POLYNOMIAL(m, square, below));
}

// 1 - erf(x) for |x| >= 1.
static mp_value_t *hlo_formulas_tail(maker_t *m, mp_value_t *x, mp_value_t *absolute,
                                     mp_value_t *square) {
  static const double near_above[] = {
      2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
      4.86371970985681366614e1,   1.96520832956077098242e2,  5.26445194995477358631e2,
      9.34528527171957607540e2,   1.02755188689515710272e3,  5.57535335369399327526e2};
  static const double near_below[] = {1,
                                      1.32281951154744992508e1,
                                      8.67072140885989742329e1,
                                      3.54937778887819891062e2,
                                      9.75708501743205489753e2,
                                      1.82390916687909736289e3,
                                      2.24633760818710981792e3,
                                      1.65666309194161350182e3,
                                      5.57535340817727675546e2};
  static const double far_above[] = {5.64189583547755073984e-1, 1.27536670759978104416e0,
                                     5.01905042251180477414e0,  6.16021097993053585195e0,
                                     7.40974269950448939160e0,  2.97886665372100240670e0};
  static const double far_below[] = {1,
                                     2.26052863220117276590e0,
                                     9.39603524938001434673e0,
                                     1.20489539808096656605e1,
                                     1.70814450747565897222e1,
                                     9.60896809063285878198e0,
                                     3.36907645100081516050e0};
  mp_value_t *minus = hlo_formulas_unary(m, MP_OP_NEGATE, square);
  mp_value_t *power = hlo_formulas_unary(m, MP_OP_EXPONENTIAL, minus);
  mp_value_t *top =
      hlo_formulas_binary(m, MP_OP_MULTIPLY, power, POLYNOMIAL(m, absolute, near_above));
  mp_value_t *near = hlo_formulas_binary(m, MP_OP_DIVIDE, top, POLYNOMIAL(m, absolute, near_below));
  top = hlo_formulas_binary(m, MP_OP_MULTIPLY, power, POLYNOMIAL(m, absolute, far_above));
  mp_value_t *far = hlo_formulas_binary(m, MP_OP_DIVIDE, top, POLYNOMIAL(m, absolute, far_below));
  mp_value_t *value = hlo_formulas_ternary(
      m, MP_OP_SELECT, hlo_formulas_less(m, absolute, hlo_formulas_number(m, 8)), near, far);
  mp_value_t *zero = hlo_formulas_number(m, 0);
  mp_value_t *vanishes = hlo_formulas_less(m, minus, hlo_formulas_number(m, -709.78271289338397));
  value = hlo_formulas_ternary(m, MP_OP_SELECT, vanishes, zero, value);
  mp_value_t *mirrored = hlo_formulas_binary(m, MP_OP_SUBTRACT, hlo_formulas_number(m, 2), value);
  return hlo_formulas_ternary(m, MP_OP_SELECT, hlo_formulas_less(m, x, zero), mirrored, value);
}

static mp_value_t *hlo_formulas_double(maker_t *m, mp_value_t *x) {
  mp_value_t *square = hlo_formulas_binary(m, MP_OP_MULTIPLY, x, x);
  mp_value_t *inner = hlo_formulas_inner(m, x, square);
  mp_value_t *absolute = hlo_formulas_unary(m, MP_OP_ABS, x);
  mp_value_t *one = hlo_formulas_number(m, 1);
  mp_value_t *outer =
      hlo_formulas_binary(m, MP_OP_SUBTRACT, one, hlo_formulas_tail(m, x, absolute, square));
  return hlo_formulas_ternary(m, MP_OP_SELECT, hlo_formulas_less(m, absolute, one), inner, outer);
}

static mp_value_t *hlo_formulas_erf(maker_t *m, mp_value_t *x) {
  return m->type->dtype == MP_DTYPE_F64 ? hlo_formulas_double(m, x) : hlo_formulas_single(m, x);
}

// ---- circular and hyperbolic functions ----

// sqrt(1 - x^2)
static mp_value_t *hlo_formulas_other_side(maker_t *m, mp_value_t *x, mp_value_t *one) {
  mp_value_t *product =
      hlo_formulas_binary(m, MP_OP_MULTIPLY, hlo_formulas_binary(m, MP_OP_SUBTRACT, one, x),
                          hlo_formulas_binary(m, MP_OP_ADD, x, one));
  return hlo_formulas_unary(m, MP_OP_SQRT, product);
}

static mp_value_t *hlo_formulas_acos(maker_t *m, mp_value_t *x) {
  mp_value_t *one = hlo_formulas_number(m, 1);
  return hlo_formulas_binary(m, MP_OP_ATAN2, hlo_formulas_other_side(m, x, one), x);
}

static mp_value_t *hlo_formulas_asin(maker_t *m, mp_value_t *x) {
  mp_value_t *one = hlo_formulas_number(m, 1);
  mp_value_t *below = hlo_formulas_binary(m, MP_OP_ADD, hlo_formulas_other_side(m, x, one), one);
  mp_value_t *half = hlo_formulas_binary(m, MP_OP_ATAN2, x, below);
  return hlo_formulas_binary(m, MP_OP_ADD, half, half);
}

static double hlo_formulas_largest(const maker_t *m) {
  return m->type->dtype == MP_DTYPE_F64 ? DBL_MAX : (double)FLT_MAX;
}

// log(2 x), where 2 x is too large
static mp_value_t *hlo_formulas_log_twice(maker_t *m, mp_value_t *x) {
  return hlo_formulas_binary(m, MP_OP_ADD, hlo_formulas_unary(m, MP_OP_LOG, x),
                             hlo_formulas_number(m, M_LN2));
}

static mp_value_t *hlo_formulas_acosh(maker_t *m, mp_value_t *x) {
  mp_value_t *one = hlo_formulas_number(m, 1);
  mp_value_t *is_large =
      hlo_formulas_compare(m, x, MP_CMP_GE, hlo_formulas_number(m, hlo_formulas_largest(m) / 2));
  mp_value_t *large = hlo_formulas_log_twice(m, x);
  mp_value_t *low =
      hlo_formulas_unary(m, MP_OP_SQRT, hlo_formulas_binary(m, MP_OP_SUBTRACT, x, one));
  mp_value_t *high = hlo_formulas_unary(m, MP_OP_SQRT, hlo_formulas_binary(m, MP_OP_ADD, x, one));
  mp_value_t *sum = hlo_formulas_binary(m, MP_OP_ADD, high, low);
  mp_value_t *product = hlo_formulas_binary(m, MP_OP_MULTIPLY, low, sum);
  mp_value_t *small = hlo_formulas_unary(m, MP_OP_LOG_PLUS_ONE, product);
  return hlo_formulas_ternary(m, MP_OP_SELECT, is_large, large, small);
}

static mp_value_t *hlo_formulas_asinh(maker_t *m, mp_value_t *x) {
  mp_value_t *one = hlo_formulas_number(m, 1);
  mp_value_t *absolute = hlo_formulas_unary(m, MP_OP_ABS, x);
  mp_value_t *is_large = hlo_formulas_compare(
      m, absolute, MP_CMP_GE, hlo_formulas_number(m, sqrt(hlo_formulas_largest(m))));
  mp_value_t *large = hlo_formulas_log_twice(m, absolute);
  mp_value_t *square = hlo_formulas_binary(m, MP_OP_MULTIPLY, absolute, absolute);
  mp_value_t *root =
      hlo_formulas_unary(m, MP_OP_SQRT, hlo_formulas_binary(m, MP_OP_ADD, square, one));
  mp_value_t *rest =
      hlo_formulas_binary(m, MP_OP_DIVIDE, square, hlo_formulas_binary(m, MP_OP_ADD, root, one));
  mp_value_t *small =
      hlo_formulas_unary(m, MP_OP_LOG_PLUS_ONE, hlo_formulas_binary(m, MP_OP_ADD, absolute, rest));
  mp_value_t *value = hlo_formulas_ternary(m, MP_OP_SELECT, is_large, large, small);
  return hlo_formulas_binary(m, MP_OP_MULTIPLY, hlo_formulas_unary(m, MP_OP_SIGN, x), value);
}

static mp_value_t *hlo_formulas_atanh(maker_t *m, mp_value_t *x) {
  mp_value_t *outside = hlo_formulas_compare(m, hlo_formulas_unary(m, MP_OP_ABS, x), MP_CMP_GT,
                                             hlo_formulas_number(m, 1));
  mp_value_t *minus = hlo_formulas_unary(m, MP_OP_NEGATE, x);
  mp_value_t *twice =
      hlo_formulas_binary(m, MP_OP_SUBTRACT, hlo_formulas_unary(m, MP_OP_LOG_PLUS_ONE, x),
                          hlo_formulas_unary(m, MP_OP_LOG_PLUS_ONE, minus));
  mp_value_t *value = hlo_formulas_binary(m, MP_OP_MULTIPLY, twice, hlo_formulas_number(m, 0.5));
  return hlo_formulas_ternary(m, MP_OP_SELECT, outside, hlo_formulas_number(m, (double)NAN), value);
}

// (e^x + e^-x) / 2, or with SUBTRACT their difference
static mp_value_t *hlo_formulas_halves(maker_t *m, mp_opcode_t code, mp_value_t *x) {
  mp_value_t *log_half = hlo_formulas_number(m, -M_LN2);
  mp_value_t *up =
      hlo_formulas_unary(m, MP_OP_EXPONENTIAL, hlo_formulas_binary(m, MP_OP_ADD, x, log_half));
  mp_value_t *down =
      hlo_formulas_unary(m, MP_OP_EXPONENTIAL, hlo_formulas_binary(m, MP_OP_SUBTRACT, log_half, x));
  return hlo_formulas_binary(m, code, up, down);
}

static mp_value_t *hlo_formulas_cosh(maker_t *m, mp_value_t *x) {
  return hlo_formulas_halves(m, MP_OP_ADD, x);
}

static mp_value_t *hlo_formulas_sinh(maker_t *m, mp_value_t *x) {
  mp_value_t *one = hlo_formulas_number(m, 1);
  mp_value_t *is_small = hlo_formulas_less(m, hlo_formulas_unary(m, MP_OP_ABS, x), one);
  mp_value_t *power = hlo_formulas_unary(m, MP_OP_EXPONENTIAL_MINUS_ONE, x);
  mp_value_t *rest =
      hlo_formulas_binary(m, MP_OP_DIVIDE, power, hlo_formulas_binary(m, MP_OP_ADD, power, one));
  mp_value_t *small =
      hlo_formulas_binary(m, MP_OP_MULTIPLY, hlo_formulas_binary(m, MP_OP_ADD, power, rest),
                          hlo_formulas_number(m, 0.5));
  mp_value_t *large = hlo_formulas_halves(m, MP_OP_SUBTRACT, x);
  return hlo_formulas_ternary(m, MP_OP_SELECT, is_small, small, large);
}

// ---- the builders ----

// Narrower types are computed in single precision.
static mp_status_t hlo_formulas_apply(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                      mp_value_t *(*formula)(maker_t *, mp_value_t *),
                                      mp_hlo_leaves_t *out) {
  mp_value_t *x = NULL;
  MP_RETURN_IF_ERROR(mp_hlo_array(b, inst, 0, &x));
  const mp_type_t *type = x->type;
  if (!mp_dtype_is_float(type->dtype)) {
    return mp_hlo_error(inst, MP_UNIMPLEMENTED, "it is not supported for %s",
                        mp_dtype_name(type->dtype));
  }
  maker_t m = {.b = b, .inst = inst, .type = type};
  const bool is_narrow = mp_dtype_size(type->dtype) < 4;
  if (is_narrow) {
    m.status = mp_hlo_tensor(b, MP_DTYPE_F32, type->dims, type->rank, &m.type);
    x = hlo_formulas_unary(&m, MP_OP_CONVERT, x);
  }
  x = formula(&m, x);
  if (is_narrow) x = hlo_formulas_make(&m, MP_OP_CONVERT, &x, 1, type);
  if (m.status == NULL) m.status = mp_hlo_new_leaves(b->h, 1, out);
  if (m.status == NULL) out->items[0] = x;
  return m.status;
}

#define FORMULA(name)                                                           \
  mp_status_t mp_hlo_build_##name(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, \
                                  mp_hlo_leaves_t *out) {                       \
    return hlo_formulas_apply(b, inst, hlo_formulas_##name, out);               \
  }
FORMULA(acos)
FORMULA(acosh)
FORMULA(asin)
FORMULA(asinh)
FORMULA(atanh)
FORMULA(cosh)
FORMULA(erf)
FORMULA(sinh)
