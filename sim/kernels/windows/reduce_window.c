// stablehlo.reduce_window, one element of the window after the other, for many windows at once.
// Known kinds of reductions go one dimension after the other (window_passes.h), and cumulative ones
// take one pass (window_scan.h).
//
// Elements outside of the array are skipped, and the start value takes part once, as the first,
// whatever the padding. This makes no difference for a start value that is the region's neutral
// element, and it is what XLA does with others.
#include "sim/kernels/lanes.h"
#include "sim/kernels/reduction/fold.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/windows/window.h"
#include "sim/kernels/windows/window_passes.h"
#include "sim/kernels/windows/window_scan.h"
#include "sim/kernels/windows/windows_makers.h"

typedef struct {
  mp_kernel_t base;
  mp_fold_t fold;
  mp_window_t window;
  mp_window_passes_t passes;
  mp_window_scan_t scan;
} reduce_window_t;

// Folds the current element of every window that has it.
static void reduce_window_fold_element(const reduce_window_t *kernel, const mp_kernel_call_t *call,
                                       const mp_fold_work_t *work, const mp_window_lanes_t *lanes) {
  const mp_fold_t *fold = &kernel->fold;
  uint32_t n = fold->num_operands;
  int64_t inside = lanes->num_inside;
  if (inside == 0) return;
  bool all = inside == lanes->lanes;
  for (uint32_t k = 0; k < n; ++k) {
    const mp_fold_place_t place = {call->operands[k], lanes->offsets, 0, false};
    work->loaded[k] = mp_fold_load(fold, work, k, inside, &place, work->x[k]);
  }
  // For the step, the accumulators of the participating lanes are packed into `spare`.
  char *const *acc = all ? work->acc : work->spare;
  for (uint32_t k = 0; k < n && !all; ++k) {
    mp_lanes_gather(fold->operands[k].acc_size, inside, work->acc[k], lanes->where, work->spare[k]);
  }
  mp_fold_step(fold, work, inside, acc, work->loaded, call->operands + 2 * n);
  for (uint32_t k = 0; k < n && !all; ++k) {
    mp_lanes_scatter(fold->operands[k].acc_size, inside, work->spare[k], lanes->where,
                     work->acc[k]);
  }
}

static mp_status_t reduce_window_run_scan(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  const reduce_window_t *kernel = (const reduce_window_t *)base;
  int64_t begin, end;
  mp_part_range(kernel->scan.outer * kernel->scan.inner, base->num_parts, call->part, &begin, &end);
  mp_window_scan_run(&kernel->scan, call, begin, end);
  return NULL;
}

static mp_status_t reduce_window_run_passes(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  const reduce_window_t *kernel = (const reduce_window_t *)base;
  int64_t begin, end;
  mp_part_range(kernel->passes.num_slices, base->num_parts, call->part, &begin, &end);
  for (; begin < end; ++begin) {
    mp_window_passes_run(&kernel->passes, begin, call->operands[0], call->operands[1],
                         call->results[0], call->scratch);
  }
  return NULL;
}

static mp_status_t reduce_window_run(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  const reduce_window_t *kernel = (const reduce_window_t *)base;
  const mp_fold_t *fold = &kernel->fold;
  uint32_t n = fold->num_operands;
  char *window_memory = (char *)call->scratch + mp_round_up_64(fold->scratch_bytes);
  mp_fold_work_t work;
  mp_fold_work(fold, call->scratch, &work);
  int64_t begin, end, count;
  mp_part_range(kernel->window.count, base->num_parts, call->part, &begin, &end);
  for (; begin < end; begin += count) {
    count = mp_min_i64(end - begin, MP_FOLD_LANES);
    for (uint32_t k = 0; k < n; ++k) {
      mp_fold_fill(fold, k, count, call->operands[n + k], work.acc[k]);
    }
    mp_window_lanes_t lanes;
    for (int64_t w = 0; w < kernel->window.size; ++w) {
      if (w == 0) {
        mp_window_lanes_begin(&kernel->window, begin, count, window_memory, &lanes);
      } else {
        mp_window_lanes_next(&lanes);
      }
      reduce_window_fold_element(kernel, call, &work, &lanes);
    }
    for (uint32_t k = 0; k < n; ++k) {
      size_t size = fold->operands[k].out_size;
      mp_fold_store(fold, k, count, work.acc[k], (char *)call->results[k] + (size_t)begin * size);
    }
  }
  return NULL;
}

// The number of window elements that is worth a part.
enum { GRAIN = 32 * 1024 };

mp_status_t mp_kernel_make_reduce_window(mp_arena_t *arena, const mp_op_t *op,
                                         const mp_kernel_t **out_kernel) {
  reduce_window_t *kernel = MP_ARENA_NEW(arena, reduce_window_t);
  MP_RETURN_IF_NULL(kernel);
  mp_kernel_init(&kernel->base, reduce_window_run, op);
  MP_RETURN_IF_ERROR(mp_fold_create_of(arena, op, &kernel->fold));
  MP_RETURN_IF_ERROR(
      mp_window_create(op, mp_op_operand_type(op, 0), mp_op_result_type(op, 0), &kernel->window));
  *out_kernel = &kernel->base;
  if (mp_window_scan_create(&kernel->window, &kernel->fold, &kernel->scan)) {
    kernel->base.run = reduce_window_run_scan;
    kernel->base.num_parts = mp_part_count(kernel->scan.outer * kernel->scan.inner,
                                           mp_max_i64(1, GRAIN / kernel->scan.length));
    kernel->base.scratch_bytes = kernel->scan.scratch_bytes;
    return NULL;
  }
  if (mp_window_passes_create(&kernel->window, &kernel->fold, op->regions[0]->args[0].type->dtype,
                              &kernel->passes)) {
    const mp_window_passes_t *passes = &kernel->passes;
    kernel->base.run = reduce_window_run_passes;
    kernel->base.num_parts =
        mp_part_count(passes->num_slices, mp_max_i64(1, GRAIN / passes->slice_in));
    kernel->base.scratch_bytes = passes->scratch_bytes;
    return NULL;
  }
  int64_t grain = mp_max_i64(MP_FOLD_LANES, GRAIN / mp_max_i64(kernel->window.size, 1));
  if (kernel->window.size >= GRAIN) grain = 1;
  kernel->base.num_parts = mp_part_count(kernel->window.count, grain);
  kernel->base.scratch_bytes =
      mp_round_up_64(kernel->fold.scratch_bytes) + mp_window_lanes_bytes(&kernel->window);
  return NULL;
}
