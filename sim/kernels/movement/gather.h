// Facts about the kernel of stablehlo.gather that hold before it is created.
#ifndef MINIPOD_SIM_KERNELS_MOVEMENT_GATHER_H_
#define MINIPOD_SIM_KERNELS_MOVEMENT_GATHER_H_

#include <stdbool.h>

#include "sim/ir/module.h"
#include "sim/kernels/kernel.h"
#include "sim/kernels/source.h"

// Whether the op is a gather whose kernel reads its index vectors one after the other, each in one
// piece, so that they can be computed on request. `op` is verified.
bool mp_gather_reads_runs(const mp_op_t *op);

// Makes the kernel for any indices; mp_kernel_make_gather makes a faster one for some constants.
MP_KERNEL_MAKER(mp_gather_make);

// Runs a part of the kernel of such an op with index vectors that come from `source` and not from
// operand 1, which may be NULL. The bits are the same.
void mp_gather_run_from(const mp_kernel_t *kernel, const mp_kernel_call_t *call,
                        mp_source_t *source);

#endif  // MINIPOD_SIM_KERNELS_MOVEMENT_GATHER_H_
