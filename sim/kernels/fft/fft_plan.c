#include "sim/kernels/fft/fft_plan.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/loops.h"

enum { MAX_FACTORS = 64, MAX_RADIX = 31 };

struct mp_fft_plan_s {
  int64_t n;
  bool is_double;  // the type of all tables below
  uint32_t num_factors;
  uint32_t factors[MAX_FACTORS];
  // Per factor: the twiddle factors of its pass, [m][radix - 1] (re, im), and the roots of its
  // radix.
  const void *twiddles[MAX_FACTORS];
  const void *roots[MAX_FACTORS];  // [radix] (re, im), for the general radix
  // Bluestein:
  const mp_fft_plan_t *inner;  // of the convolution's length; NULL otherwise
  const void *chirp;           // [n] (re, im)
  const void *filter;          // [inner->n] (re, im): the transformed chirp, scaled
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

void mp_fft_run_f(const mp_fft_plan_t *plan, int64_t lines, float *re, float *im, float *scratch) {
  if (plan->inner != NULL) {
    run_bluestein_f(plan, lines, re, im, scratch);
  } else {
    run_smooth_f(plan, lines, re, im, scratch);
  }
}

void mp_fft_run_d(const mp_fft_plan_t *plan, int64_t lines, double *re, double *im,
                  double *scratch) {
  if (plan->inner != NULL) {
    run_bluestein_d(plan, lines, re, im, scratch);
  } else {
    run_smooth_d(plan, lines, re, im, scratch);
  }
}

int64_t mp_fft_plan_scratch(const mp_fft_plan_t *plan) {
  return plan->inner != NULL ? 4 * plan->inner->n : 2 * plan->n;
}

// ---- Planning ----

// Finds the factors of n; false when a prime factor is above MAX_RADIX.
static bool fft_plan_factorize(int64_t n, mp_fft_plan_t *plan) {
  static const uint32_t first[] = {4, 2, 3, 5};
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
  const mp_fft_plan_t *exact = NULL;  // the filter is always computed in doubles
  MP_RETURN_IF_ERROR(mp_fft_plan_create(arena, size, true, &exact));
  MP_RETURN_IF_ERROR(mp_fft_plan_create(arena, size, plan->is_double, &plan->inner));
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
  run_smooth_d(exact, 1, re, im, scratch);
  for (int64_t k = 0; k < size; ++k) {
    filter[2 * k] = re[k] / (double)size;
    filter[2 * k + 1] = im[k] / (double)size;
  }
  MP_RETURN_IF_ERROR(fft_plan_keep(arena, plan->is_double, chirp, 2 * n, &plan->chirp));
  return fft_plan_keep(arena, plan->is_double, filter, 2 * size, &plan->filter);
}

mp_status_t mp_fft_plan_create(mp_arena_t *arena, int64_t n, bool is_double,
                               const mp_fft_plan_t **out_plan) {
  mp_fft_plan_t *plan = MP_ARENA_NEW(arena, mp_fft_plan_t);
  MP_RETURN_IF_NULL(plan);
  MP_ASSERT(n > 0);
  plan->n = n;
  plan->is_double = is_double;
  if (fft_plan_factorize(n, plan)) {
    MP_RETURN_IF_ERROR(fft_plan_smooth(arena, plan));
  } else {
    MP_RETURN_IF_ERROR(fft_plan_bluestein(arena, plan));
  }
  *out_plan = plan;
  return NULL;
}
