// The innermost kernels of matrix products, for each accumulation type and vector width.
//
// In this file, unlike in the rest of minipod, the compiler may turn a * b + c into a fused
// operation where the machine has one.
#include "sim/kernels/contraction/gemm_micro.h"

#include "sim/base/vector.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

// Rows of A are at equal distances. Only every fourth row has a pointer; the others are addressed
// from it by the distance, or two or three times the distance. Compilers would keep a pointer to
// each row, and there are not enough registers, so HIDE hides from them how the pointers are
// related.
#define HIDE(A, B, C, D, E) __asm__("" : "+r"(A), "+r"(B), "+r"(C), "+r"(D), "+r"(E))

// A tile of `rows` x `vectors` vectors of type V, which have elements of type T. Both numbers are
// constants wherever this is called. The accumulators stay in registers, so the machine must have
// at least rows * vectors + vectors + 1 of these.
#define MICRO_BODY(NAME, TARGET, T, BYTES, MULTIPLY_ADD, OFFSET)                              \
  typedef T NAME##_v __attribute__((vector_size(BYTES)));                                     \
  typedef T NAME##_u __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));      \
  TARGET __attribute__((always_inline)) static inline void NAME##_body(                       \
      const mp_micro_tile_t *tile, const int rows, const int vectors, const bool by_k) {      \
    NAME##_v sum[MP_MICRO_MAX_ROWS][2] = {0}, offset[2] = {0};                                \
    const int64_t row = tile->a_row, a_k = by_k ? (int64_t)sizeof(T) : tile->a_k;             \
    const int64_t b_k = tile->b_k, ahead = tile->b_ahead;                                     \
    int64_t row3 = 3 * row;                                                                   \
    _Pragma("GCC unroll 16") for (int i = 0; i < rows; ++i) {                                 \
      _Pragma("GCC unroll 2") for (int j = 0; j < vectors; ++j) {                             \
        __builtin_prefetch((const char *)tile->c + i * tile->c_row + j * BYTES, 1);           \
      }                                                                                       \
    }                                                                                         \
    const char *b = tile->b, *segment = tile->a;                                              \
    for (int64_t s = 0; s < tile->segments; ++s, segment += tile->a_segment) {                \
      const char *a0 = segment, *a4 = a0 + 4 * row, *a8 = a0 + 8 * row, *a12 = a0 + 12 * row; \
      for (int64_t p = tile->k; p > 0; --p, b += b_k) {                                       \
        NAME##_v bv[2];                                                                       \
        if (by_k) HIDE(a0, a4, a8, a12, row3);                                                \
        _Pragma("GCC unroll 2") for (int j = 0; j < vectors; ++j) {                           \
          bv[j] = *((const NAME##_u *)(const void *)b + j);                                   \
          OFFSET##_ADD(NAME##_v, offset[j], bv[j]);                                           \
          __builtin_prefetch(b + ahead + j * BYTES, 0, 2);                                    \
        }                                                                                     \
        _Pragma("GCC unroll 16") for (int i = 0; i < rows; ++i) {                             \
          const char *at = i < 4 ? a0 : i < 8 ? a4 : i < 12 ? a8 : a12;                       \
          at = by_k ? at + (i % 4 == 3 ? row3 : i % 4 * row) : a0 + i * (int)sizeof(T);       \
          const T av = *(const T *)(const void *)at;                                          \
          _Pragma("GCC unroll 2") for (int j = 0; j < vectors; ++j) {                         \
            MULTIPLY_ADD(NAME##_v, sum[i][j], av, bv[j]);                                     \
          }                                                                                   \
        }                                                                                     \
        a0 += a_k;                                                                            \
        if (by_k) a4 += a_k, a8 += a_k, a12 += a_k;                                           \
      }                                                                                       \
    }                                                                                         \
    _Pragma("GCC unroll 16") for (int i = 0; i < rows; ++i) {                                 \
      _Pragma("GCC unroll 2") for (int j = 0; j < vectors; ++j) {                             \
        NAME##_u *to = (NAME##_u *)(void *)((char *)tile->c + i * tile->c_row) + j;           \
        OFFSET##_TAKE(sum[i][j], offset[j]);                                                  \
        if (tile->accumulate) sum[i][j] += *to;                                               \
        *to = sum[i][j];                                                                      \
      }                                                                                       \
    }                                                                                         \
  }

// The four kernels for one number of rows.
#define MICRO_ROWS(NAME, TARGET, R)                              \
  TARGET static void NAME##_r##R##x1(const mp_micro_tile_t *t) { \
    NAME##_body(t, R, 1, false);                                 \
  }                                                              \
  TARGET static void NAME##_r##R##x2(const mp_micro_tile_t *t) { \
    NAME##_body(t, R, 2, false);                                 \
  }                                                              \
  TARGET static void NAME##_k##R##x1(const mp_micro_tile_t *t) { \
    NAME##_body(t, R, 1, true);                                  \
  }                                                              \
  TARGET static void NAME##_k##R##x2(const mp_micro_tile_t *t) { \
    NAME##_body(t, R, 2, true);                                  \
  }
#define UP_TO_4(DO, ...) DO(__VA_ARGS__, 1) DO(__VA_ARGS__, 2) DO(__VA_ARGS__, 3) DO(__VA_ARGS__, 4)
#define UP_TO_6(DO, ...) UP_TO_4(DO, __VA_ARGS__) DO(__VA_ARGS__, 5) DO(__VA_ARGS__, 6)
#define UP_TO_8(DO, ...) UP_TO_6(DO, __VA_ARGS__) DO(__VA_ARGS__, 7) DO(__VA_ARGS__, 8)
#define UP_TO_12(DO, ...)  \
  UP_TO_8(DO, __VA_ARGS__) \
  DO(__VA_ARGS__, 9) DO(__VA_ARGS__, 10) DO(__VA_ARGS__, 11) DO(__VA_ARGS__, 12)
#define UP_TO_14(DO, ...) UP_TO_12(DO, __VA_ARGS__) DO(__VA_ARGS__, 13) DO(__VA_ARGS__, 14)
#define ENTRY_R(NAME, R)  {NAME##_r##R##x1, NAME##_r##R##x2},
#define ENTRY_K(NAME, R)  {NAME##_k##R##x1, NAME##_k##R##x2},

// All kernels of one type and vector width, and their table.
#define MICRO(NAME, TARGET, T, BYTES, ROWS, MULTIPLY_ADD, OFFSET)         \
  MICRO_BODY(NAME, TARGET, T, BYTES, MULTIPLY_ADD, OFFSET)                \
  UP_TO_##ROWS(MICRO_ROWS, NAME, TARGET) static const mp_micro_t NAME = { \
      ROWS, BYTES / sizeof(T), {{UP_TO_##ROWS(ENTRY_R, NAME)}, {UP_TO_##ROWS(ENTRY_K, NAME)}}};

// In quads, 128 times the sum of B's elements is added to each sum. That offset is summed
// separately and subtracted in the end.
#define NO_OFFSET_ADD(V, OFFSET, B) ((void)0)
#define NO_OFFSET_TAKE(SUM, OFFSET) ((void)(OFFSET))

#define PLAIN(V, SUM, A, B) (SUM) += (B) * (A)

#define BASE
MICRO(f32_base, BASE, float, 16, 4, PLAIN, NO_OFFSET)
MICRO(f64_base, BASE, double, 16, 4, PLAIN, NO_OFFSET)
MICRO(u32_base, BASE, uint32_t, 16, 4, PLAIN, NO_OFFSET)
MICRO(u64_base, BASE, uint64_t, 16, 4, PLAIN, NO_OFFSET)

#ifdef __x86_64__
#define PAIRS_BASE(V, SUM, A, B) (SUM) += (V)_mm_madd_epi16(_mm_set1_epi32((int)(A)), (__m128i)(B))
#define PAIRS_AVX2(V, SUM, A, B) \
  (SUM) += (V)_mm256_madd_epi16(_mm256_set1_epi32((int)(A)), (__m256i)(B))
#define PAIRS_AVX512(V, SUM, A, B) \
  (SUM) += (V)_mm512_madd_epi16(_mm512_set1_epi32((int)(A)), (__m512i)(B))
#define PAIRS_VNNI(V, SUM, A, B) \
  (SUM) = (V)_mm512_dpwssd_epi32((__m512i)(SUM), _mm512_set1_epi32((int)(A)), (__m512i)(B))
#define QUADS_VNNI(V, SUM, A, B) \
  (SUM) = (V)_mm512_dpbusd_epi32((__m512i)(SUM), _mm512_set1_epi32((int)(A)), (__m512i)(B))
#define QUADS_OFFSET_ADD(V, OFFSET, B) QUADS_VNNI(V, OFFSET, 0x80808080u, B)
#define QUADS_OFFSET_TAKE(SUM, OFFSET) (SUM) -= (OFFSET)
MICRO(pairs_base, BASE, uint32_t, 16, 4, PAIRS_BASE, NO_OFFSET)

#define AVX2 __attribute__((target("avx2,fma")))
#define VNNI __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx512vnni,fma")))
MICRO(f32_avx2, AVX2, float, 32, 6, PLAIN, NO_OFFSET)
MICRO(f64_avx2, AVX2, double, 32, 6, PLAIN, NO_OFFSET)
MICRO(u32_avx2, AVX2, uint32_t, 32, 4, PLAIN, NO_OFFSET)
MICRO(u64_avx2, AVX2, uint64_t, 32, 4, PLAIN, NO_OFFSET)
MICRO(pairs_avx2, AVX2, uint32_t, 32, 4, PAIRS_AVX2, NO_OFFSET)
MICRO(f32_avx512, MP_AVX512, float, 64, 14, PLAIN, NO_OFFSET)
MICRO(f64_avx512, MP_AVX512, double, 64, 14, PLAIN, NO_OFFSET)
MICRO(u32_avx512, MP_AVX512, uint32_t, 64, 8, PLAIN, NO_OFFSET)
MICRO(u64_avx512, MP_AVX512, uint64_t, 64, 8, PLAIN, NO_OFFSET)
MICRO(pairs_avx512, MP_AVX512, uint32_t, 64, 8, PAIRS_AVX512, NO_OFFSET)
MICRO(pairs_vnni, VNNI, uint32_t, 64, 14, PAIRS_VNNI, NO_OFFSET)
MICRO(quads_vnni, VNNI, uint32_t, 64, 12, QUADS_VNNI, QUADS_OFFSET)

static const mp_micro_t *const avx2[MP_ACC_COUNT] = {&f32_avx2, &f64_avx2, &u32_avx2, &u64_avx2,
                                                     &pairs_avx2};
static const mp_micro_t *const avx512[MP_ACC_COUNT] = {&f32_avx512, &f64_avx512, &u32_avx512,
                                                       &u64_avx512, &pairs_avx512};
#else
// The low and the high halves of both sides, as signed numbers.
#define PAIRS_BASE(V, SUM, A, B)                                                     \
  do {                                                                               \
    typedef int32_t signed_v __attribute__((vector_size(16)));                       \
    const V low = (V)((signed_v)((B) << 16) >> 16), high = (V)((signed_v)(B) >> 16); \
    (SUM) += low * (uint32_t)(int16_t)(A) + high * (uint32_t)((int32_t)(A) >> 16);   \
  } while (0)
MICRO(pairs_base, BASE, uint32_t, 16, 4, PAIRS_BASE, NO_OFFSET)
#endif

static const mp_micro_t *const base[MP_ACC_COUNT] = {&f32_base, &f64_base, &u32_base, &u64_base,
                                                     &pairs_base};

const mp_micro_t *mp_gemm_micro(mp_acc_t acc) {
#ifdef __x86_64__
  if (mp_has_avx512()) {
    const bool has_vnni = __builtin_cpu_supports("avx512vnni");
    if (acc == MP_ACC_PAIRS && has_vnni) return &pairs_vnni;
    if (acc == MP_ACC_QUADS && has_vnni) return &quads_vnni;
    return avx512[acc];
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2[acc];
#endif
  return base[acc];
}
