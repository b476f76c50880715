// Loops over f32 and f64.
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/elementwise/extreme.h"
#include "sim/kernels/elementwise/math_f32.h"
#include "sim/kernels/elementwise/math_f64.h"
#include "sim/kernels/elementwise/math_wide.h"
#include "sim/kernels/loops.h"

// Helpers for one element type T; U is the unsigned type of its size and S the suffix of libm's
// functions. They have no branches where loops are to be vectorised.
#define HELPERS(name, T, U, S)                                                            \
  static inline U bits_##name(T value) {                                                  \
    U bits;                                                                               \
    memcpy(&bits, &value, sizeof(bits));                                                  \
    return bits;                                                                          \
  }                                                                                       \
  static inline T value_##name(U bits) {                                                  \
    T value;                                                                              \
    memcpy(&value, &bits, sizeof(value));                                                 \
    return value;                                                                         \
  }                                                                                       \
  static inline T sign_of_##name(T x) {                                                   \
    T unit = value_##name((bits_##name(x) & bits_##name((T)-0.0)) | bits_##name((T)1));   \
    return ((x == 0) | (x != x)) ? x : unit;                                              \
  }                                                                                       \
  /* To nearest, halves away from zero, without the error of adding 0.5 to 0.49999997. */ \
  static inline T round_away_##name(T x) {                                                \
    T whole = trunc##S(x), rest = fabs##S(x - whole);                                     \
    return rest >= (T)0.5 ? whole + copysign##S((T)1, x) : copysign##S(whole, x);         \
  }

#define LOOPS(name, f, T, U, S)                                                     \
  HELPERS(name, T, U, S)                                                            \
  MP_LOOP1(abs_##name, T, T, fabs##S(x))                                            \
  MP_LOOP2(add_##name, T, T, x + y)                                                 \
  MP_LOOP1(cbrt_##name, T, T, cbrt##S(x))                                           \
  MP_LOOP1(ceil_##name, T, T, ceil##S(x))                                           \
  MP_LOOP3(clamp_##name, T, T, mp_min_##f(mp_max_##f(x, y), z))                     \
  MP_LOOP2(divide_##name, T, T, x / y)                                              \
  MP_LOOP1(floor_##name, T, T, floor##S(x))                                         \
  MP_LOOP1(imag_##name, T, T, ((void)x, (T)0))                                      \
  MP_LOOP1(is_finite_##name, T, uint8_t,                                            \
           (bits_##name(x) & bits_##name((T)INFINITY)) != bits_##name((T)INFINITY)) \
  MP_LOOP2(maximum_##name, T, T, mp_max_##f(x, y))                                  \
  MP_LOOP2(minimum_##name, T, T, mp_min_##f(x, y))                                  \
  MP_LOOP2(multiply_##name, T, T, x *y)                                             \
  MP_LOOP1(negate_##name, T, T, -x)                                                 \
  MP_LOOP2(power_##name, T, T, pow##S(x, y))                                        \
  MP_LOOP1(real_##name, T, T, x)                                                    \
  MP_LOOP2(remainder_##name, T, T, fmod##S(x, y))                                   \
  MP_LOOP1(round_nearest_afz_##name, T, T, round_away_##name(x))                    \
  MP_LOOP1(round_nearest_even_##name, T, T, rint##S(x))                             \
  MP_LOOP1(rsqrt_##name, T, T, (T)1 / sqrt##S(x))                                   \
  MP_LOOP1(sign_##name, T, T, sign_of_##name(x))                                    \
  MP_LOOP1(sqrt_##name, T, T, sqrt##S(x))                                           \
  MP_LOOP2(subtract_##name, T, T, x - y)

LOOPS(F32, f32, float, uint32_t, f)
LOOPS(F64, f64, double, uint64_t, )

MP_LOOP2(atan2_F32, float, float, mp_atan2_f32(x, y))
MP_LOOP1(exponential_F32, float, float, mp_exp_f32(x))
MP_LOOP1(exponential_minus_one_F32, float, float, mp_expm1_f32(x))
MP_LOOP1(log_F32, float, float, mp_log_f32(x))
MP_LOOP1(log_plus_one_F32, float, float, mp_log1p_f32(x))
MP_LOOP1(logistic_F32, float, float, mp_logistic_f32(x))
MP_LOOP1(tanh_F32, float, float, mp_tanh_f32(x))

MP_LOOP2(atan2_F64, double, double, atan2(x, y))
MP_LOOP1(cosine_F64, double, double, cos(x))
MP_LOOP1(exponential_F64, double, double, mp_exp_f64(x))
MP_LOOP1(exponential_minus_one_F64, double, double, mp_expm1_f64(x))
MP_LOOP1(log_F64, double, double, mp_log_f64(x))
MP_LOOP1(log_plus_one_F64, double, double, mp_log1p_f64(x))
MP_LOOP1(logistic_F64, double, double, mp_logistic_f64(x))
MP_LOOP1(sine_F64, double, double, sin(x))
MP_LOOP1(tan_F64, double, double, tan(x))
MP_LOOP1(tanh_F64, double, double, mp_tanh_f64(x))

// The vectorised functions are for arguments that are not too large; in a block with larger ones,
// the elements concerned are computed by libm.
enum { TRIG_BLOCK = 256 };

#define TRIG_LOOP(name, quick, slow)                                                        \
  MP_VECTOR static void name##_block(int64_t n, const float *a, float *r, int *out_large) { \
    int large = 0;                                                                          \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                                        \
      float x = a[i];                                                                       \
      large |= !(fabsf(x) <= MP_TRIG_MAX);                                                  \
      r[i] = quick(x);                                                                      \
    }                                                                                       \
    *out_large = large;                                                                     \
  }                                                                                         \
  static void name##_F32(int64_t n, const void *const *in, void *out) {                     \
    float block[TRIG_BLOCK]; /* the result may be the argument's array */                   \
    for (int64_t i = 0; i < n; i += TRIG_BLOCK) {                                           \
      int64_t count = n - i < TRIG_BLOCK ? n - i : TRIG_BLOCK;                              \
      const float *a = (const float *)in[0] + i;                                            \
      int large = 0;                                                                        \
      name##_block(count, a, block, &large);                                                \
      for (int64_t k = 0; large != 0 && k < count; ++k) {                                   \
        if (!(fabsf(a[k]) <= MP_TRIG_MAX)) block[k] = slow(a[k]);                           \
      }                                                                                     \
      memcpy((float *)out + i, block, (size_t)count * sizeof(float));                       \
    }                                                                                       \
  }
TRIG_LOOP(cosine, mp_cos_f32, cosf)
TRIG_LOOP(sine, mp_sin_f32, sinf)
TRIG_LOOP(tan, mp_tan_f32, tanf)

#define OPS(ROW)                                    \
  ROW(ABS, abs)                                     \
  ROW(ADD, add)                                     \
  ROW(ATAN2, atan2)                                 \
  ROW(CBRT, cbrt)                                   \
  ROW(CEIL, ceil)                                   \
  ROW(CLAMP, clamp)                                 \
  ROW(COSINE, cosine)                               \
  ROW(DIVIDE, divide)                               \
  ROW(EXPONENTIAL, exponential)                     \
  ROW(EXPONENTIAL_MINUS_ONE, exponential_minus_one) \
  ROW(FLOOR, floor)                                 \
  ROW(IMAG, imag)                                   \
  ROW(IS_FINITE, is_finite)                         \
  ROW(LOG, log)                                     \
  ROW(LOG_PLUS_ONE, log_plus_one)                   \
  ROW(LOGISTIC, logistic)                           \
  ROW(MAXIMUM, maximum)                             \
  ROW(MINIMUM, minimum)                             \
  ROW(MULTIPLY, multiply)                           \
  ROW(NEGATE, negate)                               \
  ROW(POWER, power)                                 \
  ROW(REAL, real)                                   \
  ROW(REMAINDER, remainder)                         \
  ROW(ROUND_NEAREST_AFZ, round_nearest_afz)         \
  ROW(ROUND_NEAREST_EVEN, round_nearest_even)       \
  ROW(RSQRT, rsqrt)                                 \
  ROW(SIGN, sign)                                   \
  ROW(SINE, sine)                                   \
  ROW(SQRT, sqrt)                                   \
  ROW(SUBTRACT, subtract)                           \
  ROW(TAN, tan)                                     \
  ROW(TANH, tanh)

static const mp_ew_loop_t g_f32[MP_OP_COUNT] = {
#define ROW(op, loop) [MP_OP_##op] = loop##_F32,
    OPS(ROW)
#undef ROW
};
static const mp_ew_loop_t g_f64[MP_OP_COUNT] = {
#define ROW(op, loop) [MP_OP_##op] = loop##_F64,
    OPS(ROW)
#undef ROW
};

mp_ew_loop_t mp_ew_float_loop(mp_opcode_t code, mp_dtype_t dtype) {
  return dtype == MP_DTYPE_F32 ? g_f32[code] : dtype == MP_DTYPE_F64 ? g_f64[code] : NULL;
}

// ---- With scalars ----

MP_LOOP_RIGHT(maximum_F32, float, float, mp_max_f32(x, y))
MP_LOOP_RIGHT(maximum_F64, double, double, mp_max_f64(x, y))
MP_LOOP_RIGHT(minimum_F32, float, float, mp_min_f32(x, y))
MP_LOOP_RIGHT(minimum_F64, double, double, mp_min_f64(x, y))

#define CLAMP_LOOP(name, T, min, max)                                       \
  MP_VECTOR static void name(int64_t n, const void *const *in, void *out) { \
    const T x = *(const T *)in[0], z = *(const T *)in[2];                   \
    const T *b = in[1];                                                     \
    T *r = out;                                                             \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                        \
      T y = b[i];                                                           \
      r[i] = min(max(x, y), z);                                             \
    }                                                                       \
  }
CLAMP_LOOP(clamp_between_F32, float, mp_min_f32, mp_max_f32)
CLAMP_LOOP(clamp_between_F64, double, mp_min_f64, mp_max_f64)

mp_ew_loop_t mp_ew_bound_loop(mp_opcode_t code, mp_dtype_t dtype) {
  const bool is_f32 = dtype == MP_DTYPE_F32;
  if (!is_f32 && dtype != MP_DTYPE_F64) return NULL;
  switch (code) {
    case MP_OP_CLAMP:
      return is_f32 ? clamp_between_F32 : clamp_between_F64;
    case MP_OP_MAXIMUM:
      return is_f32 ? maximum_F32_right : maximum_F64_right;
    case MP_OP_MINIMUM:
      return is_f32 ? minimum_F32_right : minimum_F64_right;
    default:
      return NULL;
  }
}
