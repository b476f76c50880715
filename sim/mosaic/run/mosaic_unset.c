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

// Each copy doubles what is filled.
static void mosaic_unset_fill(const uint8_t *element, size_t size, void *memory, size_t bytes) {
  size_t filled = size < bytes ? size : bytes;
  memcpy(memory, element, filled);
  while (filled < bytes) {
    const size_t next = filled < bytes - filled ? filled : bytes - filled;
    memcpy((char *)memory + filled, memory, next);
    filled += next;
  }
}

void mp_mosaic_unset(const mp_mosaic_type_t *type, void *memory, size_t bytes) {
  uint8_t element[8];
  if (type->element != MP_MOSAIC_NUMBER || bytes == 0) {
    memset(memory, 0, bytes);
    return;
  }
  const size_t size = mosaic_unset_element(type, element);
  mosaic_unset_fill(element, size, memory, bytes);
}

void mp_mosaic_unset_otherwise(const mp_mosaic_type_t *type, uint32_t salt, void *memory,
                               size_t bytes) {
  uint8_t element[8] = {0};
  if (type->element != MP_MOSAIC_NUMBER || bytes == 0) {
    mp_mosaic_unset(type, memory, bytes);
    return;
  }
  const int bits = mp_dtype_bits(type->dtype);
  const uint64_t number = bits == 1 ? 1 : 2 + salt % (bits < 16 ? 4 : 64);
  if (mp_dtype_class(type->dtype) == MP_CLASS_FLOAT) {
    mp_float_encode(type->dtype, (double)number, element);
  } else {
    memcpy(element, &number, sizeof(number));
  }
  mosaic_unset_fill(element, mp_dtype_size(type->dtype), memory, bytes);
}
