// Functions of f64 that compilers turn into vector code, private to sim/kernels.
//
// What math_f32.h says of functions and errors holds here too: the methods are the same, with
// longer polynomials, and the errors are below 1 unit in the last place.
#ifndef MINIPOD_SIM_KERNELS_ELEMENTWISE_MATH_F64_H_
#define MINIPOD_SIM_KERNELS_ELEMENTWISE_MATH_F64_H_

#include "sim/numeric/words.h"

// x y + z, rounded once.
static inline double mp_fma_f64(double x, double y, double z) {
  return __builtin_fma(x, y, z);
}

// ---- exponential functions ----

// x = k ln 2 + r + r_low with an integer k and |r| < 0.35.
typedef struct {
  double r, r_low;
  uint64_t k_bits;  // the last twelve bits are those of k + bias
} mp_exp_f64_t;

static inline mp_exp_f64_t mp_exp_reduce_f64(double x, double bias) {
  double shifted = mp_fma_f64(x, 0x1.71547652b82fep+0, 0x1.8p52 + bias);
  double k = shifted - (0x1.8p52 + bias);
  double r_high = mp_fma_f64(k, -0x1.62e42fefa4p-1, x);
  double r = mp_fma_f64(k, 0x1.8432a1b0e2634p-43, r_high);
  double r_low = mp_fma_f64(k, 0x1.8432a1b0e2634p-43, r_high - r);
  return (mp_exp_f64_t){r, r_low, mp_f64_bits(shifted)};
}

// exp(r) - 1 - r + last = r^2 / 2 + (r^3 P(r) + last) for |r| < 0.35.
static inline double mp_exp_series_f64(double r, double last) {
  const double r2 = r * r, r4 = r2 * r2;
  double a = mp_fma_f64(r, 0x1.5555555555556p-5, 0x1.5555555555557p-3);
  a = mp_fma_f64(r2, mp_fma_f64(r, 0x1.6c16c16c162c3p-10, 0x1.11111111100bep-7), a);
  double b = mp_fma_f64(r, 0x1.a01a01a6e1e2ap-16, 0x1.a01a01abf85abp-13);
  b = mp_fma_f64(r2, mp_fma_f64(r, 0x1.27e4db46cddd1p-22, 0x1.71de01fdbf9cap-19), b);
  double c = mp_fma_f64(r, 0x1.1f7340dbc337ep-29, 0x1.af4e554377204p-26);
  double p = mp_fma_f64(r4, mp_fma_f64(r4, c, b), a);
  return mp_fma_f64(r2, 0.5, mp_fma_f64(r * r2, p, last));
}

// exp(x)
static inline double mp_exp_f64(double x) {
  mp_exp_f64_t e = mp_exp_reduce_f64(x < -746 ? -1418 : x, 2046);
  double y = 1 + (e.r + mp_exp_series_f64(e.r, e.r_low));
  uint64_t half = e.k_bits >> 1;
  y = y * mp_f64_of_bits(half << 52) * mp_f64_of_bits((e.k_bits - half) << 52);
  return x > 710 ? INFINITY : y;
}

// exp(x) - 1
static inline double mp_expm1_f64(double x) {
  mp_exp_f64_t e = mp_exp_reduce_f64(x < -40 ? -40 : x, 1022);
  double s = mp_f64_of_bits(e.k_bits << 52);
  double base = s - 0.5, high = mp_fma_f64(s, e.r, base);
  double low = mp_fma_f64(s, e.r, base - high) + ((s - base) - 0.5);
  double last = mp_fma_f64(e.r, e.r_low, e.r_low);
  double y = 2 * (high + mp_fma_f64(s, mp_exp_series_f64(e.r, last), low));
  y = fabs(x) < 0x1p-54 ? x : y;
  return x > 710 ? INFINITY : y;
}

// tanh(x) = n / (n + 2) with n = exp(2 |x|) - 1. The rounding errors of both and of the inverse are
// added to the quotient.
static inline double mp_tanh_f64(double x) {
  double a = fabs(x);
  mp_exp_f64_t e = mp_exp_reduce_f64(2 * (a > 20 ? 20 : a), 1023);
  double s = mp_f64_of_bits(e.k_bits << 52), base = s - 1, first = mp_fma_f64(s, e.r, base);
  double rest = mp_fma_f64(s, e.r, base - first);
  rest = mp_fma_f64(s, mp_exp_series_f64(e.r, e.r_low), rest);
  double n = first + rest, n_low = (first - n) + rest;
  double d = n + 2, part = d - n, d_low = (n - (d - part)) + (2 - part) + n_low;
  double inverse = 1 / d, y = n * inverse;
  double lost = mp_fma_f64(-y, d, n) + mp_fma_f64(-y, d_low, n_low);
  y = copysign(mp_fma_f64(lost, inverse, y), x);
  return a < 0x1p-28 ? x : y;
}

// 1 / (1 + exp(-x))
static inline double mp_logistic_f64(double x) {
  double below = -fabs(x);
  mp_exp_f64_t e = mp_exp_reduce_f64(below < -746 ? -746 : below, 1023 + 54);
  double q = mp_exp_series_f64(e.r, e.r_low), p = 1 + (e.r + q), p_low = (e.r + q) - (p - 1);
  double s = mp_f64_of_bits(e.k_bits << 52) * 0x1p-54;
  double sum = mp_fma_f64(s, p, 1), sum_low = mp_fma_f64(s, p, 1 - sum);
  double n = x < 0 ? p : 1, n_low = x < 0 ? p_low : 0, scale = x < 0 ? s : 1;
  double inverse = 1 / sum, y = n * inverse;
  double lost = mp_fma_f64(-y, sum, n) + mp_fma_f64(-y, sum_low, n_low);
  return mp_fma_f64(lost, inverse, y) * scale;
}

// ---- logarithms ----

// e ln 2 + log(1 + f) for f in [-1/4, 1/2), by log(1 + f) = f - f^2/2 + s (f^2/2 + s^2 P(s^2)) with
// s = f / (2 + f).
static inline double mp_log_sum_f64(double e, double f) {
  double s = f / (2 + f), z = s * s, z2 = z * z, half = 0.5 * f * f;
  double a = mp_fma_f64(z, 0x1.9999999999f3p-2, 0x1.5555555555555p-1);
  a = mp_fma_f64(z2, mp_fma_f64(z, 0x1.c71c72e2f78d5p-3, 0x1.24924923dba6ap-2), a);
  double b = mp_fma_f64(z, 0x1.3b29fcbbce66dp-3, 0x1.745cab2727663p-3);
  b = mp_fma_f64(z2, mp_fma_f64(z, 0x1.16b68338bd78bp-3, 0x1.0e88ea4725d3dp-3), b);
  double p = z * mp_fma_f64(z2 * z2, b, a);
  double high = mp_fma_f64(e, 0x1.62e42fefa4p-1, f);
  double low = mp_fma_f64(e, 0x1.62e42fefa4p-1, -high) + f;
  double curve = mp_fma_f64(s, half + p, -half);
  return high + mp_fma_f64(e, -0x1.8432a1b0e2634p-43, curve + low);
}

// `y`, which is log(x), corrected where x is no positive number.
static inline double mp_log_edges_f64(double x, double y) {
  y = x == 0 ? -INFINITY : y;
  y = x < 0 ? NAN : y;
  return x < INFINITY ? y : x;  // infinity, NaN
}

// Positive x = 2^e m with m in [3/4, 3/2): 1023 + e.
static inline uint64_t mp_log_exponent_f64(double x) {
  const uint64_t three_quarters = UINT64_C(0x3fe8000000000000), one = UINT64_C(0x3ff0000000000000);
  return (mp_f64_bits(x) + (one - three_quarters)) >> 52;
}

// An integer below 2^52 as a double.
static inline double mp_f64_of_integer(uint64_t integer) {
  return mp_f64_of_bits(integer | UINT64_C(0x4330000000000000)) - 0x1p52;
}

// log(x). Numbers below the normal ones are scaled.
static inline double mp_log_f64(double x) {
  double scaled = x < 0x1p-1022 ? x * 0x1p54 : x, offset = x < 0x1p-1022 ? 1023 + 54 : 1023;
  uint64_t e = mp_log_exponent_f64(scaled);
  double f = mp_f64_of_bits(mp_f64_bits(scaled) - ((e - 1023) << 52)) - 1;
  return mp_log_edges_f64(x, mp_log_sum_f64(mp_f64_of_integer(e & 0xfff) - offset, f));
}

// log(1 + x)
static inline double mp_log1p_f64(double x) {
  double sum = 1 + x;
  uint64_t e = mp_log_exponent_f64(sum) & 0x7ff;
  double scale = mp_f64_of_bits((e < 2046 ? 2046 - e : 0) << 52);
  double f = mp_f64_of_bits(mp_f64_bits(x) - ((e - 1023) << 52)) + (scale - 1);
  double y = mp_log_edges_f64(sum, mp_log_sum_f64(mp_f64_of_integer(e) - 1023, f));
  return x == 0 ? x : y;
}

#endif  // MINIPOD_SIM_KERNELS_ELEMENTWISE_MATH_F64_H_
