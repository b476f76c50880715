// Kernels that move data: against loops over indices written here.

#include "sim/kernels/counting.h"
#include "tests/unit/support/kernel_test.h"

enum { MANY = 4096 };

#define DIMS(...) ((int64_t[]){__VA_ARGS__})

// 0, 1, 2, ... in elements of any size.
static void fill_index(void *out, size_t size, int64_t count) {
  memset(out, 0, size * (size_t)count);
  for (int64_t i = 0; i < count; ++i) {
    memcpy((char *)out + (size_t)i * size, &i, size < 8 ? size : 8);
  }
}

static const mp_dtype_t g_sizes[] = {MP_DTYPE_S8, MP_DTYPE_BF16, MP_DTYPE_F32, MP_DTYPE_S64,
                                     MP_DTYPE_C128};

static void transpose_moves_every_element(void **state) {
  (void)state;
  // {dims, permutation}: merged dimensions, tiles with edges, inner runs, unit dimensions, tiles of
  // whole blocks, rows of many tiles.
  static const int64_t cases[][2][4] = {
      {{2, 3, 4, 5}, {3, 2, 1, 0}},    {{37, 1, 70, 1}, {2, 1, 0, 3}},
      {{5, 6, 7, 8}, {1, 0, 2, 3}},    {{4, 33, 9, 2}, {0, 2, 1, 3}},
      {{3, 5, 7, 11}, {3, 0, 1, 2}},   {{1, 1, 1, 1}, {0, 1, 2, 3}},
      {{0, 2, 3, 1}, {2, 1, 0, 3}},    {{9, 8, 8, 1}, {0, 2, 1, 3}},
      {{5, 16, 12, 1}, {0, 2, 1, 3}},  {{1, 20, 32, 4}, {0, 2, 1, 3}},
      {{1, 6, 1365, 1}, {2, 1, 0, 3}}, {{1, 64, 80, 1}, {0, 2, 1, 3}}};
  static char in[16 * MANY * 2], out[16 * MANY * 2];
  for (size_t t = 0; t < sizeof(g_sizes) / sizeof(g_sizes[0]); ++t) {
    size_t size = mp_dtype_size(g_sizes[t]);
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); ++c) {
      const int64_t *dims = cases[c][0], *perm = cases[c][1];
      int64_t out_dims[4], count = 1;
      for (int i = 0; i < 4; ++i) {
        out_dims[i] = dims[perm[i]];
        count *= dims[i];
      }
      fill_index(in, size, count);
      kernel_bench_t bench;
      bench_begin(&bench, MP_OP_TRANSPOSE);
      bench_operand(&bench, g_sizes[t], 4, dims);
      bench_result(&bench, g_sizes[t], 4, out_dims);
      bench_ints(&bench, MP_ATTR_PERMUTATION, 4, perm);
      bench_make(&bench);
      bench_run(&bench, (const void *[]){in}, (void *[]){out});
      for (int64_t n = 0; n < count; ++n) {
        int64_t at[4], rest = n, from[4], position = 0;
        for (int i = 3; i >= 0; --i) {
          at[i] = rest % out_dims[i];
          rest /= out_dims[i];
        }
        for (int i = 0; i < 4; ++i) from[perm[i]] = at[i];
        for (int i = 0; i < 4; ++i) position = position * dims[i] + from[i];
        assert_memory_equal(out + (size_t)n * size, in + (size_t)position * size, size);
      }
      bench_end(&bench);
    }
  }
}

static void large_copies_in_parts_are_whole(void **state) {
  (void)state;
  enum { ROWS = 1100, COLUMNS = 1300 };
  uint32_t *in = malloc(sizeof(*in) * ROWS * COLUMNS), *out = malloc(sizeof(*in) * ROWS * COLUMNS);
  fill_index(in, 4, ROWS * COLUMNS);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_TRANSPOSE);
  bench_operand(&bench, MP_DTYPE_U32, 2, DIMS(ROWS, COLUMNS));
  bench_result(&bench, MP_DTYPE_U32, 2, DIMS(COLUMNS, ROWS));
  bench_ints(&bench, MP_ATTR_PERMUTATION, 2, DIMS(1, 0));
  bench_make(&bench);
  assert_true(bench.kernel->num_parts > 4);
  bench_run(&bench, (const void *[]){in}, (void *[]){out});
  for (int64_t i = 0; i < ROWS; ++i) {
    for (int64_t j = 0; j < COLUMNS; ++j) assert_int_equal(out[j * ROWS + i], i * COLUMNS + j);
  }
  bench_end(&bench);
  free(in);
  free(out);
}

static void broadcast_repeats(void **state) {
  (void)state;
  int16_t in[3] = {7, 8, 9}, out[2 * 3 * 4];
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_BROADCAST_IN_DIM);
  bench_operand(&bench, MP_DTYPE_S16, 2, DIMS(3, 1));
  bench_result(&bench, MP_DTYPE_S16, 3, DIMS(2, 3, 4));
  bench_ints(&bench, MP_ATTR_BROADCAST_DIMENSIONS, 2, DIMS(1, 2));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in}, (void *[]){out});
  for (int i = 0; i < 24; ++i) assert_int_equal(out[i], 7 + i / 4 % 3);
  bench_end(&bench);

  double scalar[2] = {1.5, -2.5}, pairs[2 * 5];
  bench_begin(&bench, MP_OP_BROADCAST_IN_DIM);
  bench_operand(&bench, MP_DTYPE_C128, 0, NULL);
  bench_result(&bench, MP_DTYPE_C128, 1, DIMS(5));
  bench_ints(&bench, MP_ATTR_BROADCAST_DIMENSIONS, 0, NULL);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){scalar}, (void *[]){pairs});
  for (int i = 0; i < 10; ++i) assert_true(pairs[i] == scalar[i % 2]);
  bench_end(&bench);
}

static void slice_and_reverse_pick(void **state) {
  (void)state;
  int32_t in[5 * 7], out[5 * 7];
  fill_index(in, 4, 35);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_SLICE);
  bench_operand(&bench, MP_DTYPE_S32, 2, DIMS(5, 7));
  bench_result(&bench, MP_DTYPE_S32, 2, DIMS(2, 3));
  bench_ints(&bench, MP_ATTR_START_INDICES, 2, DIMS(1, 0));
  bench_ints(&bench, MP_ATTR_LIMIT_INDICES, 2, DIMS(5, 6));
  bench_ints(&bench, MP_ATTR_STRIDES, 2, DIMS(2, 2));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in}, (void *[]){out});
  for (int i = 0; i < 6; ++i) assert_int_equal(out[i], (1 + i / 3 * 2) * 7 + i % 3 * 2);
  bench_end(&bench);

  for (int64_t mask = 0; mask < 4; ++mask) {
    int64_t dims[2];
    size_t count = 0;
    if (mask & 1) dims[count++] = 0;
    if (mask & 2) dims[count++] = 1;
    bench_begin(&bench, MP_OP_REVERSE);
    bench_operand(&bench, MP_DTYPE_S32, 2, DIMS(5, 7));
    bench_result(&bench, MP_DTYPE_S32, 2, DIMS(5, 7));
    bench_ints(&bench, MP_ATTR_DIMENSIONS, count, dims);
    bench_make(&bench);
    bench_run(&bench, (const void *[]){in}, (void *[]){out});
    for (int i = 0; i < 5; ++i) {
      for (int j = 0; j < 7; ++j) {
        int si = mask & 1 ? 4 - i : i, sj = mask & 2 ? 6 - j : j;
        assert_int_equal(out[i * 7 + j], si * 7 + sj);
      }
    }
    bench_end(&bench);
  }
}

// pad against its definition: every result element starts as padding, operand element i lands on
// low + i * (interior + 1) if that is inside.
static void pad_one(int64_t extent, int64_t low, int64_t high, int64_t interior) {
  int64_t size = low + high + extent + (extent > 1 ? (extent - 1) * interior : 0);
  if (size < 0) return;
  int32_t in[3 * 8], value = -1, out[3 * 64];
  fill_index(in, 4, 3 * extent);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_PAD);
  bench_operand(&bench, MP_DTYPE_S32, 2, DIMS(3, extent));
  bench_operand(&bench, MP_DTYPE_S32, 0, NULL);
  bench_result(&bench, MP_DTYPE_S32, 2, DIMS(3, size));
  bench_ints(&bench, MP_ATTR_EDGE_PADDING_LOW, 2, DIMS(0, low));
  bench_ints(&bench, MP_ATTR_EDGE_PADDING_HIGH, 2, DIMS(0, high));
  bench_ints(&bench, MP_ATTR_INTERIOR_PADDING, 2, DIMS(0, interior));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in, &value}, (void *[]){out});
  for (int64_t r = 0; r < 3; ++r) {
    int32_t expected[64];
    for (int64_t i = 0; i < size; ++i) expected[i] = value;
    for (int64_t i = 0; i < extent; ++i) {
      int64_t to = low + i * (interior + 1);
      if (to >= 0 && to < size) expected[to] = (int32_t)(r * extent + i);
    }
    assert_memory_equal(out + r * size, expected, (size_t)size * 4);
  }
  bench_end(&bench);
}

static void pad_in_all_directions(void **state) {
  (void)state;
  for (int64_t extent = 0; extent <= 5; ++extent) {
    for (int64_t low = -7; low <= 3; ++low) {
      for (int64_t high = -7; high <= 3; ++high) {
        for (int64_t interior = 0; interior <= 3; ++interior) {
          pad_one(extent, low, high, interior);
        }
      }
    }
  }
}

static void concatenate_joins(void **state) {
  (void)state;
  uint8_t a[2 * 2 * 3], b[2 * 1 * 3], out[2 * 3 * 3];
  for (int i = 0; i < 12; ++i) a[i] = (uint8_t)i;
  for (int i = 0; i < 6; ++i) b[i] = (uint8_t)(100 + i);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CONCATENATE);
  bench_operand(&bench, MP_DTYPE_U8, 3, DIMS(2, 2, 3));
  bench_operand(&bench, MP_DTYPE_U8, 3, DIMS(2, 0, 3));
  bench_operand(&bench, MP_DTYPE_U8, 3, DIMS(2, 1, 3));
  bench_result(&bench, MP_DTYPE_U8, 3, DIMS(2, 3, 3));
  bench_int(&bench, MP_ATTR_DIMENSION, 1);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){a, NULL, b}, (void *[]){out});
  static const uint8_t expected[] = {0, 1, 2, 3, 4,  5,  100, 101, 102,
                                     6, 7, 8, 9, 10, 11, 103, 104, 105};
  assert_memory_equal(out, expected, 18);
  bench_end(&bench);

  enum { N = 700001 };  // one row, cut across operands
  uint32_t *big = malloc(sizeof(*big) * N), *joined = malloc(sizeof(*big) * 2 * N);
  fill_index(big, 4, N);
  bench_begin(&bench, MP_OP_CONCATENATE);
  bench_operand(&bench, MP_DTYPE_U32, 1, DIMS(N));
  bench_operand(&bench, MP_DTYPE_U32, 1, DIMS(N));
  bench_result(&bench, MP_DTYPE_U32, 1, DIMS(2 * N));
  bench_int(&bench, MP_ATTR_DIMENSION, 0);
  bench_make(&bench);
  assert_true(bench.kernel->num_parts > 1);
  bench_run(&bench, (const void *[]){big, big}, (void *[]){joined});
  assert_memory_equal(joined, big, sizeof(*big) * N);
  assert_memory_equal(joined + N, big, sizeof(*big) * N);
  bench_end(&bench);
  free(big);
  free(joined);
}

// Starts outside are clamped, in any integer type.
// Two to four columns become rows; others take the general way.
static void concatenate_joins_columns(void **state) {
  (void)state;
  enum { ROWS = 37, MOST = 5 };
  uint32_t in[MOST][ROWS], out[ROWS * MOST];
  for (uint32_t c = 0; c < MOST; ++c) {
    for (uint32_t r = 0; r < ROWS; ++r) in[c][r] = 100 * r + c;
  }
  for (uint32_t n = 2; n <= MOST; ++n) {
    kernel_bench_t bench;
    bench_begin(&bench, MP_OP_CONCATENATE);
    for (uint32_t c = 0; c < n; ++c) bench_operand(&bench, MP_DTYPE_U32, 2, DIMS(ROWS, 1));
    bench_result(&bench, MP_DTYPE_U32, 2, DIMS(ROWS, n));
    bench_int(&bench, MP_ATTR_DIMENSION, 1);
    bench_make(&bench);
    bench_run(&bench, (const void *[]){in[0], in[1], in[2], in[3], in[4]}, (void *[]){out});
    for (uint32_t i = 0; i < ROWS * n; ++i) assert_int_equal(out[i], 100 * (i / n) + i % n);
    bench_end(&bench);
  }
}

static void dynamic_slices_clamp(void **state) {
  (void)state;
  static const int64_t starts[] = {-100, -1, 0, 1, 2, 3, 100};
  int32_t in[4 * 5], out[2 * 3], updated[4 * 5], update[2 * 3];
  fill_index(in, 4, 20);
  for (int i = 0; i < 6; ++i) update[i] = 100 + i;
  for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); ++s) {
    int8_t row = (int8_t)starts[s], column = 1;
    int64_t from = starts[s] < 0 ? 0 : starts[s] > 2 ? 2 : starts[s];
    kernel_bench_t bench;
    bench_begin(&bench, MP_OP_DYNAMIC_SLICE);
    bench_operand(&bench, MP_DTYPE_S32, 2, DIMS(4, 5));
    bench_operand(&bench, MP_DTYPE_S8, 0, NULL);
    bench_operand(&bench, MP_DTYPE_S8, 0, NULL);
    bench_result(&bench, MP_DTYPE_S32, 2, DIMS(2, 3));
    bench_ints(&bench, MP_ATTR_SLICE_SIZES, 2, DIMS(2, 3));
    bench_make(&bench);
    bench_run(&bench, (const void *[]){in, &row, &column}, (void *[]){out});
    for (int i = 0; i < 6; ++i) assert_int_equal(out[i], (from + i / 3) * 5 + 1 + i % 3);
    bench_end(&bench);

    bench_begin(&bench, MP_OP_DYNAMIC_UPDATE_SLICE);
    bench_operand(&bench, MP_DTYPE_S32, 2, DIMS(4, 5));
    bench_operand(&bench, MP_DTYPE_S32, 2, DIMS(2, 3));
    bench_operand(&bench, MP_DTYPE_S8, 0, NULL);
    bench_operand(&bench, MP_DTYPE_S8, 0, NULL);
    bench_result(&bench, MP_DTYPE_S32, 2, DIMS(4, 5));
    bench_make(&bench);
    assert_int_equal(bench.kernel->in_place, 1);
    for (int in_place = 0; in_place < 2; ++in_place) {
      memcpy(updated, in, sizeof(in));
      if (!in_place) memset(updated, 0, sizeof(in));
      bench_run(&bench, (const void *[]){in_place ? updated : in, update, &row, &column},
                (void *[]){updated});
      for (int64_t i = 0; i < 4; ++i) {
        for (int64_t j = 0; j < 5; ++j) {
          bool inside = i >= from && i < from + 2 && j >= 1 && j < 4;
          assert_int_equal(updated[i * 5 + j], inside ? 100 + (i - from) * 3 + j - 1 : i * 5 + j);
        }
      }
    }
    bench_end(&bench);
  }
  uint64_t huge = UINT64_MAX;  // larger than any int64: clamped to the end
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_DYNAMIC_SLICE);
  bench_operand(&bench, MP_DTYPE_S32, 1, DIMS(20));
  bench_operand(&bench, MP_DTYPE_U64, 0, NULL);
  bench_result(&bench, MP_DTYPE_S32, 1, DIMS(3));
  bench_ints(&bench, MP_ATTR_SLICE_SIZES, 1, DIMS(3));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in, &huge}, (void *[]){out});
  assert_int_equal(out[0], 17);
  bench_end(&bench);
}

static void gather_rows_and_boxes(void **state) {
  (void)state;
  int32_t table[6 * 4], rows[3] = {5, -1, 9}, out[3 * 4];
  fill_index(table, 4, 24);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_GATHER);
  bench_operand(&bench, MP_DTYPE_S32, 2, DIMS(6, 4));
  bench_operand(&bench, MP_DTYPE_S32, 2, DIMS(3, 1));
  bench_result(&bench, MP_DTYPE_S32, 2, DIMS(3, 4));
  bench_ints(&bench, MP_ATTR_OFFSET_DIMS, 1, DIMS(1));
  bench_ints(&bench, MP_ATTR_COLLAPSED_SLICE_DIMS, 1, DIMS(0));
  bench_ints(&bench, MP_ATTR_START_INDEX_MAP, 1, DIMS(0));
  bench_int(&bench, MP_ATTR_INDEX_VECTOR_DIM, 1);
  bench_ints(&bench, MP_ATTR_SLICE_SIZES, 2, DIMS(1, 4));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){table, rows}, (void *[]){out});
  static const int32_t clamped[3] = {5, 0, 5};
  for (int i = 0; i < 12; ++i) assert_int_equal(out[i], clamped[i / 4] * 4 + i % 4);
  bench_end(&bench);

  // Boxes of 2x2 out of [3,4] at (row, column) pairs; the slices' dimensions come first in the
  // result, the index vectors lie in dimension 0 of the indices.
  int64_t pairs[2 * 3] = {0, 1, 7, 2, 0, 7};  // rows, then columns
  int32_t boxes[2 * 2 * 3];
  bench_begin(&bench, MP_OP_GATHER);
  bench_operand(&bench, MP_DTYPE_S32, 2, DIMS(3, 4));
  bench_operand(&bench, MP_DTYPE_S64, 2, DIMS(2, 3));
  bench_result(&bench, MP_DTYPE_S32, 3, DIMS(2, 2, 3));
  bench_ints(&bench, MP_ATTR_OFFSET_DIMS, 2, DIMS(0, 1));
  bench_ints(&bench, MP_ATTR_START_INDEX_MAP, 2, DIMS(0, 1));
  bench_int(&bench, MP_ATTR_INDEX_VECTOR_DIM, 0);
  bench_ints(&bench, MP_ATTR_SLICE_SIZES, 2, DIMS(2, 2));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){table, pairs}, (void *[]){boxes});
  static const int64_t at[3][2] = {{0, 2}, {1, 0}, {1, 2}};
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      for (int b = 0; b < 3; ++b) {
        assert_int_equal(boxes[(i * 2 + j) * 3 + b], (at[b][0] + i) * 4 + at[b][1] + j);
      }
    }
  }
  bench_end(&bench);
}

// x[:, index]: the slices are columns, side by side in the result.
static void gather_columns(void **state) {
  (void)state;
  enum { ROWS = 5, COLUMNS = 40, N = 600 };
  static int16_t in[ROWS][COLUMNS], out[ROWS][N];
  static int32_t indices[N];
  for (int i = 0; i < ROWS * COLUMNS; ++i) in[i / COLUMNS][i % COLUMNS] = (int16_t)i;
  for (int i = 0; i < N; ++i) indices[i] = i * 7919 % (COLUMNS + 4) - 2;
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_GATHER);
  bench_operand(&bench, MP_DTYPE_S16, 2, (int64_t[]){ROWS, COLUMNS});
  bench_operand(&bench, MP_DTYPE_S32, 2, (int64_t[]){N, 1});
  bench_result(&bench, MP_DTYPE_S16, 2, (int64_t[]){ROWS, N});
  bench_ints(&bench, MP_ATTR_OFFSET_DIMS, 1, (int64_t[]){0});
  bench_ints(&bench, MP_ATTR_COLLAPSED_SLICE_DIMS, 1, (int64_t[]){1});
  bench_ints(&bench, MP_ATTR_START_INDEX_MAP, 1, (int64_t[]){1});
  bench_int(&bench, MP_ATTR_INDEX_VECTOR_DIM, 1);
  bench_ints(&bench, MP_ATTR_SLICE_SIZES, 2, (int64_t[]){ROWS, 1});
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in, indices}, (void *[]){out});
  for (int r = 0; r < ROWS; ++r) {
    for (int i = 0; i < N; ++i) {
      int column = indices[i] < 0 ? 0 : indices[i] >= COLUMNS ? COLUMNS - 1 : indices[i];
      assert_int_equal(out[r][i], in[r][column]);
    }
  }
  bench_end(&bench);
}

static void gather_with_batching_dimensions(void **state) {
  (void)state;
  // out[b, i] = in[b, indices[b, i]]
  int32_t in[3 * 5], indices[3 * 2] = {0, 4, 1, 3, 2, 2}, out[3 * 2];
  fill_index(in, 4, 15);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_GATHER);
  bench_operand(&bench, MP_DTYPE_S32, 2, DIMS(3, 5));
  bench_operand(&bench, MP_DTYPE_S32, 3, DIMS(3, 2, 1));
  bench_result(&bench, MP_DTYPE_S32, 2, DIMS(3, 2));
  bench_ints(&bench, MP_ATTR_OFFSET_DIMS, 0, NULL);
  bench_ints(&bench, MP_ATTR_COLLAPSED_SLICE_DIMS, 1, DIMS(1));
  bench_ints(&bench, MP_ATTR_OPERAND_BATCHING_DIMS, 1, DIMS(0));
  bench_ints(&bench, MP_ATTR_START_INDICES_BATCHING_DIMS, 1, DIMS(0));
  bench_ints(&bench, MP_ATTR_START_INDEX_MAP, 1, DIMS(1));
  bench_int(&bench, MP_ATTR_INDEX_VECTOR_DIM, 2);
  bench_ints(&bench, MP_ATTR_SLICE_SIZES, 2, DIMS(1, 1));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in, indices}, (void *[]){out});
  for (int i = 0; i < 6; ++i) assert_int_equal(out[i], i / 2 * 5 + indices[i]);
  bench_end(&bench);
}

// A line without a step is stored by element.
static void lines_count_in_every_type(void **state) {
  (void)state;
  static const int64_t steps[] = {0, 1, -3, 70};
  char line[19 * 16], element[16];
  for (mp_dtype_t dtype = 0; dtype < MP_DTYPE_COUNT; ++dtype) {
    const size_t size = mp_dtype_size(dtype);
    if (size == 0) continue;
    for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); ++s) {
      mp_count_line(dtype, 5, steps[s], 19, line);
      for (int64_t i = 0; i < 19; ++i) {
        mp_count_line(dtype, 5 + i * steps[s], 0, 1, element);
        assert_memory_equal(line + (size_t)i * size, element, size);
      }
    }
  }
}

static void iota_counts_in_every_type(void **state) {
  (void)state;
  for (int dtype = MP_DTYPE_S8; dtype < MP_DTYPE_INDEX; ++dtype) {
    const bool is_byte = mp_dtype_size((mp_dtype_t)dtype) == 1;
    if (dtype == MP_DTYPE_TF32 || (mp_dtype_is_float((mp_dtype_t)dtype) && is_byte)) continue;
    if (dtype == MP_DTYPE_U2 || dtype == MP_DTYPE_U4) continue;
    char out[2 * 5 * 3 * 16];
    kernel_bench_t bench;
    bench_begin(&bench, MP_OP_IOTA);
    bench_result(&bench, (mp_dtype_t)dtype, 3, DIMS(2, 5, 3));
    bench_int(&bench, MP_ATTR_IOTA_DIMENSION, 1);
    bench_make(&bench);
    bench_run(&bench, NULL, (void *[]){out});
    size_t size = mp_dtype_size((mp_dtype_t)dtype);
    for (int i = 0; i < 30; ++i) {
      char expected[16] = {0};
      int64_t value = i / 3 % 5;
      if (mp_dtype_is_integer((mp_dtype_t)dtype)) {
        memcpy(expected, &value, size);
      } else {
        mp_float_encode(mp_dtype_real_part((mp_dtype_t)dtype), (double)value, expected);
      }
      assert_memory_equal(out + (size_t)i * size, expected, size);
    }
    bench_end(&bench);
  }
}

static void bitcasts_keep_bits(void **state) {
  (void)state;
  uint32_t in[2] = {0x44332211, 0x88776655};
  uint8_t bytes[8];
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_BITCAST_CONVERT);
  bench_operand(&bench, MP_DTYPE_U32, 1, DIMS(2));
  bench_result(&bench, MP_DTYPE_U8, 2, DIMS(2, 4));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in}, (void *[]){bytes});
  for (int i = 0; i < 8; ++i) assert_int_equal(bytes[i], 0x11 * (i + 1));
  bench_end(&bench);

  uint8_t nibbles[4];
  bench_begin(&bench, MP_OP_BITCAST_CONVERT);
  bench_operand(&bench, MP_DTYPE_U16, 1, DIMS(1));
  bench_result(&bench, MP_DTYPE_S4, 2, DIMS(1, 4));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){&(uint16_t){0x8A31}}, (void *[]){nibbles});
  assert_memory_equal(nibbles, ((uint8_t[]){0x1, 0x3, 0xA, 0x8}), 4);
  bench_end(&bench);

  uint16_t back = 0;
  bench_begin(&bench, MP_OP_BITCAST_CONVERT);
  bench_operand(&bench, MP_DTYPE_S4, 2, DIMS(1, 4));
  bench_result(&bench, MP_DTYPE_U16, 1, DIMS(1));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){nibbles}, (void *[]){&back});
  assert_int_equal(back, 0x8A31);
  bench_end(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(transpose_moves_every_element),
      cmocka_unit_test(large_copies_in_parts_are_whole),
      cmocka_unit_test(broadcast_repeats),
      cmocka_unit_test(slice_and_reverse_pick),
      cmocka_unit_test(pad_in_all_directions),
      cmocka_unit_test(concatenate_joins),
      cmocka_unit_test(concatenate_joins_columns),
      cmocka_unit_test(dynamic_slices_clamp),
      cmocka_unit_test(gather_rows_and_boxes),
      cmocka_unit_test(gather_columns),
      cmocka_unit_test(gather_with_batching_dimensions),
      cmocka_unit_test(lines_count_in_every_type),
      cmocka_unit_test(iota_counts_in_every_type),
      cmocka_unit_test(bitcasts_keep_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
