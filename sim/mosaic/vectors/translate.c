#include "sim/mosaic/vectors/translate.h"

mp_status_t mp_translate_refuse(const mp_translate_t *t) {
  return mp_mosaic_op_error(t->op, MP_UNIMPLEMENTED, "this op is not supported");
}

mp_str_t mp_translate_word(const mp_mosaic_op_t *op, const char *name) {
  const mp_mosaic_attr_t *attr = mp_mosaic_op_attr(op, name);
  if (attr == NULL) return MP_STR("");
  if (attr->kind == MP_MOSAIC_STRING) return attr->str;
  const bool has_word = attr->kind == MP_MOSAIC_DIALECT && attr->list.count > 0 &&
                        attr->list.items[0].value->kind == MP_MOSAIC_STRING;
  return has_word ? attr->list.items[0].value->str : MP_STR("");
}

mp_index_list_t mp_translate_ints(const mp_mosaic_op_t *op, const char *name,
                                  int64_t buffer[MP_MAX_RANK]) {
  const mp_mosaic_attr_t *attr = mp_mosaic_op_attr(op, name);
  if (attr == NULL) return (mp_index_list_t){0, buffer};
  if (attr->kind == MP_MOSAIC_INTS) {
    return (mp_index_list_t){attr->ints.count, attr->ints.values};
  }
  const bool is_list = attr->kind == MP_MOSAIC_ARRAY && attr->list.count <= MP_MAX_RANK;
  const uint32_t count = is_list ? attr->list.count : 0;
  for (uint32_t i = 0; i < count; ++i) buffer[i] = attr->list.items[i].value->i64;
  return (mp_index_list_t){count, buffer};
}

mp_dtype_t mp_translate_unsigned(mp_dtype_t dtype) {
  switch (mp_dtype_bits(dtype)) {
    case 2:
      return MP_DTYPE_U2;
    case 4:
      return MP_DTYPE_U4;
    case 8:
      return MP_DTYPE_U8;
    case 16:
      return MP_DTYPE_U16;
    case 32:
      return MP_DTYPE_U32;
    case 64:
      return MP_DTYPE_U64;
    default:
      return dtype;
  }
}

mp_value_t *mp_translate_is_nan(mp_shlo_t *hlo, mp_value_t *x) {
  return mp_shlo_compare(hlo, MP_CMP_NE, x, x);
}
