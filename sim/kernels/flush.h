// Denormal numbers as zeros, in matmuls.
//
// Processors take some hundred cycles for a product with a denormal operand, and a softmax yields
// many of them for improbable classes: a gradient through it would take fifty times as long. XLA
// treats them as zeros everywhere. minipod does so only inside of matmuls and convolutions, where
// the error is less than 2^-126 of the other operand.
#ifndef MINIPOD_SIM_KERNELS_FLUSH_H_
#define MINIPOD_SIM_KERNELS_FLUSH_H_

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

// From mp_flush_begin to mp_flush_end the calling thread reads denormal operands as zeros and
// writes zeros for denormal results. The arithmetic between must be in separate functions:
// compilers do not know that it depends on this mode. Do not convert from f16 between them, because
// these conversions use denormal numbers.
static inline unsigned mp_flush_begin(void) {
#if defined(__SSE2__)
  enum { DENORMALS_ARE_ZERO = 0x0040, FLUSH_TO_ZERO = 0x8000 };
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | DENORMALS_ARE_ZERO | FLUSH_TO_ZERO);
  return before;
#else
  return 0;
#endif
}

// `before` is the result of mp_flush_begin.
static inline void mp_flush_end(unsigned before) {
#if defined(__SSE2__)
  _mm_setcsr(before);
#else
  (void)before;
#endif
}

#endif  // MINIPOD_SIM_KERNELS_FLUSH_H_
