// Transposition of matrices with any distances between rows and columns.
#ifndef MINIPOD_SIM_KERNELS_TRANSPOSE_H_
#define MINIPOD_SIM_KERNELS_TRANSPOSE_H_

#include <stddef.h>
#include <stdint.h>

// Element r of column c becomes element c of row r. Column c is contiguous at src + c * src_step,
// row r at dst + r * dst_step. There are `height` rows of `width` elements of 1, 2, 4, 8 or 16
// bytes, which need no alignment. The two sides must not overlap.
void mp_transpose(size_t element_bytes, int64_t height, int64_t width, void *dst, int64_t dst_step,
                  const void *src, int64_t src_step);

#endif  // MINIPOD_SIM_KERNELS_TRANSPOSE_H_
