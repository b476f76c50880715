#include "sim/numeric/dtype.h"

typedef struct {
  const char *name;
  int pjrt;
  mp_dtype_class_t kind;
  int bits;
  size_t size;
} dtype_info_t;

static const dtype_info_t g_dtypes[MP_DTYPE_COUNT] = {
#define MP_DTYPE_ROW(enumerator, text, pjrt, kind, bits, storage) \
  [MP_DTYPE_##enumerator] = {text, pjrt, MP_CLASS_##kind, bits, storage},
    MP_DTYPES(MP_DTYPE_ROW)
#undef MP_DTYPE_ROW
};

static const dtype_info_t *dtype_info(mp_dtype_t dtype) {
  return &g_dtypes[(unsigned)dtype < MP_DTYPE_COUNT ? dtype : MP_DTYPE_INVALID];
}

const char *mp_dtype_name(mp_dtype_t dtype) {
  return dtype_info(dtype)->name;
}
mp_dtype_class_t mp_dtype_class(mp_dtype_t dtype) {
  return dtype_info(dtype)->kind;
}
int mp_dtype_bits(mp_dtype_t dtype) {
  return dtype_info(dtype)->bits;
}
size_t mp_dtype_size(mp_dtype_t dtype) {
  return dtype_info(dtype)->size;
}
int mp_dtype_to_pjrt(mp_dtype_t dtype) {
  return dtype_info(dtype)->pjrt;
}

mp_dtype_t mp_dtype_from_pjrt(int pjrt_type) {
  for (int d = 1; d < MP_DTYPE_COUNT && pjrt_type != 0; ++d) {
    if (g_dtypes[d].pjrt == pjrt_type) return (mp_dtype_t)d;
  }
  return MP_DTYPE_INVALID;
}

mp_dtype_t mp_dtype_from_name(mp_str_t name) {
  for (int d = 1; d < MP_DTYPE_COUNT; ++d) {
    if (mp_str_is(name, g_dtypes[d].name)) return (mp_dtype_t)d;
  }
  return MP_DTYPE_INVALID;
}

mp_dtype_t mp_dtype_real_part(mp_dtype_t dtype) {
  if (dtype == MP_DTYPE_C64) return MP_DTYPE_F32;
  if (dtype == MP_DTYPE_C128) return MP_DTYPE_F64;
  return dtype;
}
