// The state of an import, which import_shardings.c, import_constraints.c and import_groups.c share.
#ifndef MINIPOD_SIM_SPMD_PROPAGATION_IMPORT_PARTS_H_
#define MINIPOD_SIM_SPMD_PROPAGATION_IMPORT_PARTS_H_

#include "sim/spmd/propagation/import_shardings.h"

typedef struct mp_use_s {
  mp_op_t *op;
  uint32_t operand;
  struct mp_use_s *next;
} mp_use_t;

typedef struct {
  mp_module_t *module;
  mp_arena_t *arena;    // for the result
  mp_arena_t *scratch;  // freed at the end of the import
  const mp_atom_space_t *space;
  const bool *is_param_open;
  uint32_t num_values;
  mp_value_t **values;         // by value id
  mp_atom_sharding_t **given;  // by value id; NULL: none
  mp_use_t **uses;             // by value id; the last one first
  bool *is_torn;               // by value id: several constraints on it request different shardings
  uint32_t num_groups;         // number of sharding_group ops
  uint32_t num_ops;            // ids of ops are their order in the program
  bool is_sayable;             // see mp_import_t
} mp_importer_t;

// The value at which a value's sharding is kept: the arguments of a loop have that of its result.
// NULL for arguments of regions whose values have no shardings (reducers).
const mp_value_t *mp_import_holder(const mp_value_t *value);

// Marks the manual axes that an operand or result of a region does not use as replicated, so that
// propagation does not use them for it.
void mp_import_fix_unused(mp_atom_sharding_t *sharding, const mp_mesh_t *mesh, uint32_t own);

// ---- import_constraints.c ----

// Gives the operands of constraints and manual regions the shardings that these request.
MP_NODISCARD mp_status_t mp_import_constraints(mp_importer_t *im);
// Inserts a constraint op after the definition of `input`; its result gets the next free value id.
MP_NODISCARD mp_status_t mp_import_add_constraint(mp_importer_t *im, mp_value_t *input,
                                                  const mp_loc_t *loc, mp_atom_sharding_t *sharding,
                                                  mp_op_t **out_op);
// Makes all uses of `from`, except those by `except`, uses of `to`. If `after` is given, only uses
// after that op in its block change, and the return of main does not.
void mp_import_replace_uses(mp_importer_t *im, mp_value_t *from, mp_value_t *to,
                            const mp_op_t *except, const mp_op_t *after);

// ---- import_groups.c ----

// Gives all members of a sharding group the same sharding to begin with.
MP_NODISCARD mp_status_t mp_import_groups(mp_importer_t *im);

#endif  // MINIPOD_SIM_SPMD_PROPAGATION_IMPORT_PARTS_H_
