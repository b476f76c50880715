// Functions of f32 that compilers turn into vector code, private to sim/kernels.
//
// They compute in double precision without branches and round once, so that the error is below 0.51
// units in the last place. The series are Taylor's, on intervals that are short enough for them.
// NaN gives NaN; signs of zero and infinities are as in C99 annex F. A function mp_<name>_f32 is
// the function <name> of C's math library, or of StableHLO, in f32.
#ifndef MINIPOD_SIM_KERNELS_ELEMENTWISE_MATH_F32_H_
#define MINIPOD_SIM_KERNELS_ELEMENTWISE_MATH_F32_H_

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

// The bits of a double as an integer.
static inline uint64_t mp_f64_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// The double with these bits.
static inline double mp_f64_of_bits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

// Adding this to a number rounds it to an integer, which is then in the last bits of the sum.
#define MP_TO_INTEGER 0x1.8p52

typedef struct {
  double scale, q;
} mp_exp_t;

// exp(x) = scale (1 + q) for |x| < 700: x = k ln 2 + r, scale = 2^k, q = exp(r) - 1.
static inline mp_exp_t mp_exp_f64(double x) {
  double shifted = x * 0x1.71547652b82fep+0 + MP_TO_INTEGER;
  double k = shifted - MP_TO_INTEGER;
  double r = x - k * 0x1.62e42fefa39efp-1;
  double q = 1.0 / 5040 + r * (1.0 / 40320);
  q = 1.0 / 720 + r * q;
  q = 1.0 / 120 + r * q;
  q = 1.0 / 24 + r * q;
  q = 1.0 / 6 + r * q;
  q = 0.5 + r * q;
  q = r + r * r * q;
  double scale = mp_f64_of_bits((mp_f64_bits(shifted) << 52) + (UINT64_C(1023) << 52));
  return (mp_exp_t){scale, q};
}

// exp(x) - 1 for |x| < 700.
static inline double mp_expm1_f64(double x) {
  mp_exp_t y = mp_exp_f64(x);
  return y.scale * y.q + (y.scale - 1);
}

// `x` limited to [low, high]; NaN stays.
static inline double mp_bound(double x, double low, double high) {
  double y = x < low ? low : x;  // NaN stays
  return y > high ? high : y;
}

// exp(x)
static inline float mp_exp_f32(float x) {
  mp_exp_t y = mp_exp_f64(mp_bound(x, -110, 90));
  return (float)(y.scale + y.scale * y.q);
}

// exp(x) - 1
static inline float mp_expm1_f32(float x) {
  float y = (float)mp_expm1_f64(mp_bound(x, -110, 90));
  return x == 0 ? x : y;
}

// tanh(x)
static inline float mp_tanh_f32(float x) {
  double twice = mp_expm1_f64(mp_bound(2 * (double)x, -20, 20));
  float y = (float)(twice / (twice + 2));
  return x == 0 ? x : y;
}

// 1 / (1 + exp(-x))
static inline float mp_logistic_f32(float x) {
  return (float)(1 / (2 + mp_expm1_f64(mp_bound(-(double)x, -110, 110))));
}

// log(x) for positive x: x = 2^e m with m in [sqrt(1/2), sqrt(2)), log m = 2 artanh((m-1)/(m+1)).
static inline double mp_log_f64(double x) {
  const uint64_t half_root = UINT64_C(0x3fe6a09e667f3bcd);
  uint64_t shifted = mp_f64_bits(x) + (UINT64_C(0x3ff0000000000000) - half_root);
  // The exponent as a double: in the last bits of 2^52.
  double e = mp_f64_of_bits((shifted >> 52) | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023);
  double m = mp_f64_of_bits((shifted & UINT64_C(0x000fffffffffffff)) + half_root);
  double s = (m - 1) / (m + 1), s2 = s * s;
  double sum = 1.0 / 11 + s2 * (1.0 / 13);
  sum = 1.0 / 9 + s2 * sum;
  sum = 1.0 / 7 + s2 * sum;
  sum = 1.0 / 5 + s2 * sum;
  sum = 1.0 / 3 + s2 * sum;
  return e * 0x1.62e42fefa39efp-1 + 2 * (s + s * s2 * sum);
}

// `y`, which is log(x), corrected where x is no positive number.
static inline float mp_log_edges(double x, float y) {
  y = x == 0 ? -INFINITY : y;
  y = x < 0 ? NAN : y;
  return x < INFINITY ? y : (float)x;  // infinity, NaN
}

// log(x)
static inline float mp_log_f32(float x) {
  return mp_log_edges(x, (float)mp_log_f64(x));
}

// log(1 + x)
static inline float mp_log1p_f32(float x) {
  double wide = x, sum = 1 + wide;
  double small = wide - wide * wide * (0.5 - wide * (1.0 / 3));
  double y = fabs(wide) < 0x1p-10 ? small : mp_log_f64(sum);
  y = x == 0 ? wide : y;
  return mp_log_edges(sum, (float)y);
}

// The reduction below is not exact enough for larger arguments.
#define MP_TRIG_MAX 1e6f

typedef struct {
  double sine, cosine;
  uint64_t quadrant;  // the last two bits count
} mp_turn_t;

// The sine and cosine of r, and the number k of quarter turns, where x = k pi/2 + r. |x| <=
// MP_TRIG_MAX.
static inline mp_turn_t mp_turn_f64(double x) {
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
  return (mp_turn_t){r - r * r2 * s, 1 - r2 * c, mp_f64_bits(shifted)};
}

// The sine of x + quarters * pi/2, for |x| <= MP_TRIG_MAX.
static inline float mp_turned_sine(double x, uint64_t quarters) {
  mp_turn_t turn = mp_turn_f64(x);
  uint64_t quadrant = turn.quadrant + quarters;
  double y = (quadrant & 1) != 0 ? turn.cosine : turn.sine;
  return (float)mp_f64_of_bits(mp_f64_bits(y) ^ ((quadrant & 2) << 62));
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

// tan(x) for |x| <= MP_TRIG_MAX.
static inline float mp_tan_f32(float x) {
  mp_turn_t turn = mp_turn_f64(x);
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

#endif  // MINIPOD_SIM_KERNELS_ELEMENTWISE_MATH_F32_H_
