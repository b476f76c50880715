#include "sim/base/assert.h"
#include "sim/kernels/kernel.h"

enum { MAX_PARTS = 64 };

uint32_t mp_part_count(int64_t total, int64_t grain) {
  if (grain < 1) grain = 1;
  int64_t parts = total / grain;
  if (parts < 1) return 1;
  return parts > MAX_PARTS ? MAX_PARTS : (uint32_t)parts;
}

void mp_part_range(int64_t total, uint32_t num_parts, uint32_t part, int64_t *out_begin,
                   int64_t *out_end) {
  MP_ASSERT(part < num_parts && total >= 0);
  if (num_parts == 1) {  // without divisions, which would slow down small kernels
    *out_begin = 0;
    *out_end = total;
    return;
  }
  // The first `rest` parts have one item more. Computed like this, nothing can overflow.
  int64_t size = total / num_parts, rest = total % num_parts;
  *out_begin = part * size + (part < rest ? part : rest);
  *out_end = *out_begin + size + (part < rest ? 1 : 0);
  MP_ASSERT(*out_begin >= 0 && *out_end <= total);
}
