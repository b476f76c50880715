// Scatter, sort and map against plain loops.
#include <math.h>

#include "tests/unit/support/region_test.h"

// ---- scatter ----

static void test_scatter_adds_rows_with_repeated_and_foreign_indices(void **state) {
  (void)state;
  enum { ROWS = 5, COLUMNS = 600, N = 7 };  // wide enough to be cut by columns
  static float in[ROWS][COLUMNS], updates[N][COLUMNS], out[ROWS][COLUMNS], want[ROWS][COLUMNS];
  const int32_t indices[N] = {3, 0, 3, -1, 5, 3, 4};
  for (int r = 0; r < ROWS; ++r) {
    for (int c = 0; c < COLUMNS; ++c) in[r][c] = want[r][c] = (float)(r * 1000 + c);
  }
  for (int i = 0; i < N; ++i) {
    for (int c = 0; c < COLUMNS; ++c) {
      updates[i][c] = (float)(i + 1) + (float)c * 0.5f;
      if (indices[i] >= 0 && indices[i] < ROWS) want[indices[i]][c] += updates[i][c];
    }
  }
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_SCATTER);
  bench_operand(&bench, MP_DTYPE_F32, 2, (int64_t[]){ROWS, COLUMNS});
  bench_operand(&bench, MP_DTYPE_S32, 2, (int64_t[]){N, 1});
  bench_operand(&bench, MP_DTYPE_F32, 2, (int64_t[]){N, COLUMNS});
  bench_result(&bench, MP_DTYPE_F32, 2, (int64_t[]){ROWS, COLUMNS});
  bench_ints(&bench, MP_ATTR_UPDATE_WINDOW_DIMS, 1, (int64_t[]){1});
  bench_ints(&bench, MP_ATTR_INSERTED_WINDOW_DIMS, 1, (int64_t[]){0});
  bench_ints(&bench, MP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, 1, (int64_t[]){0});
  bench_int(&bench, MP_ATTR_INDEX_VECTOR_DIM, 1);
  region_reducer(&bench, MP_OP_ADD, MP_DTYPE_F32);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in, indices, updates}, (void *[]){out});
  assert_memory_equal(out, want, sizeof(want));
  bench_run(&bench, (const void *[]){in, indices, updates}, (void *[]){in});  // in place
  assert_memory_equal(in, want, sizeof(want));
  bench_end(&bench);
}

// 2x2 windows of a transposed layout, partly outside (those are skipped whole), region "set".
static void test_scatter_sets_windows(void **state) {
  (void)state;
  int16_t in[4][3] = {{0}}, out[4][3];
  const int64_t indices[2][3] = {{1, 3, 0}, {0, 2, 1}};  // vectors along dimension 0: rows, columns
  // updates[window column][position][window row]
  const int16_t updates[2][3][2] = {{{1, 2}, {5, 6}, {9, 10}}, {{3, 4}, {7, 8}, {11, 12}}};
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_SCATTER);
  bench_operand(&bench, MP_DTYPE_S16, 2, (int64_t[]){4, 3});
  bench_operand(&bench, MP_DTYPE_S64, 2, (int64_t[]){2, 3});
  bench_operand(&bench, MP_DTYPE_S16, 3, (int64_t[]){2, 3, 2});
  bench_result(&bench, MP_DTYPE_S16, 2, (int64_t[]){4, 3});
  // Operand rows are the updates' dimension 0, columns their dimension 2.
  bench_ints(&bench, MP_ATTR_UPDATE_WINDOW_DIMS, 2, (int64_t[]){0, 2});
  bench_ints(&bench, MP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, 2, (int64_t[]){0, 1});
  bench_int(&bench, MP_ATTR_INDEX_VECTOR_DIM, 0);
  mp_block_t *block = region_begin(&bench, 2, (mp_dtype_t[]){MP_DTYPE_S16, MP_DTYPE_S16});
  mp_value_t *second = &block->args[1];
  region_return(&bench, block, 1, &second);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in, indices, updates}, (void *[]){out});
  // Position 0 is at (1, 0); position 1 at (3, 2) does not fit; position 2 at (0, 1).
  const int16_t want[4][3] = {{0, 9, 10}, {1, 11, 12}, {3, 4, 0}, {0, 0, 0}};
  assert_memory_equal(out, want, sizeof(want));
  bench_end(&bench);
}

// Two operands, batching dimensions, a region that uses both: keeps the pair with the larger key.
static void test_scatter_pairs_with_batching(void **state) {
  (void)state;
  float keys[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}}, new_keys[2][3] = {{9, 0, 2.5f}, {1, 10, 6.5f}};
  int32_t values[2][4] = {{0}}, new_values[2][3] = {{1, 2, 3}, {4, 5, 6}};
  const uint8_t indices[2][3] = {{2, 2, 1}, {0, 3, 1}};
  float out_keys[2][4];
  int32_t out_values[2][4];
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_SCATTER);
  bench_operand(&bench, MP_DTYPE_F32, 2, (int64_t[]){2, 4});
  bench_operand(&bench, MP_DTYPE_S32, 2, (int64_t[]){2, 4});
  bench_operand(&bench, MP_DTYPE_U8, 2, (int64_t[]){2, 3});
  bench_operand(&bench, MP_DTYPE_F32, 2, (int64_t[]){2, 3});
  bench_operand(&bench, MP_DTYPE_S32, 2, (int64_t[]){2, 3});
  bench_result(&bench, MP_DTYPE_F32, 2, (int64_t[]){2, 4});
  bench_result(&bench, MP_DTYPE_S32, 2, (int64_t[]){2, 4});
  bench_ints(&bench, MP_ATTR_INSERTED_WINDOW_DIMS, 1, (int64_t[]){1});
  bench_ints(&bench, MP_ATTR_INPUT_BATCHING_DIMS, 1, (int64_t[]){0});
  bench_ints(&bench, MP_ATTR_SCATTER_INDICES_BATCHING_DIMS, 1, (int64_t[]){0});
  bench_ints(&bench, MP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, 1, (int64_t[]){1});
  bench_int(&bench, MP_ATTR_INDEX_VECTOR_DIM, 2);
  mp_block_t *block = region_begin(
      &bench, 4, (mp_dtype_t[]){MP_DTYPE_F32, MP_DTYPE_S32, MP_DTYPE_F32, MP_DTYPE_S32});
  mp_value_t *a = block->args;
  mp_value_t *gt = region_compare(&bench, block, MP_CMP_GT, MP_CMP_FLOAT, &a[2], &a[0]);
  mp_value_t *key = region_select(&bench, block, gt, &a[2], &a[0]);
  mp_value_t *value = region_select(&bench, block, gt, &a[3], &a[1]);
  region_return(&bench, block, 2, (mp_value_t *[]){key, value});
  bench_make(&bench);
  bench_run(&bench, (const void *[]){keys, values, indices, new_keys, new_values},
            (void *[]){out_keys, out_values});
  const float want_keys[2][4] = {{1, 2.5f, 9, 4}, {5, 6.5f, 7, 10}};
  const int32_t want_values[2][4] = {{0, 3, 1, 0}, {0, 6, 0, 5}};
  assert_memory_equal(out_keys, want_keys, sizeof(want_keys));
  assert_memory_equal(out_values, want_values, sizeof(want_values));
  bench_end(&bench);
}

// Single elements by index pairs, with repetitions and foreign positions.
static void check_scatter_elements(mp_opcode_t code, mp_dtype_t dtype, mp_dtype_t index) {
  enum { N = 1500, ROWS = 7, COLUMNS = 9 };
  static int32_t pairs[N][2];
  static int64_t wide_pairs[N][2];
  static double in[ROWS * COLUMNS], want[ROWS * COLUMNS], updates[N];
  static char stored_in[ROWS * COLUMNS * 8], stored_updates[N * 8], out[ROWS * COLUMNS * 8];
  const size_t size = mp_dtype_size(dtype);
  for (int i = 0; i < ROWS * COLUMNS; ++i) in[i] = want[i] = i;
  for (int i = 0; i < N; ++i) {
    wide_pairs[i][0] = pairs[i][0] = i * 7919 % (ROWS + 2) - 1;
    wide_pairs[i][1] = pairs[i][1] = i * 104729 % (COLUMNS + 2) - 1;
    updates[i] = i % 5;
    if (pairs[i][0] < 0 || pairs[i][0] >= ROWS) continue;
    if (pairs[i][1] < 0 || pairs[i][1] >= COLUMNS) continue;
    double *to = &want[pairs[i][0] * COLUMNS + pairs[i][1]];
    *to = code == MP_OP_ADD       ? *to + updates[i]
          : code == MP_OP_MAXIMUM ? fmax(*to, updates[i])
                                  : updates[i];
  }
  for (int i = 0; i < ROWS * COLUMNS; ++i) {
    if (dtype == MP_DTYPE_S32) ((int32_t *)stored_in)[i] = (int32_t)in[i];
    if (dtype != MP_DTYPE_S32) mp_float_encode(dtype, in[i], stored_in + (size_t)i * size);
  }
  for (int i = 0; i < N; ++i) {
    if (dtype == MP_DTYPE_S32) ((int32_t *)stored_updates)[i] = (int32_t)updates[i];
    if (dtype != MP_DTYPE_S32)
      mp_float_encode(dtype, updates[i], stored_updates + (size_t)i * size);
  }
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_SCATTER);
  bench_operand(&bench, dtype, 2, (int64_t[]){ROWS, COLUMNS});
  bench_operand(&bench, index, 2, (int64_t[]){N, 2});
  bench_operand(&bench, dtype, 1, (int64_t[]){N});
  bench_result(&bench, dtype, 2, (int64_t[]){ROWS, COLUMNS});
  bench_ints(&bench, MP_ATTR_INSERTED_WINDOW_DIMS, 2, (int64_t[]){0, 1});
  bench_ints(&bench, MP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, 2, (int64_t[]){0, 1});
  bench_int(&bench, MP_ATTR_INDEX_VECTOR_DIM, 1);
  if (code == MP_OP_RETURN) {
    mp_block_t *block = region_begin(&bench, 2, (mp_dtype_t[]){dtype, dtype});
    mp_value_t *second = &block->args[1];
    region_return(&bench, block, 1, &second);
  } else {
    region_reducer(&bench, code, dtype);
  }
  bench_make(&bench);
  const void *indices = index == MP_DTYPE_S64 ? (const void *)wide_pairs : (const void *)pairs;
  bench_run(&bench, (const void *[]){stored_in, indices, stored_updates}, (void *[]){out});
  for (int i = 0; i < ROWS * COLUMNS; ++i) {
    double got = dtype == MP_DTYPE_S32 ? ((int32_t *)out)[i]
                                       : mp_float_decode(dtype, out + (size_t)i * size);
    assert_true(got == want[i]);
  }
  bench_end(&bench);
}

// x[:, index] += updates: windows that are columns, side by side in the updates.
static void test_scatter_of_columns(void **state) {
  (void)state;
  enum { ROWS = 300, COLUMNS = 5, N = 700 };
  static float in[ROWS][COLUMNS], updates[ROWS][N], out[ROWS][COLUMNS], want[ROWS][COLUMNS];
  static int32_t indices[N];
  for (int i = 0; i < N; ++i) indices[i] = i * 7919 % (COLUMNS + 2) - 1;
  for (int r = 0; r < ROWS; ++r) {
    for (int c = 0; c < COLUMNS; ++c) in[r][c] = want[r][c] = (float)(r + c);
    for (int i = 0; i < N; ++i) {
      updates[r][i] = (float)((r * 31 + i) % 9);
      if (indices[i] >= 0 && indices[i] < COLUMNS) want[r][indices[i]] += updates[r][i];
    }
  }
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_SCATTER);
  bench_operand(&bench, MP_DTYPE_F32, 2, (int64_t[]){ROWS, COLUMNS});
  bench_operand(&bench, MP_DTYPE_S32, 2, (int64_t[]){N, 1});
  bench_operand(&bench, MP_DTYPE_F32, 2, (int64_t[]){ROWS, N});
  bench_result(&bench, MP_DTYPE_F32, 2, (int64_t[]){ROWS, COLUMNS});
  bench_ints(&bench, MP_ATTR_UPDATE_WINDOW_DIMS, 1, (int64_t[]){0});
  bench_ints(&bench, MP_ATTR_INSERTED_WINDOW_DIMS, 1, (int64_t[]){1});
  bench_ints(&bench, MP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, 1, (int64_t[]){1});
  bench_int(&bench, MP_ATTR_INDEX_VECTOR_DIM, 1);
  region_reducer(&bench, MP_OP_ADD, MP_DTYPE_F32);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in, indices, updates}, (void *[]){out});
  assert_memory_equal(out, want, sizeof(want));
  bench_end(&bench);
}

// x[:, indices] += updates, where an index is for a row of some elements in each of the blocks.
#define CHECK_SCATTER_OF_ROWS(T, dtype, width)                                              \
  do {                                                                                      \
    enum { BLOCKS = 5, ROWS = 7, N = 40, ALL = BLOCKS * ROWS * (width) };                   \
    static T in[BLOCKS][ROWS][width], want[BLOCKS][ROWS][width], out[BLOCKS][ROWS][width];  \
    static T updates[BLOCKS][N][width];                                                     \
    static int32_t indices[N];                                                              \
    for (int i = 0; i < ALL; ++i) ((T *)in)[i] = ((T *)want)[i] = (T)(i * 7919 % 1000) / 3; \
    for (int i = 0; i < BLOCKS * N * (width); ++i) {                                        \
      ((T *)updates)[i] = (T)(i * 104729 % 1000) / 7;                                       \
    }                                                                                       \
    for (int i = 0; i < N; ++i) {                                                           \
      indices[i] = i * 7919 % (ROWS + 2) - 1;                                               \
      if (indices[i] < 0 || indices[i] >= ROWS) continue;                                   \
      for (int k = 0; k < BLOCKS * (width); ++k) {                                          \
        want[k / (width)][indices[i]][k % (width)] += updates[k / (width)][i][k % (width)]; \
      }                                                                                     \
    }                                                                                       \
    kernel_bench_t bench;                                                                   \
    bench_begin(&bench, MP_OP_SCATTER);                                                     \
    bench_operand(&bench, dtype, 3, (int64_t[]){BLOCKS, ROWS, width});                      \
    bench_operand(&bench, MP_DTYPE_S32, 2, (int64_t[]){N, 1});                              \
    bench_operand(&bench, dtype, 3, (int64_t[]){BLOCKS, N, width});                         \
    bench_result(&bench, dtype, 3, (int64_t[]){BLOCKS, ROWS, width});                       \
    bench_ints(&bench, MP_ATTR_UPDATE_WINDOW_DIMS, 2, (int64_t[]){0, 2});                   \
    bench_ints(&bench, MP_ATTR_INSERTED_WINDOW_DIMS, 1, (int64_t[]){1});                    \
    bench_ints(&bench, MP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, 1, (int64_t[]){1});            \
    bench_int(&bench, MP_ATTR_INDEX_VECTOR_DIM, 1);                                         \
    region_reducer(&bench, MP_OP_ADD, dtype);                                               \
    bench_make(&bench);                                                                     \
    bench_run(&bench, (const void *[]){in, indices, updates}, (void *[]){out});             \
    assert_memory_equal(out, want, sizeof(want));                                           \
    bench_end(&bench);                                                                      \
  } while (0)

static void test_scatter_of_short_rows(void **state) {
  (void)state;
  CHECK_SCATTER_OF_ROWS(float, MP_DTYPE_F32, 1);
  CHECK_SCATTER_OF_ROWS(float, MP_DTYPE_F32, 2);
  CHECK_SCATTER_OF_ROWS(float, MP_DTYPE_F32, 3);
  CHECK_SCATTER_OF_ROWS(float, MP_DTYPE_F32, 4);
  CHECK_SCATTER_OF_ROWS(float, MP_DTYPE_F32, 37);
  CHECK_SCATTER_OF_ROWS(double, MP_DTYPE_F64, 3);
  CHECK_SCATTER_OF_ROWS(int32_t, MP_DTYPE_S32, 3);
  CHECK_SCATTER_OF_ROWS(uint64_t, MP_DTYPE_U64, 2);
}

static void test_scatter_of_elements(void **state) {
  (void)state;
  const mp_opcode_t codes[] = {MP_OP_ADD, MP_OP_MAXIMUM, MP_OP_RETURN};
  const mp_dtype_t dtypes[] = {MP_DTYPE_F32, MP_DTYPE_F64, MP_DTYPE_S32, MP_DTYPE_F16};
  for (size_t c = 0; c < 3; ++c) {
    for (size_t d = 0; d < 4; ++d) {
      check_scatter_elements(codes[c], dtypes[d], MP_DTYPE_S32);
      check_scatter_elements(codes[c], dtypes[d], MP_DTYPE_S64);
    }
  }
}

// Enough windows of `columns` elements for several parts, each of which takes a range of the rows.
static void check_scatter_in_ranges(int64_t rows, int64_t columns, int64_t n) {
  const int64_t count = rows * columns;
  float *in = malloc((size_t)count * 4), *want = malloc((size_t)count * 4);
  float *out = malloc((size_t)count * 4), *updates = malloc((size_t)(n * columns) * 4);
  int32_t *indices = malloc((size_t)n * 4);
  for (int64_t i = 0; i < count; ++i) in[i] = want[i] = (float)(i % 1000) * 0.37F;
  for (int64_t i = 0; i < n * columns; ++i) updates[i] = (float)(i % 77) * 0.013F;
  for (int64_t i = 0; i < n; ++i) {
    indices[i] = (int32_t)(i * 104729 % (rows + 20) - 10);
    if (indices[i] < 0 || indices[i] >= rows) continue;
    for (int64_t c = 0; c < columns; ++c)
      want[indices[i] * columns + c] += updates[i * columns + c];
  }
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_SCATTER);
  // A dimension of one element comes before the one that is cut.
  bench_operand(&bench, MP_DTYPE_F32, 3, (int64_t[]){1, rows, columns});
  bench_operand(&bench, MP_DTYPE_S32, 2, (int64_t[]){n, 1});
  bench_operand(&bench, MP_DTYPE_F32, 3, (int64_t[]){n, 1, columns});
  bench_result(&bench, MP_DTYPE_F32, 3, (int64_t[]){1, rows, columns});
  bench_ints(&bench, MP_ATTR_UPDATE_WINDOW_DIMS, 2, (int64_t[]){1, 2});
  bench_ints(&bench, MP_ATTR_INSERTED_WINDOW_DIMS, 1, (int64_t[]){1});
  bench_ints(&bench, MP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, 1, (int64_t[]){1});
  bench_int(&bench, MP_ATTR_INDEX_VECTOR_DIM, 1);
  region_reducer(&bench, MP_OP_ADD, MP_DTYPE_F32);
  bench_make(&bench);
  assert_in_range(bench.kernel->num_parts, 2, 64);
  bench_run(&bench, (const void *[]){in, indices, updates}, (void *[]){out});
  assert_memory_equal(out, want, (size_t)count * 4);
  bench_run(&bench, (const void *[]){in, indices, updates}, (void *[]){in});  // in place
  assert_memory_equal(in, want, (size_t)count * 4);
  bench_end(&bench);
  free(in), free(want), free(out), free(updates), free(indices);
}

static void test_scatter_in_ranges(void **state) {
  (void)state;
  check_scatter_in_ranges(100003, 1, 200001);  // elements
  check_scatter_in_ranges(5, 1, 300000);       // hardly as many as parts
  check_scatter_in_ranges(3000, 37, 4001);     // rows
  check_scatter_in_ranges(40001, 3, 50000);    // short ones
}

// ---- sort ----

typedef struct {
  float key;
  int32_t value;
  int32_t place;
} row_t;

static int compare_rows(const void *x, const void *y) {
  const row_t *a = x, *b = y;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  return a->place < b->place ? -1 : 1;
}

// key and value operands sorted by the key, of which the first `kept` remain. `merge` makes the
// comparator one that has no key: it compares the sum of key and value on one side with the
// other's, written unevenly.
static void check_sort(int64_t outer, int64_t length, int64_t inner, int64_t kept, bool merge,
                       bool descending) {
  size_t count = (size_t)(outer * length * inner);
  float *keys = malloc(count * 4 + 4), *sorted_keys = malloc(count * 4 + 4);
  int32_t *values = malloc(count * 4 + 4), *sorted_values = malloc(count * 4 + 4);
  row_t *rows = malloc((size_t)length * sizeof(row_t));
  for (size_t i = 0; i < count; ++i) {
    keys[i] = (float)((int)(i * 7919 % 251) - 100) / 4;
    if (keys[i] == 0 && i % 2 == 0) keys[i] = -0.0f;
    values[i] = (int32_t)i;
  }
  const int64_t dims[3] = {outer, length, inner}, sorted_dims[3] = {outer, kept, inner};
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_SORT);
  for (int i = 0; i < 2; ++i) {
    bench_operand(&bench, i == 0 ? MP_DTYPE_F32 : MP_DTYPE_S32, 3, dims);
    bench_result(&bench, i == 0 ? MP_DTYPE_F32 : MP_DTYPE_S32, 3, sorted_dims);
  }
  if (kept < length) bench_int(&bench, MP_ATTR_FIRST, kept);
  bench_int(&bench, MP_ATTR_DIMENSION, 1);
  bench_bool(&bench, MP_ATTR_IS_STABLE, true);
  mp_block_t *block = region_begin(
      &bench, 4, (mp_dtype_t[]){MP_DTYPE_F32, MP_DTYPE_F32, MP_DTYPE_S32, MP_DTYPE_S32});
  mp_value_t *x = &block->args[0], *y = &block->args[1];
  float zero = 0;
  mp_value_t *nothing = region_constant(&bench, block, MP_DTYPE_F32, &zero);
  if (merge) x = region_binary(&bench, block, MP_OP_ADD, x, nothing);
  mp_value_t *less =
      region_compare(&bench, block, descending ? MP_CMP_GT : MP_CMP_LT, MP_CMP_FLOAT, x, y);
  region_return(&bench, block, 1, &less);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){keys, values}, (void *[]){sorted_keys, sorted_values});
  for (int64_t s = 0; s < outer * inner; ++s) {
    int64_t base = s / inner * inner * length + s % inner;
    for (int64_t i = 0; i < length; ++i) {
      float key = keys[base + i * inner];
      rows[i] = (row_t){descending ? -key : key, values[base + i * inner], (int32_t)i};
    }
    qsort(rows, (size_t)length, sizeof(row_t), compare_rows);
    int64_t out = s / inner * inner * kept + s % inner;
    for (int64_t i = 0; i < kept; ++i) {
      assert_int_equal(sorted_values[out + i * inner], rows[i].value);
      assert_true(sorted_keys[out + i * inner] == (descending ? -rows[i].key : rows[i].key));
    }
  }
  bench_end(&bench);
  free(keys);
  free(sorted_keys);
  free(values);
  free(sorted_values);
  free(rows);
}

static void test_sort(void **state) {
  (void)state;
  static const int64_t shapes[][3] = {{1, 1, 1},  {1, 2, 1},    {3, 5, 1},     {2, 7, 3},
                                      {1, 64, 1}, {40, 130, 1}, {1, 5000, 1},  {2, 1023, 2},
                                      {0, 3, 1},  {2, 0, 1},    {1, 12345, 1}, {300, 3, 2}};
  for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i) {
    const int64_t length = shapes[i][1];
    for (int way = 0; way < 12; ++way) {
      const int64_t kept = way % 3 == 0 ? length : way % 3 == 1 ? (length + 1) / 2 : length / 40;
      check_sort(shapes[i][0], length, shapes[i][2], kept, way / 3 % 2 != 0, way / 6 != 0);
    }
  }
}

// JAX's comparator: zeros made equal, NaNs made one, then total order: NaNs come last.
static void test_sort_puts_nan_last(void **state) {
  (void)state;
  float in[6] = {NAN, 1, -INFINITY, -NAN, -0.0f, INFINITY}, out[6];
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_SORT);
  bench_operand(&bench, MP_DTYPE_F32, 1, (int64_t[]){6});
  bench_result(&bench, MP_DTYPE_F32, 1, (int64_t[]){6});
  bench_int(&bench, MP_ATTR_DIMENSION, 0);
  mp_block_t *block = region_begin(&bench, 2, (mp_dtype_t[]){MP_DTYPE_F32, MP_DTYPE_F32});
  float zero = 0, nan = NAN;
  mp_value_t *sides[2];
  for (int i = 0; i < 2; ++i) {
    mp_value_t *x = &block->args[i];
    mp_value_t *zeros = region_constant(&bench, block, MP_DTYPE_F32, &zero);
    mp_value_t *is_zero = region_compare(&bench, block, MP_CMP_EQ, MP_CMP_FLOAT, x, zeros);
    mp_value_t *y = region_select(&bench, block, is_zero, zeros, x);
    mp_value_t *is_nan = region_compare(&bench, block, MP_CMP_NE, MP_CMP_FLOAT, x, x);
    mp_value_t *nans = region_constant(&bench, block, MP_DTYPE_F32, &nan);
    sides[i] = region_select(&bench, block, is_nan, nans, y);
  }
  mp_value_t *less =
      region_compare(&bench, block, MP_CMP_LT, MP_CMP_TOTALORDER, sides[0], sides[1]);
  region_return(&bench, block, 1, &less);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in}, (void *[]){out});
  assert_true(isinf(out[0]) && out[1] == 0 && out[2] == 1 && isinf(out[3]));
  assert_true(isnan(out[4]) && isnan(out[5]));
  bench_end(&bench);
}

// ---- map ----

static void test_map(void **state) {
  (void)state;
  enum { N = 1200 };
  float x[N], y[N], out[N];
  for (int i = 0; i < N; ++i) {
    x[i] = (float)i;
    y[i] = 2;
  }
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_MAP);
  bench_operand(&bench, MP_DTYPE_F32, 1, (int64_t[]){N});
  bench_operand(&bench, MP_DTYPE_F32, 1, (int64_t[]){N});
  bench_result(&bench, MP_DTYPE_F32, 1, (int64_t[]){N});
  bench_ints(&bench, MP_ATTR_DIMENSIONS, 1, (int64_t[]){0});
  mp_block_t *block = region_begin(&bench, 2, (mp_dtype_t[]){MP_DTYPE_F32, MP_DTYPE_F32});
  mp_value_t *product =
      region_binary(&bench, block, MP_OP_MULTIPLY, &block->args[0], &block->args[1]);
  mp_value_t *result = region_binary(&bench, block, MP_OP_SUBTRACT, product, &block->args[1]);
  region_return(&bench, block, 1, &result);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){x, y}, (void *[]){out});
  for (int i = 0; i < N; ++i) assert_true(out[i] == (float)(2 * i - 2));
  bench_end(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scatter_adds_rows_with_repeated_and_foreign_indices),
      cmocka_unit_test(test_scatter_sets_windows),
      cmocka_unit_test(test_scatter_pairs_with_batching),
      cmocka_unit_test(test_scatter_of_short_rows),
      cmocka_unit_test(test_scatter_of_elements),
      cmocka_unit_test(test_scatter_of_columns),
      cmocka_unit_test(test_scatter_in_ranges),
      cmocka_unit_test(test_sort),
      cmocka_unit_test(test_sort_puts_nan_last),
      cmocka_unit_test(test_map),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
