#include "sim/kernels/reduction/fold_axes.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/shape.h"

// Adds a dimension within those that were added before; dimensions that are contiguous become one
// axis.
static void fold_axes_add(mp_fold_axes_t *axes, int64_t dim, int64_t stride) {
  axes->count *= dim;
  if (dim == 1) return;
  MP_ASSERT(axes->rank < MP_MAX_RANK);
  uint32_t last = axes->rank;
  if (last > 0 && axes->strides[last - 1] == stride * dim) {
    axes->dims[last - 1] *= dim;
    axes->strides[last - 1] = stride;
    return;
  }
  axes->dims[last] = dim;
  axes->strides[last] = stride;
  ++axes->rank;
}

int64_t mp_fold_axes_offset(const mp_fold_axes_t *axes, int64_t index) {
  int64_t offset = 0;
  for (uint32_t i = axes->rank; i-- > 0;) {
    offset += index % axes->dims[i] * axes->strides[i];
    index /= axes->dims[i];
  }
  return offset;
}

void mp_fold_walk_begin(const mp_fold_axes_t *axes, uint32_t rank, int64_t position,
                        mp_fold_walk_t *out_walk) {
  out_walk->axes = axes;
  out_walk->rank = rank;
  out_walk->offset = 0;
  memset(out_walk->index, 0, rank * sizeof(out_walk->index[0]));
  for (uint32_t i = rank; i-- > 0 && position > 0;) {  // a dimension may be 0
    out_walk->index[i] = position % axes->dims[i];
    out_walk->offset += out_walk->index[i] * axes->strides[i];
    position /= axes->dims[i];
  }
}

void mp_fold_walk_next(mp_fold_walk_t *walk) {
  for (uint32_t i = walk->rank; i-- > 0;) {
    walk->offset += walk->axes->strides[i];
    if (++walk->index[i] < walk->axes->dims[i]) return;
    walk->offset -= walk->axes->strides[i] * walk->axes->dims[i];
    walk->index[i] = 0;
  }
}

void mp_fold_axes_find(const mp_op_t *op, mp_fold_axes_t *out_kept, mp_fold_axes_t *out_reduced) {
  const mp_type_t *in = mp_op_operand_type(op, 0);
  mp_index_list_t dimensions = mp_op_ints(op, MP_ATTR_DIMENSIONS);
  int64_t strides[MP_MAX_RANK];
  mp_dims_strides(in->dims, in->rank, 1, strides);
  *out_kept = *out_reduced = (mp_fold_axes_t){.count = 1};
  for (uint32_t i = 0; i < in->rank; ++i) {
    fold_axes_add(mp_index_list_has(dimensions, i) ? out_reduced : out_kept, in->dims[i],
                  strides[i]);
  }
}
