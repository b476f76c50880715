// Custom calls that the client's partitioner splits into parts.
//
// It gets the shardings of operands and results from propagation, and answers with a per-device
// program, and the shardings of that program's operands and results. The program replaces the call;
// operands and results are resharded like any others. In a manual region the partitioner gets the
// partitions of one group, and all groups use its program.
#include "sim/spmd/partition/partitioner.h"

#include "sim/spmd/gspmd/gspmd.h"
#include "sim/spmd/sharding/placement.h"

// The placement of a value; NULL: it is whole, or its placement does not matter to partitioners.
static mp_status_t partition_custom_boxes(mp_partitioner_t *p, const mp_value_t *value,
                                          const mp_boxes_t **out_boxes) {
  const mp_boxes_t *boxes = NULL;
  const mp_atom_sharding_t *sharding = p->is_propagated ? p->propagation.values[value->id] : NULL;
  if (sharding != NULL && mp_type_is_static(value->type)) {
    MP_RETURN_IF_ERROR(
        mp_atom_sharding_boxes(&p->propagation.space, p->scope, value->type, sharding, &boxes));
  } else if (!p->is_propagated) {
    boxes = mp_versions_sharded(&p->versions, value);
  }
  *out_boxes = boxes != NULL && boxes->partials == NULL ? boxes : NULL;
  return NULL;
}

// The same within a group of a manual region.
static mp_status_t partition_custom_see(mp_partitioner_t *p, const mp_partition_group_t *group,
                                        const mp_value_t *value, const mp_boxes_t **out_boxes) {
  const mp_boxes_t *boxes = NULL;
  MP_RETURN_IF_ERROR(partition_custom_boxes(p, value, &boxes));
  return mp_partitioner_to_group(group, value->type, boxes, out_boxes);
}

static mp_status_t partition_custom_ask(mp_partitioner_t *p, const mp_op_t *op,
                                        const mp_partition_group_t *group,
                                        mp_custom_answer_t *out_answer) {
  const mp_boxes_t **operands = MP_ARENA_ARRAY(p->arena, const mp_boxes_t *, op->num_operands);
  const mp_boxes_t **results = MP_ARENA_ARRAY(p->arena, const mp_boxes_t *, op->num_results);
  if (operands == NULL || results == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(partition_custom_see(p, group, op->operands[i], &operands[i]));
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(partition_custom_see(p, group, &op->results[i], &results[i]));
  }
  return mp_op_error_at(
      op, p->custom->ask(p->custom->context, p->module, op, operands, results, out_answer));
}

// The placement of an operand or result that the answer states, checked against its program.
static mp_status_t partition_custom_placement(mp_partitioner_t *p, const mp_op_t *op,
                                              const mp_partition_group_t *group,
                                              const mp_type_t *type, mp_str_t sharding,
                                              const mp_type_t *local_type,
                                              const mp_boxes_t **out_boxes) {
  const mp_boxes_t *boxes = NULL;
  MP_RETURN_IF_ERROR(
      mp_op_error_at(op, mp_placement_from_gspmd(group->scope, type, sharding, &boxes)));
  MP_RETURN_IF_ERROR(mp_partitioner_from_group(p, group, type, boxes, out_boxes));
  if (!mp_type_is_tensor(type)) return NULL;
  return mp_partitioner_check_local_type(p, op, type, *out_boxes, local_type);
}

static mp_status_t partition_custom_enter(mp_partitioner_t *p, const mp_op_t *op,
                                          const mp_partition_group_t *group,
                                          const mp_custom_answer_t *answer, mp_value_t **map) {
  const mp_block_t *body = answer->module->main->body;
  if (body->num_args != op->num_operands) {
    return mp_op_error(op, MP_INVALID_ARGUMENT,
                       "its partitioner's program takes %u operands, not %u", body->num_args,
                       op->num_operands);
  }
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_boxes_t *boxes = NULL;
    MP_RETURN_IF_ERROR(partition_custom_placement(p, op, group, op->operands[i]->type,
                                                  answer->operand_shardings[i], body->args[i].type,
                                                  &boxes));
    MP_RETURN_IF_ERROR(mp_versions_get(&p->versions, p->scope, op->operands[i], boxes, op->loc,
                                       &map[body->args[i].id]));
  }
  return NULL;
}

static mp_status_t partition_custom_copy(mp_partitioner_t *p, const mp_op_t *op,
                                         const mp_block_t *body, mp_value_t **map) {
  for (const mp_op_t *inner = body->first; inner != body->last; inner = inner->next) {
    if (mp_op_is_sdy(inner)) {
      return mp_op_error(op, MP_UNIMPLEMENTED,
                         "its partitioner's program holds %s; it must be that of one device",
                         mp_op_info(inner->code)->name);
    }
    mp_op_t *copy = NULL;
    MP_RETURN_IF_ERROR(mp_op_clone(p->module, inner, map, &copy));
    mp_block_append(p->versions.block, copy);
  }
  return NULL;
}

static mp_status_t partition_custom_leave(mp_partitioner_t *p, const mp_op_t *op,
                                          const mp_partition_group_t *group,
                                          const mp_custom_answer_t *answer,
                                          mp_value_t *const *map) {
  const mp_op_t *terminator = mp_block_terminator(answer->module->main->body);
  if (terminator->num_operands != op->num_results) {
    return mp_op_error(op, MP_INVALID_ARGUMENT,
                       "its partitioner's program returns %u results, not %u",
                       terminator->num_operands, op->num_results);
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const mp_value_t *returned = terminator->operands[i];
    const mp_boxes_t *boxes = NULL;
    MP_RETURN_IF_ERROR(partition_custom_placement(
        p, op, group, op->results[i].type, answer->result_shardings[i], returned->type, &boxes));
    MP_RETURN_IF_ERROR(mp_versions_add(&p->versions, &op->results[i], boxes, map[returned->id]));
  }
  return NULL;
}

bool mp_partitioner_is_custom(const mp_partitioner_t *p, const mp_op_t *op) {
  return p->custom != NULL && p->module->num_partitions > 1 && op->code == MP_OP_CUSTOM_CALL &&
         p->custom->knows(p->custom->context, mp_op_str(op, MP_ATTR_CALL_TARGET_NAME));
}

mp_status_t mp_partitioner_custom(mp_partitioner_t *p, const mp_op_t *op) {
  mp_partition_group_t group;
  mp_custom_answer_t answer = {0};
  MP_RETURN_IF_ERROR(mp_partitioner_group(p, op, &group));
  MP_RETURN_IF_ERROR(partition_custom_ask(p, op, &group, &answer));
  MP_RETURN_IF_ERROR(mp_partitioner_check_group_program(&group, op, answer.module));
  const uint32_t count = mp_module_number_values(answer.module);
  mp_value_t **map = MP_ARENA_ARRAY(p->arena, mp_value_t *, (size_t)count + 1);
  MP_RETURN_IF_NULL(map);
  MP_RETURN_IF_ERROR(partition_custom_enter(p, op, &group, &answer, map));
  MP_RETURN_IF_ERROR(partition_custom_copy(p, op, answer.module->main->body, map));
  return partition_custom_leave(p, op, &group, &answer, map);
}
