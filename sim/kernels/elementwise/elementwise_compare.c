// Loops that compare and that select.
#include <complex.h>
#include <stddef.h>
#include <string.h>

#include "sim/base/table.h"
#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/loops.h"

typedef float _Complex c64_t;
typedef double _Complex c128_t;

// Element types of integers, and of booleans as U8.
#define INTEGERS(X) \
  X(S8, int8_t)     \
  X(S16, int16_t)   \
  X(S32, int32_t)   \
  X(S64, int64_t)   \
  X(U8, uint8_t)    \
  X(U16, uint16_t)  \
  X(U32, uint32_t)  \
  X(U64, uint64_t)
_Static_assert(MP_ROWS(INTEGERS) == MP_ROWS(MP_DTYPES_SIGNED) + MP_ROWS(MP_DTYPES_UNSIGNED),
               "loops for all integers");

// ---- compare ----

// Integers in the total order of floating-point numbers: their bits, in which those of the
// magnitude are inverted for negative numbers.
static inline int32_t elementwise_compare_total_f32(float x) {
  int32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits ^ (int32_t)((uint32_t)(bits >> 31) >> 1);
}
static inline int64_t elementwise_compare_total_f64(double x) {
  int64_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits ^ (int64_t)((uint64_t)(bits >> 63) >> 1);
}

static inline int elementwise_compare_complex_less(c128_t x, c128_t y) {
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
  MP_LOOP2(ge_##name, T, uint8_t, elementwise_compare_complex_less(y, x) || x == y) \
  MP_LOOP2(gt_##name, T, uint8_t, elementwise_compare_complex_less(y, x))           \
  MP_LOOP2(le_##name, T, uint8_t, elementwise_compare_complex_less(x, y) || x == y) \
  MP_LOOP2(lt_##name, T, uint8_t, elementwise_compare_complex_less(x, y))

INTEGERS(COMPARE)
COMPARE(F32, float)
COMPARE(F64, double)
COMPARE_TOTAL(total_F32, float, elementwise_compare_total_f32)
COMPARE_TOTAL(total_F64, double, elementwise_compare_total_f64)
COMPARE_COMPLEX(C64, c64_t)
COMPARE_COMPLEX(C128, c128_t)

#define DIRECTIONS(name)                                                       \
  {                                                                            \
    [MP_CMP_EQ] = eq_##name, [MP_CMP_NE] = ne_##name, [MP_CMP_GE] = ge_##name, \
    [MP_CMP_GT] = gt_##name, [MP_CMP_LE] = le_##name, [MP_CMP_LT] = lt_##name  \
  }

static const mp_ew_loop_t g_compare[MP_DTYPE_COUNT][6] = {
#define ROW(name, ...) [MP_DTYPE_##name] = DIRECTIONS(name),
    [MP_DTYPE_BOOL] = DIRECTIONS(U8),
    MP_DTYPES_SIGNED(ROW) MP_DTYPES_UNSIGNED(ROW) MP_DTYPES_FLOATS(ROW) MP_DTYPES_COMPLEX(ROW)
#undef ROW
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
