#include "sim/numeric/dtype.h"

typedef struct {
  const char *name;
  mp_dtype_class_t kind;
  int bits;
  size_t size;
  int numbers[MP_NUMBERS_COUNT];
} dtype_info_t;

static const dtype_info_t g_dtypes[MP_DTYPE_COUNT] = {
#define MP_DTYPE_ROW(enumerator, text, class, bits, storage, style, exponent, fraction, bias, \
                     pjrt, xla, foreign, literal, builtin, vhlo)                              \
  [MP_DTYPE_##enumerator] = {                                                                 \
      text, MP_CLASS_##class, bits, storage, {pjrt, xla, foreign, literal, builtin, vhlo}},
    MP_DTYPES(MP_DTYPE_ROW)
#undef MP_DTYPE_ROW
};

// What is forgotten in a row, or said in two ways.
#define DTYPE_CHECK(name, text, class, bits, storage, style, exponent, fraction, bias, pjrt, xla, \
                    foreign, literal, builtin, vhlo)                                              \
  _Static_assert((pjrt != 0) == (xla != 0) && (pjrt != 0) == (literal != 0),                      \
                 text " has some numbers of PJRT and XLA, and not others");                       \
  _Static_assert(foreign == 0 || foreign == xla, text " has another number in functions");        \
  _Static_assert((MP_CLASS_##class == MP_CLASS_FLOAT) == (exponent != 0),                         \
                 text " has a format, or is a float, and not both");                              \
  _Static_assert(exponent == 0 || exponent == bits || 1 + exponent + fraction == bits,            \
                 text " has more or fewer bits than its format");
MP_DTYPES(DTYPE_CHECK)
#undef DTYPE_CHECK

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
int mp_dtype_number(mp_dtype_t dtype, mp_dtype_numbers_t numbers) {
  return dtype_info(dtype)->numbers[numbers];
}

// The search begins with the invalid type, which has the number that stands for none.
mp_dtype_t mp_dtype_from_number(mp_dtype_numbers_t numbers, uint64_t number) {
  for (int d = 0; d < MP_DTYPE_COUNT; ++d) {
    if ((uint64_t)g_dtypes[d].numbers[numbers] == number) return (mp_dtype_t)d;
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
