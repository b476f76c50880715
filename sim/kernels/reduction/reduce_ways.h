// The kernel of stablehlo.reduce, and the ways in which it goes through its operands.
#ifndef MINIPOD_SIM_KERNELS_REDUCTION_REDUCE_WAYS_H_
#define MINIPOD_SIM_KERNELS_REDUCTION_REDUCE_WAYS_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/kernels/kernel.h"
#include "sim/kernels/reduction/best.h"
#include "sim/kernels/reduction/fold.h"
#include "sim/kernels/reduction/fold_axes.h"

typedef enum {
  MP_REDUCE_LANES,
  MP_REDUCE_ROWS,
  MP_REDUCE_GROUPS,
  MP_REDUCE_SEGMENTS,
  MP_REDUCE_BEST_ROWS,
  MP_REDUCE_BEST_LANES
} mp_reduce_way_t;

// Long reductions to few results are cut into *pieces*: each part folds a piece of the reduced
// positions of its results, without a start value, into memory that the parts share. When all are
// done, the pieces of a result are combined, neighbours first, and then the start value.
typedef struct {
  mp_kernel_t base;
  mp_fold_t fold;
  mp_fold_axes_t kept, reduced;
  mp_reduce_way_t way;
  mp_best_t best;  // for the ways BEST_...
  bool in_runs;    // lanes and segments: neighbours are reduced, and several are loaded at once
  int64_t unit;    // parts have whole units of so many results: 1, or the columns of groups
  uint32_t num_pieces;  // of each result, a power of two; 1: results are written at once
} mp_reduce_t;

// The share of a part: it folds the reduced positions [first, last) of the results [begin, end).
// For rows: if a result has only one row, [first, last) is a range of its elements; otherwise of
// its rows.
typedef struct {
  int64_t begin, end;
  int64_t first, last;
  uint32_t piece;
} mp_reduce_share_t;

// ---- reduce_pieces.c ----

// Decides the number of pieces of a kernel with results in `num_blocks` ranges. Sets its number of
// parts and its shared memory.
void mp_reduce_cut(mp_reduce_t *kernel, uint32_t num_blocks);
// The share of a part.
mp_reduce_share_t mp_reduce_share(const mp_reduce_t *kernel, uint32_t part);

// Stores the accumulators of `work` as a piece of results [begin, begin + lanes).
void mp_reduce_keep(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                    const mp_fold_work_t *work, uint32_t piece, int64_t begin, int64_t lanes);
// Does the same if there are pieces; otherwise folds the start values before the accumulators, and
// writes the results.
void mp_reduce_end(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                   const mp_fold_work_t *work, const mp_reduce_share_t *share, int64_t begin,
                   int64_t lanes);
// Combines the pieces of all results and writes these.
void mp_reduce_combine(const mp_reduce_t *kernel, const mp_kernel_call_t *call);

// ---- reduce_ways.c: each does a share, with elements from `source` if it is not NULL ----

void mp_reduce_lanes(const mp_reduce_t *kernel, const mp_kernel_call_t *call, mp_source_t *source,
                     const mp_reduce_share_t *share);
void mp_reduce_rows(const mp_reduce_t *kernel, const mp_kernel_call_t *call, mp_source_t *source,
                    const mp_reduce_share_t *share);
void mp_reduce_groups(const mp_reduce_t *kernel, const mp_kernel_call_t *call, mp_source_t *source,
                      const mp_reduce_share_t *share);
void mp_reduce_segments(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                        const mp_reduce_share_t *share);
void mp_reduce_best(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                    const mp_reduce_share_t *share);

#endif  // MINIPOD_SIM_KERNELS_REDUCTION_REDUCE_WAYS_H_
