// Records the ops that every device computes whole, for the report.
#include "sim/spmd/partition/partitioner.h"
#include "sim/spmd/sharding/placement.h"

// A value's placement by propagation, or else that of its first version.
static mp_status_t partition_note_placement_of(mp_partitioner_t *p, const mp_value_t *value,
                                               const mp_boxes_t **out_boxes) {
  *out_boxes = NULL;
  if (!p->is_propagated) {
    *out_boxes = mp_versions_sharded(&p->versions, value);
    return NULL;
  }
  return mp_atom_sharding_boxes(&p->propagation.space, p->scope, value->type,
                                p->propagation.values[value->id], out_boxes);
}

static mp_status_t partition_note_reason_for(mp_partitioner_t *p, const mp_op_t *op,
                                             const char **out_reason) {
  bool is_cut = false;
  bool is_even = true;
  for (uint32_t i = 0; i < op->num_operands + op->num_results; ++i) {
    const mp_value_t *value =
        i < op->num_operands ? op->operands[i] : &op->results[i - op->num_operands];
    const mp_boxes_t *boxes = NULL;
    MP_RETURN_IF_ERROR(partition_note_placement_of(p, value, &boxes));
    if (boxes == NULL) continue;
    is_cut = true;
    is_even &= mp_placement_is_even(boxes);
  }
  *out_reason = NULL;
  if (!is_cut) return NULL;
  if (!p->is_propagated) {
    *out_reason = "the program's shardings do not fit together, so that nothing is propagated";
  } else if (op->num_results == 0 || p->propagation.rules[op->id] == NULL) {
    *out_reason = "there is no sharding rule for it";
  } else if (!is_even) {
    *out_reason = "its parts are uneven";
  } else {
    *out_reason = "it lies in parts along dimensions that it needs whole";
  }
  return NULL;
}

mp_status_t mp_partitioner_note_whole(mp_partitioner_t *p, const mp_op_t *op) {
  if (p->scope->num_partitions == 1) return NULL;
  const char *reason = NULL;
  MP_RETURN_IF_ERROR(partition_note_reason_for(p, op, &reason));
  if (reason == NULL) return NULL;
  return MP_ARRAY_PUSH(p->arena, &p->replicated, (mp_replicated_op_t){op->code, op->loc, reason});
}
