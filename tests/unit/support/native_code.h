// Machine code in tests: the module is that of the build, and comparing knows its one exception.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_NATIVE_CODE_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_NATIVE_CODE_H_

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "sim/native/native.h"
#include "sim/numeric/dtype.h"

// Whether the module was built; from then on it is the one that is used.
static inline bool native_is_there(void) {
  static const char path[] = MINIPOD_BINARY_DIR "/minipod_native.so";
  mp_native_set_module(path);
  return access(path, R_OK) == 0;
}

// Which of two NaNs is handed on is not said, so that of them only the kind is compared.
static inline bool is_nan_element(mp_dtype_t dtype, const char *element) {
  if (dtype == MP_DTYPE_F32) {
    float value;
    memcpy(&value, element, sizeof(value));
    return isnan(value);
  }
  if (dtype == MP_DTYPE_F64) {
    double value;
    memcpy(&value, element, sizeof(value));
    return isnan(value);
  }
  uint16_t bits = 0;
  if (mp_dtype_size(dtype) == sizeof(bits)) memcpy(&bits, element, sizeof(bits));
  return (dtype == MP_DTYPE_BF16 && (bits & 0x7FFF) > 0x7F80) ||
         (dtype == MP_DTYPE_F16 && (bits & 0x7FFF) > 0x7C00);
}

// The number of the first element that differs; -1 if none does.
static inline int64_t find_difference(mp_dtype_t dtype, const void *a, const void *b,
                                      uint64_t bytes) {
  const mp_dtype_t part = mp_dtype_real_part(dtype);  // of a complex number either may be a NaN
  const size_t size = mp_dtype_size(part);
  for (uint64_t at = 0; at < bytes; at += size) {
    const char *x = (const char *)a + at, *y = (const char *)b + at;
    const bool is_same =
        memcmp(x, y, size) == 0 || (is_nan_element(part, x) && is_nan_element(part, y));
    if (!is_same) return (int64_t)(at / mp_dtype_size(dtype));
  }
  return -1;
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_NATIVE_CODE_H_
