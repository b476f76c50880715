// Words of elements that are narrower than a byte.
//
// Such an element has a byte of its own here (sim/numeric/dtype.h). So a memref of 4-bit elements
// that is seen as one of 32-bit words has no words in memory: a word consists of 8 stored bytes of
// which the lower halves count. Copies join and spread them.
#include <string.h>

#include "sim/base/vector.h"
#include "sim/mosaic/run/mosaic_view.h"

bool mp_mosaic_view_bitcast_narrow(const mp_mosaic_view_t *view, int bits,
                                   const mp_mosaic_type_t *type, mp_mosaic_view_t *out_view) {
  mp_mosaic_view_t out = *view;
  const uint32_t d = view->rank - 2;
  const int64_t pack = mp_dtype_bits(type->dtype) / bits;
  if (view->rank < 2 || type->rank != view->rank || view->split != 1 || view->pack != 1 ||
      view->beyond[d] != 0 || 8 % bits != 0 || type->dims[d] * pack != view->dims[d]) {
    return false;
  }
  out.element = (uint32_t)mp_dtype_size(type->dtype);
  out.dims[d] = type->dims[d];
  out.room[d] = (uint16_t)(view->room[d] / pack);
  out.pack = (uint32_t)pack;
  out.pack_step = view->strides[d];
  out.strides[d] *= pack;
  out.part_bits = (uint32_t)bits;
  *out_view = out;
  return true;
}

// ---- copies ----

// `word` and `part` are the bytes from one word or part to the next, and a part has `bits` bits.
MP_VECTOR static void mosaic_view_narrow_join(uint8_t *words, int64_t word, const uint8_t *parts,
                                              int64_t part, uint32_t bits, uint32_t shift,
                                              int64_t count) {
  const uint8_t mask = (uint8_t)((1u << bits) - 1);
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t below = shift == 0 ? 0 : words[i * word];
    words[i * word] = (uint8_t)(below | (parts[i * part] & mask) << shift);
  }
}

MP_VECTOR static void mosaic_view_narrow_spread(const uint8_t *words, int64_t word, uint8_t *parts,
                                                int64_t part, uint32_t bits, uint32_t shift,
                                                int64_t count) {
  const uint8_t mask = (uint8_t)((1u << bits) - 1);
  for (int64_t i = 0; i < count; ++i) parts[i * part] = words[i * word] >> shift & mask;
}

static void mosaic_view_narrow_row(const mp_mosaic_view_t *narrow, char *parts, int64_t part,
                                   char *words, int64_t word, int64_t count, bool joins) {
  for (uint32_t p = 0; p < narrow->pack; ++p) {
    const uint32_t bit = p * narrow->part_bits;
    uint8_t *at = (uint8_t *)parts + p * narrow->pack_step, *byte = (uint8_t *)words + bit / 8;
    if (joins) {
      mosaic_view_narrow_join(byte, word, at, part, narrow->part_bits, bit % 8, count);
    } else {
      mosaic_view_narrow_spread(byte, word, at, part, narrow->part_bits, bit % 8, count);
    }
  }
}

static void mosaic_view_narrow_rows(const mp_mosaic_view_t *narrow, const mp_mosaic_view_t *wide,
                                    bool joins) {
  const uint32_t last = narrow->rank - 1;
  int64_t rows = 1;
  for (uint32_t d = 0; d < last; ++d) rows *= narrow->dims[d];
  for (int64_t i = 0; i < rows; ++i) {
    char *parts = narrow->base + mp_mosaic_view_offset(narrow->dims, narrow->strides, last, i);
    char *words = wide->base + mp_mosaic_view_offset(wide->dims, wide->strides, last, i);
    mosaic_view_narrow_row(narrow, parts, narrow->strides[last], words, wide->strides[last],
                           narrow->dims[last], joins);
  }
}

mp_status_t mp_mosaic_view_copy_narrow(const mp_mosaic_view_t *to, const mp_mosaic_view_t *from) {
  const bool joins = from->part_bits != 0;
  const mp_mosaic_view_t *narrow = joins ? from : to, *wide = joins ? to : from;
  if (wide->pack != 1 || wide->split != 1 || narrow->rank == 0) {
    return mp_status_make(MP_UNIMPLEMENTED,
                          "a copy between words of elements of %u bits and packed words",
                          narrow->part_bits);
  }
  mosaic_view_narrow_rows(narrow, wide, joins);
  return NULL;
}
