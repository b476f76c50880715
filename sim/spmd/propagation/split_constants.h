// Constants, one for each use.
//
// A constant that two ops read would tie their shardings together for nothing: it costs no more to
// have it twice. Every use by an op that is no constant itself gets its own copy of the constant,
// of the ops on constants that make it (MP_OP_TRAIT_AGAIN), and of a scalar's broadcast; scalars
// stay shared, as they are never sharded. Copies that come out alike become one again
// (propagate_merge.c).
#ifndef MINIPOD_SIM_SPMD_PROPAGATION_SPLIT_CONSTANTS_H_
#define MINIPOD_SIM_SPMD_PROPAGATION_SPLIT_CONSTANTS_H_

#include <stdbool.h>

#include "sim/base/status.h"
#include "sim/ir/module.h"

// Rewrites main's body; renumbers the module's values and leaves them to be numbered again.
// Programs whose copies would be absurdly many keep the rest of their constants shared.
MP_NODISCARD mp_status_t mp_spmd_split_constants(mp_module_t *module);

#endif  // MINIPOD_SIM_SPMD_PROPAGATION_SPLIT_CONSTANTS_H_
