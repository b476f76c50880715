// The import: makes the shardings with which propagation begins from the program's annotations.
//
// It reads the shardings that parameters, results of ops and manual regions have, and rewrites the
// program so that propagation sees what the annotations mean:
//
// - A closed constraint also holds for its operand, if that has no sharding and no other
// constraint,
//   because computing the operand with another sharding first would gain nothing. Values that a
//   loop carries or a branch returns are an exception: their other users read the constrained value
//   instead.
// - If several constraints on a value follow each other, later users read the last one's result.
// - The values of a sharding_group are linked: all begin with the sharding that one of them has. If
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
  // False when the space cannot express some sharding; nothing else is written then.
  bool is_sayable;
} mp_import_t;

// Rewrites the module and reads its annotations. `is_param_open[i]`: parameter i may be given a
// sharding if it has none (NULL: none may). Everything lives in the module's arena. The caller must
// number the module's values again.
MP_NODISCARD mp_status_t mp_spmd_import(mp_module_t *module, const mp_atom_space_t *space,
                                        const bool *is_param_open, mp_import_t *out);

// ---- manual regions ----

// The atoms of the manual axes of a sdy.manual_computation, as a set. Its mesh is that of the first
// of its shardings over more than one device, NULL if there is none. False when the region does not
// satisfy the verifier, or when the space does not have its axes.
bool mp_manual_atoms(const mp_atom_space_t *space, const mp_op_t *op, const mp_mesh_t **out_mesh,
                     uint32_t *out_atoms);

#endif  // MINIPOD_SIM_SPMD_PROPAGATION_IMPORT_SHARDINGS_H_
