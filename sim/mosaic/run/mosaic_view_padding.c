// Arrays in HBM with the padding of their tiles.
//
// A TPU's compiler lays such an array out in tiles of 128 columns and up to 8 rows, and checks a
// DMA against all of its last tile: libtpu 0.0.52 copies 8 rows from row 8 on of an f32 array
// of 12. What is there, no program may depend on. So an array is stored without padding here.
//
// What a DMA reads there is a small number, and not NaN as in other memory that nothing has
// written: kernels multiply it by zeros (gmm_v2 of MaxText and tokamax).
#include "sim/mosaic/run/mosaic_unset.h"
#include "sim/mosaic/run/mosaic_view.h"

// ---- room ----

enum { MOSAIC_VIEW_LANES = 128, MOSAIC_VIEW_SUBLANES = 8 };

// A tile of fewer rows is the next power of two, and whole words of 32 bits.
static int64_t mosaic_view_padding_tile_rows(int64_t rows, int bits) {
  int64_t tile = bits < 32 && bits > 1 ? 32 / bits : 1;
  while (tile < rows && tile < MOSAIC_VIEW_SUBLANES) tile *= 2;
  return tile;
}

static uint16_t mosaic_view_padding_room(int64_t size, int64_t tile) {
  return (uint16_t)((tile - size % tile) % tile);
}

void mp_mosaic_view_make_room(const mp_mosaic_type_t *type, mp_mosaic_view_t *view) {
  const bool is_in_hbm = type->space == MP_MOSAIC_SPACE_ANY || type->space == MP_MOSAIC_SPACE_HBM;
  const int bits = type->element == MP_MOSAIC_NUMBER ? mp_dtype_bits(type->dtype) : 0;
  if (!is_in_hbm || bits == 0 || type->rank == 0) return;
  const uint32_t d = type->rank - 1;
  if (type->rank > 1) {
    view->room[d] = mosaic_view_padding_room(view->dims[d], MOSAIC_VIEW_LANES);
    view->room[d - 1] = mosaic_view_padding_room(
        view->dims[d - 1], mosaic_view_padding_tile_rows(view->dims[d - 1], bits));
  } else {  // its tile's rows follow one another
    const int64_t rows = (view->dims[d] + MOSAIC_VIEW_LANES - 1) / MOSAIC_VIEW_LANES;
    view->room[d] = mosaic_view_padding_room(
        view->dims[d], MOSAIC_VIEW_LANES * mosaic_view_padding_tile_rows(rows, bits));
  }
}

// ---- copies ----

// The part of a view that is padding neither in it nor in the other one, which has the same sizes.
static mp_mosaic_view_t mosaic_view_padding_common(const mp_mosaic_view_t *view,
                                                   const mp_mosaic_view_t *other) {
  const mp_mosaic_view_t bound = mp_mosaic_view_kept(other);
  mp_mosaic_view_t common = mp_mosaic_view_kept(view);
  for (uint32_t d = 0; d < view->rank; ++d) {
    if (bound.dims[d] < common.dims[d]) common.dims[d] = bound.dims[d];
  }
  return common;
}

static mp_status_t mosaic_view_padding_unset_piece(void *context, char *at, size_t bytes) {
  const mp_mosaic_type_t *type = context;
  mp_mosaic_unset_otherwise(type, 0, at, bytes);
  return NULL;
}

static mp_status_t mosaic_view_padding_unset(const mp_mosaic_view_t *view, mp_dtype_t dtype) {
  mp_mosaic_type_t type = {.element = MP_MOSAIC_NUMBER, .dtype = dtype};
  return mp_mosaic_view_walk(view, NULL, mosaic_view_padding_unset_piece, &type);
}

mp_status_t mp_mosaic_view_dma(const mp_mosaic_view_t *to, const mp_mosaic_view_t *from,
                               mp_dtype_t dtype) {
  const bool is_padded = mp_mosaic_view_is_padded(to) || mp_mosaic_view_is_padded(from);
  if (!is_padded || !mp_mosaic_view_has_sizes_of(to, from)) return mp_mosaic_view_copy(to, from);
  const mp_mosaic_view_t kept = mp_mosaic_view_kept(to);
  const mp_mosaic_view_t into = mosaic_view_padding_common(to, from);
  const mp_mosaic_view_t out_of = mosaic_view_padding_common(from, to);
  const bool is_less = mp_mosaic_view_count(&into) < mp_mosaic_view_count(&kept);
  if (is_less) MP_RETURN_IF_ERROR(mosaic_view_padding_unset(&kept, dtype));
  return mp_mosaic_view_copy(&into, &out_of);
}

mp_status_t mp_mosaic_view_dma_read(const mp_mosaic_view_t *from, mp_dtype_t dtype,
                                    void *elements) {
  if (!mp_mosaic_view_is_padded(from)) return mp_mosaic_view_read(from, elements);
  const mp_mosaic_view_t to = mp_mosaic_view_of_elements(from, elements);
  return mp_mosaic_view_dma(&to, from, dtype);
}

mp_status_t mp_mosaic_view_dma_write(const mp_mosaic_view_t *to, const void *elements) {
  if (!mp_mosaic_view_is_padded(to)) return mp_mosaic_view_write(to, elements);
  const mp_mosaic_view_t from = mp_mosaic_view_of_elements(to, (char *)elements);  // is only read
  return mp_mosaic_view_dma(to, &from, MP_DTYPE_U8);
}
