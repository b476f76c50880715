// Products of dimensions, and boxes of them. Dimensions are sizes, in elements, major to minor;
// `dims` may be NULL when there are none.
#ifndef MINIPOD_SIM_NUMERIC_DIMS_H_
#define MINIPOD_SIM_NUMERIC_DIMS_H_

#include <stdbool.h>
#include <stdint.h>

// The product of dims[begin .. end): 1 for no dimensions, 0 when one of them is 0, whatever the
// others are. False, and nothing written, when it does not fit 64 bits or a dimension is negative.
static inline bool mp_dims_count(const int64_t *dims, uint32_t begin, uint32_t end,
                                 int64_t *out_count) {
  int64_t count = 1;
  bool fits = true, is_empty = false;
  for (uint32_t d = begin; d < end; ++d) {
    if (dims[d] < 0 || __builtin_mul_overflow(count, dims[d], &count)) fits = false;
    if (dims[d] == 0) is_empty = true;
  }
  if (!fits && !is_empty) return false;
  *out_count = is_empty ? 0 : count;
  return true;
}

// The same for dimensions whose product is known to fit, as those of verified types; INT64_MAX if
// it does not.
static inline int64_t mp_dims_product(const int64_t *dims, uint32_t begin, uint32_t end) {
  int64_t product = INT64_MAX;
  (void)mp_dims_count(dims, begin, end, &product);
  return product;
}

// Whether a box of these dimensions is one piece of the array's memory: behind the first dimension
// in which it has more than one element, it has all of them.
static inline bool mp_dims_is_piece(const int64_t *array, const int64_t *box, uint32_t rank) {
  uint32_t d = 0;
  while (d < rank && box[d] == 1) ++d;
  for (++d; d < rank; ++d) {
    if (box[d] != array[d]) return false;
  }
  return true;
}

// The stride of the next dimension, after one of this stride and size: their product, or 0 where it
// does not fit, which only happens where the array has no elements and so no strides either.
static inline int64_t mp_dims_next_stride(int64_t stride, int64_t dim) {
  int64_t next = 0;
  return __builtin_mul_overflow(stride, dim, &next) ? 0 : next;
}

#endif  // MINIPOD_SIM_NUMERIC_DIMS_H_
