// Custom calls as the partitioner sees them: which dimensions of which targets may be sharded.
#ifndef MINIPOD_SIM_SPMD_RULES_CUSTOM_CALL_DIMS_H_
#define MINIPOD_SIM_SPMD_RULES_CUSTOM_CALL_DIMS_H_

#include "sim/ir/module.h"

// How many leading dimensions, common to all tensors of a custom call, number independent problems,
// so that the call on a part of them computes that part of the results. 0 when this is not known
// about the target.
uint32_t mp_call_batch_dims(const mp_op_t *op);

#endif  // MINIPOD_SIM_SPMD_RULES_CUSTOM_CALL_DIMS_H_
