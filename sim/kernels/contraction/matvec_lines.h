// Products of lines that are contiguous and need no conversion, so they are read in place.
#ifndef MINIPOD_SIM_KERNELS_CONTRACTION_MATVEC_LINES_H_
#define MINIPOD_SIM_KERNELS_CONTRACTION_MATVEC_LINES_H_

#include "sim/kernels/contraction/matvec.h"

// Whether the product is of such lines, and the rows of a matrix are at equal distances.
bool mp_matvec_is_lines(const mp_matvec_t *matvec);

// The scratch memory that mp_matvec_run_lines needs, in bytes.
size_t mp_matvec_lines_scratch(const mp_matvec_t *matvec);

// Computes the results [begin, end) of such a product.
void mp_matvec_run_lines(const mp_matvec_t *matvec, const mp_kernel_call_t *call, int64_t begin,
                         int64_t end);

#endif  // MINIPOD_SIM_KERNELS_CONTRACTION_MATVEC_LINES_H_
