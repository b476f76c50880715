// Shardy's attributes (bytecode.td of the Shardy dialect). Shardings have several codes, each a
// form that can hold more than the one before; a writer takes the oldest that can hold the value.
#include "sim/readers/bytecode/bytecode_reader.h"

enum {
  CODE_MANUAL_AXES,
  CODE_MESH_AXIS,
  CODE_MESH,
  CODE_SUB_AXIS,
  CODE_AXIS_REF,
  CODE_DIM_SHARDING,
  CODE_SHARDING_1,
  CODE_SHARDINGS_1,
  CODE_DIM_MAPPING,
  CODE_TENSOR_MAPPING,
  CODE_RULE,
  CODE_AXES,
  CODE_AXES_LISTS,
  CODE_ALL_TO_ALL_PARAM,
  CODE_ALL_TO_ALL_PARAMS,
  CODE_SHARDING_2,
  CODE_SHARDINGS_2,
  CODE_SHARDING_3,
};

// Makes `pointer` point to a new object in the module's arena, which is the entry's object.
#define NEW_OBJECT(r, entry, kind_, type, pointer) \
  type *pointer = MP_ARENA_NEW((r)->arena, type);  \
  MP_RETURN_IF_NULL(pointer);                      \
  (entry)->kind = (kind_);                         \
  (entry)->object = (pointer)

// Reads a list of axes and sub-axes, from major to minor.
static mp_status_t sdy_attr_read_axes(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                      mp_axis_list_t *out_axes) {
  const void *axes = NULL;
  MP_RETURN_IF_ERROR(
      mp_bc_objects(r, c, MP_BC_AXIS_REF, sizeof(mp_axis_ref_t), &axes, &out_axes->count));
  out_axes->axes = axes;
  return NULL;
}

// Reads manual axes, which are names of whole axes.
static mp_status_t sdy_attr_read_manual_axes(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                             mp_bc_entry_t *entry) {
  size_t count = 0;
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_count(c, "manual axes", &count));
  mp_axis_ref_t *axes = MP_ARENA_ARRAY(r->arena, mp_axis_ref_t, count);
  MP_RETURN_IF_NULL(axes);
  for (size_t i = 0; i < count; ++i) {
    axes[i].pre_size = 1;
    MP_RETURN_IF_ERROR(mp_bc_text(r, c, &axes[i].name));
  }
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_AXES, &attr));
  attr->u.axes = (mp_axis_list_t){(uint32_t)count, axes};
  return NULL;
}

// Reads an axis of a mesh. Its name is a string here, where VHLO has an attribute.
static mp_status_t sdy_attr_read_mesh_axis(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                           mp_bc_entry_t *entry) {
  NEW_OBJECT(r, entry, MP_BC_MESH_AXIS, mp_mesh_axis_t, axis);
  MP_RETURN_IF_ERROR(mp_bc_string(r, c, &axis->name));
  return mp_bc_svarint(c, &axis->size);
}

static mp_status_t sdy_attr_read_mesh(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry) {
  mp_attr_t *attr = NULL;
  const void *axes = NULL;
  mp_index_list_t ids;
  mp_mesh_t *mesh = MP_ARENA_NEW(r->arena, mp_mesh_t);
  MP_RETURN_IF_NULL(mesh);
  MP_RETURN_IF_ERROR(
      mp_bc_objects(r, c, MP_BC_MESH_AXIS, sizeof(mp_mesh_axis_t), &axes, &mesh->num_axes));
  MP_RETURN_IF_ERROR(mp_bc_index_list(r, c, &ids));
  mesh->name = MP_STR("");
  mesh->axes = axes;
  mesh->num_device_ids = ids.count;
  mesh->device_ids = ids.values;
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_MESH, &attr));
  attr->u.mesh = mesh;
  return NULL;
}

static mp_status_t sdy_attr_read_sub_axis(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                          mp_bc_entry_t *entry) {
  NEW_OBJECT(r, entry, MP_BC_SUB_AXIS, mp_axis_ref_t, axis);
  MP_RETURN_IF_ERROR(mp_bc_svarint(c, &axis->pre_size));
  return mp_bc_svarint(c, &axis->size);
}

static mp_status_t sdy_attr_read_axis_ref(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                          mp_bc_entry_t *entry) {
  NEW_OBJECT(r, entry, MP_BC_AXIS_REF, mp_axis_ref_t, axis);
  mp_str_t name;
  uint64_t index = 0;
  bool has_sub_axis = false;
  MP_RETURN_IF_ERROR(mp_bc_string(r, c, &name));
  mp_bc_cursor_t before = *c;
  MP_RETURN_IF_ERROR(mp_bc_flagged(c, &index, &has_sub_axis));
  axis->pre_size = 1;
  if (has_sub_axis) {
    const void *sub_axis = NULL;
    MP_RETURN_IF_ERROR(mp_bc_object_at(r, &before, index, MP_BC_SUB_AXIS, &sub_axis));
    *axis = *(const mp_axis_ref_t *)sub_axis;
  }
  axis->name = name;
  return NULL;
}

// Reads the sharding of a dimension. The file has a flag whether it is closed; propagation may add
// axes to an open one.
static mp_status_t sdy_attr_read_dim_sharding(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                              mp_bc_entry_t *entry) {
  NEW_OBJECT(r, entry, MP_BC_DIM_SHARDING, mp_dim_sharding_t, dim);
  bool is_closed, has_priority;
  uint64_t priority = 0;
  MP_RETURN_IF_ERROR(sdy_attr_read_axes(r, c, &dim->axes));
  MP_RETURN_IF_ERROR(mp_bc_bool(c, &is_closed));
  mp_bc_cursor_t before = *c;
  MP_RETURN_IF_ERROR(mp_bc_flagged(c, &priority, &has_priority));
  if (has_priority && priority > INT64_MAX) return mp_bc_fail(&before, "a priority is too large");
  dim->is_open = !is_closed;
  dim->priority = has_priority ? (int64_t)priority : -1;
  return NULL;
}

// Reads a sharding. Form 1 has no unreduced axes, and form 3 also has their reduction.
static mp_status_t sdy_attr_read_sharding(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                          mp_bc_entry_t *entry, int form) {
  mp_bc_cursor_t before = *c;
  const mp_attr_t *mesh = NULL;
  const void *dims = NULL;
  mp_attr_t *attr = NULL;
  mp_sdy_sharding_t *sharding = MP_ARENA_NEW(r->arena, mp_sdy_sharding_t);
  MP_RETURN_IF_NULL(sharding);
  MP_RETURN_IF_ERROR(mp_bc_attr(r, c, &mesh));
  if (mesh->kind == MP_KIND_STRING) {
    MP_RETURN_IF_ERROR(mp_bc_mesh_ref(r, mesh->u.str, &sharding->mesh));
  } else if (mesh->kind == MP_KIND_MESH) {
    sharding->mesh = mesh->u.mesh;
  } else {
    return mp_bc_fail(&before, "a sharding names no mesh");
  }
  MP_RETURN_IF_ERROR(
      mp_bc_objects(r, c, MP_BC_DIM_SHARDING, sizeof(mp_dim_sharding_t), &dims, &sharding->rank));
  sharding->dims = dims;
  MP_RETURN_IF_ERROR(sdy_attr_read_axes(r, c, &sharding->replicated));
  if (form >= 2) MP_RETURN_IF_ERROR(sdy_attr_read_axes(r, c, &sharding->unreduced));
  int64_t kind = MP_UNREDUCED_SUM;
  if (form >= 3) MP_RETURN_IF_ERROR(mp_bc_svarint(c, &kind));
  if (kind < MP_UNREDUCED_SUM || kind > MP_UNREDUCED_MIN) {
    return mp_bc_fail(&before, "a sharding has reduction kind %lld", (long long)kind);
  }
  sharding->unreduced_kind = (uint32_t)kind;
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_SHARDING, &attr));
  attr->u.sharding = sharding;
  return NULL;
}

// Reads a list of shardings, one per value, into one array.
static mp_status_t sdy_attr_read_shardings(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                           mp_bc_entry_t *entry) {
  size_t count = 0;
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_count(c, "shardings", &count));
  mp_sdy_sharding_t *shardings = MP_ARENA_ARRAY(r->arena, mp_sdy_sharding_t, count);
  MP_RETURN_IF_NULL(shardings);
  for (size_t i = 0; i < count; ++i) {
    const mp_attr_t *item = NULL;
    MP_RETURN_IF_ERROR(mp_bc_attr_of(r, c, MP_KIND_SHARDING, "a list of shardings", &item));
    shardings[i] = *item->u.sharding;
  }
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_SHARDINGS, &attr));
  attr->u.shardings = (mp_sdy_shardings_t){(uint32_t)count, shardings};
  return NULL;
}

static mp_status_t sdy_attr_read_dim_mapping(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                             mp_bc_entry_t *entry) {
  NEW_OBJECT(r, entry, MP_BC_DIM_MAPPING, mp_index_list_t, factors);
  return mp_bc_index_list(r, c, factors);
}

static mp_status_t sdy_attr_read_tensor_mapping(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                mp_bc_entry_t *entry) {
  NEW_OBJECT(r, entry, MP_BC_TENSOR_MAPPING, mp_tensor_mapping_t, mapping);
  const void *dims = NULL;
  MP_RETURN_IF_ERROR(
      mp_bc_objects(r, c, MP_BC_DIM_MAPPING, sizeof(mp_index_list_t), &dims, &mapping->rank));
  mapping->dims = dims;
  return NULL;
}

// Reads a sharding rule, which lists the factors (loops) of the operation for each dimension of
// operands and results.
static mp_status_t sdy_attr_read_rule(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry) {
  const void *operands, *results;
  mp_attr_t *attr = NULL;
  mp_sharding_rule_t *rule = MP_ARENA_NEW(r->arena, mp_sharding_rule_t);
  MP_RETURN_IF_NULL(rule);
  MP_RETURN_IF_ERROR(mp_bc_index_list(r, c, &rule->factor_sizes));
  MP_RETURN_IF_ERROR(mp_bc_objects(r, c, MP_BC_TENSOR_MAPPING, sizeof(mp_tensor_mapping_t),
                                   &operands, &rule->num_operands));
  MP_RETURN_IF_ERROR(mp_bc_objects(r, c, MP_BC_TENSOR_MAPPING, sizeof(mp_tensor_mapping_t),
                                   &results, &rule->num_results));
  rule->operands = operands;
  rule->results = results;
  MP_RETURN_IF_ERROR(mp_bc_index_list(r, c, &rule->reduction));
  MP_RETURN_IF_ERROR(mp_bc_index_list(r, c, &rule->need_replication));
  MP_RETURN_IF_ERROR(mp_bc_index_list(r, c, &rule->permutation));
  MP_RETURN_IF_ERROR(mp_bc_index_list(r, c, &rule->blocked_propagation));
  MP_RETURN_IF_ERROR(mp_bc_bool(c, &rule->is_custom));
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_SHARDING_RULE, &attr));
  attr->u.rule = rule;
  return NULL;
}

static mp_status_t sdy_attr_read_axis_list(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                           mp_bc_entry_t *entry) {
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_AXES, &attr));
  return sdy_attr_read_axes(r, c, &attr->u.axes);
}

// Reads a list of axes per dimension.
static mp_status_t sdy_attr_read_axes_lists(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                            mp_bc_entry_t *entry) {
  size_t count = 0;
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_count(c, "axis lists", &count));
  mp_axis_list_t *lists = MP_ARENA_ARRAY(r->arena, mp_axis_list_t, count);
  MP_RETURN_IF_NULL(lists);
  for (size_t i = 0; i < count; ++i) {
    const mp_attr_t *item = NULL;
    MP_RETURN_IF_ERROR(mp_bc_attr_of(r, c, MP_KIND_AXES, "a list of axis lists", &item));
    lists[i] = item->u.axes;
  }
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_AXES_LISTS, &attr));
  attr->u.axes_lists.count = (uint32_t)count;
  attr->u.axes_lists.lists = lists;
  return NULL;
}

static mp_status_t sdy_attr_read_all_to_all(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                            mp_bc_entry_t *entry) {
  NEW_OBJECT(r, entry, MP_BC_ALL_TO_ALL, mp_all_to_all_param_t, param);
  MP_RETURN_IF_ERROR(sdy_attr_read_axes(r, c, &param->axes));
  MP_RETURN_IF_ERROR(mp_bc_svarint(c, &param->source_dim));
  return mp_bc_svarint(c, &param->target_dim);
}

static mp_status_t sdy_attr_read_all_to_alls(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                             mp_bc_entry_t *entry) {
  const void *params = NULL;
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_ALL_TO_ALL_PARAMS, &attr));
  MP_RETURN_IF_ERROR(mp_bc_objects(r, c, MP_BC_ALL_TO_ALL, sizeof(mp_all_to_all_param_t), &params,
                                   &attr->u.all_to_all_params.count));
  attr->u.all_to_all_params.params = params;
  return NULL;
}

mp_status_t mp_bc_sdy_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry) {
  mp_bc_cursor_t before = *c;
  uint64_t code = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &code));
  switch (code) {
    case CODE_MANUAL_AXES:
      return sdy_attr_read_manual_axes(r, c, entry);
    case CODE_MESH_AXIS:
      return sdy_attr_read_mesh_axis(r, c, entry);
    case CODE_MESH:
      return sdy_attr_read_mesh(r, c, entry);
    case CODE_SUB_AXIS:
      return sdy_attr_read_sub_axis(r, c, entry);
    case CODE_AXIS_REF:
      return sdy_attr_read_axis_ref(r, c, entry);
    case CODE_DIM_SHARDING:
      return sdy_attr_read_dim_sharding(r, c, entry);
    case CODE_SHARDING_1:
      return sdy_attr_read_sharding(r, c, entry, 1);
    case CODE_SHARDINGS_1:
    case CODE_SHARDINGS_2:
      return sdy_attr_read_shardings(r, c, entry);
    case CODE_DIM_MAPPING:
      return sdy_attr_read_dim_mapping(r, c, entry);
    case CODE_TENSOR_MAPPING:
      return sdy_attr_read_tensor_mapping(r, c, entry);
    case CODE_RULE:
      return sdy_attr_read_rule(r, c, entry);
    case CODE_AXES:
      return sdy_attr_read_axis_list(r, c, entry);
    case CODE_AXES_LISTS:
      return sdy_attr_read_axes_lists(r, c, entry);
    case CODE_ALL_TO_ALL_PARAM:
      return sdy_attr_read_all_to_all(r, c, entry);
    case CODE_ALL_TO_ALL_PARAMS:
      return sdy_attr_read_all_to_alls(r, c, entry);
    case CODE_SHARDING_2:
      return sdy_attr_read_sharding(r, c, entry, 2);
    case CODE_SHARDING_3:
      return sdy_attr_read_sharding(r, c, entry, 3);
    default:
      return mp_bc_unknown(&before, "sdy attribute %llu is not read", (unsigned long long)code);
  }
}
