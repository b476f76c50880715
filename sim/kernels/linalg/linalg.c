#include "sim/kernels/linalg/linalg.h"

#include <stddef.h>
#include <string.h>

#include "sim/kernels/linalg/linalg_loops.h"

MP_VECTOR double mp_largest(int64_t count, const double *a) {
  double most[MP_DOT_LANES] = {0}, defects[MP_DOT_LANES] = {0};
  int64_t i = 0;
  for (; i + MP_DOT_LANES <= count; i += MP_DOT_LANES) {
    for (int l = 0; l < MP_DOT_LANES; ++l) {
      double x = fabs(a[i + l]);
      most[l] = x > most[l] ? x : most[l];
      defects[l] += x * 0;  // becomes NaN if x is not finite
    }
  }
  for (; i < count; ++i) {
    most[0] = fmax(most[0], fabs(a[i]));
    defects[0] += a[i] * 0;
  }
  double largest = 0, defect = 0;
  for (int l = 0; l < MP_DOT_LANES; ++l) {
    largest = fmax(largest, most[l]);
    defect += defects[l];
  }
  return defect == 0 ? largest : (double)NAN;
}

void mp_scale(int64_t count, int exponent, double *a) {
  if (exponent == 0) return;
  double first = ldexp(1, exponent / 2), second = ldexp(1, exponent - exponent / 2);
  for (int64_t i = 0; i < count; ++i) a[i] = a[i] * first * second;
}

#define T    double
#define F(x) x##_d
#include "sim/kernels/linalg/linalg_template.h"
#undef T
#undef F
#define T    mp_complex_t
#define F(x) x##_z
#include "sim/kernels/linalg/linalg_template.h"
