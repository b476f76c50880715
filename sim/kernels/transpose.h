// Transposition of matrices with any distances between rows and columns.
#ifndef MINIPOD_SIM_KERNELS_TRANSPOSE_H_
#define MINIPOD_SIM_KERNELS_TRANSPOSE_H_

#include <stddef.h>
#include <stdint.h>

// `height` rows of `width` elements. Rows are `dst_step` bytes apart in the destination, columns
// `src_step` bytes in the source.
typedef struct {
  int64_t height, width, dst_step, src_step;
} mp_matrix_t;

// Element r of column c becomes element c of row r. Column c is contiguous at src + c * src_step,
// row r at dst + r * dst_step. Elements have 1, 2, 4, 8 or 16 bytes and need no alignment. The two
// sides must not overlap.
void mp_transpose(const mp_matrix_t *matrix, size_t element_bytes, void *dst, const void *src);

#endif  // MINIPOD_SIM_KERNELS_TRANSPOSE_H_
