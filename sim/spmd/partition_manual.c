#include "sim/spmd/partitioner.h"

#include "sim/ir/mesh.h"
#include "sim/spmd/placement.h"

mp_status_t mp_partitioner_manual_placement(mp_partitioner_t *p, const mp_op_t *op,
                                            const mp_type_t *type,
                                            const mp_sdy_sharding_t *sharding,
                                            const mp_axis_list_t *manual_axes,
                                            const mp_type_t *local_type,
                                            const mp_boxes_t **out_boxes) {
  MP_RETURN_IF_ERROR(mp_partitioner_at_op(
      op, mp_placement_from_sdy(p->scope, type, sharding, manual_axes, out_boxes)));
  if (!mp_type_is_tensor(type)) return NULL;
  return mp_partitioner_check_local_type(p, op, type, *out_boxes, local_type);
}

// The mesh whose axes are manual: the first with more than one device, as tokens and scalars may
// come with an empty one.
static const mp_mesh_t *mesh_of(const mp_sdy_shardings_t *in, const mp_sdy_shardings_t *out) {
  const mp_sdy_shardings_t *lists[] = {in, out};
  const mp_mesh_t *any = NULL;
  for (int side = 0; side < 2; ++side) {
    for (uint32_t i = 0; i < lists[side]->count; ++i) {
      const mp_mesh_t *mesh = lists[side]->shardings[i].mesh;
      if (mesh == NULL) continue;
      if (mp_mesh_size(mesh) != 1) return mesh;
      any = mesh;
    }
  }
  return any;
}

mp_status_t mp_partitioner_check_manual(mp_partitioner_t *p, const mp_op_t *op) {
  const mp_attr_t *in = mp_op_attr(op, MP_ATTR_IN_SHARDINGS);
  const mp_attr_t *out = mp_op_attr(op, MP_ATTR_OUT_SHARDINGS);
  const mp_attr_t *axes = mp_op_attr(op, MP_ATTR_MANUAL_AXES);
  if (in == NULL || in->kind != MP_KIND_SHARDINGS || out == NULL ||
      out->kind != MP_KIND_SHARDINGS || axes == NULL || axes->kind != MP_KIND_AXES) {
    return mp_op_error(op, MP_INVALID_ARGUMENT,
                       "in_shardings, out_shardings and manual_axes are needed");
  }
  if (in->u.shardings.count != op->num_operands || out->u.shardings.count != op->num_results ||
      op->regions[0]->num_args != op->num_operands) {
    return mp_op_error(op, MP_INVALID_ARGUMENT,
                       "%u operands and %u results, but %u in_shardings and %u out_shardings",
                       op->num_operands, op->num_results, in->u.shardings.count,
                       out->u.shardings.count);
  }
  mp_value_t **captures = NULL;
  uint32_t num_captures = 0;
  MP_RETURN_IF_ERROR(mp_op_captures(op, p->arena, &captures, &num_captures));
  if (num_captures == 0) return NULL;
  return mp_op_error(op, MP_INVALID_ARGUMENT, "the body uses a value from outside of it");
}

// Takes the body out of its wrapper: operands become parts by the manual axes, results are parts.
mp_status_t mp_partitioner_manual(mp_partitioner_t *p, const mp_op_t *op) {
  MP_RETURN_IF_ERROR(mp_partitioner_check_manual(p, op));
  const mp_attr_t *in = mp_op_attr(op, MP_ATTR_IN_SHARDINGS);
  const mp_attr_t *out = mp_op_attr(op, MP_ATTR_OUT_SHARDINGS);
  const mp_axis_list_t *axes = &mp_op_attr(op, MP_ATTR_MANUAL_AXES)->u.axes;
  const mp_block_t *body = op->regions[0];
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_boxes_t *boxes = NULL;
    MP_RETURN_IF_ERROR(mp_partitioner_manual_placement(p, op, op->operands[i]->type,
                                                       &in->u.shardings.shardings[i], axes,
                                                       body->args[i].type, &boxes));
    mp_value_t *value = NULL;
    MP_RETURN_IF_ERROR(
        mp_versions_get(&p->versions, p->scope, op->operands[i], boxes, op->loc, &value));
    MP_RETURN_IF_ERROR(mp_versions_add(&p->versions, &body->args[i], NULL, value));
  }
  const mp_spmd_scope_t *outer = p->scope;
  const mp_mesh_t *mesh = mesh_of(&in->u.shardings, &out->u.shardings);
  MP_RETURN_IF_ERROR(
      mp_partitioner_at_op(op, mp_spmd_scope_enter(p->arena, outer, mesh, *axes, &p->scope)));
  const mp_op_t *terminator = NULL;
  MP_RETURN_IF_ERROR(mp_partitioner_block(p, body, &terminator));
  if (terminator == NULL || terminator->num_operands != op->num_results) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "the body does not return %u values",
                       op->num_results);
  }
  mp_value_t **values = MP_ARENA_ARRAY(p->arena, mp_value_t *, op->num_results);
  MP_RETURN_IF_NULL(values);
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(mp_partitioner_get_whole(p, op, terminator->operands[i], &values[i]));
  }
  p->scope = outer;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const mp_boxes_t *boxes = NULL;
    MP_RETURN_IF_ERROR(mp_partitioner_manual_placement(p, op, op->results[i].type,
                                                       &out->u.shardings.shardings[i], axes,
                                                       terminator->operands[i]->type, &boxes));
    MP_RETURN_IF_ERROR(mp_versions_add(&p->versions, &op->results[i], boxes, values[i]));
  }
  return NULL;
}
