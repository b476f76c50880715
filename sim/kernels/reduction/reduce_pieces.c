#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/reduction/reduce_ways.h"
#include "sim/kernels/shape.h"

// ---- How many ----

// The fewest elements, of all results, that are worth a part.
enum { GRAIN = 128 * 1024 };

// The bytes of the shared memory for so many pieces.
static int64_t reduce_pieces_bytes(const mp_reduce_t *kernel, uint32_t num_pieces) {
  int64_t bytes = 0;
  for (uint32_t k = 0; k < kernel->fold.num_operands; ++k) {
    const int64_t size = (int64_t)kernel->fold.operands[k].acc_size;
    const int64_t array = MP_WORK(kernel->kept.count, num_pieces, size);
    if (array > INT32_MAX) return INT64_MAX;
    bytes += (int64_t)mp_round_up_64((size_t)array);
  }
  return bytes;
}

// The reduced positions that pieces divide: elements, or rows of them.
static int64_t reduce_pieces_positions(const mp_reduce_t *kernel) {
  const mp_fold_axes_t *reduced = &kernel->reduced;
  if (kernel->way != MP_REDUCE_ROWS || reduced->rank == 1) return reduced->count;
  return reduced->count / reduced->dims[reduced->rank - 1];
}

static bool reduce_pieces_cut_one_row(const mp_reduce_t *kernel) {
  return kernel->way == MP_REDUCE_ROWS && kernel->reduced.rank == 1;
}

// The most pieces that a result may have.
static int64_t reduce_pieces_most(const mp_reduce_t *kernel) {
  if (kernel->way == MP_REDUCE_LANES && kernel->in_runs) return 1;
  const int64_t positions = reduce_pieces_positions(kernel);
  return reduce_pieces_cut_one_row(kernel) ? positions / (2 * MP_FOLD_ROW_MAX) : positions;
}

void mp_reduce_cut(mp_reduce_t *kernel, uint32_t num_blocks) {
  const int64_t work = MP_WORK(kernel->kept.count, kernel->reduced.count);
  const int64_t wanted = mp_part_count(work, GRAIN) / num_blocks;
  const int64_t most = mp_min_i64(wanted, reduce_pieces_most(kernel));
  uint32_t count = 1;
  while (2 * (int64_t)count <= most &&
         reduce_pieces_bytes(kernel, 2 * count) <= MP_KERNEL_SHARED_MOST) {
    count *= 2;
  }
  kernel->num_pieces = count;
  kernel->base.num_parts = num_blocks * count;
  kernel->base.shared_bytes = count == 1 ? 0 : (uint32_t)reduce_pieces_bytes(kernel, count);
}

mp_reduce_share_t mp_reduce_share(const mp_reduce_t *kernel, uint32_t part) {
  const uint32_t num_pieces = kernel->num_pieces;
  mp_reduce_share_t share = {.piece = part % num_pieces};
  mp_part_range(kernel->kept.count / kernel->unit, kernel->base.num_parts / num_pieces,
                part / num_pieces, &share.begin, &share.end);
  share.begin *= kernel->unit;
  share.end *= kernel->unit;
  const int64_t positions = reduce_pieces_positions(kernel);
  if (num_pieces > 1 && reduce_pieces_cut_one_row(kernel)) {
    mp_fold_row_piece(positions, num_pieces, share.piece, &share.first, &share.last);
  } else {
    mp_part_range(positions, num_pieces, share.piece, &share.first, &share.last);
  }
  return share;
}

// ---- Where they are ----

// The place of operand k's piece `piece` of result number `result`. The results of a piece are
// stored one after the other, in the accumulators' type.
static char *reduce_pieces_at(const mp_reduce_t *kernel, void *shared, uint32_t k, uint32_t piece,
                              int64_t result) {
  MP_ASSERT(k < kernel->fold.num_operands && piece < kernel->num_pieces);
  const int64_t results = kernel->kept.count;
  size_t array = 0;
  for (uint32_t before = 0; before < k; ++before) {
    const size_t size = kernel->fold.operands[before].acc_size;
    array += mp_round_up_64((size_t)results * kernel->num_pieces * size);
  }
  const size_t size = kernel->fold.operands[k].acc_size;
  return (char *)shared + array + (size_t)(piece * results + result) * size;
}

// Adds the start values to the results that are in the accumulators, and writes them.
static void reduce_pieces_finish(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                                 const mp_fold_work_t *work, int64_t begin, int64_t lanes) {
  const mp_fold_t *fold = &kernel->fold;
  const uint32_t n = fold->num_operands;
  for (uint32_t k = 0; k < n; ++k) {
    mp_fold_fill(fold, k, lanes, call->operands[n + k], work->x[k]);
    work->loaded[k] = work->x[k];
  }
  mp_fold_start(fold, work, lanes, work->loaded, call->operands + 2 * n);
  for (uint32_t k = 0; k < n; ++k) {
    const size_t size = fold->operands[k].out_size;
    mp_fold_store(fold, k, lanes, work->acc[k], (char *)call->results[k] + (size_t)begin * size);
  }
}

void mp_reduce_keep(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                    const mp_fold_work_t *work, uint32_t piece, int64_t begin, int64_t lanes) {
  for (uint32_t k = 0; k < kernel->fold.num_operands; ++k) {
    memcpy(reduce_pieces_at(kernel, call->shared, k, piece, begin), work->acc[k],
           (size_t)lanes * kernel->fold.operands[k].acc_size);
  }
}

void mp_reduce_end(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                   const mp_fold_work_t *work, const mp_reduce_share_t *share, int64_t begin,
                   int64_t lanes) {
  if (kernel->num_pieces > 1) {
    mp_reduce_keep(kernel, call, work, share->piece, begin, lanes);
  } else {
    reduce_pieces_finish(kernel, call, work, begin, lanes);
  }
}

// Folds neighbouring pieces of results [begin, begin + lanes) until one is left.
static void reduce_pieces_combine(const mp_reduce_t *kernel, const mp_kernel_call_t *call,
                                  const mp_fold_work_t *work, int64_t begin, int64_t lanes) {
  const mp_fold_t *fold = &kernel->fold;
  const uint32_t n = fold->num_operands, count = kernel->num_pieces;
  char **first = work->acc;
  for (uint32_t step = 1; step < count; step *= 2) {
    for (uint32_t piece = 0; piece < count; piece += 2 * step) {
      for (uint32_t k = 0; k < n; ++k) {
        first[k] = reduce_pieces_at(kernel, call->shared, k, piece, begin);
        work->loaded[k] = reduce_pieces_at(kernel, call->shared, k, piece + step, begin);
      }
      mp_fold_step(fold, work, lanes, first, work->loaded, call->operands + 2 * n);
    }
  }
}

void mp_reduce_combine(const mp_reduce_t *kernel, const mp_kernel_call_t *call) {
  const int64_t end = kernel->kept.count;
  mp_fold_work_t work;
  mp_fold_work(&kernel->fold, call->scratch, &work);
  for (int64_t begin = 0, lanes; begin < end; begin += lanes) {
    lanes = mp_min_i64(end - begin, MP_FOLD_LANES);
    // The accumulators are the first pieces themselves.
    reduce_pieces_combine(kernel, call, &work, begin, lanes);
    reduce_pieces_finish(kernel, call, &work, begin, lanes);
  }
}
