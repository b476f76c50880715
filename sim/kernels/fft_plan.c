#include "sim/kernels/fft_plan.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "sim/kernels/loops.h"

enum { MAX_FACTORS = 64, MAX_RADIX = 31 };

struct mp_fft_plan_s {
  int64_t n;
  uint32_t num_factors;
  uint32_t factors[MAX_FACTORS];
  // Per factor: the twiddles of its pass, [m][radix - 1] (re, im), and the radix' own roots.
  const double *twiddles[MAX_FACTORS];
  const double *roots[MAX_FACTORS];  // [radix] (re, im), for the general radix
  // Bluestein:
  const mp_fft_plan_t *inner;  // of the convolution's length; NULL otherwise
  const double *chirp;         // [n] (re, im)
  const double *filter;        // [inner->n] (re, im): the transformed chirp, scaled
};

static void root_of_unity(int64_t k, int64_t n, double *out) {
  // Reduced to an eighth of a turn, so that sines and cosines are exact where they can be.
  k %= n;
  double turn = 8.0 * (double)k / (double)n;
  int octant = (int)turn;
  double angle = 0.78539816339744830962 *
                 ((octant & 1) != 0 ? (double)(octant + 1) - turn : turn - (double)octant);
  double c = cos(angle), s = sin(angle);
  static const signed char table[8][4] = {// which of (c, s), and the signs, for re and im
                                          {0, 1, 1, 1},  {1, 1, 0, 1},   {1, -1, 0, 1},
                                          {0, -1, 1, 1}, {0, -1, 1, -1}, {1, -1, 0, -1},
                                          {1, 1, 0, -1}, {0, 1, 1, -1}};
  const signed char *row = table[octant & 7];
  out[0] = row[1] * (row[0] == 0 ? c : s);
  out[1] = -row[3] * (row[2] == 0 ? c : s);  // forward: exp(-2 pi i k / n)
}

// --- Passes: n = m * radix points remain, s lines lie side by side ---
//
// y[q + s * (radix * p + k)] = w^(p k) * sum over j of root^(j k) * x[q + s * (p + m * j)]

typedef struct {
  int64_t m, s;
  uint32_t radix;
  const double *w, *roots;
  const double *xr, *xi;
  double *yr, *yi;
} pass_t;

#define IN(j)                                               \
  const double *restrict ar##j = t->xr + s * (p + m * (j)); \
  const double *restrict ai##j = t->xi + s * (p + m * (j));
#define OUT(k)                                            \
  double *restrict br##k = t->yr + s * (radix * p + (k)); \
  double *restrict bi##k = t->yi + s * (radix * p + (k));
// b[k] = (re + im i) * w^(p k)
#define PUT(k, re, im)                                  \
  {                                                     \
    double re_ = (re), im_ = (im);                      \
    br##k[q] = re_ * w[2 * (k)-2] - im_ * w[2 * (k)-1]; \
    bi##k[q] = re_ * w[2 * (k)-1] + im_ * w[2 * (k)-2]; \
  }

MP_VECTOR static void pass2(const pass_t *t) {
  enum { radix = 2 };
  int64_t m = t->m, s = t->s;
  for (int64_t p = 0; p < m; ++p) {
    const double *w = t->w + 2 * p;
    IN(0) IN(1) OUT(0) OUT(1) MP_INDEPENDENT for (int64_t q = 0; q < s; ++q) {
      double dr = ar0[q] - ar1[q], di = ai0[q] - ai1[q];
      br0[q] = ar0[q] + ar1[q];
      bi0[q] = ai0[q] + ai1[q];
      PUT(1, dr, di)
    }
  }
}

MP_VECTOR static void pass3(const pass_t *t) {
  enum { radix = 3 };
  const double sine = 0.86602540378443864676;
  int64_t m = t->m, s = t->s;
  for (int64_t p = 0; p < m; ++p) {
    const double *w = t->w + 4 * p;
    IN(0) IN(1) IN(2) OUT(0) OUT(1) OUT(2) MP_INDEPENDENT for (int64_t q = 0; q < s; ++q) {
      double sr = ar1[q] + ar2[q], si = ai1[q] + ai2[q];
      double dr = sine * (ai1[q] - ai2[q]), di = sine * (ar2[q] - ar1[q]);
      double cr = ar0[q] - 0.5 * sr, ci = ai0[q] - 0.5 * si;
      br0[q] = ar0[q] + sr;
      bi0[q] = ai0[q] + si;
      PUT(1, cr + dr, ci + di)
      PUT(2, cr - dr, ci - di)
    }
  }
}

MP_VECTOR static void pass4(const pass_t *t) {
  enum { radix = 4 };
  int64_t m = t->m, s = t->s;
  for (int64_t p = 0; p < m; ++p) {
    const double *w = t->w + 6 * p;
    IN(0)
    IN(1) IN(2) IN(3) OUT(0) OUT(1) OUT(2) OUT(3) MP_INDEPENDENT for (int64_t q = 0; q < s; ++q) {
      double er = ar0[q] + ar2[q], ei = ai0[q] + ai2[q];
      double fr = ar0[q] - ar2[q], fi = ai0[q] - ai2[q];
      double gr = ar1[q] + ar3[q], gi = ai1[q] + ai3[q];
      double hr = ai1[q] - ai3[q], hi = ar3[q] - ar1[q];  // -i * (a1 - a3)
      br0[q] = er + gr;
      bi0[q] = ei + gi;
      PUT(1, fr + hr, fi + hi)
      PUT(2, er - gr, ei - gi)
      PUT(3, fr - hr, fi - hi)
    }
  }
}

MP_VECTOR static void pass5(const pass_t *t) {
  enum { radix = 5 };
  const double c1 = 0.30901699437494742410, c2 = -0.80901699437494742410;
  const double s1 = 0.95105651629515357212, s2 = 0.58778525229247312917;
  int64_t m = t->m, s = t->s;
  for (int64_t p = 0; p < m; ++p) {
    const double *w = t->w + 8 * p;
    IN(0)
    IN(1)
    IN(2) IN(3) IN(4) OUT(0) OUT(1) OUT(2) OUT(3) OUT(4)
        MP_INDEPENDENT for (int64_t q = 0; q < s; ++q) {
      double er = ar1[q] + ar4[q], ei = ai1[q] + ai4[q];
      double fr = ar2[q] + ar3[q], fi = ai2[q] + ai3[q];
      double gr = ai1[q] - ai4[q], gi = ar4[q] - ar1[q];  // -i * (a1 - a4)
      double hr = ai2[q] - ai3[q], hi = ar3[q] - ar2[q];  // -i * (a2 - a3)
      double ur = ar0[q] + c1 * er + c2 * fr, ui = ai0[q] + c1 * ei + c2 * fi;
      double vr = ar0[q] + c2 * er + c1 * fr, vi = ai0[q] + c2 * ei + c1 * fi;
      double xr = s1 * gr + s2 * hr, xi = s1 * gi + s2 * hi;
      double yr = s2 * gr - s1 * hr, yi = s2 * gi - s1 * hi;
      br0[q] = ar0[q] + er + fr;
      bi0[q] = ai0[q] + ei + fi;
      PUT(1, ur + xr, ui + xi)
      PUT(2, vr + yr, vi + yi)
      PUT(3, vr - yr, vi - yi)
      PUT(4, ur - xr, ui - xi)
    }
  }
}

MP_VECTOR static void pass_any(const pass_t *t) {
  int64_t m = t->m, s = t->s, radix = t->radix;
  for (int64_t p = 0; p < m; ++p) {
    for (int64_t k = 0; k < radix; ++k) {
      OUT(0)
      double *restrict br = br0 + s * k, *restrict bi = bi0 + s * k;
      double vr = 1, vi = 0;
      if (k > 0) {
        const double *w = t->w + 2 * ((radix - 1) * p + k - 1);
        vr = w[0];
        vi = w[1];
      }
      memset(br, 0, (size_t)s * sizeof(double));
      memset(bi, 0, (size_t)s * sizeof(double));
      for (int64_t j = 0; j < radix; ++j) {
        IN(j)
        const double *root = t->roots + 2 * (j * k % radix);
        double cr = root[0] * vr - root[1] * vi, ci = root[0] * vi + root[1] * vr;
        MP_INDEPENDENT for (int64_t q = 0; q < s; ++q) {
          br[q] += arj[q] * cr - aij[q] * ci;
          bi[q] += arj[q] * ci + aij[q] * cr;
        }
      }
    }
  }
}

static void run_pass(const pass_t *pass) {
  switch (pass->radix) {
    case 2:
      pass2(pass);
      break;
    case 3:
      pass3(pass);
      break;
    case 4:
      pass4(pass);
      break;
    case 5:
      pass5(pass);
      break;
    default:
      pass_any(pass);
      break;
  }
}

static void run_smooth(const mp_fft_plan_t *plan, int64_t lines, double *re, double *im,
                       double *scratch) {
  double *xr = re, *xi = im, *yr = scratch, *yi = scratch + plan->n * lines;
  int64_t m = plan->n, s = lines;
  for (uint32_t i = 0; i < plan->num_factors; ++i) {
    uint32_t radix = plan->factors[i];
    m /= radix;
    pass_t pass = {m, s, radix, plan->twiddles[i], plan->roots[i], xr, xi, yr, yi};
    run_pass(&pass);
    double *kept_r = xr, *kept_i = xi;
    xr = yr, xi = yi, yr = kept_r, yi = kept_i;
    s *= radix;
  }
  if (xr != re) {
    memcpy(re, xr, (size_t)(plan->n * lines) * sizeof(double));
    memcpy(im, xi, (size_t)(plan->n * lines) * sizeof(double));
  }
}

// (zr, zi) = (xr, xi) * w, per element; `lines` elements share a factor.
static void multiply(int64_t n, int64_t lines, const double *w, const double *xr, const double *xi,
                     double *zr, double *zi) {
  for (int64_t i = 0; i < n; ++i) {
    double cr = w[2 * i], ci = w[2 * i + 1];
    for (int64_t q = i * lines; q < (i + 1) * lines; ++q) {
      double r = xr[q] * cr - xi[q] * ci;
      zi[q] = xr[q] * ci + xi[q] * cr;
      zr[q] = r;
    }
  }
}

static void run_bluestein(const mp_fft_plan_t *plan, int64_t lines, double *re, double *im,
                          double *scratch) {
  int64_t size = plan->inner->n * lines, used = plan->n * lines;
  double *ar = scratch, *ai = scratch + size, *rest = scratch + 2 * size;
  multiply(plan->n, lines, plan->chirp, re, im, ar, ai);
  memset(ar + used, 0, (size_t)(size - used) * sizeof(double));
  memset(ai + used, 0, (size_t)(size - used) * sizeof(double));
  run_smooth(plan->inner, lines, ar, ai, rest);
  multiply(plan->inner->n, lines, plan->filter, ar, ai, ar, ai);
  run_smooth(plan->inner, lines, ai, ar, rest);  // the inverse
  multiply(plan->n, lines, plan->chirp, ar, ai, re, im);
}

void mp_fft_run(const mp_fft_plan_t *plan, int64_t lines, double *re, double *im, double *scratch) {
  if (plan->inner != NULL) {
    run_bluestein(plan, lines, re, im, scratch);
  } else {
    run_smooth(plan, lines, re, im, scratch);
  }
}

int64_t mp_fft_plan_scratch(const mp_fft_plan_t *plan) {
  return plan->inner != NULL ? 4 * plan->inner->n : 2 * plan->n;
}

// --- Planning ---

// False when a prime factor is above MAX_RADIX.
static bool factorize(int64_t n, mp_fft_plan_t *plan) {
  static const uint32_t first[] = {4, 2, 3, 5};
  for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); ++i) {
    for (; n % first[i] == 0; n /= first[i]) plan->factors[plan->num_factors++] = first[i];
  }
  for (uint32_t f = 7; f <= MAX_RADIX; f += 2) {
    for (; n % f == 0; n /= f) plan->factors[plan->num_factors++] = f;
  }
  return n == 1;
}

static mp_status_t plan_smooth(mp_arena_t *arena, mp_fft_plan_t *plan) {
  int64_t n = plan->n;
  for (uint32_t i = 0; i < plan->num_factors; ++i) {
    int64_t radix = plan->factors[i], m = n / radix;
    double *w = MP_ARENA_ARRAY(arena, double, (size_t)(2 * m * (radix - 1)));
    double *roots = MP_ARENA_ARRAY(arena, double, (size_t)(2 * radix));
    if (w == NULL || roots == NULL) return mp_status_out_of_memory();
    for (int64_t p = 0; p < m; ++p) {
      for (int64_t k = 1; k < radix; ++k) {
        root_of_unity(p * k, n, w + 2 * (p * (radix - 1) + k - 1));
      }
    }
    for (int64_t k = 0; k < radix; ++k) root_of_unity(k, radix, roots + 2 * k);
    plan->twiddles[i] = w;
    plan->roots[i] = roots;
    n = m;
  }
  return NULL;
}

// The next length whose only prime factors are 2, 3 and 5.
static int64_t next_smooth(int64_t n) {
  for (;; ++n) {
    int64_t rest = n;
    while (rest % 2 == 0) rest /= 2;
    while (rest % 3 == 0) rest /= 3;
    while (rest % 5 == 0) rest /= 5;
    if (rest == 1) return n;
  }
}

static mp_status_t plan_bluestein(mp_arena_t *arena, mp_fft_plan_t *plan) {
  int64_t n = plan->n, size = next_smooth(2 * n - 1);
  MP_RETURN_IF_ERROR(mp_fft_plan_create(arena, size, &plan->inner));
  double *chirp = MP_ARENA_ARRAY(arena, double, (size_t)(2 * n));
  double *filter = MP_ARENA_ARRAY(arena, double, (size_t)(2 * size));
  double *work = MP_ARENA_ARRAY(arena, double, (size_t)(2 * size));
  if (chirp == NULL || filter == NULL || work == NULL) return mp_status_out_of_memory();
  double *re = work, *im = work + size;
  int64_t square = 0;  // k^2 modulo 2n
  for (int64_t k = 0; k < n; ++k) {
    root_of_unity(square, 2 * n, chirp + 2 * k);  // exp(-pi i k^2 / n)
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
  run_smooth(plan->inner, 1, re, im, scratch);
  for (int64_t k = 0; k < size; ++k) {
    filter[2 * k] = re[k] / (double)size;
    filter[2 * k + 1] = im[k] / (double)size;
  }
  plan->chirp = chirp;
  plan->filter = filter;
  return NULL;
}

mp_status_t mp_fft_plan_create(mp_arena_t *arena, int64_t n, const mp_fft_plan_t **out_plan) {
  mp_fft_plan_t *plan = MP_ARENA_NEW(arena, mp_fft_plan_t);
  MP_RETURN_IF_NULL(plan);
  plan->n = n;
  if (factorize(n, plan)) {
    MP_RETURN_IF_ERROR(plan_smooth(arena, plan));
  } else {
    MP_RETURN_IF_ERROR(plan_bluestein(arena, plan));
  }
  *out_plan = plan;
  return NULL;
}
