#include "sim/kernels/elementwise/convert.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/shape.h"
#include "sim/numeric/float.h"

enum { BLOCK = 256 };

bool mp_convert_bind(mp_dtype_t from, mp_dtype_t to, mp_convert_t *out_convert) {
  mp_convert_t convert = {from, to, mp_ew_computing_type(from), mp_ew_computing_type(to), NULL};
  if (from != to && convert.from_c != convert.to_c) {
    // A double that becomes a narrow floating-point number must not be rounded twice.
    bool odd = convert.to_c != to && mp_dtype_is_float(to) &&
               (from == MP_DTYPE_F64 || from == MP_DTYPE_C128);
    convert.loop =
        odd ? mp_ew_convert_to_odd_loop(from) : mp_ew_convert_loop(convert.from_c, convert.to_c);
    if (convert.loop == NULL) return false;
  }
  *out_convert = convert;
  return true;
}

static void convert_widen(const mp_convert_t *convert, int64_t n, const void *src, void *dst) {
  if (mp_dtype_is_float(convert->from)) {
    mp_float_widen(convert->from, n, src, dst);
    return;
  }
  int bits = mp_dtype_bits(convert->from);
  uint8_t sign = convert->from_c == MP_DTYPE_S8 ? (uint8_t)(1u << (bits - 1)) : 0;
  for (int64_t i = 0; i < n; ++i) {
    ((uint8_t *)dst)[i] = (uint8_t)((((const uint8_t *)src)[i] ^ sign) - sign);
  }
}

static void convert_narrow(const mp_convert_t *convert, int64_t n, const void *src, void *dst) {
  if (mp_dtype_is_float(convert->to)) {
    mp_float_narrow(convert->to, n, src, dst);
    return;
  }
  uint8_t mask = (uint8_t)((1u << mp_dtype_bits(convert->to)) - 1);
  for (int64_t i = 0; i < n; ++i) ((uint8_t *)dst)[i] = ((const uint8_t *)src)[i] & mask;
}

void mp_convert_run(const mp_convert_t *convert, int64_t n, const void *src, void *dst) {
  size_t from_size = mp_dtype_size(convert->from), to_size = mp_dtype_size(convert->to);
  if (mp_convert_is_copy(convert)) {
    memcpy(dst, src, (size_t)n * to_size);
    return;
  }
  bool widens = convert->from_c != convert->from, narrows = convert->to_c != convert->to;
  if (!widens && !narrows) {
    MP_ASSERT(convert->loop != NULL);
    convert->loop(n, &src, dst);
    return;
  }
  if (!narrows && convert->loop == NULL) {
    convert_widen(convert, n, src, dst);
    return;
  }
  for (int64_t i = 0; i < n; i += BLOCK) {
    _Alignas(64) char wide[BLOCK * 4], result[BLOCK * 4];
    int64_t count = mp_min_i64(BLOCK, n - i);
    const void *in = (const char *)src + (size_t)i * from_size;
    char *out = (char *)dst + (size_t)i * to_size;
    if (widens) {
      convert_widen(convert, count, in, wide);
      in = wide;
    }
    if (convert->loop != NULL) {
      void *to = narrows ? result : out;
      convert->loop(count, &in, to);
      in = to;
    }
    if (narrows) convert_narrow(convert, count, in, out);
  }
}
