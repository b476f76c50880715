// Forms of attributes and types that the builtin and the VHLO dialect share.
#include "sim/readers/bytecode/bytecode_reader.h"

enum { MAX_SPLAT_INTS = 1 << 16 };

mp_status_t mp_bc_new_attr(mp_bc_reader_t *r, mp_bc_entry_t *entry, mp_attr_kind_t kind,
                           mp_attr_t **out_attr) {
  mp_attr_t *attr = MP_ARENA_NEW(r->arena, mp_attr_t);
  MP_RETURN_IF_NULL(attr);
  attr->kind = kind;
  entry->kind = MP_BC_ATTR;
  entry->object = attr;
  *out_attr = attr;
  return NULL;
}

// Attributes hold integers of every type as i64: signed ones sign-extended, unsigned ones
// zero-extended.
static int64_t bytecode_values_sign_extend(mp_dtype_t dtype, uint64_t bits) {
  int width = mp_dtype_bits(dtype);
  if (mp_dtype_class(dtype) != MP_CLASS_SIGNED || width >= 64) return (int64_t)bits;
  return (int64_t)(bits << (64 - width)) >> (64 - width);
}

// An integer of type i1 becomes a boolean, as it is everywhere in the IR.
mp_status_t mp_bc_int_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry) {
  mp_bc_cursor_t before = *c;
  const mp_bc_type_t *type = NULL;
  uint64_t bits = 0;
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_scalar(r, c, &type));
  bool is_bool = type->dtype == MP_DTYPE_BOOL;
  if (!is_bool && !mp_dtype_is_integer(type->dtype)) {
    return mp_bc_fail(&before, "an integer attribute has type %s", mp_dtype_name(type->dtype));
  }
  MP_RETURN_IF_ERROR(mp_bc_bits(c, mp_dtype_bits(type->dtype), &bits));
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, is_bool ? MP_KIND_BOOL : MP_KIND_INT, &attr));
  if (is_bool) {
    attr->u.boolean = bits != 0;
  } else {
    attr->dtype = type->dtype;
    attr->u.i64 = bytecode_values_sign_extend(type->dtype, bits);
  }
  return NULL;
}

// The value is held as f64, which can represent all values of every narrower type.
mp_status_t mp_bc_float_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry) {
  mp_bc_cursor_t before = *c;
  const mp_bc_type_t *type = NULL;
  uint64_t bits = 0;
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_scalar(r, c, &type));
  if (!mp_dtype_is_float(type->dtype)) {
    return mp_bc_fail(&before, "a float attribute has type %s", mp_dtype_name(type->dtype));
  }
  MP_RETURN_IF_ERROR(mp_bc_bits(c, mp_dtype_bits(type->dtype), &bits));
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_FLOAT, &attr));
  attr->dtype = type->dtype;
  attr->u.f64 = mp_float_decode(type->dtype, &bits);  // little endian: the low bytes come first
  return NULL;
}

mp_status_t mp_bc_string_attr(mp_bc_reader_t *r, mp_bc_entry_t *entry, mp_str_t text) {
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_STRING, &attr));
  attr->u.str = text;
  return NULL;
}

mp_status_t mp_bc_array_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry) {
  mp_attr_t *attr = NULL;
  const mp_attr_t *const *items;
  size_t count = 0;
  MP_RETURN_IF_ERROR(mp_bc_attrs(r, c, &items, &count));
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_ARRAY, &attr));
  attr->u.array.items = items;
  attr->u.array.count = count;
  return NULL;
}

// Names that the IR knows get their number here, so that later stages need not compare texts.
mp_status_t mp_bc_dict_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry) {
  mp_attr_t *attr = NULL;
  size_t count = 0;
  MP_RETURN_IF_ERROR(mp_bc_count(c, "dictionary entries", &count));
  mp_named_attr_t *items = MP_ARENA_ARRAY(r->arena, mp_named_attr_t, count);
  MP_RETURN_IF_NULL(items);
  for (size_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(mp_bc_text(r, c, &items[i].text));
    items[i].name = mp_attr_name_from_text(items[i].text);
    MP_RETURN_IF_ERROR(mp_bc_attr(r, c, &items[i].value));
  }
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_DICT, &attr));
  attr->u.dict.items = items;
  attr->u.dict.count = count;
  return NULL;
}

// Booleans are stored as a byte each, or eight to a byte with the least significant bit first, or
// as one byte for all (a splat); the size tells which.
static mp_status_t bytecode_values_bool_elements(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                                 const uint8_t *blob, size_t size, size_t count,
                                                 mp_attr_t *attr) {
  size_t packed = count / 8 + (count % 8 != 0);
  if (count == 0 && size == 1) size = 0;  // a splat of nothing
  bool splat = size == 1 && count != 1 && (blob[0] == 0xFF || packed != 1);
  bool bits = !splat && size == packed && size != count;
  if (!splat && !bits && size != count) {
    return mp_bc_fail(c, "%zu booleans are stored in %zu bytes", count, size);
  }
  size_t stored = splat ? 1 : count;
  uint8_t *elements = mp_arena_alloc(r->arena, stored);
  MP_RETURN_IF_NULL(elements);
  for (size_t i = 0; i < stored; ++i) {
    elements[i] = bits ? blob[i / 8] >> (i % 8) & 1 : blob[i] != 0;
  }
  attr->u.dense.data = elements;
  attr->u.dense.size = stored;
  attr->u.dense.splat = splat;
  return NULL;
}

// The elements are copied because blobs are not aligned and because the program's bytes go away.
static mp_status_t bytecode_values_plain_elements(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                                  const uint8_t *blob, size_t size, size_t count,
                                                  mp_attr_t *attr) {
  mp_dtype_t dtype = attr->u.dense.type->dtype;
  size_t element = mp_dtype_size(dtype);
  // A tensor without elements may be written with one element all the same; it is dropped.
  if (count == 0 && size == element) size = 0;
  bool splat = size == element && count != 1 && count != 0;
  if (!splat && (size % element != 0 || size / element != count)) {
    return mp_bc_fail(c, "%zu elements of type %s are stored in %zu bytes", count,
                      mp_dtype_name(dtype), size);
  }
  uint8_t *elements = mp_arena_copy(r->arena, blob, size);
  MP_RETURN_IF_NULL(elements);
  int bits = mp_dtype_bits(dtype);
  if (bits < 8) {
    for (size_t i = 0; i < size; ++i) elements[i] &= (uint8_t)((1u << bits) - 1);
  }
  attr->u.dense.data = elements;
  attr->u.dense.size = size;
  attr->u.dense.splat = splat;
  return NULL;
}

// The shape comes from the type, and the blob's size must fit it.
mp_status_t mp_bc_dense_attr(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_entry_t *entry) {
  mp_bc_cursor_t before = *c;
  const mp_type_t *type = NULL;
  const uint8_t *blob = NULL;
  size_t size = 0;
  int64_t count = 0;
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_value_type(r, c, &type));
  MP_RETURN_IF_ERROR(mp_bc_blob(c, &blob, &size));
  if (!mp_type_is_static(type) || type->kind != MP_TYPE_TENSOR) {
    return mp_bc_unknown(&before, "constants are read for tensors of known shape only");
  }
  if (!mp_type_num_elements(type, &count) || type->dtype == MP_DTYPE_TF32) {
    return mp_bc_fail(&before, "a constant has a type that no constant can have");
  }
  MP_RETURN_IF_ERROR(mp_bc_new_attr(r, entry, MP_KIND_DENSE, &attr));
  attr->u.dense.type = type;
  if (type->dtype == MP_DTYPE_BOOL) {
    return bytecode_values_bool_elements(r, &before, blob, size, (size_t)count, attr);
  }
  return bytecode_values_plain_elements(r, &before, blob, size, (size_t)count, attr);
}

// Element `index` of a dense attribute of integers.
static int64_t bytecode_values_dense_element(const mp_attr_t *dense, size_t index) {
  mp_dtype_t dtype = dense->u.dense.type->dtype;
  size_t size = mp_dtype_size(dtype);
  uint64_t bits = 0;
  memcpy(&bits, (const char *)dense->u.dense.data + (dense->u.dense.splat ? 0 : index * size),
         size);
  return bytecode_values_sign_extend(dtype, bits);
}

// VHLO spells lists of dimensions and tables of numbers as constants. Splats are expanded, up to a
// limit, because a few bytes can encode a splat of any size.
static mp_status_t bytecode_values_ints_from_dense(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                                   const mp_attr_t *dense,
                                                   const mp_attr_t **out_attr) {
  const mp_type_t *type = dense->u.dense.type;
  int64_t count = 0;
  if (!mp_type_num_elements(type, &count)) return mp_bc_fail(c, "a list is too long");
  if (dense->u.dense.splat && count > MAX_SPLAT_INTS) {
    return mp_bc_fail(c, "a list repeats one number %lld times", (long long)count);
  }
  mp_attr_t *attr = MP_ARENA_NEW(r->arena, mp_attr_t);
  MP_RETURN_IF_NULL(attr);
  int64_t *values = MP_ARENA_ARRAY(r->arena, int64_t, (size_t)count);
  MP_RETURN_IF_NULL(values);
  for (size_t i = 0; i < (size_t)count; ++i) values[i] = bytecode_values_dense_element(dense, i);
  attr->kind = type->dtype == MP_DTYPE_BOOL ? MP_KIND_BOOLS : MP_KIND_INTS;
  attr->u.ints.values = values;
  attr->u.ints.count = (size_t)count;
  attr->u.ints.rank = type->rank;
  for (uint32_t i = 0; i < type->rank; ++i) attr->u.ints.dims[i] = type->dims[i];
  *out_attr = attr;
  return NULL;
}

// Layouts are arrays of lists. An array in which no item changes stays the same object.
static mp_status_t bytecode_values_plain_array(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                               const mp_attr_t *array, const mp_attr_t **out_attr) {
  size_t count = array->u.array.count;
  const mp_attr_t **items = MP_ARENA_ARRAY(r->arena, const mp_attr_t *, count);
  MP_RETURN_IF_NULL(items);
  bool changed = false;
  for (size_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(mp_bc_plain_attr(r, c, array->u.array.items[i], &items[i]));
    changed = changed || items[i] != array->u.array.items[i];
  }
  *out_attr = array;
  if (!changed) return NULL;
  mp_attr_t *attr = MP_ARENA_NEW(r->arena, mp_attr_t);
  MP_RETURN_IF_NULL(attr);
  *attr = *array;
  attr->u.array.items = items;
  *out_attr = attr;
  return NULL;
}

mp_status_t mp_bc_plain_attr(mp_bc_reader_t *r, const mp_bc_cursor_t *c, const mp_attr_t *attr,
                             const mp_attr_t **out_attr) {
  if (attr->kind == MP_KIND_ARRAY) return bytecode_values_plain_array(r, c, attr, out_attr);
  *out_attr = attr;
  if (attr->kind != MP_KIND_DENSE) return NULL;
  const mp_type_t *type = attr->u.dense.type;
  bool integers = mp_dtype_is_integer(type->dtype) || type->dtype == MP_DTYPE_BOOL;
  if (!integers || (type->rank != 1 && type->rank != 2)) return NULL;
  return bytecode_values_ints_from_dense(r, c, attr, out_attr);
}

mp_status_t mp_bc_plain_attr_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c, uint64_t index,
                                const mp_attr_t **out_attr) {
  const mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_bc_attr_at(r, c, index, &attr));
  mp_bc_entry_t *entry = &r->attrs[index];
  if (entry->plain == NULL) MP_RETURN_IF_ERROR(mp_bc_plain_attr(r, c, attr, &entry->plain));
  *out_attr = entry->plain;
  return NULL;
}

mp_status_t mp_bc_scalar_type(mp_bc_reader_t *r, mp_dtype_t dtype, const mp_quant_t *quant,
                              mp_bc_type_t *out_type) {
  mp_type_t *type = MP_ARENA_NEW(r->arena, mp_type_t);
  MP_RETURN_IF_NULL(type);
  type->kind = MP_TYPE_TENSOR;
  type->dtype = dtype;
  type->quant = quant;
  *out_type = (mp_bc_type_t){.type = type, .dtype = dtype, .quant = quant};
  return NULL;
}

// A size is not negative, or it is MP_DYNAMIC for "unknown"; no writer makes other files.
mp_status_t mp_bc_tensor_type(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_type_kind_t kind,
                              const mp_index_list_t *bounds, mp_bc_type_t *out_type) {
  mp_bc_cursor_t before = *c;
  mp_index_list_t dims;
  const mp_bc_type_t *element = NULL;
  MP_RETURN_IF_ERROR(mp_bc_index_list(r, c, &dims));
  MP_RETURN_IF_ERROR(mp_bc_scalar(r, c, &element));
  for (uint32_t i = 0; i < dims.count; ++i) {
    if (dims.values[i] < 0 && dims.values[i] != MP_DYNAMIC) {
      return mp_bc_fail(&before, "a dimension of a tensor is %lld", (long long)dims.values[i]);
    }
  }
  if (bounds != NULL && bounds->count != dims.count) {
    return mp_bc_fail(&before, "a tensor of rank %u has %u bounds", dims.count, bounds->count);
  }
  mp_type_t *type = MP_ARENA_NEW(r->arena, mp_type_t);
  MP_RETURN_IF_NULL(type);
  type->kind = kind;
  type->dtype = element->dtype;
  type->quant = element->quant;
  type->rank = dims.count;
  type->dims = dims.values;
  type->bounds = bounds == NULL ? NULL : bounds->values;
  *out_type = (mp_bc_type_t){.type = type};
  return NULL;
}

mp_status_t mp_bc_unranked_type(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_type_t *out_type) {
  const mp_bc_type_t *element = NULL;
  MP_RETURN_IF_ERROR(mp_bc_scalar(r, c, &element));
  mp_type_t *type = MP_ARENA_NEW(r->arena, mp_type_t);
  MP_RETURN_IF_NULL(type);
  type->kind = MP_TYPE_UNRANKED;
  type->dtype = element->dtype;
  type->quant = element->quant;
  *out_type = (mp_bc_type_t){.type = type};
  return NULL;
}

mp_status_t mp_bc_complex_type(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_type_t *out_type) {
  mp_bc_cursor_t before = *c;
  const mp_bc_type_t *part = NULL;
  MP_RETURN_IF_ERROR(mp_bc_scalar(r, c, &part));
  if (part->dtype == MP_DTYPE_F32) return mp_bc_scalar_type(r, MP_DTYPE_C64, NULL, out_type);
  if (part->dtype == MP_DTYPE_F64) return mp_bc_scalar_type(r, MP_DTYPE_C128, NULL, out_type);
  return mp_bc_unknown(&before, "complex numbers of %s are not supported",
                       mp_dtype_name(part->dtype));
}

// The inputs and the results of a function type are in one array, inputs first.
mp_status_t mp_bc_compound_type(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_type_kind_t kind,
                                mp_bc_type_t *out_type) {
  const mp_type_t *const *elements, *const *results = NULL;
  size_t count, num_results = 0;
  MP_RETURN_IF_ERROR(mp_bc_value_types(r, c, &elements, &count));
  if (kind == MP_TYPE_FUNCTION) MP_RETURN_IF_ERROR(mp_bc_value_types(r, c, &results, &num_results));
  mp_type_t *type = MP_ARENA_NEW(r->arena, mp_type_t);
  MP_RETURN_IF_NULL(type);
  const mp_type_t **all = MP_ARENA_ARRAY(r->arena, const mp_type_t *, count + num_results);
  MP_RETURN_IF_NULL(all);
  for (size_t i = 0; i < count; ++i) all[i] = elements[i];
  for (size_t i = 0; i < num_results; ++i) all[count + i] = results[i];
  type->kind = kind;
  type->elements = all;
  type->num_elements = (uint32_t)(count + num_results);
  type->num_inputs = kind == MP_TYPE_FUNCTION ? (uint32_t)count : 0;
  *out_type = (mp_bc_type_t){.type = type};
  return NULL;
}
