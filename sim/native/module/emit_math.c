// Mathematical functions of f32: those of sim/kernels/elementwise/math_f32.h, operation by
// operation, where the reasons stand as well.
#include <math.h>

#include "sim/native/module/emit.h"

typedef LLVMValueRef value_t;

// ---- what the functions are made of ----

static value_t emit_math_real(const emit_t *e, float value) {
  return emit_real(emit_value_type(e, MP_DTYPE_F32), (double)value);
}

static value_t emit_math_int(const emit_t *e, uint32_t value) {
  return emit_int(emit_int_type(e, 32), value);
}

static value_t emit_math_add(const emit_t *e, value_t x, value_t y) {
  return LLVMBuildFAdd(e->builder, x, y, "");
}

static value_t emit_math_sub(const emit_t *e, value_t x, value_t y) {
  return LLVMBuildFSub(e->builder, x, y, "");
}

static value_t emit_math_mul(const emit_t *e, value_t x, value_t y) {
  return LLVMBuildFMul(e->builder, x, y, "");
}

// x y + z, rounded once.
static value_t emit_math_fma(const emit_t *e, value_t x, value_t y, value_t z) {
  value_t arguments[] = {x, y, z};
  return emit_intrinsic(e, "llvm.fma", LLVMTypeOf(x), NULL, arguments, 3);
}

// The polynomial p x + c.
static value_t emit_math_horner(const emit_t *e, value_t x, value_t p, float c) {
  return emit_math_fma(e, x, p, emit_math_real(e, c));
}

// The polynomial b x + a.
static value_t emit_math_line(const emit_t *e, value_t x, float b, float a) {
  return emit_math_horner(e, x, emit_math_real(e, b), a);
}

static value_t emit_math_bits(const emit_t *e, value_t x) {
  return LLVMBuildBitCast(e->builder, x, emit_int_type(e, 32), "");
}

static value_t emit_math_of_bits(const emit_t *e, value_t bits) {
  return LLVMBuildBitCast(e->builder, bits, emit_value_type(e, MP_DTYPE_F32), "");
}

// The float of which these are the bits, moved to the place of the exponent.
static value_t emit_math_power(const emit_t *e, value_t exponent) {
  return emit_math_of_bits(e, LLVMBuildShl(e->builder, exponent, emit_math_int(e, 23), ""));
}

static value_t emit_math_abs(const emit_t *e, value_t x) {
  return emit_intrinsic(e, "llvm.fabs", LLVMTypeOf(x), NULL, &x, 1);
}

// `yes` where x is less than `bound`, else, and for NaN, `no`.
static value_t emit_math_if_less(const emit_t *e, value_t x, float bound, value_t yes, value_t no) {
  const value_t is_less = LLVMBuildFCmp(e->builder, LLVMRealOLT, x, emit_math_real(e, bound), "");
  return LLVMBuildSelect(e->builder, is_less, yes, no, "");
}

// Infinity where x is greater than `bound`, else y.
static value_t emit_math_overflow(const emit_t *e, value_t x, float bound, value_t y) {
  const value_t is_more = LLVMBuildFCmp(e->builder, LLVMRealOGT, x, emit_math_real(e, bound), "");
  return LLVMBuildSelect(e->builder, is_more, emit_math_real(e, INFINITY), y, "");
}

// ---- exponential functions ----

typedef struct {
  value_t r, r_low, k_bits;
} parts_t;

static parts_t emit_math_reduce(const emit_t *e, value_t x, float bias) {
  const value_t middle = emit_math_real(e, 0x1.8p23f + bias);
  const value_t shifted = emit_math_fma(e, x, emit_math_real(e, 0x1.715476p+0f), middle);
  const value_t k = emit_math_sub(e, shifted, middle);
  const value_t r_high = emit_math_fma(e, k, emit_math_real(e, -0x1.62e4p-1f), x);
  const value_t second = emit_math_real(e, -0x1.7f7d1cp-20f);
  const value_t r = emit_math_fma(e, k, second, r_high);
  const value_t r_low = emit_math_fma(e, k, second, emit_math_sub(e, r_high, r));
  return (parts_t){r, r_low, emit_math_bits(e, shifted)};
}

static value_t emit_math_series(const emit_t *e, value_t r, value_t last) {
  const value_t r2 = emit_math_mul(e, r, r);
  const value_t top = emit_math_line(e, r, 0x1.1239a2p-7f, 0x1.5558b6p-5f);
  const value_t high = emit_math_fma(e, r2, emit_math_real(e, 0x1.6a4744p-10f), top);
  const value_t low = emit_math_line(e, r, 0x1.555492p-3f, 0x1.fffffcp-2f);
  return emit_math_fma(e, r2, emit_math_fma(e, r2, high, low), last);
}

static value_t emit_math_exp(const emit_t *e, value_t x) {
  LLVMBuilderRef b = e->builder;
  const value_t limited = emit_math_if_less(e, x, -104, emit_math_real(e, -176), x);
  const parts_t parts = emit_math_reduce(e, limited, 254);
  const value_t rest = emit_math_series(e, parts.r, parts.r);
  const value_t y = emit_math_add(e, emit_math_real(e, 1), rest);
  const value_t half = LLVMBuildLShr(b, parts.k_bits, emit_math_int(e, 1), "");
  const value_t other = LLVMBuildSub(b, parts.k_bits, half, "");
  const value_t scaled = emit_math_mul(e, y, emit_math_power(e, half));
  return emit_math_overflow(e, x, 89, emit_math_mul(e, scaled, emit_math_power(e, other)));
}

static value_t emit_math_expm1(const emit_t *e, value_t x) {
  const value_t limited = emit_math_if_less(e, x, -20, emit_math_real(e, -20), x);
  const parts_t parts = emit_math_reduce(e, limited, 126);
  const value_t half = emit_math_real(e, 0.5f), s = emit_math_power(e, parts.k_bits);
  const value_t base = emit_math_sub(e, s, half), high = emit_math_fma(e, s, parts.r, base);
  const value_t lost = emit_math_fma(e, s, parts.r, emit_math_sub(e, base, high));
  const value_t of_base = emit_math_sub(e, emit_math_sub(e, s, base), half);
  const value_t low = emit_math_add(e, lost, of_base);
  const value_t last = emit_math_fma(e, parts.r, parts.r_low, parts.r_low);
  const value_t rest = emit_math_series(e, parts.r, last);
  const value_t sum = emit_math_add(e, high, emit_math_fma(e, s, rest, low));
  const value_t y = emit_math_mul(e, emit_math_real(e, 2), sum);
  const value_t result = emit_math_if_less(e, emit_math_abs(e, x), 0x1p-25f, x, y);
  return emit_math_overflow(e, x, 89, result);
}

// tanh(x) for |x| = a up to 0.9.
static value_t emit_math_small_tanh(const emit_t *e, value_t x, value_t a) {
  const value_t x2 = emit_math_mul(e, x, x), x4 = emit_math_mul(e, x2, x2);
  value_t p = emit_math_line(e, x2, -0x1.7807f8p-12f, 0x1.2db7f2p-9f);
  p = emit_math_horner(e, x2, p, -0x1.046776p-7f);
  p = emit_math_fma(e, x4, p, emit_math_line(e, x2, 0x1.600bd8p-6f, -0x1.b96288p-5f));
  p = emit_math_horner(e, x2, p, 0x1.110be6p-3f);
  p = emit_math_horner(e, x2, p, -0x1.55553cp-2f);
  return emit_math_fma(e, emit_math_mul(e, a, x2), p, a);
}

// tanh(a) for a above that.
static value_t emit_math_large_tanh(const emit_t *e, value_t a) {
  value_t bits[] = {emit_math_bits(e, a), emit_math_int(e, 0x41200000)};
  const value_t least = emit_intrinsic(e, "llvm.umin", LLVMTypeOf(bits[0]), NULL, bits, 2);
  const value_t bounded = emit_math_of_bits(e, least), one = emit_math_real(e, 1);
  const float middle = 0x1.8p23f + 127;
  const value_t shifted = emit_math_line(e, bounded, 0x1.715476p+1f, middle);
  const value_t k = emit_math_sub(e, shifted, emit_math_real(e, middle));
  const value_t r = emit_math_fma(e, k, emit_math_real(e, -0x1.62e43p-2f), bounded);
  const value_t s = emit_math_power(e, emit_math_bits(e, shifted)), r2 = emit_math_mul(e, r, r);
  const value_t top = emit_math_line(e, r, 0x1.1239a2p-3f, 0x1.5558b6p-2f);
  value_t q = emit_math_fma(e, r2, emit_math_real(e, 0x1.6a4744p-5f), top);
  q = emit_math_fma(e, r2, q, emit_math_line(e, r, 0x1.555492p-1f, 0x1.fffffcp-1f));
  q = emit_math_fma(e, r2, q, r);
  const value_t half = emit_math_line(e, s, 0.5f, 0.5f), sum = emit_math_fma(e, s, q, half);
  return emit_math_sub(e, one, LLVMBuildFDiv(e->builder, one, sum, ""));
}

static value_t emit_math_tanh(const emit_t *e, value_t x) {
  const value_t a = emit_math_abs(e, x);
  const value_t small = emit_math_small_tanh(e, x, a), large = emit_math_large_tanh(e, a);
  const value_t is_large = LLVMBuildFCmp(e->builder, LLVMRealOGE, a, emit_math_real(e, 0.9f), "");
  value_t arguments[] = {LLVMBuildSelect(e->builder, is_large, large, small, ""), x};
  return emit_intrinsic(e, "llvm.copysign", LLVMTypeOf(x), NULL, arguments, 2);
}

// `yes` where all bits of `mask` are set, `no` where none is.
static value_t emit_math_choose(const emit_t *e, value_t mask, value_t yes, value_t no) {
  LLVMBuilderRef b = e->builder;
  const value_t one = LLVMBuildAnd(b, emit_math_bits(e, yes), mask, "");
  const value_t other = LLVMBuildAnd(b, emit_math_bits(e, no), LLVMBuildNot(b, mask, ""), "");
  return emit_math_of_bits(e, LLVMBuildOr(b, one, other, ""));
}

static value_t emit_math_logistic(const emit_t *e, value_t x) {
  LLVMBuilderRef b = e->builder;
  const value_t one = emit_math_real(e, 1), bits = emit_math_bits(e, x);
  const value_t negative = LLVMBuildAShr(b, bits, emit_math_int(e, 31), "");
  const value_t below =
      emit_math_of_bits(e, LLVMBuildOr(b, bits, emit_math_int(e, 0x80000000), ""));
  const value_t limited = emit_math_if_less(e, below, -104, emit_math_real(e, -104), below);
  const parts_t parts = emit_math_reduce(e, limited, 127 + 24);
  const value_t q = emit_math_series(e, parts.r, parts.r), p = emit_math_add(e, one, q);
  const value_t p_low = emit_math_sub(e, q, emit_math_sub(e, p, one));
  const value_t s = emit_math_mul(e, emit_math_power(e, parts.k_bits), emit_math_real(e, 0x1p-24f));
  const value_t sum = emit_math_fma(e, s, p, one);
  const value_t sum_low = emit_math_fma(e, s, p, emit_math_sub(e, one, sum));
  const value_t n = emit_math_choose(e, negative, p, one);
  const value_t n_low =
      emit_math_of_bits(e, LLVMBuildAnd(b, emit_math_bits(e, p_low), negative, ""));
  const value_t inverse = LLVMBuildFDiv(b, one, sum, ""), y = emit_math_mul(e, n, inverse);
  const value_t minus = LLVMBuildFNeg(b, y, "");
  const value_t rest =
      emit_math_add(e, emit_math_fma(e, minus, sum, n), emit_math_fma(e, minus, sum_low, n_low));
  const value_t exact = emit_math_fma(e, rest, inverse, y);
  return emit_math_mul(e, exact, emit_math_choose(e, negative, s, one));
}

// ---- logarithms ----

static value_t emit_math_log_sum(const emit_t *e, value_t exponent, value_t f) {
  const value_t f2 = emit_math_mul(e, f, f), f4 = emit_math_mul(e, f2, f2);
  const value_t a = emit_math_line(e, f, -0x1.000046p-2f, 0x1.5555a4p-2f);
  const value_t p = emit_math_fma(e, f2, emit_math_line(e, f, -0x1.54ee28p-3f, 0x1.99697ap-3f), a);
  const value_t c = emit_math_line(e, f, -0x1.0d9942p-3f, 0x1.2883bep-3f);
  const value_t q = emit_math_fma(e, f2, emit_math_line(e, f, -0x1.71a206p-5f, 0x1.acd728p-4f), c);
  const value_t all = emit_math_horner(e, f, emit_math_fma(e, f4, q, p), -0.5f);
  const value_t first = emit_math_real(e, 0x1.62e4p-1f);
  const value_t high = emit_math_fma(e, exponent, first, f);
  const value_t minus = LLVMBuildFNeg(e->builder, high, "");
  const value_t low = emit_math_add(e, emit_math_fma(e, exponent, first, minus), f);
  const value_t rest = emit_math_fma(e, f2, all, low);
  return emit_math_add(e, high,
                       emit_math_fma(e, exponent, emit_math_real(e, 0x1.7f7d1cp-20f), rest));
}

static value_t emit_math_log_edges(const emit_t *e, value_t x, value_t y) {
  LLVMBuilderRef b = e->builder;
  const value_t zero = emit_math_real(e, 0), infinity = emit_math_real(e, INFINITY);
  const value_t is_zero = LLVMBuildFCmp(b, LLVMRealOEQ, x, zero, "");
  y = LLVMBuildSelect(b, is_zero, emit_math_real(e, -INFINITY), y, "");
  y = emit_math_if_less(e, x, 0, emit_math_real(e, NAN), y);
  return LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealOLT, x, infinity, ""), y, x, "");
}

// The exponent of the number with these bits, whose rest is in [3/4, 3/2).
static value_t emit_math_exponent(const emit_t *e, value_t bits) {
  const value_t above = LLVMBuildSub(e->builder, bits, emit_math_int(e, 0x3f400000), "");
  return LLVMBuildAShr(e->builder, above, emit_math_int(e, 23), "");
}

// The number with these bits, divided by 2^exponent.
static value_t emit_math_without(const emit_t *e, value_t bits, value_t exponent) {
  const value_t moved = LLVMBuildShl(e->builder, exponent, emit_math_int(e, 23), "");
  return emit_math_of_bits(e, LLVMBuildSub(e->builder, bits, moved, ""));
}

static value_t emit_math_of_int(const emit_t *e, value_t x) {
  return LLVMBuildSIToFP(e->builder, x, emit_value_type(e, MP_DTYPE_F32), "");
}

static value_t emit_math_log(const emit_t *e, value_t x) {
  const value_t as_int = emit_math_of_int(e, emit_math_bits(e, x));
  const value_t scaled = emit_math_if_less(e, x, 0x1p-126f, as_int, x);
  const value_t offset =
      emit_math_if_less(e, x, 0x1p-126f, emit_math_real(e, -149), emit_math_real(e, 0));
  const value_t bits = emit_math_bits(e, scaled), exponent = emit_math_exponent(e, bits);
  const value_t rest = emit_math_without(e, bits, exponent);
  const value_t f = emit_math_sub(e, rest, emit_math_real(e, 1));
  const value_t whole = emit_math_add(e, emit_math_of_int(e, exponent), offset);
  return emit_math_log_edges(e, x, emit_math_log_sum(e, whole, f));
}

static value_t emit_math_log1p(const emit_t *e, value_t x) {
  LLVMBuilderRef b = e->builder;
  const value_t one = emit_math_real(e, 1), sum = emit_math_add(e, one, x);
  const value_t exponent = emit_math_exponent(e, emit_math_bits(e, sum));
  const value_t bias = emit_math_int(e, 127);
  const value_t fits = LLVMBuildICmp(b, LLVMIntSLT, exponent, bias, "");
  const value_t inverse = LLVMBuildSelect(b, fits, LLVMBuildSub(b, bias, exponent, ""),
                                          LLVMConstNull(LLVMTypeOf(bias)), "");
  const value_t above = emit_math_sub(e, emit_math_power(e, inverse), one);
  const value_t rest = emit_math_without(e, emit_math_bits(e, x), exponent);
  const value_t f = emit_math_add(e, rest, above);
  const value_t y =
      emit_math_log_edges(e, sum, emit_math_log_sum(e, emit_math_of_int(e, exponent), f));
  const value_t is_zero = LLVMBuildFCmp(b, LLVMRealOEQ, x, emit_math_real(e, 0), "");
  return LLVMBuildSelect(b, is_zero, x, y, "");
}

typedef value_t function_t(const emit_t *e, value_t x);

// The function that an op is; NULL if it is none.
static function_t *emit_math_find(mp_opcode_t code) {
  switch (code) {
    case MP_OP_EXPONENTIAL:
      return emit_math_exp;
    case MP_OP_EXPONENTIAL_MINUS_ONE:
      return emit_math_expm1;
    case MP_OP_LOG:
      return emit_math_log;
    case MP_OP_LOG_PLUS_ONE:
      return emit_math_log1p;
    case MP_OP_LOGISTIC:
      return emit_math_logistic;
    case MP_OP_TANH:
      return emit_math_tanh;
    default:
      return NULL;
  }
}

bool emit_is_function(const mp_native_op_t *op) {
  return op->from == MP_DTYPE_F32 && emit_math_find(op->code) != NULL;
}

value_t emit_math(const emit_t *e, mp_opcode_t code, value_t x) {
  function_t *function = emit_math_find(code);
  return function != NULL ? function(e, x) : NULL;
}
