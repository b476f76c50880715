// Shardy's operations (Shardy dialect documentation, "Operations").
#include "sim/ir/verify/verify_rules.h"

// The rule of sharding_constraint, reshard and data_flow_edge.
mp_status_t mp_verify_sdy_sharding(const mp_op_t *op) {
  MP_RETURN_IF_ERROR(mp_verify_same_type(op, mp_result_type(op, 0), mp_operand_type(op, 0),
                                         "the result and the operand"));
  const mp_attr_t *sharding = mp_op_attr(op, MP_ATTR_SHARDING);
  if (sharding == NULL) return NULL;
  return mp_verify_sharding(op, sharding->u.sharding, mp_operand_type(op, 0));
}

mp_status_t mp_verify_sdy_sharding_group(const mp_op_t *op) {
  MP_CHECK(op, mp_op_int(op, MP_ATTR_GROUP_ID, -1) >= 0, "group_id is %lld",
           (long long)mp_op_int(op, MP_ATTR_GROUP_ID, -1));
  return NULL;
}

mp_status_t mp_verify_sdy_propagation_barrier(const mp_op_t *op) {
  int64_t direction = mp_op_int(op, MP_ATTR_ALLOWED_DIRECTION, -1);
  MP_CHECK(op, direction >= 0 && direction <= 3, "allowed_direction is %lld", (long long)direction);
  return mp_verify_same_type(op, mp_result_type(op, 0), mp_operand_type(op, 0),
                             "the result and the operand");
}

// A named computation is a function that is written where it is called.
mp_status_t mp_verify_sdy_named_computation(const mp_op_t *op) {
  const mp_attr_name_t names[] = {MP_ATTR_IN_SHARDINGS, MP_ATTR_OUT_SHARDINGS};
  const mp_block_t *body = op->regions[0];
  const mp_op_t *end = mp_block_terminator(body);
  MP_CHECK(op, body->num_args == op->num_operands && end->num_operands == op->num_results,
           "%u arguments and %u values inside for %u operands and %u results", body->num_args,
           end->num_operands, op->num_operands, op->num_results);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_same_type(op, body->args[i].type, mp_operand_type(op, i),
                                           "an argument inside and the operand"));
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_same_type(op, mp_operand_type(end, i), mp_result_type(op, i),
                                           "a value inside and the result"));
  }
  for (int list = 0; list < 2; ++list) {
    const mp_attr_t *attr = mp_op_attr(op, names[list]);
    if (attr == NULL) continue;
    uint32_t count = list == 0 ? op->num_operands : op->num_results;
    MP_CHECK(op, attr->u.shardings.count == count, "%u shardings for %u values",
             attr->u.shardings.count, count);
    for (uint32_t i = 0; i < count; ++i) {
      const mp_type_t *type = list == 0 ? mp_operand_type(op, i) : mp_result_type(op, i);
      MP_RETURN_IF_ERROR(mp_verify_sharding(op, &attr->u.shardings.shardings[i], type));
    }
  }
  return NULL;
}

static bool verify_sdy_ops_is_manual(mp_axis_list_t manual, mp_str_t name) {
  for (uint32_t i = 0; i < manual.count; ++i) {
    if (mp_str_equal(manual.axes[i].name, name)) return true;
  }
  return false;
}

static int64_t verify_sdy_ops_axis_size(const mp_mesh_t *mesh, const mp_axis_ref_t *ref) {
  if (ref->size != 0) return ref->size;
  for (uint32_t i = 0; i < mesh->num_axes; ++i) {
    if (mp_str_equal(mesh->axes[i].name, ref->name)) return mesh->axes[i].size;
  }
  return 1;
}

// Works out the shape of a value inside of the computation: each dimension is divided by its manual
// axes, which must stand before its free ones.
static mp_status_t verify_sdy_ops_local(const mp_op_t *op, const mp_sdy_sharding_t *sharding,
                                        mp_axis_list_t manual, const mp_type_t *global,
                                        const mp_type_t *local) {
  if (global->kind != MP_TYPE_TENSOR) {
    return mp_verify_same_type(op, local, global, "a value inside and outside");
  }
  int64_t dims[MP_MAX_RANK];
  for (uint32_t i = 0; i < global->rank; ++i) {
    dims[i] = global->dims[i];
    if (i >= sharding->rank) continue;
    mp_axis_list_t axes = sharding->dims[i].axes;
    bool free = false;
    for (uint32_t j = 0; j < axes.count; ++j) {
      bool is_free = !verify_sdy_ops_is_manual(manual, axes.axes[j].name);
      MP_CHECK(op, is_free || !free, "manual axis '%.*s' follows a free one",
               MP_STR_ARG(axes.axes[j].name));
      free = free || is_free;
      if (is_free) continue;
      int64_t size = verify_sdy_ops_axis_size(sharding->mesh, &axes.axes[j]);
      MP_CHECK(op, dims[i] % size == 0, "dimension %u of size %lld is not divided by axis '%.*s'",
               i, (long long)dims[i], MP_STR_ARG(axes.axes[j].name));
      dims[i] /= size;
    }
  }
  const mp_type_t expected = {
      .kind = MP_TYPE_TENSOR, .dtype = global->dtype, .rank = global->rank, .dims = dims};
  return mp_verify_same_type(op, local, &expected, "a value inside as stated and as it must be");
}

static bool verify_sdy_ops_same_mesh(const mp_mesh_t *a, const mp_mesh_t *b) {
  if (a == b) return true;
  if (a->num_axes != b->num_axes || a->num_device_ids != b->num_device_ids) return false;
  for (uint32_t i = 0; i < a->num_axes; ++i) {
    if (!mp_str_equal(a->axes[i].name, b->axes[i].name) || a->axes[i].size != b->axes[i].size) {
      return false;
    }
  }
  for (uint32_t i = 0; i < a->num_device_ids; ++i) {
    if (a->device_ids[i] != b->device_ids[i]) return false;
  }
  return true;
}

// The manual axes belong to the mesh that all shardings share. Each occurs once, and none is a
// manual axis of a computation around this one.
static mp_status_t verify_sdy_ops_manual_axes(const mp_op_t *op, mp_axis_list_t manual,
                                              const mp_sdy_shardings_t *lists[2]) {
  const mp_mesh_t *mesh = NULL;
  for (int list = 0; list < 2; ++list) {
    for (uint32_t i = 0; i < lists[list]->count; ++i) {
      const mp_mesh_t *other = lists[list]->shardings[i].mesh;
      MP_CHECK(op, mesh == NULL || verify_sdy_ops_same_mesh(mesh, other),
               "shardings over different meshes");
      mesh = other;
    }
  }
  if (mesh != NULL) MP_RETURN_IF_ERROR(mp_verify_axes(op, mesh, manual));
  for (uint32_t i = 0; i < manual.count; ++i) {
    MP_CHECK(op, manual.axes[i].size == 0, "a manual axis is only a part of an axis");
  }
  for (const mp_op_t *outer = op->parent->parent_op; outer != NULL;
       outer = outer->parent->parent_op) {
    if (outer->code != MP_OP_SDY_MANUAL_COMPUTATION) continue;
    const mp_attr_t *taken = mp_op_attr(outer, MP_ATTR_MANUAL_AXES);
    for (uint32_t i = 0; i < manual.count; ++i) {
      MP_CHECK(op, !verify_sdy_ops_is_manual(taken->u.axes, manual.axes[i].name),
               "axis '%.*s' is manual outside already", MP_STR_ARG(manual.axes[i].name));
    }
  }
  return NULL;
}

mp_status_t mp_verify_sdy_manual_computation(const mp_op_t *op) {
  const mp_sdy_shardings_t *in = &mp_op_attr(op, MP_ATTR_IN_SHARDINGS)->u.shardings;
  const mp_sdy_shardings_t *out = &mp_op_attr(op, MP_ATTR_OUT_SHARDINGS)->u.shardings;
  mp_axis_list_t manual = mp_op_attr(op, MP_ATTR_MANUAL_AXES)->u.axes;
  const mp_block_t *body = op->regions[0];
  const mp_op_t *end = mp_block_terminator(body);
  MP_CHECK(op, in->count == op->num_operands && body->num_args == op->num_operands,
           "%u operands have %u shardings and %u arguments inside", op->num_operands, in->count,
           body->num_args);
  MP_CHECK(op, out->count == op->num_results && end->num_operands == op->num_results,
           "%u results have %u shardings and %u values inside", op->num_results, out->count,
           end->num_operands);
  const mp_sdy_shardings_t *lists[2] = {in, out};
  for (uint32_t i = 0; i < in->count; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_sharding(op, &in->shardings[i], mp_operand_type(op, i)));
  }
  for (uint32_t i = 0; i < out->count; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_sharding(op, &out->shardings[i], mp_result_type(op, i)));
  }
  MP_RETURN_IF_ERROR(verify_sdy_ops_manual_axes(op, manual, lists));
  for (uint32_t i = 0; i < in->count; ++i) {
    MP_RETURN_IF_ERROR(verify_sdy_ops_local(op, &in->shardings[i], manual, mp_operand_type(op, i),
                                            body->args[i].type));
  }
  for (uint32_t i = 0; i < out->count; ++i) {
    MP_RETURN_IF_ERROR(verify_sdy_ops_local(op, &out->shardings[i], manual, mp_result_type(op, i),
                                            mp_operand_type(end, i)));
  }
  return NULL;
}
