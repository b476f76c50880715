// The innermost kernels of matrix products, for each accumulation type and vector width.
//
// In this file, unlike in the rest of minipod, the compiler may turn a * b + c into a fused
// operation where the machine has one.
#include "sim/kernels/contraction/gemm.h"

// One kernel. The accumulators (MR x NV vectors) stay in registers, so the machine must have at
// least MR * NV + NV + 1 of these.
#define MICRO(NAME, TARGET, T, BYTES, MR, NV)                                               \
  typedef T NAME##_v __attribute__((vector_size(BYTES)));                                   \
  typedef T NAME##_u __attribute__((vector_size(BYTES), aligned(4)));                       \
  TARGET static void NAME(int64_t k, const void *a_, const void *b_, void *c_, int64_t ldc, \
                          bool accumulate) {                                                \
    enum { LANES = BYTES / sizeof(T) };                                                     \
    const T *a = a_;                                                                        \
    const NAME##_v *b = b_;                                                                 \
    T *c = c_;                                                                              \
    NAME##_v sum[MR][NV] = {0};                                                             \
    for (int64_t p = 0; p < k; ++p, a += MR, b += NV) {                                     \
      NAME##_v bv[NV];                                                                      \
      _Pragma("GCC unroll 4") for (int j = 0; j < NV; ++j) bv[j] = b[j];                    \
      _Pragma("GCC unroll 16") for (int i = 0; i < MR; ++i) {                               \
        _Pragma("GCC unroll 4") for (int j = 0; j < NV; ++j) sum[i][j] += bv[j] * a[i];     \
      }                                                                                     \
    }                                                                                       \
    _Pragma("GCC unroll 16") for (int i = 0; i < MR; ++i) {                                 \
      _Pragma("GCC unroll 4") for (int j = 0; j < NV; ++j) {                                \
        NAME##_u *to = (NAME##_u *)(c + i * ldc + j * LANES);                               \
        *to = accumulate ? *to + sum[i][j] : sum[i][j];                                     \
      }                                                                                     \
    }                                                                                       \
  }

#define BASE
MICRO(f32_base, BASE, float, 16, 4, 2)
MICRO(f64_base, BASE, double, 16, 4, 2)
MICRO(u32_base, BASE, uint32_t, 16, 4, 2)
MICRO(u64_base, BASE, uint64_t, 16, 4, 2)

#ifdef __x86_64__
#define AVX2   __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,fma")))
MICRO(f32_avx2, AVX2, float, 32, 6, 2)
MICRO(f64_avx2, AVX2, double, 32, 6, 2)
MICRO(u32_avx2, AVX2, uint32_t, 32, 6, 2)
MICRO(u64_avx2, AVX2, uint64_t, 32, 4, 2)
MICRO(f32_avx512, AVX512, float, 64, 14, 2)
MICRO(f64_avx512, AVX512, double, 64, 14, 2)
MICRO(u32_avx512, AVX512, uint32_t, 64, 12, 2)
MICRO(u64_avx512, AVX512, uint64_t, 64, 12, 2)

static const mp_micro_t avx2[MP_ACC_COUNT] = {
    {6, 16, f32_avx2}, {6, 8, f64_avx2}, {6, 16, u32_avx2}, {4, 8, u64_avx2}};
static const mp_micro_t avx512[MP_ACC_COUNT] = {
    {14, 32, f32_avx512}, {14, 16, f64_avx512}, {12, 32, u32_avx512}, {12, 16, u64_avx512}};
#endif

static const mp_micro_t base[MP_ACC_COUNT] = {
    {4, 8, f32_base}, {4, 4, f64_base}, {4, 8, u32_base}, {4, 4, u64_base}};

const mp_micro_t *mp_gemm_micro(mp_acc_t acc) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return &avx512[acc];
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &avx2[acc];
#endif
  return &base[acc];
}
