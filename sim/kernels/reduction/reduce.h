// Facts about the kernel of stablehlo.reduce that hold before it is created.
#ifndef MINIPOD_SIM_KERNELS_REDUCTION_REDUCE_H_
#define MINIPOD_SIM_KERNELS_REDUCTION_REDUCE_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/ir/module.h"
#include "sim/kernels/kernel.h"
#include "sim/kernels/reduction/fold.h"
#include "sim/kernels/source.h"

// Whether the op is a reduction of one operand and a known kind whose kernel computes each result
// from `out_length` contiguous elements: f(start, mp_fold_row(them)). `op` is verified and its
// operand has elements.
bool mp_reduce_is_by_rows(const mp_op_t *op, int64_t *out_length);

// Whether the op is a reduction of one operand and a known kind whose kernel reads the operand in
// runs of neighbours, so that they can be computed on request. `op` is verified.
bool mp_reduce_reads_runs(const mp_op_t *op);

// Runs a part of the kernel of such an op with elements that come from `source` and not from
// operand 0, which may be NULL. The bits are the same.
void mp_reduce_run_from(const mp_kernel_t *kernel, const mp_kernel_call_t *call,
                        mp_source_t *source);

#endif  // MINIPOD_SIM_KERNELS_REDUCTION_REDUCE_H_
