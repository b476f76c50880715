// The import at work: what import.c, constraints.c and groups.c share.
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
  mp_arena_t *arena;    // what stays
  mp_arena_t *scratch;  // of the import
  const mp_atom_space_t *space;
  const bool *is_param_open;
  uint32_t num_values;
  mp_value_t **values;         // by value id
  mp_atom_sharding_t **given;  // by value id; NULL: none
  mp_use_t **uses;             // by value id; the last one first
  bool *is_torn;               // by value id: constraints on it differ
  uint32_t num_groups;         // sharding_group ops
  uint32_t num_ops;            // ids of ops are their order in the program
  bool is_sayable;
} mp_importer_t;

// Where a value's sharding is kept: a loop's arguments share that of its result. NULL for arguments
// of regions that have none (reducers).
const mp_value_t *mp_import_holder(const mp_value_t *value);

// Manual axes that an operand or result of a region does not use are fixed as replicated.
void mp_import_fix_unused(mp_atom_sharding_t *sharding, const mp_mesh_t *mesh, uint32_t own);

// ---- constraints.c ----

// Gives the operands of constraints and manual regions what these ask for.
MP_NODISCARD mp_status_t mp_import_constraints(mp_importer_t *im);
// A constraint op behind `input` with the next free value id.
MP_NODISCARD mp_status_t mp_import_add_constraint(mp_importer_t *im, mp_value_t *input,
                                                  const mp_loc_t *loc, mp_atom_sharding_t *sharding,
                                                  mp_op_t **out_op);
// All uses of `from` but those by `except` become uses of `to`; with `after`, only those behind
// that op in its block which are no return of main.
void mp_import_replace_uses(mp_importer_t *im, mp_value_t *from, mp_value_t *to,
                            const mp_op_t *except, const mp_op_t *after);

// ---- groups.c ----

// Makes the members of each sharding group begin alike.
MP_NODISCARD mp_status_t mp_import_groups(mp_importer_t *im);

#endif  // MINIPOD_SIM_SPMD_PROPAGATION_IMPORT_PARTS_H_
