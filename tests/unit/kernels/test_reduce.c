// Reductions: every way through the input gives what plain loops give.
#include <math.h>

#include "sim/numeric/float.h"
#include "tests/unit/support/region_test.h"

// Integer reductions over all subsets of the dimensions of a 3-d shape, against plain loops. The
// shapes make the kernel go by lanes, rows, groups and segments.
static void check_sum_s32(const int64_t *dims, uint32_t mask) {
  int64_t dimensions[3], kept[3], count = dims[0] * dims[1] * dims[2], results = 1;
  uint32_t num_dimensions = 0, num_kept = 0;
  for (uint32_t i = 0; i < 3; ++i) {
    if ((mask >> i & 1) != 0) {
      dimensions[num_dimensions++] = i;
    } else {
      kept[num_kept++] = dims[i];
      results *= dims[i];
    }
  }
  int32_t *in = malloc((size_t)count * 4 + 4), *out = malloc((size_t)results * 4 + 4);
  int32_t *want = malloc((size_t)results * 4 + 4), init = 7;
  for (int64_t i = 0; i < results; ++i) want[i] = init;
  for (int64_t i = 0; i < count; ++i) {
    in[i] = (int32_t)(i * 2654435761u);
    int64_t index[3] = {i / (dims[1] * dims[2]), i / dims[2] % dims[1], i % dims[2]}, to = 0;
    for (uint32_t d = 0; d < 3; ++d) {
      if ((mask >> d & 1) == 0) to = to * dims[d] + index[d];
    }
    want[to] = (int32_t)((uint32_t)want[to] + (uint32_t)in[i]);
  }
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_REDUCE);
  bench_operand(&bench, MP_DTYPE_S32, 3, dims);
  bench_operand(&bench, MP_DTYPE_S32, 0, NULL);
  bench_result(&bench, MP_DTYPE_S32, num_kept, kept);
  bench_ints(&bench, MP_ATTR_DIMENSIONS, num_dimensions, dimensions);
  region_reducer(&bench, MP_OP_ADD, MP_DTYPE_S32);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in, &init}, (void *[]){out});
  assert_memory_equal(out, want, (size_t)results * 4);
  bench_end(&bench);
  free(in);
  free(out);
  free(want);
}

static void test_sums_over_any_dimensions(void **state) {
  (void)state;
  static const int64_t shapes[][3] = {{2, 3, 4},     {1, 1, 1},  {70, 5, 90},  {3, 700, 2},
                                      {600, 2, 33},  {1, 9, 64}, {4, 4, 1300}, {5, 2003, 24},
                                      {4099, 1, 16}, {0, 3, 2},  {3, 0, 2},    {16, 24, 3},
                                      {90, 4, 5}};
  for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); ++s) {
    for (uint32_t mask = 0; mask < 8; ++mask) check_sum_s32(shapes[s], mask);
  }
}

static void test_bf16_sums_are_rounded_once(void **state) {
  (void)state;
  // 256 + 1 is a tie that bf16 rounds down every time: only a wide accumulator gets anywhere.
  enum { N = 1000 };
  uint16_t in[N], init, out;
  float one = 1, start = 256;
  for (int i = 0; i < N; ++i) mp_float_narrow(MP_DTYPE_BF16, 1, &one, &in[i]);
  mp_float_narrow(MP_DTYPE_BF16, 1, &start, &init);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_REDUCE);
  bench_operand(&bench, MP_DTYPE_BF16, 1, (int64_t[]){N});
  bench_operand(&bench, MP_DTYPE_BF16, 0, NULL);
  bench_result(&bench, MP_DTYPE_BF16, 0, NULL);
  bench_ints(&bench, MP_ATTR_DIMENSIONS, 1, (int64_t[]){0});
  // As JAX writes it for bf16: convert to f32, add, convert back; arguments swapped.
  mp_block_t *block = region_begin(&bench, 2, (mp_dtype_t[]){MP_DTYPE_BF16, MP_DTYPE_BF16});
  mp_value_t *x = region_unary(&bench, block, MP_OP_CONVERT, MP_DTYPE_F32, &block->args[0]);
  mp_value_t *y = region_unary(&bench, block, MP_OP_CONVERT, MP_DTYPE_F32, &block->args[1]);
  mp_value_t *sum = region_binary(&bench, block, MP_OP_ADD, y, x);
  mp_value_t *back = region_unary(&bench, block, MP_OP_CONVERT, MP_DTYPE_BF16, sum);
  region_return(&bench, block, 1, &back);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in, &init}, (void *[]){&out});
  assert_float_equal(mp_float_decode(MP_DTYPE_BF16, &out), 1256, 4);
  bench_end(&bench);
}

static void test_float_minimum_keeps_nan(void **state) {
  (void)state;
  float in[40], init = INFINITY, out[1];
  for (int i = 0; i < 40; ++i) in[i] = (float)(40 - i);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_REDUCE);
  bench_operand(&bench, MP_DTYPE_F32, 1, (int64_t[]){40});
  bench_operand(&bench, MP_DTYPE_F32, 0, NULL);
  bench_result(&bench, MP_DTYPE_F32, 0, NULL);
  bench_ints(&bench, MP_ATTR_DIMENSIONS, 1, (int64_t[]){0});
  region_reducer(&bench, MP_OP_MINIMUM, MP_DTYPE_F32);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in, &init}, (void *[]){out});
  assert_true(out[0] == 1);
  in[17] = NAN;
  bench_run(&bench, (const void *[]){in, &init}, (void *[]){out});
  assert_true(isnan(out[0]));
  bench_end(&bench);
}

// argmax as JAX writes it: the larger value, of equal ones the smaller index.
static void make_argmax(kernel_bench_t *bench) {
  mp_block_t *block = region_begin(
      bench, 4, (mp_dtype_t[]){MP_DTYPE_F32, MP_DTYPE_S32, MP_DTYPE_F32, MP_DTYPE_S32});
  mp_value_t *v0 = &block->args[0], *i0 = &block->args[1];
  mp_value_t *v1 = &block->args[2], *i1 = &block->args[3];
  mp_value_t *gt = region_compare(bench, block, MP_CMP_GT, MP_CMP_FLOAT, v0, v1);
  mp_value_t *eq = region_compare(bench, block, MP_CMP_EQ, MP_CMP_FLOAT, v0, v1);
  mp_value_t *lt = region_compare(bench, block, MP_CMP_LT, MP_CMP_SIGNED, i0, i1);
  mp_value_t *tie = region_binary(bench, block, MP_OP_AND, eq, lt);
  mp_value_t *first = region_binary(bench, block, MP_OP_OR, gt, tie);
  mp_value_t *value = region_select(bench, block, gt, v0, v1);
  mp_value_t *index = region_select(bench, block, first, i0, i1);
  region_return(bench, block, 2, (mp_value_t *[]){value, index});
}

static void check_argmax(int64_t rows, int64_t columns, int64_t dimension) {
  size_t count = (size_t)(rows * columns);
  int64_t results = dimension == 0 ? columns : rows, length = dimension == 0 ? rows : columns;
  float *values = malloc(count * 4), *best = malloc((size_t)results * 4), low = -INFINITY;
  int32_t *indices = malloc(count * 4), *where = malloc((size_t)results * 4), zero = 0;
  for (size_t i = 0; i < count; ++i) {
    values[i] = (float)(i * 7919 % 101);
    indices[i] = (int32_t)(dimension == 0 ? (int64_t)i / columns : (int64_t)i % columns);
  }
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_REDUCE);
  bench_operand(&bench, MP_DTYPE_F32, 2, (int64_t[]){rows, columns});
  bench_operand(&bench, MP_DTYPE_S32, 2, (int64_t[]){rows, columns});
  bench_operand(&bench, MP_DTYPE_F32, 0, NULL);
  bench_operand(&bench, MP_DTYPE_S32, 0, NULL);
  bench_result(&bench, MP_DTYPE_F32, 1, &results);
  bench_result(&bench, MP_DTYPE_S32, 1, &results);
  bench_ints(&bench, MP_ATTR_DIMENSIONS, 1, &dimension);
  make_argmax(&bench);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){values, indices, &low, &zero}, (void *[]){best, where});
  for (int64_t r = 0; r < results; ++r) {
    int64_t step = dimension == 0 ? columns : 1, start = dimension == 0 ? r : r * columns, at = 0;
    for (int64_t i = 1; i < length; ++i) {
      if (values[start + i * step] > values[start + at * step]) at = i;
    }
    assert_true(best[r] == values[start + at * step]);
    assert_int_equal(where[r], at);
  }
  bench_end(&bench);
  free(values);
  free(indices);
  free(best);
  free(where);
}

static void test_argmax(void **state) {
  (void)state;
  check_argmax(3, 5, 1);
  check_argmax(100, 70, 0);
  check_argmax(70, 100, 1);
  check_argmax(2, 5001, 1);  // by segments
  check_argmax(1300, 3, 0);
}

// Order matters here: f(a, b) = 10 a + b would show any exchange, and is not associative; so use
// the first element, which is associative but not commutative.
static void test_order_is_kept(void **state) {
  (void)state;
  enum { N = 3000 };
  static int32_t in[N];
  int32_t init = -1, out = 0;
  for (int i = 0; i < N; ++i) in[i] = i < 1700 ? -1 : i;
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_REDUCE);
  bench_operand(&bench, MP_DTYPE_S32, 1, (int64_t[]){N});
  bench_operand(&bench, MP_DTYPE_S32, 0, NULL);
  bench_result(&bench, MP_DTYPE_S32, 0, NULL);
  bench_ints(&bench, MP_ATTR_DIMENSIONS, 1, (int64_t[]){0});
  mp_block_t *block = region_begin(&bench, 2, (mp_dtype_t[]){MP_DTYPE_S32, MP_DTYPE_S32});
  int32_t none = -1;
  mp_value_t *constant = region_constant(&bench, block, MP_DTYPE_S32, &none);
  mp_value_t *absent =
      region_compare(&bench, block, MP_CMP_EQ, MP_CMP_SIGNED, &block->args[0], constant);
  mp_value_t *value = region_select(&bench, block, absent, &block->args[1], &block->args[0]);
  region_return(&bench, block, 1, &value);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in, &init}, (void *[]){&out});
  assert_int_equal(out, 1700);
  bench_end(&bench);
}

static void test_sum_of_many_floats_is_accurate(void **state) {
  (void)state;
  enum { N = 1 << 20 };
  float *in = malloc(N * sizeof(float)), init = 0, out = 0;
  for (int i = 0; i < N; ++i) in[i] = 0.1f;
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_REDUCE);
  bench_operand(&bench, MP_DTYPE_F32, 1, (int64_t[]){N});
  bench_operand(&bench, MP_DTYPE_F32, 0, NULL);
  bench_result(&bench, MP_DTYPE_F32, 0, NULL);
  bench_ints(&bench, MP_ATTR_DIMENSIONS, 1, (int64_t[]){0});
  region_reducer(&bench, MP_OP_ADD, MP_DTYPE_F32);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in, &init}, (void *[]){&out});
  assert_float_equal(out, (double)in[0] * N, 1);
  bench_end(&bench);
  free(in);
}

static void test_foreign_ops_are_refused(void **state) {
  (void)state;
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_REDUCE);
  bench_operand(&bench, MP_DTYPE_F32, 1, (int64_t[]){4});
  bench_operand(&bench, MP_DTYPE_F32, 0, NULL);
  bench_result(&bench, MP_DTYPE_F32, 0, NULL);
  bench_ints(&bench, MP_ATTR_DIMENSIONS, 1, (int64_t[]){0});
  region_reducer(&bench, MP_OP_DOT, MP_DTYPE_F32);
  bench_make_op(&bench);
  assert_status(mp_kernel_create(bench.module->arena, bench.op, &bench.kernel), MP_UNIMPLEMENTED,
                "stablehlo.dot");
  bench_end(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sums_over_any_dimensions),
      cmocka_unit_test(test_bf16_sums_are_rounded_once),
      cmocka_unit_test(test_float_minimum_keeps_nan),
      cmocka_unit_test(test_argmax),
      cmocka_unit_test(test_order_is_kept),
      cmocka_unit_test(test_sum_of_many_floats_is_accurate),
      cmocka_unit_test(test_foreign_ops_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
