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

// Copies a box of `size` from `src` (an array of `src_dims`, at `src_start`) to `dst` (`dst_dims`,
// at `dst_start`). The arrays must not overlap. Nothing happens when a size is 0.
void mp_box_copy(uint32_t rank, const int64_t *size, size_t element_size, const void *src,
                 const int64_t *src_dims, const int64_t *src_start, void *dst,
                 const int64_t *dst_dims, const int64_t *dst_start);
// The same, with `copy` for each run of neighbours.
void mp_box_copy_by(mp_copy_fn_t copy, uint32_t rank, const int64_t *size, size_t element_size,
                    const void *src, const int64_t *src_dims, const int64_t *src_start, void *dst,
                    const int64_t *dst_dims, const int64_t *dst_start);

#endif  // MINIPOD_SIM_NUMERIC_BOX_H_
