// Conversion of arrays between any two element types, for kernels that compute in a type other
// than the one they store (dot_general, convolution, ...). The meaning is stablehlo.convert's.
#ifndef MINIPOD_SIM_KERNELS_ELEMENTWISE_CONVERT_H_
#define MINIPOD_SIM_KERNELS_ELEMENTWISE_CONVERT_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/kernels/elementwise/elementwise.h"
#include "sim/numeric/dtype.h"

typedef struct {
  mp_dtype_t from, to;  // as stored
  mp_dtype_t from_c;    // the computing types on the way
  mp_dtype_t to_c;
  mp_ew_loop_t loop;  // from_c to to_c; NULL when they are the same
} mp_convert_t;

// False when there is no such conversion.
bool mp_convert_bind(mp_dtype_t from, mp_dtype_t to, mp_convert_t *out_convert);

// dst[0..n) = src[0..n); the arrays do not overlap.
void mp_convert_run(const mp_convert_t *convert, int64_t n, const void *src, void *dst);

static inline bool mp_convert_is_copy(const mp_convert_t *convert) {
  return convert->from == convert->to;
}

#endif  // MINIPOD_SIM_KERNELS_ELEMENTWISE_CONVERT_H_
