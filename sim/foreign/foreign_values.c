#include "sim/foreign/foreign_values.h"

// The interface has the numbers of MP_DTYPES. Types with another name there, or none:
enum {
  XLA_FFI_DataType_BOOL = XLA_FFI_DataType_PRED,
  XLA_FFI_DataType_F6E2M3FN = XLA_FFI_DataType_INVALID,
  XLA_FFI_DataType_F6E3M2FN = XLA_FFI_DataType_INVALID,
  XLA_FFI_DataType_TF32 = XLA_FFI_DataType_INVALID,
  XLA_FFI_DataType_INDEX = XLA_FFI_DataType_INVALID
};
#define CHECK_NUMBER(name, text, class, bits, storage, style, exponent, fraction, bias, pjrt, xla, \
                     foreign, ...)                                                                 \
  _Static_assert((int)XLA_FFI_DataType_##name == foreign, text " has another number there");
MP_DTYPES(CHECK_NUMBER)
#undef CHECK_NUMBER

XLA_FFI_DataType mp_foreign_dtype(mp_dtype_t dtype) {
  return (XLA_FFI_DataType)mp_dtype_number(dtype, MP_NUMBERS_FOREIGN);
}

mp_status_t mp_foreign_scalar(mp_arena_t *arena, mp_dtype_t dtype, const void *value,
                              mp_foreign_item_t *out_item) {
  XLA_FFI_Scalar *scalar = MP_ARENA_NEW(arena, XLA_FFI_Scalar);
  MP_RETURN_IF_NULL(scalar);
  scalar->dtype = mp_foreign_dtype(dtype);
  scalar->value = mp_arena_copy(arena, value, mp_dtype_size(dtype));
  MP_RETURN_IF_NULL(scalar->value);
  *out_item = (mp_foreign_item_t){XLA_FFI_AttrType_SCALAR, scalar};
  return NULL;
}

mp_status_t mp_foreign_array(mp_arena_t *arena, mp_dtype_t dtype, size_t count, void *data,
                             mp_foreign_item_t *out_item) {
  XLA_FFI_Array *array = MP_ARENA_NEW(arena, XLA_FFI_Array);
  MP_RETURN_IF_NULL(array);
  *array = (XLA_FFI_Array){mp_foreign_dtype(dtype), count, data};
  *out_item = (mp_foreign_item_t){XLA_FFI_AttrType_ARRAY, array};
  return NULL;
}

static mp_status_t foreign_values_span(mp_arena_t *arena, mp_str_t text,
                                       XLA_FFI_ByteSpan **out_span) {
  XLA_FFI_ByteSpan *span = MP_ARENA_NEW(arena, XLA_FFI_ByteSpan);
  MP_RETURN_IF_NULL(span);
  *span = (XLA_FFI_ByteSpan){mp_arena_strndup(arena, text.data, text.size), text.size};
  MP_RETURN_IF_NULL(span->ptr);
  *out_span = span;
  return NULL;
}

mp_status_t mp_foreign_string(mp_arena_t *arena, mp_str_t text, mp_foreign_item_t *out_item) {
  XLA_FFI_ByteSpan *span = NULL;
  MP_RETURN_IF_ERROR(foreign_values_span(arena, text, &span));
  *out_item = (mp_foreign_item_t){XLA_FFI_AttrType_STRING, span};
  return NULL;
}

mp_status_t mp_foreign_dict_create(mp_arena_t *arena, size_t capacity, XLA_FFI_Attrs *out_dict) {
  *out_dict = (XLA_FFI_Attrs){.struct_size = XLA_FFI_SIZE(XLA_FFI_Attrs, attrs),
                              .types = MP_ARENA_ARRAY(arena, XLA_FFI_AttrType, capacity),
                              .names = MP_ARENA_ARRAY(arena, XLA_FFI_ByteSpan *, capacity),
                              .attrs = MP_ARENA_ARRAY(arena, void *, capacity)};
  const bool has_memory =
      out_dict->types != NULL && out_dict->names != NULL && out_dict->attrs != NULL;
  return has_memory ? NULL : mp_status_out_of_memory();
}

mp_status_t mp_foreign_dict_add(mp_arena_t *arena, XLA_FFI_Attrs *dict, mp_str_t name,
                                const mp_foreign_item_t *item) {
  MP_RETURN_IF_ERROR(foreign_values_span(arena, name, &dict->names[dict->size]));
  dict->types[dict->size] = item->type;
  dict->attrs[dict->size] = item->value;
  ++dict->size;
  return NULL;
}
