// The table of ops and their kernels, over all rooms of kernels.
#ifndef MINIPOD_SIM_KERNELS_TABLE_KERNEL_TABLE_H_
#define MINIPOD_SIM_KERNELS_TABLE_KERNEL_TABLE_H_

#include <stdint.h>

#include "sim/kernels/kernel.h"

// Makes the kernel for an op, in `arena`. UNIMPLEMENTED, naming op, location and reason, when there
// is none for it (an op, element type or attribute that is not supported).
MP_KERNEL_MAKER(mp_kernel_create);

// The value that a kernel reads as operand `operand` of its op: the operand, or, if a large operand
// of an elementwise op is the broadcast of a scalar, that scalar (mp_kernel_elementwise_operand).
// If the operand is an iota that the kernel counts by itself, the kernel does not read it, and the
// result is another operand, the first.
mp_value_t *mp_kernel_operand(const mp_op_t *op, uint32_t operand);

#endif  // MINIPOD_SIM_KERNELS_TABLE_KERNEL_TABLE_H_
