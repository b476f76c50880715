// Products of short lines: sums of a few products each, many of them at once.
//
// A line of three elements has less to do than calling a function for it. Here the sums lie in
// vectors, one lane each, and each lane is summed up in the order in which `dot_` and `total_` of
// matvec.c sum up one line, so the bits are the same.
#ifndef MINIPOD_SIM_KERNELS_CONTRACTION_MATVEC_SHORT_H_
#define MINIPOD_SIM_KERNELS_CONTRACTION_MATVEC_SHORT_H_

#include "sim/kernels/contraction/matvec.h"

// Whether the product is one of short lines, in types that need no conversion.
bool mp_matvec_is_short(const mp_matvec_t *matvec);

// Notes in the arena where lines begin, if they are few.
MP_NODISCARD mp_status_t mp_matvec_place_short(mp_arena_t *arena, mp_matvec_t *matvec);

// Computes the results [begin, end) of such a product.
void mp_matvec_run_short(const mp_matvec_t *matvec, const mp_kernel_call_t *call, int64_t begin,
                         int64_t end);

#endif  // MINIPOD_SIM_KERNELS_CONTRACTION_MATVEC_SHORT_H_
