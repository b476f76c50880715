// Strided copies, with which all data movement is done.
//
// A copy moves an n-dimensional box; both sides have a byte stride per dimension. A source stride
// of 0 broadcasts, a negative one reverses. Dimensions are in the destination's order, outermost
// first. Destination elements must not overlap each other or the source.
//
// A copy is described once (mp_strided_init, mp_strided_add_dim, mp_strided_finish) and may then be
// run by any number of threads.
#ifndef MINIPOD_SIM_KERNELS_STRIDED_H_
#define MINIPOD_SIM_KERNELS_STRIDED_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/assert.h"
#include "sim/ir/module.h"

typedef struct {
  int64_t extent;
  int64_t dst;  // bytes from one element to the next
  int64_t src;
} mp_strided_dim_t;

typedef struct {
  uint32_t rank;
  uint32_t element;  // bytes: 1, 2, 4, 8 or 16
  uint32_t split;    // the dimension that parts cut, set by mp_strided_finish
  bool empty;
  mp_strided_dim_t dims[MP_MAX_RANK];
} mp_strided_t;

// Begins the description of a copy of one element of `element` bytes.
static inline void mp_strided_init(mp_strided_t *copy, size_t element) {
  copy->rank = 0;
  copy->element = (uint32_t)element;
  copy->split = 0;
  copy->empty = false;
}

// Adds a dimension within the others; `dst` and `src` are the strides in bytes.
static inline void mp_strided_add_dim(mp_strided_t *copy, int64_t extent, int64_t dst,
                                      int64_t src) {
  MP_ASSERT(copy->rank < MP_MAX_RANK);
  copy->dims[copy->rank++] = (mp_strided_dim_t){extent, dst, src};
}

// Ends the description. Dimensions of one element are dropped, dimensions that are contiguous on
// both sides become one, and short contiguous runs become wider elements.
void mp_strided_finish(mp_strided_t *copy);

// The number of parts that is worth while for the copy; mp_strided_run_part can cut it into so
// many.
uint32_t mp_strided_num_parts(const mp_strided_t *copy);

// Does the whole copy.
void mp_strided_run(const mp_strided_t *copy, void *dst, const void *src);

// Does one of `num_parts` disjoint parts of the copy.
void mp_strided_run_part(const mp_strided_t *copy, void *dst, const void *src, uint32_t num_parts,
                         uint32_t part);

// Copies `count` elements that are `dst_step` and `src_step` bytes apart.
void mp_copy_line(void *dst, int64_t dst_step, const void *src, int64_t src_step,
                  size_t element_bytes, int64_t count);

// Writes `count` copies of one element.
void mp_fill(void *dst, const void *element, size_t element_bytes, int64_t count);

// Writes the elements of a constant op, one after the other. False: they are stored in another
// form, and nothing was written.
bool mp_copy_constant(const mp_op_t *op, void *dst);

#endif  // MINIPOD_SIM_KERNELS_STRIDED_H_
