// The narrow float formats (f4, f6, f8 kinds, f16, bf16) and their conversions in bulk.
//
// All of them are exact subsets of f32, so arithmetic on them is done in f32 and rounded once. One
// element at a time: mp_float_decode and mp_float_encode (sim/numeric/dtype.h), same results.
//
// Rounding is to nearest, ties to even. What is too large becomes infinity; NaN where the format
// has no infinity (the FN and FNUZ kinds); the largest value where it has neither (f4, f6; a NaN
// becomes zero there, with the sign turned round). f8E8M0FNU has neither sign nor zero: what is not
// positive becomes NaN, and ties go up.
#ifndef MINIPOD_SIM_NUMERIC_FLOAT_H_
#define MINIPOD_SIM_NUMERIC_FLOAT_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/numeric/dtype.h"

// A float type stored in one or two bytes.
static inline bool mp_float_is_narrow(mp_dtype_t dtype) {
  return mp_dtype_is_float(dtype) && mp_dtype_size(dtype) < 4;
}

// dst[0..n) = src[0..n), exactly. `from` is narrow. The arrays do not overlap.
void mp_float_widen(mp_dtype_t from, int64_t n, const void *src, float *dst);

// Rounded to the narrow type `to`. The arrays do not overlap.
void mp_float_narrow(mp_dtype_t to, int64_t n, const float *src, void *dst);

// The f32 next to `value` from which rounding to any narrow format gives what rounding `value`
// itself would: rounded towards zero, the last bit set when something was lost.
float mp_float_from_f64_to_odd(double value);

#endif  // MINIPOD_SIM_NUMERIC_FLOAT_H_
