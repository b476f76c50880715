// Folds many rows at a time. Short rows are interleaved, so that one loop does a step of all of
// them. Each long row has its own loops.
#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/reduction/fold.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"
#include "sim/kernels/transpose.h"

// LANES: rows that are interleaved. SHORT: the bytes of a row up to which that pays; TINY: the same
// for rows with halves that are whole vectors. MOST: the most rows per call.
enum { LANES = 16, SHORT = 1024, TINY = 128, MOST = 64, MAX_ACC = 16 };

static bool fold_rows_are_side_by_side(size_t in_size, size_t acc_size, int64_t length) {
  if (in_size != acc_size || (acc_size != 4 && acc_size != 8) || length < 2) return false;
  const int64_t bytes = length * (int64_t)acc_size;
  return bytes <= TINY || (bytes < SHORT && (length & (length - 1)) != 0);
}

// The order is that of mp_fold_row: the upper half of the lanes into the lower one, for all rows.
static void fold_rows_short(const mp_fold_t *fold, const char *x, int64_t length, int64_t rows,
                            char *out) {
  _Alignas(64) char lanes[LANES * SHORT];
  const size_t size = fold->operands[0].acc_size;
  const int64_t lane_bytes = rows * (int64_t)size;
  MP_ASSERT(rows <= LANES && length * (int64_t)size <= SHORT);
  const mp_matrix_t matrix = {length, rows, lane_bytes, length * (int64_t)size};
  mp_transpose(&matrix, size, lanes, x);
  for (int64_t left = length, rest; left > 1; left = rest) {
    rest = left - left / 2;
    const void *in[] = {lanes, lanes + rest * lane_bytes};
    fold->loop(left / 2 * rows, in, lanes);
  }
  memcpy(out, lanes, (size_t)lane_bytes);
  for (int64_t r = 0; r < rows; ++r) {
    mp_fold_settle_nan(fold->kind, fold->type, out + (size_t)r * size);
  }
}

// One row: tiles often have no more.
static void fold_rows_one(const mp_fold_t *fold, const mp_fold_rows_t *rows, const void *start,
                          void *out) {
  _Alignas(16) char folded[MAX_ACC];
  rows->row(rows->x, rows->length, folded);
  const void *in[] = {start, folded};
  fold->loop(1, in, out);
}

void mp_fold_rows(const mp_fold_t *fold, const mp_fold_rows_t *rows, const void *start, void *out) {
  if (rows->count == 1) {
    fold_rows_one(fold, rows, start, out);
    return;
  }
  const int64_t length = rows->length;
  _Alignas(64) char starts[MOST * MAX_ACC], folded[MOST * MAX_ACC];
  const size_t size = fold->operands[0].acc_size;
  const bool is_short = fold_rows_are_side_by_side(rows->in_size, size, length);
  const int64_t step = is_short ? LANES : 1;
  mp_fill(starts, start, size, mp_min_i64(rows->count, MOST));
  for (int64_t begin = 0, count; begin < rows->count; begin += count) {
    count = mp_min_i64(MOST, rows->count - begin);
    for (int64_t r = 0; r < count; r += step) {
      const char *from = (const char *)rows->x + (size_t)((begin + r) * length) * rows->in_size;
      char *to = folded + (size_t)r * size;
      if (is_short) {
        fold_rows_short(fold, from, length, mp_min_i64(LANES, count - r), to);
      } else {
        rows->row(from, length, to);
      }
    }
    const void *in[] = {starts, folded};
    fold->loop(count, in, (char *)out + (size_t)begin * size);
  }
}
