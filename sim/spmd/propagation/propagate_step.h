// One step of propagation: applies a rule to the shardings of its tensors.
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

typedef struct {
  uint32_t level;
  bool has_shared_operand;  // an operand of rank 1 or more has other users too
  mp_flow_t allowed;        // no factor propagates in other directions
  const mp_mesh_t *mesh;    // the mesh of all shardings
} mp_step_mode_t;

// Extends the shardings `tensors` (operands, then results; several entries may be the same object).
// Sets out_changed[t] to true for tensors that changed, and does not write the other entries.
MP_NODISCARD mp_status_t mp_propagate_step(mp_arena_t *scratch, const mp_atom_space_t *space,
                                           const mp_rule_t *rule, const mp_step_mode_t *mode,
                                           mp_atom_sharding_t *const *tensors, bool *out_changed);

#endif  // MINIPOD_SIM_SPMD_PROPAGATION_PROPAGATE_STEP_H_
