#include "sim/mosaic/run/mosaic_view.h"

#include <string.h>

#include "sim/base/vector.h"
#include "sim/kernels/strided.h"

uint32_t mp_mosaic_element_bytes(const mp_mosaic_type_t *type) {
  return type->element == MP_MOSAIC_NUMBER ? (uint32_t)mp_dtype_size(type->dtype) : 8;
}

void mp_mosaic_view_dense(const mp_mosaic_type_t *type, char *base, uint32_t root,
                          mp_mosaic_view_t *out_view) {
  *out_view = (mp_mosaic_view_t){.base = base,
                                 .rank = type->rank,
                                 .element = mp_mosaic_element_bytes(type),
                                 .pack = 1,
                                 .split = 1,
                                 .root = root};
  int64_t stride = out_view->element;
  for (uint32_t d = type->rank; d-- > 0;) {
    out_view->dims[d] = type->dims[d];
    out_view->strides[d] = stride;
    stride *= type->dims[d];
  }
}

int64_t mp_mosaic_view_count(const mp_mosaic_view_t *view) {
  int64_t count = 1;
  for (uint32_t d = 0; d < view->rank; ++d) count *= view->dims[d];
  return count;
}

int64_t mp_mosaic_view_bytes(const mp_mosaic_view_t *view) {
  const uint32_t bytes = view->part_bits != 0 ? view->pack : view->element;
  return mp_mosaic_view_count(view) * bytes;
}

mp_mosaic_view_t mp_mosaic_view_of_elements(const mp_mosaic_view_t *view, char *elements) {
  mp_mosaic_view_t dense = {
      .base = elements, .rank = view->rank, .element = view->element, .pack = 1, .split = 1};
  int64_t stride = view->element;
  for (uint32_t d = view->rank; d-- > 0;) {
    dense.dims[d] = view->dims[d];
    dense.strides[d] = stride;
    stride *= view->dims[d];
  }
  return dense;
}

bool mp_mosaic_view_has_sizes_of(const mp_mosaic_view_t *view, const mp_mosaic_view_t *other) {
  return view->rank == other->rank &&
         memcmp(view->dims, other->dims, view->rank * sizeof(*view->dims)) == 0;
}

bool mp_mosaic_view_is_dense(const mp_mosaic_view_t *view) {
  int64_t stride = view->element;
  if (view->pack != 1 || view->split != 1) return false;
  for (uint32_t d = view->rank; d-- > 0;) {
    if (view->dims[d] != 1 && view->strides[d] != stride) return false;
    stride *= view->dims[d];
  }
  return true;
}

// ---- padding ----

bool mp_mosaic_view_is_padded(const mp_mosaic_view_t *view) {
  for (uint32_t d = 0; d < view->rank; ++d) {
    if (view->beyond[d] != 0) return true;
  }
  return false;
}

mp_mosaic_view_t mp_mosaic_view_kept(const mp_mosaic_view_t *view) {
  mp_mosaic_view_t kept = *view;
  for (uint32_t d = 0; d < view->rank; ++d) {
    kept.dims[d] -= view->beyond[d];
    kept.beyond[d] = 0;
  }
  return kept;
}

// ---- parts ----

static mp_status_t mosaic_view_check(const mp_mosaic_view_t *view, uint32_t d, int64_t start,
                                     int64_t size, int64_t step, int64_t room) {
  const int64_t most = view->dims[d] - view->beyond[d], last = most + room;
  const bool fits = step == 0 || size - 1 <= (last - 1) / step;
  const bool is_in = size == 0 || (start >= 0 && size > 0 && start < most && fits &&
                                   start <= last - 1 - (size - 1) * step);
  if (is_in) return NULL;
  return mp_status_make(
      MP_OUT_OF_RANGE, "elements %lld to %lld of dimension %u are outside of its %lld elements",
      (long long)start, (long long)(start + (size - 1) * step), d, (long long)most);
}

// The part along the split dimension: with a step, single parts of stored elements.
static mp_status_t mosaic_view_part_split(const mp_mosaic_view_t *view, int64_t start, int64_t step,
                                          mp_mosaic_view_t *part) {
  const uint32_t d = view->split_dim;
  const int64_t first = start + view->phase;
  part->base += first / view->split * view->strides[d];
  part->phase = (uint32_t)(first % view->split);
  if (step == 1) return NULL;
  if (step % view->split != 0) {
    return mp_status_make(MP_UNIMPLEMENTED, "a step in a packed dimension");
  }
  part->base += part->phase * view->split_step;
  part->strides[d] = step / view->split * view->strides[d];
  part->split = 1;
  part->phase = 0;
  return NULL;
}

// How many of `size` elements lie behind the first `most`.
static uint16_t mosaic_view_beyond(int64_t most, int64_t start, int64_t size, int64_t step) {
  if (size == 0 || step == 0) return 0;
  const int64_t kept = (most - start + step - 1) / step;
  return (uint16_t)(kept < size ? size - kept : 0);
}

// `rooms`: how far the part may go into the padding of each dimension; NULL: not at all.
static mp_status_t mosaic_view_take(const mp_mosaic_view_t *view, const int64_t *starts,
                                    const int64_t *sizes, const int64_t *steps,
                                    const uint16_t *rooms, mp_mosaic_view_t *out_view) {
  mp_mosaic_view_t part = *view;
  for (uint32_t d = 0; d < view->rank; ++d) {
    const int64_t step = steps == NULL ? 1 : steps[d];
    const int64_t most = view->dims[d] - view->beyond[d], room = rooms == NULL ? 0 : rooms[d];
    MP_RETURN_IF_ERROR(mosaic_view_check(view, d, starts[d], sizes[d], step, room));
    part.dims[d] = sizes[d];
    part.beyond[d] = room == 0 ? 0 : mosaic_view_beyond(most, starts[d], sizes[d], step);
    part.room[d] = 0;
    if (sizes[d] == 0) continue;  // nothing, wherever it begins
    if (view->split != 1 && d == view->split_dim) {
      MP_RETURN_IF_ERROR(mosaic_view_part_split(view, starts[d], step, &part));
    } else {
      part.base += starts[d] * view->strides[d];
      part.strides[d] = view->strides[d] * step;
    }
  }
  *out_view = part;
  return NULL;
}

mp_status_t mp_mosaic_view_part(const mp_mosaic_view_t *view, const int64_t *starts,
                                const int64_t *sizes, const int64_t *steps,
                                mp_mosaic_view_t *out_view) {
  return mosaic_view_take(view, starts, sizes, steps, NULL, out_view);
}

mp_status_t mp_mosaic_view_slice(const mp_mosaic_view_t *view, const int64_t *starts,
                                 const int64_t *sizes, const int64_t *steps,
                                 mp_mosaic_view_t *out_view) {
  uint16_t rooms[MP_MOSAIC_MAX_RANK] = {0};
  for (uint32_t d = 0; d < view->rank; ++d) {
    rooms[d] = (uint16_t)(view->room[d] + view->beyond[d]);
  }
  return mosaic_view_take(view, starts, sizes, steps, rooms, out_view);
}

// ---- other shapes ----

static void mosaic_view_keep_dim(const mp_mosaic_view_t *view, uint32_t d, mp_mosaic_view_t *out) {
  if (view->split != 1 && d == view->split_dim) out->split_dim = out->rank;
  out->dims[out->rank] = view->dims[d];
  out->room[out->rank] = view->room[d];
  out->beyond[out->rank] = view->beyond[d];
  out->strides[out->rank++] = view->strides[d];
}

// A split dimension of one element goes: the view has single parts of stored elements then.
static void mosaic_view_drop_dim(const mp_mosaic_view_t *view, uint32_t d, mp_mosaic_view_t *out) {
  if (view->split == 1 || d != view->split_dim) return;
  out->base += view->phase * view->split_step;
  out->split = 1;
  out->phase = 0;
}

mp_status_t mp_mosaic_view_squeeze(const mp_mosaic_view_t *view, const mp_mosaic_type_t *type,
                                   mp_mosaic_view_t *out_view) {
  mp_mosaic_view_t out = *view;
  bool stays[MP_MOSAIC_MAX_RANK] = {false};
  uint32_t left = type->rank;
  // Where several dimensions of size 1 could go, it is the outermost ones.
  for (uint32_t d = view->rank; d-- > 0;) {
    stays[d] = left > 0 &&
               (type->dims[left - 1] == view->dims[d] || type->dims[left - 1] == MP_MOSAIC_DYNAMIC);
    if (stays[d]) --left;
    if (!stays[d] && view->dims[d] != 1) left = UINT32_MAX;
    if (left == UINT32_MAX) break;
  }
  if (left != 0) {
    return mp_status_make(MP_INVALID_ARGUMENT, "the squeezed shape is not the memref's");
  }
  out.rank = 0;
  for (uint32_t d = 0; d < view->rank; ++d) {
    (stays[d] ? mosaic_view_keep_dim : mosaic_view_drop_dim)(view, d, &out);
  }
  *out_view = out;
  return NULL;
}

// ---- other element types ----

static mp_status_t mosaic_view_refuse_bitcast(void) {
  return mp_status_make(MP_UNIMPLEMENTED, "this change of element types is not supported");
}

mp_status_t mp_mosaic_view_bitcast(const mp_mosaic_view_t *view, int bits,
                                   const mp_mosaic_type_t *type, mp_mosaic_view_t *out_view) {
  if (bits < 8 && mp_dtype_bits(type->dtype) != bits) {
    return mp_mosaic_view_bitcast_narrow(view, bits, type, out_view) ? NULL
                                                                     : mosaic_view_refuse_bitcast();
  }
  mp_mosaic_view_t out = *view;
  const uint32_t to = mp_mosaic_element_bytes(type), from = view->element;
  const uint32_t d = view->rank - 2;
  *out_view = out;
  if (to == from) return NULL;
  if (view->rank < 2 || type->rank != view->rank) return mosaic_view_refuse_bitcast();
  if (view->beyond[d] != 0) return mosaic_view_refuse_bitcast();
  out.element = to;
  out.dims[d] = type->dims[d];
  out.room[d] = to > from ? (uint16_t)(view->room[d] / (to / from)) : 0;
  if (view->split != 1) {
    if (to != from * view->split || view->split_step != from || view->split_dim != d ||
        view->phase != 0 || out.dims[d] * view->split != view->dims[d]) {
      return mosaic_view_refuse_bitcast();
    }
    out.split = 1;
    *out_view = out;
    return NULL;
  }
  if (to > from && view->pack == 1) {
    out.pack = to / from;
    out.pack_step = view->strides[d];
    out.strides[d] *= out.pack;
    if (out.dims[d] * out.pack != view->dims[d]) return mosaic_view_refuse_bitcast();
  } else if (to < from && view->pack == from / to) {
    out.pack = 1;
    out.strides[d] = view->pack_step;
  } else if (to < from && view->pack == 1) {
    out.split = from / to;
    out.split_step = to;
    out.split_dim = d;
    out.phase = 0;
  } else {
    return mosaic_view_refuse_bitcast();
  }
  *out_view = out;
  return NULL;
}

// ---- copies ----

// The view as a box of stored elements: the dimensions, and those of elements that are packed.
enum { MOSAIC_VIEW_MAX_BOX = MP_MOSAIC_MAX_RANK + 3 };
typedef struct {
  uint32_t rank, element;
  int64_t dims[MOSAIC_VIEW_MAX_BOX], strides[MOSAIC_VIEW_MAX_BOX];
} box_t;

static void mosaic_view_box_add(box_t *box, int64_t size, int64_t stride) {
  box->dims[box->rank] = size;
  box->strides[box->rank++] = stride;
}

static uint32_t mosaic_view_split_of(const mp_mosaic_view_t *view, uint32_t d) {
  return view->split != 1 && d == view->split_dim ? view->split : 1;
}

static mp_status_t mosaic_view_box_dim(const mp_mosaic_view_t *view, const mp_mosaic_view_t *other,
                                       uint32_t d, box_t *out) {
  const uint32_t own = mosaic_view_split_of(view, d), theirs = mosaic_view_split_of(other, d);
  const uint32_t split = own != 1 ? own : theirs;
  if (split == 1) {
    mosaic_view_box_add(out, view->dims[d], view->strides[d]);
    return NULL;
  }
  if ((own != 1 && view->phase != 0) || view->dims[d] % split != 0 ||
      (theirs != 1 && theirs != split)) {
    return mp_status_make(MP_UNIMPLEMENTED,
                          "a part of a packed memref that is not made of whole words");
  }
  const int64_t stride = view->strides[d];
  mosaic_view_box_add(out, view->dims[d] / split, own != 1 ? stride : stride * split);
  mosaic_view_box_add(out, split, own != 1 ? view->split_step : stride);
  return NULL;
}

// In pieces that `other` has, too, which has the same dimensions.
static mp_status_t mosaic_view_box(const mp_mosaic_view_t *view, const mp_mosaic_view_t *other,
                                   box_t *out) {
  const uint32_t pack = view->pack != 1 ? view->pack : other->pack;
  out->rank = 0;
  const uint32_t bits = view->part_bits != 0 ? view->part_bits : other->part_bits;
  out->element = bits != 0 ? 1 : view->element / pack;
  for (uint32_t d = 0; d < view->rank; ++d) {
    MP_RETURN_IF_ERROR(mosaic_view_box_dim(view, other, d, out));
  }
  if (pack != 1) mosaic_view_box_add(out, pack, view->pack != 1 ? view->pack_step : out->element);
  return NULL;
}

static void mosaic_view_box_copy(const box_t *box, char *to, const int64_t *to_strides,
                                 const char *from, const int64_t *from_strides) {
  mp_strided_t copy;
  mp_strided_init(&copy, box->element);
  for (uint32_t d = 0; d < box->rank; ++d) {
    mp_strided_add_dim(&copy, box->dims[d], to_strides[d], from_strides[d]);
  }
  mp_strided_finish(&copy);
  mp_strided_run(&copy, to, from);
}

// The distances in a dense array with the box's dimensions.
static void mosaic_view_dense_strides(const box_t *box, int64_t *out) {
  int64_t stride = box->element;
  for (uint32_t d = box->rank; d-- > 0;) {
    out[d] = stride;
    stride *= box->dims[d];
  }
}

// Words of two stored elements of 16 bits, whose rows are contiguous: bf16 as 32-bit integers.
MP_VECTOR static void mosaic_view_join_row(const uint16_t *low, const uint16_t *high, uint32_t *to,
                                           int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = low[i] | (uint32_t)high[i] << 16;
}

static bool mosaic_view_joins_rows(const mp_mosaic_view_t *view) {
  return view->pack == 2 && view->element == 4 && view->split == 1 && view->rank > 0 &&
         view->strides[view->rank - 1] == 2;
}

static void mosaic_view_join(const mp_mosaic_view_t *view, uint32_t *to) {
  const int64_t row = view->dims[view->rank - 1], count = mp_mosaic_view_count(view);
  for (int64_t i = 0; i < count; i += row, to += row) {
    const char *low =
        view->base + mp_mosaic_view_offset(view->dims, view->strides, view->rank - 1, i / row);
    mosaic_view_join_row((const uint16_t *)low, (const uint16_t *)(low + view->pack_step), to, row);
  }
}

mp_status_t mp_mosaic_view_read(const mp_mosaic_view_t *view, void *vector) {
  box_t box;
  int64_t strides[MOSAIC_VIEW_MAX_BOX];
  if (mosaic_view_joins_rows(view)) {
    mosaic_view_join(view, vector);
    return NULL;
  }
  if (view->part_bits != 0) {
    const mp_mosaic_view_t to = mp_mosaic_view_of_elements(view, vector);
    return mp_mosaic_view_copy_narrow(&to, view);
  }
  MP_RETURN_IF_ERROR(mosaic_view_box(view, view, &box));
  mosaic_view_dense_strides(&box, strides);
  mosaic_view_box_copy(&box, vector, strides, view->base, box.strides);
  return NULL;
}

mp_status_t mp_mosaic_view_write(const mp_mosaic_view_t *view, const void *vector) {
  box_t box;
  int64_t strides[MOSAIC_VIEW_MAX_BOX];
  if (view->part_bits != 0) {  // the vector is only read
    const mp_mosaic_view_t from = mp_mosaic_view_of_elements(view, (char *)vector);
    return mp_mosaic_view_copy_narrow(view, &from);
  }
  MP_RETURN_IF_ERROR(mosaic_view_box(view, view, &box));
  mosaic_view_dense_strides(&box, strides);
  mosaic_view_box_copy(&box, view->base, box.strides, vector, strides);
  return NULL;
}

mp_status_t mp_mosaic_view_copy(const mp_mosaic_view_t *to, const mp_mosaic_view_t *from) {
  box_t a, b;
  const bool is_narrow = to->part_bits != from->part_bits;
  const bool is_same = mp_mosaic_view_has_sizes_of(to, from) && to->element == from->element &&
                       (is_narrow || to->pack == from->pack || to->pack == 1 || from->pack == 1);
  if (!is_same) {
    return mp_status_make(MP_INVALID_ARGUMENT, "both sides of the copy have different sizes");
  }
  if (is_narrow) return mp_mosaic_view_copy_narrow(to, from);
  MP_RETURN_IF_ERROR(mosaic_view_box(to, from, &a));
  MP_RETURN_IF_ERROR(mosaic_view_box(from, to, &b));
  mosaic_view_box_copy(&a, to->base, a.strides, from->base, b.strides);
  return NULL;
}

// A row of elements; where the mask is zero, those of the row stay.
#define MOSAIC_VIEW_MASKED(T)                                                                   \
  MP_VECTOR static void mosaic_view_masked_##T(void *to, const void *from, const uint8_t *mask, \
                                               int64_t count) {                                 \
    T *t = to;                                                                                  \
    const T *f = from;                                                                          \
    for (int64_t i = 0; i < count; ++i) t[i] = mask[i] != 0 ? f[i] : t[i];                      \
  }

MOSAIC_VIEW_MASKED(uint8_t)
MOSAIC_VIEW_MASKED(uint16_t)
MOSAIC_VIEW_MASKED(uint32_t)
MOSAIC_VIEW_MASKED(uint64_t)

static void mosaic_view_masked_row(uint32_t element, void *to, const void *from,
                                   const uint8_t *mask, int64_t count) {
  switch (element) {
    case 1:
      mosaic_view_masked_uint8_t(to, from, mask, count);
      return;
    case 2:
      mosaic_view_masked_uint16_t(to, from, mask, count);
      return;
    case 4:
      mosaic_view_masked_uint32_t(to, from, mask, count);
      return;
    default:
      mosaic_view_masked_uint64_t(to, from, mask, count);
  }
}

mp_status_t mp_mosaic_view_write_masked(const mp_mosaic_view_t *view, const void *vector,
                                        const uint8_t *mask) {
  const uint32_t rank = view->rank, element = view->element;
  if (view->pack != 1 || view->split != 1) {
    return mp_status_make(MP_UNIMPLEMENTED, "a masked store to a packed memref");
  }
  const bool has_rows = rank != 0 && view->strides[rank - 1] == element;
  const int64_t row = has_rows ? view->dims[rank - 1] : 1;
  const int64_t count = mp_mosaic_view_count(view);
  const char *from = vector;
  for (int64_t i = 0; i < count; i += row, from += row * element, mask += row) {
    const int64_t at = mp_mosaic_view_offset(view->dims, view->strides, rank, i);
    mosaic_view_masked_row(element, view->base + at, from, mask, row);
  }
  return NULL;
}

// ---- pieces ----

// The inner dimensions that lie in one piece become its bytes.
static size_t mosaic_view_piece(box_t *box) {
  size_t bytes = box->element;
  while (box->rank > 0) {
    const uint32_t d = box->rank - 1;
    if (box->dims[d] != 1 && box->strides[d] != (int64_t)bytes) break;
    bytes *= (size_t)box->dims[d];
    --box->rank;
  }
  return bytes;
}

mp_status_t mp_mosaic_view_walk(const mp_mosaic_view_t *view, const uint8_t *mask,
                                mp_mosaic_view_see_t see, void *context) {
  box_t box;
  int64_t count = 1;
  if (mp_mosaic_view_is_padded(view)) {
    const mp_mosaic_view_t kept = mp_mosaic_view_kept(view);
    return mp_mosaic_view_walk(&kept, mask, see, context);
  }
  if (mp_mosaic_view_count(view) == 0) return NULL;
  if (view->split != 1 && mp_mosaic_view_count(view) == 1) {
    return see(context, view->base + view->phase * view->split_step, view->element);
  }
  MP_RETURN_IF_ERROR(mosaic_view_box(view, view, &box));
  const size_t bytes = mask == NULL ? mosaic_view_piece(&box) : box.element;
  for (uint32_t d = 0; d < box.rank; ++d) count *= box.dims[d];
  for (int64_t i = 0; i < count; ++i) {
    if (mask != NULL && mask[i] == 0) continue;
    const int64_t at = mp_mosaic_view_offset(box.dims, box.strides, box.rank, i);
    MP_RETURN_IF_ERROR(see(context, view->base + at, bytes));
  }
  return NULL;
}
