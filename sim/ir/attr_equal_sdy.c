// Equality of Shardy's attributes and of other structs; see attr_equal.c.
#include <string.h>

#include "sim/ir/attr_equal.h"
#include "sim/ir/mesh.h"

static bool attr_equal_sdy_lists_equal(mp_index_list_t a, mp_index_list_t b) {
  return a.count == b.count &&
         (a.count == 0 || memcmp(a.values, b.values, a.count * sizeof(int64_t)) == 0);
}

static bool attr_equal_sdy_axes_equal(mp_axis_list_t a, mp_axis_list_t b) {
  if (a.count != b.count) return false;
  for (uint32_t i = 0; i < a.count; ++i) {
    const mp_axis_ref_t *x = &a.axes[i], *y = &b.axes[i];
    if (!mp_str_equal(x->name, y->name) || x->pre_size != y->pre_size || x->size != y->size)
      return false;
  }
  return true;
}

bool mp_mesh_same_devices(const mp_mesh_t *a, const mp_mesh_t *b) {
  if (a == b) return true;
  if (a->num_axes != b->num_axes) return false;
  for (uint32_t i = 0; i < a->num_axes; ++i)
    if (!mp_str_equal(a->axes[i].name, b->axes[i].name) || a->axes[i].size != b->axes[i].size)
      return false;
  return attr_equal_sdy_lists_equal((mp_index_list_t){a->num_device_ids, a->device_ids},
                                    (mp_index_list_t){b->num_device_ids, b->device_ids});
}

static bool attr_equal_sdy_meshes_equal(const mp_mesh_t *a, const mp_mesh_t *b) {
  return mp_str_equal(a->name, b->name) && mp_mesh_same_devices(a, b);
}

static bool attr_equal_sdy_shardings_equal(const mp_sdy_sharding_t *a, const mp_sdy_sharding_t *b) {
  if (a == b) return true;
  if (!attr_equal_sdy_meshes_equal(a->mesh, b->mesh) || a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; ++i) {
    const mp_dim_sharding_t *x = &a->dims[i], *y = &b->dims[i];
    if (!attr_equal_sdy_axes_equal(x->axes, y->axes) || x->is_open != y->is_open ||
        x->priority != y->priority)
      return false;
  }
  return attr_equal_sdy_axes_equal(a->replicated, b->replicated) &&
         attr_equal_sdy_axes_equal(a->unreduced, b->unreduced) &&
         a->unreduced_kind == b->unreduced_kind;
}

static bool attr_equal_sdy_per_value_equal(mp_sdy_shardings_t a, mp_sdy_shardings_t b) {
  if (a.count != b.count) return false;
  for (uint32_t i = 0; i < a.count; ++i)
    if (!attr_equal_sdy_shardings_equal(&a.shardings[i], &b.shardings[i])) return false;
  return true;
}

static bool attr_equal_sdy_axes_lists_equal(const mp_attr_t *a, const mp_attr_t *b) {
  if (a->u.axes_lists.count != b->u.axes_lists.count) return false;
  for (uint32_t i = 0; i < a->u.axes_lists.count; ++i)
    if (!attr_equal_sdy_axes_equal(a->u.axes_lists.lists[i], b->u.axes_lists.lists[i]))
      return false;
  return true;
}

static bool attr_equal_sdy_params_equal(const mp_attr_t *a, const mp_attr_t *b) {
  if (a->u.all_to_all_params.count != b->u.all_to_all_params.count) return false;
  for (uint32_t i = 0; i < a->u.all_to_all_params.count; ++i) {
    const mp_all_to_all_param_t *x = &a->u.all_to_all_params.params[i];
    const mp_all_to_all_param_t *y = &b->u.all_to_all_params.params[i];
    if (!attr_equal_sdy_axes_equal(x->axes, y->axes) || x->source_dim != y->source_dim ||
        x->target_dim != y->target_dim)
      return false;
  }
  return true;
}

static bool attr_equal_sdy_mappings_equal(const mp_tensor_mapping_t *a,
                                          const mp_tensor_mapping_t *b, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (a[i].rank != b[i].rank) return false;
    for (uint32_t d = 0; d < a[i].rank; ++d)
      if (!attr_equal_sdy_lists_equal(a[i].dims[d], b[i].dims[d])) return false;
  }
  return true;
}

static bool attr_equal_sdy_rules_equal(const mp_sharding_rule_t *a, const mp_sharding_rule_t *b) {
  return a->num_operands == b->num_operands && a->num_results == b->num_results &&
         attr_equal_sdy_mappings_equal(a->operands, b->operands, a->num_operands) &&
         attr_equal_sdy_mappings_equal(a->results, b->results, a->num_results) &&
         attr_equal_sdy_lists_equal(a->factor_sizes, b->factor_sizes) &&
         attr_equal_sdy_lists_equal(a->reduction, b->reduction) &&
         attr_equal_sdy_lists_equal(a->need_replication, b->need_replication) &&
         attr_equal_sdy_lists_equal(a->permutation, b->permutation) &&
         attr_equal_sdy_lists_equal(a->blocked_propagation, b->blocked_propagation) &&
         a->is_custom == b->is_custom;
}

bool mp_attr_struct_equal(const mp_attr_t *a, const mp_attr_t *b) {
  switch (a->kind) {
    case MP_KIND_OUTPUT_ALIAS:
      return a->u.alias.operand_index == b->u.alias.operand_index &&
             attr_equal_sdy_lists_equal(a->u.alias.output_tuple_indices,
                                        b->u.alias.output_tuple_indices) &&
             attr_equal_sdy_lists_equal(a->u.alias.operand_tuple_indices,
                                        b->u.alias.operand_tuple_indices);
    case MP_KIND_MESH_GROUPS:
      return attr_equal_sdy_meshes_equal(a->u.mesh_groups.mesh, b->u.mesh_groups.mesh) &&
             attr_equal_sdy_axes_equal(a->u.mesh_groups.axes, b->u.mesh_groups.axes);
    case MP_KIND_MESH:
      return attr_equal_sdy_meshes_equal(a->u.mesh, b->u.mesh);
    case MP_KIND_SHARDING:
      return attr_equal_sdy_shardings_equal(a->u.sharding, b->u.sharding);
    case MP_KIND_SHARDINGS:
      return attr_equal_sdy_per_value_equal(a->u.shardings, b->u.shardings);
    case MP_KIND_AXES:
      return attr_equal_sdy_axes_equal(a->u.axes, b->u.axes);
    case MP_KIND_AXES_LISTS:
      return attr_equal_sdy_axes_lists_equal(a, b);
    case MP_KIND_ALL_TO_ALL_PARAMS:
      return attr_equal_sdy_params_equal(a, b);
    case MP_KIND_SHARDING_RULE:
      return attr_equal_sdy_rules_equal(a->u.rule, b->u.rule);
    default:
      return false;
  }
}
