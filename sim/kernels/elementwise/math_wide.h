// Functions of f32 that are computed in double precision, private to sim/kernels: those of
// sim/numeric/meaning_wide.h, tangent and atan2.
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

#define WIDE        double
#define LBITS       uint64_t
#define WIDEN(a)    ((double)(a))
#define NARROW(a)   ((float)(a))
#define WFMA        mp_fma_f64
#define LNUM(n)     ((uint64_t)(n))
#define LADD(a, b)  ((a) + (b))
#define LSAR(a, n)  ((uint64_t)((int64_t)(a) >> (n)))
#define LREAL_OF(a) ((double)(int64_t)(a))
#include "sim/numeric/meaning_wide.h"

typedef struct {
  double sine, cosine;
  uint64_t quadrant;  // the last two bits count
} mp_wide_turn_t;

// The sine and cosine of r, and the number k of quarter turns, where x = k pi/2 + r. |x| <=
// MP_TRIG_MAX.
static inline mp_wide_turn_t mp_turn_f64(double x) {
  double shifted = x * 0x1.45f306dc9c883p-1 + MP_WIDE_TO_INTEGER;
  double k = shifted - MP_WIDE_TO_INTEGER;
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

#endif  // MINIPOD_SIM_KERNELS_ELEMENTWISE_MATH_WIDE_H_
