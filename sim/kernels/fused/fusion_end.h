// Fused ops that end in an op that is no step of tiles, but requests elements that tiles compute.
#ifndef MINIPOD_SIM_KERNELS_FUSED_FUSION_END_H_
#define MINIPOD_SIM_KERNELS_FUSED_FUSION_END_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/ir/module.h"
#include "sim/kernels/kernel.h"

// Whether a minipod.fusion may end in the op; `out_operand` is the operand that its tiles compute.
// These are reductions that read their operand in runs of neighbours (mp_reduce_reads_runs), with
// rows that are too long for a tile, or not by rows. Gathers may be the end, too, if they read
// their index vectors in such runs (mp_gather_reads_runs) and the table is an operand of the fused
// op. `op` is verified.
bool mp_fusion_may_end(const mp_op_t *op, uint32_t *out_operand);

// The op in which a minipod.fusion ends; NULL if tiles do all of it.
const mp_op_t *mp_fusion_end(const mp_op_t *fusion);

// Makes the kernel of a minipod.fusion that ends in `end`.
MP_NODISCARD mp_status_t mp_fusion_make_end(mp_arena_t *arena, const mp_op_t *op,
                                            const mp_op_t *end, const mp_kernel_t **out_kernel);

#endif  // MINIPOD_SIM_KERNELS_FUSED_FUSION_END_H_
