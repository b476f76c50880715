// The makers of kernels that reduce (sim/kernels/kernel.h).
#ifndef MINIPOD_SIM_KERNELS_REDUCTION_REDUCTION_MAKERS_H_
#define MINIPOD_SIM_KERNELS_REDUCTION_REDUCTION_MAKERS_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/kernels/kernel.h"

MP_KERNEL_MAKER(mp_kernel_make_batch_norm_grad);
MP_KERNEL_MAKER(mp_kernel_make_batch_norm_inference);
MP_KERNEL_MAKER(mp_kernel_make_batch_norm_training);
MP_KERNEL_MAKER(mp_kernel_make_reduce);

// Whether an operand of a reduction such as argmax numbers the positions of each slice, and the
// kernel only counts them. The kernel then does not read it.
bool mp_kernel_reduce_counts(const mp_op_t *op, uint32_t operand);

#endif  // MINIPOD_SIM_KERNELS_REDUCTION_REDUCTION_MAKERS_H_
