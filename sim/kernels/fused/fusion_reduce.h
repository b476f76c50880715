// Fused ops that end in a reduction whose rows are too long for a tile, or which is not by rows.
#ifndef MINIPOD_SIM_KERNELS_FUSED_FUSION_REDUCE_H_
#define MINIPOD_SIM_KERNELS_FUSED_FUSION_REDUCE_H_

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/ir/module.h"
#include "sim/kernels/kernel.h"

// The reduction in which a minipod.fusion ends; NULL if it does not, or if tiles can do it. It may
// end in any that reads its operand in runs of neighbours (mp_reduce_reads_runs).
const mp_op_t *mp_fusion_reduction(const mp_op_t *fusion);

// Makes the kernel of a minipod.fusion that ends in `reduce`.
MP_NODISCARD mp_status_t mp_fusion_make_reduction(mp_arena_t *arena, const mp_op_t *op,
                                                  const mp_op_t *reduce,
                                                  const mp_kernel_t **out_kernel);

#endif  // MINIPOD_SIM_KERNELS_FUSED_FUSION_REDUCE_H_
