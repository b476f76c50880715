// The loops that dense linear algebra is made of, for doubles (_d) and complex doubles (_z);
// private to the files that include a *_template.h.
#ifndef MINIPOD_SIM_KERNELS_LINALG_LINALG_LOOPS_H_
#define MINIPOD_SIM_KERNELS_LINALG_LINALG_LOOPS_H_

#include <complex.h>
#include <math.h>
#include <stdint.h>

#include "sim/kernels/linalg/linalg.h"
#include "sim/kernels/loops.h"

enum {
  MP_DOT_LANES = 8,
  parts_d = 1,  // doubles of an element
  parts_z = 2,
};

// The sum of a[i] * conj(b[i]); dot_d makes MP_DOT_LANES partial sums, dot_z two.
MP_VECTOR static double dot_d(int64_t n, const double *a, const double *b) {
  double sums[MP_DOT_LANES] = {0};
  int64_t i = 0;
  for (; i + MP_DOT_LANES <= n; i += MP_DOT_LANES) {
    for (int l = 0; l < MP_DOT_LANES; ++l) sums[l] += a[i + l] * b[i + l];
  }
  for (; i < n; ++i) sums[i % MP_DOT_LANES] += a[i] * b[i];
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

// A product. Complex products are written out, because C's operator spends much time on infinities.
static inline mp_complex_t mul_z(mp_complex_t a, mp_complex_t b) {
  double ar = creal(a), ai = cimag(a), br = creal(b), bi = cimag(b);
  return __builtin_complex(ar * br - ai * bi, ar * bi + ai * br);
}

// See dot_d.
MP_VECTOR static mp_complex_t dot_z(int64_t n, const mp_complex_t *a, const mp_complex_t *b) {
  double re[2] = {0}, im[2] = {0};
  for (int64_t i = 0; i < n; ++i) {
    double ar = creal(a[i]), ai = cimag(a[i]), br = creal(b[i]), bi = cimag(b[i]);
    re[i % 2] += ar * br + ai * bi;
    im[i % 2] += ai * br - ar * bi;
  }
  return __builtin_complex(re[0] + re[1], im[0] + im[1]);
}

// y += a * x
MP_VECTOR static void axpy_d(int64_t n, double a, const double *restrict x, double *restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

// The same for complex numbers.
MP_VECTOR static void axpy_z(int64_t n, mp_complex_t a, const mp_complex_t *restrict x,
                             mp_complex_t *restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] += mul_z(a, x[i]);
}

// ---- arithmetic, by names that serve real (_d) and complex (_z) elements alike ----
//
// mul is the product, conj the conjugate, real and imag are the parts, and make is the element with
// these parts.

static inline double mul_d(double a, double b) {
  return a * b;
}
static inline double conj_d(double a) {
  return a;
}
static inline mp_complex_t conj_z(mp_complex_t a) {
  return __builtin_complex(creal(a), -cimag(a));
}
static inline double real_d(double a) {
  return a;
}
static inline double real_z(mp_complex_t a) {
  return creal(a);
}
static inline double imag_d(double a) {
  (void)a;
  return 0;
}
static inline double imag_z(mp_complex_t a) {
  return cimag(a);
}
static inline double make_d(double re, double im) {
  (void)im;
  return re;
}
static inline mp_complex_t make_z(double re, double im) {
  return __builtin_complex(re, im);
}

#endif  // MINIPOD_SIM_KERNELS_LINALG_LINALG_LOOPS_H_
