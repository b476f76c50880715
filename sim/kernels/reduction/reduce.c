// stablehlo.reduce. There are several methods, and the shape alone decides which one is used:
//   lanes: many results at once, one reduced position after the other (for any region, in order);
//   rows: one result, a contiguous run of the input at a time, folded in halves (for known kinds:
//     the order of a sum is a tree whose form depends on the length only);
//   groups: few columns with contiguous rows: as many rows at a time as there are lanes for, folded
//     in halves at the end (for known kinds);
//   segments: few results; each lane folds a segment of the reduced positions, and the segments'
//     results are then combined in order, neighbours first (for any associative region).
// Two more methods are for a value and its position, as in argmax (best.h): rows and lanes again.
// The start value takes part once, as the first.
#include "sim/kernels/reduction/reduce.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/ir/reducer.h"
#include "sim/kernels/reduction/reduce_ways.h"
#include "sim/kernels/reduction/reduction_makers.h"
#include "sim/kernels/shape.h"

static mp_status_t reduce_run(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  const mp_reduce_t *kernel = (const mp_reduce_t *)base;
  const mp_reduce_share_t share = mp_reduce_share(kernel, call->part);
  switch (kernel->way) {
    case MP_REDUCE_LANES:
      mp_reduce_lanes(kernel, call, NULL, &share);
      break;
    case MP_REDUCE_ROWS:
      mp_reduce_rows(kernel, call, NULL, &share);
      break;
    case MP_REDUCE_GROUPS:
      mp_reduce_groups(kernel, call, NULL, &share);
      break;
    case MP_REDUCE_SEGMENTS:
      mp_reduce_segments(kernel, call, &share);
      break;
    case MP_REDUCE_BEST_ROWS:
    case MP_REDUCE_BEST_LANES:
      mp_reduce_best(kernel, call, &share);
      break;
    default:
      MP_ASSERT_NOT_REACHED();
  }
  return NULL;
}

static mp_status_t reduce_finish(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  mp_reduce_combine((const mp_reduce_t *)base, call);
  return NULL;
}

void mp_reduce_run_from(const mp_kernel_t *base, const mp_kernel_call_t *call,
                        mp_source_t *source) {
  const mp_reduce_t *kernel = (const mp_reduce_t *)base;
  const mp_reduce_share_t share = mp_reduce_share(kernel, call->part);
  if (kernel->way == MP_REDUCE_ROWS) {
    mp_reduce_rows(kernel, call, source, &share);
  } else if (kernel->way == MP_REDUCE_GROUPS) {
    mp_reduce_groups(kernel, call, source, &share);
  } else {
    MP_ASSERT(kernel->way == MP_REDUCE_LANES);
    mp_reduce_lanes(kernel, call, source, &share);
  }
}

static bool reduce_has_rows(const mp_fold_axes_t *kept, const mp_fold_axes_t *reduced) {
  uint32_t last = reduced->rank - 1;
  return reduced->strides[last] == 1 && (reduced->dims[last] >= 32 || kept->count == 1);
}

// The axes of a reduction of one operand and a known kind; false for all others.
static bool reduce_find_known(const mp_op_t *op, mp_fold_axes_t *out_kept,
                              mp_fold_axes_t *out_reduced) {
  if (op->code != MP_OP_REDUCE || op->num_operands != 2) return false;
  const mp_reduce_kind_t kind = mp_reducer_kind(op->regions[0]);
  mp_ew_t binary = {0};
  if (kind == MP_REDUCE_CUSTOM || kind == MP_REDUCE_SECOND ||
      !mp_ew_bind_binary(mp_reduce_kind_opcode(kind), mp_op_operand_type(op, 0)->dtype, &binary)) {
    return false;
  }
  mp_fold_axes_find(op, out_kept, out_reduced);
  return out_reduced->count >= 2 && out_kept->count != 0;
}

bool mp_reduce_is_by_rows(const mp_op_t *op, int64_t *out_length) {
  mp_fold_axes_t kept, reduced;
  if (!reduce_find_known(op, &kept, &reduced) || reduced.rank != 1) return false;
  *out_length = reduced.dims[0];
  return reduce_has_rows(&kept, &reduced);
}

bool mp_kernel_reduce_counts(const mp_op_t *op, uint32_t operand) {
  mp_best_t best;
  if (operand != 1 || op->num_operands != 4 || !mp_best_find(op, &best)) return false;
  mp_fold_axes_t kept, reduced;
  mp_fold_axes_find(op, &kept, &reduced);
  return mp_best_has_way(&kept, &reduced);
}

// So few columns that a few rows fill the lanes.
static bool reduce_has_groups(const mp_fold_axes_t *kept, const mp_fold_axes_t *reduced) {
  if (kept->rank == 0 || kept->strides[kept->rank - 1] != 1 || reduced->rank != 1) return false;
  const int64_t columns = kept->dims[kept->rank - 1];
  return reduced->strides[0] == columns && 4 * columns <= MP_FOLD_LANES &&
         reduced->count * columns >= 2 * MP_FOLD_LANES;
}

static mp_reduce_way_t reduce_choose_way(const mp_fold_axes_t *kept, const mp_fold_axes_t *reduced,
                                         bool is_known) {
  if (reduced->count < 2 || kept->count == 0) return MP_REDUCE_LANES;
  if (is_known && reduce_has_rows(kept, reduced)) return MP_REDUCE_ROWS;
  if (is_known && reduce_has_groups(kept, reduced)) return MP_REDUCE_GROUPS;
  return kept->count < 64 && reduced->count >= 256 ? MP_REDUCE_SEGMENTS : MP_REDUCE_LANES;
}

bool mp_reduce_reads_runs(const mp_op_t *op) {
  mp_fold_axes_t kept, reduced;
  if (!reduce_find_known(op, &kept, &reduced)) return false;
  const mp_reduce_way_t way = reduce_choose_way(&kept, &reduced, true);
  if (way != MP_REDUCE_LANES) return way == MP_REDUCE_ROWS || way == MP_REDUCE_GROUPS;
  // A block of lanes is a run then (reduce_block_size).
  return kept.rank > 0 && kept.strides[kept.rank - 1] == 1 &&
         (kept.rank == 1 || kept.dims[kept.rank - 1] >= 64);
}

// GRAIN: the elements that are worth a part. LANES_GRAIN: the fewest results of a part where
// neighbours are reduced together.
enum { GRAIN = 64 * 1024, LANES_GRAIN = 256 };

static uint32_t reduce_count_blocks(const mp_reduce_t *kernel) {
  int64_t grain = GRAIN / mp_max_i64(kernel->reduced.count, 1);
  if (kernel->way == MP_REDUCE_LANES || kernel->way == MP_REDUCE_BEST_LANES)
    grain = mp_max_i64(grain, LANES_GRAIN);
  return mp_part_count(kernel->kept.count / kernel->unit, mp_max_i64(grain / kernel->unit, 1));
}

mp_status_t mp_kernel_make_reduce(mp_arena_t *arena, const mp_op_t *op,
                                  const mp_kernel_t **out_kernel) {
  mp_reduce_t *kernel = MP_ARENA_NEW(arena, mp_reduce_t);
  MP_RETURN_IF_NULL(kernel);
  mp_kernel_init(&kernel->base, reduce_run, op);
  MP_RETURN_IF_ERROR(mp_fold_create_of(arena, op, &kernel->fold));
  mp_fold_axes_find(op, &kernel->kept, &kernel->reduced);
  kernel->way =
      reduce_choose_way(&kernel->kept, &kernel->reduced, kernel->fold.kind != MP_REDUCE_CUSTOM);
  if (mp_best_find(op, &kernel->best) && mp_best_has_way(&kernel->kept, &kernel->reduced)) {
    kernel->way = kernel->reduced.strides[0] == 1 ? MP_REDUCE_BEST_ROWS : MP_REDUCE_BEST_LANES;
  }
  const mp_fold_axes_t *reduced = &kernel->reduced;
  kernel->in_runs = reduced->rank > 0 && reduced->strides[reduced->rank - 1] == 1 &&
                    reduced->dims[reduced->rank - 1] >= 16 &&
                    (kernel->way != MP_REDUCE_SEGMENTS || reduced->rank == 1);
  const bool has_groups = kernel->way == MP_REDUCE_GROUPS;
  kernel->unit = has_groups ? kernel->kept.dims[kernel->kept.rank - 1] : 1;
  mp_reduce_cut(kernel, reduce_count_blocks(kernel));
  if (kernel->num_pieces > 1) kernel->base.finish = reduce_finish;
  kernel->base.scratch_bytes = kernel->fold.scratch_bytes;
  if (kernel->way == MP_REDUCE_BEST_ROWS || kernel->way == MP_REDUCE_BEST_LANES) {
    kernel->base.scratch_bytes = mp_round_up_64(kernel->fold.scratch_bytes) + MP_BEST_SCRATCH;
  }
  *out_kernel = &kernel->base;
  return NULL;
}
