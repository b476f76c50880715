// Cumulative sums and products of floating-point numbers, rounded as XLA rounds them.
//
// Such sums depend on the order in which they are taken and, in f16 and bf16, on where they are
// rounded. XLA cuts the numbers into blocks of 16. It adds up each block from its start, each
// prefix by itself; then it makes the cumulative sums of the blocks' totals in the same way, and
// adds the total of all blocks before (after, for sums from the end) to the sums in a block. A
// narrow type is rounded after every addition. These are the same steps.
#ifndef MINIPOD_SIM_KERNELS_WINDOWS_WINDOW_TREE_H_
#define MINIPOD_SIM_KERNELS_WINDOWS_WINDOW_TREE_H_

#include "sim/kernels/reduction/fold.h"

// Sixteen blocks of any level are a block of the next; lengths have 64 bits.
enum { MP_WINDOW_TREE_MAX_LEVELS = 17 };

// The array is [outer][length][inner]; a line is one of outer * inner.
typedef struct {
  const mp_fold_t *fold;
  int64_t outer, length, inner;
  bool from_end;
  bool by_lines;  // one line at a time, many blocks together; else many lines together
  uint32_t num_levels;
  int64_t lengths[MP_WINDOW_TREE_MAX_LEVELS];  // the numbers of each level; the last: at most 16
  size_t scratch_bytes;
} mp_window_tree_t;

// Plans the scan; false when the fold is no sum or product of floating-point numbers.
bool mp_window_tree_create(const mp_fold_t *fold, int64_t outer, int64_t length, int64_t inner,
                           bool from_end, mp_window_tree_t *out_tree);

// Computes lines [begin, end) of a call of reduce_window. `call->scratch` has tree->scratch_bytes.
void mp_window_tree_run(const mp_window_tree_t *tree, const mp_kernel_call_t *call, int64_t begin,
                        int64_t end);

#endif  // MINIPOD_SIM_KERNELS_WINDOWS_WINDOW_TREE_H_
