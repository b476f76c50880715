// The builders, by family; the table in hlo_ops.c maps opcodes to builders. Each gets an
// instruction with the number of operands of its row, and may rely on nothing else.
#ifndef MINIPOD_SIM_READERS_HLO_HLO_OPS_H_
#define MINIPOD_SIM_READERS_HLO_HLO_OPS_H_

#include "sim/readers/hlo/hlo_build.h"

#define MP_HLO_BUILDERS(X)                                                                   \
  /* hlo_ops_plain.c: operands that are arrays, and attributes of the operation */           \
  X(plain)                                                                                   \
  X(broadcast)                                                                               \
  X(transpose)                                                                               \
  X(reverse)                                                                                 \
  X(iota)                                                                                    \
  X(concatenate)                                                                             \
  X(compare)                                                                                 \
  X(slice)                                                                                   \
  X(dynamic_slice)                                                                           \
  X(dynamic_update_slice)                                                                    \
  X(pad)                                                                                     \
  X(get_dimension_size)                                                                      \
  X(reduce_precision)                                                                        \
  X(bitcast)                                                                                 \
  X(constant)                                                                                \
  /* hlo_ops_linear.c: products, windows, factorisations */                                  \
  X(dot)                                                                                     \
  X(convolution)                                                                             \
  X(reduce_window)                                                                           \
  X(select_and_scatter)                                                                      \
  X(cholesky)                                                                                \
  X(triangular_solve)                                                                        \
  X(fft)                                                                                     \
  /* hlo_ops_scalar.c: with computations on scalars, indices, and random numbers */          \
  X(reduce)                                                                                  \
  X(map)                                                                                     \
  X(sort)                                                                                    \
  X(gather)                                                                                  \
  X(scatter)                                                                                 \
  X(batch_norm)                                                                              \
  X(rng)                                                                                     \
  X(rng_bit_generator)                                                                       \
  X(topk)                                                                                    \
  X(function)                                                                                \
  /* hlo_control.c: tuples, tokens, calls, loops, branches, what runs beside other things */ \
  X(parameter)                                                                               \
  X(forward)                                                                                 \
  X(first)                                                                                   \
  X(get_tuple_element)                                                                       \
  X(opt_barrier)                                                                             \
  X(after_all)                                                                               \
  X(call)                                                                                    \
  X(while)                                                                                   \
  X(conditional)                                                                             \
  X(async_start)                                                                             \
  X(async_done)                                                                              \
  X(copy_start)                                                                              \
  /* hlo_collectives.c */                                                                    \
  X(all_reduce)                                                                              \
  X(all_gather)                                                                              \
  X(all_gather_start)                                                                        \
  X(reduce_scatter)                                                                          \
  X(collective_permute)                                                                      \
  X(collective_permute_start)                                                                \
  X(collective_broadcast)                                                                    \
  X(send)                                                                                    \
  X(send_done)                                                                               \
  X(recv)                                                                                    \
  X(recv_done)                                                                               \
  /* hlo_exchange.c */                                                                       \
  X(all_to_all)                                                                              \
  X(ragged_all_to_all)                                                                       \
  /* hlo_custom_call.c */                                                                    \
  X(custom_call)

#define MP_HLO_DECLARE(name)                                                                 \
  MP_NODISCARD mp_status_t mp_hlo_build_##name(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, \
                                               mp_hlo_leaves_t *out);
MP_HLO_BUILDERS(MP_HLO_DECLARE)
#undef MP_HLO_DECLARE

// The row of an opcode; NULL when it is not known. Builders get it (mp_hlo_t), because they build
// what their instructions call.
const mp_hlo_row_t *mp_hlo_find_row(mp_str_t opcode);

#endif  // MINIPOD_SIM_READERS_HLO_HLO_OPS_H_
