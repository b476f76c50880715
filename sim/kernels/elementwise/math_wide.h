// Functions of f32 that are computed in double precision, private to sim/kernels: tangent, atan2
// and power.
//
// They have no branches, so that compilers turn them into vector code, and round once: the error is
// below 0.51 units in the last place. The series are Taylor's, on intervals that are short enough
// for them. NaN gives NaN; signs of zero and infinities are as in C99 annex F.
#ifndef MINIPOD_SIM_KERNELS_ELEMENTWISE_MATH_WIDE_H_
#define MINIPOD_SIM_KERNELS_ELEMENTWISE_MATH_WIDE_H_

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sim/kernels/elementwise/math_f32.h"
#include "sim/kernels/elementwise/math_f64.h"

// Adding this to a number rounds it to an integer, which is then in the last bits of the sum.
#define MP_TO_INTEGER 0x1.8p52

typedef struct {
  double sine, cosine;
  uint64_t quadrant;  // the last two bits count
} mp_wide_turn_t;

// The sine and cosine of r, and the number k of quarter turns, where x = k pi/2 + r. |x| <=
// MP_TRIG_MAX.
static inline mp_wide_turn_t mp_turn_f64(double x) {
  double shifted = x * 0x1.45f306dc9c883p-1 + MP_TO_INTEGER;
  double k = shifted - MP_TO_INTEGER;
  // pi/2 is subtracted in two pieces, of which the first has so few bits that its product is exact.
  double r = (x - k * 0x1.921fb544p+0) - k * 0x1.0b4611a626331p-34;
  double r2 = r * r;
  double s = 1.0 / 362880 - r2 * (1.0 / 39916800);
  s = 1.0 / 5040 - r2 * s;
  s = 1.0 / 120 - r2 * s;
  s = 1.0 / 6 - r2 * s;
  double c = 1.0 / 3628800 - r2 * (1.0 / 479001600);
  c = 1.0 / 40320 - r2 * c;
  c = 1.0 / 720 - r2 * c;
  c = 1.0 / 24 - r2 * c;
  c = 0.5 - r2 * c;
  return (mp_wide_turn_t){r - r * r2 * s, 1 - r2 * c, mp_f64_bits(shifted)};
}

// tan(x) for |x| <= MP_TRIG_MAX.
static inline float mp_tan_f32(float x) {
  mp_wide_turn_t turn = mp_turn_f64(x);
  bool odd = (turn.quadrant & 1) != 0;
  double above = odd ? -turn.cosine : turn.sine, below = odd ? turn.sine : turn.cosine;
  float y = (float)(above / below);
  return x == 0 ? x : y;
}

// The angle of the point (x, y).
static inline float mp_atan2_f32(float y, float x) {
  double a = fabs((double)y), b = fabs((double)x);
  double low = a < b ? a : b, high = a < b ? b : a;
  double t = low / high;
  t = high == 0 ? 0 : t;
  t = low == INFINITY ? 1 : t;
  // Beyond tan(pi/8), the argument is reduced by an eighth of a turn.
  bool large = t > 0x1.a827999fcef32p-2;
  double u = large ? (t - 1) / (t + 1) : t, u2 = u * u;
  double sum = 1.0 / 23 - u2 * (1.0 / 25);
  sum = 1.0 / 21 - u2 * sum;
  sum = 1.0 / 19 - u2 * sum;
  sum = 1.0 / 17 - u2 * sum;
  sum = 1.0 / 15 - u2 * sum;
  sum = 1.0 / 13 - u2 * sum;
  sum = 1.0 / 11 - u2 * sum;
  sum = 1.0 / 9 - u2 * sum;
  sum = 1.0 / 7 - u2 * sum;
  sum = 1.0 / 5 - u2 * sum;
  sum = 1.0 / 3 - u2 * sum;
  double angle = (u - u * u2 * sum) + (large ? 0x1.921fb54442d18p-1 : 0);
  angle = a > b ? 0x1.921fb54442d18p+0 - angle : angle;
  angle = signbit(x) ? 0x1.921fb54442d18p+1 - angle : angle;
  float result = copysignf((float)angle, y);
  return x != x || y != y ? x + y : result;
}

// The binary logarithm of x > 0, which is a float: within 2^-49 of it. x = 2^k m with m between
// the roots of 1/2 and 2, and log m = 2 artanh f with f = (m - 1) / (m + 1).
static inline double mp_log2_wide(double x) {
  const uint64_t bits = mp_f64_bits(x);
  const int64_t k = (int64_t)(bits - 0x3fe6a09e667f3bcd) >> 52;
  const double m = mp_f64_of_bits(bits - ((uint64_t)k << 52));
  const double f = (m - 1) / (m + 1), s = f * f;
  double sum = mp_fma_f64(s, 2.0 / 19, 2.0 / 17);
  sum = mp_fma_f64(s, sum, 2.0 / 15);
  sum = mp_fma_f64(s, sum, 2.0 / 13);
  sum = mp_fma_f64(s, sum, 2.0 / 11);
  sum = mp_fma_f64(s, sum, 2.0 / 9);
  sum = mp_fma_f64(s, sum, 2.0 / 7);
  sum = mp_fma_f64(s, sum, 2.0 / 5);
  sum = mp_fma_f64(s, sum, 2.0 / 3);
  const double log_m = f * mp_fma_f64(s, sum, 2);
  return mp_fma_f64(log_m, 0x1.71547652b82fep+0, (double)k);
}

// 2^t for |t| <= 200.
static inline double mp_exp2_wide(double t) {
  const double shifted = t + MP_TO_INTEGER,
               u = (t - (shifted - MP_TO_INTEGER)) * 0x1.62e42fefa39efp-1;
  double sum = mp_fma_f64(u, 1.0 / 39916800, 1.0 / 3628800);
  sum = mp_fma_f64(u, sum, 1.0 / 362880);
  sum = mp_fma_f64(u, sum, 1.0 / 40320);
  sum = mp_fma_f64(u, sum, 1.0 / 5040);
  sum = mp_fma_f64(u, sum, 1.0 / 720);
  sum = mp_fma_f64(u, sum, 1.0 / 120);
  sum = mp_fma_f64(u, sum, 1.0 / 24);
  sum = mp_fma_f64(u, sum, 1.0 / 6);
  sum = mp_fma_f64(u, sum, 0.5);
  sum = mp_fma_f64(u, sum, 1);
  sum = mp_fma_f64(u, sum, 1);
  return sum * mp_f64_of_bits((mp_f64_bits(shifted) + 1023) << 52);
}

// x to the power of y.
static inline float mp_pow_f32(float x, float y) {
  const double a = fabs((double)x), half = 0.5 * (double)y;
  double log = mp_log2_wide(a);
  log = a == 0 ? -INFINITY : log;
  log = a < INFINITY ? log : a;
  double t = (double)y * log;
  t = t > 200 ? 200 : t;    // which is infinity as a float,
  t = t < -200 ? -200 : t;  // and zero
  double power = mp_exp2_wide(t);
  power = t != t ? t : power;
  power = a == 1 ? 1 : power;
  // Floats from 2^24 on are even.
  const bool is_whole = floorf(y) == y, is_odd = is_whole && floor(half) != half;
  float result = (float)power;
  result = signbit(x) && is_odd ? -result : result;
  result = x < 0 && a < INFINITY && !is_whole ? NAN : result;
  result = x != x || y != y ? x + y : result;
  return x == 1 || y == 0 ? 1 : result;
}

#endif  // MINIPOD_SIM_KERNELS_ELEMENTWISE_MATH_WIDE_H_
