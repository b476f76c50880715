// The narrow float formats (f4, f6, f8 kinds, f16, bf16) and their conversions in bulk.
//
// All of them are exact subsets of f32, so arithmetic on them is done in f32 and rounded once.
// mp_float_decode and mp_float_encode (sim/numeric/dtype.h) give the same results for one element.
//
// Rounding is to nearest, ties to even. What is too large becomes infinity; NaN if the format has
// no infinity (the FN and FNUZ kinds); the largest value if it has neither (f4, f6; there a NaN
// becomes zero with the opposite sign). f8E8M0FNU has neither sign nor zero: what is not positive
// becomes NaN, and ties go up.
#ifndef MINIPOD_SIM_NUMERIC_FLOAT_H_
#define MINIPOD_SIM_NUMERIC_FLOAT_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/numeric/dtype.h"

// Whether it is a floating-point type that is stored in one or two bytes.
static inline bool mp_float_is_narrow(mp_dtype_t dtype) {
  return mp_dtype_is_float(dtype) && mp_dtype_size(dtype) < 4;
}

// Converts `n` elements of the narrow type `from` to f32, exactly. The arrays must not overlap.
void mp_float_widen(mp_dtype_t from, int64_t n, const void *src, float *dst);

// Rounds `n` elements to the narrow type `to`. The arrays must not overlap.
void mp_float_narrow(mp_dtype_t to, int64_t n, const float *src, void *dst);

// Rounds `n` floats to what the narrow type `to` can hold, as narrowing and widening again would.
// The arrays are the same or do not overlap.
void mp_float_round(mp_dtype_t to, int64_t n, const float *src, float *dst);

// Rounds to the f32 from which rounding to any narrow format gives the same as rounding `value`
// itself: `value` rounded towards zero, with the last bit set when something was lost.
float mp_float_from_f64_to_odd(double value);

#endif  // MINIPOD_SIM_NUMERIC_FLOAT_H_
