// Functions of f32, in words as ops are (meaning.h): C has them in vector loops, and machine code
// as instructions.
//
// They have no branches and compute in single precision; where a product and a sum must be rounded
// once, they say so with FMA, so that every machine gives the same bits. A function
// mp_<name>_f32 is the function <name> of C's math library, or of StableHLO, in f32. NaN gives NaN;
// signs of zero and infinities are as in C99 annex F; results below the normal numbers are rounded
// like all others. The greatest errors that were found, in units in the last place of the exact
// result (a test of every seventh to thirteenth argument; of every one for log): exp 1.02, expm1
// 1.07, log 0.96, log1p 0.95, tanh 0.98, logistic 1.02.
//
// The coefficients of polynomials are those with the smallest greatest error on the current
// interval, rounded to f32 one after the other.
//
// The including file defines FUNCTION(type, name, arguments), CALL(name, arguments), REAL: the type
// of a number, BITS: that of an integer of 32 bits, and beside meaning.h's words FMA(x, y, z): x y
// + z, rounded once; of such integers INUM(n), ISUB IAND IOR INOT, ISHL ISHR ISAR(x, n), ILESS
// (signed), IMIN (unsigned), and REAL_OF: the signed integer as a number.

// ---- exponential functions ----

// x = k ln 2 + r + r_low with an integer k and |r| < 0.35.
typedef struct {
  REAL r, r_low;
  BITS k_bits;  // the last nine bits are those of k + bias
} mp_exp_parts_t;

// The number with these bits in the place of the exponent.
FUNCTION(REAL, mp_exp_power, BITS exponent) {
  IN_TYPE(F32);
  return OF_I(ISHL(exponent, 23));
}

// For |x| < 2^20; a larger one gives anything. Adding 1.5 * 2^23 rounds to an integer, which is
// then in the last bits. The first piece of ln 2 has so few bits that its product with k is exact.
FUNCTION(mp_exp_parts_t, mp_exp_reduce, REAL x, const float bias) {
  IN_TYPE(F32);
  const REAL middle = NUM(0x1.8p23f + bias), second = NUM(-0x1.7f7d1cp-20f);
  const REAL shifted = FMA(x, NUM(0x1.715476p+0f), middle), k = SUB(shifted, middle);
  const REAL r_high = FMA(k, NUM(-0x1.62e4p-1f), x), r = FMA(k, second, r_high);
  return (mp_exp_parts_t){r, FMA(k, second, SUB(r_high, r)), I_OF(shifted)};
}

// exp(r) - 1 - r + last for |r| < 0.35.
FUNCTION(REAL, mp_exp_series, REAL r, REAL last) {
  IN_TYPE(F32);
  const REAL r2 = MUL(r, r), top = FMA(r, NUM(0x1.1239a2p-7f), NUM(0x1.5558b6p-5f));
  const REAL high = FMA(r2, NUM(0x1.6a4744p-10f), top);
  const REAL low = FMA(r, NUM(0x1.555492p-3f), NUM(0x1.fffffcp-2f));
  return FMA(r2, FMA(r2, high, low), last);
}

// exp(x). It is multiplied by 2^k in two steps, because 2^k may be too large or too small for a
// normal number; so what is below the normal numbers is rounded once. Where everything vanishes,
// both factors are made zero: products that become too small are slow, and masks of softmax are
// such arguments.
FUNCTION(REAL, mp_exp_f32, REAL x) {
  IN_TYPE(F32);
  const mp_exp_parts_t parts = CALL(mp_exp_reduce, SELECT(LESS(x, NUM(-104)), NUM(-176), x), 254);
  const REAL y = ADD(NUM(1), CALL(mp_exp_series, parts.r, parts.r));
  const BITS half = ISHR(parts.k_bits, 1), other = ISUB(parts.k_bits, half);
  const REAL scaled = MUL(MUL(y, CALL(mp_exp_power, half)), CALL(mp_exp_power, other));
  return SELECT(GREATER(x, NUM(89)), NUM(INFINITY), scaled);
}

// exp(x) - 1 = 2 (s (1 + q) - 1/2) with s = 2^(k-1), since 2^k may be too large.
FUNCTION(REAL, mp_expm1_f32, REAL x) {
  IN_TYPE(F32);
  const mp_exp_parts_t parts = CALL(mp_exp_reduce, SELECT(LESS(x, NUM(-20)), NUM(-20), x), 126);
  const REAL half = NUM(0.5f), s = CALL(mp_exp_power, parts.k_bits);
  const REAL base = SUB(s, half), high = FMA(s, parts.r, base);
  const REAL low = ADD(FMA(s, parts.r, SUB(base, high)), SUB(SUB(s, base), half));
  const REAL rest = CALL(mp_exp_series, parts.r, FMA(parts.r, parts.r_low, parts.r_low));
  const REAL y = MUL(NUM(2), ADD(high, FMA(s, rest, low)));
  const REAL result = SELECT(LESS(ABS(x), NUM(0x1p-25f)), x, y);
  return SELECT(GREATER(x, NUM(89)), NUM(INFINITY), result);
}

// tanh(x) for |x| = a up to 0.9: x + x^3 P(x^2).
FUNCTION(REAL, mp_tanh_small, REAL x, REAL a) {
  IN_TYPE(F32);
  const REAL x2 = MUL(x, x), x4 = MUL(x2, x2);
  REAL p = FMA(x2, NUM(-0x1.7807f8p-12f), NUM(0x1.2db7f2p-9f));
  p = FMA(x2, p, NUM(-0x1.046776p-7f));
  p = FMA(x4, p, FMA(x2, NUM(0x1.600bd8p-6f), NUM(-0x1.b96288p-5f)));
  p = FMA(x2, p, NUM(0x1.110be6p-3f));
  p = FMA(x2, p, NUM(-0x1.55553cp-2f));
  return FMA(MUL(a, x2), p, a);
}

// tanh(a) for a above that: 1 - 2 / (exp(2 a) + 1). The reduction is that of mp_exp_reduce for half
// the numbers and in one step, which is exact enough; numbers are limited as integers, which is
// quicker and does not matter to NaN.
FUNCTION(REAL, mp_tanh_large, REAL a) {
  IN_TYPE(F32);
  const REAL bounded = OF_I(IMIN(I_OF(a), INUM(0x41200000))), middle = NUM(0x1.8p23f + 127);  // 10
  const REAL shifted = FMA(bounded, NUM(0x1.715476p+1f), middle), k = SUB(shifted, middle);
  const REAL r = FMA(k, NUM(-0x1.62e43p-2f), bounded), r2 = MUL(r, r);
  const REAL s = CALL(mp_exp_power, I_OF(shifted));  // exp(2 a) = s (1 + 2 q)
  const REAL top = FMA(r, NUM(0x1.1239a2p-3f), NUM(0x1.5558b6p-2f));
  REAL q = FMA(r2, NUM(0x1.6a4744p-5f), top);
  q = FMA(r2, q, FMA(r, NUM(0x1.555492p-1f), NUM(0x1.fffffcp-1f)));
  q = FMA(r2, q, r);
  return SUB(NUM(1), DIV(NUM(1), FMA(s, q, FMA(s, NUM(0.5f), NUM(0.5f)))));
}

FUNCTION(REAL, mp_tanh_f32, REAL x) {
  IN_TYPE(F32);
  const REAL a = ABS(x), small = CALL(mp_tanh_small, x, a), large = CALL(mp_tanh_large, a);
  return COPYSIGN(SELECT(AT_LEAST(a, NUM(0.9f)), large, small), x);
}

// `yes` where all bits of `mask` are set, `no` where none is.
FUNCTION(REAL, mp_logistic_select, BITS mask, REAL yes, REAL no) {
  IN_TYPE(F32);
  return OF_I(IOR(IAND(I_OF(yes), mask), IAND(I_OF(no), INOT(mask))));
}

// 1 / (1 + exp(-x)) = n / (1 + e) with e = exp(-|x|) and n = e for negative x, else 1. What the
// roundings of 1 + e and of its inverse lose is added to the quotient. Numbers are selected by the
// sign as bits.
FUNCTION(REAL, mp_logistic_f32, REAL x) {
  IN_TYPE(F32);
  const REAL one = NUM(1), below = OF_I(IOR(I_OF(x), INUM(0x80000000)));
  const BITS negative = ISAR(I_OF(x), 31);
  const REAL limited = SELECT(LESS(below, NUM(-104)), NUM(-104), below);
  const mp_exp_parts_t parts = CALL(mp_exp_reduce, limited, 127 + 24);
  const REAL q = CALL(mp_exp_series, parts.r, parts.r), p = ADD(one, q),
             p_low = SUB(q, SUB(p, one));
  const REAL s = MUL(CALL(mp_exp_power, parts.k_bits), NUM(0x1p-24f));
  const REAL sum = FMA(s, p, one), sum_low = FMA(s, p, SUB(one, sum));
  const REAL n = CALL(mp_logistic_select, negative, p, one);
  const REAL n_low = OF_I(IAND(I_OF(p_low), negative));
  const REAL inverse = DIV(one, sum), y = MUL(n, inverse);
  const REAL rest = ADD(FMA(NEG(y), sum, n), FMA(NEG(y), sum_low, n_low));
  return MUL(FMA(rest, inverse, y), CALL(mp_logistic_select, negative, s, one));
}

// ---- logarithms ----

// exponent ln 2 + log(1 + f) for f in [-1/4, 1/2).
FUNCTION(REAL, mp_log_sum, REAL exponent, REAL f) {
  IN_TYPE(F32);
  const REAL f2 = MUL(f, f), f4 = MUL(f2, f2), ln2 = NUM(0x1.62e4p-1f);
  REAL p = FMA(f, NUM(-0x1.000046p-2f), NUM(0x1.5555a4p-2f));
  p = FMA(f2, FMA(f, NUM(-0x1.54ee28p-3f), NUM(0x1.99697ap-3f)), p);
  REAL q = FMA(f, NUM(-0x1.0d9942p-3f), NUM(0x1.2883bep-3f));
  q = FMA(f2, FMA(f, NUM(-0x1.71a206p-5f), NUM(0x1.acd728p-4f)), q);
  p = FMA(f, FMA(f4, q, p), NUM(-0.5f));
  const REAL high = FMA(exponent, ln2, f), low = ADD(FMA(exponent, ln2, NEG(high)), f);
  return ADD(high, FMA(exponent, NUM(0x1.7f7d1cp-20f), FMA(f2, p, low)));
}

// `y`, which is log(x), corrected where x is no positive number.
FUNCTION(REAL, mp_log_edges, REAL x, REAL y) {
  IN_TYPE(F32);
  y = SELECT(EQUAL(x, NUM(0)), NUM(-INFINITY), y);
  y = SELECT(LESS(x, NUM(0)), NUM(NAN), y);
  return SELECT(LESS(x, NUM(INFINITY)), y, x);  // infinity, NaN
}

// Positive 2^e m with m in [3/4, 3/2), by its bits: e, and m.
FUNCTION(BITS, mp_log_exponent, BITS bits) {
  IN_TYPE(F32);
  return ISAR(ISUB(bits, INUM(0x3f400000)), 23);
}
FUNCTION(REAL, mp_log_without, BITS bits, BITS exponent) {
  IN_TYPE(F32);
  return OF_I(ISUB(bits, ISHL(exponent, 23)));
}

// log(x). Numbers below the normal ones are 2^-149 times their bits.
FUNCTION(REAL, mp_log_f32, REAL x) {
  IN_TYPE(F32);
  const REAL scaled = SELECT(LESS(x, NUM(0x1p-126f)), REAL_OF(I_OF(x)), x);
  const REAL offset = SELECT(LESS(x, NUM(0x1p-126f)), NUM(-149), NUM(0));
  const BITS exponent = CALL(mp_log_exponent, I_OF(scaled));
  const REAL f = SUB(CALL(mp_log_without, I_OF(scaled), exponent), NUM(1));
  return CALL(mp_log_edges, x, CALL(mp_log_sum, ADD(REAL_OF(exponent), offset), f));
}

// log(1 + x): 1 + x = 2^e (1 + f), where f = x 2^-e + (2^-e - 1) is exact.
FUNCTION(REAL, mp_log1p_f32, REAL x) {
  IN_TYPE(F32);
  const REAL sum = ADD(NUM(1), x);
  const BITS exponent = CALL(mp_log_exponent, I_OF(sum)), bias = INUM(127);
  const BITS inverse = SELECT(ILESS(exponent, bias), ISUB(bias, exponent), INUM(0));
  const REAL above = SUB(CALL(mp_exp_power, inverse), NUM(1));
  const REAL f = ADD(CALL(mp_log_without, I_OF(x), exponent), above);
  const REAL y = CALL(mp_log_edges, sum, CALL(mp_log_sum, REAL_OF(exponent), f));
  return SELECT(EQUAL(x, NUM(0)), x, y);
}
