// stablehlo.reduce. There are several methods, and the shape alone decides which one is used:
//   lanes: many results at once, one reduced position after the other (for any region, in order);
//   rows: one result, a contiguous run of the input at a time, folded in halves (for known kinds:
//     the order of a sum is a tree whose form depends on the length only);
//   segments: few results; the reduced positions are cut into as many segments as there are lanes,
//     whose results are then combined in order, neighbours first (for any associative region).
// Two more are for a value and its position, as in argmax (best.h): rows and lanes again.
// The start value takes part once, as the first.
#include "sim/kernels/reduction/reduce.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/ir/reducer.h"
#include "sim/kernels/kernel_makers.h"
#include "sim/kernels/reduction/best.h"
#include "sim/kernels/reduction/fold.h"
#include "sim/kernels/reduction/fold_axes.h"
#include "sim/kernels/shape.h"

typedef enum { WAY_LANES, WAY_ROWS, WAY_SEGMENTS, WAY_BEST_ROWS, WAY_BEST_LANES } way_t;

typedef struct {
  mp_kernel_t base;
  mp_fold_t fold;
  mp_fold_axes_t kept, reduced;
  way_t way;
  mp_best_t best;  // of the ways that it has
  bool in_runs;    // lanes and segments: neighbours are reduced, and several are loaded at once
} reduce_t;

// ---- Lanes ----

// The number of results, from `begin` on, that one block takes. Long runs of neighbours stay whole.
static int64_t reduce_block_size(const reduce_t *kernel, int64_t begin, int64_t end) {
  const mp_fold_axes_t *kept = &kernel->kept;
  int64_t lanes = mp_min_i64(end - begin, MP_FOLD_LANES);
  if (kernel->in_runs) return mp_min_i64(lanes, MP_FOLD_RUN_LANES);
  if (kept->rank == 0) return lanes;
  uint32_t last = kept->rank - 1;
  if (kept->strides[last] != 1 || kept->dims[last] < 64) return lanes;
  return mp_min_i64(lanes, kept->dims[last] - begin % kept->dims[last]);
}

// Folds `count` neighbours of each lane, from `shift` on, run by run.
static void reduce_fold_runs(const reduce_t *kernel, const mp_kernel_call_t *call,
                             const mp_fold_work_t *work, int64_t lanes, int64_t shift,
                             int64_t count) {
  const mp_fold_t *fold = &kernel->fold;
  uint32_t n = fold->num_operands;
  int64_t most = mp_fold_run_length(fold);
  for (int64_t done = 0, some; done < count; done += some) {
    some = mp_min_i64(count - done, most);
    for (uint32_t k = 0; k < n; ++k) {
      mp_fold_load_runs(fold, work, k, lanes, some, call->operands[k], work->offsets, shift + done);
    }
    for (int64_t t = 0; t < some; ++t) {
      for (uint32_t k = 0; k < n; ++k) {
        work->loaded[k] = work->x[k] + (size_t)(t * lanes) * fold->operands[k].acc_size;
      }
      mp_fold_step(fold, work, lanes, work->acc, work->loaded, call->operands + 2 * n);
    }
  }
}

// Folds all reduced positions of the block's lanes into the accumulators.
static void reduce_fold_block(const reduce_t *kernel, const mp_kernel_call_t *call,
                              const mp_fold_work_t *work, int64_t lanes, bool contiguous) {
  const mp_fold_t *fold = &kernel->fold;
  const mp_fold_axes_t *reduced = &kernel->reduced;
  uint32_t n = fold->num_operands;
  mp_fold_walk_t walk;
  if (kernel->in_runs && !contiguous) {
    int64_t length = reduced->dims[reduced->rank - 1], runs = reduced->count / length;
    mp_fold_walk_begin(reduced, reduced->rank - 1, 0, &walk);
    for (int64_t r = 0; r < runs; ++r, mp_fold_walk_next(&walk)) {
      reduce_fold_runs(kernel, call, work, lanes, walk.offset, length);
    }
    return;
  }
  mp_fold_walk_begin(reduced, reduced->rank, 0, &walk);
  // Of lanes that are neighbours the ones of the next positions are neighbours as well.
  const int64_t ahead = reduced->rank == 0 ? 0 : 2 * reduced->strides[reduced->rank - 1];
  for (int64_t r = 0; r < reduced->count; ++r, mp_fold_walk_next(&walk)) {
    for (uint32_t k = 0; k < n; ++k) {
      const int64_t size = (int64_t)fold->operands[k].in_size;
      if (contiguous && work->source == NULL) {
        mp_fold_prefetch(call->operands[k], (work->offsets[0] + walk.offset + ahead) * size,
                         lanes * size);
      }
      work->loaded[k] = mp_fold_load(fold, work, k, lanes, call->operands[k], work->offsets,
                                     walk.offset, contiguous, work->x[k]);
    }
    mp_fold_step(fold, work, lanes, work->acc, work->loaded, call->operands + 2 * n);
  }
}

// Whether all neighbours of a block's lanes are lanes of it too, in the order in which they are
// reduced: the whole operand is one run.
static bool reduce_is_one_run(const reduce_t *kernel, int64_t lanes) {
  const mp_fold_axes_t *kept = &kernel->kept, *reduced = &kernel->reduced;
  return kept->count == lanes && kept->rank == 1 && kept->strides[0] == 1 && reduced->rank == 1 &&
         reduced->strides[0] == lanes;
}

static void reduce_run_lanes(const reduce_t *kernel, const mp_kernel_call_t *call,
                             mp_fold_source_t *source, int64_t begin, int64_t end) {
  const mp_fold_t *fold = &kernel->fold;
  uint32_t n = fold->num_operands;
  mp_fold_work_t work;
  mp_fold_work(fold, call->scratch, &work);
  work.source = source;
  for (int64_t lanes; begin < end; begin += lanes) {
    lanes = reduce_block_size(kernel, begin, end);
    MP_ASSERT(lanes > 0 && lanes <= MP_FOLD_LANES);
    mp_fold_walk_t walk;
    mp_fold_walk_begin(&kernel->kept, kernel->kept.rank, begin, &walk);
    bool contiguous = true;
    for (int64_t i = 0; i < lanes; ++i, mp_fold_walk_next(&walk)) {
      work.offsets[i] = walk.offset;
      contiguous = contiguous && walk.offset == work.offsets[0] + i;
    }
    for (uint32_t k = 0; k < n; ++k) {
      mp_fold_fill(fold, k, lanes, call->operands[n + k], work.acc[k]);
    }
    if (source != NULL) {
      source->limit = reduce_is_one_run(kernel, lanes) ? lanes * kernel->reduced.count : 0;
    }
    reduce_fold_block(kernel, call, &work, lanes, contiguous);
    for (uint32_t k = 0; k < n; ++k) {
      size_t size = fold->operands[k].out_size;
      mp_fold_store(fold, k, lanes, work.acc[k], (char *)call->results[k] + (size_t)begin * size);
    }
  }
}

// ---- Rows (one operand, recognised kinds) ----

static void reduce_run_rows(const reduce_t *kernel, const mp_kernel_call_t *call,
                            mp_fold_source_t *source, int64_t begin, int64_t end) {
  const mp_fold_t *fold = &kernel->fold;
  const mp_fold_axes_t *reduced = &kernel->reduced;
  const mp_fold_operand_t *operand = &fold->operands[0];
  int64_t length = reduced->dims[reduced->rank - 1], rows = reduced->count / length;
  mp_fold_work_t work;
  mp_fold_work(fold, call->scratch, &work);
  work.source = source;
  mp_fold_walk_t result;
  mp_fold_walk_begin(&kernel->kept, kernel->kept.rank, begin, &result);
  for (int64_t i = begin; i < end; ++i, mp_fold_walk_next(&result)) {
    char *acc = work.acc[0];
    mp_fold_fill(fold, 0, 1, call->operands[1], acc);
    mp_fold_walk_t row;
    mp_fold_walk_begin(reduced, reduced->rank - 1, 0, &row);
    for (int64_t r = 0; r < rows; ++r, mp_fold_walk_next(&row)) {
      _Alignas(16) char one[16];
      const int64_t first = result.offset + row.offset;
      if (source != NULL) source->limit = first + length;
      mp_fold_row(fold, &work, call->operands[0], first, length, one);
      const void *in[] = {acc, one};
      fold->loop(1, in, acc);
    }
    mp_fold_store(fold, 0, 1, acc, (char *)call->results[0] + (size_t)i * operand->out_size);
  }
}

// ---- Segments ----

// acc[i] = f(acc[2i], acc[2i+1]) until one is left; an odd last one moves down.
static void reduce_combine_neighbours(const mp_fold_t *fold, const mp_fold_work_t *work,
                                      int64_t lanes, const void *const *captures) {
  while (lanes > 1) {
    int64_t pairs = lanes / 2;
    for (uint32_t k = 0; k < fold->num_operands; ++k) {
      size_t size = fold->operands[k].acc_size;
      char *acc = work->acc[k], *second = work->x[k];
      for (int64_t i = 0; i < pairs; ++i) {
        memcpy(second + (size_t)i * size, acc + (size_t)(2 * i + 1) * size, size);
        if (i > 0) memcpy(acc + (size_t)i * size, acc + (size_t)(2 * i) * size, size);
      }
      work->loaded[k] = second;
    }
    // The odd one is behind the pairs and stays there until these are done.
    mp_fold_step(fold, work, pairs, work->acc, work->loaded, captures);
    for (uint32_t k = 0; k < fold->num_operands && lanes % 2 != 0; ++k) {
      size_t size = fold->operands[k].acc_size;
      memcpy(work->acc[k] + (size_t)pairs * size, work->acc[k] + (size_t)(lanes - 1) * size, size);
    }
    lanes = lanes - pairs;
  }
}

// Folds all reduced positions of the result at `base` into acc[..][0], without a start value.
static void reduce_fold_segments(const reduce_t *kernel, const mp_kernel_call_t *call,
                                 const mp_fold_work_t *work, int64_t base) {
  const mp_fold_t *fold = &kernel->fold;
  const mp_fold_axes_t *reduced = &kernel->reduced;
  uint32_t n = fold->num_operands;
  const void *const *captures = call->operands + 2 * n;
  int64_t total = reduced->count;
  int64_t most = kernel->in_runs ? MP_FOLD_RUN_LANES : MP_FOLD_LANES;
  int64_t length = (total + most - 1) / most;
  int64_t lanes = (total + length - 1) / length;
  MP_ASSERT(lanes > 0 && lanes <= most);
  for (int64_t i = 0; i < lanes; ++i) work->offsets[i] = mp_fold_axes_offset(reduced, i * length);
  // Runs are loaded as long as the last segment, which may be shorter, takes part; the others go
  // element by element.
  int64_t last = total - (lanes - 1) * length, in_runs = kernel->in_runs ? last : 1;
  for (int64_t step = 0; step < length; ++step) {
    if (step == 1 && in_runs > 1) {
      reduce_fold_runs(kernel, call, work, lanes, base, in_runs - 1);
      for (int64_t i = 0; i < lanes; ++i) work->offsets[i] += in_runs - 1;
      step = in_runs;
      if (step == length) break;
    }
    // Only the last segment may be shorter.
    int64_t active = (lanes - 1) * length + step < total ? lanes : lanes - 1;
    for (uint32_t k = 0; k < n; ++k) {
      char *dst = step == 0 ? work->acc[k] : work->x[k];
      work->loaded[k] =
          mp_fold_load(fold, work, k, active, call->operands[k], work->offsets, base, false, dst);
    }
    if (step > 0) mp_fold_step(fold, work, active, work->acc, work->loaded, captures);
    for (int64_t i = 0; i < active; ++i) {
      if (reduced->rank == 1) {
        work->offsets[i] += reduced->strides[0];
      } else {
        work->offsets[i] =
            mp_fold_axes_offset(reduced, mp_min_i64(i * length + step + 1, total - 1));
      }
    }
  }
  reduce_combine_neighbours(fold, work, lanes, captures);
}

static void reduce_run_segments(const reduce_t *kernel, const mp_kernel_call_t *call, int64_t begin,
                                int64_t end) {
  const mp_fold_t *fold = &kernel->fold;
  uint32_t n = fold->num_operands;
  mp_fold_work_t work;
  mp_fold_work(fold, call->scratch, &work);
  for (int64_t i = begin; i < end; ++i) {
    reduce_fold_segments(kernel, call, &work, mp_fold_axes_offset(&kernel->kept, i));
    for (uint32_t k = 0; k < n; ++k) {
      mp_fold_fill(fold, k, 1, call->operands[n + k], work.x[k]);
      work.loaded[k] = work.x[k];
    }
    mp_fold_start(fold, &work, 1, work.loaded, call->operands + 2 * n);
    for (uint32_t k = 0; k < n; ++k) {
      size_t size = fold->operands[k].out_size;
      mp_fold_store(fold, k, 1, work.acc[k], (char *)call->results[k] + (size_t)i * size);
    }
  }
}

// ---- The kernel ----

static mp_status_t reduce_run(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  const reduce_t *kernel = (const reduce_t *)base;
  int64_t begin, end;
  mp_part_range(kernel->kept.count, base->num_parts, call->part, &begin, &end);
  switch (kernel->way) {
    case WAY_LANES:
      reduce_run_lanes(kernel, call, NULL, begin, end);
      break;
    case WAY_ROWS:
      reduce_run_rows(kernel, call, NULL, begin, end);
      break;
    case WAY_SEGMENTS:
      reduce_run_segments(kernel, call, begin, end);
      break;
    case WAY_BEST_ROWS:
    case WAY_BEST_LANES:
      mp_best_run(&kernel->best, &kernel->fold, &kernel->kept, &kernel->reduced, call, begin, end);
      break;
    default:
      MP_ASSERT_NOT_REACHED();
  }
  return NULL;
}

void mp_reduce_run_from(const mp_kernel_t *base, const mp_kernel_call_t *call,
                        mp_fold_source_t *source) {
  const reduce_t *kernel = (const reduce_t *)base;
  int64_t begin, end;
  mp_part_range(kernel->kept.count, base->num_parts, call->part, &begin, &end);
  if (kernel->way == WAY_ROWS) {
    reduce_run_rows(kernel, call, source, begin, end);
  } else {
    MP_ASSERT(kernel->way == WAY_LANES);
    reduce_run_lanes(kernel, call, source, begin, end);
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

static way_t reduce_choose_way(const mp_fold_axes_t *kept, const mp_fold_axes_t *reduced,
                               bool is_known) {
  if (reduced->count < 2 || kept->count == 0) return WAY_LANES;
  if (is_known && reduce_has_rows(kept, reduced)) return WAY_ROWS;
  return kept->count < 64 && reduced->count >= 256 ? WAY_SEGMENTS : WAY_LANES;
}

bool mp_reduce_reads_runs(const mp_op_t *op) {
  mp_fold_axes_t kept, reduced;
  if (!reduce_find_known(op, &kept, &reduced)) return false;
  const way_t way = reduce_choose_way(&kept, &reduced, true);
  if (way != WAY_LANES) return way == WAY_ROWS;
  // A block of lanes is a run then (reduce_block_size).
  return kept.rank > 0 && kept.strides[kept.rank - 1] == 1 &&
         (kept.rank == 1 || kept.dims[kept.rank - 1] >= 64);
}

// GRAIN: the elements that are worth a part. LANES_GRAIN: the fewest results of a part where
// neighbours are reduced together.
enum { GRAIN = 64 * 1024, LANES_GRAIN = 256 };

static uint32_t reduce_count_parts(const reduce_t *kernel) {
  int64_t grain = GRAIN / mp_max_i64(kernel->reduced.count, 1);
  if (kernel->way == WAY_LANES || kernel->way == WAY_BEST_LANES)
    grain = mp_max_i64(grain, LANES_GRAIN);
  return mp_part_count(kernel->kept.count, grain);
}

mp_status_t mp_kernel_make_reduce(mp_arena_t *arena, const mp_op_t *op,
                                  const mp_kernel_t **out_kernel) {
  reduce_t *kernel = MP_ARENA_NEW(arena, reduce_t);
  uint32_t n = op->num_operands / 2;
  const mp_type_t **types = MP_ARENA_ARRAY(arena, const mp_type_t *, 3 * n + 1);
  if (kernel == NULL || types == NULL) return mp_status_out_of_memory();
  for (uint32_t k = 0; k < n; ++k) {
    types[k] = mp_op_operand_type(op, k);
    types[n + k] = mp_op_operand_type(op, n + k);
    types[2 * n + k] = mp_op_result_type(op, k);
  }
  mp_kernel_init(&kernel->base, reduce_run, op);
  MP_RETURN_IF_ERROR(
      mp_fold_create(arena, op, op->regions[0], n, types, types + n, types + 2 * n, &kernel->fold));
  mp_fold_axes_find(op, &kernel->kept, &kernel->reduced);
  kernel->way =
      reduce_choose_way(&kernel->kept, &kernel->reduced, kernel->fold.kind != MP_REDUCE_CUSTOM);
  if (mp_best_find(op, &kernel->best) && mp_best_has_way(&kernel->kept, &kernel->reduced)) {
    kernel->way = kernel->reduced.strides[0] == 1 ? WAY_BEST_ROWS : WAY_BEST_LANES;
  }
  const mp_fold_axes_t *reduced = &kernel->reduced;
  kernel->in_runs = reduced->rank > 0 && reduced->strides[reduced->rank - 1] == 1 &&
                    reduced->dims[reduced->rank - 1] >= 16 &&
                    (kernel->way != WAY_SEGMENTS || reduced->rank == 1);
  kernel->base.num_parts = reduce_count_parts(kernel);
  kernel->base.scratch_bytes = kernel->fold.scratch_bytes;
  if (kernel->way == WAY_BEST_ROWS || kernel->way == WAY_BEST_LANES) {
    kernel->base.scratch_bytes = mp_round_up_64(kernel->fold.scratch_bytes) + MP_BEST_SCRATCH;
  }
  *out_kernel = &kernel->base;
  return NULL;
}
