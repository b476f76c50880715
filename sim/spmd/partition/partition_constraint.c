#include "sim/spmd/partition/partitioner.h"

#include "sim/spmd/gspmd/gspmd.h"
#include "sim/spmd/sharding/placement.h"

// The placement in an op's own annotation; whole when it has none.
static mp_status_t partition_constraint_annotated(mp_partitioner_t *p, const mp_op_t *op,
                                                  const mp_boxes_t **out_boxes) {
  const mp_type_t *type = op->results[0].type;
  const mp_attr_t *attr = mp_op_attr(op, MP_ATTR_SHARDING);
  *out_boxes = NULL;
  mp_status_t status = NULL;
  if (attr != NULL && attr->kind == MP_KIND_SHARDING) {
    status = mp_placement_from_sdy(p->scope, type, attr->u.sharding, NULL, out_boxes);
  } else if (mp_op_attr(op, MP_ATTR_MHLO_SHARDING) != NULL) {
    status =
        mp_placement_from_gspmd(p->scope, type, mp_op_str(op, MP_ATTR_MHLO_SHARDING), out_boxes);
  }
  return mp_op_error_at(op, status);
}

mp_status_t mp_partitioner_identity(mp_partitioner_t *p, const mp_op_t *op) {
  const mp_value_t *operand = op->operands[0];
  const mp_value_t *result = &op->results[0];
  p->versions.versions[result->id] = NULL;
  // The oldest version is added first, so that the result's versions are in the operand's order.
  const mp_version_t *chain[64];
  uint32_t count = 0;
  for (const mp_version_t *v = p->versions.versions[operand->id]; v != NULL && count < 64;
       v = v->next) {
    chain[count++] = v;
  }
  while (count-- > 0) {
    MP_RETURN_IF_ERROR(
        mp_versions_add(&p->versions, result, chain[count]->boxes, chain[count]->value));
  }
  MP_RETURN_IF_ERROR(partition_constraint_annotated(p, op, &p->versions.preferred[result->id]));
  return NULL;
}

mp_status_t mp_partitioner_constraint(mp_partitioner_t *p, const mp_op_t *op) {
  const mp_value_t *result = &op->results[0];
  if (p->is_propagated && p->propagation.values[result->id] != NULL) {
    const mp_boxes_t *boxes = NULL;
    const mp_op_t *last = p->versions.block->last;
    mp_value_t *value = NULL;
    MP_RETURN_IF_ERROR(mp_atom_sharding_boxes(&p->propagation.space, p->scope, result->type,
                                              p->propagation.values[result->id], &boxes));
    MP_RETURN_IF_ERROR(
        mp_versions_get(&p->versions, p->scope, op->operands[0], boxes, op->loc, &value));
    MP_RETURN_IF_ERROR(mp_partitioner_note_early(p, last));
  }
  return mp_partitioner_identity(p, op);
}

// Each form of the value gets a copy of the op. Copies have no side effect, so that unused ones are
// removed.
static mp_status_t partition_constraint_place(mp_partitioner_t *p, const mp_op_t *op,
                                              mp_value_t *operand, mp_value_t **out_value) {
  mp_named_attr_t *attrs = MP_ARENA_ARRAY(p->arena, mp_named_attr_t, op->num_attrs);
  MP_RETURN_IF_NULL(attrs);
  const mp_attr_t *no = NULL;
  uint32_t count = 0;
  MP_RETURN_IF_ERROR(mp_attr_make_bool(p->arena, false, &no));
  for (uint32_t i = 0; i < op->num_attrs; ++i) {
    const mp_attr_name_t name = op->attrs[i].name;
    if (name == MP_ATTR_MHLO_SHARDING || name == MP_ATTR_SDY_SHARDING) continue;
    attrs[count] = op->attrs[i];
    if (name == MP_ATTR_HAS_SIDE_EFFECT) attrs[count].value = no;
    count += 1;
  }
  const mp_op_spec_t spec = {.code = op->code,
                             .loc = op->loc,
                             .num_operands = 1,
                             .operands = &operand,
                             .num_results = 1,
                             .result_types = &operand->type,
                             .num_attrs = count,
                             .attrs = attrs};
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(p->module, &spec, &copy));
  mp_block_append(p->versions.block, copy);
  *out_value = &copy->results[0];
  return NULL;
}

mp_status_t mp_partitioner_place(mp_partitioner_t *p, const mp_op_t *op) {
  const mp_value_t *operand = op->operands[0], *result = &op->results[0];
  if (p->is_propagated && p->propagation.values[result->id] != NULL) {
    // Nothing is sent between devices afterwards, because the value is then in host memory.
    const mp_boxes_t *boxes = NULL;
    mp_value_t *value = NULL;
    MP_RETURN_IF_ERROR(mp_atom_sharding_boxes(&p->propagation.space, p->scope, result->type,
                                              p->propagation.values[result->id], &boxes));
    MP_RETURN_IF_ERROR(mp_versions_get(&p->versions, p->scope, operand, boxes, op->loc, &value));
    MP_RETURN_IF_ERROR(partition_constraint_place(p, op, value, &value));
    return mp_versions_add(&p->versions, result, boxes, value);
  }
  MP_RETURN_IF_ERROR(mp_partitioner_identity(p, op));
  for (mp_version_t *v = p->versions.versions[result->id]; v != NULL; v = v->next) {
    MP_RETURN_IF_ERROR(partition_constraint_place(p, op, v->value, &v->value));
  }
  return NULL;
}

mp_status_t mp_partitioner_inspect(mp_partitioner_t *p, const mp_op_t *op) {
  const mp_value_t *operand = op->operands[0];
  mp_inspected_t inspected = {.loc = op->loc,
                              .config = mp_op_str(op, MP_ATTR_BACKEND_CONFIG),
                              .is_manual = p->scope->parent != NULL};
  if (p->is_propagated) {
    MP_RETURN_IF_ERROR(mp_atom_sharding_boxes(&p->propagation.space, p->scope, operand->type,
                                              p->propagation.values[operand->id],
                                              &inspected.boxes));
  } else {
    inspected.boxes = mp_versions_sharded(&p->versions, operand);
  }
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(p->arena, &p->inspected, inspected));
  return mp_partitioner_identity(p, op);
}

// ---- GSPMD's entry to manual code and exit from it ----

bool mp_partitioner_is_call_to(const mp_op_t *op, const char *target) {
  return op->code == MP_OP_CUSTOM_CALL && op->num_operands == 1 && op->num_results == 1 &&
         mp_str_is(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME), target);
}

// The result is the part of the operand by the sharding that the operand's @Sharding gives it.
mp_status_t mp_partitioner_full_to_shard(mp_partitioner_t *p, const mp_op_t *op) {
  const mp_value_t *operand = op->operands[0];
  const mp_boxes_t *boxes = p->versions.preferred[operand->id];
  MP_RETURN_IF_ERROR(
      mp_partitioner_check_local_type(p, op, operand->type, boxes, op->results[0].type));
  mp_value_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_versions_get(&p->versions, p->scope, operand, boxes, op->loc, &value));
  return mp_versions_add(&p->versions, &op->results[0], NULL, value);
}

mp_status_t mp_partitioner_shard_to_full(mp_partitioner_t *p, const mp_op_t *op) {
  const mp_boxes_t *boxes = NULL;
  MP_RETURN_IF_ERROR(partition_constraint_annotated(p, op, &boxes));
  MP_RETURN_IF_ERROR(
      mp_partitioner_check_local_type(p, op, op->results[0].type, boxes, op->operands[0]->type));
  mp_value_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_partitioner_get_whole(p, op, op->operands[0], &value));
  return mp_versions_add(&p->versions, &op->results[0], boxes, value);
}
