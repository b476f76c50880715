// Layouts: orders of dimensions in memory, and strides of host memory.

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "pjrt/pjrt_objects.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/proto.h"
#include "sim/ir/layout.h"
#include "sim/numeric/dims.h"

// All orders ever requested. There are few, and callers may keep them for ever, so none is freed.
// The list only grows at its head, and has no lock, because in a forked child a lock could be held
// for ever.
static _Atomic(PJRT_Layouts_MemoryLayout *) layouts;

static PJRT_Layouts_MemoryLayout *pjrt_layout_find_layout(PJRT_Layouts_MemoryLayout *layout,
                                                          const int64_t *minor_to_major,
                                                          size_t rank) {
  for (; layout != NULL; layout = layout->next) {
    if (layout->rank != rank) continue;
    if (memcmp(layout->minor_to_major, minor_to_major, rank * sizeof(int64_t)) == 0) break;
  }
  return layout;
}

static PJRT_Layouts_MemoryLayout *pjrt_layout_make_layout(const int64_t *minor_to_major,
                                                          size_t rank) {
  PJRT_Layouts_MemoryLayout *layout = mp_calloc(1, sizeof(*layout));
  if (layout == NULL) return NULL;
  MP_ASSERT(rank <= MP_MAX_RANK);
  layout->rank = rank;
  layout->is_row_major = mp_layout_is_row_major(minor_to_major, (uint32_t)rank);
  char *text = layout->text;
  *text++ = '{';
  for (size_t i = 0; i < rank; ++i) {
    layout->minor_to_major[i] = minor_to_major[i];
    text += sprintf(text, "%s%d", i == 0 ? "" : ",", (int)minor_to_major[i]);
  }
  MP_ASSERT(text + 1 < layout->text + sizeof(layout->text));
  *text = '}';
  return layout;
}

mp_status_t mp_pjrt_layout_get(const int64_t *minor_to_major, size_t rank,
                               PJRT_Layouts_MemoryLayout **out_layout) {
  PJRT_Layouts_MemoryLayout *head = atomic_load(&layouts);
  PJRT_Layouts_MemoryLayout *found = pjrt_layout_find_layout(head, minor_to_major, rank);
  PJRT_Layouts_MemoryLayout *fresh = NULL;
  while (found == NULL) {
    if (fresh == NULL) fresh = pjrt_layout_make_layout(minor_to_major, rank);
    MP_RETURN_IF_NULL(fresh);
    fresh->next = head;
    // Publishes the layout. Fails if another one came first, which may be the same layout.
    if (atomic_compare_exchange_weak(&layouts, &head, fresh)) {
      *out_layout = fresh;
      return NULL;
    }
    found = pjrt_layout_find_layout(head, minor_to_major, rank);  // another thread was faster
  }
  mp_free(fresh);
  *out_layout = found;
  return NULL;
}

mp_status_t mp_pjrt_layout_row_major(size_t rank, PJRT_Layouts_MemoryLayout **out_layout) {
  int64_t minor_to_major[MP_MAX_RANK];
  MP_ASSERT(rank <= MP_MAX_RANK);
  for (size_t i = 0; i < rank; ++i) minor_to_major[i] = (int64_t)(rank - 1 - i);
  return mp_pjrt_layout_get(minor_to_major, rank, out_layout);
}

void mp_pjrt_layout_to_memory(const PJRT_Layouts_MemoryLayout *layout, const int64_t *values,
                              size_t rank, int64_t *out_values) {
  for (size_t k = 0; k < rank; ++k) {
    size_t from = k;
    if (layout != NULL) {
      from = (size_t)mp_layout_logical(layout->minor_to_major, (uint32_t)rank, (uint32_t)k);
    }
    out_values[k] = values[from];
  }
}

static mp_status_t pjrt_layout_tiled_strides(const char *function,
                                             const PJRT_Buffer_MemoryLayout_Tiled *tiled,
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
    stride = mp_dims_next_stride(stride, dims[dim]);
  }
  return NULL;
}

mp_status_t mp_pjrt_layout_strides(const char *function, const PJRT_Buffer_MemoryLayout *layout,
                                   const int64_t *dims, size_t rank, size_t item_size,
                                   int64_t *out_strides) {
  if (layout == NULL) {
    int64_t stride = (int64_t)item_size;
    for (size_t i = rank; i-- > 0; stride = mp_dims_next_stride(stride, dims[i])) {
      out_strides[i] = stride;
    }
    return NULL;
  }
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Tiled) {
    return pjrt_layout_tiled_strides(function, &layout->tiled, dims, rank, item_size, out_strides);
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

// The order of dimensions of dense strides, minor to major; false when the strides are not dense.
// Dimensions of one element may have any stride. Among dimensions with equal strides, the later one
// counts as the more minor one.
static bool pjrt_layout_order_of_strides(const int64_t *strides, const int64_t *dims, size_t rank,
                                         size_t item_size, int64_t *out_minor_to_major) {
  for (size_t i = 0; i < rank; ++i) {
    size_t at = i;
    // Sorting by insertion.
    int64_t dim = (int64_t)(rank - 1 - i);
    while (at > 0 && strides[out_minor_to_major[at - 1]] > strides[dim]) {
      out_minor_to_major[at] = out_minor_to_major[at - 1];
      --at;
    }
    out_minor_to_major[at] = dim;
  }
  int64_t wanted = (int64_t)item_size;
  for (size_t i = 0; i < rank; ++i) {
    int64_t dim = out_minor_to_major[i];
    if (dims[dim] != 1 && strides[dim] != wanted) return false;
    wanted *= dims[dim];
  }
  return true;
}

// Reads a caller's layout of device memory, which has tiles or strides (`item_size`: bytes of an
// element); NULL for row-major ones.
static mp_status_t pjrt_layout_read(const char *function, const PJRT_Buffer_MemoryLayout *layout,
                                    const int64_t *dims, size_t rank, size_t item_size,
                                    const PJRT_Layouts_MemoryLayout **out_layout) {
  *out_layout = NULL;
  if (layout == NULL) return NULL;
  int64_t strides[MP_MAX_RANK], order[MP_MAX_RANK];
  MP_RETURN_IF_ERROR(mp_pjrt_layout_strides(function, layout, dims, rank, item_size, strides));
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Tiled) {
    for (size_t i = 0; i < rank; ++i) order[i] = layout->tiled.minor_to_major[i];
  } else {
    for (size_t i = 0; i < rank; ++i) {
      if (dims[i] == 0) return NULL;  // no bytes, no layout
    }
    if (!pjrt_layout_order_of_strides(strides, dims, rank, item_size, order)) {
      return mp_status_make(MP_UNIMPLEMENTED, "%s: device memory has no gaps between elements",
                            function);
    }
  }
  if (mp_layout_is_row_major(order, (uint32_t)rank)) return NULL;
  PJRT_Layouts_MemoryLayout *found = NULL;
  MP_RETURN_IF_ERROR(mp_pjrt_layout_get(order, rank, &found));
  *out_layout = found;
  return NULL;
}

mp_status_t mp_pjrt_shape_read(const char *function, PJRT_Buffer_Type type, const int64_t *dims,
                               size_t num_dims, const PJRT_Buffer_MemoryLayout *layout,
                               mp_pjrt_shape_t *out_shape) {
  mp_pjrt_shape_t shape = {.rank = (uint32_t)num_dims};
  MP_RETURN_IF_ERROR(mp_pjrt_check_shape(function, type, dims, num_dims, &shape.dtype));
  MP_RETURN_IF_ERROR(pjrt_layout_read(function, layout, dims, num_dims, mp_dtype_size(shape.dtype),
                                      &shape.layout));
  mp_pjrt_layout_to_memory(shape.layout, dims, num_dims, shape.dims);
  *out_shape = shape;
  return NULL;
}

// ---- canonical shapes ----

static void pjrt_layout_delete_shape(const char *serialized_shape) {
  mp_free((char *)serialized_shape);
}

// ShapeProto (2 element_type, 3 dimensions, 5 layout with 1 minor_to_major, 6
// is_dynamic_dimension). All memories hold arrays row-major, so the canonical layout is the same
// for each.
mp_status_t mp_PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace(
    PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args *args) {
  mp_dtype_t dtype = MP_DTYPE_INVALID;
  MP_RETURN_IF_ERROR(
      mp_pjrt_check_shape(__func__, args->element_type, args->dims, args->num_dims, &dtype));
  PJRT_Layouts_MemoryLayout *row_major = NULL;
  MP_RETURN_IF_ERROR(mp_pjrt_layout_row_major(args->num_dims, &row_major));
  static const int64_t not_dynamic[MP_MAX_RANK] = {0};
  mp_strbuf_t shape, layout;
  mp_strbuf_init(&shape);
  mp_strbuf_init(&layout);
  mp_proto_put_packed(&layout, 1, row_major->minor_to_major, args->num_dims);
  mp_proto_put_varint(&shape, 2, (uint64_t)mp_dtype_number(dtype, MP_NUMBERS_XLA));
  mp_proto_put_packed(&shape, 3, args->dims, args->num_dims);
  mp_proto_put_message(&shape, 5, &layout);
  mp_proto_put_packed(&shape, 6, not_dynamic, args->num_dims);
  mp_strbuf_deinit(&layout);
  size_t size = 0;
  char *bytes = mp_strbuf_take(&shape, &size);
  MP_RETURN_IF_NULL(bytes);
  args->serialized_shape = bytes;
  args->serialized_shape_size = size;
  args->serialized_shape_deleter = pjrt_layout_delete_shape;
  return NULL;
}
