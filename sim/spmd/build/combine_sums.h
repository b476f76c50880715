// Combining all_reduces: sums over the same groups that do not depend on each other become one
// all_reduce of several operands. So a training step sums up its gradients in one collective
// instead of one per parameter.
#ifndef MINIPOD_SIM_SPMD_BUILD_COMBINE_SUMS_H_
#define MINIPOD_SIM_SPMD_BUILD_COMBINE_SUMS_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// During partitioning, mp_op_t.id has this value for an all_reduce that the partitioner has made,
// and that may be combined. The program's own collectives stay as written.
enum { MP_COMBINE_MAY = 1 };

// Combines the sums of the per-device program; `body` is main's.
MP_NODISCARD mp_status_t mp_spmd_combine(mp_module_t *module, mp_block_t *body);

#endif  // MINIPOD_SIM_SPMD_BUILD_COMBINE_SUMS_H_
