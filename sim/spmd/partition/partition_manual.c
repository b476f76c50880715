#include "sim/spmd/partition/partitioner.h"

#include "sim/ir/mesh.h"
#include "sim/spmd/sharding/placement.h"

mp_status_t mp_partitioner_manual_placement(mp_partitioner_t *p, const mp_op_t *op,
                                            const mp_type_t *type,
                                            const mp_sdy_sharding_t *sharding,
                                            const mp_axis_list_t *manual_axes,
                                            const mp_type_t *local_type,
                                            const mp_boxes_t **out_boxes) {
  MP_RETURN_IF_ERROR(
      mp_op_error_at(op, mp_placement_from_sdy(p->scope, type, sharding, manual_axes, out_boxes)));
  if (!mp_type_is_tensor(type)) return NULL;
  return mp_partitioner_check_local_type(p, op, type, *out_boxes, local_type);
}

// The mesh whose axes are manual: the first one of more than one device, because tokens and scalars
// may have an empty mesh.
static const mp_mesh_t *partition_manual_mesh_of(const mp_sdy_shardings_t *in,
                                                 const mp_sdy_shardings_t *out) {
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

// The state of bringing values over the border of a manual region.
typedef struct {
  mp_partitioner_t *p;
  const mp_op_t *op;
  const mp_axis_list_t *axes;
  const mp_mesh_t *mesh;
  const mp_spmd_scope_t *outer, *inner;
} border_t;

// The set of the manual axes' atoms; false when the space does not have them.
static bool partition_manual_atoms(const border_t *border, uint32_t *out_set) {
  mp_atoms_t list = {0};
  for (uint32_t i = 0; i < border->axes->count; ++i) {
    if (border->mesh == NULL || !mp_atoms_of_axis(&border->p->propagation.space, border->mesh,
                                                  &border->axes->axes[i], &list)) {
      return false;
    }
  }
  *out_set = mp_atoms_set(&list);
  return true;
}

// Appends the atoms of each dimension of `from` that are not in the set (with `keeps`, those that
// are in it) to the same dimension of `to`.
static void partition_manual_append_atoms(const mp_atom_sharding_t *from, uint32_t set, bool keeps,
                                          mp_atom_sharding_t *to) {
  for (uint32_t d = 0; d < from->rank; ++d) {
    const mp_atoms_t *list = &from->dims[d].atoms;
    mp_atoms_t *end = &to->dims[d].atoms;
    for (uint32_t i = 0; i < list->count; ++i) {
      if ((set >> list->atoms[i] & 1) == keeps) end->atoms[end->count++] = list->atoms[i];
    }
  }
}

// The boxes of a value on either side of the border.
typedef struct {
  const mp_boxes_t *outside, *inside;
} placements_t;

// The boxes of a value that is cut by the manual axes of `sharding`
// and then by the free atoms of `free_sharding`. Writes nothing when these do not fit together.
static mp_status_t partition_manual_add_free_atoms(const border_t *border, const mp_type_t *type,
                                                   const mp_sdy_sharding_t *sharding,
                                                   const mp_type_t *inner_type,
                                                   const mp_atom_sharding_t *free_sharding,
                                                   placements_t *out_placements) {
  mp_partitioner_t *p = border->p;
  const mp_atom_space_t *space = &p->propagation.space;
  uint32_t manual = 0;
  bool found = false;
  mp_atom_sharding_t *given = NULL;
  mp_atom_sharding_t *outside = NULL;
  mp_atom_sharding_t *inside = NULL;
  if (!partition_manual_atoms(border, &manual) || sharding->mesh == NULL) return NULL;
  MP_RETURN_IF_ERROR(mp_atom_sharding_import(p->arena, space, sharding,
                                             free_sharding->manual & ~manual, &given, &found));
  if (!found) return NULL;
  MP_RETURN_IF_ERROR(mp_atom_sharding_create(p->arena, type->rank, false, &inside));
  MP_RETURN_IF_ERROR(mp_atom_sharding_create(p->arena, type->rank, false, &outside));
  outside->unreduced = inside->unreduced = free_sharding->unreduced & ~manual;
  outside->unreduced_kind = inside->unreduced_kind = free_sharding->unreduced_kind;
  partition_manual_append_atoms(free_sharding, manual, false, inside);
  partition_manual_append_atoms(given, manual, true, outside);
  partition_manual_append_atoms(inside, 0, false, outside);
  const mp_boxes_t *boxes = NULL;
  MP_RETURN_IF_ERROR(mp_atom_sharding_boxes(space, border->inner, inner_type, inside, &boxes));
  // If a part is cut into uneven parts, these do not form a placement of the whole value.
  if (boxes == NULL || !mp_placement_is_even(boxes)) return NULL;
  out_placements->inside = boxes;
  return mp_atom_sharding_boxes(space, border->outer, type, outside, &out_placements->outside);
}

// The placements of a value: by the manual axes, and by the free axes that propagation chose for
// `source`, the value on the side that decides.
static mp_status_t partition_manual_cross(const border_t *border, const mp_type_t *type,
                                          const mp_sdy_sharding_t *sharding,
                                          const mp_type_t *inner_type, const mp_value_t *source,
                                          placements_t *out_placements) {
  mp_partitioner_t *p = border->p;
  MP_RETURN_IF_ERROR(mp_partitioner_manual_placement(p, border->op, type, sharding, border->axes,
                                                     inner_type, &out_placements->outside));
  out_placements->inside = NULL;
  const mp_atom_sharding_t *free_sharding =
      p->is_propagated ? p->propagation.values[source->id] : NULL;
  if (free_sharding == NULL || !mp_type_is_static(type)) return NULL;
  return partition_manual_add_free_atoms(border, type, sharding, inner_type, free_sharding,
                                         out_placements);
}

static mp_status_t partition_manual_enter(const border_t *border, const mp_sdy_shardings_t *in) {
  mp_partitioner_t *p = border->p;
  const mp_op_t *op = border->op;
  const mp_block_t *body = op->regions[0];
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    placements_t boxes = {0};
    MP_RETURN_IF_ERROR(partition_manual_cross(border, op->operands[i]->type, &in->shardings[i],
                                              body->args[i].type, &body->args[i], &boxes));
    mp_value_t *value = NULL;
    MP_RETURN_IF_ERROR(mp_versions_get(&p->versions, border->outer, op->operands[i], boxes.outside,
                                       op->loc, &value));
    MP_RETURN_IF_ERROR(mp_versions_add(&p->versions, &body->args[i], boxes.inside, value));
  }
  return NULL;
}

static mp_status_t partition_manual_leave(const border_t *border, const mp_sdy_shardings_t *out,
                                          const mp_op_t *terminator) {
  mp_partitioner_t *p = border->p;
  const mp_op_t *op = border->op;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    placements_t boxes = {0};
    MP_RETURN_IF_ERROR(partition_manual_cross(border, op->results[i].type, &out->shardings[i],
                                              terminator->operands[i]->type, &op->results[i],
                                              &boxes));
    mp_value_t *value = NULL;
    MP_RETURN_IF_ERROR(mp_versions_get(&p->versions, border->inner, terminator->operands[i],
                                       boxes.inside, op->loc, &value));
    MP_RETURN_IF_ERROR(mp_versions_add(&p->versions, &op->results[i], boxes.outside, value));
  }
  return NULL;
}

// Inlines the body of the op. Operands are resharded by the manual axes, and the values that the
// body returns are the parts of the results.
mp_status_t mp_partitioner_manual(mp_partitioner_t *p, const mp_op_t *op) {
  MP_RETURN_IF_ERROR(mp_partitioner_check_manual(p, op));
  const mp_sdy_shardings_t *in = &mp_op_attr(op, MP_ATTR_IN_SHARDINGS)->u.shardings;
  const mp_sdy_shardings_t *out = &mp_op_attr(op, MP_ATTR_OUT_SHARDINGS)->u.shardings;
  border_t border = {.p = p,
                     .op = op,
                     .axes = &mp_op_attr(op, MP_ATTR_MANUAL_AXES)->u.axes,
                     .mesh = partition_manual_mesh_of(in, out),
                     .outer = p->scope};
  MP_RETURN_IF_ERROR(mp_op_error_at(
      op, mp_spmd_scope_enter(p->arena, border.outer, border.mesh, *border.axes, &border.inner)));
  MP_RETURN_IF_ERROR(partition_manual_enter(&border, in));
  p->scope = border.inner;
  const mp_op_t *terminator = NULL;
  MP_RETURN_IF_ERROR(mp_partitioner_block(p, op->regions[0], &terminator));
  if (terminator == NULL || terminator->num_operands != op->num_results) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "the body does not return %u values",
                       op->num_results);
  }
  p->scope = border.outer;
  return partition_manual_leave(&border, out, terminator);
}
