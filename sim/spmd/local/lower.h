// Lowering: on which parts of its operands an op works, and what it becomes there.
//
// Propagation leaves every value with a sharding; an op may still see different ones along one
// factor. Here one list of atoms per factor is chosen, so that most bytes stay where they are;
// operands are then brought to it (versions.h), and the op runs unchanged on the smaller arrays.
// Factors that an op cannot be computed along are left whole.
#ifndef MINIPOD_SIM_SPMD_LOCAL_LOWER_H_
#define MINIPOD_SIM_SPMD_LOCAL_LOWER_H_

#include "sim/spmd/propagation/propagate.h"

typedef struct mp_local_op_s mp_local_op_t;

// Makes the per-device results of an op that becomes more than itself. `spec` is the op on its
// parts: local operands and types, copied regions. Appends to `block`; writes
// out_results[num_results].
typedef mp_status_t (*mp_local_emit_t)(const mp_local_op_t *local, mp_module_t *module,
                                       mp_block_t *block, const mp_op_spec_t *spec,
                                       mp_value_t **out_results);

struct mp_local_op_s {
  const mp_op_t *op;            // of the whole program
  const mp_boxes_t **operands;  // [num_operands]; NULL: whole
  // NULL: none. [num_operands]: whether the boxes are no placement of all of the operand, but what
  // each part needs of it.
  bool *are_excerpts;
  const mp_boxes_t **results;  // [num_results]; partial sums where a reduction is sharded
  mp_named_attr_t *attrs;      // the op's, with local sizes; [op->num_attrs]
  // Not NULL: its partials are partitions whose results are still to be combined by `combine`,
  // which is no sum (sums stay partial until somebody needs them).
  const mp_boxes_t *combine_over;
  mp_opcode_t combine;
  // NULL: the op itself on its parts.
  mp_local_emit_t emit;
  bool has_regions_twice;   // spec->regions is followed by a second copy of each
  const mp_boxes_t *terms;  // for `emit`: whose partials hold terms of the results
};

// `out_is_local` is false when the op works on whole operands; then `out` is not written.
MP_NODISCARD mp_status_t mp_lower_op(mp_arena_t *arena, const mp_propagation_t *propagation,
                                     const mp_spmd_scope_t *scope, const mp_op_t *op,
                                     mp_local_op_t *out, bool *out_is_local);

#endif  // MINIPOD_SIM_SPMD_LOCAL_LOWER_H_
