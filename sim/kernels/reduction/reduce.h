// What is known about the kernel of stablehlo.reduce before it is made.
#ifndef MINIPOD_SIM_KERNELS_REDUCTION_REDUCE_H_
#define MINIPOD_SIM_KERNELS_REDUCTION_REDUCE_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/ir/module.h"

// Whether the op is a reduction of one operand and a known kind whose kernel makes each result of
// `out_length` elements that lie one after the other: f(start, mp_fold_row(them)). `op` is verified
// and its operand has elements.
bool mp_reduce_is_by_rows(const mp_op_t *op, int64_t *out_length);

#endif  // MINIPOD_SIM_KERNELS_REDUCTION_REDUCE_H_
