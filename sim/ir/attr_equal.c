#include <string.h>

#include "sim/ir/attr_equal.h"

static bool attr_equal_same_bytes(const void *a, const void *b, size_t size) {
  return a == b || size == 0 || memcmp(a, b, size) == 0;
}

static bool attr_equal_dense_equal(const mp_attr_t *a, const mp_attr_t *b) {
  return a->u.dense.splat == b->u.dense.splat && a->u.dense.size == b->u.dense.size &&
         mp_type_equal(a->u.dense.type, b->u.dense.type) &&
         attr_equal_same_bytes(a->u.dense.data, b->u.dense.data, a->u.dense.size);
}

static bool attr_equal_ints_equal(const mp_attr_t *a, const mp_attr_t *b) {
  if (a->u.ints.count != b->u.ints.count || a->u.ints.rank != b->u.ints.rank) return false;
  if (a->u.ints.rank == 2 &&
      !attr_equal_same_bytes(a->u.ints.dims, b->u.ints.dims, sizeof(a->u.ints.dims))) {
    return false;
  }
  return attr_equal_same_bytes(a->u.ints.values, b->u.ints.values,
                               a->u.ints.count * sizeof(int64_t));
}

static bool attr_equal_dict_equal(const mp_attr_t *a, const mp_attr_t *b) {
  if (a->u.dict.count != b->u.dict.count) return false;
  for (size_t i = 0; i < a->u.dict.count; ++i) {
    const mp_named_attr_t *x = &a->u.dict.items[i], *y = &b->u.dict.items[i];
    if (!mp_str_equal(x->text, y->text) || !mp_attr_equal(x->value, y->value)) return false;
  }
  return true;
}

static bool attr_equal_accuracy_equal(const mp_attr_t *a, const mp_attr_t *b) {
  return a->u.accuracy.atol == b->u.accuracy.atol && a->u.accuracy.rtol == b->u.accuracy.rtol &&
         a->u.accuracy.ulps == b->u.accuracy.ulps && a->u.accuracy.mode == b->u.accuracy.mode;
}

// Compares bits, so that a NaN equals itself and 0 differs from -0.
static bool attr_equal_float_equal(const mp_attr_t *a, const mp_attr_t *b) {
  return a->dtype == b->dtype && attr_equal_same_bytes(&a->u.f64, &b->u.f64, sizeof(a->u.f64));
}

bool mp_attr_equal(const mp_attr_t *a, const mp_attr_t *b) {
  if (a == b) return true;
  if (a == NULL || b == NULL || a->kind != b->kind) return false;
  switch (a->kind) {
    case MP_KIND_UNIT:
      return true;
    case MP_KIND_BOOL:
      return a->u.boolean == b->u.boolean;
    case MP_KIND_INT:
      return a->dtype == b->dtype && a->u.i64 == b->u.i64;
    case MP_KIND_FLOAT:
      return attr_equal_float_equal(a, b);
    case MP_KIND_STRING:
      return mp_str_equal(a->u.str, b->u.str);
    case MP_KIND_ENUM:
      return a->u.enumeration.kind == b->u.enumeration.kind &&
             a->u.enumeration.value == b->u.enumeration.value;
    case MP_KIND_INTS:
    case MP_KIND_BOOLS:
      return attr_equal_ints_equal(a, b);
    case MP_KIND_DENSE:
      return attr_equal_dense_equal(a, b);
    case MP_KIND_TYPE:
      return mp_type_equal(a->u.type, b->u.type);
    case MP_KIND_ARRAY:
      if (a->u.array.count != b->u.array.count) return false;
      for (size_t i = 0; i < a->u.array.count; ++i) {
        if (!mp_attr_equal(a->u.array.items[i], b->u.array.items[i])) return false;
      }
      return true;
    case MP_KIND_DICT:
      return attr_equal_dict_equal(a, b);
    case MP_KIND_RESULT_ACCURACY:
      return attr_equal_accuracy_equal(a, b);
    default:
      return mp_attr_struct_equal(a, b);
  }
}
