// Loops that convert between the computing types.
#include <stddef.h>

#include "sim/base/table.h"
#include "sim/kernels/elementwise/complex_type.h"
#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/loops.h"
#include "sim/numeric/float.h"

#define INTEGERS(X)                     \
  X(S8, int8_t, INT8_MIN, INT8_MAX)     \
  X(S16, int16_t, INT16_MIN, INT16_MAX) \
  X(S32, int32_t, INT32_MIN, INT32_MAX) \
  X(S64, int64_t, INT64_MIN, INT64_MAX) \
  X(U8, uint8_t, 0, UINT8_MAX)          \
  X(U16, uint16_t, 0, UINT16_MAX)       \
  X(U32, uint32_t, 0, UINT32_MAX)       \
  X(U64, uint64_t, 0, UINT64_MAX)
_Static_assert(MP_ROWS(INTEGERS) == MP_ROWS(MP_DTYPES_SIGNED) + MP_ROWS(MP_DTYPES_UNSIGNED),
               "loops for all integers");

// The bounds are compared in the floating-point type. If the largest integer is no number of that
// type, it is rounded to the power of two above it, which does not fit either.
#define SATURATE(name, T, least, most)                                                        \
  static inline T f32_as_##name(float x) {                                                    \
    return x != x ? 0 : x <= (float)(least) ? (least) : x >= (float)(most) ? (most) : (T)x;   \
  }                                                                                           \
  static inline T f64_as_##name(double x) {                                                   \
    return x != x ? 0 : x <= (double)(least) ? (least) : x >= (double)(most) ? (most) : (T)x; \
  }
INTEGERS(SATURATE)

// An unsigned integer has the bits of the signed one of its size.
#define FROM_INTEGER(name, T)                  \
  MP_LOOP1(name##_to_BOOL, T, uint8_t, x != 0) \
  MP_LOOP1(name##_to_S8, T, int8_t, x)         \
  MP_LOOP1(name##_to_S16, T, int16_t, x)       \
  MP_LOOP1(name##_to_S32, T, int32_t, x)       \
  MP_LOOP1(name##_to_S64, T, int64_t, x)       \
  MP_LOOP1(name##_to_F32, T, float, x)         \
  MP_LOOP1(name##_to_F64, T, double, x)        \
  MP_LOOP1(name##_to_C64, T, c64_t, (float)x)  \
  MP_LOOP1(name##_to_C128, T, c128_t, (double)x)

// `as` saturates. `real` is the number itself, or the real part of a complex number; the imaginary
// part never counts, not even for a boolean.
#define FROM_FLOAT(name, T, as, real)                  \
  MP_LOOP1(name##_to_BOOL, T, uint8_t, (real) != 0)    \
  MP_LOOP1(name##_to_S8, T, int8_t, as##_S8(real))     \
  MP_LOOP1(name##_to_S16, T, int16_t, as##_S16(real))  \
  MP_LOOP1(name##_to_S32, T, int32_t, as##_S32(real))  \
  MP_LOOP1(name##_to_S64, T, int64_t, as##_S64(real))  \
  MP_LOOP1(name##_to_U8, T, uint8_t, as##_U8(real))    \
  MP_LOOP1(name##_to_U16, T, uint16_t, as##_U16(real)) \
  MP_LOOP1(name##_to_U32, T, uint32_t, as##_U32(real)) \
  MP_LOOP1(name##_to_U64, T, uint64_t, as##_U64(real)) \
  MP_LOOP1(name##_to_F32, T, float, real)              \
  MP_LOOP1(name##_to_F64, T, double, real)             \
  MP_LOOP1(name##_to_C64, T, c64_t, x)                 \
  MP_LOOP1(name##_to_C128, T, c128_t, x)

#define FROM_INTEGER_ROW(name, T, least, most) FROM_INTEGER(name, T)
FROM_INTEGER(BOOL, uint8_t)
INTEGERS(FROM_INTEGER_ROW)
FROM_FLOAT(F32, float, f32_as, x)
FROM_FLOAT(F64, double, f64_as, x)
FROM_FLOAT(C64, c64_t, f32_as, crealf(x))
FROM_FLOAT(C128, c128_t, f64_as, creal(x))

MP_LOOP1(f64_to_odd, double, float, mp_float_from_f64_to_odd(x))
MP_LOOP1(c128_to_odd, c128_t, float, mp_float_from_f64_to_odd(creal(x)))

// clang-format changes these macros again each time it runs.
// clang-format off
static const mp_ew_loop_t g_convert[MP_DTYPE_COUNT][MP_DTYPE_COUNT] = {
#define CELL(from, to, loop) [MP_DTYPE_##from][MP_DTYPE_##to] = from##_to_##loop,
#define ROW(from, u8, u16, u32, u64)                                                    \
  CELL(from, BOOL, BOOL)                                                                \
  CELL(from, S8, S8) CELL(from, S16, S16) CELL(from, S32, S32) CELL(from, S64, S64)     \
  CELL(from, U8, u8) CELL(from, U16, u16) CELL(from, U32, u32) CELL(from, U64, u64)     \
  CELL(from, F32, F32) CELL(from, F64, F64) CELL(from, C64, C64) CELL(from, C128, C128)
#define INTEGER_ROW(from, ...) ROW(from, S8, S16, S32, S64)
#define FLOAT_ROW(from) ROW(from, U8, U16, U32, U64)
    INTEGER_ROW(BOOL, ) INTEGERS(INTEGER_ROW)
    FLOAT_ROW(F32) FLOAT_ROW(F64) FLOAT_ROW(C64) FLOAT_ROW(C128)
#undef FLOAT_ROW
#undef INTEGER_ROW
#undef ROW
#undef CELL
};
// clang-format on

mp_ew_loop_t mp_ew_convert_loop(mp_dtype_t from, mp_dtype_t to) {
  return g_convert[from][to];
}

mp_ew_loop_t mp_ew_convert_to_odd_loop(mp_dtype_t from) {
  return from == MP_DTYPE_F64 ? f64_to_odd : from == MP_DTYPE_C128 ? c128_to_odd : NULL;
}
