// Loops over f32 and f64.
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/elementwise/math_f32.h"
#include "sim/kernels/elementwise/math_f64.h"
#include "sim/kernels/elementwise/math_wide.h"
#include "sim/kernels/loops.h"

#define MEANING_LOOP(kind, op, arity, name) \
  MP_LOOP##arity(op##_##name, MP_T(name), MP_T(name), MP_MEANING(name, MP_##kind##_##op))
MP_REAL_OPS(MEANING_LOOP, F32)
MP_REAL_OPS(MEANING_LOOP, F64)
MP_LOOP1(IS_FINITE_F32, float, uint8_t, MP_MEANING(F32, MP_REAL_IS_FINITE) != 0)
MP_LOOP1(IS_FINITE_F64, double, uint8_t, MP_MEANING(F64, MP_REAL_IS_FINITE) != 0)

#define FUNCTION_LOOPS(op, function)                       \
  MP_LOOP1(op##_F32, float, float, mp_##function##_f32(x)) \
  MP_LOOP1(op##_F64, double, double, mp_##function##_f64(x))
MP_REAL_FUNCTIONS(FUNCTION_LOOPS)

// The functions of the C library, and the f32 functions that are computed in double precision.
// X(op, number of operands, of f32, of f64)
#define LIBRARY_OPS(X)                         \
  X(ATAN2, 2, mp_atan2_f32(x, y), atan2(x, y)) \
  X(CBRT, 1, cbrtf(x), cbrt(x))                \
  X(IMAG, 1, ((void)x, 0), ((void)x, 0))       \
  X(POWER, 2, mp_pow_f32(x, y), pow(x, y))     \
  X(REAL, 1, x, x)                             \
  X(REMAINDER, 2, fmodf(x, y), fmod(x, y))
#define LIBRARY_LOOPS(op, arity, of_f32, of_f64) \
  MP_LOOP##arity(op##_F32, float, float, of_f32) MP_LOOP##arity(op##_F64, double, double, of_f64)
LIBRARY_OPS(LIBRARY_LOOPS)
MP_LOOP1(COSINE_F64, double, double, cos(x))
MP_LOOP1(SINE_F64, double, double, sin(x))
MP_LOOP1(TAN_F64, double, double, tan(x))

// The vectorised functions are for arguments that are not too large; libm computes the elements
// with larger ones.
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
TRIG_LOOP(COSINE, mp_cos_f32, cosf)
TRIG_LOOP(SINE, mp_sin_f32, sinf)
TRIG_LOOP(TAN, mp_tan_f32, tanf)

static const mp_ew_loop_t g_loops[MP_OP_COUNT][2] = {
#define ROW(op, ...)                       [MP_OP_##op] = {op##_F32, op##_F64},
#define MEANING_ROW(kind, op, arity, with) ROW(op, )
    MP_REAL_OPS(MEANING_ROW, ) MP_REAL_FUNCTIONS(ROW) LIBRARY_OPS(ROW) ROW(COSINE, )
        ROW(IS_FINITE, ) ROW(SINE, ) ROW(TAN, )
#undef ROW
};

mp_ew_loop_t mp_ew_float_loop(mp_opcode_t code, mp_dtype_t dtype) {
  if (dtype != MP_DTYPE_F32 && dtype != MP_DTYPE_F64) return NULL;
  return g_loops[code][dtype == MP_DTYPE_F64];
}

// ---- With scalars ----

#define BOUND_LOOPS(name, T)                                                                  \
  MP_LOOP_RIGHT(MAXIMUM_##name, T, T, MP_MEANING(name, MP_REAL_MAXIMUM))                      \
  MP_LOOP_RIGHT(MINIMUM_##name, T, T, MP_MEANING(name, MP_REAL_MINIMUM))                      \
  MP_VECTOR static void CLAMP_##name##_between(int64_t n, const void *const *in, void *out) { \
    const T x = *(const T *)in[0], z = *(const T *)in[2];                                     \
    const T *b = in[1];                                                                       \
    T *r = out;                                                                               \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                                          \
      T y = b[i];                                                                             \
      r[i] = MP_MEANING(name, MP_REAL_CLAMP);                                                 \
    }                                                                                         \
  }
BOUND_LOOPS(F32, float)
BOUND_LOOPS(F64, double)

mp_ew_loop_t mp_ew_bound_loop(mp_opcode_t code, mp_dtype_t dtype) {
  const bool is_f32 = dtype == MP_DTYPE_F32;
  if (!is_f32 && dtype != MP_DTYPE_F64) return NULL;
  switch (code) {
    case MP_OP_CLAMP:
      return is_f32 ? CLAMP_F32_between : CLAMP_F64_between;
    case MP_OP_MAXIMUM:
      return is_f32 ? MAXIMUM_F32_right : MAXIMUM_F64_right;
    case MP_OP_MINIMUM:
      return is_f32 ? MINIMUM_F32_right : MINIMUM_F64_right;
    default:
      return NULL;
  }
}
