// Lowering decides which parts of its operands an op works on, and which per-device op it becomes.
//
// After propagation every value has a sharding, but those of an op's values may still differ along
// a factor. Lowering chooses one list of atoms per factor, so that most bytes stay where they are.
// Operands are then brought to these parts (versions.h), and the op runs on the smaller arrays.
// Along factors where the op cannot be computed in parts, its operands are whole.
#ifndef MINIPOD_SIM_SPMD_LOCAL_LOWER_H_
#define MINIPOD_SIM_SPMD_LOCAL_LOWER_H_

#include "sim/spmd/propagation/propagate.h"
#include "sim/spmd/sharding/atoms.h"

typedef struct mp_local_op_s mp_local_op_t;

// Makes the per-device results of an op that needs other ops around it. `spec` is the op on its
// parts: local operands and types, and copies of its regions. Appends to `block` and writes
// out_results[num_results].
typedef mp_status_t (*mp_local_emit_t)(const mp_local_op_t *local, mp_module_t *module,
                                       mp_block_t *block, const mp_op_spec_t *spec,
                                       mp_value_t **out_results);

struct mp_local_op_s {
  const mp_op_t *op;            // of the whole program
  const mp_boxes_t **operands;  // [num_operands]: the parts; NULL: whole
  // are_excerpts[operand]: the boxes are not a placement of the whole operand, but the excerpt that
  // each part of the result needs. NULL: for no operand.
  bool *are_excerpts;
  const mp_boxes_t **results;  // [num_results]; terms of sums where a reduction is sharded
  mp_named_attr_t *attrs;      // [op->num_attrs]: the op's, with the sizes of the parts
  // If not NULL, the results are terms, as its partials say, that must be combined by `combine` at
  // once. This is for reductions other than sums; sums stay terms until an op needs the sum.
  const mp_boxes_t *combine_over;
  mp_opcode_t combine;
  // NULL: the op itself runs on its parts.
  mp_local_emit_t emit;
  bool has_regions_twice;   // for `emit`: spec->regions has a second copy of all regions
  const mp_boxes_t *terms;  // for `emit`: its partials say which partitions have terms of a result
};

// Lowers an op of the whole program. `*out_is_local` is false when the op must work on whole
// operands; then `out` is not written. Everything is allocated in `arena`.
MP_NODISCARD mp_status_t mp_lower_op(mp_arena_t *arena, const mp_propagation_t *propagation,
                                     const mp_spmd_scope_t *scope, const mp_op_t *op,
                                     mp_local_op_t *out, bool *out_is_local);

#endif  // MINIPOD_SIM_SPMD_LOCAL_LOWER_H_
