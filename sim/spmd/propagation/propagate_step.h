// One step of propagation: a rule applied to its tensors' shardings.
#ifndef MINIPOD_SIM_SPMD_PROPAGATION_PROPAGATE_STEP_H_
#define MINIPOD_SIM_SPMD_PROPAGATION_PROPAGATE_STEP_H_

#include "sim/spmd/rules/rules.h"
#include "sim/spmd/sharding/atoms.h"

typedef enum {
  MP_FLOW_NONE = 0,
  MP_FLOW_FORWARD = 1,
  MP_FLOW_BACKWARD = 2,
  MP_FLOW_BOTH = 3
} mp_flow_t;

// Which way a factor flows at a level (0 .. 4) of the rule's class.
mp_flow_t mp_flow_at(const mp_rule_t *rule, const mp_factor_t *factor, uint32_t level,
                     bool has_shared_operand);

typedef struct {
  uint32_t level;
  bool has_shared_operand;  // an operand of rank 1 or more is used elsewhere too
  mp_flow_t allowed;        // ways that are open at all
  const mp_mesh_t *mesh;    // that all have in common
} mp_step_mode_t;

// Extends `tensors` (operands, then results; several entries may be the same object). Sets
// out_changed[t] where it did.
MP_NODISCARD mp_status_t mp_propagate_step(mp_arena_t *scratch, const mp_atom_space_t *space,
                                           const mp_rule_t *rule, const mp_step_mode_t *mode,
                                           mp_atom_sharding_t *const *tensors, bool *out_changed);

#endif  // MINIPOD_SIM_SPMD_PROPAGATION_PROPAGATE_STEP_H_
