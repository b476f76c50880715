#include "sim/kernels/fft/fft_plan.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/loops.h"

enum { MAX_FACTORS = 64, MAX_RADIX = 31 };
// The general radix adds up that many products in a row. With more, floats would lose more
// precision than in a transform of a smooth length.
enum { MAX_FLOAT_RADIX = 13 };

struct mp_fft_plan_s {
  int64_t n;
  bool is_double;  // the type of all tables below
  uint32_t num_factors;
  uint32_t factors[MAX_FACTORS];
  // Per factor: the twiddle factors of its pass, [m][radix - 1] (re, im), and the roots of its
  // radix.
  const void *twiddles[MAX_FACTORS];
  const void *roots[MAX_FACTORS];  // [radix] (re, im), for the general radix
  const mp_fft_plan_t *wide;       // a plan of floats that is done in doubles; NULL otherwise
  // Bluestein, in doubles:
  const mp_fft_plan_t *inner;  // of the convolution's length; NULL otherwise
  const double *chirp;         // [n] (re, im)
  const double *filter;        // [inner->n] (re, im): the transformed chirp, scaled
};

static void fft_plan_root_of_unity(int64_t k, int64_t n, double *out) {
  // The angle is reduced to an eighth of a turn, so that sines and cosines are exact where
  // possible.
  k %= n;
  double turn = 8.0 * (double)k / (double)n;
  int octant = (int)turn;
  double angle = 0.78539816339744830962 *
                 ((octant & 1) != 0 ? (double)(octant + 1) - turn : turn - (double)octant);
  double c = cos(angle), s = sin(angle);
  static const signed char table[8][4] = {// for re and im: which of (c, s), and its sign
                                          {0, 1, 1, 1},  {1, 1, 0, 1},   {1, -1, 0, 1},
                                          {0, -1, 1, 1}, {0, -1, 1, -1}, {1, -1, 0, -1},
                                          {1, 1, 0, -1}, {0, 1, 1, -1}};
  const signed char *row = table[octant & 7];
  out[0] = row[1] * (row[0] == 0 ? c : s);
  out[1] = -row[3] * (row[2] == 0 ? c : s);  // forward: exp(-2 pi i k / n)
}

#define R    float
#define F(x) x##_f
#include "sim/kernels/fft/fft_template.h"
#undef R
#undef F
#define R    double
#define F(x) x##_d
#include "sim/kernels/fft/fft_template.h"

// ---- Running ----

// (zr, zi) = (xr, xi) * w, per element; `lines` elements share a factor.
static void fft_plan_multiply(int64_t n, int64_t lines, const double *w, const double *xr,
                              const double *xi, double *zr, double *zi) {
  for (int64_t i = 0; i < n; ++i) {
    double cr = w[2 * i], ci = w[2 * i + 1];
    for (int64_t q = i * lines; q < (i + 1) * lines; ++q) {
      double r = xr[q] * cr - xi[q] * ci;
      zi[q] = xr[q] * ci + xi[q] * cr;
      zr[q] = r;
    }
  }
}

static void fft_plan_run_bluestein(const mp_fft_plan_t *plan, int64_t lines, double *re, double *im,
                                   double *scratch) {
  int64_t size = plan->inner->n * lines, used = plan->n * lines;
  double *ar = scratch, *ai = scratch + size, *rest = scratch + 2 * size;
  fft_plan_multiply(plan->n, lines, plan->chirp, re, im, ar, ai);
  memset(ar + used, 0, (size_t)(size - used) * sizeof(double));
  memset(ai + used, 0, (size_t)(size - used) * sizeof(double));
  run_smooth_d(plan->inner, lines, ar, ai, rest);
  fft_plan_multiply(plan->inner->n, lines, plan->filter, ar, ai, ar, ai);
  run_smooth_d(plan->inner, lines, ai, ar, rest);  // the inverse
  fft_plan_multiply(plan->n, lines, plan->chirp, ar, ai, re, im);
}

// Transforms floats in doubles. For such lengths, double precision costs little compared to the
// multiplications that they need anyway.
static void fft_plan_run_wide(const mp_fft_plan_t *plan, int64_t lines, float *re, float *im,
                              float *scratch) {
  const int64_t count = plan->n * lines;
  // The caller's scratch is aligned for floats; it has room for the bytes that alignment skips.
  double *wide_re = (double *)(((uintptr_t)scratch + sizeof(double) - 1) & ~(sizeof(double) - 1));
  double *wide_im = wide_re + count, *rest = wide_im + count;
  for (int64_t i = 0; i < count; ++i) wide_re[i] = (double)re[i];
  for (int64_t i = 0; i < count; ++i) wide_im[i] = (double)im[i];
  mp_fft_run_d(plan->wide, lines, wide_re, wide_im, rest);
  for (int64_t i = 0; i < count; ++i) re[i] = (float)wide_re[i];
  for (int64_t i = 0; i < count; ++i) im[i] = (float)wide_im[i];
}

void mp_fft_run_f(const mp_fft_plan_t *plan, int64_t lines, float *re, float *im, float *scratch) {
  if (plan->wide != NULL) {
    fft_plan_run_wide(plan, lines, re, im, scratch);
  } else {
    run_smooth_f(plan, lines, re, im, scratch);
  }
}

void mp_fft_run_d(const mp_fft_plan_t *plan, int64_t lines, double *re, double *im,
                  double *scratch) {
  if (plan->inner != NULL) {
    fft_plan_run_bluestein(plan, lines, re, im, scratch);
  } else {
    run_smooth_d(plan, lines, re, im, scratch);
  }
}

int64_t mp_fft_plan_scratch(const mp_fft_plan_t *plan) {
  // In floats: two arrays of doubles, the scratch of their plan, and one float for alignment.
  if (plan->wide != NULL) return 2 * (2 * plan->n + mp_fft_plan_scratch(plan->wide)) + 1;
  return plan->inner != NULL ? 4 * plan->inner->n : 2 * plan->n;
}

// ---- Planning ----

// Finds the factors of n; false when a prime factor is above MAX_RADIX.
static bool fft_plan_factorize(int64_t n, mp_fft_plan_t *plan) {
  static const uint32_t first[] = {4, 2, 3, 5};
  // The fewer passes, the fewer trips through memory; 16 is two passes of radix 4.
  for (; n % 8 == 0 && (n % 16 != 0 || n % 32 == 0); n /= 8) {
    plan->factors[plan->num_factors++] = 8;
  }
  for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); ++i) {
    for (; n % first[i] == 0; n /= first[i]) plan->factors[plan->num_factors++] = first[i];
  }
  for (uint32_t f = 7; f <= MAX_RADIX; f += 2) {
    for (; n % f == 0; n /= f) plan->factors[plan->num_factors++] = f;
  }
  return n == 1;
}

// Keeps a table of doubles in the type of the plan.
static mp_status_t fft_plan_keep(mp_arena_t *arena, bool is_double, double *table, int64_t count,
                                 const void **out_table) {
  *out_table = table;
  if (is_double) return NULL;
  float *narrow = MP_ARENA_ARRAY(arena, float, (size_t)count);
  MP_RETURN_IF_NULL(narrow);
  for (int64_t i = 0; i < count; ++i) narrow[i] = (float)table[i];
  *out_table = narrow;
  return NULL;
}

mp_status_t mp_fft_roots(mp_arena_t *arena, int64_t n, int64_t count, bool is_double,
                         const void **out_roots) {
  double *roots = MP_ARENA_ARRAY(arena, double, (size_t)(2 * count));
  MP_RETURN_IF_NULL(roots);
  for (int64_t k = 0; k < count; ++k) fft_plan_root_of_unity(k, n, roots + 2 * k);
  return fft_plan_keep(arena, is_double, roots, 2 * count, out_roots);
}

static mp_status_t fft_plan_smooth(mp_arena_t *arena, mp_fft_plan_t *plan) {
  int64_t n = plan->n;
  for (uint32_t i = 0; i < plan->num_factors; ++i) {
    int64_t radix = plan->factors[i], m = n / radix;
    MP_ASSERT(n % radix == 0);
    double *w = MP_ARENA_ARRAY(arena, double, (size_t)(2 * m * (radix - 1)));
    MP_RETURN_IF_NULL(w);
    for (int64_t p = 0; p < m; ++p) {
      for (int64_t k = 1; k < radix; ++k) {
        fft_plan_root_of_unity(p * k, n, w + 2 * (p * (radix - 1) + k - 1));
      }
    }
    MP_RETURN_IF_ERROR(
        fft_plan_keep(arena, plan->is_double, w, 2 * m * (radix - 1), &plan->twiddles[i]));
    MP_RETURN_IF_ERROR(mp_fft_roots(arena, radix, radix, plan->is_double, &plan->roots[i]));
    n = m;
  }
  MP_ASSERT(n == 1);  // the product of the factors is the length
  return NULL;
}

// The next length whose only prime factors are 2, 3 and 5.
static int64_t fft_plan_next_smooth(int64_t n) {
  for (;; ++n) {
    int64_t rest = n;
    while (rest % 2 == 0) rest /= 2;
    while (rest % 3 == 0) rest /= 3;
    while (rest % 5 == 0) rest /= 5;
    if (rest == 1) return n;
  }
}

static mp_status_t fft_plan_bluestein(mp_arena_t *arena, mp_fft_plan_t *plan) {
  int64_t n = plan->n, size = fft_plan_next_smooth(2 * n - 1);
  MP_ASSERT(plan->is_double);
  MP_RETURN_IF_ERROR(mp_fft_plan_create(arena, size, true, &plan->inner));
  double *chirp = MP_ARENA_ARRAY(arena, double, (size_t)(2 * n));
  double *filter = MP_ARENA_ARRAY(arena, double, (size_t)(2 * size));
  double *work = MP_ARENA_ARRAY(arena, double, (size_t)(2 * size));
  if (chirp == NULL || filter == NULL || work == NULL) return mp_status_out_of_memory();
  double *re = work, *im = work + size;
  int64_t square = 0;  // k^2 modulo 2n
  for (int64_t k = 0; k < n; ++k) {
    fft_plan_root_of_unity(square, 2 * n, chirp + 2 * k);  // exp(-pi i k^2 / n)
    square = (square + 2 * k + 1) % (2 * n);
    re[k] = chirp[2 * k];
    im[k] = -chirp[2 * k + 1];
    if (k > 0) {
      re[size - k] = re[k];
      im[size - k] = im[k];
    }
  }
  double *scratch = MP_ARENA_ARRAY(arena, double, (size_t)(2 * size));
  MP_RETURN_IF_NULL(scratch);
  run_smooth_d(plan->inner, 1, re, im, scratch);
  for (int64_t k = 0; k < size; ++k) {
    filter[2 * k] = re[k] / (double)size;
    filter[2 * k + 1] = im[k] / (double)size;
  }
  plan->chirp = chirp;
  plan->filter = filter;
  return NULL;
}

static uint32_t fft_plan_largest_factor(const mp_fft_plan_t *plan) {
  return plan->num_factors == 0 ? 1 : plan->factors[plan->num_factors - 1];
}

mp_status_t mp_fft_plan_create(mp_arena_t *arena, int64_t n, bool is_double,
                               const mp_fft_plan_t **out_plan) {
  mp_fft_plan_t *plan = MP_ARENA_NEW(arena, mp_fft_plan_t);
  MP_RETURN_IF_NULL(plan);
  MP_ASSERT(n > 0);
  plan->n = n;
  plan->is_double = is_double;
  const bool is_smooth = fft_plan_factorize(n, plan);
  if (!is_double && (!is_smooth || fft_plan_largest_factor(plan) > MAX_FLOAT_RADIX)) {
    MP_RETURN_IF_ERROR(mp_fft_plan_create(arena, n, true, &plan->wide));
  } else if (is_smooth) {
    MP_RETURN_IF_ERROR(fft_plan_smooth(arena, plan));
  } else {
    MP_RETURN_IF_ERROR(fft_plan_bluestein(arena, plan));
  }
  *out_plan = plan;
  return NULL;
}
