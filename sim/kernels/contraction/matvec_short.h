// Products of short lines: sums of a few products each, many of them at once.
//
// For a line of three elements a function call takes longer than the sum. Here each lane of a
// vector has one sum, added up in the order in which `dot_` and `total_` of matvec.c add up a line,
// so the bits are the same.
#ifndef MINIPOD_SIM_KERNELS_CONTRACTION_MATVEC_SHORT_H_
#define MINIPOD_SIM_KERNELS_CONTRACTION_MATVEC_SHORT_H_

#include "sim/kernels/contraction/matvec.h"

// Whether the product is one of short lines, in types that need no conversion.
bool mp_matvec_is_short(const mp_matvec_t *matvec);

// Lists in the arena where lines begin, if there are few lines.
MP_NODISCARD mp_status_t mp_matvec_place_short(mp_arena_t *arena, mp_matvec_t *matvec);

// Computes the results [begin, end) of such a product.
void mp_matvec_run_short(const mp_matvec_t *matvec, const mp_kernel_call_t *call, int64_t begin,
                         int64_t end);

#endif  // MINIPOD_SIM_KERNELS_CONTRACTION_MATVEC_SHORT_H_
