// Bulk conversion between f32 and the narrower float types.
#include <string.h>

#include "sim/base/dtype.h"

void mp_float_widen(mp_dtype_t dtype, int64_t count, const void *elements, float *out_values) {
  const unsigned char *from = elements;
  const size_t size = mp_dtype_size(dtype);
  for (int64_t i = 0; i < count; ++i) {
    out_values[i] = (float)mp_float_decode(dtype, from + (size_t)i * size);
  }
}

void mp_float_narrow(mp_dtype_t dtype, int64_t count, const float *values, void *out_elements) {
  unsigned char *to = out_elements;
  const size_t size = mp_dtype_size(dtype);
  for (int64_t i = 0; i < count; ++i) {
    mp_float_encode(dtype, (double)values[i], to + (size_t)i * size);
  }
}
