// The makers of kernels that move elements (sim/kernels/kernel.h).
#ifndef MINIPOD_SIM_KERNELS_MOVEMENT_MOVEMENT_MAKERS_H_
#define MINIPOD_SIM_KERNELS_MOVEMENT_MOVEMENT_MAKERS_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/kernels/kernel.h"

MP_KERNEL_MAKER(mp_kernel_make_bitcast_convert);
MP_KERNEL_MAKER(mp_kernel_make_broadcast_in_dim);
MP_KERNEL_MAKER(mp_kernel_make_concatenate);
MP_KERNEL_MAKER(mp_kernel_make_dynamic_slice);
MP_KERNEL_MAKER(mp_kernel_make_dynamic_update_slice);
MP_KERNEL_MAKER(mp_kernel_make_gather);
MP_KERNEL_MAKER(mp_kernel_make_iota);
MP_KERNEL_MAKER(mp_kernel_make_pad);
MP_KERNEL_MAKER(mp_kernel_make_reverse);
MP_KERNEL_MAKER(mp_kernel_make_scatter);
MP_KERNEL_MAKER(mp_kernel_make_slice);
MP_KERNEL_MAKER(mp_kernel_make_sort);
MP_KERNEL_MAKER(mp_kernel_make_transpose);

// Whether an operand of a sort numbers the rows of each slice, and the comparator does not use it.
// The kernel then does not read it.
bool mp_kernel_sort_counts(const mp_op_t *op, uint32_t operand);

// ---- targets of custom_call, whose makers also check operands and results ----

// "ApproxTopK": (values, indices, initial value, initial index) to the best values and their
// indices along `reduction_dim`, exactly. The initial value's sign tells which end is best.
MP_KERNEL_MAKER(mp_call_make_approx_top_k);
// "minipod.check_index": OUT_OF_RANGE unless indices are within bounds (index_check.c).
MP_KERNEL_MAKER(mp_call_make_index_check);
// "TopK", "mhlo.topk": values to (the largest k along the last dimension, their indices); the
// smallest when mhlo.attributes has `largest = false`.
MP_KERNEL_MAKER(mp_call_make_top_k);

#endif  // MINIPOD_SIM_KERNELS_MOVEMENT_MOVEMENT_MAKERS_H_
