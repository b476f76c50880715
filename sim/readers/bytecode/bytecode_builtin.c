// The builtin dialect's attributes and types (MLIR BuiltinDialectBytecode.td).
#include "sim/base/containers/array.h"
#include "sim/readers/bytecode/bytecode_reader.h"

enum { CODE_CALL_SITE = 10 };

typedef mp_status_t (*mp_bc_attr_reader_t)(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                           mp_bc_entry_t *entry);

static mp_status_t bytecode_builtin_read_string(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                mp_bc_entry_t *entry) {
  mp_str_t text;
  MP_RETURN_IF_ERROR(mp_bc_string(r, c, &text));
  return mp_bc_string_attr(r, entry, text);
}

static mp_status_t bytecode_builtin_read_typed_string(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                      mp_bc_entry_t *entry) {
  const mp_bc_type_t *type = NULL;
  MP_RETURN_IF_ERROR(bytecode_builtin_read_string(r, c, entry));
  return mp_bc_type(r, c, &type);
}

static mp_status_t bytecode_builtin_read_symbol(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                mp_bc_entry_t *entry) {
  mp_str_t name;
  MP_RETURN_IF_ERROR(mp_bc_text(r, c, &name));
  return mp_bc_string_attr(r, entry, name);
}

static mp_status_t bytecode_builtin_read_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                              mp_bc_entry_t *entry) {
  const mp_bc_type_t *type = NULL;
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_type(r, c, &type));
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_TYPE, &attr));
  attr->u.type = type->type;
  return NULL;
}

static mp_status_t bytecode_builtin_read_unit(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                              mp_bc_entry_t *entry) {
  (void)c;
  mp_attr_t *attr = NULL;
  return mp_bc_new_attr(r, entry, MP_KIND_UNIT, &attr);
}

// ---- locations ----

static mp_status_t bytecode_builtin_new_loc(mp_bc_reader_t *r, mp_bc_entry_t *entry,
                                            mp_loc_kind_t kind, mp_loc_t **out_loc) {
  mp_loc_t *loc = MP_ARENA_NEW(r->arena, mp_loc_t);
  MP_RETURN_IF_NULL(loc);
  loc->kind = kind;
  entry->kind = MP_BC_LOC;
  entry->object = loc;
  *out_loc = loc;
  return NULL;
}

static mp_status_t bytecode_builtin_read_children(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                  size_t count, mp_loc_t *loc) {
  const mp_loc_t **children = MP_ARENA_ARRAY(r->arena, const mp_loc_t *, count);
  MP_RETURN_IF_NULL(children);
  for (size_t i = 0; i < count; ++i) MP_RETURN_IF_ERROR(mp_bc_loc(r, c, &children[i]));
  loc->children = children;
  loc->num_children = (uint32_t)count;
  return NULL;
}

// Reads the two references of the call site at `index`, which is not decoded yet. Returns false for
// any other entry, and for a malformed one, whose decoder will report the error.
static bool bytecode_builtin_peek_caller(const mp_bc_reader_t *r, uint64_t index,
                                         uint64_t *out_caller) {
  if (index >= r->num_attrs) return false;
  const mp_bc_entry_t *entry = &r->attrs[index];
  if (entry->state != MP_BC_UNREAD || !entry->custom || entry->dialect != MP_BC_BUILTIN)
    return false;
  mp_bc_cursor_t bytes = entry->bytes;
  uint64_t code = 0, callee = 0;
  mp_status_t status = mp_bc_varint(&bytes, &code);
  if (status == NULL) status = mp_bc_varint(&bytes, &callee);
  if (status == NULL) status = mp_bc_varint(&bytes, out_caller);
  const bool is_call_site = status == NULL && code == CODE_CALL_SITE;
  mp_status_release(status);
  return is_call_site;
}

// Decodes the call sites from which the one at `c` was called, the outermost first: a call stack
// may be deeper than entries may be nested.
static mp_status_t bytecode_builtin_read_callers(mp_bc_reader_t *r, mp_bc_cursor_t c) {
  MP_ARRAY(uint64_t) callers = {0};
  const mp_bc_cursor_t before = c;
  uint64_t index = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(&c, &index));
  MP_RETURN_IF_ERROR(mp_bc_varint(&c, &index));
  // Bounded by the number of entries, because entries may form a cycle.
  for (uint64_t at = index;
       callers.count < r->num_attrs && bytecode_builtin_peek_caller(r, at, &index); at = index) {
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(r->scratch, &callers, at));
  }
  const uint64_t weight = r->weight;
  for (uint32_t i = callers.count; i-- > 0;) {
    const void *loc = NULL;
    MP_RETURN_IF_ERROR(mp_bc_object_at(r, &before, callers.items[i], MP_BC_LOC, &loc));
    r->weight = weight;
  }
  return NULL;
}

static mp_status_t bytecode_builtin_read_call_site(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                   mp_bc_entry_t *entry) {
  mp_loc_t *loc = NULL;
  MP_RETURN_IF_ERROR(bytecode_builtin_new_loc(r, entry, MP_LOC_CALL_SITE, &loc));
  MP_RETURN_IF_ERROR(bytecode_builtin_read_callers(r, *c));
  return bytecode_builtin_read_children(r, c, 2, loc);
}

static mp_status_t bytecode_builtin_read_position(mp_bc_cursor_t *c, uint32_t *out_value) {
  uint64_t value = 0;
  MP_RETURN_IF_ERROR(mp_bc_bounded(c, UINT32_MAX, "a line or column", &value));
  *out_value = (uint32_t)value;
  return NULL;
}

static mp_status_t bytecode_builtin_read_file_line(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                   mp_bc_entry_t *entry) {
  mp_loc_t *loc = NULL;
  MP_RETURN_IF_ERROR(bytecode_builtin_new_loc(r, entry, MP_LOC_FILE, &loc));
  MP_RETURN_IF_ERROR(mp_bc_text(r, c, &loc->text));
  MP_RETURN_IF_ERROR(bytecode_builtin_read_position(c, &loc->line));
  return bytecode_builtin_read_position(c, &loc->column);
}

// Reads 0 to 4 numbers: line; line, column; line, column, end column; line, column, end line, end
// column.
static mp_status_t bytecode_builtin_read_file_range(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                    mp_bc_entry_t *entry) {
  mp_loc_t *loc = NULL;
  uint64_t count = 0;
  uint32_t at[4] = {0};
  MP_RETURN_IF_ERROR(bytecode_builtin_new_loc(r, entry, MP_LOC_FILE, &loc));
  MP_RETURN_IF_ERROR(mp_bc_text(r, c, &loc->text));
  MP_RETURN_IF_ERROR(mp_bc_bounded(c, 4, "the number of positions of a location", &count));
  for (uint64_t i = 0; i < count; ++i)
    MP_RETURN_IF_ERROR(bytecode_builtin_read_position(c, &at[i]));
  loc->line = at[0];
  loc->column = at[1];
  if (count == 3) {
    loc->end_line = at[0];
    loc->end_column = at[2];
  } else if (count == 4) {
    loc->end_line = at[2];
    loc->end_column = at[3];
  }
  return NULL;
}

static mp_status_t bytecode_builtin_read_fused(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                               mp_bc_entry_t *entry) {
  mp_loc_t *loc = NULL;
  size_t count = 0;
  MP_RETURN_IF_ERROR(bytecode_builtin_new_loc(r, entry, MP_LOC_FUSED, &loc));
  MP_RETURN_IF_ERROR(mp_bc_count(c, "fused locations", &count));
  return bytecode_builtin_read_children(r, c, count, loc);
}

static mp_status_t bytecode_builtin_read_fused_metadata(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                        mp_bc_entry_t *entry) {
  const mp_attr_t *metadata = NULL;
  MP_RETURN_IF_ERROR(bytecode_builtin_read_fused(r, c, entry));
  return mp_bc_attr(r, c, &metadata);
}

static mp_status_t bytecode_builtin_read_name_loc(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                  mp_bc_entry_t *entry) {
  mp_loc_t *loc = NULL;
  MP_RETURN_IF_ERROR(bytecode_builtin_new_loc(r, entry, MP_LOC_NAME, &loc));
  MP_RETURN_IF_ERROR(mp_bc_text(r, c, &loc->text));
  return bytecode_builtin_read_children(r, c, 1, loc);
}

static mp_status_t bytecode_builtin_read_unknown_loc(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                     mp_bc_entry_t *entry) {
  (void)c;
  mp_loc_t *loc = NULL;
  return bytecode_builtin_new_loc(r, entry, MP_LOC_UNKNOWN, &loc);
}

// ---- elements ----

// Reads `array<i64: 1, 2>`: element type, count, bytes. Arrays of integers become INTS.
static mp_status_t bytecode_builtin_read_dense_array(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                     mp_bc_entry_t *entry) {
  mp_bc_cursor_t before = *c;
  const mp_bc_type_t *element = NULL;
  uint64_t count = 0;
  const uint8_t *blob = NULL;
  size_t size = 0;
  mp_attr_t *dense = NULL;
  MP_RETURN_IF_ERROR(mp_bc_scalar(r, c, &element));
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &count));
  MP_RETURN_IF_ERROR(mp_bc_blob(c, &blob, &size));
  if (count > size || count * mp_dtype_size(element->dtype) != size) {
    return mp_bc_fail(&before, "an array of %llu %s has %zu bytes", (unsigned long long)count,
                      mp_dtype_name(element->dtype), size);
  }
  const int64_t dim = (int64_t)count;
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_DENSE, &dense));
  MP_RETURN_IF_ERROR(mp_type_tensor(r->arena, element->dtype, &dim, 1, &dense->u.dense.type));
  dense->u.dense.data = mp_arena_copy(r->arena, blob, size);
  MP_RETURN_IF_NULL(dense->u.dense.data);
  dense->u.dense.size = size;
  const mp_attr_t *plain = NULL;
  MP_RETURN_IF_ERROR(mp_bc_plain_attr(r, &before, dense, &plain));
  entry->object = plain;
  return NULL;
}

// Reads a tensor of strings, which becomes an array of them; its shape is dropped.
static mp_status_t bytecode_builtin_read_dense_strings(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                       mp_bc_entry_t *entry) {
  const mp_bc_type_t *type = NULL;
  uint64_t splat = 0;
  MP_RETURN_IF_ERROR(mp_bc_type(r, c, &type));
  MP_RETURN_IF_ERROR(mp_bc_bounded(c, 1, "a splat flag", &splat));
  size_t left = mp_bc_left(c), count = 0;
  const mp_attr_t **items = MP_ARENA_ARRAY(r->arena, const mp_attr_t *, left);
  MP_RETURN_IF_NULL(items);
  while (c->at != c->end) {
    mp_str_t text;
    MP_RETURN_IF_ERROR(mp_bc_string(r, c, &text));
    MP_RETURN_IF_ERROR(mp_attr_make_string(r->arena, text, &items[count++]));
  }
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_ARRAY, &attr));
  attr->u.array.items = items;
  attr->u.array.count = count;
  return NULL;
}

static mp_status_t bytecode_builtin_read_distinct(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                  mp_bc_entry_t *entry) {
  const mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_attr(r, c, &attr));
  entry->kind = MP_BC_ATTR;
  entry->object = attr;
  return NULL;
}

// The readers by code. Codes 5 (nested symbols), 16 (resources) and 20 (sparse elements) do not
// occur in programs.
static const mp_bc_attr_reader_t g_attr_readers[] = {
    [0] = mp_bc_array_attr,
    [1] = mp_bc_dict_attr,
    [2] = bytecode_builtin_read_string,
    [3] = bytecode_builtin_read_typed_string,
    [4] = bytecode_builtin_read_symbol,
    [6] = bytecode_builtin_read_type,
    [7] = bytecode_builtin_read_unit,
    [8] = mp_bc_int_attr,
    [9] = mp_bc_float_attr,
    [CODE_CALL_SITE] = bytecode_builtin_read_call_site,
    [11] = bytecode_builtin_read_file_line,
    [12] = bytecode_builtin_read_fused,
    [13] = bytecode_builtin_read_fused_metadata,
    [14] = bytecode_builtin_read_name_loc,
    [15] = bytecode_builtin_read_unknown_loc,
    [17] = bytecode_builtin_read_dense_array,
    [18] = mp_bc_dense_attr,
    [19] = bytecode_builtin_read_dense_strings,
    [21] = bytecode_builtin_read_distinct,
    [22] = bytecode_builtin_read_file_range,
};

mp_status_t mp_bc_builtin_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry) {
  mp_bc_cursor_t before = *c;
  uint64_t code = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &code));
  if (code >= sizeof(g_attr_readers) / sizeof(g_attr_readers[0]) || g_attr_readers[code] == NULL) {
    return mp_bc_unknown(&before, "builtin attribute %llu is not read", (unsigned long long)code);
  }
  return g_attr_readers[code](r, c, entry);
}

// ---- types ----

// Whether it is the integer type of this width. A boolean is a signless integer of one bit; index
// has a code of its own.
static bool bytecode_builtin_is_integer(mp_dtype_t dtype, uint64_t width, bool is_unsigned) {
  const mp_dtype_class_t class = mp_dtype_class(dtype);
  if (width != (uint64_t)mp_dtype_bits(dtype)) return false;
  if (is_unsigned) return class == MP_CLASS_UNSIGNED;
  return class == MP_CLASS_BOOL || (class == MP_CLASS_SIGNED && dtype != MP_DTYPE_INDEX);
}

// Reads `width << 2 | signedness`, where the signedness is 0 for signless (which StableHLO takes as
// signed), 1 for signed, 2 for unsigned.
static mp_status_t bytecode_builtin_read_integer_type(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                      mp_bc_type_t *out_type) {
  enum { SIGNLESS, SIGNED, UNSIGNED };
  mp_bc_cursor_t before = *c;
  uint64_t code = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &code));
  const uint64_t width = code >> 2, signedness = code & 3;
  for (int d = 0; d < MP_DTYPE_COUNT && signedness <= UNSIGNED; ++d) {
    if (bytecode_builtin_is_integer((mp_dtype_t)d, width, signedness == UNSIGNED)) {
      return mp_bc_scalar_type(r, (mp_dtype_t)d, NULL, out_type);
    }
  }
  return mp_bc_unknown(&before, "an integer type of %llu bits is not supported",
                       (unsigned long long)width);
}

static mp_status_t bytecode_builtin_read_encoded_tensor(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                        mp_bc_type_t *out_type) {
  mp_bc_cursor_t before = *c;
  const void *bounds = NULL;
  uint64_t index = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &index));
  MP_RETURN_IF_ERROR(mp_bc_object_at(r, &before, index, MP_BC_BOUNDS, &bounds));
  return mp_bc_tensor_type(r, c, MP_TYPE_TENSOR, bounds, out_type);
}

mp_status_t mp_bc_builtin_type(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_type_t *out_type) {
  static const mp_type_t none = {.kind = MP_TYPE_NONE};
  mp_bc_cursor_t before = *c;
  uint64_t code = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &code));
  const mp_dtype_t scalar = mp_dtype_from_number(MP_NUMBERS_BUILTIN, code);
  if (scalar != MP_DTYPE_INVALID) return mp_bc_scalar_type(r, scalar, NULL, out_type);
  switch (code) {  // memory references, vectors, f80 and f128 do not occur in programs
    case 0:
      return bytecode_builtin_read_integer_type(r, c, out_type);
    case 2:
      return mp_bc_compound_type(r, c, MP_TYPE_FUNCTION, out_type);
    case 9:
      return mp_bc_complex_type(r, c, out_type);
    case 12:
      *out_type = (mp_bc_type_t){.type = &none};
      return NULL;
    case 13:
      return mp_bc_tensor_type(r, c, MP_TYPE_TENSOR, NULL, out_type);
    case 14:
      return bytecode_builtin_read_encoded_tensor(r, c, out_type);
    case 15:
      return mp_bc_compound_type(r, c, MP_TYPE_TUPLE, out_type);
    case 18:
      return mp_bc_unranked_type(r, c, out_type);
    default:
      return mp_bc_unknown(&before, "builtin type %llu is not read", (unsigned long long)code);
  }
}

mp_status_t mp_bc_stablehlo_type(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_type_t *out_type) {
  mp_bc_cursor_t before = *c;
  uint64_t code = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &code));
  switch (code) {
    case 0:
      *out_type = (mp_bc_type_t){.type = mp_type_token()};
      return NULL;
    case 1:
      return mp_bc_compound_type(r, c, MP_TYPE_FUTURE, out_type);
    default:
      return mp_bc_unknown(&before, "stablehlo type %llu is not read", (unsigned long long)code);
  }
}
