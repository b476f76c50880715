// Long reductions to few results, which are cut into pieces: what they give, and that the order of
// a row is that of a row which is not cut.
#include <math.h>

#include "sim/kernels/reduction/fold.h"
#include "sim/numeric/float.h"
#include "tests/unit/support/hostile/hostile_values.h"
#include "tests/unit/support/region_test.h"

// Begins a reduction of `in` to `out` along one dimension or two.
static void begin_reduction(kernel_bench_t *bench, mp_dtype_t dtype, uint32_t rank,
                            const int64_t *dims, uint32_t mask) {
  int64_t dimensions[3], kept[3];
  uint32_t num_dimensions = 0, num_kept = 0;
  for (uint32_t i = 0; i < rank; ++i) {
    if ((mask >> i & 1) != 0) {
      dimensions[num_dimensions++] = i;
    } else {
      kept[num_kept++] = dims[i];
    }
  }
  bench_begin(bench, MP_OP_REDUCE);
  bench_operand(bench, dtype, rank, dims);
  bench_operand(bench, dtype, 0, NULL);
  bench_result(bench, dtype, num_kept, kept);
  bench_ints(bench, MP_ATTR_DIMENSIONS, num_dimensions, dimensions);
}

// ---- Against plain loops ----

// The sum, modulo 2^32, of numbers of which no two are alike nearby.
static void check_sum(const int64_t *dims, uint32_t mask, bool is_cut) {
  const int64_t count = dims[0] * dims[1] * dims[2];
  int64_t results = 1;
  for (uint32_t d = 0; d < 3; ++d) results *= (mask >> d & 1) != 0 ? 1 : dims[d];
  uint32_t *in = malloc((size_t)count * 4), init = 7;
  uint32_t *out = malloc((size_t)results * 4), *want = malloc((size_t)results * 4);
  for (int64_t i = 0; i < results; ++i) want[i] = init;
  for (int64_t i = 0; i < count; ++i) {
    in[i] = (uint32_t)i * 2654435761u;
    const int64_t index[3] = {i / (dims[1] * dims[2]), i / dims[2] % dims[1], i % dims[2]};
    int64_t to = 0;
    for (uint32_t d = 0; d < 3; ++d) {
      if ((mask >> d & 1) == 0) to = to * dims[d] + index[d];
    }
    want[to] += in[i];
  }
  kernel_bench_t bench;
  begin_reduction(&bench, MP_DTYPE_U32, 3, dims, mask);
  region_reducer(&bench, MP_OP_ADD, MP_DTYPE_U32);
  bench_make(&bench);
  if ((bench.kernel->finish != NULL) != is_cut) fail_msg("%d results", (int)results);
  bench_run(&bench, (const void *[]){in, &init}, (void *[]){out});
  assert_memory_equal(out, want, (size_t)results * 4);
  bench_end(&bench);
  free(in);
  free(out);
  free(want);
}

static void sums_of_pieces_are_sums(void **state) {
  (void)state;
  check_sum((int64_t[]){1, 1, 300007}, 4, true);   // a row
  check_sum((int64_t[]){3, 1, 120011}, 4, false);  // a row for each part
  check_sum((int64_t[]){3, 1, 280011}, 4, true);   // pieces of three rows
  check_sum((int64_t[]){501, 2, 701}, 5, true);    // rows at a distance
  check_sum((int64_t[]){2, 3, 300007}, 5, true);   // two of them, long
  check_sum((int64_t[]){700, 3, 333}, 3, true);    // lanes
  check_sum((int64_t[]){3001, 1, 700}, 1, true);   // lanes of several parts
  check_sum((int64_t[]){400001, 3, 1}, 1, true);   // groups
  check_sum((int64_t[]){2, 20011, 48}, 2, true);   // two of them
  check_sum((int64_t[]){501, 5, 401}, 2, false);   // many results
  check_sum((int64_t[]){3, 600, 700}, 6, true);
  check_sum((int64_t[]){600000, 1, 1}, 1, true);
  check_sum((int64_t[]){1, 1, 200000}, 4, false);  // too short
}

// The first element that is not -1: an operation whose operands must not be exchanged.
static void the_order_of_pieces_is_kept(void **state) {
  (void)state;
  enum { N = 600011 };
  int32_t *in = malloc(N * sizeof(*in)), init = -1, out = 0;
  const int32_t firsts[] = {0, 1, 299999, 300007, 599000, N - 1};
  for (size_t f = 0; f < sizeof(firsts) / sizeof(firsts[0]); ++f) {
    for (int32_t i = 0; i < N; ++i) in[i] = i < firsts[f] ? -1 : i;
    kernel_bench_t bench;
    begin_reduction(&bench, MP_DTYPE_S32, 1, (int64_t[]){N}, 1);
    mp_block_t *block = region_begin(&bench, 2, (mp_dtype_t[]){MP_DTYPE_S32, MP_DTYPE_S32});
    mp_value_t *none = region_constant(&bench, block, MP_DTYPE_S32, &init);
    mp_value_t *absent =
        region_compare(&bench, block, MP_CMP_EQ, MP_CMP_SIGNED, &block->args[0], none);
    mp_value_t *value = region_select(&bench, block, absent, &block->args[1], &block->args[0]);
    region_return(&bench, block, 1, &value);
    bench_make(&bench);
    assert_non_null(bench.kernel->finish);
    bench_run(&bench, (const void *[]){in, &init}, (void *[]){&out});
    assert_int_equal(out, firsts[f]);
    bench_end(&bench);
  }
  free(in);
}

// Two sums at once, of two types, by a region that is not a known one.
static void several_operands_have_pieces(void **state) {
  (void)state;
  enum { N = 400013 };
  uint16_t *a = malloc(N * sizeof(*a)), a_init = 5, a_out = 0, a_want = a_init;
  uint64_t *b = malloc(N * sizeof(*b)), b_init = 9, b_out = 0, b_want = b_init;
  for (uint32_t i = 0; i < N; ++i) {
    a[i] = (uint16_t)(i * 40503u);
    b[i] = i * UINT64_C(0x9E3779B97F4A7C15);
    a_want = (uint16_t)(a_want + a[i]);
    b_want += b[i];
  }
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_REDUCE);
  bench_operand(&bench, MP_DTYPE_U16, 1, (int64_t[]){N});
  bench_operand(&bench, MP_DTYPE_U64, 1, (int64_t[]){N});
  bench_operand(&bench, MP_DTYPE_U16, 0, NULL);
  bench_operand(&bench, MP_DTYPE_U64, 0, NULL);
  bench_result(&bench, MP_DTYPE_U16, 0, NULL);
  bench_result(&bench, MP_DTYPE_U64, 0, NULL);
  bench_ints(&bench, MP_ATTR_DIMENSIONS, 1, (int64_t[]){0});
  const mp_dtype_t types[] = {MP_DTYPE_U16, MP_DTYPE_U64, MP_DTYPE_U16, MP_DTYPE_U64};
  mp_block_t *block = region_begin(&bench, 4, types);
  mp_value_t *sums[] = {region_binary(&bench, block, MP_OP_ADD, &block->args[0], &block->args[2]),
                        region_binary(&bench, block, MP_OP_ADD, &block->args[1], &block->args[3])};
  region_return(&bench, block, 2, sums);
  bench_make(&bench);
  assert_non_null(bench.kernel->finish);
  bench_run(&bench, (const void *[]){a, b, &a_init, &b_init}, (void *[]){&a_out, &b_out});
  assert_int_equal(a_out, a_want);
  assert_true(b_out == b_want);
  bench_end(&bench);
  free(a);
  free(b);
}

// ---- Against rows that are not cut ----

// ROWS results are as many as parts are worth while, so that their rows stay whole.
enum { ROWS = 33 };

static void check_row(mp_dtype_t dtype, mp_opcode_t code, int64_t length, uint64_t seed) {
  const size_t size = mp_dtype_size(dtype), bytes = (size_t)length * size;
  char *in = malloc(ROWS * bytes), *whole = malloc(ROWS * size);
  _Alignas(16) char init[16] = {0}, out[16] = {0};
  hostile_fill(dtype, (uint64_t)length, &seed, in);
  memcpy(init, in + bytes / 2 / size * size, size);
  for (size_t r = 1; r < ROWS; ++r) memcpy(in + r * bytes, in, bytes);
  for (int is_cut = 0; is_cut < 2; ++is_cut) {
    kernel_bench_t bench;
    begin_reduction(&bench, dtype, 2, (int64_t[]){is_cut ? 1 : ROWS, length}, 2);
    region_reducer(&bench, code, dtype);
    bench_make(&bench);
    assert_int_equal(bench.kernel->finish != NULL, is_cut);
    bench_run(&bench, (const void *[]){in, init}, (void *[]){is_cut ? out : whole});
    bench_end(&bench);
  }
  assert_memory_equal(out, whole, size);
  free(in);
  free(whole);
}

static void a_row_in_pieces_has_the_bits_of_a_row(void **state) {
  (void)state;
  static const int64_t lengths[] = {262144, 299999};
  static const mp_dtype_t dtypes[] = {MP_DTYPE_F32, MP_DTYPE_BF16, MP_DTYPE_F64, MP_DTYPE_C64};
  for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
    for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); ++d) {
      check_row(dtypes[d], MP_OP_ADD, lengths[i], 4 * i + d + 1);
    }
  }
  check_row(MP_DTYPE_F32, MP_OP_MULTIPLY, 262147, 100);
  check_row(MP_DTYPE_BF16, MP_OP_MAXIMUM, 262147, 101);
}

// ---- Loops over blocks ----

// Of two NaNs that meet in a sum or a product either may be handed on.
static bool are_equal(mp_dtype_t dtype, mp_reduce_kind_t kind, const char *a, const char *b) {
  const size_t size = mp_dtype_size(dtype);
  if (memcmp(a, b, size) == 0) return true;
  if (!mp_dtype_is_float(dtype) || (kind != MP_REDUCE_ADD && kind != MP_REDUCE_MUL)) return false;
  return isnan(mp_float_decode(dtype, a)) && isnan(mp_float_decode(dtype, b));
}

static void check_blocks(mp_reduce_kind_t kind, mp_dtype_t dtype, uint64_t seed) {
  enum { LANES = MP_FOLD_LANES };
  const size_t size = mp_dtype_size(dtype);
  const mp_fold_blocks_t blocks = mp_fold_blocks(kind, dtype);
  mp_ew_t ew = {0};
  assert_true(mp_ew_bind_binary(mp_reduce_kind_opcode(kind), dtype, &ew));
  char x[LANES * 8], acc[LANES * 8], want[LANES * 8];
  hostile_fill(dtype, LANES, &seed, x);
  hostile_fill(dtype, LANES, &seed, acc);
  for (size_t i = 0; dtype == MP_DTYPE_BOOL && i < LANES; ++i) x[i] &= 1, acc[i] &= 1;
  memcpy(want, acc, LANES * size);
  char both[LANES * 8];
  blocks.step(both, acc, x, (int64_t)(LANES * size));
  blocks.step(acc, acc, x, (int64_t)(LANES * size));
  assert_memory_equal(both, acc, LANES * size);
  ew.loop(LANES, (const void *[]){want, x}, want);
  for (size_t i = 0; i < LANES; ++i) {
    assert_true(are_equal(dtype, kind, acc + i * size, want + i * size));
  }
  memcpy(want, acc, LANES * size);
  blocks.halves(acc);
  for (size_t half = LANES / 2; half > 0; half /= 2) {
    ew.loop((int64_t)half, (const void *[]){want, want + half * size}, want);
  }
  assert_true(are_equal(dtype, kind, acc, want));
}

static void loops_over_blocks_are_those_of_the_ops(void **state) {
  (void)state;
  uint32_t checked = 0;
  for (int kind = MP_REDUCE_ADD; kind < MP_REDUCE_SECOND; ++kind) {
    for (int dtype = 0; dtype < MP_DTYPE_COUNT; ++dtype) {
      const mp_fold_blocks_t blocks = mp_fold_blocks((mp_reduce_kind_t)kind, (mp_dtype_t)dtype);
      assert_int_equal(blocks.step == NULL, blocks.halves == NULL);
      if (blocks.step == NULL) continue;
      ++checked;
      for (uint64_t seed = 1; seed < 200; ++seed) {
        check_blocks((mp_reduce_kind_t)kind, (mp_dtype_t)dtype, seed);
      }
    }
  }
  assert_int_equal(checked, 16);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(loops_over_blocks_are_those_of_the_ops),
      cmocka_unit_test(sums_of_pieces_are_sums),
      cmocka_unit_test(the_order_of_pieces_is_kept),
      cmocka_unit_test(several_operands_have_pieces),
      cmocka_unit_test(a_row_in_pieces_has_the_bits_of_a_row),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
