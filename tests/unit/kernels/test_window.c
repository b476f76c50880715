// Sliding windows: reduce_window and select_and_scatter against plain loops.
#include <math.h>

#include "tests/unit/support/region_test.h"

typedef struct {
  int64_t in, size, stride, base, dilation, low, high;
} axis_t;

static int64_t axis_out(const axis_t *a) {
  int64_t padded = a->low + a->high + (a->in == 0 ? 0 : (a->in - 1) * a->base + 1);
  int64_t window = (a->size - 1) * a->dilation + 1;
  return padded < window ? 0 : (padded - window) / a->stride + 1;
}

// The element of the array at window o, element w, or -1.
static int64_t axis_place(const axis_t *a, int64_t o, int64_t w) {
  int64_t place = o * a->stride + w * a->dilation - a->low;
  if (place < 0 || place % a->base != 0 || place / a->base >= a->in) return -1;
  return place / a->base;
}

static void window_attrs(kernel_bench_t *bench, const axis_t *axes, uint32_t rank) {
  int64_t sizes[4], strides[4], bases[4], dilations[4], padding[8];
  for (uint32_t i = 0; i < rank; ++i) {
    sizes[i] = axes[i].size;
    strides[i] = axes[i].stride;
    bases[i] = axes[i].base;
    dilations[i] = axes[i].dilation;
    padding[2 * i] = axes[i].low;
    padding[2 * i + 1] = axes[i].high;
  }
  bench_ints(bench, MP_ATTR_WINDOW_DIMENSIONS, rank, sizes);
  bench_ints(bench, MP_ATTR_WINDOW_STRIDES, rank, strides);
  if (bench->code == MP_OP_REDUCE_WINDOW) {
    bench_ints(bench, MP_ATTR_BASE_DILATIONS, rank, bases);
    bench_ints(bench, MP_ATTR_WINDOW_DILATIONS, rank, dilations);
  }
  bench_table(bench, MP_ATTR_PADDING, rank, 2, padding);
}

static void check_reduce_window(const axis_t *axes) {
  int64_t in_dims[3], out_dims[3];
  size_t in_count = 1, out_count = 1;
  for (int i = 0; i < 3; ++i) {
    in_dims[i] = axes[i].in;
    out_dims[i] = axis_out(&axes[i]);
    in_count *= (size_t)in_dims[i];
    out_count *= (size_t)out_dims[i];
  }
  int32_t *in = malloc(in_count * 4 + 4), *out = malloc(out_count * 4 + 4), init = 100;
  for (size_t i = 0; i < in_count; ++i) in[i] = (int32_t)(i * 7919 % 1009);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_REDUCE_WINDOW);
  bench_operand(&bench, MP_DTYPE_S32, 3, in_dims);
  bench_operand(&bench, MP_DTYPE_S32, 0, NULL);
  bench_result(&bench, MP_DTYPE_S32, 3, out_dims);
  window_attrs(&bench, axes, 3);
  region_reducer(&bench, MP_OP_ADD, MP_DTYPE_S32);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in, &init}, (void *[]){out});
  for (size_t o = 0; o < out_count; ++o) {
    int64_t z = (int64_t)o % out_dims[2], y = (int64_t)o / out_dims[2] % out_dims[1];
    int64_t x = (int64_t)o / out_dims[2] / out_dims[1];
    int32_t want = init;
    for (int64_t w = 0; w < axes[0].size * axes[1].size * axes[2].size; ++w) {
      int64_t a = axis_place(&axes[0], x, w / axes[2].size / axes[1].size);
      int64_t b = axis_place(&axes[1], y, w / axes[2].size % axes[1].size);
      int64_t c = axis_place(&axes[2], z, w % axes[2].size);
      if (a >= 0 && b >= 0 && c >= 0) want += in[(a * in_dims[1] + b) * in_dims[2] + c];
    }
    assert_int_equal(out[o], want);
  }
  bench_end(&bench);
  free(in);
  free(out);
}

static void test_reduce_window(void **state) {
  (void)state;
  static const axis_t cases[][3] = {
      {{1, 1, 1, 1, 1, 0, 0}, {8, 2, 2, 1, 1, 0, 0}, {8, 2, 2, 1, 1, 0, 0}},
      {{3, 1, 1, 1, 1, 0, 0}, {9, 3, 2, 1, 1, 1, 1}, {70, 3, 1, 1, 2, 2, 2}},
      {{2, 1, 1, 1, 1, 0, 0}, {5, 2, 1, 3, 1, 2, -1}, {6, 3, 3, 2, 2, -1, 4}},
      {{40, 40, 1, 1, 1, 39, 0}, {3, 1, 2, 1, 1, 0, 0}, {30, 1, 1, 1, 1, 0, 0}},
      {{2, 2, 1, 1, 1, 5, 5}, {1, 1, 1, 1, 1, 0, 0}, {600, 1, 1, 1, 1, 0, 0}},
      {{3, 1, 1, 1, 1, 0, 0}, {1300, 1300, 1, 1, 1, 1299, 0}, {1, 1, 1, 1, 1, 0, 0}},
      {{3, 1, 1, 1, 1, 0, 0}, {1300, 1300, 1, 1, 1, 0, 1299}, {1, 1, 1, 1, 1, 0, 0}},
      {{3, 1, 1, 1, 1, 0, 0}, {17, 17, 1, 1, 1, 16, 0}, {5, 1, 1, 1, 1, 0, 0}},
      {{2, 1, 1, 1, 1, 0, 0}, {17, 17, 1, 1, 1, 0, 16}, {20, 1, 1, 1, 1, 0, 0}},
      {{2, 1, 1, 1, 1, 0, 0}, {9, 12, 1, 1, 1, 11, 0}, {20, 1, 1, 1, 1, 0, 0}},
      {{0, 2, 1, 1, 1, 2, 2}, {2, 1, 1, 1, 1, 0, 0}, {3, 1, 1, 1, 1, 0, 0}},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) check_reduce_window(cases[i]);
}

// Two operands at once: the sum and the maximum.
static void test_reduce_window_of_two(void **state) {
  (void)state;
  const float in[5] = {1, -2, 3, NAN, 5};
  const int16_t ints[5] = {1, 2, 3, 4, 5};
  float low = -INFINITY, maxima[3];
  int16_t zero = 0, sums[3];
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_REDUCE_WINDOW);
  bench_operand(&bench, MP_DTYPE_F32, 1, (int64_t[]){5});
  bench_operand(&bench, MP_DTYPE_S16, 1, (int64_t[]){5});
  bench_operand(&bench, MP_DTYPE_F32, 0, NULL);
  bench_operand(&bench, MP_DTYPE_S16, 0, NULL);
  bench_result(&bench, MP_DTYPE_F32, 1, (int64_t[]){3});
  bench_result(&bench, MP_DTYPE_S16, 1, (int64_t[]){3});
  window_attrs(&bench, &(axis_t){5, 2, 2, 1, 1, 1, 0}, 1);
  mp_block_t *block = region_begin(
      &bench, 4, (mp_dtype_t[]){MP_DTYPE_F32, MP_DTYPE_S16, MP_DTYPE_F32, MP_DTYPE_S16});
  mp_value_t *a = block->args;
  mp_value_t *max = region_binary(&bench, block, MP_OP_MAXIMUM, &a[0], &a[2]);
  mp_value_t *sum = region_binary(&bench, block, MP_OP_ADD, &a[1], &a[3]);
  region_return(&bench, block, 2, (mp_value_t *[]){max, sum});
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in, ints, &low, &zero}, (void *[]){maxima, sums});
  assert_true(maxima[0] == 1 && maxima[1] == 3 && isnan(maxima[2]));
  assert_int_equal(sums[0], 1);
  assert_int_equal(sums[1], 5);
  assert_int_equal(sums[2], 9);
  bench_end(&bench);
}

// Cumulative, two operands and a region that is no single op: running count and running maximum.
static void check_scan_of_two(int64_t rows, int64_t length, int64_t columns, bool from_end) {
  size_t count = (size_t)(rows * length * columns);
  float *in = malloc(count * 4), *maxima = malloc(count * 4), low = -INFINITY;
  int32_t *ones = malloc(count * 4), *counts = malloc(count * 4), zero = 0;
  for (size_t i = 0; i < count; ++i) {
    in[i] = (float)(i * 7919 % 1009);
    ones[i] = (int32_t)(i % 3);
  }
  const int64_t dims[3] = {rows, length, columns};
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_REDUCE_WINDOW);
  bench_operand(&bench, MP_DTYPE_F32, 3, dims);
  bench_operand(&bench, MP_DTYPE_S32, 3, dims);
  bench_operand(&bench, MP_DTYPE_F32, 0, NULL);
  bench_operand(&bench, MP_DTYPE_S32, 0, NULL);
  bench_result(&bench, MP_DTYPE_F32, 3, dims);
  bench_result(&bench, MP_DTYPE_S32, 3, dims);
  const axis_t axes[3] = {
      {rows, 1, 1, 1, 1, 0, 0},
      {length, length, 1, 1, 1, from_end ? 0 : length - 1, from_end ? length - 1 : 0},
      {columns, 1, 1, 1, 1, 0, 0}};
  window_attrs(&bench, axes, 3);
  mp_block_t *block = region_begin(
      &bench, 4, (mp_dtype_t[]){MP_DTYPE_F32, MP_DTYPE_S32, MP_DTYPE_F32, MP_DTYPE_S32});
  mp_value_t *a = block->args;
  mp_value_t *max = region_binary(&bench, block, MP_OP_MAXIMUM, &a[0], &a[2]);
  mp_value_t *sum = region_binary(&bench, block, MP_OP_ADD, &a[1], &a[3]);
  region_return(&bench, block, 2, (mp_value_t *[]){max, sum});
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in, ones, &low, &zero}, (void *[]){maxima, counts});
  for (int64_t line = 0; line < rows * columns; ++line) {
    int64_t base = line / columns * columns * length + line % columns;
    float best = low;
    int32_t total = 0;
    for (int64_t i = 0; i < length; ++i) {
      int64_t at = base + (from_end ? length - 1 - i : i) * columns;
      best = in[at] > best ? in[at] : best;
      total += ones[at];
      assert_true(maxima[at] == best);
      assert_int_equal(counts[at], total);
    }
  }
  bench_end(&bench);
  free(in);
  free(ones);
  free(maxima);
  free(counts);
}

static void test_scans_of_two(void **state) {
  (void)state;
  for (int from_end = 0; from_end < 2; ++from_end) {
    check_scan_of_two(1, 700, 1, from_end != 0);
    check_scan_of_two(600, 9, 1, from_end != 0);
    check_scan_of_two(3, 11, 600, from_end != 0);
    check_scan_of_two(30, 11, 7, from_end != 0);
  }
}

// Windows that lie in the padding alone give the start value, whatever the kind and type; others
// combine it with their one element.
static void check_padding(mp_opcode_t code, mp_dtype_t dtype) {
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_REDUCE_WINDOW);
  bench_operand(&bench, dtype, 1, (int64_t[]){2});
  bench_operand(&bench, dtype, 0, NULL);
  bench_result(&bench, dtype, 1, (int64_t[]){6});
  window_attrs(&bench, &(axis_t){2, 1, 1, 1, 1, 3, 1}, 1);
  region_reducer(&bench, code, dtype);
  bench_make(&bench);
  const bool is_bool = dtype == MP_DTYPE_BOOL;
  const uint8_t in[2] = {is_bool ? 1 : 3, 0}, inits[2] = {0, is_bool ? 1 : 2};
  for (int i = 0; i < 2; ++i) {
    uint8_t out[6];
    bench_run(&bench, (const void *[]){in, &inits[i]}, (void *[]){out});
    for (int k = 0; k < 6; ++k) {
      if (k != 3 && k != 4) assert_int_equal(out[k], inits[i]);
    }
    if (code == MP_OP_MAXIMUM && dtype != MP_DTYPE_BOOL) assert_int_equal(out[3], 3);
    if (code == MP_OP_MINIMUM) assert_int_equal(out[4], 0);
  }
  bench_end(&bench);
}

static void test_padding_of_all_kinds(void **state) {
  (void)state;
  const mp_opcode_t codes[] = {MP_OP_ADD, MP_OP_MULTIPLY, MP_OP_MINIMUM, MP_OP_MAXIMUM,
                               MP_OP_AND, MP_OP_OR,       MP_OP_XOR};
  const mp_dtype_t dtypes[] = {MP_DTYPE_BOOL, MP_DTYPE_S8, MP_DTYPE_U8, MP_DTYPE_S4, MP_DTYPE_U4};
  for (size_t c = 0; c < sizeof(codes) / sizeof(codes[0]); ++c) {
    for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); ++d) {
      check_padding(codes[c], dtypes[d]);
    }
  }
}

// bf16 sums of rows and columns accumulate in f32; maxima know NaN and -infinity.
static void test_pooling_of_floats(void **state) {
  (void)state;
  enum { N = 20, OUT = 10 };
  static float in[N * N], out[OUT * OUT];
  float low = -INFINITY;
  for (int i = 0; i < N * N; ++i) in[i] = (float)(i * 7919 % 1009) - 500;
  in[7 * N + 3] = NAN;
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_REDUCE_WINDOW);
  bench_operand(&bench, MP_DTYPE_F32, 2, (int64_t[]){N, N});
  bench_operand(&bench, MP_DTYPE_F32, 0, NULL);
  bench_result(&bench, MP_DTYPE_F32, 2, (int64_t[]){OUT, OUT});
  const axis_t axes[2] = {{N, 3, 2, 1, 1, 1, 0}, {N, 3, 2, 1, 1, 1, 0}};
  window_attrs(&bench, axes, 2);
  region_reducer(&bench, MP_OP_MAXIMUM, MP_DTYPE_F32);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in, &low}, (void *[]){out});
  for (int64_t y = 0; y < OUT; ++y) {
    for (int64_t x = 0; x < OUT; ++x) {
      float want = low;
      for (int64_t w = 0; w < 9; ++w) {
        int64_t a = axis_place(&axes[0], y, w / 3), b = axis_place(&axes[1], x, w % 3);
        if (a < 0 || b < 0) continue;
        float value = in[a * N + b];
        if (isnan(value) || value > want) want = value;
        if (isnan(want)) break;
      }
      float got = out[y * OUT + x];
      assert_true(got == want || (isnan(got) && isnan(want)));
    }
  }
  bench_end(&bench);
}

// The gradient of max pooling: each window's value goes to its first largest element.
static void check_select_and_scatter(int64_t batch, const axis_t *axis) {
  int64_t out = axis_out(axis);
  size_t in_count = (size_t)(batch * axis->in), source_count = (size_t)(batch * out);
  float *in = malloc(in_count * 4 + 4), *source = malloc(source_count * 4 + 4), init = 0.5f;
  float *result = malloc(in_count * 4 + 4), *want = malloc(in_count * 4 + 4);
  for (size_t i = 0; i < in_count; ++i) in[i] = (float)(i * 7919 % 11);
  for (size_t i = 0; i < source_count; ++i) source[i] = (float)(i + 1);
  for (size_t i = 0; i < in_count; ++i) want[i] = init;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t o = 0; o < out; ++o) {
      int64_t best = -1;
      for (int64_t w = 0; w < axis->size; ++w) {
        int64_t place = axis_place(axis, o, w);
        if (place < 0) continue;
        if (best < 0 || !(in[b * axis->in + best] >= in[b * axis->in + place])) best = place;
      }
      if (best >= 0) want[b * axis->in + best] += source[b * out + o];
    }
  }
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_SELECT_AND_SCATTER);
  bench_operand(&bench, MP_DTYPE_F32, 2, (int64_t[]){batch, axis->in});
  bench_operand(&bench, MP_DTYPE_F32, 2, (int64_t[]){batch, out});
  bench_operand(&bench, MP_DTYPE_F32, 0, NULL);
  bench_result(&bench, MP_DTYPE_F32, 2, (int64_t[]){batch, axis->in});
  const axis_t axes[2] = {{batch, 1, 1, 1, 1, 0, 0}, *axis};
  window_attrs(&bench, axes, 2);
  mp_block_t *select = region_begin(&bench, 2, (mp_dtype_t[]){MP_DTYPE_F32, MP_DTYPE_F32});
  mp_value_t *ge =
      region_compare(&bench, select, MP_CMP_GE, MP_CMP_FLOAT, &select->args[0], &select->args[1]);
  region_return(&bench, select, 1, &ge);
  region_reducer(&bench, MP_OP_ADD, MP_DTYPE_F32);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in, source, &init}, (void *[]){result});
  for (size_t i = 0; i < in_count; ++i) assert_true(result[i] == want[i]);
  bench_end(&bench);
  free(in);
  free(source);
  free(result);
  free(want);
}

static void test_select_and_scatter(void **state) {
  (void)state;
  static const axis_t axes[] = {{6, 2, 2, 1, 1, 0, 0},
                                {9, 3, 2, 1, 1, 1, 1},
                                {700, 4, 1, 1, 1, 2, 1},
                                {5, 5, 1, 1, 1, 4, 4},
                                {2, 1, 1, 1, 1, 3, 3}};
  for (size_t i = 0; i < sizeof(axes) / sizeof(axes[0]); ++i) {
    check_select_and_scatter(1, &axes[i]);
    check_select_and_scatter(40, &axes[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reduce_window),     cmocka_unit_test(test_reduce_window_of_two),
      cmocka_unit_test(test_scans_of_two),      cmocka_unit_test(test_padding_of_all_kinds),
      cmocka_unit_test(test_pooling_of_floats), cmocka_unit_test(test_select_and_scatter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
