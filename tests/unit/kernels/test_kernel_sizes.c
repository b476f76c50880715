// Kernels of arrays that no memory holds: a program can spell such sizes, and so kernels are made
// for them. Their numbers must be right even where products of them do not fit into 64 bits. None
// of these kernels is run.
#include "tests/unit/support/unit.h"

#include "tests/unit/support/kernel_test.h"

#define DIMS(...) ((int64_t[]){__VA_ARGS__})

// Makes the op of a bench whose kernel is refused with these words.
static void expect_refusal(kernel_bench_t *bench, mp_status_code_t code, const char *words) {
  bench_make_op(bench);
  const mp_kernel_t *kernel = NULL;
  assert_status(mp_kernel_create(bench->module->arena, bench->op, &kernel), code, words);
  assert_null(kernel);
  bench_end(bench);
}

// ---- numbers that are kept in 32 bits ----

static void begin_approx_top_k(kernel_bench_t *bench, int64_t dim) {
  bench_begin(bench, MP_OP_CUSTOM_CALL);
  bench_operand(bench, MP_DTYPE_F32, 1, DIMS(8));
  bench_operand(bench, MP_DTYPE_S32, 1, DIMS(8));
  bench_operand(bench, MP_DTYPE_F32, 0, NULL);
  bench_operand(bench, MP_DTYPE_S32, 0, NULL);
  bench_result(bench, MP_DTYPE_F32, 1, DIMS(4));
  bench_result(bench, MP_DTYPE_S32, 1, DIMS(4));
  bench_string(bench, MP_ATTR_CALL_TARGET_NAME, "ApproxTopK");
  mp_arena_t *arena = bench->module->arena;
  mp_named_attr_t item = {.text = MP_STR("reduction_dim")};
  assert_ok(mp_attr_make_int(arena, MP_DTYPE_S64, dim, &item.value));
  mp_attr_t config = {.kind = MP_KIND_DICT, .u.dict = {.count = 1}};
  config.u.dict.items = mp_arena_copy(arena, &item, sizeof(item));
  *bench_attr(bench, MP_ATTR_MHLO_BACKEND_CONFIG) = mp_arena_copy(arena, &config, sizeof(config));
}

static void test_top_k_dimension(void **state) {
  (void)state;
  kernel_bench_t bench;
  begin_approx_top_k(&bench, 0);
  bench_make(&bench);
  bench_end(&bench);
  const int64_t dims[] = {1, INT64_C(1) << 32, (INT64_C(1) << 62) + (INT64_C(1) << 32), INT64_MAX};
  for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); ++i) {
    begin_approx_top_k(&bench, dims[i]);
    expect_refusal(&bench, MP_INVALID_ARGUMENT, "do not fit");
  }
}

static void begin_lu(kernel_bench_t *bench, int64_t m, int64_t n) {
  bench_begin(bench, MP_OP_CUSTOM_CALL);
  bench_operand(bench, MP_DTYPE_F32, 2, DIMS(m, n));
  bench_result(bench, MP_DTYPE_F32, 2, DIMS(m, n));
  bench_result(bench, MP_DTYPE_S32, 1, DIMS(m < n ? m : n));
  bench_result(bench, MP_DTYPE_S32, 1, DIMS(m));
  bench_string(bench, MP_ATTR_CALL_TARGET_NAME, "LuDecomposition");
}

// A matrix without columns has no elements, and yet a permutation of its rows.
static void test_lu_rows(void **state) {
  (void)state;
  kernel_bench_t bench;
  begin_lu(&bench, INT32_MAX, 0);
  bench_make(&bench);
  bench_end(&bench);
  begin_lu(&bench, INT64_C(1) << 31, 0);
  expect_refusal(&bench, MP_UNIMPLEMENTED, "2147483648 rows");
  begin_lu(&bench, INT64_C(1) << 40, 0);
  expect_refusal(&bench, MP_UNIMPLEMENTED, "32-bit permutation");
}

// ---- estimates of work ----

enum { MOST_PARTS = 64 };

static void expect_parts(kernel_bench_t *bench, uint32_t num_parts) {
  bench_make(bench);
  assert_int_equal(bench->kernel->num_parts, num_parts);
  bench_end(bench);
}

// As much work as this is cut into as many parts as there can be.
static void test_work_does_not_overflow(void **state) {
  (void)state;
  const int64_t n = INT64_C(1) << 21;
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CHOLESKY);
  bench_operand(&bench, MP_DTYPE_F32, 3, DIMS(MOST_PARTS, n, n));
  bench_result(&bench, MP_DTYPE_F32, 3, DIMS(MOST_PARTS, n, n));
  expect_parts(&bench, MOST_PARTS);

  bench_begin(&bench, MP_OP_TRIANGULAR_SOLVE);
  bench_operand(&bench, MP_DTYPE_F32, 2, DIMS(n, n));
  bench_operand(&bench, MP_DTYPE_F32, 2, DIMS(n, n));
  bench_result(&bench, MP_DTYPE_F32, 2, DIMS(n, n));
  expect_parts(&bench, MOST_PARTS);

  bench_begin(&bench, MP_OP_CUSTOM_CALL);
  bench_operand(&bench, MP_DTYPE_F32, 3, DIMS(MOST_PARTS, n, n));
  bench_result(&bench, MP_DTYPE_F32, 3, DIMS(MOST_PARTS, n, n));
  bench_result(&bench, MP_DTYPE_F32, 2, DIMS(MOST_PARTS, n));
  bench_string(&bench, MP_ATTR_CALL_TARGET_NAME, "minipod.eigh.lower");
  expect_parts(&bench, MOST_PARTS);

  bench_begin(&bench, MP_OP_CUSTOM_CALL);
  bench_operand(&bench, MP_DTYPE_F32, 3, DIMS(MOST_PARTS, n, n));
  bench_result(&bench, MP_DTYPE_F32, 3, DIMS(MOST_PARTS, n, n));
  bench_result(&bench, MP_DTYPE_F32, 2, DIMS(MOST_PARTS, n));
  bench_string(&bench, MP_ATTR_CALL_TARGET_NAME, "Qr");
  expect_parts(&bench, MOST_PARTS);
}

// Positions and features of one number times a window of 256, all that the kernel sums itself.
static void test_depthwise_work_does_not_overflow(void **state) {
  (void)state;
  const int64_t positions = INT64_C(1) << 36, features = INT64_C(1) << 20, window = 256;
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CONVOLUTION);
  bench_operand(&bench, MP_DTYPE_F32, 3, DIMS(1, positions, features));
  bench_operand(&bench, MP_DTYPE_F32, 3, DIMS(window, 1, features));
  bench_result(&bench, MP_DTYPE_F32, 3, DIMS(1, positions - window + 1, features));
  bench_ints(&bench, MP_ATTR_WINDOW_STRIDES, 1, DIMS(1));
  bench_table(&bench, MP_ATTR_PADDING, 1, 2, DIMS(0, 0));
  bench_ints(&bench, MP_ATTR_LHS_DILATION, 1, DIMS(1));
  bench_ints(&bench, MP_ATTR_RHS_DILATION, 1, DIMS(1));
  bench_ints(&bench, MP_ATTR_WINDOW_REVERSAL, 1, DIMS(0));
  bench_int(&bench, MP_ATTR_INPUT_BATCH_DIMENSION, 0);
  bench_int(&bench, MP_ATTR_INPUT_FEATURE_DIMENSION, 2);
  bench_ints(&bench, MP_ATTR_INPUT_SPATIAL_DIMENSIONS, 1, DIMS(1));
  bench_int(&bench, MP_ATTR_KERNEL_INPUT_FEATURE_DIMENSION, 1);
  bench_int(&bench, MP_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION, 2);
  bench_ints(&bench, MP_ATTR_KERNEL_SPATIAL_DIMENSIONS, 1, DIMS(0));
  bench_int(&bench, MP_ATTR_OUTPUT_BATCH_DIMENSION, 0);
  bench_int(&bench, MP_ATTR_OUTPUT_FEATURE_DIMENSION, 2);
  bench_ints(&bench, MP_ATTR_OUTPUT_SPATIAL_DIMENSIONS, 1, DIMS(1));
  bench_int(&bench, MP_ATTR_FEATURE_GROUP_COUNT, features);
  bench_int(&bench, MP_ATTR_BATCH_GROUP_COUNT, 1);
  expect_parts(&bench, MOST_PARTS);
}

// ---- no matrices, of any size ----

static _Alignas(64) char g_nothing[64];

static void run_on_nothing(kernel_bench_t *bench) {
  const void *operands[] = {g_nothing, g_nothing, g_nothing, g_nothing};
  void *results[] = {g_nothing, g_nothing, g_nothing};
  bench_make(bench);
  bench_run(bench, operands, results);
  bench_end(bench);
}

// A batch of no matrices has no elements, however large each would be; it needs no memory either.
static void test_empty_batches(void **state) {
  (void)state;
  const int64_t n = INT64_C(1) << 40;
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CHOLESKY);
  bench_operand(&bench, MP_DTYPE_F32, 3, DIMS(0, n, n));
  bench_result(&bench, MP_DTYPE_F32, 3, DIMS(0, n, n));
  run_on_nothing(&bench);

  bench_begin(&bench, MP_OP_TRIANGULAR_SOLVE);
  bench_operand(&bench, MP_DTYPE_C64, 3, DIMS(0, n, n));
  bench_operand(&bench, MP_DTYPE_C64, 3, DIMS(0, n, n));
  bench_result(&bench, MP_DTYPE_C64, 3, DIMS(0, n, n));
  run_on_nothing(&bench);
}

static void begin_call(kernel_bench_t *bench, const char *target, int64_t m, int64_t n) {
  bench_begin(bench, MP_OP_CUSTOM_CALL);
  bench_operand(bench, MP_DTYPE_C64, 3, DIMS(0, m, n));
  bench_string(bench, MP_ATTR_CALL_TARGET_NAME, target);
}

static void test_empty_batches_of_calls(void **state) {
  (void)state;
  const int64_t m = INT64_C(1) << 30, n = INT64_C(1) << 60;
  kernel_bench_t bench;
  begin_call(&bench, "LuDecomposition", m, n);
  bench_result(&bench, MP_DTYPE_C64, 3, DIMS(0, m, n));
  bench_result(&bench, MP_DTYPE_S32, 2, DIMS(0, m));
  bench_result(&bench, MP_DTYPE_S32, 2, DIMS(0, m));
  run_on_nothing(&bench);

  begin_call(&bench, "Qr", m, n);
  bench_result(&bench, MP_DTYPE_C64, 3, DIMS(0, m, n));
  bench_result(&bench, MP_DTYPE_C64, 2, DIMS(0, m));
  run_on_nothing(&bench);

  begin_call(&bench, "minipod.eigh.upper", n, n);
  bench_result(&bench, MP_DTYPE_C64, 3, DIMS(0, n, n));
  bench_result(&bench, MP_DTYPE_F32, 2, DIMS(0, n));
  run_on_nothing(&bench);

  begin_call(&bench, "minipod.svd", m, n);
  bench_result(&bench, MP_DTYPE_F32, 2, DIMS(0, m));
  bench_result(&bench, MP_DTYPE_C64, 3, DIMS(0, m, m));
  bench_result(&bench, MP_DTYPE_C64, 3, DIMS(0, n, n));
  run_on_nothing(&bench);
}

// Rows without elements, more than there are numbers.
static void test_empty_rows(void **state) {
  (void)state;
  const int64_t n = INT64_C(1) << 60;
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CUSTOM_CALL);
  bench_operand(&bench, MP_DTYPE_F32, 3, DIMS(n, n, 0));
  bench_result(&bench, MP_DTYPE_F32, 3, DIMS(n, n, 0));
  bench_result(&bench, MP_DTYPE_S32, 3, DIMS(n, n, 0));
  bench_string(&bench, MP_ATTR_CALL_TARGET_NAME, "TopK");
  run_on_nothing(&bench);

  bench_begin(&bench, MP_OP_CUSTOM_CALL);
  for (int d = 0; d < 3; ++d) bench_operand(&bench, MP_DTYPE_F64, 2, DIMS(0, n));
  bench_operand(&bench, MP_DTYPE_F64, 3, DIMS(0, n, n));
  bench_result(&bench, MP_DTYPE_F64, 3, DIMS(0, n, n));
  bench_string(&bench, MP_ATTR_CALL_TARGET_NAME, "minipod.tridiagonal_solve");
  run_on_nothing(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_top_k_dimension),
      cmocka_unit_test(test_lu_rows),
      cmocka_unit_test(test_work_does_not_overflow),
      cmocka_unit_test(test_depthwise_work_does_not_overflow),
      cmocka_unit_test(test_empty_batches),
      cmocka_unit_test(test_empty_batches_of_calls),
      cmocka_unit_test(test_empty_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
