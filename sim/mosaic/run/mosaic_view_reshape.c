// Memrefs of other shapes.
//
// Dimensions are compared in groups of equally many elements, from the outermost on. In each group
// the elements must lie at one distance, or at two: rows of 256 words with gaps between them become
// rows of 128 in pairs, which are the parts (`split`) of a dimension. Where a memref has parts
// already, the dimension of parts stays the innermost one of its group.
#include "sim/mosaic/run/mosaic_view.h"

// Dimensions that can be seen as one: [begin, end) of `view`, whose elements lie at one distance.
static bool mosaic_view_reshape_is_run(const mp_mosaic_view_t *view, uint32_t begin, uint32_t end) {
  int64_t inner = -1, size = 1;
  for (uint32_t d = end; d-- > begin;) {
    if (view->dims[d] == 1) continue;
    if (inner >= 0 && view->strides[d] != inner * size) return false;
    if (inner < 0) inner = view->strides[d];
    size *= view->dims[d];
  }
  return true;
}

static int64_t mosaic_view_reshape_inner_stride(const mp_mosaic_view_t *view, uint32_t begin,
                                                uint32_t end) {
  for (uint32_t d = end; d-- > begin;) {
    if (view->dims[d] != 1) return view->strides[d];
  }
  return view->element;
}

// The distance between elements of the dimensions [begin, end) is `stride`.
static void mosaic_view_reshape_follow(mp_mosaic_view_t *out, uint32_t begin, uint32_t end,
                                       int64_t stride) {
  for (uint32_t d = end; d-- > begin;) {
    out->strides[d] = stride;
    stride *= out->dims[d];
  }
}

// ---- a group with the dimension of parts ----

// The dimensions [begin, end) can be seen as one if the dimension of parts is the innermost of
// them, and the others follow in whole stored elements.
static bool mosaic_view_reshape_is_split_run(const mp_mosaic_view_t *view, uint32_t begin,
                                             uint32_t end) {
  int64_t size = 0;  // stored elements
  for (uint32_t d = end; d-- > begin;) {
    const int64_t dim = view->dims[d];
    if (dim == 1) continue;
    if (d == view->split_dim) {
      if (size != 0) return false;
      size = dim % view->split == 0 ? dim / view->split : -1;
    } else {
      if (size <= 0 || view->phase != 0) return false;
      if (view->strides[d] != view->strides[view->split_dim] * size) return false;
      size *= dim;
    }
  }
  return true;
}

static bool mosaic_view_reshape_split(const mp_mosaic_view_t *view, uint32_t begin, uint32_t end,
                                      mp_mosaic_view_t *out, uint32_t to_begin, uint32_t to_end) {
  if (to_begin == to_end || !mosaic_view_reshape_is_split_run(view, begin, end)) return false;
  uint32_t inner = to_end - 1;
  while (inner > to_begin && out->dims[inner] == 1) --inner;
  int64_t stride = view->strides[view->split_dim], outer = 1;
  for (uint32_t d = inner; d < to_end; ++d) out->strides[d] = stride;
  for (uint32_t d = to_begin; d < inner; ++d) outer *= out->dims[d];
  if (outer != 1 && (view->phase != 0 || out->dims[inner] % view->split != 0)) return false;
  stride *= out->dims[inner] / view->split;
  for (uint32_t d = inner; d-- > to_begin;) {
    out->strides[d] = stride;
    stride *= out->dims[d];
  }
  out->split_dim = inner;
  return true;
}

// ---- a group at two distances ----

// The outermost dimension from which on [.., end) can be seen as one, and their elements.
static uint32_t mosaic_view_reshape_inner_run(const mp_mosaic_view_t *view, uint32_t begin,
                                              uint32_t end, int64_t *out_size) {
  uint32_t inner = end;
  *out_size = 1;
  while (inner > begin && mosaic_view_reshape_is_run(view, inner - 1, end)) {
    *out_size *= view->dims[--inner];
  }
  return inner;
}

// The inner dimensions of `view` are divided by those of `out`, of which the next one gets parts.
static bool mosaic_view_reshape_fold(const mp_mosaic_view_t *view, uint32_t begin, uint32_t end,
                                     mp_mosaic_view_t *out, uint32_t to_begin, uint32_t to_end) {
  int64_t left = 0;
  const uint32_t inner = mosaic_view_reshape_inner_run(view, begin, end, &left);
  if (out->split != 1 || !mosaic_view_reshape_is_run(view, begin, inner)) return false;
  int64_t step = mosaic_view_reshape_inner_stride(view, inner, end);
  const int64_t stride = mosaic_view_reshape_inner_stride(view, begin, inner);
  uint32_t d = to_end;
  for (; d > to_begin && out->dims[d - 1] > 0 && left % out->dims[d - 1] == 0; --d) {
    out->strides[d - 1] = step;
    step *= out->dims[d - 1];
    left /= out->dims[d - 1];
  }
  if (left == 1) {
    mosaic_view_reshape_follow(out, to_begin, d, stride);
    return true;
  }
  if (d == to_begin || out->dims[d - 1] <= 0 || left <= 0 || out->dims[d - 1] % left != 0 ||
      left > UINT32_MAX) {
    return false;
  }
  out->split = (uint32_t)left;
  out->split_step = step;
  out->split_dim = d - 1;
  out->phase = 0;
  out->strides[d - 1] = stride;
  mosaic_view_reshape_follow(out, to_begin, d - 1, stride * (out->dims[d - 1] / left));
  return true;
}

// ---- ----

static mp_status_t mosaic_view_reshape_refuse(void) {
  return mp_status_make(MP_UNIMPLEMENTED,
                        "a memref whose elements are not evenly spaced is given another shape");
}

// The dimensions [to_begin, to_end) of `out` take the place of [begin, end) of `view`.
static mp_status_t mosaic_view_reshape_group(const mp_mosaic_view_t *view, uint32_t begin,
                                             uint32_t end, mp_mosaic_view_t *out, uint32_t to_begin,
                                             uint32_t to_end) {
  if (end - begin == 1 && to_end - to_begin == 1) {
    if (view->split != 1 && begin == view->split_dim) out->split_dim = to_begin;
    out->strides[to_begin] = view->strides[begin];
    out->room[to_begin] = view->room[begin];
    out->beyond[to_begin] = view->beyond[begin];
    return NULL;
  }
  for (uint32_t d = begin; d < end; ++d) {
    if (view->beyond[d] != 0) return mosaic_view_reshape_refuse();
  }
  if (view->split != 1 && view->split_dim >= begin && view->split_dim < end) {
    return mosaic_view_reshape_split(view, begin, end, out, to_begin, to_end)
               ? NULL
               : mosaic_view_reshape_refuse();
  }
  if (!mosaic_view_reshape_is_run(view, begin, end)) {
    return mosaic_view_reshape_fold(view, begin, end, out, to_begin, to_end)
               ? NULL
               : mosaic_view_reshape_refuse();
  }
  mosaic_view_reshape_follow(out, to_begin, to_end,
                             mosaic_view_reshape_inner_stride(view, begin, end));
  return NULL;
}

mp_status_t mp_mosaic_view_reshape(const mp_mosaic_view_t *view, const mp_mosaic_type_t *type,
                                   mp_mosaic_view_t *out_view) {
  mp_mosaic_view_t out = *view;
  out.rank = type->rank;
  for (uint32_t d = 0; d < type->rank; ++d) {
    out.dims[d] = type->dims[d];
    out.room[d] = out.beyond[d] = 0;
  }
  if (mp_mosaic_view_count(&out) != mp_mosaic_view_count(view)) {
    return mp_status_make(MP_INVALID_ARGUMENT, "the new shape has another number of elements");
  }
  // Groups of dimensions with equally many elements, from the outermost on.
  uint32_t from = 0, to = 0;
  while (from < view->rank || to < out.rank) {
    uint32_t from_end = from, to_end = to;
    int64_t a = 1, b = 1;
    if (from_end < view->rank) a = view->dims[from_end++];
    if (to_end < out.rank) b = out.dims[to_end++];
    while (a != b) {
      if (a < b && from_end < view->rank) {
        a *= view->dims[from_end++];
      } else if (b < a && to_end < out.rank) {
        b *= out.dims[to_end++];
      } else {
        break;
      }
    }
    MP_RETURN_IF_ERROR(mosaic_view_reshape_group(view, from, from_end, &out, to, to_end));
    from = from_end;
    to = to_end;
  }
  *out_view = out;
  return NULL;
}
