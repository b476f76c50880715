#include "sim/foreign/foreign_options.h"

#include <stdlib.h>
#include <string.h>

// The value with its place among those given, because sorting must keep the order of equal names.
typedef struct {
  const mp_named_value_t *value;
  size_t place;
} option_t;

static int foreign_options_compare(const void *a, const void *b) {
  const option_t *left = a, *right = b;
  const int order = mp_str_compare(left->value->name, right->value->name);
  return order != 0 ? order : (left->place > right->place) - (left->place < right->place);
}

static mp_status_t foreign_options_span(mp_arena_t *arena, mp_str_t text,
                                        XLA_FFI_ByteSpan **out_span) {
  XLA_FFI_ByteSpan *span = MP_ARENA_NEW(arena, XLA_FFI_ByteSpan);
  MP_RETURN_IF_NULL(span);
  *span = (XLA_FFI_ByteSpan){mp_arena_strndup(arena, text.data, text.size), text.size};
  MP_RETURN_IF_NULL(span->ptr);
  *out_span = span;
  return NULL;
}

static mp_status_t foreign_options_scalar(mp_arena_t *arena, XLA_FFI_DataType dtype,
                                          const void *value, size_t size, void **out_scalar) {
  XLA_FFI_Scalar *scalar = MP_ARENA_NEW(arena, XLA_FFI_Scalar);
  MP_RETURN_IF_NULL(scalar);
  *scalar = (XLA_FFI_Scalar){dtype, mp_arena_copy(arena, value, size)};
  MP_RETURN_IF_NULL(scalar->value);
  *out_scalar = scalar;
  return NULL;
}

static mp_status_t foreign_options_array(mp_arena_t *arena, const mp_named_value_t *value,
                                         void **out_array) {
  XLA_FFI_Array *array = MP_ARENA_NEW(arena, XLA_FFI_Array);
  MP_RETURN_IF_NULL(array);
  const size_t count = value->int64_list_count;
  *array = (XLA_FFI_Array){
      XLA_FFI_DataType_S64, count,
      mp_arena_copy(arena, value->int64_list_data, count * sizeof(value->int64_list_data[0]))};
  MP_RETURN_IF_NULL(array->data);
  *out_array = array;
  return NULL;
}

static mp_status_t foreign_options_value(mp_arena_t *arena, const mp_named_value_t *value,
                                         XLA_FFI_AttrType *out_type, void **out_value) {
  *out_type = XLA_FFI_AttrType_SCALAR;
  switch (value->type) {
    case MP_VALUE_STRING: {
      XLA_FFI_ByteSpan *span = NULL;
      MP_RETURN_IF_ERROR(foreign_options_span(arena, value->string_value, &span));
      *out_type = XLA_FFI_AttrType_STRING;
      *out_value = span;
      return NULL;
    }
    case MP_VALUE_INT64_LIST:
      *out_type = XLA_FFI_AttrType_ARRAY;
      return foreign_options_array(arena, value, out_value);
    case MP_VALUE_FLOAT:
      return foreign_options_scalar(arena, XLA_FFI_DataType_F32, &value->float_value, sizeof(float),
                                    out_value);
    case MP_VALUE_BOOL: {
      const uint8_t byte = value->bool_value;
      return foreign_options_scalar(arena, XLA_FFI_DataType_PRED, &byte, sizeof(byte), out_value);
    }
    case MP_VALUE_INT64:
      break;
  }
  return foreign_options_scalar(arena, XLA_FFI_DataType_S64, &value->int64_value, sizeof(int64_t),
                                out_value);
}

mp_status_t mp_foreign_options_create(mp_arena_t *arena, const mp_named_value_t *values,
                                      size_t count, XLA_FFI_Attrs *out_attrs) {
  option_t *sorted = MP_ARENA_ARRAY(arena, option_t, count);
  XLA_FFI_AttrType *types = MP_ARENA_ARRAY(arena, XLA_FFI_AttrType, count);
  XLA_FFI_ByteSpan **names = MP_ARENA_ARRAY(arena, XLA_FFI_ByteSpan *, count);
  void **made = MP_ARENA_ARRAY(arena, void *, count);
  if (sorted == NULL || types == NULL || names == NULL || made == NULL) {
    return mp_status_out_of_memory();
  }
  for (size_t i = 0; i < count; ++i) sorted[i] = (option_t){&values[i], i};
  if (count > 1) qsort(sorted, count, sizeof(*sorted), foreign_options_compare);
  size_t size = 0;
  for (size_t i = 0; i < count; ++i) {
    const mp_named_value_t *value = sorted[i].value;
    if (i + 1 < count && mp_str_equal(value->name, sorted[i + 1].value->name)) continue;
    MP_RETURN_IF_ERROR(foreign_options_span(arena, value->name, &names[size]));
    MP_RETURN_IF_ERROR(foreign_options_value(arena, value, &types[size], &made[size]));
    ++size;
  }
  *out_attrs = (XLA_FFI_Attrs){.struct_size = XLA_FFI_SIZE(XLA_FFI_Attrs, attrs),
                               .size = (int64_t)size,
                               .types = types,
                               .names = names,
                               .attrs = made};
  return NULL;
}
