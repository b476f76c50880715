// Cumulative reductions: a reduce_window whose windows are all prefixes (or all suffixes) of one
// dimension, which is how JAX writes cumsum, cummax and the like. They take one pass instead of a
// quadratic number of steps.
//
// Prefixes are folded in order. Suffixes are folded from their end, with the start value last,
// which gives the same for an associative region with its neutral element as start value. Rounded
// sums and products use window_tree.h.
#ifndef MINIPOD_SIM_KERNELS_WINDOWS_WINDOW_SCAN_H_
#define MINIPOD_SIM_KERNELS_WINDOWS_WINDOW_SCAN_H_

#include "sim/kernels/reduction/fold.h"
#include "sim/kernels/windows/window.h"
#include "sim/kernels/windows/window_tree.h"

// The array is [outer][length][inner]; a line is one of outer * inner.
typedef struct {
  const mp_fold_t *fold;
  int64_t outer, length, inner;
  bool from_end;  // suffixes
  bool by_lines;  // one line at a time, neighbours together; else many lines, element by element
  bool by_tree;   // sums and products of floating-point numbers: `tree` does it all
  mp_window_tree_t tree;
  size_t scratch_bytes;
} mp_window_scan_t;

// Plans the pass; false when the windows are not of this kind.
bool mp_window_scan_create(const mp_window_t *window, const mp_fold_t *fold,
                           mp_window_scan_t *out_scan);

// Computes lines [begin, end).
void mp_window_scan_run(const mp_window_scan_t *scan, const mp_kernel_call_t *call, int64_t begin,
                        int64_t end);

#endif  // MINIPOD_SIM_KERNELS_WINDOWS_WINDOW_SCAN_H_
