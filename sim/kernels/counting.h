// Rows of numbers at equal distances, for iota; private to sim/kernels.
#ifndef MINIPOD_SIM_KERNELS_COUNTING_H_
#define MINIPOD_SIM_KERNELS_COUNTING_H_

#include <stdint.h>

#include "sim/numeric/dtype.h"

// Writes `count` stored elements of `dtype` with the values begin, begin + step, begin + 2 * step,
// ...; integers wrap, complex numbers have no imaginary part, booleans are true if the value is not
// 0.
void mp_count_line(mp_dtype_t dtype, int64_t begin, int64_t step, int64_t count, void *out);

#endif  // MINIPOD_SIM_KERNELS_COUNTING_H_
