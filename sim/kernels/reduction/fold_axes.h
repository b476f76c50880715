// The dimensions of an array that a reduction keeps, or those that it reduces: as few axes as
// possible, and a position that moves over them.
#ifndef MINIPOD_SIM_KERNELS_REDUCTION_FOLD_AXES_H_
#define MINIPOD_SIM_KERNELS_REDUCTION_FOLD_AXES_H_

#include <stdint.h>

#include "sim/ir/module.h"

typedef struct {
  uint32_t rank;
  int64_t dims[MP_MAX_RANK];
  int64_t strides[MP_MAX_RANK];  // of the input, in elements
  int64_t count;                 // of all positions
} mp_fold_axes_t;

// The offset in the input of position number `index`, the innermost axis fastest.
int64_t mp_fold_axes_offset(const mp_fold_axes_t *axes, int64_t index);

// A position that moves over the axes, the innermost one fastest.
typedef struct {
  const mp_fold_axes_t *axes;
  uint32_t rank;  // the number of axes over which it moves; the caller does those within
  int64_t index[MP_MAX_RANK];
  int64_t offset;
} mp_fold_walk_t;

// Begins at position number `position` of the outer `rank` axes.
void mp_fold_walk_begin(const mp_fold_axes_t *axes, uint32_t rank, int64_t position,
                        mp_fold_walk_t *out_walk);
// Moves to the next position; after the last one comes the first.
void mp_fold_walk_next(mp_fold_walk_t *walk);

// Divides the dimensions of a reduction's operands into those that are kept and those that are
// reduced.
void mp_fold_axes_find(const mp_op_t *op, mp_fold_axes_t *out_kept, mp_fold_axes_t *out_reduced);

#endif  // MINIPOD_SIM_KERNELS_REDUCTION_FOLD_AXES_H_
