#include "sim/mosaic/run/mosaic_unset.h"

#include <math.h>
#include <string.h>

// The element in the first bytes of `out_element`; returns how many these are.
static size_t mosaic_unset_element(const mp_mosaic_type_t *type, uint8_t out_element[8]) {
  const size_t size = mp_dtype_size(type->dtype);
  const int bits = mp_dtype_bits(type->dtype);
  memset(out_element, 0, 8);
  switch (mp_dtype_class(type->dtype)) {
    case MP_CLASS_FLOAT:
      mp_float_encode(type->dtype, NAN, out_element);
      break;
    case MP_CLASS_SIGNED:
    case MP_CLASS_UNSIGNED: {
      const bool is_signed = mp_dtype_class(type->dtype) == MP_CLASS_SIGNED;
      const uint64_t most = UINT64_MAX >> (64 - bits + (is_signed ? 1 : 0));
      memcpy(out_element, &most, size);
      break;
    }
    default:
      break;
  }
  return size;
}

void mp_mosaic_unset(const mp_mosaic_type_t *type, void *memory, size_t bytes) {
  uint8_t element[8];
  if (type->element != MP_MOSAIC_NUMBER || bytes == 0) {
    memset(memory, 0, bytes);
    return;
  }
  // Each copy doubles what is filled.
  size_t filled = mosaic_unset_element(type, element);
  if (filled > bytes) filled = bytes;
  memcpy(memory, element, filled);
  while (filled < bytes) {
    const size_t next = filled < bytes - filled ? filled : bytes - filled;
    memcpy((char *)memory + filled, memory, next);
    filled += next;
  }
}
