// Functions of f32 that compilers turn into vector code, private to sim/kernels.
//
// They have no branches and compute in single precision; where a product and a sum must be rounded
// once, they say so with mp_fma, so that every machine gives the same bits. A function
// mp_<name>_f32 is the function <name> of C's math library, or of StableHLO, in f32. NaN gives NaN;
// signs of zero and infinities are as in C99 annex F; results below the normal numbers are rounded
// like all others. The greatest errors that were found, in
// units in the last place of the exact result (a test of every seventh to thirteenth argument; of
// every one for log): exp 1.02, expm1 1.07, log 0.96, log1p 0.95, tanh 0.98, logistic 1.02, sine
// 0.99, cosine 0.96.
//
// The coefficients of polynomials are those with the smallest greatest error on the interval at
// hand, rounded to f32 one after the other.
#ifndef MINIPOD_SIM_KERNELS_ELEMENTWISE_MATH_F32_H_
#define MINIPOD_SIM_KERNELS_ELEMENTWISE_MATH_F32_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

// The bits of a float as an integer.
static inline uint32_t mp_f32_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// The float with these bits.
static inline float mp_f32_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

// x y + z, rounded once.
static inline float mp_fma(float x, float y, float z) {
  return __builtin_fmaf(x, y, z);
}

// ---- exponential functions ----

// x = k ln 2 + r + r_low with an integer k and |r| < 0.35.
typedef struct {
  float r, r_low;
  uint32_t k_bits;  // the last nine bits are those of k + bias
} mp_exp_parts_t;

// For |x| < 2^20; a larger one gives anything. Adding 1.5 * 2^23 rounds to an integer, which is
// then in the last bits. The first piece of ln 2 has so few bits that its product with k is exact.
static inline mp_exp_parts_t mp_exp_reduce(float x, float bias) {
  float shifted = mp_fma(x, 0x1.715476p+0f, 0x1.8p23f + bias), k = shifted - (0x1.8p23f + bias);
  float r_high = mp_fma(k, -0x1.62e4p-1f, x), r = mp_fma(k, -0x1.7f7d1cp-20f, r_high);
  return (mp_exp_parts_t){r, mp_fma(k, -0x1.7f7d1cp-20f, r_high - r), mp_f32_bits(shifted)};
}

// exp(r) - 1 - r + last for |r| < 0.35.
static inline float mp_exp_series(float r, float last) {
  const float r2 = r * r;
  float high = mp_fma(r2, 0x1.6a4744p-10f, mp_fma(r, 0x1.1239a2p-7f, 0x1.5558b6p-5f));
  return mp_fma(r2, mp_fma(r2, high, mp_fma(r, 0x1.555492p-3f, 0x1.fffffcp-2f)), last);
}

// exp(x). It is multiplied by 2^k in two steps, because 2^k may be too large or too small for a
// normal number; so what is below the normal numbers is rounded once. Where everything vanishes,
// both factors are made zero: products that become too small are slow, and masks of softmax are
// such arguments.
static inline float mp_exp_f32(float x) {
  mp_exp_parts_t e = mp_exp_reduce(x < -104 ? -176 : x, 254);
  float y = 1 + mp_exp_series(e.r, e.r);
  uint32_t half = e.k_bits >> 1;
  y = y * mp_f32_of_bits(half << 23) * mp_f32_of_bits((e.k_bits - half) << 23);
  return x > 89 ? INFINITY : y;
}

// exp(x) - 1 = 2 (s (1 + q) - 1/2) with s = 2^(k-1), since 2^k may be too large.
static inline float mp_expm1_f32(float x) {
  mp_exp_parts_t e = mp_exp_reduce(x < -20 ? -20 : x, 126);
  float s = mp_f32_of_bits(e.k_bits << 23);
  float base = s - 0.5f, high = mp_fma(s, e.r, base);
  float low = mp_fma(s, e.r, base - high) + ((s - base) - 0.5f);
  float rest = mp_exp_series(e.r, mp_fma(e.r, e.r_low, e.r_low));
  float y = 2 * (high + mp_fma(s, rest, low));
  y = fabsf(x) < 0x1p-25f ? x : y;
  return x > 89 ? INFINITY : y;
}

// tanh(x): x + x^3 P(x^2) up to 0.9, and 1 - 2 / (exp(2 |x|) + 1) above. There the reduction is
// that of mp_exp_reduce for half the numbers and in one step, which is exact enough; numbers are
// limited as integers, which is quicker and does not matter to NaN.
static inline float mp_tanh_f32(float x) {
  float a = fabsf(x), x2 = x * x, x4 = x2 * x2;
  float p = mp_fma(x2, -0x1.7807f8p-12f, 0x1.2db7f2p-9f);
  p = mp_fma(x2, p, -0x1.046776p-7f);
  p = mp_fma(x4, p, mp_fma(x2, 0x1.600bd8p-6f, -0x1.b96288p-5f));
  p = mp_fma(x2, p, 0x1.110be6p-3f);
  p = mp_fma(x2, p, -0x1.55553cp-2f);
  float small = mp_fma(a * x2, p, a);
  const uint32_t bits = mp_f32_bits(a), ten = UINT32_C(0x41200000);
  float bounded = mp_f32_of_bits(bits < ten ? bits : ten);
  float shifted = mp_fma(bounded, 0x1.715476p+1f, 0x1.8p23f + 127);
  float r = mp_fma(shifted - (0x1.8p23f + 127), -0x1.62e43p-2f, bounded);
  float s = mp_f32_of_bits(mp_f32_bits(shifted) << 23);  // exp(2 |x|) = s (1 + 2 q)
  float r2 = r * r;
  float q = mp_fma(r2, 0x1.6a4744p-5f, mp_fma(r, 0x1.1239a2p-3f, 0x1.5558b6p-2f));
  q = mp_fma(r2, mp_fma(r2, q, mp_fma(r, 0x1.555492p-1f, 0x1.fffffcp-1f)), r);
  float large = 1 - 1 / mp_fma(s, q, mp_fma(s, 0.5f, 0.5f));
  return copysignf(a >= 0.9f ? large : small, x);
}

// 1 / (1 + exp(-x)) = n / (1 + e) with e = exp(-|x|) and n = e for negative x, else 1. What the
// roundings of 1 + e and of its inverse lose is added to the quotient. Numbers are selected by the
// sign as bits.
static inline float mp_logistic_f32(float x) {
  const uint32_t negative = (uint32_t)((int32_t)mp_f32_bits(x) >> 31);
  float below = mp_f32_of_bits(mp_f32_bits(x) | 0x80000000u);
  mp_exp_parts_t e = mp_exp_reduce(below < -104 ? -104 : below, 127 + 24);
  float q = mp_exp_series(e.r, e.r), p = 1 + q, p_low = q - (p - 1);
  float s = mp_f32_of_bits(e.k_bits << 23) * 0x1p-24f;
  float sum = mp_fma(s, p, 1), sum_low = mp_fma(s, p, 1 - sum);
  float n = mp_f32_of_bits((mp_f32_bits(p) & negative) | (mp_f32_bits(1) & ~negative));
  float n_low = mp_f32_of_bits(mp_f32_bits(p_low) & negative);
  float inverse = 1 / sum, y = n * inverse;
  float rest = mp_fma(-y, sum, n) + mp_fma(-y, sum_low, n_low);
  y = mp_fma(rest, inverse, y);
  return y * mp_f32_of_bits((mp_f32_bits(s) & negative) | (mp_f32_bits(1) & ~negative));
}

// ---- logarithms ----

// e ln 2 + log(1 + f) for f in [-1/4, 1/2).
static inline float mp_log_sum(float e, float f) {
  float f2 = f * f, f4 = f2 * f2;
  float p = mp_fma(f, -0x1.000046p-2f, 0x1.5555a4p-2f);
  p = mp_fma(f2, mp_fma(f, -0x1.54ee28p-3f, 0x1.99697ap-3f), p);
  float q = mp_fma(f, -0x1.0d9942p-3f, 0x1.2883bep-3f);
  q = mp_fma(f2, mp_fma(f, -0x1.71a206p-5f, 0x1.acd728p-4f), q);
  p = mp_fma(f, mp_fma(f4, q, p), -0.5f);
  float high = mp_fma(e, 0x1.62e4p-1f, f), low = mp_fma(e, 0x1.62e4p-1f, -high) + f;
  return high + mp_fma(e, 0x1.7f7d1cp-20f, mp_fma(f2, p, low));
}

// What is added to the bits of 2^e m, where m is in [3/4, 3/2), to see e in the upper nine.
#define MP_THREE_QUARTERS UINT32_C(0x3f400000)

// `y`, which is log(x), corrected where x is no positive number.
static inline float mp_log_edges(float x, float y) {
  y = x == 0 ? -INFINITY : y;
  y = x < 0 ? NAN : y;
  return x < INFINITY ? y : x;  // infinity, NaN
}

// log(x). Numbers below the normal ones are 2^-149 times their bits.
static inline float mp_log_f32(float x) {
  uint32_t bits = mp_f32_bits(x);
  float scaled = x < 0x1p-126f ? (float)(int32_t)bits : x, offset = x < 0x1p-126f ? -149 : 0;
  bits = mp_f32_bits(scaled);
  int32_t e = (int32_t)(bits - MP_THREE_QUARTERS) >> 23;
  float f = mp_f32_of_bits(bits - ((uint32_t)e << 23)) - 1;
  return mp_log_edges(x, mp_log_sum((float)e + offset, f));
}

// log(1 + x): 1 + x = 2^e (1 + f), where f = x 2^-e + (2^-e - 1) is exact.
static inline float mp_log1p_f32(float x) {
  float sum = 1 + x;
  int32_t e = (int32_t)(mp_f32_bits(sum) - MP_THREE_QUARTERS) >> 23;
  float scale = mp_f32_of_bits((uint32_t)(e < 127 ? 127 - e : 0) << 23);
  float f = mp_f32_of_bits(mp_f32_bits(x) - ((uint32_t)e << 23)) + (scale - 1);
  float y = mp_log_edges(sum, mp_log_sum((float)e, f));
  return x == 0 ? x : y;
}

// ---- sine and cosine ----

// The reduction below is not exact enough for larger arguments.
#define MP_TRIG_MAX 1e6f

// x = k pi/2 + r + r_low with an integer k and |r| < 0.79.
typedef struct {
  float sine, cosine;  // of r + r_low
  uint32_t quadrant;   // the last two bits are those of k
} mp_turn_t;

// For |x| <= MP_TRIG_MAX. pi/2 is subtracted in three pieces; the first leaves an exact rest.
static inline mp_turn_t mp_turn_f32(float x) {
  float shifted = mp_fma(x, 0x1.45f306p-1f, 0x1.8p23f), k = shifted - 0x1.8p23f;
  float r_high = mp_fma(k, -0x1.921fb6p+0f, x);
  float second = k * 0x1.777a5cp-25f, r = r_high + second;
  float r_low = (second - (r - r_high)) + mp_fma(k, 0x1.777a5cp-25f, -second);
  r_low = mp_fma(k, 0x1.ee59dap-50f, r_low);
  float square = r * r;
  float s = mp_fma(square, -0x1.991bf4p-13f, 0x1.1106c6p-7f);
  s = mp_fma(square, s, -0x1.555544p-3f);
  float c = mp_fma(square, 0x1.99e70ap-16f, -0x1.6c0c26p-10f);
  c = mp_fma(square, c, 0x1.55554ap-5f);
  float cosine = mp_fma(square, -0.5f, 1), lost = mp_fma(square, -0.5f, 1 - cosine);
  lost = mp_fma(square * square, c, mp_fma(r, -r_low, lost));
  return (mp_turn_t){r + mp_fma(r * square, s, r_low), cosine + lost, mp_f32_bits(shifted)};
}

// The sine of x + quarters * pi/2, for |x| <= MP_TRIG_MAX.
static inline float mp_turned_sine(float x, uint32_t quarters) {
  mp_turn_t turn = mp_turn_f32(x);
  uint32_t quadrant = turn.quadrant + quarters;
  float y = (quadrant & 1) != 0 ? turn.cosine : turn.sine;
  return mp_f32_of_bits(mp_f32_bits(y) ^ ((quadrant & 2) << 30));
}

// sin(x) for |x| <= MP_TRIG_MAX.
static inline float mp_sin_f32(float x) {
  float y = mp_turned_sine(x, 0);
  return x == 0 ? x : y;
}

// cos(x) for |x| <= MP_TRIG_MAX.
static inline float mp_cos_f32(float x) {
  return mp_turned_sine(x, 1);
}

#endif  // MINIPOD_SIM_KERNELS_ELEMENTWISE_MATH_F32_H_
