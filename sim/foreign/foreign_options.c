#include "sim/foreign/foreign_options.h"

#include <stdlib.h>

#include "sim/foreign/foreign_values.h"

// Of pointers into one list. Values with the same name stay in the list's order.
static int foreign_options_compare(const void *a, const void *b) {
  const mp_named_value_t *left = *(const mp_named_value_t *const *)a;
  const mp_named_value_t *right = *(const mp_named_value_t *const *)b;
  const int order = mp_str_compare(left->name, right->name);
  return order != 0 ? order : (left > right) - (left < right);
}

static mp_status_t foreign_options_array(mp_arena_t *arena, const mp_named_value_t *value,
                                         mp_foreign_item_t *out_item) {
  const size_t count = value->int64_list_count;
  void *data = mp_arena_copy(arena, value->int64_list_data, count * sizeof(int64_t));
  MP_RETURN_IF_NULL(data);
  return mp_foreign_array(arena, MP_DTYPE_S64, count, data, out_item);
}

static mp_status_t foreign_options_item(mp_arena_t *arena, const mp_named_value_t *value,
                                        mp_foreign_item_t *out_item) {
  switch (value->type) {
    case MP_VALUE_STRING:
      return mp_foreign_string(arena, value->string_value, out_item);
    case MP_VALUE_INT64_LIST:
      return foreign_options_array(arena, value, out_item);
    case MP_VALUE_FLOAT:
      return mp_foreign_scalar(arena, MP_DTYPE_F32, &value->float_value, out_item);
    case MP_VALUE_BOOL: {
      const uint8_t byte = value->bool_value;
      return mp_foreign_scalar(arena, MP_DTYPE_BOOL, &byte, out_item);
    }
    case MP_VALUE_INT64:
      break;
  }
  return mp_foreign_scalar(arena, MP_DTYPE_S64, &value->int64_value, out_item);
}

mp_status_t mp_foreign_options_create(mp_arena_t *arena, const mp_named_value_t *values,
                                      size_t count, XLA_FFI_Attrs *out_attrs) {
  const mp_named_value_t **sorted = MP_ARENA_ARRAY(arena, const mp_named_value_t *, count);
  MP_RETURN_IF_NULL(sorted);
  MP_RETURN_IF_ERROR(mp_foreign_dict_create(arena, count, out_attrs));
  for (size_t i = 0; i < count; ++i) sorted[i] = &values[i];
  if (count > 1) qsort(sorted, count, sizeof(*sorted), foreign_options_compare);
  for (size_t i = 0; i < count; ++i) {
    const mp_named_value_t *value = sorted[i];
    if (i + 1 < count && mp_str_equal(value->name, sorted[i + 1]->name)) continue;
    mp_foreign_item_t item = {0};
    MP_RETURN_IF_ERROR(foreign_options_item(arena, value, &item));
    MP_RETURN_IF_ERROR(mp_foreign_dict_add(arena, out_attrs, value->name, &item));
  }
  return NULL;
}
