// Attributes of the StableHLO readers as Mosaic's (numbers, texts, lists, constants), and the
// attributes of a module.
#include "sim/mosaic/read/mosaic_text.h"

// An integer element of a constant.
static int64_t mosaic_plain_int(mp_dtype_t dtype, const unsigned char *element) {
  uint64_t bits = 0;
  memcpy(&bits, element, mp_dtype_size(dtype));
  const int width = mp_dtype_bits(dtype);
  if (mp_dtype_class(dtype) != MP_CLASS_SIGNED || width >= 64) return (int64_t)bits;
  return (int64_t)(bits << (64 - width)) >> (64 - width);
}

static mp_status_t mosaic_plain_copy_ints(mp_arena_t *arena, const int64_t *values, size_t count,
                                          mp_mosaic_attr_t *attr) {
  attr->kind = MP_MOSAIC_INTS;
  attr->ints.values = mp_arena_copy(arena, values, count * sizeof(values[0]));
  MP_RETURN_IF_NULL(attr->ints.values);
  attr->ints.count = (uint32_t)count;
  return NULL;
}

// Lists are short: indices, sizes, permutations. A splat of a huge type stays refused.
static mp_status_t mosaic_plain_dense_ints(mp_arena_t *arena, const mp_attr_t *plain,
                                           mp_mosaic_attr_t *attr) {
  enum { MAX_INTS = 1 << 16 };
  const mp_dtype_t dtype = plain->u.dense.type->dtype;
  int64_t count = 0;
  if (!mp_type_num_elements(plain->u.dense.type, &count) || count > MAX_INTS)
    return mp_status_make(MP_UNIMPLEMENTED, "a list of more than %d numbers", MAX_INTS);
  if (!mp_dtype_is_integer(dtype) && dtype != MP_DTYPE_BOOL)
    return mp_status_make(MP_UNIMPLEMENTED, "a list of %s", mp_dtype_name(dtype));
  int64_t *values = MP_ARENA_ARRAY(arena, int64_t, (size_t)count);
  MP_RETURN_IF_NULL(values);
  const size_t size = mp_dtype_size(dtype);
  const unsigned char *data = plain->u.dense.data;
  for (int64_t i = 0; i < count; ++i)
    values[i] = mosaic_plain_int(dtype, data + (plain->u.dense.splat ? 0 : (size_t)i * size));
  attr->kind = MP_MOSAIC_INTS;
  attr->dtype = dtype;
  attr->ints.values = values;
  attr->ints.count = (uint32_t)count;
  return NULL;
}

static mp_status_t mosaic_plain_fill(mp_arena_t *arena, const mp_attr_t *plain,
                                     const mp_mosaic_type_t *dense_type, mp_mosaic_attr_t *attr) {
  switch (plain->kind) {
    case MP_KIND_UNIT:
      attr->kind = MP_MOSAIC_UNIT;
      return NULL;
    case MP_KIND_BOOL:
      *attr = (mp_mosaic_attr_t){
          .kind = MP_MOSAIC_BOOL, .dtype = MP_DTYPE_BOOL, .i64 = plain->u.boolean};
      return NULL;
    case MP_KIND_INT:
      *attr = (mp_mosaic_attr_t){.kind = MP_MOSAIC_INT, .dtype = plain->dtype, .i64 = plain->u.i64};
      return NULL;
    case MP_KIND_FLOAT:
      *attr =
          (mp_mosaic_attr_t){.kind = MP_MOSAIC_FLOAT, .dtype = plain->dtype, .f64 = plain->u.f64};
      return NULL;
    case MP_KIND_STRING:
      *attr = (mp_mosaic_attr_t){.kind = MP_MOSAIC_STRING, .str = plain->u.str};
      return NULL;
    case MP_KIND_INTS:
    case MP_KIND_BOOLS:
      attr->dtype = plain->kind == MP_KIND_INTS ? MP_DTYPE_S64 : MP_DTYPE_BOOL;
      return mosaic_plain_copy_ints(arena, plain->u.ints.values, plain->u.ints.count, attr);
    case MP_KIND_DENSE:
      if (dense_type == NULL) return mosaic_plain_dense_ints(arena, plain, attr);
      *attr = (mp_mosaic_attr_t){.kind = MP_MOSAIC_DENSE, .dtype = dense_type->dtype};
      attr->dense.type = dense_type;
      attr->dense.data = plain->u.dense.data;
      attr->dense.splat = plain->u.dense.splat;
      return NULL;
    default:
      return mp_status_make(MP_UNIMPLEMENTED, "an attribute of a kind that Mosaic does not have");
  }
}

mp_status_t mp_mosaic_from_plain(mp_arena_t *arena, const mp_attr_t *plain,
                                 const mp_mosaic_type_t *dense_type,
                                 const mp_mosaic_attr_t **out_attr) {
  mp_mosaic_attr_t attr = {0};
  MP_RETURN_IF_ERROR(mosaic_plain_fill(arena, plain, dense_type, &attr));
  return mp_mosaic_attr_copy(arena, &attr, out_attr);
}

mp_status_t mp_mosaic_finish_module(mp_mosaic_module_t *module, const mp_mosaic_named_t *attrs,
                                    uint32_t count) {
  const mp_mosaic_attr_t *name = mp_mosaic_attr(attrs, count, "sym_name");
  const mp_mosaic_attr_t *version = mp_mosaic_attr(attrs, count, "stable_mosaic.version");
  if (name != NULL && name->kind == MP_MOSAIC_STRING) module->name = name->str;
  // Without a version no serialization has made it: it is of the newest one.
  if (version == NULL) return NULL;
  if (version->kind != MP_MOSAIC_INT)
    return mp_status_make(MP_INVALID_ARGUMENT, "stable_mosaic.version is not a number");
  return mp_mosaic_upgrade(module, version->i64);
}
