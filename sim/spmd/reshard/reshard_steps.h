// The steps of a plan as ops.
#ifndef MINIPOD_SIM_SPMD_RESHARD_RESHARD_STEPS_H_
#define MINIPOD_SIM_SPMD_RESHARD_RESHARD_STEPS_H_

#include "sim/spmd/reshard/reshard_plan.h"

// Appends the ops of `plan` to `block`; `type` is the whole value's. The sums are by MP_OP_ADD.
MP_NODISCARD mp_status_t mp_reshard_append_steps(mp_module_t *module, mp_block_t *block,
                                                 const mp_type_t *type,
                                                 const mp_reshard_plan_t *plan, mp_value_t *value,
                                                 const mp_loc_t *loc, mp_value_t **out_value);

// Terms from parts (mp_reshard_find_terms): zeros with the part in its place. Sends nothing.
MP_NODISCARD mp_status_t mp_reshard_append_terms(mp_module_t *module, mp_block_t *block,
                                                 const mp_type_t *type,
                                                 const mp_reshard_terms_t *terms, mp_value_t *value,
                                                 const mp_loc_t *loc, mp_value_t **out_value);

// A collective_permute by which every partition p gets what partition `wanted[p]`'s kind of holder
// has: partitions with equal numbers in `held` hold the same; each number is held as often as it is
// wanted. Who holds what it wants keeps it.
MP_NODISCARD mp_status_t mp_reshard_append_permute(mp_module_t *module, mp_block_t *block,
                                                   const int64_t *held, const int64_t *wanted,
                                                   uint32_t num_partitions, mp_value_t *value,
                                                   const mp_loc_t *loc, mp_value_t **out_value);

#endif  // MINIPOD_SIM_SPMD_RESHARD_RESHARD_STEPS_H_
