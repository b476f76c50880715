#include "sim/kernels/reduction/reduce_ways.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/vector.h"
#include "sim/kernels/shape.h"

// ---- Lanes ----

// The number of results, from `begin` on, that one block takes. Long runs of neighbours stay whole.
static int64_t reduce_ways_block_size(const mp_reduce_t *kernel, int64_t begin, int64_t end) {
  const mp_fold_axes_t *kept = &kernel->kept;
  int64_t lanes = mp_min_i64(end - begin, MP_FOLD_LANES);
  if (kernel->in_runs) return mp_min_i64(lanes, MP_FOLD_RUN_LANES);
  if (kept->rank == 0) return lanes;
  uint32_t last = kept->rank - 1;
  if (kept->strides[last] != 1 || kept->dims[last] < 64) return lanes;
  return mp_min_i64(lanes, kept->dims[last] - begin % kept->dims[last]);
}

// Folds `count` neighbours of each lane, from `shift` on, run by run.
static void reduce_ways_fold_runs(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                                  const mp_fold_work_t *work, int64_t lanes, int64_t shift,
                                  int64_t count) {
  const mp_fold_t *fold = &kernel->fold;
  uint32_t n = fold->num_operands;
  int64_t most = mp_fold_run_length(fold);
  for (int64_t done = 0, some; done < count; done += some) {
    some = mp_min_i64(count - done, most);
    for (uint32_t k = 0; k < n; ++k) {
      const mp_fold_place_t place = {call->operands[k], work->offsets, shift + done, false};
      mp_fold_load_runs(fold, work, k, lanes, some, &place);
    }
    for (int64_t t = 0; t < some; ++t) {
      for (uint32_t k = 0; k < n; ++k) {
        work->loaded[k] = work->x[k] + (size_t)(t * lanes) * fold->operands[k].acc_size;
      }
      mp_fold_step(fold, work, lanes, work->acc, work->loaded, call->operands + 2 * n);
    }
  }
}

// Loads the elements of a reduced position for the block's lanes.
static void reduce_ways_load(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                             const mp_fold_work_t *work, int64_t lanes, int64_t offset) {
  const mp_fold_t *fold = &kernel->fold;
  for (uint32_t k = 0; k < fold->num_operands; ++k) {
    const mp_fold_place_t place = {call->operands[k], work->offsets, offset, work->distance == 1};
    work->loaded[k] = mp_fold_load(fold, work, k, lanes, &place, work->x[k]);
  }
}

// Sets the accumulators of the block's lanes: to the start values, or, in a piece, to the elements
// of the first position. Returns the position from which on the others are folded.
static int64_t reduce_ways_begin_block(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                                       const mp_fold_work_t *work, int64_t lanes, int64_t first) {
  const mp_fold_t *fold = &kernel->fold;
  const uint32_t n = fold->num_operands;
  if (kernel->num_pieces == 1) {
    for (uint32_t k = 0; k < n; ++k) {
      mp_fold_fill(fold, k, lanes, call->operands[n + k], work->acc[k]);
    }
    return first;
  }
  reduce_ways_load(kernel, call, work, lanes, mp_fold_axes_offset(&kernel->reduced, first));
  for (uint32_t k = 0; k < n; ++k) {
    memcpy(work->acc[k], work->loaded[k], (size_t)lanes * fold->operands[k].acc_size);
  }
  return first + 1;
}

// Prefetches `lanes` neighbours of each operand, from number `first` on.
static void reduce_ways_prefetch(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                                 int64_t lanes, int64_t first) {
  for (uint32_t k = 0; k < kernel->fold.num_operands; ++k) {
    const int64_t size = (int64_t)kernel->fold.operands[k].in_size;
    mp_prefetch(call->operands[k], first * size, lanes * size);
  }
}

// Folds the reduced positions [first, last) of the block's lanes into the accumulators.
static void reduce_ways_fold_block(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                                   const mp_fold_work_t *work, int64_t lanes, int64_t first,
                                   int64_t last) {
  const mp_fold_t *fold = &kernel->fold;
  const bool contiguous = work->distance == 1;
  const mp_fold_axes_t *reduced = &kernel->reduced;
  uint32_t n = fold->num_operands;
  mp_fold_walk_t walk;
  if (kernel->in_runs && !contiguous) {
    MP_ASSERT(first == 0 && last == reduced->count);
    int64_t length = reduced->dims[reduced->rank - 1], runs = reduced->count / length;
    mp_fold_walk_begin(reduced, reduced->rank - 1, 0, &walk);
    for (int64_t r = 0; r < runs; ++r, mp_fold_walk_next(&walk)) {
      reduce_ways_fold_runs(kernel, call, work, lanes, walk.offset, length);
    }
    return;
  }
  const bool by_blocks = contiguous && lanes == MP_FOLD_LANES && fold->blocks.step != NULL;
  // If blocks are read from the array itself, their loop prefetches the next ones.
  const bool is_read = by_blocks && work->source == NULL && !fold->operands[0].converts;
  // If lanes are neighbours, they are neighbours at the next positions, too.
  const int64_t ahead = reduced->rank == 0 ? 0 : 2 * reduced->strides[reduced->rank - 1];
  mp_fold_walk_begin(reduced, reduced->rank, first, &walk);
  for (int64_t r = first; r < last; ++r, mp_fold_walk_next(&walk)) {
    if (contiguous && !is_read && work->source == NULL) {
      reduce_ways_prefetch(kernel, call, lanes, work->offsets[0] + walk.offset + ahead);
    }
    reduce_ways_load(kernel, call, work, lanes, walk.offset);
    if (by_blocks) {
      const int64_t bytes = is_read ? ahead * (int64_t)fold->operands[0].in_size : 0;
      fold->blocks.step(work->acc[0], work->acc[0], work->loaded[0], bytes);
    } else {
      mp_fold_step(fold, work, lanes, work->acc, work->loaded, call->operands + 2 * n);
    }
  }
}

// Whether all neighbours of a block's lanes are lanes of it too, in the order in which they are
// reduced: the whole operand is one run.
static bool reduce_ways_is_one_run(const mp_reduce_t *kernel, int64_t lanes) {
  const mp_fold_axes_t *kept = &kernel->kept, *reduced = &kernel->reduced;
  return kept->count == lanes && kept->rank == 1 && kept->strides[0] == 1 && reduced->rank == 1 &&
         reduced->strides[0] == lanes;
}

// Writes the offsets of the block's lanes, results [begin, begin + lanes); returns the distance
// between all neighbours of them, 0 if there is none.
static int64_t reduce_ways_find_lanes(const mp_reduce_t *kernel, int64_t begin, int64_t lanes,
                                      int64_t *offsets) {
  const mp_fold_axes_t *kept = &kernel->kept;
  if (lanes > 1 && kept->rank == 1) {
    const int64_t stride = kept->strides[0];
    for (int64_t i = 0; i < lanes; ++i) offsets[i] = (begin + i) * stride;
    return stride;
  }
  mp_fold_walk_t walk;
  mp_fold_walk_begin(kept, kept->rank, begin, &walk);
  int64_t distance = 1;
  for (int64_t i = 0; i < lanes; ++i, mp_fold_walk_next(&walk)) {
    offsets[i] = walk.offset;
    if (i == 1) distance = offsets[1] - offsets[0];
    if (i > 1 && offsets[i] - offsets[i - 1] != distance) distance = 0;
  }
  return distance;
}

void mp_reduce_lanes(const mp_reduce_t *kernel, const mp_kernel_call_t *call, mp_source_t *source,
                     const mp_reduce_share_t *share) {
  const mp_fold_t *fold = &kernel->fold;
  mp_fold_work_t work;
  mp_fold_work(fold, call->scratch, &work);
  work.source = source;
  for (int64_t begin = share->begin, lanes; begin < share->end; begin += lanes) {
    lanes = reduce_ways_block_size(kernel, begin, share->end);
    MP_ASSERT(lanes > 0 && lanes <= MP_FOLD_LANES);
    work.distance = reduce_ways_find_lanes(kernel, begin, lanes, work.offsets);
    if (source != NULL) {
      source->limit = reduce_ways_is_one_run(kernel, lanes) ? lanes * share->last : 0;
    }
    const int64_t first = reduce_ways_begin_block(kernel, call, &work, lanes, share->first);
    reduce_ways_fold_block(kernel, call, &work, lanes, first, share->last);
    if (kernel->num_pieces > 1) {
      mp_reduce_keep(kernel, call, &work, share->piece, begin, lanes);
      continue;
    }
    for (uint32_t k = 0; k < fold->num_operands; ++k) {
      const size_t size = fold->operands[k].out_size;
      mp_fold_store(fold, k, lanes, work.acc[k], (char *)call->results[k] + (size_t)begin * size);
    }
  }
}

// ---- Rows (one operand, recognised kinds) ----

// Folds rows [first, last) of the result at `offset`, of `length` elements each, into the
// accumulator: after its start value, or, of a piece, without one.
static void reduce_ways_fold_rows(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                                  const mp_fold_work_t *work, int64_t offset, int64_t length,
                                  const mp_reduce_share_t *share) {
  const mp_fold_t *fold = &kernel->fold;
  const mp_fold_axes_t *reduced = &kernel->reduced;
  char *acc = work->acc[0];
  mp_fold_walk_t row;
  mp_fold_walk_begin(reduced, reduced->rank - 1, share->first, &row);
  for (int64_t r = share->first; r < share->last; ++r, mp_fold_walk_next(&row)) {
    _Alignas(16) char one[16];
    const int64_t from = offset + row.offset;
    const bool is_first = kernel->num_pieces > 1 && r == share->first;
    if (work->source != NULL) work->source->limit = from + length;
    mp_fold_row(fold, work, call->operands[0], from, length, is_first ? acc : one);
    if (is_first) continue;
    const void *in[] = {acc, one};
    fold->loop(1, in, acc);
  }
}

// Whether the runs of neighbouring results are neighbours, so that loops can fold several.
static bool reduce_ways_has_neighbours(const mp_reduce_t *kernel) {
  const mp_fold_axes_t *kept = &kernel->kept, *reduced = &kernel->reduced;
  return kernel->num_pieces <= 1 && kernel->fold.row != NULL && reduced->rank == 1 &&
         reduced->dims[0] <= MP_FOLD_ROW_MAX && kept->rank == 1 &&
         kept->strides[0] == reduced->dims[0];
}

static void reduce_ways_neighbours(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                                   const mp_fold_work_t *work, const mp_reduce_share_t *share) {
  const mp_fold_t *fold = &kernel->fold;
  const mp_fold_operand_t *operand = &fold->operands[0];
  const int64_t length = kernel->reduced.dims[0];
  _Alignas(16) char start[16];
  mp_fold_fill(fold, 0, 1, call->operands[1], start);
  for (int64_t i = share->begin, count; i < share->end; i += count) {
    count = mp_min_i64(MP_FOLD_LANES, share->end - i);
    const char *x = (const char *)call->operands[0] + (size_t)(i * length) * operand->in_size;
    const mp_fold_rows_t rows = {fold->row, operand->in_size, x, length, count};
    mp_fold_rows(fold, &rows, start, work->acc[0]);
    mp_fold_store(fold, 0, count, work->acc[0],
                  (char *)call->results[0] + (size_t)i * operand->out_size);
  }
}

void mp_reduce_rows(const mp_reduce_t *kernel, const mp_kernel_call_t *call, mp_source_t *source,
                    const mp_reduce_share_t *share) {
  const mp_fold_t *fold = &kernel->fold;
  const mp_fold_axes_t *reduced = &kernel->reduced;
  const bool is_piece = kernel->num_pieces > 1;
  // A share of one row is a row by itself.
  const bool is_one = reduced->rank == 1;
  const mp_reduce_share_t one = {.last = 1};
  const mp_reduce_share_t *rows = is_one ? &one : share;
  const int64_t shift = is_one ? share->first : 0;
  const int64_t length = is_one ? share->last - share->first : reduced->dims[reduced->rank - 1];
  mp_fold_work_t work;
  mp_fold_work(fold, call->scratch, &work);
  work.source = source;
  if (source == NULL && reduce_ways_has_neighbours(kernel)) {
    reduce_ways_neighbours(kernel, call, &work, share);
    return;
  }
  mp_fold_walk_t result;
  mp_fold_walk_begin(&kernel->kept, kernel->kept.rank, share->begin, &result);
  for (int64_t i = share->begin; i < share->end; ++i, mp_fold_walk_next(&result)) {
    if (!is_piece) mp_fold_fill(fold, 0, 1, call->operands[1], work.acc[0]);
    reduce_ways_fold_rows(kernel, call, &work, result.offset + shift, length, rows);
    if (is_piece) {
      mp_reduce_keep(kernel, call, &work, share->piece, i, 1);
    } else {
      const size_t size = fold->operands[0].out_size;
      mp_fold_store(fold, 0, 1, work.acc[0], (char *)call->results[0] + (size_t)i * size);
    }
  }
}

// ---- Groups (one operand, recognised kinds) ----

// Folds `count` of the lanes at `from` into those at `to`.
static void reduce_ways_fold_lanes(const mp_fold_t *fold, char *to, const char *from,
                                   int64_t count) {
  const void *in[] = {to, from};
  fold->loop(count, in, to);
}

// Folds the rows [first, last) at `base`, of `columns` elements each, into the accumulators of the
// columns, without a start value. A lane has every n-th row; then the upper half of the rows in the
// lanes is folded into the lower one until one is left.
static void reduce_ways_fold_group(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                                   const mp_fold_work_t *work, int64_t base, int64_t first,
                                   int64_t last) {
  const mp_fold_t *fold = &kernel->fold;
  const int64_t columns = kernel->unit, end = base + last * columns;
  const size_t size = fold->operands[0].acc_size;
  char *acc = work->acc[0];
  int64_t rows = mp_min_i64(MP_FOLD_LANES / columns, last - first);
  mp_fold_place_t place = {call->operands[0], work->offsets, 0, true};
  work->offsets[0] = base + first * columns;
  const char *loaded = mp_fold_load(fold, work, 0, rows * columns, &place, acc);
  if (loaded != acc) memcpy(acc, loaded, (size_t)(rows * columns) * size);
  const bool by_blocks = rows * columns == MP_FOLD_LANES && fold->blocks.step != NULL;
  for (int64_t at = work->offsets[0] + rows * columns, lanes; at < end; at += lanes) {
    lanes = mp_min_i64(rows * columns, end - at);
    place.shift = at - work->offsets[0];
    loaded = mp_fold_load(fold, work, 0, lanes, &place, work->x[0]);
    if (by_blocks && lanes == MP_FOLD_LANES) {
      fold->blocks.step(acc, acc, loaded, MP_FOLD_LANES * (int64_t)fold->operands[0].in_size);
    } else {
      reduce_ways_fold_lanes(fold, acc, loaded, lanes);
    }
  }
  for (int64_t left; rows > 1; rows = left) {
    left = (rows + 1) / 2;
    reduce_ways_fold_lanes(fold, acc, acc + (size_t)(left * columns) * size,
                           (rows - left) * columns);
  }
}

void mp_reduce_groups(const mp_reduce_t *kernel, const mp_kernel_call_t *call, mp_source_t *source,
                      const mp_reduce_share_t *share) {
  const int64_t columns = kernel->unit;
  mp_fold_work_t work;
  mp_fold_work(&kernel->fold, call->scratch, &work);
  work.source = source;
  for (int64_t i = share->begin; i < share->end; i += columns) {
    const int64_t base = mp_fold_axes_offset(&kernel->kept, i);
    if (source != NULL) source->limit = base + share->last * columns;
    reduce_ways_fold_group(kernel, call, &work, base, share->first, share->last);
    mp_reduce_end(kernel, call, &work, share, i, columns);
  }
}

// ---- Segments ----

// acc[i] = f(acc[2i], acc[2i+1]) until one is left; an odd last one moves down.
static void reduce_ways_combine_neighbours(const mp_fold_t *fold, const mp_fold_work_t *work,
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
    // The odd one is after the pairs and stays there until they are done.
    mp_fold_step(fold, work, pairs, work->acc, work->loaded, captures);
    for (uint32_t k = 0; k < fold->num_operands && lanes % 2 != 0; ++k) {
      size_t size = fold->operands[k].acc_size;
      memcpy(work->acc[k] + (size_t)pairs * size, work->acc[k] + (size_t)(lanes - 1) * size, size);
    }
    lanes = lanes - pairs;
  }
}

// Folds the reduced positions [first, end) of the result at `base` into acc[..][0], without a
// start value.
static void reduce_ways_fold_segments(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                                      const mp_fold_work_t *work, int64_t base, int64_t first,
                                      int64_t end) {
  const mp_fold_t *fold = &kernel->fold;
  const mp_fold_axes_t *reduced = &kernel->reduced;
  uint32_t n = fold->num_operands;
  const void *const *captures = call->operands + 2 * n;
  int64_t total = end - first;
  int64_t most = kernel->in_runs ? MP_FOLD_RUN_LANES : MP_FOLD_LANES;
  int64_t length = (total + most - 1) / most;
  int64_t lanes = (total + length - 1) / length;
  MP_ASSERT(lanes > 0 && lanes <= most);
  for (int64_t i = 0; i < lanes; ++i)
    work->offsets[i] = mp_fold_axes_offset(reduced, first + i * length);
  // Runs are loaded while the last segment, which may be shorter, has elements; the rest goes
  // element by element.
  int64_t last = total - (lanes - 1) * length, in_runs = kernel->in_runs ? last : 1;
  for (int64_t step = 0; step < length; ++step) {
    if (step == 1 && in_runs > 1) {
      reduce_ways_fold_runs(kernel, call, work, lanes, base, in_runs - 1);
      for (int64_t i = 0; i < lanes; ++i) work->offsets[i] += in_runs - 1;
      step = in_runs;
      if (step == length) break;
    }
    // Only the last segment may be shorter.
    int64_t active = (lanes - 1) * length + step < total ? lanes : lanes - 1;
    for (uint32_t k = 0; k < n; ++k) {
      const mp_fold_place_t place = {call->operands[k], work->offsets, base, false};
      char *dst = step == 0 ? work->acc[k] : work->x[k];
      work->loaded[k] = mp_fold_load(fold, work, k, active, &place, dst);
    }
    if (step > 0) mp_fold_step(fold, work, active, work->acc, work->loaded, captures);
    for (int64_t i = 0; i < active; ++i) {
      if (reduced->rank == 1) {
        work->offsets[i] += reduced->strides[0];
      } else {
        work->offsets[i] =
            mp_fold_axes_offset(reduced, first + mp_min_i64(i * length + step + 1, total - 1));
      }
    }
  }
  reduce_ways_combine_neighbours(fold, work, lanes, captures);
}

void mp_reduce_segments(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                        const mp_reduce_share_t *share) {
  mp_fold_work_t work;
  mp_fold_work(&kernel->fold, call->scratch, &work);
  for (int64_t i = share->begin; i < share->end; ++i) {
    reduce_ways_fold_segments(kernel, call, &work, mp_fold_axes_offset(&kernel->kept, i),
                              share->first, share->last);
    mp_reduce_end(kernel, call, &work, share, i, 1);
  }
}

// ---- The best, and where it is ----

void mp_reduce_best(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                    const mp_reduce_share_t *share) {
  const mp_fold_t *fold = &kernel->fold;
  mp_fold_work_t work;
  mp_fold_work(fold, call->scratch, &work);
  char *scratch = (char *)call->scratch + mp_round_up_64(fold->scratch_bytes);
  mp_best_box_t box = {.kept = &kernel->kept,
                       .reduced = &kernel->reduced,
                       .array = call->operands[0],
                       .begin = share->begin,
                       .end = share->end,
                       .first = share->first,
                       .last = share->last};
  while (box.begin < box.end) {
    const int64_t count = mp_best_results(&kernel->best, &box, scratch, work.acc[0], work.acc[1]);
    mp_reduce_end(kernel, call, &work, share, box.begin, count);
    box.begin += count;
  }
}
