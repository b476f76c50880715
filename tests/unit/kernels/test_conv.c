// convolution against the specification's definition, over random attributes.
#include "tests/unit/support/kernel_test.h"

enum { MOST = 1 << 16 };

typedef struct {
  uint32_t spatial;  // dimensions
  int64_t batch, features, kernel_in, kernel_out;
  int64_t input[3], window[3], output[3];
  int64_t step[3], low[3], high[3], lhs_dilation[3], rhs_dilation[3], reversal[3];
  int64_t feature_groups, batch_groups;
  int64_t in_order[5], kernel_order[5], out_order[5];  // where batch/in, feature/out, spatial lie
} case_t;

static uint64_t g_random = 1;

static int64_t pick(int64_t low, int64_t high) {
  g_random = g_random * 6364136223846793005ull + 1442695040888963407ull;
  return low + (int64_t)((g_random >> 33) % (uint64_t)(high - low + 1));
}

static void shuffle(int64_t *order, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) order[i] = i;
  for (uint32_t i = count; i > 1; --i) {
    int64_t j = pick(0, i - 1), kept = order[i - 1];
    order[i - 1] = order[j];
    order[j] = kept;
  }
}

// The order of images whose features are contiguous in memory: batch, spatial dimensions, features;
// of a kernel: spatial dimensions, features of the input, features of the output.
static void features_last(int64_t *order, uint32_t spatial, bool is_kernel) {
  order[0] = is_kernel ? spatial : 0;
  order[1] = spatial + 1;
  for (uint32_t d = 0; d < spatial; ++d) order[d + 2] = is_kernel ? d : d + 1;
}

static int64_t dilated(int64_t extent, int64_t dilation) {
  return extent == 0 ? 0 : (extent - 1) * dilation + 1;
}

static void random_case(case_t *c) {
  memset(c, 0, sizeof(*c));
  c->spatial = (uint32_t)pick(0, 3);
  c->feature_groups = pick(0, 2) == 0 ? pick(2, 3) : 1;
  c->batch_groups = c->feature_groups == 1 && pick(0, 3) == 0 ? 2 : 1;
  c->batch = pick(1, 3) * c->batch_groups;
  c->kernel_in = pick(1, 4);
  c->features = c->kernel_in * c->feature_groups;
  c->kernel_out = pick(1, 5) * c->feature_groups * c->batch_groups;
  for (uint32_t d = 0; d < c->spatial; ++d) {
    c->step[d] = pick(1, 2);
    c->lhs_dilation[d] = pick(0, 2) == 0 ? pick(2, 3) : 1;
    c->rhs_dilation[d] = pick(0, 2) == 0 ? 2 : 1;
    c->reversal[d] = pick(0, 1);
    int64_t room = -1;
    while (room < 0) {
      c->input[d] = pick(1, 6);
      c->window[d] = pick(1, 3);
      c->low[d] = pick(-1, 2);
      c->high[d] = pick(-1, 2);
      room = c->low[d] + dilated(c->input[d], c->lhs_dilation[d]) + c->high[d] -
             dilated(c->window[d], c->rhs_dilation[d]);
    }
    c->output[d] = room / c->step[d] + 1;
  }
  shuffle(c->in_order, c->spatial + 2);
  shuffle(c->kernel_order, c->spatial + 2);
  shuffle(c->out_order, c->spatial + 2);
  if (pick(0, 1) == 0) return;
  features_last(c->in_order, c->spatial, false);
  features_last(c->kernel_order, c->spatial, true);
  features_last(c->out_order, c->spatial, false);
}

static void dims_of(const case_t *c, const int64_t *order, int64_t first, int64_t second,
                    const int64_t *spatial, int64_t *out_dims) {
  out_dims[order[0]] = first;
  out_dims[order[1]] = second;
  for (uint32_t d = 0; d < c->spatial; ++d) out_dims[order[d + 2]] = spatial[d];
}

static int64_t position(const case_t *c, const int64_t *order, const int64_t *dims, int64_t first,
                        int64_t second, const int64_t *spatial) {
  int64_t index[5], at = 0;
  dims_of(c, order, first, second, spatial, index);
  for (uint32_t i = 0; i < c->spatial + 2; ++i) at = at * dims[i] + index[i];
  return at;
}

// The sum of one result element; `lanes` 2 for complex numbers.
static void expected_at(const case_t *c, const int64_t *in_dims, const int64_t *kernel_dims,
                        const double *in, const double *kernel, int64_t b, int64_t o,
                        const int64_t *at, int lanes, double *out) {
  int64_t out_per_feature_group = c->kernel_out / c->feature_groups;
  int64_t feature_group = o / out_per_feature_group;
  int64_t batch_group = o / (c->kernel_out / c->batch_groups);
  int64_t in_batch = b + batch_group * (c->batch / c->batch_groups);
  int64_t windows = 1;
  for (uint32_t d = 0; d < c->spatial; ++d) windows *= c->window[d];
  out[0] = out[1] = 0;
  for (int64_t w = 0; w < windows; ++w) {
    int64_t x[3], kx[3], rest = w;
    bool inside = true;
    for (uint32_t d = c->spatial; d-- > 0;) {
      int64_t p = rest % c->window[d];
      rest /= c->window[d];
      kx[d] = c->reversal[d] ? c->window[d] - 1 - p : p;
      int64_t dilated_x = at[d] * c->step[d] - c->low[d] + p * c->rhs_dilation[d];
      if (dilated_x < 0 || dilated_x % c->lhs_dilation[d] != 0) inside = false;
      x[d] = dilated_x / c->lhs_dilation[d];
      if (x[d] >= c->input[d]) inside = false;
    }
    if (!inside) continue;
    for (int64_t f = 0; f < c->kernel_in; ++f) {
      const double *u = in + lanes * position(c, c->in_order, in_dims, in_batch,
                                              feature_group * c->kernel_in + f, x);
      const double *v = kernel + lanes * position(c, c->kernel_order, kernel_dims, f, o, kx);
      out[0] += u[0] * v[0] - (lanes == 2 ? u[1] * v[1] : 0);
      if (lanes == 2) out[1] += u[0] * v[1] + u[1] * v[0];
    }
  }
}

static void store(mp_dtype_t real, double value, void *out) {
  if (mp_dtype_is_float(real)) {
    mp_float_encode(real, value, out);
  } else {
    int64_t whole = (int64_t)value;
    memcpy(out, &whole, mp_dtype_size(real));
  }
}

static void make_bench(const case_t *c, mp_dtype_t in, mp_dtype_t out, const int64_t *in_dims,
                       const int64_t *kernel_dims, const int64_t *out_dims, kernel_bench_t *bench) {
  uint32_t n = c->spatial;
  bench_begin(bench, MP_OP_CONVOLUTION);
  bench_operand(bench, in, n + 2, in_dims);
  bench_operand(bench, in, n + 2, kernel_dims);
  bench_result(bench, out, n + 2, out_dims);
  int64_t padding[6];
  for (uint32_t d = 0; d < n; ++d) {
    padding[2 * d] = c->low[d];
    padding[2 * d + 1] = c->high[d];
  }
  bench_ints(bench, MP_ATTR_WINDOW_STRIDES, n, c->step);
  bench_table(bench, MP_ATTR_PADDING, n, 2, padding);
  bench_ints(bench, MP_ATTR_LHS_DILATION, n, c->lhs_dilation);
  bench_ints(bench, MP_ATTR_RHS_DILATION, n, c->rhs_dilation);
  bench_ints(bench, MP_ATTR_WINDOW_REVERSAL, n, c->reversal);
  bench_int(bench, MP_ATTR_INPUT_BATCH_DIMENSION, c->in_order[0]);
  bench_int(bench, MP_ATTR_INPUT_FEATURE_DIMENSION, c->in_order[1]);
  bench_ints(bench, MP_ATTR_INPUT_SPATIAL_DIMENSIONS, n, c->in_order + 2);
  bench_int(bench, MP_ATTR_KERNEL_INPUT_FEATURE_DIMENSION, c->kernel_order[0]);
  bench_int(bench, MP_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION, c->kernel_order[1]);
  bench_ints(bench, MP_ATTR_KERNEL_SPATIAL_DIMENSIONS, n, c->kernel_order + 2);
  bench_int(bench, MP_ATTR_OUTPUT_BATCH_DIMENSION, c->out_order[0]);
  bench_int(bench, MP_ATTR_OUTPUT_FEATURE_DIMENSION, c->out_order[1]);
  bench_ints(bench, MP_ATTR_OUTPUT_SPATIAL_DIMENSIONS, n, c->out_order + 2);
  bench_int(bench, MP_ATTR_FEATURE_GROUP_COUNT, c->feature_groups);
  bench_int(bench, MP_ATTR_BATCH_GROUP_COUNT, c->batch_groups);
  bench_make(bench);
}

static void check_case(const case_t *c, mp_dtype_t in_type, mp_dtype_t out_type) {
  static double in[MOST], kernel[MOST];
  static char in_bytes[MOST * 8], kernel_bytes[MOST * 8], out_bytes[MOST * 8];
  int64_t in_dims[5], kernel_dims[5], out_dims[5], counts[3] = {1, 1, 1};
  dims_of(c, c->in_order, c->batch, c->features, c->input, in_dims);
  dims_of(c, c->kernel_order, c->kernel_in, c->kernel_out, c->window, kernel_dims);
  dims_of(c, c->out_order, c->batch / c->batch_groups, c->kernel_out, c->output, out_dims);
  for (uint32_t i = 0; i < c->spatial + 2; ++i) {
    counts[0] *= in_dims[i];
    counts[1] *= kernel_dims[i];
    counts[2] *= out_dims[i];
  }
  int lanes = mp_dtype_is_complex(in_type) ? 2 : 1;
  assert_true(counts[0] * lanes < MOST && counts[1] * lanes < MOST && counts[2] * lanes < MOST);
  mp_dtype_t real = mp_dtype_real_part(in_type), out_real = mp_dtype_real_part(out_type);
  size_t size = mp_dtype_size(real), out_size = mp_dtype_size(out_real);
  for (int64_t i = 0; i < counts[0] * lanes; ++i) {
    in[i] = (double)pick(-3, 3);
    store(real, in[i], in_bytes + (size_t)i * size);
  }
  for (int64_t i = 0; i < counts[1] * lanes; ++i) {
    kernel[i] = (double)pick(-3, 3);
    store(real, kernel[i], kernel_bytes + (size_t)i * size);
  }
  kernel_bench_t bench;
  make_bench(c, in_type, out_type, in_dims, kernel_dims, out_dims, &bench);
  bench_run(&bench, (const void *[]){in_bytes, kernel_bytes}, (void *[]){out_bytes});
  for (int64_t b = 0; b < c->batch / c->batch_groups; ++b) {
    for (int64_t o = 0; o < c->kernel_out; ++o) {
      int64_t at[3] = {0};
      bool more = true;
      while (more) {
        double expected[2];
        expected_at(c, in_dims, kernel_dims, in, kernel, b, o, at, lanes, expected);
        int64_t p = position(c, c->out_order, out_dims, b, o, at) * lanes;
        for (int l = 0; l < lanes; ++l) {
          char bytes[8];
          store(out_real, expected[l], bytes);
          assert_memory_equal(out_bytes + (size_t)(p + l) * out_size, bytes, out_size);
        }
        more = false;
        for (uint32_t d = c->spatial; d-- > 0;) {
          if (++at[d] < c->output[d]) {
            more = true;
            break;
          }
          at[d] = 0;
        }
      }
    }
  }
  bench_end(&bench);
}

static void random_convolutions(void **state) {
  (void)state;
  static const mp_dtype_t types[][2] = {
      {MP_DTYPE_F32, MP_DTYPE_F32}, {MP_DTYPE_F64, MP_DTYPE_F64},   {MP_DTYPE_BF16, MP_DTYPE_F32},
      {MP_DTYPE_S32, MP_DTYPE_S32}, {MP_DTYPE_S8, MP_DTYPE_S32},    {MP_DTYPE_S64, MP_DTYPE_S64},
      {MP_DTYPE_C64, MP_DTYPE_C64}, {MP_DTYPE_C128, MP_DTYPE_C128}, {MP_DTYPE_F16, MP_DTYPE_F16}};
  for (int round = 0; round < 1200; ++round) {
    case_t c;
    random_case(&c);
    size_t t = (size_t)round % (sizeof(types) / sizeof(types[0]));
    check_case(&c, types[t][0], types[t][1]);
  }
}

// Plain image layouts, large enough for several blocks.
static void images(void **state) {
  (void)state;
  static const int64_t orders[][4] = {{0, 3, 1, 2}, {0, 1, 2, 3}};  // NHWC, NCHW
  for (int i = 0; i < 2; ++i) {
    case_t c = {.spatial = 2,
                .batch = 2,
                .features = 20,
                .kernel_in = 20,
                .kernel_out = 40,
                .input = {17, 19},
                .window = {3, 3},
                .output = {9, 10},
                .step = {2, 2},
                .low = {1, 1},
                .high = {1, 1},
                .lhs_dilation = {1, 1},
                .rhs_dilation = {1, 1},
                .feature_groups = 1,
                .batch_groups = 1};
    memcpy(c.in_order, orders[i], sizeof(orders[i]));
    memcpy(c.out_order, orders[i], sizeof(orders[i]));
    memcpy(c.kernel_order, ((int64_t[]){2, 3, 0, 1}), sizeof(orders[i]));
    check_case(&c, MP_DTYPE_F32, MP_DTYPE_F32);
  }
}

// Rows of the input that are copied as a whole: more positions than a tile has rows, several blocks
// of taps, columns that do not fill a vector, groups, conversions, negative padding.
static void few_features(void **state) {
  (void)state;
  static const mp_dtype_t types[][2] = {{MP_DTYPE_F32, MP_DTYPE_F32},
                                        {MP_DTYPE_BF16, MP_DTYPE_BF16},
                                        {MP_DTYPE_F64, MP_DTYPE_F64},
                                        {MP_DTYPE_S8, MP_DTYPE_S32}};
  static const int64_t features[][2] = {{1, 32}, {3, 65}, {24, 17}, {70, 8}};
  for (size_t i = 0; i < 16; ++i) {
    case_t c = {.spatial = 2,
                .batch = 2,
                .features = features[i / 4][0] * 2,
                .kernel_in = features[i / 4][0],
                .kernel_out = features[i / 4][1] * 2,
                .input = {5, 40},
                .window = {4, 3},
                .output = {5, 19},
                .step = {1, 2},
                .low = {2, 1},
                .high = {1, -1},
                .lhs_dilation = {1, 1},
                .rhs_dilation = {1, 1},
                .reversal = {i % 2, 1},
                .feature_groups = 2,
                .batch_groups = 1};
    features_last(c.in_order, 2, false);
    features_last(c.kernel_order, 2, true);
    features_last(c.out_order, 2, false);
    check_case(&c, types[i % 4][0], types[i % 4][1]);
  }
}

// Every feature for itself, side by side in memory: whole blocks of features and a rest.
static void depthwise(void **state) {
  (void)state;
  for (int t = 0; t < 2; ++t) {
    case_t c = {.spatial = 2,
                .batch = 2,
                .features = 70,
                .kernel_in = 1,
                .kernel_out = 70,
                .input = {7, 9},
                .window = {3, 2},
                .output = {7, 4},
                .step = {1, 2},
                .low = {1, 0},
                .high = {1, -1},
                .lhs_dilation = {1, 1},
                .rhs_dilation = {1, 1},
                .reversal = {1, 0},
                .feature_groups = 70,
                .batch_groups = 1};
    memcpy(c.in_order, ((int64_t[]){0, 3, 1, 2}), 32);
    memcpy(c.out_order, c.in_order, 32);
    memcpy(c.kernel_order, ((int64_t[]){2, 3, 0, 1}), 32);
    check_case(&c, t ? MP_DTYPE_F64 : MP_DTYPE_F32, t ? MP_DTYPE_F64 : MP_DTYPE_F32);
  }
}

// A kernel's gradient: the images of a batch are the features, the channels the batch, and all of
// them lie side by side in memory. Some windows lie in padding altogether.
static void gradients_of_kernels(void **state) {
  (void)state;
  static const mp_dtype_t types[] = {MP_DTYPE_F32, MP_DTYPE_F64, MP_DTYPE_S32};
  for (int round = 0; round < 60; ++round) {
    case_t c = {.spatial = 2,
                .batch = pick(1, 50),
                .features = pick(1, 2),
                .kernel_out = pick(0, 2) == 0 ? 144 : 16 * pick(1, 2),
                .lhs_dilation = {1, 1},
                .feature_groups = 1,
                .batch_groups = 1,
                .in_order = {3, 0, 1, 2},
                .kernel_order = {0, 3, 1, 2},
                .out_order = {2, 3, 0, 1}};
    c.kernel_in = c.features;
    for (uint32_t d = 0; d < 2; ++d) {
      c.step[d] = pick(1, 2);
      c.rhs_dilation[d] = pick(1, 2);
      c.reversal[d] = pick(0, 1);
      c.input[d] = pick(3, 12);
      c.window[d] = pick(4, d == 0 ? 5 : 17);
      c.output[d] = pick(1, 3);
      const int64_t size = dilated(c.window[d], c.rhs_dilation[d]);
      c.low[d] = pick(-1, pick(0, 3) == 0 ? size + 1 : 2);
      c.high[d] = (c.output[d] - 1) * c.step[d] + size - c.input[d] - c.low[d];
    }
    const mp_dtype_t type = types[round % 3];
    check_case(&c, type, type);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_convolutions),  cmocka_unit_test(images),
      cmocka_unit_test(few_features),         cmocka_unit_test(depthwise),
      cmocka_unit_test(gradients_of_kernels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
