#include "sim/kernels/elementwise/convert.h"

#include <string.h>

bool mp_convert_bind(mp_dtype_t from, mp_dtype_t to, mp_convert_t *out_convert) {
  mp_convert_t convert = {.from = from, .to = to};
  if (from != to && !mp_ew_bind_convert(from, to, &convert.ew)) return false;
  *out_convert = convert;
  return true;
}

void mp_convert_run(const mp_convert_t *convert, int64_t n, const void *src, void *dst) {
  if (mp_convert_is_copy(convert)) {
    memcpy(dst, src, (size_t)n * mp_dtype_size(convert->to));
  } else {
    mp_ew_run(&convert->ew, n, &src, dst);
  }
}
