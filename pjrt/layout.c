// Layouts of the interface: orders of dimensions and strides, which the boundary honours for host
// memory; device memory is row-major.

#include <stdlib.h>

#include "pjrt/objects.h"

// Descending numbers; the last r of them are the row-major order of rank r.
const int64_t *mp_pjrt_minor_to_major(size_t rank) {
  static const int64_t descending[MP_MAX_RANK] = {
      31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,
      15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4,  3,  2,  1,  0,
  };
  _Static_assert(MP_MAX_RANK == 32, "the table has one entry per dimension");
  return descending + MP_MAX_RANK - rank;
}

static mp_status_t tiled_strides(const char *function, const PJRT_Buffer_MemoryLayout_Tiled *tiled,
                                 const int64_t *dims, size_t rank, size_t item_size,
                                 int64_t *out_strides) {
  if (tiled->num_tiles != 0) {
    return mp_status_make(MP_UNIMPLEMENTED, "%s: layouts with tiles are not supported", function);
  }
  if (tiled->minor_to_major_size != rank) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s: a layout of %zu dimensions for an array of %zu",
                          function, tiled->minor_to_major_size, rank);
  }
  uint64_t seen = 0;
  int64_t stride = (int64_t)item_size;
  for (size_t i = 0; i < rank; ++i) {
    int64_t dim = tiled->minor_to_major[i];
    if (dim < 0 || dim >= (int64_t)rank || (seen >> dim & 1) != 0) {
      return mp_status_make(MP_INVALID_ARGUMENT,
                            "%s: minor_to_major is not an order of the %zu dimensions", function,
                            rank);
    }
    seen |= UINT64_C(1) << dim;
    out_strides[dim] = stride;
    stride *= dims[dim];
  }
  return NULL;
}

mp_status_t mp_pjrt_layout_strides(const char *function, const PJRT_Buffer_MemoryLayout *layout,
                                   const int64_t *dims, size_t rank, size_t item_size,
                                   int64_t *out_strides) {
  if (layout == NULL) {
    int64_t stride = (int64_t)item_size;
    for (size_t i = rank; i-- > 0; stride *= dims[i]) out_strides[i] = stride;
    return NULL;
  }
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Tiled) {
    return tiled_strides(function, &layout->tiled, dims, rank, item_size, out_strides);
  }
  if (layout->type != PJRT_Buffer_MemoryLayout_Type_Strides) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s: a layout of the unknown type %d", function,
                          (int)layout->type);
  }
  if (layout->strides.num_byte_strides != rank) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s: %zu strides for an array of %zu dimensions",
                          function, layout->strides.num_byte_strides, rank);
  }
  for (size_t i = 0; i < rank; ++i) out_strides[i] = layout->strides.byte_strides[i];
  return NULL;
}

mp_status_t mp_pjrt_layout_require_default(const char *function,
                                           const PJRT_Buffer_MemoryLayout *layout,
                                           const int64_t *dims, size_t rank, size_t item_size) {
  if (layout == NULL) return NULL;
  int64_t given[MP_MAX_RANK], row_major[MP_MAX_RANK];
  MP_RETURN_IF_ERROR(mp_pjrt_layout_strides(function, layout, dims, rank, item_size, given));
  MP_RETURN_IF_ERROR(mp_pjrt_layout_strides(function, NULL, dims, rank, item_size, row_major));
  for (size_t i = 0; i < rank; ++i) {
    if (dims[i] == 0) return NULL;
  }
  for (size_t i = 0; i < rank; ++i) {
    if (dims[i] == 1 || given[i] == row_major[i]) continue;
    return mp_status_make(MP_UNIMPLEMENTED,
                          "%s: device memory is row-major; another layout was asked for", function);
  }
  return NULL;
}
