// Attributes: those of the builtin dialect in its encoding, those of other dialects as text.
#include "sim/mosaic/read/mosaic_bytecode.h"
#include "sim/mosaic/read/mosaic_text.h"

enum {
  CODE_ARRAY = 0,
  CODE_DICT = 1,
  CODE_TYPE = 6,
  CODE_INT_ARRAY = 17,
  CODE_DENSE = 18,
  CODE_MAP = 23,  // since MLIR 24; before, maps are text
};

static mp_status_t mosaic_bytecode_attrs_set(mp_bc_reader_t *r, const mp_mosaic_attr_t *attr,
                                             mp_bc_entry_t *entry) {
  const mp_mosaic_attr_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_mosaic_attr_copy(r->arena, attr, &copy));
  entry->kind = MP_BC_OTHER;
  entry->other = copy;
  return NULL;
}

// ---- lists ----

static mp_status_t mosaic_bytecode_attrs_read_name(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                   mp_str_t *out_name) {
  const mp_bc_cursor_t before = *c;
  const mp_mosaic_attr_t *name = NULL;
  MP_RETURN_IF_ERROR(mp_mosaic_bc_attr(r, c, &name));
  if (name->kind != MP_MOSAIC_STRING) return mp_bc_fail(&before, "a name is expected");
  *out_name = name->str;
  return NULL;
}

// A list of references, or of pairs of a name and a reference.
static mp_status_t mosaic_bytecode_attrs_read_list(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                   bool has_names, mp_bc_entry_t *entry) {
  const mp_bc_cursor_t before = *c;
  mp_mosaic_attr_t list = {.kind = has_names ? MP_MOSAIC_DICT : MP_MOSAIC_ARRAY};
  size_t count = 0;
  MP_RETURN_IF_ERROR(mp_bc_count(c, "attributes of a list", &count));
  mp_mosaic_named_t *items = MP_ARENA_ARRAY(r->arena, mp_mosaic_named_t, count);
  MP_RETURN_IF_NULL(items);
  for (size_t i = 0; i < count; ++i) {
    if (has_names) MP_RETURN_IF_ERROR(mosaic_bytecode_attrs_read_name(r, c, &items[i].name));
    MP_RETURN_IF_ERROR(mp_mosaic_bc_attr(r, c, &items[i].value));
  }
  list.list.items = items;
  list.list.count = (uint32_t)count;
  const mp_str_t twice = has_names ? mp_mosaic_sort_attrs(items, list.list.count) : MP_STR("");
  if (twice.size > 0) return mp_bc_fail(&before, "'%.*s' is given twice", MP_STR_SHOWN(twice, 100));
  return mosaic_bytecode_attrs_set(r, &list, entry);
}

// ---- numbers, texts, constants ----

// Reads what StableHLO's reader knows, and keeps it in Mosaic's form, too: locations refer to texts
// by the former.
static mp_status_t mosaic_bytecode_attrs_read_plain(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                    const mp_mosaic_type_t *dense_type,
                                                    mp_dtype_t dtype, mp_bc_entry_t *entry) {
  MP_RETURN_IF_ERROR(mp_bc_builtin_attr(r, c, entry));
  if (entry->kind != MP_BC_ATTR) return NULL;
  const mp_mosaic_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_mosaic_from_plain(r->arena, entry->object, dense_type, &attr));
  if (dtype != MP_DTYPE_INVALID) {
    mp_mosaic_attr_t typed = *attr;
    typed.dtype = dtype;
    MP_RETURN_IF_ERROR(mp_mosaic_attr_copy(r->arena, &typed, &attr));
  }
  entry->other = attr;
  return NULL;
}

// A list or a constant, which begin with the type of an element or the whole.
static mp_status_t mosaic_bytecode_attrs_read_typed(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                    bool is_array, mp_bc_entry_t *entry) {
  mp_bc_cursor_t ahead = *c;
  const mp_bc_type_t *type = NULL;
  uint64_t code = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(&ahead, &code));
  MP_RETURN_IF_ERROR(mp_bc_type(r, &ahead, &type));
  // Constants of tensors have no type here: their integers become a list.
  return mosaic_bytecode_attrs_read_plain(r, c, is_array ? NULL : type->other,
                                          is_array ? type->dtype : MP_DTYPE_INVALID, entry);
}

// ---- text ----

// Reads text as MLIR prints it, of which the bytecode holds a copy.
static mp_status_t mosaic_bytecode_attrs_read_text(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                   mp_bc_entry_t *entry) {
  const mp_bc_cursor_t before = *c;
  mp_str_t text;
  const mp_mosaic_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_cstring(c, &text));
  mp_status_t status = mp_mosaic_parse_attr(r->arena, r->scratch, text, &attr);
  if (status != NULL)
    return mp_status_annotate(status, "bytecode: offset %zu: the attribute '%.*s'",
                              (size_t)(before.at - before.start), MP_STR_SHOWN(text, 100));
  return mosaic_bytecode_attrs_set(r, attr, entry);
}

static mp_status_t mosaic_bytecode_attrs_read_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                   mp_bc_entry_t *entry) {
  mp_mosaic_attr_t attr = {.kind = MP_MOSAIC_TYPE};
  MP_RETURN_IF_ERROR(mp_mosaic_bc_type(r, c, &attr.type));
  return mosaic_bytecode_attrs_set(r, &attr, entry);
}

static mp_status_t mosaic_bytecode_attrs_read_map(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                  mp_bc_entry_t *entry) {
  mp_mosaic_attr_t attr = {.kind = MP_MOSAIC_MAP};
  MP_RETURN_IF_ERROR(mp_mosaic_bc_map(r, c, &attr.map));
  return mosaic_bytecode_attrs_set(r, &attr, entry);
}

mp_status_t mp_mosaic_decode_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry) {
  if (!entry->custom) return mosaic_bytecode_attrs_read_text(r, c, entry);
  if (entry->dialect != MP_BC_BUILTIN)
    return mp_bc_unknown(c, "attributes of the dialect '%.*s' are not read",
                         MP_STR_SHOWN(entry->dialect_name, 60));
  mp_bc_cursor_t behind = *c;
  uint64_t code = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(&behind, &code));
  if (code == CODE_INT_ARRAY || code == CODE_DENSE)
    return mosaic_bytecode_attrs_read_typed(r, c, code == CODE_INT_ARRAY, entry);
  if (code != CODE_ARRAY && code != CODE_DICT && code != CODE_TYPE && code != CODE_MAP)
    return mosaic_bytecode_attrs_read_plain(r, c, NULL, MP_DTYPE_INVALID, entry);
  *c = behind;
  if (code == CODE_TYPE) return mosaic_bytecode_attrs_read_type(r, c, entry);
  if (code == CODE_MAP) return mosaic_bytecode_attrs_read_map(r, c, entry);
  return mosaic_bytecode_attrs_read_list(r, c, code == CODE_DICT, entry);
}

mp_status_t mp_mosaic_decode_attr_or_loc(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                         mp_bc_entry_t *entry) {
  MP_RETURN_IF_ERROR(mp_mosaic_decode_attr(r, c, entry));
  if (entry->kind != MP_BC_LOC) return NULL;
  const mp_mosaic_attr_t loc = {.kind = MP_MOSAIC_LOC, .loc = entry->object};
  const mp_mosaic_attr_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_mosaic_attr_copy(r->arena, &loc, &copy));
  entry->other = copy;
  return NULL;
}
