// LU, eigenvalues and singular values (sim/kernels/linalg/linalg.h).
#include <float.h>
#include <stddef.h>
#include <string.h>

#include "sim/kernels/linalg/linalg_loops.h"

// Two rows of y: (p, q) = (cosine * p - sine * q, sine * p + cosine * q).
MP_VECTOR static void rotate_rows(int64_t n, double cosine, double sine, double *restrict p,
                                  double *restrict q) {
  for (int64_t i = 0; i < n; ++i) {
    double a = p[i], b = q[i];
    p[i] = cosine * a - sine * b;
    q[i] = sine * a + cosine * b;
  }
}

// One implicit QL step on d[first..last], e[first..last).
static void eigen_ql_step(int64_t n, int64_t first, int64_t last, double *d, double *e, double *y) {
  double g = (d[first + 1] - d[first]) / (2 * e[first]);
  g = d[last] - d[first] + e[first] / (g + copysign(hypot(g, 1), g));
  double s = 1, c = 1, p = 0;
  for (int64_t i = last; i-- > first;) {
    double f = s * e[i], b = c * e[i], r = hypot(f, g);
    e[i + 1] = r;
    if (r == 0) {  // deflated in the middle
      d[i + 1] -= p;
      e[last] = 0;
      return;
    }
    s = f / r;
    c = g / r;
    g = d[i + 1] - p;
    r = (d[i] - g) * s + 2 * c * b;
    p = s * r;
    d[i + 1] = g + p;
    g = c * r - b;
    rotate_rows(n, c, s, y + i * n, y + (i + 1) * n);
  }
  d[first] -= p;
  e[first] = g;
  e[last] = 0;
}

// Eigenvalues d (ascending) and eigenvectors (rows of y, n x n) of the symmetric tridiagonal matrix
// with diagonal d and subdiagonal e (n elements, the last one free).
static bool mp_tridiagonal_ql(int64_t n, double *d, double *e, double *y) {
  for (int64_t i = 0; i < n * n; ++i) y[i] = i % (n + 1) == 0 ? 1 : 0;
  if (n > 0) e[n - 1] = 0;
  for (int64_t first = 0; first < n; ++first) {
    for (int step = 0;; ++step) {
      int64_t last = first;
      while (last + 1 < n && fabs(e[last]) > DBL_EPSILON * (fabs(d[last]) + fabs(d[last + 1]))) {
        ++last;
      }
      if (last == first) break;
      if (step == 60) return false;
      eigen_ql_step(n, first, last, d, e, y);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    int64_t best = i;
    for (int64_t j = i + 1; j < n; ++j) {
      if (d[j] < d[best]) best = j;
    }
    if (!isfinite(d[best])) return false;
    if (best == i) continue;
    double kept = d[i];
    d[i] = d[best];
    d[best] = kept;
    for (int64_t k = 0; k < n; ++k) {
      kept = y[i * n + k];
      y[i * n + k] = y[best * n + k];
      y[best * n + k] = kept;
    }
  }
  return true;
}

#define T    double
#define F(x) x##_d
#include "sim/kernels/linalg/eigen_template.h"
#undef T
#undef F
#define T    mp_complex_t
#define F(x) x##_z
#include "sim/kernels/linalg/eigen_template.h"
