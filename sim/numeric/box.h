// Boxes: axis-aligned parts of dense row-major arrays, and copies between them.
//
// A box is [start, start + size) per dimension. Sizes and starts are in elements. All functions are
// pure; arrays belong to the caller.
#ifndef MINIPOD_SIM_NUMERIC_BOX_H_
#define MINIPOD_SIM_NUMERIC_BOX_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/numeric/copy.h"

enum { MP_BOX_MAX_RANK = 32 };

// The common part of two boxes; false, and nothing written, when it is empty. Boxes of rank 0 are
// one element and always have it in common.
bool mp_box_intersect(uint32_t rank, const int64_t *start_a, const int64_t *size_a,
                      const int64_t *start_b, const int64_t *size_b, int64_t *out_start,
                      int64_t *out_size);

// A copy of a box of `size` from an array of `src_dims`, where it begins at `src_start`, to one of
// `dst_dims`, at `dst_start`. The arrays do not overlap.
typedef struct {
  uint32_t rank;
  size_t element_size;
  const int64_t *size;  // [rank], as all lists here; nothing is copied if one is 0
  const void *src;
  const int64_t *src_dims, *src_start;
  void *dst;
  const int64_t *dst_dims, *dst_start;
} mp_box_copy_t;

void mp_box_copy(const mp_box_copy_t *box);
// The same, with `copy` for each run of neighbours.
void mp_box_copy_by(mp_copy_fn_t copy, const mp_box_copy_t *box);

#endif  // MINIPOD_SIM_NUMERIC_BOX_H_
