// Matrices that decompositions go wrong on, for the tests of those; and how element types have
// them.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_HARD_MATRICES_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_HARD_MATRICES_H_

#include <complex.h>
#include <math.h>

#include "tests/unit/support/kernel_test.h"

typedef double _Complex z_t;

#define DIMS(...) ((int64_t[]){__VA_ARGS__})

enum { N = 12, MOST = N * N, BYTES = MOST * 16 };

static const mp_dtype_t g_types[] = {MP_DTYPE_F32, MP_DTYPE_F64, MP_DTYPE_C64, MP_DTYPE_C128};

static uint64_t g_random = 11;

static inline uint64_t bits(void) {
  g_random = g_random * 6364136223846793005ull + 1442695040888963407ull;
  return g_random ^ g_random >> 29;
}

static inline double noise(void) {
  return (double)(bits() >> 11) * 0x1p-53 - 0.5;
}

static inline bool is_single(mp_dtype_t dtype) {
  return dtype == MP_DTYPE_F32 || dtype == MP_DTYPE_C64;
}

// As the element type `dtype` has it, and back.
static inline void pack(mp_dtype_t dtype, const z_t *from, int64_t count, void *out) {
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == MP_DTYPE_F32) ((float *)out)[i] = (float)creal(from[i]);
    if (dtype == MP_DTYPE_F64) ((double *)out)[i] = creal(from[i]);
    if (dtype == MP_DTYPE_C64) ((float _Complex *)out)[i] = (float _Complex)from[i];
    if (dtype == MP_DTYPE_C128) ((z_t *)out)[i] = from[i];
  }
}

static inline void unpack(mp_dtype_t dtype, const void *from, int64_t count, z_t *out) {
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == MP_DTYPE_F32) out[i] = ((const float *)from)[i];
    if (dtype == MP_DTYPE_F64) out[i] = ((const double *)from)[i];
    if (dtype == MP_DTYPE_C64) out[i] = ((const float _Complex *)from)[i];
    if (dtype == MP_DTYPE_C128) out[i] = ((const z_t *)from)[i];
  }
}

// ---- Families of matrices ----

typedef struct {
  const char *name;
  void (*make)(int64_t m, int64_t n, int seed, z_t *a);  // out of noise
  int seeds;
} family_t;

static inline void make_noise(int64_t m, int64_t n, int seed, z_t *a) {
  (void)m, (void)n, (void)seed, (void)a;
}

static inline void make_zero(int64_t m, int64_t n, int seed, z_t *a) {
  (void)seed;
  for (int64_t i = 0; i < m * n; ++i) a[i] = 0;
}

static inline void make_zero_line(int64_t m, int64_t n, int seed, z_t *a) {
  for (int64_t i = 0; i < m * n; ++i) {
    if (seed == 0 ? i / n == m / 2 : i % n == n / 2) a[i] = 0;
  }
}

static inline void make_doubled_line(int64_t m, int64_t n, int seed, z_t *a) {
  for (int64_t j = 0; seed == 0 && j < n; ++j) a[(m - 1) * n + j] = a[j];
  for (int64_t i = 0; seed == 1 && i < m; ++i) a[i * n + n - 1] = 2 * a[i * n];
}

static inline void make_rank_one(int64_t m, int64_t n, int seed, z_t *a) {
  (void)seed;
  for (int64_t i = m * n; i-- > 0;) a[i] = i / n == 0 ? a[i] : a[i % n] * (double)(i / n - 3);
}

static inline void make_sparse(int64_t m, int64_t n, int seed, z_t *a) {
  for (int64_t i = 0; i < m * n; ++i) a[i] = bits() % 16 < (uint64_t)(1 + seed % 8);
}

static inline void make_shift(int64_t m, int64_t n, int seed, z_t *a) {
  for (int64_t i = 0; i < m * n; ++i) a[i] = i / n + seed == i % n;
}

// Sizes from 10^-power to 10^power; `seed` says how they are arranged.
static inline void grade(int64_t m, int64_t n, int seed, double power, z_t *a) {
  for (int64_t i = 0; i < m * n; ++i) {
    double row = (double)(i / n) / (double)m, column = (double)(i % n) / (double)n;
    double where = seed / 2 == 0 ? row : seed / 2 == 1 ? column : row + column - 0.5;
    a[i] *= pow(10, power * (seed % 2 == 0 ? 2 * where - 1 : 1 - 2 * where));
  }
}

static inline void make_graded(int64_t m, int64_t n, int seed, z_t *a) {
  grade(m, n, seed, 18, a);
}

static inline void make_far(int64_t m, int64_t n, int seed, z_t *a) {
  grade(m, n, seed, 140, a);
}

static inline void make_scaled(int64_t m, int64_t n, int seed, z_t *a) {
  static const double sizes[] = {1e36, 1e-36, 1e200, 1e-200, 1e306, 1e-306};
  for (int64_t i = 0; i < m * n; ++i) a[i] *= sizes[seed];
}

// Half of the columns or rows are denormal.
static inline void make_faint(int64_t m, int64_t n, int seed, z_t *a) {
  for (int64_t i = 0; i < m * n; ++i) {
    if (seed == 0 ? i % n >= n / 2 : i / n >= m / 2) a[i] *= 1e-310;
  }
  a[0] = 1;  // beside which they do not count
}

static const family_t g_families[] = {
    {"noise", make_noise, 3},         {"zero", make_zero, 1},
    {"zero line", make_zero_line, 2}, {"doubled line", make_doubled_line, 2},
    {"rank one", make_rank_one, 1},   {"sparse", make_sparse, 50},
    {"shift", make_shift, 3},         {"graded", make_graded, 6},
    {"scaled", make_scaled, 6},       {"far", make_far, 6},
    {"faint", make_faint, 2},
};

// Matrix `seed` of a family, rounded to `dtype`; false if that has no such sizes.
static inline bool make(const family_t *family, mp_dtype_t dtype, int seed, int64_t m, int64_t n,
                        z_t *a) {
  bool large = family->make == make_far || family->make == make_faint ||
               (family->make == make_scaled && seed > 1);
  if (is_single(dtype) && large) return false;
  for (int64_t i = 0; i < m * n; ++i) {
    a[i] = noise() + (mp_dtype_is_complex(dtype) ? noise() * I : 0);
  }
  family->make(m, n, seed, a);
  static char bytes[BYTES];
  pack(dtype, a, m * n, bytes);
  unpack(dtype, bytes, m * n, a);
  return true;
}

// a *= 2^exponent.
static inline void scale(int64_t count, int exponent, z_t *a) {
  double first = ldexp(1, exponent / 2), second = ldexp(1, exponent - exponent / 2);
  double *parts = (double *)a;
  for (int64_t i = 0; i < 2 * count; ++i) parts[i] = parts[i] * first * second;
}

// The same so that the largest element becomes about 1; the exponent.
static inline int bring_to_one(int64_t count, z_t *a) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    largest = fmax(largest, fmax(fabs(creal(a[i])), fabs(cimag(a[i]))));
  }
  int exponent = largest > 0 ? -ilogb(largest) : 0;
  scale(count, exponent, a);
  return exponent;
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_HARD_MATRICES_H_
