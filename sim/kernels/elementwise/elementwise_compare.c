// Loops that compare and that select.
#include <stddef.h>
#include <string.h>

#include "sim/kernels/elementwise/complex_type.h"
#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/loops.h"
#include "sim/numeric/words.h"

// ---- compare ----

// Integers in the total order of floating-point numbers: their bits, in which those of the
// magnitude are inverted for negative numbers.
static inline int32_t elementwise_compare_total_F32(float x) {
  int32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits ^ (int32_t)((uint32_t)(bits >> 31) >> 1);
}
static inline int64_t elementwise_compare_total_F64(double x) {
  int64_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits ^ (int64_t)((uint64_t)(bits >> 63) >> 1);
}

// Loops of all directions: in the order of the type, in the total order, and of complex numbers.
#define LOOP(direction, operator, name) \
  MP_LOOP2(direction##_##name, MP_T(name), uint8_t, x operator y)
#define TOTAL_LOOP(direction, operator, name)             \
  MP_LOOP2(direction##_TOTAL_##name, MP_T(name), uint8_t, \
           elementwise_compare_total_##name(x) operator elementwise_compare_total_##name(y))
#define COMPLEX_LOOPS(name, T)                                     \
  MP_LOOP2(EQ_##name, T, uint8_t, x == y)                          \
  MP_LOOP2(NE_##name, T, uint8_t, x != y)                          \
  MP_LOOP2(GE_##name, T, uint8_t, mp_complex_less(y, x) || x == y) \
  MP_LOOP2(GT_##name, T, uint8_t, mp_complex_less(y, x))           \
  MP_LOOP2(LE_##name, T, uint8_t, mp_complex_less(x, y) || x == y) \
  MP_LOOP2(LT_##name, T, uint8_t, mp_complex_less(x, y))
#define LOOPS(name, ...) MP_DIRECTIONS(LOOP, name)

MP_DTYPES_SIGNED(LOOPS)
MP_DTYPES_UNSIGNED(LOOPS)
MP_DTYPES_FLOATS(LOOPS)
MP_DIRECTIONS(TOTAL_LOOP, F32)
MP_DIRECTIONS(TOTAL_LOOP, F64)
COMPLEX_LOOPS(C64, c64_t)
COMPLEX_LOOPS(C128, c128_t)

#define ENTRY(direction, operator, name) [MP_CMP_##direction] = direction##_##name,
#define ROW(name, ...)                   [MP_DTYPE_##name] = {MP_DIRECTIONS(ENTRY, name)},
static const mp_ew_loop_t g_compare[MP_DTYPE_COUNT][MP_CMP_COUNT] = {
    [MP_DTYPE_BOOL] = {MP_DIRECTIONS(ENTRY, U8)},
    MP_DTYPES_SIGNED(ROW) MP_DTYPES_UNSIGNED(ROW) MP_DTYPES_FLOATS(ROW) MP_DTYPES_COMPLEX(ROW)};
static const mp_ew_loop_t g_total_f32[MP_CMP_COUNT] = {MP_DIRECTIONS(ENTRY, TOTAL_F32)};
static const mp_ew_loop_t g_total_f64[MP_CMP_COUNT] = {MP_DIRECTIONS(ENTRY, TOTAL_F64)};

mp_ew_loop_t mp_ew_compare_loop(uint32_t direction, bool total, mp_dtype_t dtype) {
  if (direction >= MP_CMP_COUNT) return NULL;
  if (total && dtype == MP_DTYPE_F32) return g_total_f32[direction];
  if (total && dtype == MP_DTYPE_F64) return g_total_f64[direction];
  return g_compare[dtype][direction];
}

// ---- select ----

typedef struct {
  uint64_t words[2];
} bytes16_t;

#define SELECT_LOOP(bytes, T)                                                         \
  MP_VECTOR static void select_##bytes(int64_t n, const void *const *in, void *out) { \
    const uint8_t *which = in[0];                                                     \
    const T *a = in[1], *b = in[2];                                                   \
    T *r = out;                                                                       \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                                  \
      T x = a[i], y = b[i];                                                           \
      r[i] = which[i] != 0 ? x : y;                                                   \
    }                                                                                 \
  }
SELECT_LOOP(1, uint8_t)
SELECT_LOOP(2, uint16_t)
SELECT_LOOP(4, uint32_t)
SELECT_LOOP(8, uint64_t)
SELECT_LOOP(16, bytes16_t)

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
