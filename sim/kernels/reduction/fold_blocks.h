// Loops over whole blocks of MP_FOLD_LANES elements, and over rows, for the kinds of reductions and
// the types that are common.
#ifndef MINIPOD_SIM_KERNELS_REDUCTION_FOLD_BLOCKS_H_
#define MINIPOD_SIM_KERNELS_REDUCTION_FOLD_BLOCKS_H_

#include <stdint.h>

#include "sim/ir/reducer.h"
#include "sim/numeric/dtype.h"

typedef struct {
  // acc[i] = f(x[i], y[i]) for each element of a block; x may be acc. Prefetches the memory `ahead`
  // bytes after y, in small pieces, so that it arrives while elements are folded. That memory need
  // not belong to an array.
  void (*step)(void *acc, const void *x, const void *y, int64_t ahead);
  // acc[0] = a block folded: the upper half into the lower one, again and again.
  void (*halves)(void *acc);
} mp_fold_blocks_t;

// The loops for elements of a computing type; both are NULL where there are none. They compute the
// same as the loop of the binary op.
mp_fold_blocks_t mp_fold_blocks(mp_reduce_kind_t kind, mp_dtype_t dtype);

// acc[0] = `count` >= 1 neighbours, at most MP_FOLD_ROW_MAX, folded in the order of mp_fold_row. A
// sum or product that is NaN is always the same NaN, because compilers may swap the operands of an
// addition, differently in each loop.
typedef void (*mp_fold_row_loop_t)(const void *x, int64_t count, void *acc);

// The loop for rows of elements of type `from` and accumulators of the computing type `to`; NULL if
// there is none.
mp_fold_row_loop_t mp_fold_row_loop(mp_reduce_kind_t kind, mp_dtype_t from, mp_dtype_t to);

// If a sum or product of a computing type is any NaN, sets it to that NaN.
void mp_fold_settle_nan(mp_reduce_kind_t kind, mp_dtype_t dtype, void *acc);

#endif  // MINIPOD_SIM_KERNELS_REDUCTION_FOLD_BLOCKS_H_
