// LU, eigenvalues and singular values (sim/kernels/linalg/linalg.h).
#include <float.h>
#include <stddef.h>
#include <string.h>

#include "sim/kernels/linalg/linalg_loops.h"

enum {
  // Matrices are scaled so that the largest element is about 2^480. There, squares do not overflow,
  // and squares of numbers that matter relative to the largest one do not vanish.
  MP_CENTER_EXPONENT = 480,
};

// Smaller elements of the subdiagonal count as zero, whatever the diagonal is there.
#define MP_QL_TINY 0x1p-900

// p = cosine * p - sine * q, q = sine * p + cosine * q
MP_VECTOR static void eigen_rotate_rows(int64_t n, double cosine, double sine, double *restrict p,
                                        double *restrict q) {
  for (int64_t i = 0; i < n; ++i) {
    double a = p[i], b = q[i];
    p[i] = cosine * a - sine * b;
    q[i] = sine * a + cosine * b;
  }
}

// Jacobi's rotations of p and phase * q, where phase has magnitude 1; the real one leaves q with
// its own sign. The angle is at most 45 degrees, so that the rotation can be computed as a small
// change to p and q. Thousands of them then do not change lengths, while products with a rounded
// cosine would lengthen or shorten steadily.
MP_VECTOR static void eigen_rotate_d(int64_t n, double cosine, double sine, double phase,
                                     double *restrict p, double *restrict q) {
  double tau = sine / (1 + cosine);
  sine *= phase;
  tau *= phase;
  for (int64_t i = 0; i < n; ++i) {
    double a = p[i], b = q[i];
    p[i] = a - sine * (b + tau * a);
    q[i] = b + sine * (a - tau * b);
  }
}

MP_VECTOR static void eigen_rotate_z(int64_t n, double cosine, double sine, mp_complex_t phase,
                                     mp_complex_t *restrict p, mp_complex_t *restrict q) {
  double tau = sine / (1 + cosine);
  for (int64_t i = 0; i < n; ++i) {
    mp_complex_t a = p[i], b = mul_z(phase, q[i]);
    p[i] = __builtin_complex(creal(a) - sine * (creal(b) + tau * creal(a)),
                             cimag(a) - sine * (cimag(b) + tau * cimag(a)));
    q[i] = __builtin_complex(creal(b) + sine * (creal(a) - tau * creal(b)),
                             cimag(b) + sine * (cimag(a) - tau * cimag(b)));
  }
}

static double eigen_magnitude_d(double x) {
  return fabs(x);
}
static double eigen_magnitude_z(mp_complex_t x) {
  return hypot(creal(x), cimag(x));
}

// Does one implicit QL step on d[first..last] and e[first..last).
static void eigen_ql_step(int64_t n, int64_t first, int64_t last, double *d, double *e, double *y) {
  double g = (d[first + 1] - d[first]) / (2 * e[first]);
  g = d[last] - d[first] + e[first] / (g + copysign(hypot(g, 1), g));
  double s = 1, c = 1, p = 0;
  for (int64_t i = last; i-- > first;) {
    double f = s * e[i], b = c * e[i], r = hypot(f, g);
    e[i + 1] = r;
    if (r == 0) {  // the matrix falls into two parts here
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
    eigen_rotate_rows(n, c, s, y + i * n, y + (i + 1) * n);
  }
  d[first] -= p;
  e[first] = g;
  e[last] = 0;
}

// The last row of the part that begins with row `first`: up to it, no element of the subdiagonal is
// negligible.
static int64_t eigen_ql_part_end(int64_t n, int64_t first, const double *d, const double *e,
                                 double smallest) {
  int64_t last = first;
  while (last + 1 < n &&
         fabs(e[last]) > smallest + DBL_EPSILON * (fabs(d[last]) + fabs(d[last + 1]))) {
    ++last;
  }
  return last;
}

static void eigen_ql_exchange(int64_t n, int64_t i, int64_t j, double *d, double *y) {
  double kept = d[i];
  d[i] = d[j];
  d[j] = kept;
  for (int64_t k = 0; k < n; ++k) {
    kept = y[i * n + k];
    y[i * n + k] = y[j * n + k];
    y[j * n + k] = kept;
  }
}

// Reverses the order of the rows first..last.
static void eigen_ql_turn(int64_t n, int64_t first, int64_t last, double *d, double *e, double *y) {
  for (int64_t i = first, j = last; i < j; ++i, j--) eigen_ql_exchange(n, i, j, d, y);
  for (int64_t i = first, j = last - 1; i < j; ++i, j--) {
    double kept = e[i];
    e[i] = e[j];
    e[j] = kept;
  }
}

static void eigen_ql_sort(int64_t n, double *d, double *y) {
  for (int64_t i = 0; i < n; ++i) {
    int64_t best = i;
    for (int64_t j = i + 1; j < n; ++j) {
      if (d[j] < d[best]) best = j;
    }
    if (best != i) eigen_ql_exchange(n, i, best, d, y);
  }
}

// Computes the eigenvalues d (ascending) and the eigenvectors (rows of y, n x n) of the symmetric
// tridiagonal matrix with diagonal d and subdiagonal e (n elements, of which the last is not used).
//
// QL steps find the eigenvalues at the upper end first and work best when those are the small ones,
// so a part that is larger there is reversed. After half of the allowed steps, an element of the
// subdiagonal only has to become negligible relative to the whole matrix.
static bool eigen_ql(int64_t n, double *d, double *e, double *y) {
  enum { STEPS = 60 };
  for (int64_t i = 0; i < n * n; ++i) y[i] = i % (n + 1) == 0 ? 1 : 0;
  if (n > 0) e[n - 1] = 0;
  double norm = fmax(mp_largest(n, d), mp_largest(n, e));
  int64_t part_end = -1;
  for (int64_t first = 0; first < n; ++first) {
    if (first > part_end) {
      part_end = eigen_ql_part_end(n, first, d, e, MP_QL_TINY);
      if (fabs(d[first]) > fabs(d[part_end])) eigen_ql_turn(n, first, part_end, d, e, y);
    }
    for (int step = 0;; ++step) {
      double smallest = step < STEPS / 2 ? MP_QL_TINY : DBL_EPSILON * norm;
      int64_t last = eigen_ql_part_end(n, first, d, e, smallest);
      if (last == first) break;
      if (step == STEPS) return false;
      eigen_ql_step(n, first, last, d, e, y);
    }
  }
  eigen_ql_sort(n, d, y);
  return true;
}

#define T    double
#define F(x) x##_d
#include "sim/kernels/linalg/eigen_template.h"
#include "sim/kernels/linalg/singular_template.h"
#undef T
#undef F
#define T    mp_complex_t
#define F(x) x##_z
#include "sim/kernels/linalg/eigen_template.h"
#include "sim/kernels/linalg/singular_template.h"

size_t mp_svd_scratch(int64_t n, bool is_complex) {
  size_t element = is_complex ? sizeof(mp_complex_t) : sizeof(double);
  return (size_t)(3 * n * n + 2 * n) * element + (size_t)n * (sizeof(double) + sizeof(int64_t));
}
