#include "sim/foreign/foreign_attrs.h"

#include <stdlib.h>

#include "sim/foreign/foreign_values.h"

enum { MAX_DEPTH = 32 };  // dictionaries in dictionaries

// ---- Where the attributes are ----

static const mp_attr_t *foreign_attrs_dictionary(const mp_op_t *op) {
  const mp_attr_t *config = mp_op_attr(op, MP_ATTR_BACKEND_CONFIG);
  if (config != NULL && config->kind == MP_KIND_DICT) return config;
  const mp_attr_t *other = mp_op_attr(op, MP_ATTR_MHLO_BACKEND_CONFIG);
  return other != NULL && other->kind == MP_KIND_DICT ? other : NULL;
}

bool mp_foreign_is_typed(const mp_op_t *op) {
  return mp_op_enum(op, MP_ATTR_API_VERSION, MP_API_ORIGINAL) == MP_API_TYPED_FFI ||
         foreign_attrs_dictionary(op) != NULL;
}

mp_str_t mp_foreign_opaque(const mp_op_t *op) {
  return mp_op_str(op, MP_ATTR_BACKEND_CONFIG);
}

// ---- Values ----

// The state of making the attributes of `op` in `arena`.
typedef struct {
  mp_arena_t *arena;
  const mp_op_t *op;
} maker_t;

static mp_status_t foreign_attrs_dict(const maker_t *maker, const mp_attr_t *dict, int depth,
                                      XLA_FFI_Attrs *out_attrs);

static mp_status_t foreign_attrs_refuse(const maker_t *maker, const mp_named_attr_t *attr,
                                        const char *what) {
  return mp_op_error(
      maker->op, MP_INVALID_ARGUMENT,
      "custom_call target '%.*s': attribute '%.*s' is %s, which foreign functions "
      "cannot be given; it can be a boolean, an integer of 8 to 64 bits, f32, f64, an "
      "array of such numbers, a string or a dictionary",
      MP_STR_ARG(mp_op_str(maker->op, MP_ATTR_CALL_TARGET_NAME)), MP_STR_ARG(attr->text), what);
}

// Types for which the interface has scalars and arrays.
static bool foreign_attrs_is_number(mp_dtype_t dtype) {
  if (mp_dtype_is_integer(dtype)) return dtype != MP_DTYPE_INDEX && mp_dtype_bits(dtype) >= 8;
  return dtype == MP_DTYPE_F32 || dtype == MP_DTYPE_F64;
}

static mp_status_t foreign_attrs_number(const maker_t *maker, const mp_named_attr_t *attr,
                                        mp_foreign_item_t *out_item) {
  const mp_attr_t *value = attr->value;
  if (!foreign_attrs_is_number(value->dtype)) {
    return foreign_attrs_refuse(maker, attr, mp_dtype_name(value->dtype));
  }
  if (value->kind == MP_KIND_FLOAT) {
    uint64_t bits = 0;
    mp_float_encode(value->dtype, value->u.f64, &bits);
    return mp_foreign_scalar(maker->arena, value->dtype, &bits, out_item);
  }
  // Little endian: the low bytes, the only ones of a narrower integer, come first.
  return mp_foreign_scalar(maker->arena, value->dtype, &value->u.i64, out_item);
}

static mp_status_t foreign_attrs_dense(const maker_t *maker, const mp_named_attr_t *attr,
                                       mp_foreign_item_t *out_item) {
  const mp_attr_t *value = attr->value;
  const mp_dtype_t dtype = value->u.dense.type->dtype;
  int64_t count = 0;
  if (!foreign_attrs_is_number(dtype)) {
    return foreign_attrs_refuse(maker, attr, "an array of another type");
  }
  if (!mp_type_num_elements(value->u.dense.type, &count)) {
    return foreign_attrs_refuse(maker, attr, "too large");
  }
  const size_t size = mp_dtype_size(dtype);
  char *data = mp_arena_alloc_array(maker->arena, (size_t)count, size);
  MP_RETURN_IF_NULL(data);
  const size_t given = value->u.dense.splat ? size : value->u.dense.size;
  for (size_t at = 0; given != 0 && at < (size_t)count * size; at += given) {
    memcpy(data + at, value->u.dense.data, given);
  }
  return mp_foreign_array(maker->arena, dtype, (size_t)count, data, out_item);
}

static mp_status_t foreign_attrs_ints(const maker_t *maker, const mp_named_attr_t *attr,
                                      mp_foreign_item_t *out_item) {
  const size_t count = attr->value->u.ints.count;
  void *data = mp_arena_copy(maker->arena, attr->value->u.ints.values, count * sizeof(int64_t));
  MP_RETURN_IF_NULL(data);
  return mp_foreign_array(maker->arena, MP_DTYPE_S64, count, data, out_item);
}

static mp_status_t foreign_attrs_item(const maker_t *maker, const mp_named_attr_t *attr, int depth,
                                      mp_foreign_item_t *out_item) {
  const mp_attr_t *value = attr->value;
  switch (value->kind) {
    case MP_KIND_BOOL: {
      const uint8_t byte = value->u.boolean;
      return mp_foreign_scalar(maker->arena, MP_DTYPE_BOOL, &byte, out_item);
    }
    case MP_KIND_INT:
    case MP_KIND_FLOAT:
      return foreign_attrs_number(maker, attr, out_item);
    case MP_KIND_DENSE:
      return foreign_attrs_dense(maker, attr, out_item);
    case MP_KIND_INTS:
      return foreign_attrs_ints(maker, attr, out_item);
    case MP_KIND_STRING:
      return mp_foreign_string(maker->arena, value->u.str, out_item);
    case MP_KIND_DICT: {
      if (depth == MAX_DEPTH) return foreign_attrs_refuse(maker, attr, "nested too deep");
      XLA_FFI_Attrs *attrs = MP_ARENA_NEW(maker->arena, XLA_FFI_Attrs);
      MP_RETURN_IF_NULL(attrs);
      *out_item = (mp_foreign_item_t){XLA_FFI_AttrType_DICTIONARY, attrs};
      return foreign_attrs_dict(maker, value, depth + 1, attrs);
    }
    default:
      return foreign_attrs_refuse(maker, attr, "of another kind");
  }
}

// ---- Dictionaries ----

static int foreign_attrs_compare(const void *a, const void *b) {
  return mp_str_compare((*(const mp_named_attr_t *const *)a)->text,
                        (*(const mp_named_attr_t *const *)b)->text);
}

static mp_status_t foreign_attrs_dict(const maker_t *maker, const mp_attr_t *dict, int depth,
                                      XLA_FFI_Attrs *out_attrs) {
  const size_t count = dict->u.dict.count;
  const mp_named_attr_t **sorted = MP_ARENA_ARRAY(maker->arena, const mp_named_attr_t *, count);
  MP_RETURN_IF_NULL(sorted);
  MP_RETURN_IF_ERROR(mp_foreign_dict_create(maker->arena, count, out_attrs));
  for (size_t i = 0; i < count; ++i) sorted[i] = &dict->u.dict.items[i];
  if (count > 1) qsort(sorted, count, sizeof(*sorted), foreign_attrs_compare);
  for (size_t i = 0; i < count; ++i) {
    mp_foreign_item_t item = {0};
    MP_RETURN_IF_ERROR(foreign_attrs_item(maker, sorted[i], depth, &item));
    MP_RETURN_IF_ERROR(mp_foreign_dict_add(maker->arena, out_attrs, sorted[i]->text, &item));
  }
  return NULL;
}

mp_status_t mp_foreign_attrs_create(mp_arena_t *arena, const mp_op_t *op,
                                    XLA_FFI_Attrs *out_attrs) {
  const maker_t maker = {arena, op};
  static const mp_attr_t none = {.kind = MP_KIND_DICT};
  const mp_attr_t *dict = foreign_attrs_dictionary(op);
  return foreign_attrs_dict(&maker, dict == NULL ? &none : dict, 0, out_attrs);
}
