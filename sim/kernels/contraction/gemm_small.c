// Here, as in gemm_micro.c, the compiler may turn a * b + c into a fused operation where the
// machine has one.
#include "sim/kernels/contraction/gemm_small.h"

#include "sim/base/vector.h"
#include "sim/kernels/shape.h"

// MOST_K: the most products per element; MOST_RESULTS: the most results per batch.
enum { MOST_K = 8, MOST_RESULTS = 256 };

// The sums of K products each, for all rows and columns. K is a constant wherever this is called.
#define SMALL_BODY(NAME, TARGET, T)                                                        \
  TARGET __attribute__((always_inline)) static inline void NAME##_body(                    \
      const mp_gemm_small_t *sizes, const char *a, const char *b, T *out, const int K) {   \
    for (int64_t i = 0; i < sizes->m; ++i, a += sizes->a_row) {                            \
      T row[MOST_K];                                                                       \
      const char *column = b;                                                              \
      for (int k = 0; k < K; ++k) row[k] = *(const T *)(const void *)(a + k * sizes->a_k); \
      for (int64_t j = 0; j < sizes->n; ++j, column += sizes->b_row) {                     \
        T sum = 0;                                                                         \
        for (int k = 0; k < K; ++k) {                                                      \
          sum += *(const T *)(const void *)(column + k * sizes->b_k) * row[k];             \
        }                                                                                  \
        *out++ = sum;                                                                      \
      }                                                                                    \
    }                                                                                      \
  }
#define SMALL_K(NAME, TARGET, T, K)                                                         \
  TARGET static void NAME##_##K(const mp_gemm_small_t *sizes, const char *a, const char *b, \
                                void *out) {                                                \
    NAME##_body(sizes, a, b, out, K);                                                       \
  }
#define FOR_EACH_K(DO, ...) \
  DO(__VA_ARGS__, 1)        \
  DO(__VA_ARGS__, 2)        \
  DO(__VA_ARGS__, 3)        \
  DO(__VA_ARGS__, 4) DO(__VA_ARGS__, 5) DO(__VA_ARGS__, 6) DO(__VA_ARGS__, 7) DO(__VA_ARGS__, 8)
#define ENTRY(NAME, K) NAME##_##K,
#define SMALL(NAME, TARGET, T)         \
  SMALL_BODY(NAME, TARGET, T)          \
  FOR_EACH_K(SMALL_K, NAME, TARGET, T) \
  static const mp_gemm_small_run_t NAME[MOST_K] = {FOR_EACH_K(ENTRY, NAME)};

#define BASE
SMALL(f32_base, BASE, float)
SMALL(f64_base, BASE, double)
#ifdef __x86_64__
#define FUSED __attribute__((target("avx2,fma")))
SMALL(f32_fused, FUSED, float)
SMALL(f64_fused, FUSED, double)
#endif

static const mp_gemm_small_run_t *gemm_small_loops(mp_acc_t acc) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return acc == MP_ACC_F32 ? f32_fused : f64_fused;
  }
#endif
  return acc == MP_ACC_F32 ? f32_base : f64_base;
}

mp_gemm_small_run_t mp_gemm_small(const mp_gemm_t *gemm) {
  if (gemm->acc != MP_ACC_F32 && gemm->acc != MP_ACC_F64) return NULL;
  if (gemm->a.locate == NULL || gemm->b.locate == NULL || gemm->store != NULL) return NULL;
  if (gemm->k < 1 || gemm->k > MOST_K || MP_WORK(gemm->m, gemm->n, 1) > MOST_RESULTS) return NULL;
  if (gemm->tiles_m != 1 || gemm->tiles_n != 1) return NULL;
  // The blocked product is fast enough for whole vectors that are read in place.
  if (gemm->b.is_read && gemm->n >= MP_MICRO_MAX_COLUMNS / 2) return NULL;
  return gemm_small_loops(gemm->acc)[gemm->k - 1];
}
