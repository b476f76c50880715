#include "sim/kernels/shape.h"

#include <string.h>

#include "sim/base/assert.h"

int64_t mp_load_index(mp_dtype_t dtype, const void *element) {
  MP_ASSERT(mp_dtype_size(dtype) <= sizeof(uint64_t) && !mp_dtype_is_float(dtype));
  int bits = mp_dtype_bits(dtype);
  uint64_t value = 0;
  memcpy(&value, element, mp_dtype_size(dtype));  // little endian: the low bytes
  if (mp_dtype_class(dtype) == MP_CLASS_SIGNED && bits < 64) {
    uint64_t sign = 1ull << (bits - 1);
    return (int64_t)((value ^ sign) - sign);
  }
  if (mp_dtype_class(dtype) != MP_CLASS_SIGNED && value > INT64_MAX) return INT64_MAX;
  return (int64_t)value;
}
