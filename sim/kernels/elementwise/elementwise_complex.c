// Loops over c64 and c128. The functions of c64 are computed in double precision.
//
// Products are computed by the plain formula, without C's recovery of infinities. Each part has two
// products, and only one of them is rounded (x.re y.re, x.im y.re), which gives XLA's bits: if both
// are too large, only the rounded one becomes infinite. Quotients and functions follow C99 annex G,
// except that a NaN factor makes a product NaN, as in XLA: exp(-inf + inf i) is NaN, not 0 times an
// unknown number.
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "sim/kernels/elementwise/complex_type.h"
#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/loops.h"

static inline c128_t elementwise_complex_make(double re, double im) {
  double parts[2] = {re, im};
  c128_t value;
  memcpy(&value, parts, sizeof(value));
  return value;
}

static c128_t multiply(c128_t x, c128_t y) {
  double a = creal(x), b = cimag(x), c = creal(y), d = cimag(y);
  return elementwise_complex_make(a * c - b * d, a * d + b * c);
}

static c128_t negate(c128_t x) {
  return elementwise_complex_make(-creal(x), -cimag(x));
}

static c128_t elementwise_complex_reciprocal(c128_t x) {
  return elementwise_complex_make(1, 0) / x;
}

// A number with a NaN part has no size, even if the other part is infinite.
static double elementwise_complex_abs_of(c128_t x) {
  if (isnan(creal(x)) || isnan(cimag(x))) return NAN;
  return cabs(x);
}

// The same, rounded to the type of the parts. Squares of f32 are exact in double precision, and
// none is too large.
static inline double abs_of_C128(c128_t x) {
  return elementwise_complex_abs_of(x);
}
static inline float abs_of_C64(c64_t x) {
  const double a = crealf(x), b = cimagf(x);
  const float size = (float)sqrt(a * a + b * b);
  return ((a != a) | (b != b)) != 0 ? NAN : size;
}

// `size` is |x|, rounded to the type of the parts.
static c128_t elementwise_complex_sign_of(c128_t x, double size) {
  if (size == 0) return elementwise_complex_make(0, 0);
  return elementwise_complex_make(creal(x) / size, cimag(x) / size);
}

static c128_t elementwise_complex_rsqrt_of(c128_t x) {
  const double a = creal(x), b = cimag(x);
  if (a == 0 && b == 0) return elementwise_complex_make(INFINITY, NAN);
  if (isinf(a) || isinf(b)) {
    if (isnan(b) && !isinf(a)) return elementwise_complex_make(NAN, NAN);
    return elementwise_complex_make(isinf(a) ? copysign(0, a) : 0, copysign(0, -b));
  }
  return elementwise_complex_reciprocal(csqrt(x));
}

static c128_t elementwise_complex_exp_of(c128_t x) {
  if (!isfinite(cimag(x))) return elementwise_complex_make(NAN, NAN);
  return cexp(x);
}

// exp(x) - 1 without cancellation: the real part is (e^a - 1) cos b - 2 sin^2(b / 2).
static c128_t elementwise_complex_expm1_of(c128_t x) {
  double a = creal(x), b = cimag(x);
  if (!isfinite(a) || !isfinite(b)) return elementwise_complex_exp_of(x) - 1;
  double half = sin(b / 2);
  return elementwise_complex_make(expm1(a) * cos(b) - 2 * half * half,
                                  b == 0 ? b : exp(a) * sin(b));
}

// log(1 + x). Where |1 + x| is near 1, its logarithm is half of log1p(|1 + x|^2 - 1).
static c128_t elementwise_complex_log1p_of(c128_t x) {
  double a = creal(x), b = cimag(x);
  double size = hypot(1 + a, b);
  double re = size > 0.5 && size < 2 ? log1p(a * (2 + a) + b * b) / 2 : log(size);
  return elementwise_complex_make(re, atan2(b, 1 + a));
}

// x^y = |x|^c e^(-d t) (cos q + i sin q), with y = c + d i, t the angle of x and q = c t + d log
// |x|. `scale` is the product of the first two factors, and is finite. Short cuts are more exact.
static c128_t elementwise_complex_power_by_parts(c128_t x, c128_t y, double scale, double turn) {
  const double c = creal(y), d = cimag(y);
  if (isfinite(c) && d == 0) {
    if (c == 1) return x;
    if (c == 2) return multiply(x, x);
    if (creal(x) > 0 && cimag(x) == 0) return elementwise_complex_make(scale, 0);
  }
  return elementwise_complex_make(scale * cos(turn), scale * sin(turn));
}

// The value of x^y where it is defined without the formula; false elsewhere.
static bool elementwise_complex_power_is_plain(c128_t x, c128_t y, c128_t *out) {
  const double a = creal(x), b = cimag(x), c = creal(y), d = cimag(y);
  if ((c == 0 && d == 0) || (a == 1 && b == 0)) {
    *out = elementwise_complex_make(1, 0);
  } else if (a == 0 && b == 0 && c > 0 && d == 0) {
    *out = elementwise_complex_make(0, 0);
  } else if (a == (double)INFINITY && b == 0 && c != 0 && d == 0 && !isnan(c)) {
    *out = elementwise_complex_make(c > 0 ? (double)INFINITY : 0, 0);
  } else {
    return false;
  }
  return true;
}

static c128_t elementwise_complex_cbrt_of(c128_t x) {
  if (creal(x) == 0 && cimag(x) == 0) return x;
  double size = cbrt(cabs(x)), angle = carg(x) / 3;
  return elementwise_complex_make(size * cos(angle), size * sin(angle));
}

static c128_t elementwise_complex_atan2_of(c128_t y, c128_t x) {
  c128_t i_y = elementwise_complex_make(-cimag(y), creal(y));
  c128_t unit = clog((x + i_y) / csqrt(multiply(x, x) + multiply(y, y)));
  return elementwise_complex_make(cimag(unit), -creal(unit));
}

// Where the tangent has no limit along a line, both parts are NaN.
static c128_t elementwise_complex_tan_of(c128_t x) {
  if (!isfinite(creal(x)) && cimag(x) == 0) return elementwise_complex_make(NAN, NAN);
  return ctan(x);
}
static c128_t elementwise_complex_tanh_of(c128_t x) {
  if (!isfinite(cimag(x)) && creal(x) == 0) return elementwise_complex_make(NAN, NAN);
  return ctanh(x);
}

static c128_t elementwise_complex_logistic_of(c128_t x) {
  return elementwise_complex_reciprocal(1 + elementwise_complex_exp_of(negate(x)));
}

static inline int elementwise_complex_has_nan(c128_t x) {
  return isnan(creal(x)) || isnan(cimag(x));
}
static c128_t elementwise_complex_max_of(c128_t x, c128_t y) {
  return elementwise_complex_has_nan(x) ||
                 (mp_complex_less(y, x) && !elementwise_complex_has_nan(y))
             ? x
             : y;
}
static c128_t elementwise_complex_min_of(c128_t x, c128_t y) {
  return elementwise_complex_has_nan(x) ||
                 (mp_complex_less(x, y) && !elementwise_complex_has_nan(y))
             ? x
             : y;
}

// A size that is too large for the parts becomes infinite at once, as in XLA, and later steps make
// it neither finite nor NaN. The angle is then rounded as in XLA, too, so that only its quadrant
// counts.
#define POWER(name, F, least)                                                   \
  static c128_t elementwise_complex_power_##name(c128_t x, c128_t y) {          \
    c128_t plain;                                                               \
    if (elementwise_complex_power_is_plain(x, y, &plain)) return plain;         \
    const double size = elementwise_complex_abs_of(x);                          \
    const double angle = atan2(cimag(x), creal(x)), c = creal(y), d = cimag(y); \
    const double power = pow(size, c), decay = exp(-d * angle);                 \
    const F scale = (F)power * (F)decay;                                        \
    if (isfinite(scale)) {                                                      \
      const double turn = c * angle + d * log(size);                            \
      return elementwise_complex_power_by_parts(x, y, power * decay, turn);     \
    }                                                                           \
    const F rounded = fabs(angle) < least ? (F)copysign(0, angle) : (F)angle;   \
    const F turn = (F)(c * (double)rounded + d * (double)(F)log(size));         \
    return elementwise_complex_make(scale * cos(turn), scale * sin(turn));      \
  }
POWER(C64, float, (double)FLT_MIN)
POWER(C128, double, DBL_MIN)

#define MP_FMA_C64  __builtin_fmaf
#define MP_FMA_C128 __builtin_fma

// X(name, op, number of operands, type of the result, expression): T is the complex type and F the
// type of its parts.
#define OPS(X, name, T, F)                                                                 \
  X(name, ABS, 1, T, F, abs_of_##name(x))                                                  \
  X(name, REAL, 1, T, F, creal(x))                                                         \
  X(name, IMAG, 1, T, F, cimag(x))                                                         \
  X(name, ADD, 2, T, T, x + y)                                                             \
  X(name, SUBTRACT, 2, T, T, x - y)                                                        \
  X(name, ATAN2, 2, T, T, elementwise_complex_atan2_of(x, y))                              \
  X(name, CBRT, 1, T, T, elementwise_complex_cbrt_of(x))                                   \
  X(name, CLAMP, 3, T, T, elementwise_complex_min_of(elementwise_complex_max_of(x, y), z)) \
  X(name, COSINE, 1, T, T, ccos(x))                                                        \
  X(name, EXPONENTIAL, 1, T, T, elementwise_complex_exp_of(x))                             \
  X(name, EXPONENTIAL_MINUS_ONE, 1, T, T, elementwise_complex_expm1_of(x))                 \
  X(name, LOG, 1, T, T, clog(x))                                                           \
  X(name, LOG_PLUS_ONE, 1, T, T, elementwise_complex_log1p_of(x))                          \
  X(name, LOGISTIC, 1, T, T, elementwise_complex_logistic_of(x))                           \
  X(name, MAXIMUM, 2, T, T, elementwise_complex_max_of(x, y))                              \
  X(name, MINIMUM, 2, T, T, elementwise_complex_min_of(x, y))                              \
  X(name, NEGATE, 1, T, T, negate(x))                                                      \
  X(name, POWER, 2, T, T, elementwise_complex_power_##name(x, y))                          \
  X(name, RSQRT, 1, T, T, elementwise_complex_rsqrt_of(x))                                 \
  X(name, SIGN, 1, T, T, elementwise_complex_sign_of(x, abs_of_##name(x)))                 \
  X(name, SINE, 1, T, T, csin(x))                                                          \
  X(name, SQRT, 1, T, T, csqrt(x))                                                         \
  X(name, TAN, 1, T, T, elementwise_complex_tan_of(x))                                     \
  X(name, TANH, 1, T, T, elementwise_complex_tanh_of(x))
#define LOOP(name, op, arity, in_t, out_t, expr) MP_LOOP##arity(op##_##name, in_t, out_t, expr)
OPS(LOOP, C64, c64_t, float)
OPS(LOOP, C128, c128_t, double)

#define PARTS_LOOPS(name, F)                                                           \
  MP_VECTOR static void multiply_##name(int64_t n, const void *const *in, void *out) { \
    const F *a = in[0], *b = in[1];                                                    \
    F *r = out;                                                                        \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                                   \
      F re = MP_FMA_##name(a[2 * i], b[2 * i], -(a[2 * i + 1] * b[2 * i + 1]));        \
      F im = MP_FMA_##name(a[2 * i + 1], b[2 * i], a[2 * i] * b[2 * i + 1]);           \
      r[2 * i] = re;                                                                   \
      r[2 * i + 1] = im;                                                               \
    }                                                                                  \
  }                                                                                    \
  static void complex_##name(int64_t n, const void *const *in, void *out) {            \
    const F *a = in[0], *b = in[1];                                                    \
    F *r = out;                                                                        \
    for (int64_t i = 0; i < n; ++i) {                                                  \
      r[2 * i] = a[i];                                                                 \
      r[2 * i + 1] = b[i];                                                             \
    }                                                                                  \
  }

PARTS_LOOPS(C64, float)
PARTS_LOOPS(C128, double)

MP_LOOP2(divide_C128, c128_t, c128_t, x / y)

// Divides n elements, at most a block; false if one of them is not finite or divided by zero. These
// are Smith's formulas ("Algorithm 116: Complex division"). C uses them, too, after a check for
// numbers that are too large or too small. Floats never are, because they are divided in doubles.
enum { DIVIDE_BLOCK = 64 };

MP_VECTOR static bool elementwise_complex_divide_block(int64_t n, const float *x, const float *y,
                                                       float *out) {
  unsigned defects = 0;
  MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {
    const double a = (double)x[2 * i], b = (double)x[2 * i + 1];
    const double c = (double)y[2 * i], d = (double)y[2 * i + 1];
    const bool swaps = fabs(c) < fabs(d);
    const double large = swaps ? d : c, small = swaps ? c : d;
    const double first = swaps ? b : a, second = swaps ? a : b;
    const double ratio = small / large, size = small * ratio + large;
    const double cross = first * ratio;
    out[2 * i] = (float)((second * ratio + first) / size);
    out[2 * i + 1] = (float)((swaps ? cross - second : second - cross) / size);
    const double defect = (a + b + c + d + ratio) * 0;  // NaN if one of them is not finite
    defects |= defect == 0 ? 0U : 1U;
  }
  return defects == 0;
}

static void divide_C64(int64_t n, const void *const *in, void *out) {
  const float *x = in[0], *y = in[1];
  for (int64_t i = 0; i < n; i += DIVIDE_BLOCK) {
    const int64_t count = n - i < DIVIDE_BLOCK ? n - i : DIVIDE_BLOCK;
    float block[2 * DIVIDE_BLOCK];  // the result may be an operand's array
    if (!elementwise_complex_divide_block(count, x + 2 * i, y + 2 * i, block)) {
      const c64_t *from = (const c64_t *)in[0] + i, *by = (const c64_t *)in[1] + i;
      for (int64_t j = 0; j < count; ++j) {
        const c64_t quotient = (c64_t)((c128_t)from[j] / (c128_t)by[j]);
        memcpy(block + 2 * j, &quotient, sizeof(quotient));
      }
    }
    memcpy((float *)out + 2 * i, block, (size_t)count * 2 * sizeof(float));
  }
}

#define ROW(name, op, ...) [MP_OP_##op] = op##_##name,
#define ROWS(name)                                                    \
  {                                                                   \
    OPS(ROW, name, , )                                                \
    [MP_OP_COMPLEX] = complex_##name, [MP_OP_DIVIDE] = divide_##name, \
    [MP_OP_MULTIPLY] = multiply_##name                                \
  }
static const mp_ew_loop_t g_c64[MP_OP_COUNT] = ROWS(C64);
static const mp_ew_loop_t g_c128[MP_OP_COUNT] = ROWS(C128);

mp_ew_loop_t mp_ew_complex_loop(mp_opcode_t code, mp_dtype_t dtype) {
  return dtype == MP_DTYPE_C64 ? g_c64[code] : dtype == MP_DTYPE_C128 ? g_c128[code] : NULL;
}
