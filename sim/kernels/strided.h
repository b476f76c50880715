// Strided copies: the engine below all data movement.
//
// A copy walks an n-dimensional box; both sides have a byte stride per dimension. A source stride
// of 0 broadcasts, a negative one reverses. Dimensions are ordered as the destination's, outermost
// first. Destination elements must not overlap each other or the source.
//
// A copy is described once (mp_strided_add_dim, then mp_strided_finish) and then run from any
// number of threads.
#ifndef MINIPOD_SIM_KERNELS_STRIDED_H_
#define MINIPOD_SIM_KERNELS_STRIDED_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/assert.h"
#include "sim/ir/type.h"

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

static inline void mp_strided_init(mp_strided_t *copy, size_t element) {
  copy->rank = 0;
  copy->element = (uint32_t)element;
  copy->split = 0;
  copy->empty = false;
}

static inline void mp_strided_add_dim(mp_strided_t *copy, int64_t extent, int64_t dst,
                                      int64_t src) {
  MP_ASSERT(copy->rank < MP_MAX_RANK);
  copy->dims[copy->rank++] = (mp_strided_dim_t){extent, dst, src};
}

// Drops unit dimensions, merges those that lie behind each other on both sides, widens elements.
void mp_strided_finish(mp_strided_t *copy);

// How many parts the copy is worth, never more than mp_strided_run_part can cut.
uint32_t mp_strided_num_parts(const mp_strided_t *copy);

void mp_strided_run(const mp_strided_t *copy, void *dst, const void *src);

// One of `num_parts` disjoint pieces of the copy.
void mp_strided_run_part(const mp_strided_t *copy, void *dst, const void *src, uint32_t num_parts,
                         uint32_t part);

// `count` elements, these many bytes apart on both sides.
void mp_copy_line(void *dst, int64_t dst_step, const void *src, int64_t src_step,
                  size_t element_bytes, int64_t count);

// Writes `count` copies of one element.
void mp_fill(void *dst, const void *element, size_t element_bytes, int64_t count);

#endif  // MINIPOD_SIM_KERNELS_STRIDED_H_
