#include "sim/spmd/partition/partitioner.h"

#include "sim/spmd/sharding/placement.h"

// The placement that propagation gave a value; whole without propagation.
static mp_status_t partition_control_boxes_of(mp_partitioner_t *p, const mp_value_t *value,
                                              const mp_boxes_t **out_boxes) {
  *out_boxes = NULL;
  if (!p->is_propagated) return NULL;
  return mp_atom_sharding_boxes(&p->propagation.space, p->scope, value->type,
                                p->propagation.values[value->id], out_boxes);
}

// Ends the current block with the values of `terminator` in these placements (NULL: all whole).
static mp_status_t partition_control_copy_terminator(mp_partitioner_t *p, const mp_op_t *terminator,
                                                     const mp_boxes_t *const *boxes) {
  mp_value_t **operands = MP_ARENA_ARRAY(p->arena, mp_value_t *, terminator->num_operands);
  MP_RETURN_IF_NULL(operands);
  for (uint32_t i = 0; i < terminator->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_versions_get(&p->versions, p->scope, terminator->operands[i],
                                       boxes == NULL ? NULL : boxes[i], terminator->loc,
                                       &operands[i]));
  }
  const mp_op_spec_t spec = {.code = terminator->code,
                             .loc = terminator->loc,
                             .num_operands = terminator->num_operands,
                             .operands = operands};
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(p->module, &spec, &copy));
  mp_block_append(p->versions.block, copy);
  return NULL;
}

mp_status_t mp_partitioner_copy_region(mp_partitioner_t *p, const mp_block_t *from,
                                       const mp_boxes_t *const *args,
                                       const mp_boxes_t *const *returned, mp_block_t **out_to) {
  const mp_type_t **types = MP_ARENA_ARRAY(p->arena, const mp_type_t *, from->num_args);
  MP_RETURN_IF_NULL(types);
  for (uint32_t i = 0; i < from->num_args; ++i) {
    MP_RETURN_IF_ERROR(mp_placement_local_type(p->arena, from->args[i].type,
                                               args == NULL ? NULL : args[i], &types[i]));
  }
  mp_block_t *to = NULL;
  MP_RETURN_IF_ERROR(mp_block_create(p->module, from->num_args, types, &to));
  mp_block_t *outer = p->versions.block;
  const uint32_t mark = p->versions.log.count;
  p->versions.block = to;
  for (uint32_t i = 0; i < from->num_args; ++i) {
    MP_RETURN_IF_ERROR(
        mp_versions_add(&p->versions, &from->args[i], args == NULL ? NULL : args[i], &to->args[i]));
  }
  const mp_op_t *terminator = NULL;
  MP_RETURN_IF_ERROR(mp_partitioner_block(p, from, &terminator));
  if (terminator != NULL)
    MP_RETURN_IF_ERROR(partition_control_copy_terminator(p, terminator, returned));
  mp_versions_rewind(&p->versions, mark);
  p->versions.block = outer;
  *out_to = to;
  return NULL;
}

// Loops, branches and barriers. The values that they carry and return have the placements from
// propagation, in all rounds of a loop and in all branches.
mp_status_t mp_partitioner_control(mp_partitioner_t *p, const mp_op_t *op) {
  mp_op_parts_t parts;
  MP_RETURN_IF_ERROR(mp_partitioner_start_op(p, op, &parts));
  const mp_boxes_t **boxes = MP_ARENA_ARRAY(p->arena, const mp_boxes_t *, op->num_results);
  MP_RETURN_IF_NULL(boxes);
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(partition_control_boxes_of(p, &op->results[i], &boxes[i]));
    MP_RETURN_IF_ERROR(
        mp_placement_local_type(p->arena, op->results[i].type, boxes[i], &parts.types[i]));
  }
  const bool is_loop = op->code == MP_OP_WHILE;
  const bool is_carried = op->code != MP_OP_CASE;  // the operand of a case is the branch's number
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_versions_get(&p->versions, p->scope, op->operands[i],
                                       is_carried ? boxes[i] : NULL, op->loc, &parts.operands[i]));
  }
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    const bool is_condition = is_loop && r == 0;
    MP_RETURN_IF_ERROR(mp_partitioner_copy_region(p, op->regions[r], is_loop ? boxes : NULL,
                                                  is_condition ? NULL : boxes, &parts.regions[r]));
  }
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_partitioner_finish_op(p, op, &parts, &copy));
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(mp_versions_add(&p->versions, &op->results[i], boxes[i], &copy->results[i]));
  }
  return NULL;
}
