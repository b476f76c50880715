// Copies constants, so that each use has its own.
//
// A constant with two readers would tie their shardings together, without need, because a second
// copy costs nothing. Every use by an op that is no constant itself gets its own copy of the
// constant and of the ops on constants that make it (MP_OP_TRAIT_AGAIN), and its own broadcast of a
// scalar. Scalars themselves stay shared, as they are never sharded. Copies that get the same
// sharding are merged again (propagate_merge.c).
#ifndef MINIPOD_SIM_SPMD_PROPAGATION_SPLIT_CONSTANTS_H_
#define MINIPOD_SIM_SPMD_PROPAGATION_SPLIT_CONSTANTS_H_

#include <stdbool.h>

#include "sim/base/status.h"
#include "sim/ir/module.h"

// Rewrites main's body. The caller must number the module's values again. There is a limit on the
// number of copies; beyond it constants stay shared.
MP_NODISCARD mp_status_t mp_spmd_split_constants(mp_module_t *module);

#endif  // MINIPOD_SIM_SPMD_PROPAGATION_SPLIT_CONSTANTS_H_
