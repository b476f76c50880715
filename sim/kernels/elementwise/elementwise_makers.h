// The makers of elementwise kernels (sim/kernels/kernel.h), and the operands that these read.
#ifndef MINIPOD_SIM_KERNELS_ELEMENTWISE_ELEMENTWISE_MAKERS_H_
#define MINIPOD_SIM_KERNELS_ELEMENTWISE_ELEMENTWISE_MAKERS_H_

#include <stdint.h>

#include "sim/kernels/kernel.h"

MP_KERNEL_MAKER(mp_kernel_make_elementwise);
MP_KERNEL_MAKER(mp_kernel_make_map);

// The value that the kernel of an op with the maker mp_kernel_make_elementwise reads as operand
// `operand`: the operand, or, if a large operand is the broadcast of a scalar, that scalar. The
// kernel repeats the scalar itself, which saves the memory and time of making the array.
mp_value_t *mp_kernel_elementwise_operand(const mp_op_t *op, uint32_t operand);

#endif  // MINIPOD_SIM_KERNELS_ELEMENTWISE_ELEMENTWISE_MAKERS_H_
