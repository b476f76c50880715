// Types of the tables.
#include "sim/mosaic/read/mosaic_bytecode.h"
#include "sim/mosaic/read/mosaic_text.h"

enum {
  CODE_FUNCTION = 2,
  CODE_MEMREF = 10,
  CODE_MEMREF_IN_SPACE = 11,
  CODE_VECTOR = 19,
};

// ---- vectors and memrefs ----

// Reads the dimensions and the type of the elements.
static mp_status_t mosaic_bytecode_types_read_shape(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                    mp_mosaic_type_t *type) {
  const mp_bc_cursor_t before = *c;
  mp_index_list_t dims;
  const mp_mosaic_type_t *element = NULL;
  MP_RETURN_IF_ERROR(mp_bc_index_list(r, c, &dims));
  MP_RETURN_IF_ERROR(mp_mosaic_bc_type(r, c, &element));
  for (uint32_t i = 0; i < dims.count; ++i) {
    const bool is_dynamic = dims.values[i] == MP_MOSAIC_DYNAMIC && type->kind == MP_MOSAIC_MEMREF;
    if (dims.values[i] < 0 && !is_dynamic)
      return mp_bc_fail(&before, "a dimension is %lld", (long long)dims.values[i]);
  }
  if (element->kind != MP_MOSAIC_SCALAR ||
      (element->element != MP_MOSAIC_NUMBER && type->kind != MP_MOSAIC_MEMREF))
    return mp_bc_fail(&before, "an element type is expected");
  type->dtype = element->dtype;
  type->element = element->element;
  type->rank = dims.count;
  type->dims = dims.values;
  return NULL;
}

static mp_status_t mosaic_bytecode_types_apply(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                               const mp_mosaic_attr_t *attr,
                                               mp_mosaic_type_t *type) {
  mp_status_t status = mp_mosaic_apply_layout(r->arena, attr, type);
  if (status == NULL) return NULL;
  return mp_status_annotate(status, "bytecode: offset %zu", (size_t)(c->at - c->start));
}

static mp_status_t mosaic_bytecode_types_read_memref(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                     bool has_space, mp_bc_type_t *out_type) {
  const mp_bc_cursor_t before = *c;
  mp_mosaic_type_t type = {.kind = MP_MOSAIC_MEMREF};
  const mp_mosaic_attr_t *space = NULL, *layout = NULL;
  const mp_mosaic_type_t *copy = NULL;
  if (has_space) MP_RETURN_IF_ERROR(mp_mosaic_bc_attr(r, c, &space));
  MP_RETURN_IF_ERROR(mosaic_bytecode_types_read_shape(r, c, &type));
  MP_RETURN_IF_ERROR(mp_mosaic_bc_attr(r, c, &layout));
  if (has_space) MP_RETURN_IF_ERROR(mosaic_bytecode_types_apply(r, &before, space, &type));
  MP_RETURN_IF_ERROR(mosaic_bytecode_types_apply(r, &before, layout, &type));
  MP_RETURN_IF_ERROR(mp_mosaic_type_copy(r->arena, &type, &copy));
  out_type->other = copy;
  return NULL;
}

// Constants are read by the tensor type of the same shape.
static mp_status_t mosaic_bytecode_types_read_vector(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                     mp_bc_type_t *out_type) {
  mp_mosaic_type_t type = {.kind = MP_MOSAIC_VECTOR};
  const mp_mosaic_type_t *copy = NULL;
  MP_RETURN_IF_ERROR(mosaic_bytecode_types_read_shape(r, c, &type));
  MP_RETURN_IF_ERROR(mp_mosaic_type_copy(r->arena, &type, &copy));
  out_type->other = copy;
  return mp_type_tensor(r->arena, type.dtype, type.dims, type.rank, &out_type->type);
}

// ---- functions ----

typedef MP_ARRAY(const mp_mosaic_type_t *) types_t;

static mp_status_t mosaic_bytecode_types_read_list(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                   types_t *types) {
  size_t count = 0;
  MP_RETURN_IF_ERROR(mp_bc_count(c, "types", &count));
  for (size_t i = 0; i < count; ++i) {
    const mp_mosaic_type_t *type = NULL;
    MP_RETURN_IF_ERROR(mp_mosaic_bc_type(r, c, &type));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(r->scratch, types, type));
  }
  return NULL;
}

static mp_status_t mosaic_bytecode_types_read_function(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                       mp_bc_type_t *out_type) {
  types_t types = {0};
  MP_RETURN_IF_ERROR(mosaic_bytecode_types_read_list(r, c, &types));
  mp_mosaic_type_t type = {.kind = MP_MOSAIC_FUNCTION, .num_inputs = types.count};
  MP_RETURN_IF_ERROR(mosaic_bytecode_types_read_list(r, c, &types));
  type.num_elements = types.count;
  type.elements = types.items;
  const mp_mosaic_type_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_mosaic_type_copy(r->arena, &type, &copy));
  out_type->other = copy;
  return NULL;
}

// ---- all types ----

static mp_status_t mosaic_bytecode_types_read_scalar(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                     mp_bc_type_t *out_type) {
  const mp_mosaic_type_t *scalar = NULL;
  MP_RETURN_IF_ERROR(mp_bc_builtin_type(r, c, out_type));
  if (out_type->dtype == MP_DTYPE_INVALID) return NULL;
  MP_RETURN_IF_ERROR(mp_mosaic_scalar_type(r->arena, out_type->dtype, &scalar));
  out_type->other = scalar;
  return NULL;
}

static mp_status_t mosaic_bytecode_types_read_text(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                   mp_bc_type_t *out_type) {
  const mp_bc_cursor_t before = *c;
  mp_str_t text;
  const mp_mosaic_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_bc_cstring(c, &text));
  mp_status_t status = mp_mosaic_parse_type(r->arena, r->scratch, text, &type);
  if (status != NULL)
    return mp_status_annotate(status, "bytecode: offset %zu: the type '%.*s'",
                              (size_t)(before.at - before.start), MP_STR_SHOWN(text, 100));
  out_type->other = type;
  if (type->kind == MP_MOSAIC_SCALAR && type->element == MP_MOSAIC_NUMBER)
    out_type->dtype = type->dtype;
  const bool is_tensor = type->kind == MP_MOSAIC_VECTOR || out_type->dtype != MP_DTYPE_INVALID;
  if (!is_tensor) return NULL;
  return mp_type_tensor(r->arena, type->dtype, type->dims, type->rank, &out_type->type);
}

mp_status_t mp_mosaic_decode_type(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry) {
  // What is no value of StableHLO is refused where one is expected.
  static const mp_type_t none = {.kind = MP_TYPE_NONE};
  mp_bc_type_t *type = MP_ARENA_NEW(r->scratch, mp_bc_type_t);
  MP_RETURN_IF_NULL(type);
  type->type = &none;
  entry->object = type;
  if (!entry->custom) return mosaic_bytecode_types_read_text(r, c, type);
  if (entry->dialect != MP_BC_BUILTIN)
    return mp_bc_unknown(c, "types of the dialect '%.*s' are not read",
                         MP_STR_SHOWN(entry->dialect_name, 60));
  mp_bc_cursor_t behind = *c;
  uint64_t code = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(&behind, &code));
  const bool is_memref = code == CODE_MEMREF || code == CODE_MEMREF_IN_SPACE;
  if (code != CODE_FUNCTION && code != CODE_VECTOR && !is_memref)
    return mosaic_bytecode_types_read_scalar(r, c, type);
  *c = behind;
  if (code == CODE_FUNCTION) return mosaic_bytecode_types_read_function(r, c, type);
  if (code == CODE_VECTOR) return mosaic_bytecode_types_read_vector(r, c, type);
  return mosaic_bytecode_types_read_memref(r, c, code == CODE_MEMREF_IN_SPACE, type);
}
