// Functions of one number that StableHLO does not have. XLA's converters write them as calls of
// "mhlo.erf" and the like; the formulas are those of frameworks that compile to StableHLO, so that
// all ways give the same bits.
#include <float.h>
#include <math.h>

#include "sim/numeric/dtype.h"
#include "sim/passes/desugar/desugar_impl.h"
#include "sim/passes/rewrite/rewrite.h"

// The state of building the replacement of a call, with values of one type. After the first error
// nothing more is built.
typedef struct {
  mp_module_t *module;
  mp_op_t *op;  // the call, before which the ops are inserted
  const mp_type_t *type;
  mp_status_t status;
} maker_t;

// ---- arithmetic ----

static mp_value_t *desugar_functions_make(maker_t *m, mp_opcode_t code, mp_value_t *const *operands,
                                          uint32_t count, const mp_type_t *type) {
  mp_value_t *value = NULL;
  if (m->status != NULL) return NULL;
  m->status = mp_rewrite_insert(m->module, m->op, code, operands, count, type, &value);
  return value;
}

static mp_value_t *desugar_functions_unary(maker_t *m, mp_opcode_t code, mp_value_t *x) {
  return desugar_functions_make(m, code, &x, 1, m->type);
}

static mp_value_t *desugar_functions_binary(maker_t *m, mp_opcode_t code, mp_value_t *x,
                                            mp_value_t *y) {
  mp_value_t *const operands[] = {x, y};
  return desugar_functions_make(m, code, operands, 2, m->type);
}

static mp_value_t *desugar_functions_ternary(maker_t *m, mp_opcode_t code, mp_value_t *x,
                                             mp_value_t *y, mp_value_t *z) {
  mp_value_t *const operands[] = {x, y, z};
  return desugar_functions_make(m, code, operands, 3, m->type);
}

static mp_value_t *desugar_functions_number(maker_t *m, double number) {
  char data[16];
  mp_value_t *value = NULL;
  if (m->status != NULL) return NULL;
  mp_float_encode(m->type->dtype, number, data);
  m->status = mp_rewrite_insert_constant(m->module, m->op, m->type, data, &value);
  return value;
}

static mp_value_t *desugar_functions_compare(maker_t *m, mp_value_t *x, uint32_t direction,
                                             mp_value_t *y) {
  mp_value_t *value = NULL;
  if (m->status != NULL) return NULL;
  m->status = mp_rewrite_insert_compare(m->module, m->op, direction, x, y, &value);
  return value;
}

static mp_value_t *desugar_functions_less(maker_t *m, mp_value_t *x, mp_value_t *y) {
  return desugar_functions_compare(m, x, MP_CMP_LT, y);
}

// The polynomial with these coefficients, that of the highest power first.
static mp_value_t *desugar_functions_polynomial(maker_t *m, mp_value_t *x,
                                                const double *coefficients, size_t count) {
  mp_value_t *sum = desugar_functions_number(m, coefficients[0]);
  for (size_t i = 1; i < count; ++i) {
    sum = desugar_functions_binary(m, MP_OP_MULTIPLY, sum, x);
    sum = desugar_functions_binary(m, MP_OP_ADD, sum, desugar_functions_number(m, coefficients[i]));
  }
  return sum;
}
#define POLYNOMIAL(m, x, list) \
  desugar_functions_polynomial(m, x, list, sizeof(list) / sizeof((list)[0]))

// ---- erf in single precision, a quotient of polynomials ----

static mp_value_t *desugar_functions_single(maker_t *m, mp_value_t *x) {
  static const double above[] = {-2.72614237e-10, 2.77068146e-8, -2.10102394e-6, -5.69250624e-5,
                                 -7.34990637e-4,  -2.954600e-3,  -0.0160960332};
  static const double below[] = {-1.45660715e-5, -2.13374049e-4, -0.00168282702, -0.00737332925,
                                 -0.0142647391};
  x = desugar_functions_ternary(m, MP_OP_CLAMP, desugar_functions_number(m, -4), x,
                                desugar_functions_number(m, 4));
  mp_value_t *square = desugar_functions_binary(m, MP_OP_MULTIPLY, x, x);
  mp_value_t *top = desugar_functions_binary(m, MP_OP_MULTIPLY, x, POLYNOMIAL(m, square, above));
  mp_value_t *value = desugar_functions_binary(m, MP_OP_DIVIDE, top, POLYNOMIAL(m, square, below));
  return desugar_functions_ternary(m, MP_OP_CLAMP, desugar_functions_number(m, -1), value,
                                   desugar_functions_number(m, 1));
}

// ---- erf in double precision ----

// erf(x) for |x| < 1.
static mp_value_t *desugar_functions_inner(maker_t *m, mp_value_t *x, mp_value_t *square) {
  static const double above[] = {9.60497373987051638749e0, 9.00260197203842689217e1,
                                 2.23200534594684319226e3, 7.00332514112805075473e3,
                                 5.55923013010394962768e4};
  static const double below[] = {1,
                                 3.35617141647503099647e1,
                                 5.21357949780152679795e2,
                                 4.59432382970980127987e3,
                                 2.26290000613890934246e4,
                                 4.92673942608635921086e4};
  mp_value_t *top = desugar_functions_binary(m, MP_OP_MULTIPLY, x, POLYNOMIAL(m, square, above));
  return desugar_functions_binary(m, MP_OP_DIVIDE, top, POLYNOMIAL(m, square, below));
}

// 1 - erf(x) for |x| >= 1.
static mp_value_t *desugar_functions_tail(maker_t *m, mp_value_t *x, mp_value_t *absolute,
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
  mp_value_t *minus = desugar_functions_unary(m, MP_OP_NEGATE, square);
  mp_value_t *power = desugar_functions_unary(m, MP_OP_EXPONENTIAL, minus);
  mp_value_t *top =
      desugar_functions_binary(m, MP_OP_MULTIPLY, power, POLYNOMIAL(m, absolute, near_above));
  mp_value_t *near =
      desugar_functions_binary(m, MP_OP_DIVIDE, top, POLYNOMIAL(m, absolute, near_below));
  top = desugar_functions_binary(m, MP_OP_MULTIPLY, power, POLYNOMIAL(m, absolute, far_above));
  mp_value_t *far =
      desugar_functions_binary(m, MP_OP_DIVIDE, top, POLYNOMIAL(m, absolute, far_below));
  mp_value_t *value = desugar_functions_ternary(
      m, MP_OP_SELECT, desugar_functions_less(m, absolute, desugar_functions_number(m, 8)), near,
      far);
  mp_value_t *zero = desugar_functions_number(m, 0);
  mp_value_t *vanishes =
      desugar_functions_less(m, minus, desugar_functions_number(m, -709.78271289338397));
  value = desugar_functions_ternary(m, MP_OP_SELECT, vanishes, zero, value);
  mp_value_t *mirrored =
      desugar_functions_binary(m, MP_OP_SUBTRACT, desugar_functions_number(m, 2), value);
  return desugar_functions_ternary(m, MP_OP_SELECT, desugar_functions_less(m, x, zero), mirrored,
                                   value);
}

static mp_value_t *desugar_functions_double(maker_t *m, mp_value_t *x) {
  mp_value_t *square = desugar_functions_binary(m, MP_OP_MULTIPLY, x, x);
  mp_value_t *inner = desugar_functions_inner(m, x, square);
  mp_value_t *absolute = desugar_functions_unary(m, MP_OP_ABS, x);
  mp_value_t *one = desugar_functions_number(m, 1);
  mp_value_t *outer = desugar_functions_binary(m, MP_OP_SUBTRACT, one,
                                               desugar_functions_tail(m, x, absolute, square));
  return desugar_functions_ternary(m, MP_OP_SELECT, desugar_functions_less(m, absolute, one), inner,
                                   outer);
}

static mp_value_t *desugar_functions_erf(maker_t *m, mp_value_t *x) {
  return m->type->dtype == MP_DTYPE_F64 ? desugar_functions_double(m, x)
                                        : desugar_functions_single(m, x);
}

// ---- circular and hyperbolic functions ----

// sqrt(1 - x^2)
static mp_value_t *desugar_functions_other_side(maker_t *m, mp_value_t *x, mp_value_t *one) {
  mp_value_t *product = desugar_functions_binary(
      m, MP_OP_MULTIPLY, desugar_functions_binary(m, MP_OP_SUBTRACT, one, x),
      desugar_functions_binary(m, MP_OP_ADD, x, one));
  return desugar_functions_unary(m, MP_OP_SQRT, product);
}

static mp_value_t *desugar_functions_acos(maker_t *m, mp_value_t *x) {
  mp_value_t *one = desugar_functions_number(m, 1);
  return desugar_functions_binary(m, MP_OP_ATAN2, desugar_functions_other_side(m, x, one), x);
}

static mp_value_t *desugar_functions_asin(maker_t *m, mp_value_t *x) {
  mp_value_t *one = desugar_functions_number(m, 1);
  mp_value_t *below =
      desugar_functions_binary(m, MP_OP_ADD, desugar_functions_other_side(m, x, one), one);
  mp_value_t *half = desugar_functions_binary(m, MP_OP_ATAN2, x, below);
  return desugar_functions_binary(m, MP_OP_ADD, half, half);
}

static double desugar_functions_largest(const maker_t *m) {
  return m->type->dtype == MP_DTYPE_F64 ? DBL_MAX : (double)FLT_MAX;
}

// log(2 x), where 2 x is too large
static mp_value_t *desugar_functions_log_twice(maker_t *m, mp_value_t *x) {
  return desugar_functions_binary(m, MP_OP_ADD, desugar_functions_unary(m, MP_OP_LOG, x),
                                  desugar_functions_number(m, M_LN2));
}

static mp_value_t *desugar_functions_acosh(maker_t *m, mp_value_t *x) {
  mp_value_t *one = desugar_functions_number(m, 1);
  mp_value_t *is_large = desugar_functions_compare(
      m, x, MP_CMP_GE, desugar_functions_number(m, desugar_functions_largest(m) / 2));
  mp_value_t *large = desugar_functions_log_twice(m, x);
  mp_value_t *low =
      desugar_functions_unary(m, MP_OP_SQRT, desugar_functions_binary(m, MP_OP_SUBTRACT, x, one));
  mp_value_t *high =
      desugar_functions_unary(m, MP_OP_SQRT, desugar_functions_binary(m, MP_OP_ADD, x, one));
  mp_value_t *sum = desugar_functions_binary(m, MP_OP_ADD, high, low);
  mp_value_t *product = desugar_functions_binary(m, MP_OP_MULTIPLY, low, sum);
  mp_value_t *small = desugar_functions_unary(m, MP_OP_LOG_PLUS_ONE, product);
  return desugar_functions_ternary(m, MP_OP_SELECT, is_large, large, small);
}

static mp_value_t *desugar_functions_asinh(maker_t *m, mp_value_t *x) {
  mp_value_t *one = desugar_functions_number(m, 1);
  mp_value_t *absolute = desugar_functions_unary(m, MP_OP_ABS, x);
  mp_value_t *is_large = desugar_functions_compare(
      m, absolute, MP_CMP_GE, desugar_functions_number(m, sqrt(desugar_functions_largest(m))));
  mp_value_t *large = desugar_functions_log_twice(m, absolute);
  mp_value_t *square = desugar_functions_binary(m, MP_OP_MULTIPLY, absolute, absolute);
  mp_value_t *root =
      desugar_functions_unary(m, MP_OP_SQRT, desugar_functions_binary(m, MP_OP_ADD, square, one));
  mp_value_t *rest = desugar_functions_binary(m, MP_OP_DIVIDE, square,
                                              desugar_functions_binary(m, MP_OP_ADD, root, one));
  mp_value_t *small = desugar_functions_unary(
      m, MP_OP_LOG_PLUS_ONE, desugar_functions_binary(m, MP_OP_ADD, absolute, rest));
  mp_value_t *value = desugar_functions_ternary(m, MP_OP_SELECT, is_large, large, small);
  return desugar_functions_binary(m, MP_OP_MULTIPLY, desugar_functions_unary(m, MP_OP_SIGN, x),
                                  value);
}

static mp_value_t *desugar_functions_atanh(maker_t *m, mp_value_t *x) {
  mp_value_t *outside = desugar_functions_compare(m, desugar_functions_unary(m, MP_OP_ABS, x),
                                                  MP_CMP_GT, desugar_functions_number(m, 1));
  mp_value_t *minus = desugar_functions_unary(m, MP_OP_NEGATE, x);
  mp_value_t *twice =
      desugar_functions_binary(m, MP_OP_SUBTRACT, desugar_functions_unary(m, MP_OP_LOG_PLUS_ONE, x),
                               desugar_functions_unary(m, MP_OP_LOG_PLUS_ONE, minus));
  mp_value_t *value =
      desugar_functions_binary(m, MP_OP_MULTIPLY, twice, desugar_functions_number(m, 0.5));
  return desugar_functions_ternary(m, MP_OP_SELECT, outside,
                                   desugar_functions_number(m, (double)NAN), value);
}

// (e^x + e^-x) / 2, or with SUBTRACT their difference
static mp_value_t *desugar_functions_halves(maker_t *m, mp_opcode_t code, mp_value_t *x) {
  mp_value_t *log_half = desugar_functions_number(m, -M_LN2);
  mp_value_t *up = desugar_functions_unary(m, MP_OP_EXPONENTIAL,
                                           desugar_functions_binary(m, MP_OP_ADD, x, log_half));
  mp_value_t *down = desugar_functions_unary(
      m, MP_OP_EXPONENTIAL, desugar_functions_binary(m, MP_OP_SUBTRACT, log_half, x));
  return desugar_functions_binary(m, code, up, down);
}

static mp_value_t *desugar_functions_cosh(maker_t *m, mp_value_t *x) {
  return desugar_functions_halves(m, MP_OP_ADD, x);
}

static mp_value_t *desugar_functions_sinh(maker_t *m, mp_value_t *x) {
  mp_value_t *one = desugar_functions_number(m, 1);
  mp_value_t *is_small = desugar_functions_less(m, desugar_functions_unary(m, MP_OP_ABS, x), one);
  mp_value_t *power = desugar_functions_unary(m, MP_OP_EXPONENTIAL_MINUS_ONE, x);
  mp_value_t *rest = desugar_functions_binary(m, MP_OP_DIVIDE, power,
                                              desugar_functions_binary(m, MP_OP_ADD, power, one));
  mp_value_t *small = desugar_functions_binary(m, MP_OP_MULTIPLY,
                                               desugar_functions_binary(m, MP_OP_ADD, power, rest),
                                               desugar_functions_number(m, 0.5));
  mp_value_t *large = desugar_functions_halves(m, MP_OP_SUBTRACT, x);
  return desugar_functions_ternary(m, MP_OP_SELECT, is_small, small, large);
}

static mp_value_t *desugar_functions_tan(maker_t *m, mp_value_t *x) {
  return desugar_functions_unary(m, MP_OP_TAN, x);
}

// ---- the calls ----

typedef mp_value_t *(*formula_t)(maker_t *m, mp_value_t *x);

typedef struct {
  const char *target;
  formula_t formula;
} function_t;

static const function_t g_functions[] = {
    {"mhlo.acos", desugar_functions_acos},   {"mhlo.acosh", desugar_functions_acosh},
    {"mhlo.asin", desugar_functions_asin},   {"mhlo.asinh", desugar_functions_asinh},
    {"mhlo.atanh", desugar_functions_atanh}, {"mhlo.cosh", desugar_functions_cosh},
    {"mhlo.erf", desugar_functions_erf},     {"mhlo.sinh", desugar_functions_sinh},
    {"mhlo.tan", desugar_functions_tan},
};

static formula_t desugar_functions_find(mp_str_t target) {
  for (size_t i = 0; i < sizeof(g_functions) / sizeof(g_functions[0]); ++i) {
    if (mp_str_is(target, g_functions[i].target)) return g_functions[i].formula;
  }
  return NULL;
}

// The call becomes the last inserted op, which computes the call's function.
static mp_status_t desugar_functions_become_last(mp_module_t *module, mp_op_t *op) {
  mp_op_t *last = op->prev;
  MP_RETURN_IF_ERROR(mp_rewrite_set_operands(module, op, last->operands, last->num_operands));
  MP_RETURN_IF_ERROR(mp_rewrite_become(module, op, last->code, last->attrs, last->num_attrs));
  mp_op_unlink(last);
  return NULL;
}

// Narrower types are computed in single precision.
mp_status_t mp_desugar_function_call(mp_module_t *module, mp_op_t *op) {
  const mp_str_t target = mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
  const formula_t formula = desugar_functions_find(target);
  if (formula == NULL) return NULL;
  if (op->num_operands != 1 || op->num_results != 1 || op->num_regions != 0 ||
      !mp_type_equal(op->operands[0]->type, op->results[0].type)) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "'%.*s' takes one operand, of its result's type",
                       MP_STR_ARG(target));
  }
  const mp_type_t *type = op->results[0].type;
  if (!mp_type_is_static(type) || !mp_dtype_is_float(type->dtype)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "'%.*s' is not supported for %s", MP_STR_ARG(target),
                       mp_type_is_tensor(type) ? mp_dtype_name(type->dtype) : "this type");
  }
  maker_t m = {.module = module, .op = op, .type = type};
  mp_value_t *x = op->operands[0];
  const bool is_narrow = mp_dtype_size(type->dtype) < 4;
  if (is_narrow) {
    m.status = mp_type_tensor(module->arena, MP_DTYPE_F32, type->dims, type->rank, &m.type);
    x = desugar_functions_unary(&m, MP_OP_CONVERT, x);
  }
  x = formula(&m, x);
  if (is_narrow) (void)desugar_functions_make(&m, MP_OP_CONVERT, &x, 1, type);
  MP_RETURN_IF_ERROR(m.status);
  return desugar_functions_become_last(module, op);
}
