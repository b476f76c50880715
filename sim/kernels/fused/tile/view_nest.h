// Copies of short rows.
#ifndef MINIPOD_SIM_KERNELS_FUSED_TILE_VIEW_NEST_H_
#define MINIPOD_SIM_KERNELS_FUSED_TILE_VIEW_NEST_H_

#include <stddef.h>
#include <stdint.h>

// For rows of fewer elements, mp_view_nest is the fastest copy.
enum { MP_VIEW_SHORT_ROW = 12 };

// Copies `rows` rows of `width` elements of `size` bytes (1, 2, 4, 8 or 16) to `to`, where they
// follow each other. Row i begins i * row_stride elements after `from`, and its elements are
// `stride` elements apart. Both arrays are aligned to elements, and do not overlap.
void mp_view_nest(size_t size, const void *from, int64_t rows, int64_t row_stride, int64_t width,
                  int64_t stride, void *to);

#endif  // MINIPOD_SIM_KERNELS_FUSED_TILE_VIEW_NEST_H_
