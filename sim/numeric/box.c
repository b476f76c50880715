#include "sim/numeric/box.h"

#include <string.h>

#include "sim/base/assert.h"

bool mp_box_intersect(uint32_t rank, const int64_t *start_a, const int64_t *size_a,
                      const int64_t *start_b, const int64_t *size_b, int64_t *out_start,
                      int64_t *out_size) {
  MP_ASSERT(rank <= MP_BOX_MAX_RANK);
  int64_t start[MP_BOX_MAX_RANK];
  int64_t size[MP_BOX_MAX_RANK];
  for (uint32_t d = 0; d < rank; ++d) {
    int64_t end_a = start_a[d] + size_a[d];
    int64_t end_b = start_b[d] + size_b[d];
    start[d] = start_a[d] > start_b[d] ? start_a[d] : start_b[d];
    size[d] = (end_a < end_b ? end_a : end_b) - start[d];
    if (size[d] <= 0) return false;
  }
  memcpy(out_start, start, rank * sizeof(*start));
  memcpy(out_size, size, rank * sizeof(*size));
  return true;
}

static int64_t box_linear_offset(uint32_t rank, const int64_t *dims, const int64_t *start) {
  int64_t offset = 0;
  for (uint32_t d = 0; d < rank; ++d) offset = offset * dims[d] + start[d];
  return offset;
}

void mp_box_copy(const mp_box_copy_t *box) {
  mp_box_copy_by(mp_copy_cached, box);
}

void mp_box_copy_by(mp_copy_fn_t copy, const mp_box_copy_t *box) {
  const uint32_t rank = box->rank;
  const size_t element_size = box->element_size;
  const int64_t *size = box->size, *src_dims = box->src_dims, *src_start = box->src_start;
  const int64_t *dst_dims = box->dst_dims, *dst_start = box->dst_start;
  MP_ASSERT(rank <= MP_BOX_MAX_RANK && element_size != 0);
  for (uint32_t d = 0; d < rank; ++d) {
    if (size[d] <= 0) return;
  }
  for (uint32_t d = 0; d < rank; ++d) {
    MP_ASSERT(src_start[d] >= 0 && size[d] <= src_dims[d] - src_start[d]);
    MP_ASSERT(dst_start[d] >= 0 && size[d] <= dst_dims[d] - dst_start[d]);
  }
  // The trailing dimensions that the box covers whole in both arrays, together with the first
  // dimension that it does not, are contiguous in memory and are copied at once.
  size_t run = element_size;
  uint32_t outer = rank;
  while (outer > 0) {
    --outer;
    run *= (size_t)size[outer];
    if (size[outer] != src_dims[outer] || size[outer] != dst_dims[outer]) break;
  }
  int64_t src_stride[MP_BOX_MAX_RANK];
  int64_t dst_stride[MP_BOX_MAX_RANK];
  int64_t src_step = (int64_t)element_size;
  int64_t dst_step = (int64_t)element_size;
  for (uint32_t d = rank; d-- > 0;) {
    src_stride[d] = src_step;
    dst_stride[d] = dst_step;
    src_step *= src_dims[d];
    dst_step *= dst_dims[d];
  }
  const char *from =
      (const char *)box->src + box_linear_offset(rank, src_dims, src_start) * (int64_t)element_size;
  char *to =
      (char *)box->dst + box_linear_offset(rank, dst_dims, dst_start) * (int64_t)element_size;
  int64_t index[MP_BOX_MAX_RANK] = {0};
  for (;;) {
    copy(to, from, run);
    uint32_t d = outer;
    for (;;) {
      if (d == 0) return;
      --d;
      from += src_stride[d];
      to += dst_stride[d];
      if (++index[d] < size[d]) break;
      from -= src_stride[d] * size[d];
      to -= dst_stride[d] * size[d];
      index[d] = 0;
    }
  }
}
