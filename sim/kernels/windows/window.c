#include "sim/kernels/windows/window.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/shape.h"

enum { LANES = MP_REGION_MAX_LANES };

static int64_t window_entry(mp_index_list_t list, uint32_t i, int64_t when_absent) {
  return i < list.count ? list.values[i] : when_absent;
}

static bool window_is_sane(const mp_window_dim_t *dim) {
  const int64_t most = MP_WINDOW_MOST;
  return dim->size <= most && dim->stride <= most && dim->dilation <= most &&
         dim->base_dilation <= most && dim->low <= most && dim->low >= -most;
}

mp_status_t mp_window_create(const mp_op_t *op, const mp_type_t *in, const mp_type_t *out,
                             mp_window_t *out_window) {
  mp_index_list_t sizes = mp_op_ints(op, MP_ATTR_WINDOW_DIMENSIONS);
  mp_index_list_t strides = mp_op_ints(op, MP_ATTR_WINDOW_STRIDES);
  mp_index_list_t dilations = mp_op_ints(op, MP_ATTR_WINDOW_DILATIONS);
  mp_index_list_t base_dilations = mp_op_ints(op, MP_ATTR_BASE_DILATIONS);
  mp_index_list_t padding = mp_op_ints(op, MP_ATTR_PADDING);
  int64_t in_strides[MP_MAX_RANK];
  mp_dims_strides(in->dims, in->rank, 1, in_strides);
  mp_window_t window = {.rank = in->rank, .size = 1, .count = 1};
  for (uint32_t i = 0; i < in->rank; ++i) {
    mp_window_dim_t *dim = &window.dims[i];
    dim->size = window_entry(sizes, i, 1);
    dim->stride = window_entry(strides, i, 1);
    dim->dilation = window_entry(dilations, i, 1);
    dim->base_dilation = window_entry(base_dilations, i, 1);
    dim->low = window_entry(padding, 2 * i, 0);
    dim->in = in->dims[i];
    dim->out = out->dims[i];
    dim->in_stride = in_strides[i];
    dim->is_plain = dim->size == 1 && dim->stride == 1 && dim->base_dilation == 1 &&
                    dim->low == 0 && dim->out <= dim->in;
    if (!window_is_sane(dim) || __builtin_mul_overflow(window.size, dim->size, &window.size)) {
      return mp_op_error(op, MP_UNIMPLEMENTED, "the window of dimension %u is too large", i);
    }
    window.count *= dim->out;
  }
  *out_window = window;
  return NULL;
}

size_t mp_window_lanes_bytes(const mp_window_t *window) {
  return (size_t)(window->rank + 3) * LANES * sizeof(int64_t);
}

// Adds the element's place along one dimension to each lane's offset; a lane where the element is
// outside gets -1, and keeps it.
static void window_add_dim(const mp_window_dim_t *dim, int64_t w, int64_t lanes,
                           const int64_t *origins, int64_t *offsets) {
  int64_t shift = w * dim->dilation, in_stride = dim->in_stride, size = dim->in;
  if (dim->base_dilation == 1) {
    for (int64_t i = 0; i < lanes; ++i) {
      int64_t place = origins[i] + shift;
      bool inside = place >= 0 && place < size && offsets[i] >= 0;
      offsets[i] = inside ? offsets[i] + place * in_stride : -1;
    }
    return;
  }
  for (int64_t i = 0; i < lanes; ++i) {
    int64_t place = origins[i] + shift;
    bool inside = place >= 0 && place % dim->base_dilation == 0 &&
                  place / dim->base_dilation < size && offsets[i] >= 0;
    offsets[i] = inside ? offsets[i] + place / dim->base_dilation * in_stride : -1;
  }
}

static void window_find_element(mp_window_lanes_t *lanes) {
  const mp_window_t *window = lanes->window;
  memcpy(lanes->offsets, lanes->base, (size_t)lanes->lanes * sizeof(int64_t));
  for (uint32_t d = 0; d < window->rank; ++d) {
    if (window->dims[d].is_plain) continue;
    window_add_dim(&window->dims[d], lanes->index[d], lanes->lanes,
                   lanes->origins + (size_t)d * LANES, lanes->offsets);
  }
  int64_t inside = 0;
  for (int64_t i = 0; i < lanes->lanes; ++i) {
    int64_t offset = lanes->offsets[i];
    lanes->offsets[inside] = offset;
    lanes->where[inside] = i;
    inside += offset >= 0;
  }
  lanes->num_inside = inside;
}

void mp_window_lanes_begin(const mp_window_t *window, int64_t first, int64_t lanes, void *memory,
                           mp_window_lanes_t *out_lanes) {
  MP_ASSERT(lanes > 0 && lanes <= LANES && first >= 0 && first + lanes <= window->count);
  int64_t *arrays = memory;
  *out_lanes = (mp_window_lanes_t){.window = window, .lanes = lanes};
  out_lanes->base = arrays;
  out_lanes->offsets = arrays + LANES;
  out_lanes->where = arrays + 2 * LANES;
  out_lanes->origins = arrays + 3 * LANES;
  for (int64_t i = 0; i < lanes; ++i) {
    int64_t number = first + i, base = 0;
    for (uint32_t d = window->rank; d-- > 0;) {
      const mp_window_dim_t *dim = &window->dims[d];
      int64_t o = number % dim->out;
      number /= dim->out;
      if (dim->is_plain) base += o * dim->in_stride;
      out_lanes->origins[(size_t)d * LANES + (size_t)i] = o * dim->stride - dim->low;
    }
    out_lanes->base[i] = base;
  }
  window_find_element(out_lanes);
}

void mp_window_lanes_next(mp_window_lanes_t *lanes) {
  for (uint32_t d = lanes->window->rank; d-- > 0;) {
    if (++lanes->index[d] < lanes->window->dims[d].size) break;
    lanes->index[d] = 0;
  }
  window_find_element(lanes);
}
