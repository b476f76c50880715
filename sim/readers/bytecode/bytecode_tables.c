// The attribute and type tables: entries are decoded when they are first referred to.
#include "sim/base/assert.h"
#include "sim/readers/bytecode/bytecode_reader.h"

static const char *const g_object_names[] = {
    [MP_BC_ATTR] = "an attribute",
    [MP_BC_LOC] = "a location",
    [MP_BC_BOUNDS] = "dimension bounds",
    [MP_BC_MESH_AXIS] = "a mesh axis",
    [MP_BC_SUB_AXIS] = "a sub-axis",
    [MP_BC_AXIS_REF] = "an axis reference",
    [MP_BC_DIM_SHARDING] = "a dimension sharding",
    [MP_BC_DIM_MAPPING] = "a dimension mapping",
    [MP_BC_TENSOR_MAPPING] = "a tensor mapping",
    [MP_BC_ALL_TO_ALL] = "an all-to-all parameter",
    [MP_BC_OTHER] = "of another kind",
};

// Each reference to an entry adds its weight to the referring entry, or to the program. Locations
// of the program do not count: ops of one place share its call stack, and no later stage walks all
// of it (sim/ir/loc.h).
static mp_status_t bytecode_tables_weigh(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                         const mp_bc_entry_t *entry) {
  MP_ASSERT(entry->state == MP_BC_READ && entry->weight != 0);
  if (r->entry_depth == 0 && entry->kind == MP_BC_LOC) return NULL;
  r->weight += entry->weight;
  if (r->entry_depth > 0 && r->weight > r->max_weight)
    return mp_bc_fail(c, "a table entry unfolds to a huge tree");
  if (r->weight > r->max_program_weight)
    return mp_bc_fail(c, "the program's attributes and types unfold to huge trees");
  return NULL;
}

// Decodes an entry unless that was done before. Entries may refer to each other in any order, but
// not in a circle. `c` is where the reference to the entry stands, for errors.
static mp_status_t bytecode_tables_resolve(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                           mp_bc_entry_t *entry, mp_bc_decoder_t decode) {
  if (entry->state == MP_BC_READING) return mp_bc_fail(c, "a table entry contains itself");
  if (entry->state == MP_BC_UNREAD) {
    if (r->entry_depth >= MP_BC_MAX_ENTRY_DEPTH) {
      return mp_bc_fail(c, "table entries are nested more than %d deep", MP_BC_MAX_ENTRY_DEPTH);
    }
    uint64_t outer_weight = r->weight;
    r->weight = 1;
    ++r->entry_depth;
    entry->state = MP_BC_READING;
    mp_bc_cursor_t bytes = entry->bytes;
    MP_RETURN_IF_ERROR(decode(r, &bytes, entry));
    MP_RETURN_IF_ERROR(mp_bc_finish(&bytes, "a table entry"));
    entry->state = MP_BC_READ;
    MP_ASSERT(r->entry_depth > 0 && r->weight > 0);
    --r->entry_depth;
    entry->weight = r->weight;
    r->weight = outer_weight;
  }
  return bytecode_tables_weigh(r, c, entry);
}

mp_status_t mp_bc_attr_entry_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c, uint64_t index,
                                mp_bc_entry_t **out_entry) {
  if (index >= r->num_attrs) {
    return mp_bc_fail(c, "attribute %llu of %zu is referred to", (unsigned long long)index,
                      r->num_attrs);
  }
  *out_entry = &r->attrs[index];
  return bytecode_tables_resolve(r, c, *out_entry, r->decode_attr);
}

mp_status_t mp_bc_object_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c, uint64_t index,
                            mp_bc_object_t kind, const void **out_object) {
  mp_bc_entry_t *entry = NULL;
  MP_RETURN_IF_ERROR(mp_bc_attr_entry_at(r, c, index, &entry));
  if (entry->kind != kind) {
    return mp_bc_fail(c, "%s is expected, entry %llu is %s", g_object_names[kind],
                      (unsigned long long)index, g_object_names[entry->kind]);
  }
  *out_object = entry->object;
  return NULL;
}

mp_status_t mp_bc_attr_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c, uint64_t index,
                          const mp_attr_t **out_attr) {
  const void *object = NULL;
  MP_RETURN_IF_ERROR(mp_bc_object_at(r, c, index, MP_BC_ATTR, &object));
  *out_attr = object;
  return NULL;
}

mp_status_t mp_bc_type_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c, uint64_t index,
                          const mp_bc_type_t **out_type) {
  if (index >= r->num_types) {
    return mp_bc_fail(c, "type %llu of %zu is referred to", (unsigned long long)index,
                      r->num_types);
  }
  MP_RETURN_IF_ERROR(bytecode_tables_resolve(r, c, &r->types[index], r->decode_type));
  *out_type = r->types[index].object;
  return NULL;
}

mp_status_t mp_bc_object(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_object_t kind,
                         const void **out_object) {
  mp_bc_cursor_t before = *c;
  uint64_t index = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &index));
  return mp_bc_object_at(r, &before, index, kind, out_object);
}

mp_status_t mp_bc_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c, const mp_attr_t **out_attr) {
  const void *object = NULL;
  MP_RETURN_IF_ERROR(mp_bc_object(r, c, MP_BC_ATTR, &object));
  *out_attr = object;
  return NULL;
}

mp_status_t mp_bc_attr_of(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_attr_kind_t kind,
                          const char *what, const mp_attr_t **out_attr) {
  mp_bc_cursor_t before = *c;
  const mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_attr(r, c, &attr));
  if (attr->kind != kind) return mp_bc_fail(&before, "%s has the wrong kind of attribute", what);
  *out_attr = attr;
  return NULL;
}

mp_status_t mp_bc_text(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_str_t *out_text) {
  const mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_attr_of(r, c, MP_KIND_STRING, "a name", &attr));
  *out_text = attr->u.str;
  return NULL;
}

mp_status_t mp_bc_loc(mp_bc_reader_t *r, mp_bc_cursor_t *c, const mp_loc_t **out_loc) {
  const void *object = NULL;
  MP_RETURN_IF_ERROR(mp_bc_object(r, c, MP_BC_LOC, &object));
  *out_loc = object;
  return NULL;
}

mp_status_t mp_bc_type(mp_bc_reader_t *r, mp_bc_cursor_t *c, const mp_bc_type_t **out_type) {
  mp_bc_cursor_t before = *c;
  uint64_t index = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &index));
  return mp_bc_type_at(r, &before, index, out_type);
}

// Later stages walk the type of every value, so tuples that unfold to large trees are refused.
mp_status_t mp_bc_value_type_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c, uint64_t index,
                                const mp_type_t **out_type) {
  const mp_bc_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_bc_type_at(r, c, index, &type));
  if (type->dtype != MP_DTYPE_INVALID || type->type->kind == MP_TYPE_FUNCTION ||
      type->type->kind == MP_TYPE_NONE) {
    return mp_bc_fail(c, "a value has a type that no value can have");
  }
  if (r->types[index].weight > MP_BC_MAX_VALUE_TYPE) {
    return mp_bc_unknown(c, "the type of a value has more than %d parts", MP_BC_MAX_VALUE_TYPE);
  }
  *out_type = type->type;
  return NULL;
}

mp_status_t mp_bc_value_type(mp_bc_reader_t *r, mp_bc_cursor_t *c, const mp_type_t **out_type) {
  mp_bc_cursor_t before = *c;
  uint64_t index = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &index));
  return mp_bc_value_type_at(r, &before, index, out_type);
}

mp_status_t mp_bc_scalar(mp_bc_reader_t *r, mp_bc_cursor_t *c, const mp_bc_type_t **out_type) {
  mp_bc_cursor_t before = *c;
  const mp_bc_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_bc_type(r, c, &type));
  if (type->dtype == MP_DTYPE_INVALID) return mp_bc_fail(&before, "an element type is expected");
  *out_type = type;
  return NULL;
}

mp_status_t mp_bc_objects(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_object_t kind, size_t size,
                          const void **out_array, uint32_t *out_count) {
  size_t count = 0;
  MP_RETURN_IF_ERROR(mp_bc_count(c, "list elements", &count));
  char *array = mp_arena_alloc_array(r->arena, count, size);
  MP_RETURN_IF_NULL(array);
  for (size_t i = 0; i < count; ++i) {
    const void *object = NULL;
    MP_RETURN_IF_ERROR(mp_bc_object(r, c, kind, &object));
    memcpy(array + i * size, object, size);
  }
  *out_array = array;
  *out_count = (uint32_t)count;
  return NULL;
}

mp_status_t mp_bc_attrs(mp_bc_reader_t *r, mp_bc_cursor_t *c, const mp_attr_t *const **out_attrs,
                        size_t *out_count) {
  size_t count = 0;
  MP_RETURN_IF_ERROR(mp_bc_count(c, "attributes of a list", &count));
  const mp_attr_t **attrs = MP_ARENA_ARRAY(r->arena, const mp_attr_t *, count);
  MP_RETURN_IF_NULL(attrs);
  for (size_t i = 0; i < count; ++i) MP_RETURN_IF_ERROR(mp_bc_attr(r, c, &attrs[i]));
  *out_attrs = attrs;
  *out_count = count;
  return NULL;
}

mp_status_t mp_bc_value_types(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                              const mp_type_t *const **out_types, size_t *out_count) {
  size_t count = 0;
  MP_RETURN_IF_ERROR(mp_bc_count(c, "types", &count));
  const mp_type_t **types = MP_ARENA_ARRAY(r->arena, const mp_type_t *, count);
  MP_RETURN_IF_NULL(types);
  for (size_t i = 0; i < count; ++i) MP_RETURN_IF_ERROR(mp_bc_value_type(r, c, &types[i]));
  *out_types = types;
  *out_count = count;
  return NULL;
}

mp_status_t mp_bc_index_list(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_index_list_t *out_list) {
  size_t count = 0;
  MP_RETURN_IF_ERROR(mp_bc_count(c, "numbers", &count));
  int64_t *values = MP_ARENA_ARRAY(r->arena, int64_t, count);
  MP_RETURN_IF_NULL(values);
  for (size_t i = 0; i < count; ++i) MP_RETURN_IF_ERROR(mp_bc_svarint(c, &values[i]));
  *out_list = (mp_index_list_t){(uint32_t)count, values};
  return NULL;
}
