#include "sim/kernels/counting.h"

#include <string.h>

#include "sim/base/vector.h"
#include "sim/kernels/strided.h"

// Stores `value` as an element of any type.
static void counting_store(mp_dtype_t dtype, int64_t value, void *out) {
  int bits = mp_dtype_bits(dtype);
  if (mp_dtype_is_complex(dtype)) {
    memset(out, 0, mp_dtype_size(dtype));
    mp_float_encode(mp_dtype_real_part(dtype), (double)value, out);
  } else if (mp_dtype_is_float(dtype)) {
    mp_float_encode(dtype, (double)value, out);
  } else {
    if (dtype == MP_DTYPE_BOOL) value = value != 0;
    uint64_t raw = (uint64_t)value;
    if (bits < 64) raw &= (1ull << bits) - 1;
    memcpy(out, &raw, mp_dtype_size(dtype));
  }
}

#define COUNT_LINE(T, C)                                                                   \
  MP_VECTOR static void counting_##T(int64_t begin, int64_t step, int64_t count, T *out) { \
    for (int64_t i = 0; i < count; ++i) out[i] = (T)((C)begin + (C)i * (C)step);           \
  }
COUNT_LINE(uint8_t, uint32_t)
COUNT_LINE(uint16_t, uint32_t)
COUNT_LINE(uint32_t, uint32_t)
COUNT_LINE(uint64_t, uint64_t)
COUNT_LINE(float, int64_t)
COUNT_LINE(double, int64_t)

static void counting_other(mp_dtype_t dtype, int64_t begin, int64_t step, int64_t count,
                           void *out) {
  const int64_t size = (int64_t)mp_dtype_size(dtype);
  for (int64_t i = 0; i < count; ++i) {
    counting_store(dtype, begin + i * step, (char *)out + i * size);
  }
}

void mp_count_line(mp_dtype_t dtype, int64_t begin, int64_t step, int64_t count, void *out) {
  if (step == 0) {
    char element[16];
    counting_store(dtype, begin, element);
    mp_fill(out, element, mp_dtype_size(dtype), count);
    return;
  }
  switch (dtype) {
    case MP_DTYPE_S8:
    case MP_DTYPE_U8:
      counting_uint8_t(begin, step, count, out);
      return;
    case MP_DTYPE_S16:
    case MP_DTYPE_U16:
      counting_uint16_t(begin, step, count, out);
      return;
    case MP_DTYPE_S32:
    case MP_DTYPE_U32:
      counting_uint32_t(begin, step, count, out);
      return;
    case MP_DTYPE_S64:
    case MP_DTYPE_U64:
      counting_uint64_t(begin, step, count, out);
      return;
    case MP_DTYPE_F32:
      counting_float(begin, step, count, out);
      return;
    case MP_DTYPE_F64:
      counting_double(begin, step, count, out);
      return;
    default:
      counting_other(dtype, begin, step, count, out);
  }
}
