#include "sim/kernels/windows/window_scan.h"

#include <string.h>

#include "sim/kernels/lanes.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"

static bool window_scan_is_cumulative(const mp_window_dim_t *dim) {
  return dim->stride == 1 && dim->dilation == 1 && dim->base_dilation == 1 && dim->in == dim->out &&
         dim->size >= dim->in && dim->in > 1 && (dim->low == dim->size - 1 || dim->low == 0);
}

bool mp_window_scan_create(const mp_window_t *window, const mp_fold_t *fold,
                           mp_window_scan_t *out_scan) {
  mp_window_scan_t scan = {.fold = fold, .outer = 1, .inner = 1};
  bool is_exact = false;  // the windows are no longer than the array
  if (window->count == 0) return false;
  for (uint32_t i = 0; i < window->rank; ++i) {
    const mp_window_dim_t *dim = &window->dims[i];
    if (dim->is_plain && dim->in == dim->out) {
      if (scan.length == 0) {
        scan.outer *= dim->in;
      } else {
        scan.inner *= dim->in;
      }
      continue;
    }
    if (scan.length != 0 || !window_scan_is_cumulative(dim)) return false;
    scan.length = dim->in;
    is_exact = dim->size == dim->in;
    scan.from_end = dim->low == 0;
  }
  if (scan.length == 0) return false;
  scan.by_lines = fold->kind != MP_REDUCE_CUSTOM && scan.inner == 1;
  // XLA folds longer windows number by number; minipod does the same without a tree.
  scan.by_tree = is_exact && mp_window_tree_create(fold, scan.outer, scan.length, scan.inner,
                                                   scan.from_end, &scan.tree);
  scan.scratch_bytes = scan.by_tree ? scan.tree.scratch_bytes : fold->scratch_bytes;
  *out_scan = scan;
  return true;
}

// ---- By lines (one operand, recognised kinds) ----

// Makes the cumulative reduction of n elements at `a`; `b` has the same size. Returns where the
// result is, which is `a` or `b`. Each round doubles the distance over which elements were folded.
static char *window_scan_cumulate(const mp_window_scan_t *scan, int64_t n, char *a, char *b) {
  int64_t size = (int64_t)scan->fold->operands[0].acc_size;
  for (int64_t d = 1; d < n; d *= 2) {
    const void *in[] = {a, a + d * size};
    if (scan->from_end) {
      scan->fold->loop(n - d, in, b);
      memcpy(b + (n - d) * size, a + (n - d) * size, (size_t)(d * size));
    } else {
      scan->fold->loop(n - d, in, b + d * size);
      memcpy(b, a, (size_t)(d * size));
    }
    char *swap = a;
    a = b;
    b = swap;
  }
  return a;
}

static void window_scan_run_line(const mp_window_scan_t *scan, const mp_kernel_call_t *call,
                                 const mp_fold_work_t *work, int64_t line) {
  const mp_fold_t *fold = scan->fold;
  const mp_fold_operand_t *types = &fold->operands[0];
  const int64_t zero = 0;
  char *carry = work->acc[0];
  mp_fold_fill(fold, 0, MP_FOLD_LANES, call->operands[1], carry);
  for (int64_t done = 0, n; done < scan->length; done += n) {
    n = mp_min_i64(scan->length - done, MP_FOLD_LANES);
    int64_t at = line * scan->length + (scan->from_end ? scan->length - done - n : done);
    char *block = work->x[0];
    const mp_fold_place_t place = {call->operands[0], &zero, at, true};
    const char *loaded = mp_fold_load(fold, work, 0, n, &place, block);
    if (loaded != block) memcpy(block, loaded, (size_t)n * types->acc_size);
    char *result = window_scan_cumulate(scan, n, block, work->spare[0]);
    const void *prefix[] = {carry, result}, *suffix[] = {result, carry};
    fold->loop(n, scan->from_end ? suffix : prefix, result);
    mp_fold_store(fold, 0, n, result, (char *)call->results[0] + (size_t)at * types->out_size);
    const char *last = scan->from_end ? result : result + (size_t)(n - 1) * types->acc_size;
    if (done + n < scan->length) mp_fill(carry, last, types->acc_size, MP_FOLD_LANES);
  }
}

// ---- Many lines together ----

// Stores the accumulators as the results at each line's offset plus `shift`.
static void window_scan_store(const mp_window_scan_t *scan, const mp_kernel_call_t *call,
                              const mp_fold_work_t *work, int64_t lanes, int64_t shift,
                              bool contiguous) {
  for (uint32_t k = 0; k < scan->fold->num_operands; ++k) {
    size_t size = scan->fold->operands[k].out_size;
    char *out = (char *)call->results[k] + shift * (int64_t)size;
    if (contiguous) {
      mp_fold_store(scan->fold, k, lanes, work->acc[k], out + work->offsets[0] * (int64_t)size);
    } else {
      mp_fold_store(scan->fold, k, lanes, work->acc[k], work->spare[k]);
      mp_lanes_scatter(size, lanes, work->spare[k], work->offsets, out);
    }
  }
}

static void window_scan_run_lanes(const mp_window_scan_t *scan, const mp_kernel_call_t *call,
                                  const mp_fold_work_t *work, int64_t first, int64_t lanes) {
  const mp_fold_t *fold = scan->fold;
  uint32_t n = fold->num_operands;
  const void *const *captures = call->operands + 2 * n;
  for (int64_t i = 0; i < lanes; ++i) {
    int64_t line = first + i;
    work->offsets[i] = line / scan->inner * scan->inner * scan->length + line % scan->inner;
  }
  bool contiguous = work->offsets[lanes - 1] == work->offsets[0] + lanes - 1;
  for (uint32_t k = 0; k < n; ++k) {
    mp_fold_fill(fold, k, lanes, call->operands[n + k], work->acc[k]);
  }
  for (int64_t step = 0; step < scan->length; ++step) {
    int64_t shift = (scan->from_end ? scan->length - 1 - step : step) * scan->inner;
    for (uint32_t k = 0; k < n; ++k) {
      const mp_fold_place_t place = {call->operands[k], work->offsets, shift, contiguous};
      work->loaded[k] = mp_fold_load(fold, work, k, lanes, &place, work->x[k]);
    }
    if (scan->from_end) {
      mp_fold_start(fold, work, lanes, work->loaded, captures);
    } else {
      mp_fold_step(fold, work, lanes, work->acc, work->loaded, captures);
    }
    window_scan_store(scan, call, work, lanes, shift, contiguous);
  }
}

void mp_window_scan_run(const mp_window_scan_t *scan, const mp_kernel_call_t *call, int64_t begin,
                        int64_t end) {
  if (scan->by_tree) {
    mp_window_tree_run(&scan->tree, call, begin, end);
    return;
  }
  mp_fold_work_t work;
  mp_fold_work(scan->fold, call->scratch, &work);
  if (scan->by_lines) {
    for (; begin < end; ++begin) window_scan_run_line(scan, call, &work, begin);
    return;
  }
  for (int64_t lanes; begin < end; begin += lanes) {
    // A block does not go beyond the end of a run of neighbours, so that long runs are contiguous.
    lanes = mp_min_i64(end - begin, MP_FOLD_LANES);
    if (scan->inner >= 16) lanes = mp_min_i64(lanes, scan->inner - begin % scan->inner);
    window_scan_run_lanes(scan, call, &work, begin, lanes);
  }
}
