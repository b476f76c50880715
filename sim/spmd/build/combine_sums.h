// Sums of one group that do not wait for each other are made at once: all_reduces become one
// variadic all_reduce. The gradients of a step meet once instead of once per parameter.
#ifndef MINIPOD_SIM_SPMD_BUILD_COMBINE_SUMS_H_
#define MINIPOD_SIM_SPMD_BUILD_COMBINE_SUMS_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// What mp_op_t.id of an op says during partitioning: this all_reduce is the partitioner's own and
// may be combined. The program's own collectives stay as written.
enum { MP_COMBINE_MAY = 1 };

// In the per-device program; `body` is main's.
MP_NODISCARD mp_status_t mp_spmd_combine(mp_module_t *module, mp_block_t *body);

#endif  // MINIPOD_SIM_SPMD_BUILD_COMBINE_SUMS_H_
