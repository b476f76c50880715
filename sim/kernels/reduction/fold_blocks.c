#include "sim/kernels/reduction/fold_blocks.h"

#include <math.h>
#include <string.h>

#include "sim/base/vector.h"
#include "sim/kernels/reduction/fold.h"
#include "sim/numeric/words.h"

// CHUNK: the elements that are prefetched at once; blocks of lanes are so short that each would
// wait for memory. GROUP: the lanes of a row that are folded together through all blocks.
enum { CHUNK = 64, GROUP = 128 };

#define HALVE(T, expr, half)                            \
  MP_INDEPENDENT for (int64_t k = 0; k < (half); ++k) { \
    const T x = acc[k], y = acc[k + (half)];            \
    acc[k] = (T)(expr);                                 \
  }

// Halves a block down to 64 elements at once, without storing the halves in between. `F` is a
// function of two elements.
#define HALVE_BLOCK(F)                                                          \
  MP_INDEPENDENT for (int64_t k = 0; k < 64; ++k) {                             \
    acc[k] = F(F(F(acc[k], acc[k + 256]), F(acc[k + 128], acc[k + 384])),       \
               F(F(acc[k + 64], acc[k + 320]), F(acc[k + 192], acc[k + 448]))); \
  }
// The same from 64 elements down to 16.
#define HALVE_CHUNK(F)                                               \
  MP_INDEPENDENT for (int64_t k = 0; k < 16; ++k) {                  \
    acc[k] = F(F(acc[k], acc[k + 32]), F(acc[k + 16], acc[k + 48])); \
  }

// The function of two elements.
#define FUNCTION(name, T, expr)                                               \
  static inline __attribute__((always_inline)) T name(const T x, const T y) { \
    return (T)(expr);                                                         \
  }

// block_...: a block's step. halves_...: halves of known sizes are whole vectors.
#define LOOPS(name, T, expr)                                                         \
  FUNCTION(of_block_##name, T, expr)                                                 \
  MP_VECTOR static void block_##name(void *out, const void *left, const void *right, \
                                     int64_t ahead) {                                \
    T *acc = out;                                                                    \
    const T *a = left, *b = right;                                                   \
    for (int64_t i = 0; i < MP_FOLD_LANES; i += CHUNK) {                             \
      mp_prefetch(b + i, ahead, CHUNK * (int64_t)sizeof(T));                         \
      MP_INDEPENDENT for (int64_t k = i; k < i + CHUNK; ++k) {                       \
        const T x = a[k], y = b[k];                                                  \
        acc[k] = (T)(expr);                                                          \
      }                                                                              \
    }                                                                                \
  }                                                                                  \
  MP_VECTOR static void halves_##name(void *out) {                                   \
    T *acc = out;                                                                    \
    HALVE_BLOCK(of_block_##name)                                                     \
    HALVE_CHUNK(of_block_##name)                                                     \
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

// ---- Rows ----

// The distance of prefetches from the current read, in bytes.
enum { AHEAD = 8192 };

#define AS_IT_IS(x) (x)
#define SETTLED(x)  ((x) != (x) ? NAN : (x))

static inline float fold_blocks_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static inline float fold_blocks_widen(uint16_t bf16) {
  return fold_blocks_of_bits((uint32_t)bf16 << 16);
}

// row_...: LOAD converts an element to an accumulator, END an accumulator to a result. Compilers
// keep `some` in registers. Once the number of lanes is a power of two, halves are whole vectors.
#define ROWS(name, IN, T, LOAD, expr, END)                                          \
  FUNCTION(of_row_##name, T, expr)                                                  \
  MP_VECTOR static void row_##name(const void *row, int64_t count, void *out) {     \
    const IN *in = row;                                                             \
    int64_t lanes = count < MP_FOLD_LANES ? count : MP_FOLD_LANES;                  \
    _Alignas(64) T acc[MP_FOLD_LANES];                                              \
    for (int64_t c = 0; c < MP_FOLD_LANES && lanes == MP_FOLD_LANES; c += GROUP) {  \
      T some[GROUP];                                                                \
      int64_t i = c + MP_FOLD_LANES;                                                \
      mp_prefetch(in + c, AHEAD, GROUP * (int64_t)sizeof(IN));                      \
      MP_INDEPENDENT for (int64_t k = 0; k < GROUP; ++k) some[k] = LOAD(in[c + k]); \
      for (; i + GROUP <= count; i += MP_FOLD_LANES) {                              \
        mp_prefetch(in + i, AHEAD, GROUP * (int64_t)sizeof(IN));                    \
        MP_INDEPENDENT for (int64_t k = 0; k < GROUP; ++k) {                        \
          const T x = some[k], y = LOAD(in[i + k]);                                 \
          some[k] = (T)(expr);                                                      \
        }                                                                           \
      }                                                                             \
      MP_INDEPENDENT for (int64_t k = 0; k < GROUP; ++k) acc[c + k] = some[k];      \
      MP_INDEPENDENT for (int64_t k = 0; k < count - i; ++k) {                      \
        const T x = acc[c + k], y = LOAD(in[i + k]);                                \
        acc[c + k] = (T)(expr);                                                     \
      }                                                                             \
    }                                                                               \
    if (lanes == MP_FOLD_LANES) {                                                   \
      HALVE_BLOCK(of_row_##name)                                                    \
      HALVE_CHUNK(of_row_##name)                                                    \
      lanes = 16;                                                                   \
    } else {                                                                        \
      MP_INDEPENDENT for (int64_t k = 0; k < lanes; ++k) acc[k] = LOAD(in[k]);      \
    }                                                                               \
    while ((lanes & (lanes - 1)) != 0) {                                            \
      const int64_t half = lanes / 2, rest = lanes - half;                          \
      MP_INDEPENDENT for (int64_t k = 0; k < half; ++k) {                           \
        const T x = acc[k], y = acc[k + rest];                                      \
        acc[k] = (T)(expr);                                                         \
      }                                                                             \
      lanes = rest;                                                                 \
    }                                                                               \
    if (lanes > 128) HALVE(T, expr, 128)                                            \
    if (lanes > 64) HALVE(T, expr, 64)                                              \
    if (lanes > 32) HALVE(T, expr, 32)                                              \
    if (lanes > 16) HALVE(T, expr, 16)                                              \
    if (lanes > 8) HALVE(T, expr, 8)                                                \
    if (lanes > 4) HALVE(T, expr, 4)                                                \
    if (lanes > 2) HALVE(T, expr, 2)                                                \
    if (lanes > 1) HALVE(T, expr, 1)                                                \
    const T all = acc[0];                                                           \
    const T end = END(all);                                                         \
    memcpy(out, &end, sizeof(T));                                                   \
  }

// Folds the upper half of the lanes of extreme_... into the lower one.
#define MEET(IS_BEYOND, half)                                       \
  MP_INDEPENDENT for (int64_t k = 0; k < (half); ++k) {             \
    const int64_t m = k + (half);                                   \
    acc[k] = acc[m] IS_BEYOND acc[k] ? acc[m] : acc[k];             \
    largest[k] = largest[m] > largest[k] ? largest[m] : largest[k]; \
  }

// extreme_...: the greatest or least element, by a plain comparison; false if that is not enough,
// because NaN or zeros of both signs may be among the elements, or if these are few. NaN is found
// by the bits of the largest magnitude.
#define EXTREMES(name, IN, T, U, LOAD, IS_BEYOND)                             \
  MP_VECTOR static bool extreme_##name(const IN *in, int64_t count, T *out) { \
    const T infinity = (T)INFINITY;                                           \
    T acc[CHUNK];                                                             \
    U largest[CHUNK], most;                                                   \
    if (count < CHUNK) return false;                                          \
    memcpy(&most, &infinity, sizeof(most));                                   \
    for (int64_t k = 0; k < CHUNK; ++k) acc[k] = LOAD(in[0]), largest[k] = 0; \
    for (int64_t i = 0; i < count; i += CHUNK) {                              \
      const IN *some = in + (count - i < CHUNK ? count - CHUNK : i);          \
      mp_prefetch(some, AHEAD, CHUNK *(int64_t)sizeof(IN));                   \
      MP_INDEPENDENT for (int64_t k = 0; k < CHUNK; ++k) {                    \
        const T x = LOAD(some[k]);                                            \
        U magnitude;                                                          \
        memcpy(&magnitude, &x, sizeof(magnitude));                            \
        magnitude &= ~(U)0 >> 1;                                              \
        acc[k] = x IS_BEYOND acc[k] ? x : acc[k];                             \
        largest[k] = magnitude > largest[k] ? magnitude : largest[k];         \
      }                                                                       \
    }                                                                         \
    MEET(IS_BEYOND, 32)                                                       \
    MEET(IS_BEYOND, 16)                                                       \
    MEET(IS_BEYOND, 8)                                                        \
    MEET(IS_BEYOND, 4)                                                        \
    MEET(IS_BEYOND, 2)                                                        \
    MEET(IS_BEYOND, 1)                                                        \
    *out = acc[0];                                                            \
    return largest[0] <= most && acc[0] != 0;                                 \
  }                                                                           \
  static void quick_##name(const void *row, int64_t count, void *out) {       \
    if (!extreme_##name(row, count, out)) row_##name(row, count, out);        \
  }

#define OF_FLOATS(X)                                                              \
  X(MAX, F32, float, float, uint32_t, AS_IT_IS, >, mp_max_f32(x, y))              \
  X(MIN, F32, float, float, uint32_t, AS_IT_IS, <, mp_min_f32(x, y))              \
  X(MAX, F64, double, double, uint64_t, AS_IT_IS, >, mp_max_f64(x, y))            \
  X(MIN, F64, double, double, uint64_t, AS_IT_IS, <, mp_min_f64(x, y))            \
  X(MAX, BF16, uint16_t, float, uint32_t, fold_blocks_widen, >, mp_max_f32(x, y)) \
  X(MIN, BF16, uint16_t, float, uint32_t, fold_blocks_widen, <, mp_min_f32(x, y))
#define DEFINE_EXTREME(kind, name, IN, T, U, LOAD, IS_BEYOND, expr) \
  ROWS(kind##_##name, IN, T, LOAD, expr, AS_IT_IS)                  \
  EXTREMES(kind##_##name, IN, T, U, LOAD, IS_BEYOND)
OF_FLOATS(DEFINE_EXTREME)

#define OTHERS(X)                                                  \
  X(ADD, F32, float, float, AS_IT_IS, x + y, SETTLED)              \
  X(ADD, F64, double, double, AS_IT_IS, x + y, SETTLED)            \
  X(ADD, BF16, uint16_t, float, fold_blocks_widen, x + y, SETTLED) \
  X(ADD, U32, uint32_t, uint32_t, AS_IT_IS, x + y, AS_IT_IS)       \
  X(MUL, F32, float, float, AS_IT_IS, x *y, SETTLED)               \
  X(MAX, S32, int32_t, int32_t, AS_IT_IS, x > y ? x : y, AS_IT_IS) \
  X(MIN, S32, int32_t, int32_t, AS_IT_IS, x < y ? x : y, AS_IT_IS) \
  X(AND, BOOL, uint8_t, uint8_t, AS_IT_IS, x &y, AS_IT_IS)         \
  X(OR, BOOL, uint8_t, uint8_t, AS_IT_IS, x | y, AS_IT_IS)
#define DEFINE_ROW(kind, name, IN, T, LOAD, expr, END) ROWS(kind##_##name, IN, T, LOAD, expr, END)
OTHERS(DEFINE_ROW)

void mp_fold_settle_nan(mp_reduce_kind_t kind, mp_dtype_t dtype, void *acc) {
  if (kind != MP_REDUCE_ADD && kind != MP_REDUCE_MUL) return;
  float single = 0;
  double both = 0;
  if (dtype == MP_DTYPE_F32) memcpy(&single, acc, sizeof(single));
  if (dtype == MP_DTYPE_F64) memcpy(&both, acc, sizeof(both));
  if (single != single) memcpy(acc, &(float){NAN}, sizeof(single));
  if (both != both) memcpy(acc, &(double){NAN}, sizeof(both));
}

// Halves of the even and of the odd lanes.
#define HALVE_PAIRS(half)                               \
  MP_INDEPENDENT for (int64_t k = 0; k < (half); ++k) { \
    even[k] = even[k] + even[k + (half)];               \
    odd[k] = odd[k] + odd[k + (half)];                  \
  }

// The same twice.
#define HALVE_QUARTERS(quarter)                                            \
  MP_INDEPENDENT for (int64_t k = 0; k < (quarter); ++k) {                 \
    const float *e = even + k, *o = odd + k;                               \
    even[k] = (e[0] + e[2 * (quarter)]) + (e[quarter] + e[3 * (quarter)]); \
    odd[k] = (o[0] + o[2 * (quarter)]) + (o[quarter] + o[3 * (quarter)]);  \
  }

typedef uint32_t __attribute__((may_alias, aligned(2))) pair_of_bf16_t;

// The sum of a row of bf16, with the bits of row_ADD_BF16. It takes two neighbours at a time,
// because a pair becomes two floats without moving elements. `count` pairs are a multiple of CHUNK,
// and at least all lanes.
MP_VECTOR static void fold_blocks_sum_pairs(const pair_of_bf16_t *in, int64_t count, float *out) {
  enum { PAIRS = MP_FOLD_LANES / 2 };
  _Alignas(64) float even[PAIRS], odd[PAIRS];
  for (int64_t c = 0; c < PAIRS; c += CHUNK) {
    float some[CHUNK], others[CHUNK];
    for (int64_t k = 0; k < CHUNK; ++k) {
      some[k] = fold_blocks_of_bits(in[c + k] << 16);
      others[k] = fold_blocks_of_bits(in[c + k] & 0xffff0000);
    }
    for (int64_t i = c + PAIRS; i < count; i += PAIRS) {
      mp_prefetch(in + i, AHEAD, CHUNK * (int64_t)sizeof(*in));
      MP_INDEPENDENT for (int64_t k = 0; k < CHUNK; ++k) {
        some[k] += fold_blocks_of_bits(in[i + k] << 16);
        others[k] += fold_blocks_of_bits(in[i + k] & 0xffff0000);
      }
    }
    memcpy(even + c, some, sizeof(some));
    memcpy(odd + c, others, sizeof(others));
  }
  HALVE_QUARTERS(64)
  HALVE_QUARTERS(16)
  HALVE_PAIRS(8)
  HALVE_PAIRS(4)
  HALVE_PAIRS(2)
  HALVE_PAIRS(1)
  const float sum = even[0] + odd[0];
  *out = SETTLED(sum);
}

static void fold_blocks_sum_bf16(const void *row, int64_t count, void *out) {
  if (count >= MP_FOLD_LANES && count % (2 * CHUNK) == 0) {
    fold_blocks_sum_pairs(row, count / 2, out);
  } else {
    row_ADD_BF16(row, count, out);
  }
}

mp_fold_row_loop_t mp_fold_row_loop(mp_reduce_kind_t kind, mp_dtype_t from, mp_dtype_t to) {
  if (to != (from == MP_DTYPE_BF16 ? MP_DTYPE_F32 : from)) return NULL;
  if (kind == MP_REDUCE_ADD && from == MP_DTYPE_S32) from = MP_DTYPE_U32;
  if (kind == MP_REDUCE_ADD && from == MP_DTYPE_BF16) return fold_blocks_sum_bf16;
#define FIND_EXTREME(k, name, IN, T, U, LOAD, IS_BEYOND, expr) \
  if (kind == MP_REDUCE_##k && from == MP_DTYPE_##name) return quick_##k##_##name;
  OF_FLOATS(FIND_EXTREME)
#define FIND_ROW(k, name, IN, T, LOAD, expr, END) \
  if (kind == MP_REDUCE_##k && from == MP_DTYPE_##name) return row_##k##_##name;
  OTHERS(FIND_ROW)
  return NULL;
}
