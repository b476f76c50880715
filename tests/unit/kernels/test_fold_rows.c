// The loops that fold whole rows give what the loops of single steps give, in the order that
// mp_fold_row has.
#include "tests/unit/support/unit.h"

#include <math.h>
#include <string.h>

#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/reduction/fold.h"
#include "tests/unit/support/hostile/hostile_values.h"

enum { MOST = 4 * MP_FOLD_LANES + 200, BYTES = 8 };

// A row beside others, none of which is read as if it were part of it.
static _Alignas(64) char g_row[MOST * BYTES], g_wide[MOST * BYTES];

// As f32 or f64, or as integers of four bytes.
static bool is_same(mp_dtype_t dtype, const void *a, const void *b) {
  float x = 0, y = 0;
  double u = 0, v = 0;
  if (dtype == MP_DTYPE_F32) memcpy(&x, a, 4), memcpy(&y, b, 4);
  if (dtype == MP_DTYPE_F64) memcpy(&u, a, 8), memcpy(&v, b, 8);
  if (isnan(x) || isnan(u)) return isnan(x) == isnan(y) && isnan(u) == isnan(v);
  return memcmp(a, b, mp_dtype_size(dtype)) == 0;
}

static void fold_plainly(mp_ew_loop_t loop, size_t size, char *row, int64_t count) {
  int64_t lanes = count < MP_FOLD_LANES ? count : MP_FOLD_LANES;
  for (int64_t i = lanes; i < count; ++i) {
    char *acc = row + (size_t)(i % MP_FOLD_LANES) * size;
    loop(1, (const void *[]){acc, row + (size_t)i * size}, acc);
  }
  for (int64_t rest; lanes > 1; lanes = rest) {
    rest = lanes - lanes / 2;
    loop(lanes / 2, (const void *[]){row, row + (size_t)rest * size}, row);
  }
}

// Draws elements: hostile ones, or (`mild`) numbers and zeros alone, so that sums and extremes are
// numbers too.
static void draw(mp_dtype_t dtype, bool is_mild, int64_t count, uint64_t *seed) {
  const size_t size = mp_dtype_size(dtype);
  hostile_fill(dtype, (size_t)count, seed, g_row);
  for (int64_t i = 0; is_mild && mp_dtype_is_float(dtype) && i < count; ++i) {
    const double value = (double)(hostile_random(seed) % 5) - (double)(*seed % 5);
    mp_float_encode(dtype, *seed % 3 == 0 ? -fabs(value) : value, g_row + (size_t)i * size);
  }
}

static void check(mp_reduce_kind_t kind, mp_dtype_t from, mp_dtype_t to, uint64_t *seed) {
  const mp_fold_row_loop_t loop = mp_fold_row_loop(kind, from, to);
  mp_ew_t step = {0};
  assert_true(mp_ew_bind_binary(mp_reduce_kind_opcode(kind), to, &step));
  for (uint32_t round = 0; round < 400; ++round) {
    const uint64_t most = round % 2 == 0 ? 260 : MOST;
    int64_t count = 1 + (int64_t)(hostile_random(seed) % most);
    if (round % 5 == 0) count = (count + 127) / 128 * 128;
    if (count > MOST) count = MOST;
    draw(from, round % 4 != 0, count, seed);
    if (from == to) {
      memcpy(g_wide, g_row, (size_t)count * mp_dtype_size(to));
    } else {
      mp_float_widen(from, count, g_row, (float *)(void *)g_wide);
    }
    char found[BYTES];
    loop(g_row, count, found);
    fold_plainly(step.loop, mp_dtype_size(to), g_wide, count);
    if (is_same(to, g_wide, found)) continue;
    fail_msg("%s of %d %s differs, round %u", mp_op_info(mp_reduce_kind_opcode(kind))->name,
             (int)count, mp_dtype_name(from), round);
  }
}

// Whichever NaN is in a row, and whatever way the row is folded.
static void the_nan_of_a_sum_is_always_the_same(void **state) {
  (void)state;
  static const uint32_t nans[] = {0x7FC00000, 0xFFC00000, 0xFFC10000, 0x7FD50000};
  const float settled = NAN;
  for (int64_t count = 1; count < 1100; count += 93) {
    for (uint32_t k = 0; k < 4; ++k) {
      uint32_t *wide = (void *)g_row;
      uint16_t *narrow = (void *)g_wide;
      for (int64_t i = 0; i < count; ++i) {
        wide[i] = nans[(k + (uint32_t)i) % 4];
        narrow[i] = (uint16_t)(wide[i] >> 16);
      }
      float sum = 0;
      mp_fold_row_loop(MP_REDUCE_ADD, MP_DTYPE_F32, MP_DTYPE_F32)(wide, count, &sum);
      assert_memory_equal(&sum, &settled, sizeof(sum));
      mp_fold_row_loop(MP_REDUCE_ADD, MP_DTYPE_BF16, MP_DTYPE_F32)(narrow, count, &sum);
      assert_memory_equal(&sum, &settled, sizeof(sum));
      memcpy(&sum, &nans[k], sizeof(sum));
      mp_fold_settle_nan(MP_REDUCE_ADD, MP_DTYPE_F32, &sum);
      assert_memory_equal(&sum, &settled, sizeof(sum));
    }
  }
}

// Folds many rows, and each of them alone behind the start value.
static void check_many(mp_reduce_kind_t kind, mp_dtype_t from, mp_dtype_t to, uint64_t *seed) {
  enum { ROWS_MOST = 150 };
  const size_t in_size = mp_dtype_size(from), size = mp_dtype_size(to);
  mp_ew_t step = {0};
  assert_true(mp_ew_bind_binary(mp_reduce_kind_opcode(kind), to, &step));
  mp_fold_operand_t operand = {.in_size = in_size, .acc_size = size, .out_size = size};
  const mp_fold_t fold = {.num_operands = 1,
                          .kind = kind,
                          .loop = step.loop,
                          .type = to,
                          .row = mp_fold_row_loop(kind, from, to),
                          .operands = &operand};
  for (uint32_t round = 0; round < 300; ++round) {
    const int64_t length = 1 + (int64_t)(hostile_random(seed) % (round % 3 == 0 ? 40 : 300));
    const int64_t most = MOST / length < ROWS_MOST ? MOST / length : ROWS_MOST;
    const int64_t rows = 1 + (int64_t)(hostile_random(seed) % (uint64_t)most);
    draw(from, round % 4 != 0, rows * length, seed);
    char start[BYTES] = {0}, found[ROWS_MOST * BYTES + 1];
    if (from == to) memcpy(start, g_row, size);
    memset(found, 0x5a, sizeof(found));
    mp_fold_rows(&fold, &(mp_fold_rows_t){fold.row, in_size, g_row, length, rows}, start, found);
    for (int64_t r = 0; r < rows; ++r) {
      char one[BYTES];
      fold.row(g_row + (size_t)(r * length) * in_size, length, one);
      step.loop(1, (const void *[]){start, one}, one);
      if (is_same(to, one, found + (size_t)r * size)) continue;
      fail_msg("%s of %d rows of %d %s differs, round %u",
               mp_op_info(mp_reduce_kind_opcode(kind))->name, (int)rows, (int)length,
               mp_dtype_name(from), round);
    }
    assert_int_equal(found[(size_t)rows * size], 0x5a);
  }
}

// ---- the loops that there are ----

typedef void (*check_fn_t)(mp_reduce_kind_t kind, mp_dtype_t from, mp_dtype_t to, uint64_t *seed);

static void check_loops(check_fn_t check_loop) {
  uint64_t seed = 20;
  uint32_t loops = 0;
  for (uint32_t kind = MP_REDUCE_ADD; kind <= MP_REDUCE_XOR; ++kind) {
    for (uint32_t from = 0; from < MP_DTYPE_COUNT; ++from) {
      const mp_dtype_t to = mp_ew_computing_type((mp_dtype_t)from);
      if (mp_fold_row_loop((mp_reduce_kind_t)kind, (mp_dtype_t)from, to) == NULL) continue;
      check_loop((mp_reduce_kind_t)kind, (mp_dtype_t)from, to, &seed);
      ++loops;
    }
  }
  assert_int_equal(loops, 16);
}

static void rows_are_folded_in_order(void **state) {
  (void)state;
  check_loops(check);
}

static void many_rows_are_folded_as_each_alone(void **state) {
  (void)state;
  check_loops(check_many);
}

static void ops_without_a_loop_are_reported(void **state) {
  (void)state;
  assert_null(mp_fold_row_loop(MP_REDUCE_ADD, MP_DTYPE_F16, MP_DTYPE_F32));
  assert_null(mp_fold_row_loop(MP_REDUCE_ADD, MP_DTYPE_BF16, MP_DTYPE_BF16));
  assert_null(mp_fold_row_loop(MP_REDUCE_CUSTOM, MP_DTYPE_F32, MP_DTYPE_F32));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_folded_in_order),
      cmocka_unit_test(many_rows_are_folded_as_each_alone),
      cmocka_unit_test(the_nan_of_a_sum_is_always_the_same),
      cmocka_unit_test(ops_without_a_loop_are_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
