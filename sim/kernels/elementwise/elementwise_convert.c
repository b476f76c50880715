// Loops that convert between the computing types, that compare, and that select.
#include <complex.h>
#include <stddef.h>
#include <string.h>

#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/loops.h"
#include "sim/numeric/float.h"

typedef float _Complex c64_t;
typedef double _Complex c128_t;

// ---- convert ----

#define INTEGERS(X)                     \
  X(S8, int8_t, INT8_MIN, INT8_MAX)     \
  X(S16, int16_t, INT16_MIN, INT16_MAX) \
  X(S32, int32_t, INT32_MIN, INT32_MAX) \
  X(S64, int64_t, INT64_MIN, INT64_MAX) \
  X(U8, uint8_t, 0, UINT8_MAX)          \
  X(U16, uint16_t, 0, UINT16_MAX)       \
  X(U32, uint32_t, 0, UINT32_MAX)       \
  X(U64, uint64_t, 0, UINT64_MAX)

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

#define FROM_INTEGER(name, T)                  \
  MP_LOOP1(name##_to_BOOL, T, uint8_t, x != 0) \
  MP_LOOP1(name##_to_S8, T, int8_t, x)         \
  MP_LOOP1(name##_to_S16, T, int16_t, x)       \
  MP_LOOP1(name##_to_S32, T, int32_t, x)       \
  MP_LOOP1(name##_to_S64, T, int64_t, x)       \
  MP_LOOP1(name##_to_U8, T, uint8_t, x)        \
  MP_LOOP1(name##_to_U16, T, uint16_t, x)      \
  MP_LOOP1(name##_to_U32, T, uint32_t, x)      \
  MP_LOOP1(name##_to_U64, T, uint64_t, x)      \
  MP_LOOP1(name##_to_F32, T, float, x)         \
  MP_LOOP1(name##_to_F64, T, double, x)        \
  MP_LOOP1(name##_to_C64, T, c64_t, (float)x)  \
  MP_LOOP1(name##_to_C128, T, c128_t, (double)x)

// `as` saturates, and `real` is the number itself or the real part of a complex one, which alone
// counts, also for a boolean.
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

// clang-format changes these macros anew each time it runs.
// clang-format off
static const mp_ew_loop_t g_convert[MP_DTYPE_COUNT][MP_DTYPE_COUNT] = {
#define CELL(from, to) [MP_DTYPE_##from][MP_DTYPE_##to] = from##_to_##to,
#define ROW(from)                                                                       \
  CELL(from, BOOL) CELL(from, S8) CELL(from, S16) CELL(from, S32) CELL(from, S64)       \
  CELL(from, U8) CELL(from, U16) CELL(from, U32) CELL(from, U64)                        \
  CELL(from, F32) CELL(from, F64) CELL(from, C64) CELL(from, C128)
    ROW(BOOL) ROW(S8) ROW(S16) ROW(S32) ROW(S64) ROW(U8) ROW(U16) ROW(U32) ROW(U64)
    ROW(F32) ROW(F64) ROW(C64) ROW(C128)
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

// ---- compare ----

// Integers in the total order of floating-point numbers: their bits, in which those of the
// magnitude are inverted for negative numbers.
static inline int32_t elementwise_convert_total_f32(float x) {
  int32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits ^ (int32_t)((uint32_t)(bits >> 31) >> 1);
}
static inline int64_t elementwise_convert_total_f64(double x) {
  int64_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits ^ (int64_t)((uint64_t)(bits >> 63) >> 1);
}

static inline int elementwise_convert_complex_less(c128_t x, c128_t y) {
  return creal(x) < creal(y) || (creal(x) == creal(y) && cimag(x) < cimag(y));
}

#define COMPARE(name, T)                  \
  MP_LOOP2(eq_##name, T, uint8_t, x == y) \
  MP_LOOP2(ne_##name, T, uint8_t, x != y) \
  MP_LOOP2(ge_##name, T, uint8_t, x >= y) \
  MP_LOOP2(gt_##name, T, uint8_t, x > y)  \
  MP_LOOP2(le_##name, T, uint8_t, x <= y) \
  MP_LOOP2(lt_##name, T, uint8_t, x < y)
#define COMPARE_TOTAL(name, T, key)                 \
  MP_LOOP2(eq_##name, T, uint8_t, key(x) == key(y)) \
  MP_LOOP2(ne_##name, T, uint8_t, key(x) != key(y)) \
  MP_LOOP2(ge_##name, T, uint8_t, key(x) >= key(y)) \
  MP_LOOP2(gt_##name, T, uint8_t, key(x) > key(y))  \
  MP_LOOP2(le_##name, T, uint8_t, key(x) <= key(y)) \
  MP_LOOP2(lt_##name, T, uint8_t, key(x) < key(y))
#define COMPARE_COMPLEX(name, T)                                                    \
  MP_LOOP2(eq_##name, T, uint8_t, x == y)                                           \
  MP_LOOP2(ne_##name, T, uint8_t, x != y)                                           \
  MP_LOOP2(ge_##name, T, uint8_t, elementwise_convert_complex_less(y, x) || x == y) \
  MP_LOOP2(gt_##name, T, uint8_t, elementwise_convert_complex_less(y, x))           \
  MP_LOOP2(le_##name, T, uint8_t, elementwise_convert_complex_less(x, y) || x == y) \
  MP_LOOP2(lt_##name, T, uint8_t, elementwise_convert_complex_less(x, y))

#define COMPARE_ROW(name, T, least, most) COMPARE(name, T)
INTEGERS(COMPARE_ROW)
COMPARE(F32, float)
COMPARE(F64, double)
COMPARE_TOTAL(total_F32, float, elementwise_convert_total_f32)
COMPARE_TOTAL(total_F64, double, elementwise_convert_total_f64)
COMPARE_COMPLEX(C64, c64_t)
COMPARE_COMPLEX(C128, c128_t)

#define DIRECTIONS(name)                                                       \
  {                                                                            \
    [MP_CMP_EQ] = eq_##name, [MP_CMP_NE] = ne_##name, [MP_CMP_GE] = ge_##name, \
    [MP_CMP_GT] = gt_##name, [MP_CMP_LE] = le_##name, [MP_CMP_LT] = lt_##name  \
  }

static const mp_ew_loop_t g_compare[MP_DTYPE_COUNT][6] = {
    [MP_DTYPE_BOOL] = DIRECTIONS(U8),   [MP_DTYPE_S8] = DIRECTIONS(S8),
    [MP_DTYPE_S16] = DIRECTIONS(S16),   [MP_DTYPE_S32] = DIRECTIONS(S32),
    [MP_DTYPE_S64] = DIRECTIONS(S64),   [MP_DTYPE_U8] = DIRECTIONS(U8),
    [MP_DTYPE_U16] = DIRECTIONS(U16),   [MP_DTYPE_U32] = DIRECTIONS(U32),
    [MP_DTYPE_U64] = DIRECTIONS(U64),   [MP_DTYPE_F32] = DIRECTIONS(F32),
    [MP_DTYPE_F64] = DIRECTIONS(F64),   [MP_DTYPE_C64] = DIRECTIONS(C64),
    [MP_DTYPE_C128] = DIRECTIONS(C128),
};
static const mp_ew_loop_t g_total_f32[6] = DIRECTIONS(total_F32);
static const mp_ew_loop_t g_total_f64[6] = DIRECTIONS(total_F64);

mp_ew_loop_t mp_ew_compare_loop(uint32_t direction, bool total, mp_dtype_t dtype) {
  if (direction > MP_CMP_LT) return NULL;
  if (total && dtype == MP_DTYPE_F32) return g_total_f32[direction];
  if (total && dtype == MP_DTYPE_F64) return g_total_f64[direction];
  return g_compare[dtype][direction];
}

// ---- select ----

typedef struct {
  uint64_t words[2];
} bytes16_t;

#define SELECT(bytes, T)                                                              \
  MP_VECTOR static void select_##bytes(int64_t n, const void *const *in, void *out) { \
    const uint8_t *which = in[0];                                                     \
    const T *a = in[1], *b = in[2];                                                   \
    T *r = out;                                                                       \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                                  \
      T x = a[i], y = b[i];                                                           \
      r[i] = which[i] != 0 ? x : y;                                                   \
    }                                                                                 \
  }
SELECT(1, uint8_t)
SELECT(2, uint16_t)
SELECT(4, uint32_t)
SELECT(8, uint64_t)
SELECT(16, bytes16_t)

mp_ew_loop_t mp_ew_select_loop(size_t size) {
  switch (size) {
    case 1:
      return select_1;
    case 2:
      return select_2;
    case 4:
      return select_4;
    case 8:
      return select_8;
    case 16:
      return select_16;
    default:
      return NULL;
  }
}
