// From annotations to what propagation begins with.
//
// Reads the shardings that parameters, results of ops and manual regions have, and rewrites the
// program so that propagation sees what the annotations mean:
//
// - A closed constraint also holds for its operand, when that has no sharding and no other
//   constraint: nothing would be gained by computing it elsewhere first. What a loop carries or a
//   branch returns is not tied down so; instead its other users read the constrained value.
// - Behind a chain of constraints on a value, later users read the end of the chain.
// - Values of a sharding_group are linked: all begin with the sharding that one of them has. When
//   two of them have different ones, each gets an open constraint, and those form the group.
#ifndef MINIPOD_SIM_SPMD_PROPAGATION_IMPORT_SHARDINGS_H_
#define MINIPOD_SIM_SPMD_PROPAGATION_IMPORT_SHARDINGS_H_

#include "sim/spmd/sharding/atoms.h"

typedef struct {
  mp_value_t *value;
  mp_atom_sharding_t *sharding;
} mp_given_t;

typedef struct {
  const mp_given_t *given;
  uint32_t num_given;
  bool is_sayable;  // false: some sharding is none of this space; the rest is not written then
} mp_import_t;

// `is_param_open[i]`: parameter i may be given a sharding when it has none (NULL: none may).
// Everything lives in the module's arena. The module's values must be numbered again.
MP_NODISCARD mp_status_t mp_spmd_import(mp_module_t *module, const mp_atom_space_t *space,
                                        const bool *is_param_open, mp_import_t *out);

// ---- manual regions ----

// What a sdy.manual_computation adds to the manual atoms around it; its mesh is that of the first
// sharding over more than one device (NULL: none). False when the region is not formed as the
// verifier asks, or its axes are none of this space.
bool mp_manual_atoms(const mp_atom_space_t *space, const mp_op_t *op, const mp_mesh_t **out_mesh,
                     uint32_t *out_atoms);

#endif  // MINIPOD_SIM_SPMD_PROPAGATION_IMPORT_SHARDINGS_H_
