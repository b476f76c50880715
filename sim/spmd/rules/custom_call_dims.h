// Which dimensions of custom calls the partitioner may shard, by target.
#ifndef MINIPOD_SIM_SPMD_RULES_CUSTOM_CALL_DIMS_H_
#define MINIPOD_SIM_SPMD_RULES_CUSTOM_CALL_DIMS_H_

#include "sim/ir/module.h"

// The number of leading dimensions, common to all tensors of a custom call, that number independent
// problems, so that the call on a part of them computes that part of the results. 0 for unknown
// targets.
uint32_t mp_call_batch_dims(const mp_op_t *op);

#endif  // MINIPOD_SIM_SPMD_RULES_CUSTOM_CALL_DIMS_H_
