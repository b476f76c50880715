// The kernel makers, one per subject; sim/kernels/kernel_table.c says which op has which.
//
// Every maker has the contract of mp_kernel_create: `op` is verified and has static shapes; the
// kernel and all that it points to live in `arena`; what the maker does not support is
// UNIMPLEMENTED, by mp_op_error.
#ifndef MINIPOD_SIM_KERNELS_KERNEL_MAKERS_H_
#define MINIPOD_SIM_KERNELS_KERNEL_MAKERS_H_

#include "sim/kernels/kernel.h"

#define MP_KERNEL_MAKERS(X) \
  X(elementwise)            \
  X(map)                    \
  X(reduce)                 \
  X(reduce_window)          \
  X(scatter)                \
  X(select_and_scatter)     \
  X(sort)                   \
  X(batch_norm_grad)        \
  X(batch_norm_inference)   \
  X(batch_norm_training)    \
  X(bitcast_convert)        \
  X(broadcast_in_dim)       \
  X(cholesky)               \
  X(concatenate)            \
  X(convolution)            \
  X(custom_call)            \
  X(dot_general)            \
  X(dynamic_slice)          \
  X(dynamic_update_slice)   \
  X(fft)                    \
  X(fusion)                 \
  X(gather)                 \
  X(iota)                   \
  X(pad)                    \
  X(reverse)                \
  X(rng)                    \
  X(rng_bit_generator)      \
  X(slice)                  \
  X(transpose)              \
  X(triangular_solve)

#define MP_KERNEL_DECLARE(name)                                                        \
  MP_NODISCARD mp_status_t mp_kernel_make_##name(mp_arena_t *arena, const mp_op_t *op, \
                                                 const mp_kernel_t **out_kernel);
MP_KERNEL_MAKERS(MP_KERNEL_DECLARE)
#undef MP_KERNEL_DECLARE

// Whether an operand of a sort numbers the rows of each slice, and the comparator does not use it.
// The kernel then does not read it (mp_kernel_operand).
bool mp_kernel_sort_counts(const mp_op_t *op, uint32_t operand);
// The same for the positions of a reduction such as argmax.
bool mp_kernel_reduce_counts(const mp_op_t *op, uint32_t operand);

#endif  // MINIPOD_SIM_KERNELS_KERNEL_MAKERS_H_
