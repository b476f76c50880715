// Appends the steps of a plan as ops.
#ifndef MINIPOD_SIM_SPMD_RESHARD_RESHARD_STEPS_H_
#define MINIPOD_SIM_SPMD_RESHARD_RESHARD_STEPS_H_

#include "sim/spmd/build/append.h"
#include "sim/spmd/reshard/reshard_plan.h"

// Appends the ops of `plan`; `type` is the type of the whole value.
MP_NODISCARD mp_status_t mp_reshard_append_steps(const mp_append_at_t *at, const mp_type_t *type,
                                                 const mp_reshard_plan_t *plan, mp_value_t *value,
                                                 mp_value_t **out_value);

// Makes terms from parts (mp_reshard_find_terms): a term is zeros with the part in its place.
// Nothing is sent.
MP_NODISCARD mp_status_t mp_reshard_append_terms(const mp_append_at_t *at, const mp_type_t *type,
                                                 const mp_reshard_terms_t *terms, mp_value_t *value,
                                                 mp_value_t **out_value);

// Appends a collective_permute after which every partition p has the data with the number
// wanted[p]. Before, it has the data with the number held[p]. Each number must be held by as many
// partitions as need it. A partition that holds the number it needs keeps it.
MP_NODISCARD mp_status_t mp_reshard_append_permute(const mp_append_at_t *at, const int64_t *held,
                                                   const int64_t *wanted, uint32_t num_partitions,
                                                   mp_value_t *value, mp_value_t **out_value);

#endif  // MINIPOD_SIM_SPMD_RESHARD_RESHARD_STEPS_H_
