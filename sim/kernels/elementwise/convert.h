// Conversion of arrays between any two element types, as stablehlo.convert does it, for kernels
// that compute in another type than the one that is stored (dot_general, convolution, ...).
#ifndef MINIPOD_SIM_KERNELS_ELEMENTWISE_CONVERT_H_
#define MINIPOD_SIM_KERNELS_ELEMENTWISE_CONVERT_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/kernels/elementwise/elementwise.h"
#include "sim/numeric/dtype.h"

typedef struct {
  mp_dtype_t from, to;  // as stored
  mp_ew_t ew;           // unless they are the same
} mp_convert_t;

// Finds the conversion between two types; false when there is none.
bool mp_convert_bind(mp_dtype_t from, mp_dtype_t to, mp_convert_t *out_convert);

// Converts `n` elements; the arrays must not overlap.
void mp_convert_run(const mp_convert_t *convert, int64_t n, const void *src, void *dst);

// Whether both types are the same, so that the conversion changes nothing.
static inline bool mp_convert_is_copy(const mp_convert_t *convert) {
  return convert->from == convert->to;
}

#endif  // MINIPOD_SIM_KERNELS_ELEMENTWISE_CONVERT_H_
