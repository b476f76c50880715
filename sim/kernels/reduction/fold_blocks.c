#include "sim/kernels/reduction/fold_blocks.h"

#include "sim/base/vector.h"
#include "sim/kernels/elementwise/extreme.h"
#include "sim/kernels/reduction/fold.h"

// CHUNK: the elements for which memory is asked ahead at once.
enum { CHUNK = 64 };

#define HALVE(T, expr, half)                            \
  MP_INDEPENDENT for (int64_t k = 0; k < (half); ++k) { \
    const T x = acc[k], y = acc[k + (half)];            \
    acc[k] = (T)(expr);                                 \
  }

// block_...: a block's step. halves_...: halves of known sizes are whole vectors.
#define LOOPS(name, T, expr)                                                         \
  MP_VECTOR static void block_##name(void *out, const void *left, const void *right, \
                                     int64_t ahead) {                                \
    T *acc = out;                                                                    \
    const T *a = left, *b = right;                                                   \
    for (int64_t i = 0; i < MP_FOLD_LANES; i += CHUNK) {                             \
      mp_fold_prefetch(b + i, ahead, CHUNK * (int64_t)sizeof(T));                    \
      MP_INDEPENDENT for (int64_t k = i; k < i + CHUNK; ++k) {                       \
        const T x = a[k], y = b[k];                                                  \
        acc[k] = (T)(expr);                                                          \
      }                                                                              \
    }                                                                                \
  }                                                                                  \
  MP_VECTOR static void halves_##name(void *out) {                                   \
    T *acc = out;                                                                    \
    HALVE(T, expr, 256)                                                              \
    HALVE(T, expr, 128)                                                              \
    HALVE(T, expr, 64)                                                               \
    HALVE(T, expr, 32)                                                               \
    HALVE(T, expr, 16)                                                               \
    HALVE(T, expr, 8)                                                                \
    HALVE(T, expr, 4)                                                                \
    HALVE(T, expr, 2)                                                                \
    HALVE(T, expr, 1)                                                                \
  }

_Static_assert(MP_FOLD_LANES == 512, "the halves of a block are 256, 128, ...");

// The kinds and computing types that have loops; signed and unsigned sums are the same.
#define ALL(X)                          \
  X(ADD, F32, float, x + y)             \
  X(ADD, F64, double, x + y)            \
  X(ADD, U32, uint32_t, x + y)          \
  X(ADD, U64, uint64_t, x + y)          \
  X(MUL, F32, float, x *y)              \
  X(MUL, F64, double, x *y)             \
  X(MAX, F32, float, mp_max_f32(x, y))  \
  X(MAX, F64, double, mp_max_f64(x, y)) \
  X(MAX, S32, int32_t, x > y ? x : y)   \
  X(MIN, F32, float, mp_min_f32(x, y))  \
  X(MIN, F64, double, mp_min_f64(x, y)) \
  X(MIN, S32, int32_t, x < y ? x : y)   \
  X(AND, BOOL, uint8_t, x &y)           \
  X(OR, BOOL, uint8_t, x | y)
#define DEFINE(kind, name, T, expr) LOOPS(kind##_##name, T, expr)
ALL(DEFINE)

mp_fold_blocks_t mp_fold_blocks(mp_reduce_kind_t kind, mp_dtype_t dtype) {
  if (kind == MP_REDUCE_ADD && dtype == MP_DTYPE_S32) dtype = MP_DTYPE_U32;
  if (kind == MP_REDUCE_ADD && dtype == MP_DTYPE_S64) dtype = MP_DTYPE_U64;
#define FIND(k, name, T, expr)                           \
  if (kind == MP_REDUCE_##k && dtype == MP_DTYPE_##name) \
    return (mp_fold_blocks_t){block_##k##_##name, halves_##k##_##name};
  ALL(FIND)
  return (mp_fold_blocks_t){0};
}
