// Reading views whose innermost dimension is short: two dimensions at a time, element by element. A
// function for longer runs would take longer to call than to run.
#include "sim/kernels/fused/tile/view_nest.h"

// `rows` rows of `width` elements, which follow each other at `to`. Row i begins i * row_stride
// elements after `from`, and its elements are `stride` elements apart.
#define NEST(T)                                                                           \
  static inline void rows_##T(const T *restrict from, int64_t rows, int64_t row_stride,   \
                              int64_t width, int64_t stride, T *restrict to) {            \
    for (int64_t i = 0; i < rows; ++i, from += row_stride, to += width) {                 \
      for (int64_t k = 0; k < width; ++k) to[k] = from[k * stride];                       \
    }                                                                                     \
  }                                                                                       \
  static void nest_##T(const void *from, int64_t rows, int64_t row_stride, int64_t width, \
                       int64_t stride, void *to) {                                        \
    switch (width) {                                                                      \
      case 1:                                                                             \
        rows_##T(from, rows, row_stride, 1, stride, to);                                  \
        break;                                                                            \
      case 2:                                                                             \
        rows_##T(from, rows, row_stride, 2, stride, to);                                  \
        break;                                                                            \
      case 3:                                                                             \
        rows_##T(from, rows, row_stride, 3, stride, to);                                  \
        break;                                                                            \
      case 4:                                                                             \
        rows_##T(from, rows, row_stride, 4, stride, to);                                  \
        break;                                                                            \
      default:                                                                            \
        rows_##T(from, rows, row_stride, width, stride, to);                              \
        break;                                                                            \
    }                                                                                     \
  }

typedef struct {
  uint64_t low, high;
} pair_t;

NEST(uint8_t)
NEST(uint16_t)
NEST(uint32_t)
NEST(uint64_t)
NEST(pair_t)

void mp_view_nest(size_t size, const void *from, int64_t rows, int64_t row_stride, int64_t width,
                  int64_t stride, void *to) {
  switch (size) {
    case 1:
      nest_uint8_t(from, rows, row_stride, width, stride, to);
      break;
    case 2:
      nest_uint16_t(from, rows, row_stride, width, stride, to);
      break;
    case 4:
      nest_uint32_t(from, rows, row_stride, width, stride, to);
      break;
    case 8:
      nest_uint64_t(from, rows, row_stride, width, stride, to);
      break;
    default:
      nest_pair_t(from, rows, row_stride, width, stride, to);
      break;
  }
}
