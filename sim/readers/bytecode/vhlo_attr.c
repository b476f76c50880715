// The VHLO dialect's attributes (StableHLO VhloBytecode.cpp).
#include "sim/readers/bytecode/bytecode_reader.h"

typedef mp_status_t (*mp_bc_attr_reader_t)(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                           mp_bc_entry_t *entry);

static mp_status_t vhlo_attr_read_bool(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry) {
  uint64_t value = 0;
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_bounded(c, 1, "a boolean", &value));
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_BOOL, &attr));
  attr->u.boolean = value == 1;
  return NULL;
}

static mp_status_t vhlo_attr_read_string(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                         mp_bc_entry_t *entry) {
  mp_str_t text;
  MP_RETURN_IF_ERROR(mp_bc_string(r, c, &text));
  return mp_bc_string_attr(r, entry, text);
}

static mp_status_t vhlo_attr_read_alias(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                        mp_bc_entry_t *entry) {
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_OUTPUT_ALIAS, &attr));
  MP_RETURN_IF_ERROR(mp_bc_index_list(r, c, &attr->u.alias.output_tuple_indices));
  MP_RETURN_IF_ERROR(mp_bc_svarint(c, &attr->u.alias.operand_index));
  return mp_bc_index_list(r, c, &attr->u.alias.operand_tuple_indices);
}

static mp_status_t vhlo_attr_read_type(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry) {
  const mp_bc_type_t *type = NULL;
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_type(r, c, &type));
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_TYPE, &attr));
  attr->u.type = type->type;
  return NULL;
}

// Reads the bounds of dynamic dimensions, which are the encoding of a tensor type and no attribute
// of operations.
static mp_status_t vhlo_attr_read_bounds(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                         mp_bc_entry_t *entry) {
  mp_index_list_t *bounds = MP_ARENA_NEW(r->arena, mp_index_list_t);
  MP_RETURN_IF_NULL(bounds);
  MP_RETURN_IF_ERROR(mp_bc_index_list(r, c, bounds));
  entry->kind = MP_BC_BOUNDS;
  entry->object = bounds;
  return NULL;
}

// Reads the accuracy that a result must have: tolerances, and a mode, which is an attribute itself.
static mp_status_t vhlo_attr_read_accuracy(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                           mp_bc_entry_t *entry) {
  uint64_t atol, rtol;
  const mp_attr_t *mode = NULL;
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_RESULT_ACCURACY, &attr));
  MP_RETURN_IF_ERROR(mp_bc_bits(c, 64, &atol));
  MP_RETURN_IF_ERROR(mp_bc_bits(c, 64, &rtol));
  memcpy(&attr->u.accuracy.atol, &atol, sizeof(atol));
  memcpy(&attr->u.accuracy.rtol, &rtol, sizeof(rtol));
  MP_RETURN_IF_ERROR(mp_bc_svarint(c, &attr->u.accuracy.ulps));
  MP_RETURN_IF_ERROR(mp_bc_attr_of(r, c, MP_KIND_ENUM, "a result accuracy mode", &mode));
  if (mode->u.enumeration.kind != MP_ENUM_RESULT_ACCURACY_MODE) {
    return mp_bc_fail(c, "a result accuracy mode has another kind of enumeration");
  }
  attr->u.accuracy.mode = mode->u.enumeration.value;
  return NULL;
}

// ---- meshes ----
//
// The parts of a mesh are attributes themselves. The IR has none for them, so an axis is held as a
// mesh of one axis and a reference to an axis as a list of one.

static mp_status_t vhlo_attr_read_sub_axis(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                           mp_bc_entry_t *entry) {
  mp_axis_ref_t *axis = MP_ARENA_NEW(r->arena, mp_axis_ref_t);
  MP_RETURN_IF_NULL(axis);
  MP_RETURN_IF_ERROR(mp_bc_svarint(c, &axis->pre_size));
  MP_RETURN_IF_ERROR(mp_bc_svarint(c, &axis->size));
  entry->kind = MP_BC_SUB_AXIS;
  entry->object = axis;
  return NULL;
}

static mp_status_t vhlo_attr_read_axis_ref(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                           mp_bc_entry_t *entry) {
  mp_axis_ref_t *axis = MP_ARENA_NEW(r->arena, mp_axis_ref_t);
  MP_RETURN_IF_NULL(axis);
  mp_str_t name;
  uint64_t has_sub_axis = 0;
  MP_RETURN_IF_ERROR(mp_bc_text(r, c, &name));
  MP_RETURN_IF_ERROR(mp_bc_bounded(c, 1, "a sub-axis flag", &has_sub_axis));
  axis->pre_size = 1;
  if (has_sub_axis) {
    const void *sub_axis = NULL;
    MP_RETURN_IF_ERROR(mp_bc_object(r, c, MP_BC_SUB_AXIS, &sub_axis));
    *axis = *(const mp_axis_ref_t *)sub_axis;
  }
  axis->name = name;
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_AXES, &attr));
  attr->u.axes = (mp_axis_list_t){1, axis};
  return NULL;
}

static mp_status_t vhlo_attr_new_mesh(mp_bc_reader_t *r, mp_bc_entry_t *entry, uint32_t num_axes,
                                      mp_mesh_t **out_mesh, mp_mesh_axis_t **out_axes) {
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_MESH, &attr));
  mp_mesh_t *mesh = MP_ARENA_NEW(r->arena, mp_mesh_t);
  MP_RETURN_IF_NULL(mesh);
  mp_mesh_axis_t *axes = MP_ARENA_ARRAY(r->arena, mp_mesh_axis_t, num_axes);
  MP_RETURN_IF_NULL(axes);
  mesh->name = MP_STR("");
  mesh->num_axes = num_axes;
  mesh->axes = axes;
  attr->u.mesh = mesh;
  *out_mesh = mesh;
  *out_axes = axes;
  return NULL;
}

static mp_status_t vhlo_attr_read_mesh_axis(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                            mp_bc_entry_t *entry) {
  mp_mesh_t *mesh = NULL;
  mp_mesh_axis_t *axis = NULL;
  MP_RETURN_IF_ERROR(vhlo_attr_new_mesh(r, entry, 1, &mesh, &axis));
  MP_RETURN_IF_ERROR(mp_bc_text(r, c, &axis->name));
  return mp_bc_svarint(c, &axis->size);
}

static mp_status_t vhlo_attr_read_device_ids(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                             mp_mesh_t *mesh) {
  mp_bc_cursor_t before = *c;
  uint64_t index = 0;
  bool present = false;
  const mp_attr_t *ids = NULL;
  MP_RETURN_IF_ERROR(mp_bc_flagged(c, &index, &present));
  if (!present) return NULL;
  MP_RETURN_IF_ERROR(mp_bc_plain_attr_at(r, &before, index, &ids));
  if (ids->kind != MP_KIND_INTS || ids->u.ints.count > UINT32_MAX) {
    return mp_bc_fail(&before, "the device ids of a mesh are not a list of integers");
  }
  mesh->num_device_ids = (uint32_t)ids->u.ints.count;
  mesh->device_ids = ids->u.ints.values;
  return NULL;
}

static mp_status_t vhlo_attr_read_mesh(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry) {
  mp_bc_cursor_t before = *c;
  const mp_attr_t *list = NULL;
  mp_mesh_t *mesh = NULL;
  mp_mesh_axis_t *axes = NULL;
  MP_RETURN_IF_ERROR(mp_bc_attr_of(r, c, MP_KIND_ARRAY, "the axes of a mesh", &list));
  MP_RETURN_IF_ERROR(vhlo_attr_new_mesh(r, entry, (uint32_t)list->u.array.count, &mesh, &axes));
  for (size_t i = 0; i < list->u.array.count; ++i) {
    const mp_attr_t *axis = list->u.array.items[i];
    if (axis->kind != MP_KIND_MESH || axis->u.mesh->num_axes != 1) {
      return mp_bc_fail(&before, "axis %zu of a mesh is not an axis", i);
    }
    axes[i] = axis->u.mesh->axes[0];
  }
  return vhlo_attr_read_device_ids(r, c, mesh);
}

// Reads replica groups that are given by axes of a mesh: a group is all devices that differ only in
// these axes.
static mp_status_t vhlo_attr_read_mesh_groups(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                              mp_bc_entry_t *entry) {
  mp_bc_cursor_t before = *c;
  const mp_attr_t *mesh, *list;
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_attr(r, c, &mesh));
  MP_RETURN_IF_ERROR(mp_bc_attr_of(r, c, MP_KIND_ARRAY, "the axes of replica groups", &list));
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_MESH_GROUPS, &attr));
  if (mesh->kind == MP_KIND_STRING) {
    MP_RETURN_IF_ERROR(mp_bc_mesh_ref(r, mesh->u.str, &attr->u.mesh_groups.mesh));
  } else if (mesh->kind == MP_KIND_MESH) {
    attr->u.mesh_groups.mesh = mesh->u.mesh;
  } else {
    return mp_bc_fail(&before, "replica groups name no mesh");
  }
  mp_axis_ref_t *axes = MP_ARENA_ARRAY(r->arena, mp_axis_ref_t, list->u.array.count);
  MP_RETURN_IF_NULL(axes);
  for (size_t i = 0; i < list->u.array.count; ++i) {
    const mp_attr_t *axis = list->u.array.items[i];
    if (axis->kind != MP_KIND_AXES || axis->u.axes.count != 1) {
      return mp_bc_fail(&before, "axis %zu of replica groups is not an axis", i);
    }
    axes[i] = axis->u.axes.axes[0];
  }
  attr->u.mesh_groups.axes = (mp_axis_list_t){(uint32_t)list->u.array.count, axes};
  return NULL;
}

// The readers by code.
static const mp_bc_attr_reader_t g_attr_readers[] = {
    [1] = mp_bc_array_attr,
    [2] = vhlo_attr_read_bool,
    [6] = mp_bc_dict_attr,
    [8] = mp_bc_float_attr,
    [9] = mp_bc_int_attr,
    [10] = vhlo_attr_read_alias,
    [14] = vhlo_attr_read_string,
    [15] = mp_bc_dense_attr,
    [17] = vhlo_attr_read_type,
    [18] = vhlo_attr_read_bounds,
    [20] = vhlo_attr_read_accuracy,
    [21] = vhlo_attr_read_sub_axis,
    [22] = vhlo_attr_read_axis_ref,
    [23] = vhlo_attr_read_mesh_groups,
    [24] = vhlo_attr_read_mesh_axis,
    [25] = vhlo_attr_read_mesh,
};

// By code: one more than the number of the enumeration that it stands for.
static const uint8_t g_enums[] = {
#define ENUM_CODE(name, text, code, ...) [code] = 1 + MP_ENUM_##name,
    MP_ENUMS(ENUM_CODE)
#undef ENUM_CODE
};

// Reads a value of an enumeration. All have the same form, and the values are VHLO's own numbers.
static mp_status_t vhlo_attr_read_enum(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_enum_kind_t kind,
                                       mp_bc_entry_t *entry) {
  mp_bc_cursor_t before = *c;
  uint64_t value = 0;
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_bounded(c, UINT32_MAX, "an enumeration's value", &value));
  if (mp_enum_value_name(kind, (uint32_t)value) == NULL) {
    return mp_bc_fail(&before, "an enumeration has no value %llu", (unsigned long long)value);
  }
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_ENUM, &attr));
  attr->u.enumeration.kind = kind;
  attr->u.enumeration.value = (uint32_t)value;
  return NULL;
}

mp_status_t mp_bc_vhlo_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry) {
  mp_bc_cursor_t before = *c;
  uint64_t code = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &code));
  if (code < sizeof(g_enums) && g_enums[code] != 0) {
    return vhlo_attr_read_enum(r, c, (mp_enum_kind_t)(g_enums[code] - 1), entry);
  }
  if (code >= sizeof(g_attr_readers) / sizeof(g_attr_readers[0]) || g_attr_readers[code] == NULL) {
    return mp_bc_unknown(&before, "vhlo attribute %llu is not read", (unsigned long long)code);
  }
  return g_attr_readers[code](r, c, entry);
}
