// The types of complex numbers in loops, and their order.
#ifndef MINIPOD_SIM_KERNELS_ELEMENTWISE_COMPLEX_TYPE_H_
#define MINIPOD_SIM_KERNELS_ELEMENTWISE_COMPLEX_TYPE_H_

#include <complex.h>

typedef float _Complex c64_t;
typedef double _Complex c128_t;

// By their real, then by their imaginary parts.
static inline int mp_complex_less(c128_t x, c128_t y) {
  return creal(x) < creal(y) || (creal(x) == creal(y) && cimag(x) < cimag(y));
}

#endif  // MINIPOD_SIM_KERNELS_ELEMENTWISE_COMPLEX_TYPE_H_
