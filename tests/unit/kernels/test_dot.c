// dot_general against the plain definition, in every class of element type.
#include <math.h>

#include "tests/unit/support/kernel_test.h"

#define DIMS(...) ((int64_t[]){__VA_ARGS__})

static void set_lists(kernel_bench_t *bench, size_t batch, const int64_t *lhs_batch,
                      const int64_t *rhs_batch, size_t contracting, const int64_t *lhs,
                      const int64_t *rhs) {
  bench_ints(bench, MP_ATTR_LHS_BATCHING_DIMENSIONS, batch, lhs_batch);
  bench_ints(bench, MP_ATTR_RHS_BATCHING_DIMENSIONS, batch, rhs_batch);
  bench_ints(bench, MP_ATTR_LHS_CONTRACTING_DIMENSIONS, contracting, lhs);
  bench_ints(bench, MP_ATTR_RHS_CONTRACTING_DIMENSIONS, contracting, rhs);
}

// Small whole numbers, so that every sum is exact in any type that is tested.
static double value_at(int64_t i) {
  return (double)((i * 7 + i / 5) % 5 - 2);
}

static void store(mp_dtype_t dtype, double value, void *out) {
  if (mp_dtype_is_float(dtype)) {
    mp_float_encode(dtype, value, out);
  } else {
    uint64_t raw = (uint64_t)(int64_t)value;
    int bits = mp_dtype_bits(dtype);
    if (bits < 64) raw &= (1ull << bits) - 1;
    memcpy(out, &raw, mp_dtype_size(dtype));
  }
}

static void *tensor_of(mp_dtype_t dtype, int64_t count, int seed) {
  size_t size = mp_dtype_size(dtype);
  char *data = malloc(size * (size_t)count + 1);
  for (int64_t i = 0; i < count; ++i) {
    double value = value_at(i + seed);
    if (mp_dtype_class(dtype) == MP_CLASS_UNSIGNED) value += 2;
    store(dtype, value, data + (size_t)i * size);
  }
  return data;
}

static double load(mp_dtype_t dtype, const void *data, int64_t i) {
  const char *at = (const char *)data + (size_t)i * mp_dtype_size(dtype);
  if (mp_dtype_is_float(dtype)) return mp_float_decode(dtype, at);
  uint64_t raw = 0;
  memcpy(&raw, at, mp_dtype_size(dtype));
  int bits = mp_dtype_bits(dtype);
  if (mp_dtype_class(dtype) == MP_CLASS_SIGNED && bits < 64 && (raw >> (bits - 1) & 1)) {
    return (double)raw - ldexp(1, bits);
  }
  return (double)(mp_dtype_class(dtype) == MP_CLASS_SIGNED ? (double)(int64_t)raw : (double)raw);
}

static double *numbers_of(mp_dtype_t dtype, const void *data, int64_t count) {
  double *numbers = malloc((size_t)count * sizeof(double) + 1);
  for (int64_t i = 0; i < count; ++i) numbers[i] = load(dtype, data, i);
  return numbers;
}

// [batch, m, k] x [batch, k, n], or with either matrix the other way round.
static void check_matmul(mp_dtype_t in, mp_dtype_t out, int64_t batch, int64_t m, int64_t n,
                         int64_t k, bool lhs_turned, bool rhs_turned) {
  void *a = tensor_of(in, batch * m * k, 1), *b = tensor_of(in, batch * k * n, 2);
  void *c = malloc((size_t)(batch * m * n) * mp_dtype_size(out) + 1);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_DOT_GENERAL);
  bench_operand(&bench, in, 3, lhs_turned ? DIMS(batch, k, m) : DIMS(batch, m, k));
  bench_operand(&bench, in, 3, rhs_turned ? DIMS(batch, n, k) : DIMS(batch, k, n));
  bench_result(&bench, out, 3, DIMS(batch, m, n));
  set_lists(&bench, 1, DIMS(0), DIMS(0), 1, DIMS(lhs_turned ? 1 : 2), DIMS(rhs_turned ? 2 : 1));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){a, b}, (void *[]){c});
  double *as = numbers_of(in, a, batch * m * k), *bs = numbers_of(in, b, batch * k * n);
  for (int64_t g = 0; g < batch; ++g) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          int64_t at_a = g * m * k + (lhs_turned ? p * m + i : i * k + p);
          int64_t at_b = g * k * n + (rhs_turned ? j * k + p : p * n + j);
          sum += as[at_a] * bs[at_b];
        }
        char expected[8];
        store(out, sum, expected);
        if (memcmp(expected, (char *)c + (size_t)((g * m + i) * n + j) * mp_dtype_size(out),
                   mp_dtype_size(out)) != 0) {
          fail_msg("%s -> %s [%d, %d, %d]: %g, not %g", mp_dtype_name(in), mp_dtype_name(out),
                   (int)m, (int)n, (int)k, load(out, c, (g * m + i) * n + j), sum);
        }
      }
    }
  }
  bench_end(&bench);
  free(as);
  free(bs);
  free(a);
  free(b);
  free(c);
}

static void every_type_and_size(void **state) {
  (void)state;
  static const mp_dtype_t types[][2] = {
      {MP_DTYPE_F32, MP_DTYPE_F32},     {MP_DTYPE_F64, MP_DTYPE_F64},
      {MP_DTYPE_BF16, MP_DTYPE_BF16},   {MP_DTYPE_BF16, MP_DTYPE_F32},
      {MP_DTYPE_F16, MP_DTYPE_F16},     {MP_DTYPE_F8E4M3FN, MP_DTYPE_F32},
      {MP_DTYPE_F8E5M2, MP_DTYPE_BF16}, {MP_DTYPE_F32, MP_DTYPE_F64},
      {MP_DTYPE_S4, MP_DTYPE_S32},      {MP_DTYPE_S8, MP_DTYPE_S32},
      {MP_DTYPE_S8, MP_DTYPE_S8},       {MP_DTYPE_U8, MP_DTYPE_U8},
      {MP_DTYPE_S16, MP_DTYPE_S16},     {MP_DTYPE_S32, MP_DTYPE_S32},
      {MP_DTYPE_U32, MP_DTYPE_U32},     {MP_DTYPE_S64, MP_DTYPE_S64},
      {MP_DTYPE_U64, MP_DTYPE_U64},     {MP_DTYPE_S8, MP_DTYPE_F32}};
  static const int64_t sizes[][4] = {{1, 1, 1, 1},     {2, 3, 5, 7}, {3, 1, 40, 17}, {3, 40, 1, 17},
                                     {1, 15, 33, 300}, {2, 4, 4, 0}, {1, 600, 1, 5}, {0, 2, 2, 2}};
  for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); ++t) {
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); ++s) {
      for (int turned = 0; turned < 4; ++turned) {
        check_matmul(types[t][0], types[t][1], sizes[s][0], sizes[s][1], sizes[s][2], sizes[s][3],
                     turned & 1, turned & 2);
      }
    }
  }
}

static void large_products_in_parts(void **state) {
  (void)state;
  check_matmul(MP_DTYPE_F32, MP_DTYPE_F32, 1, 301, 530, 259, false, true);
  check_matmul(MP_DTYPE_F64, MP_DTYPE_F64, 2, 130, 300, 60, true, false);
}

// Tiles at all edges, operands that are read in place and that are packed, distances between rows
// that are powers of two, several blocks along k, and batches.
static void edges_of_tiles(void **state) {
  (void)state;
  static const int64_t sizes[][4] = {{1, 16, 16, 16},   {3, 13, 16, 64}, {2, 14, 17, 33},
                                     {1, 29, 48, 31},   {1, 2, 100, 9},  {1, 8, 544, 257},
                                     {1, 65, 47, 1},    {5, 28, 31, 2},  {1, 15, 65, 513},
                                     {1, 97, 1030, 12}, {1, 3, 5, 1024}, {1, 200, 40, 520}};
  static const mp_dtype_t types[][2] = {{MP_DTYPE_F32, MP_DTYPE_F32},
                                        {MP_DTYPE_F64, MP_DTYPE_F64},
                                        {MP_DTYPE_BF16, MP_DTYPE_F32},
                                        {MP_DTYPE_S8, MP_DTYPE_S32},
                                        {MP_DTYPE_S64, MP_DTYPE_S64}};
  for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); ++t) {
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); ++s) {
      for (int turned = 0; turned < 4; ++turned) {
        check_matmul(types[t][0], types[t][1], sizes[s][0], sizes[s][1], sizes[s][2], sizes[s][3],
                     turned & 1, turned & 2);
      }
    }
  }
}

static void bools_are_or_of_and(void **state) {
  (void)state;
  uint8_t a[3 * 4] = {1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0}, b[4 * 2] = {1, 0, 0, 1, 1, 0, 0, 0};
  uint8_t out[6];
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_DOT_GENERAL);
  bench_operand(&bench, MP_DTYPE_BOOL, 2, DIMS(3, 4));
  bench_operand(&bench, MP_DTYPE_BOOL, 2, DIMS(4, 2));
  bench_result(&bench, MP_DTYPE_BOOL, 2, DIMS(3, 2));
  set_lists(&bench, 0, NULL, NULL, 1, DIMS(1), DIMS(0));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){a, b}, (void *[]){out});
  assert_memory_equal(out, ((uint8_t[]){1, 0, 0, 0, 0, 0}), 6);
  bench_end(&bench);
}

static void complex_products(void **state) {
  (void)state;
  // Twice K is cut into blocks of odd sizes, which begin and end in the middle of an element.
  enum { M = 5, N = 9, K = 235 };
  static float a[K * M * 2], b[N * K * 2], out[M * N * 2];
  for (int i = 0; i < K * M * 2; ++i) a[i] = (float)value_at(i);
  for (int i = 0; i < N * K * 2; ++i) b[i] = (float)value_at(i + 3);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_DOT_GENERAL);
  bench_operand(&bench, MP_DTYPE_C64, 2, DIMS(K, M));
  bench_operand(&bench, MP_DTYPE_C64, 2, DIMS(N, K));
  bench_result(&bench, MP_DTYPE_C64, 2, DIMS(M, N));
  set_lists(&bench, 0, NULL, NULL, 1, DIMS(0), DIMS(1));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){a, b}, (void *[]){out});
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      float re = 0, im = 0;
      for (int k = 0; k < K; ++k) {
        const float *x = a + 2 * (k * M + i), *y = b + 2 * (j * K + k);
        re += x[0] * y[0] - x[1] * y[1];
        im += x[0] * y[1] + x[1] * y[0];
      }
      assert_true(out[2 * (i * N + j)] == re && out[2 * (i * N + j) + 1] == im);
    }
  }
  bench_end(&bench);
}

static void run_vectors(int64_t batch, int64_t k, int64_t n, const float *a, const float *b,
                        float *out) {
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_DOT_GENERAL);
  bench_operand(&bench, MP_DTYPE_F32, 3, DIMS(batch, 1, k));
  bench_operand(&bench, MP_DTYPE_F32, 3, DIMS(batch, k, n));
  bench_result(&bench, MP_DTYPE_F32, 3, DIMS(batch, 1, n));
  set_lists(&bench, 1, DIMS(0), DIMS(0), 1, DIMS(2), DIMS(1));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){a, b}, (void *[]){out});
  bench_end(&bench);
}

// All batches at once are cut into parts in the middle of one; the bits are those of each alone.
static void batches_are_as_each_alone(void **state) {
  (void)state;
  enum { BATCH = 9, K = 64, N = 4105 };
  static float a[BATCH * K], b[BATCH * K * N], out[BATCH * N], one[N];
  for (int i = 0; i < BATCH * K; ++i) a[i] = (float)(i % 97) / 7 - 5;
  for (int i = 0; i < BATCH * K * N; ++i) b[i] = (float)(i % 1009) / 11 - 40;
  run_vectors(BATCH, K, N, a, b, out);
  for (int i = 0; i < BATCH; ++i) {
    run_vectors(1, K, N, a + i * K, b + i * K * N, one);
    assert_memory_equal(out + i * N, one, sizeof(one));
  }
}

// Two contracting and two free dimensions, none of them neighbours.
static void scattered_dimensions(void **state) {
  (void)state;
  float a[2 * 3 * 4 * 5], b[5 * 2 * 3], out[3 * 4 * 3];
  for (int i = 0; i < 120; ++i) a[i] = (float)value_at(i);
  for (int i = 0; i < 30; ++i) b[i] = (float)value_at(i + 1);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_DOT_GENERAL);
  bench_operand(&bench, MP_DTYPE_F32, 4, DIMS(2, 3, 4, 5));  // k0 m0 m1 k1
  bench_operand(&bench, MP_DTYPE_F32, 3, DIMS(5, 2, 3));     // k1 k0 n
  bench_result(&bench, MP_DTYPE_F32, 3, DIMS(3, 4, 3));
  set_lists(&bench, 0, NULL, NULL, 2, DIMS(0, 3), DIMS(1, 0));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){a, b}, (void *[]){out});
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int n = 0; n < 3; ++n) {
        float sum = 0;
        for (int k0 = 0; k0 < 2; ++k0) {
          for (int k1 = 0; k1 < 5; ++k1) {
            sum += a[((k0 * 3 + i) * 4 + j) * 5 + k1] * b[(k1 * 2 + k0) * 3 + n];
          }
        }
        assert_true(out[(i * 4 + j) * 3 + n] == sum);
      }
    }
  }
  bench_end(&bench);
}

static void integers_wrap(void **state) {
  (void)state;
  int32_t a[2] = {INT32_MAX, 3}, b[2] = {2, INT32_MIN}, out = 0;
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_DOT_GENERAL);
  bench_operand(&bench, MP_DTYPE_S32, 1, DIMS(2));
  bench_operand(&bench, MP_DTYPE_S32, 1, DIMS(2));
  bench_result(&bench, MP_DTYPE_S32, 0, NULL);
  set_lists(&bench, 0, NULL, NULL, 1, DIMS(0), DIMS(0));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){a, b}, (void *[]){&out});
  assert_int_equal(out, (int32_t)(uint32_t)(INT32_MAX * 2ll + 3ll * INT32_MIN));
  bench_end(&bench);
}

// Products of the extreme values of 8 and 16 bits, summed up until they wrap.
static void extremes_of_short_integers(void **state) {
  (void)state;
  enum { M = 3, N = 35, K = 1031 };
  static const mp_dtype_t types[][2] = {{MP_DTYPE_S8, MP_DTYPE_S8},  {MP_DTYPE_U8, MP_DTYPE_U8},
                                        {MP_DTYPE_S8, MP_DTYPE_U8},  {MP_DTYPE_S16, MP_DTYPE_S16},
                                        {MP_DTYPE_S16, MP_DTYPE_S8}, {MP_DTYPE_U16, MP_DTYPE_U16},
                                        {MP_DTYPE_BOOL, MP_DTYPE_S8}};
  static const int64_t least[][2] = {{-128, -128},   {255, 255},     {-128, 255}, {-32768, -32768},
                                     {-32768, -128}, {65535, 65535}, {1, -128}};
  for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); ++t) {
    char *sides[2];
    for (int s = 0; s < 2; ++s) {
      const int64_t count = K * (s == 0 ? M : N);
      const size_t size = mp_dtype_size(types[t][s]);
      sides[s] = malloc((size_t)count * size);
      for (int64_t i = 0; i < count; ++i) memcpy(sides[s] + (size_t)i * size, &least[t][s], size);
    }
    static uint32_t out[M * N];
    kernel_bench_t bench;
    bench_begin(&bench, MP_OP_DOT_GENERAL);
    bench_operand(&bench, types[t][0], 2, DIMS(M, K));
    bench_operand(&bench, types[t][1], 2, DIMS(K, N));
    bench_result(&bench, MP_DTYPE_S32, 2, DIMS(M, N));
    set_lists(&bench, 0, NULL, NULL, 1, DIMS(1), DIMS(0));
    bench_make(&bench);
    bench_run(&bench, (const void *[]){sides[0], sides[1]}, (void *[]){out});
    const uint32_t expected = (uint32_t)((uint64_t)(least[t][0] * least[t][1]) * K);
    for (int i = 0; i < M * N; ++i) assert_int_equal(out[i], expected);
    bench_end(&bench);
    free(sides[0]);
    free(sides[1]);
  }
}

// Bytes of all values, for each side by rows and by columns, and k that fill no whole words.
static void products_of_bytes(void **state) {
  (void)state;
  enum { M = 29, N = 75, MOST_K = 1100 };
  static int8_t a[M * MOST_K], b[N * MOST_K];
  static int32_t out[M * N];
  uint32_t random = 1;
  for (int i = 0; i < N * MOST_K; ++i) {
    random = random * 1664525 + 1013904223;
    b[i] = (int8_t)(random >> 24);
    if (i < M * MOST_K) a[i] = (int8_t)(random >> 16);
  }
  static const int64_t depths[] = {1, 2, 3, 4, 63, 257, MOST_K};
  for (int form = 0; form < 4 * 7; ++form) {
    const int64_t k = depths[form / 4];
    const bool a_by_k = form % 2 == 0, b_by_k = form / 2 % 2 == 0;
    kernel_bench_t bench;
    bench_begin(&bench, MP_OP_DOT_GENERAL);
    bench_operand(&bench, MP_DTYPE_S8, 2, a_by_k ? DIMS(M, k) : DIMS(k, M));
    bench_operand(&bench, MP_DTYPE_S8, 2, b_by_k ? DIMS(N, k) : DIMS(k, N));
    bench_result(&bench, MP_DTYPE_S32, 2, DIMS(M, N));
    set_lists(&bench, 0, NULL, NULL, 1, DIMS(a_by_k ? 1 : 0), DIMS(b_by_k ? 1 : 0));
    bench_make(&bench);
    bench_run(&bench, (const void *[]){a, b}, (void *[]){out});
    for (int i = 0; i < M * N; ++i) {
      const int64_t row = i / N, column = i % N;
      int32_t sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += a[a_by_k ? row * k + p : p * M + row] * b[b_by_k ? column * k + p : p * N + column];
      }
      assert_int_equal(out[i], sum);
    }
    bench_end(&bench);
  }
}

// The sum of products of two lines in sixteen lanes, which are added up in halves.
static float sum_in_lanes(int64_t k, const float *a, const float *b) {
  volatile float lanes[16] = {0};  // volatile: nothing is fused
  for (int64_t i = 0; i < k; ++i) {
    const volatile float product = a[i] * b[i];
    lanes[i % 16] += product;
  }
  for (int width = 8; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
  }
  return lanes[0];
}

// One product [batch, rows, k] x [batch, k]; NaNs follow both arrays.
static void check_lines(int64_t batch, int64_t rows, int64_t k) {
  enum { BEHIND = 16, MOST = 4096 };
  static float a[MOST + BEHIND], b[MOST + BEHIND], out[MOST];
  const int64_t num_a = batch * rows * k, num_b = batch * k;
  for (int64_t i = 0; i < num_a + BEHIND; ++i) a[i] = i < num_a ? 1 / (float)(i % 97 - 48.5) : NAN;
  for (int64_t i = 0; i < num_b + BEHIND; ++i) b[i] = i < num_b ? 3 / (float)(i % 89 - 40.5) : NAN;
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_DOT_GENERAL);
  bench_operand(&bench, MP_DTYPE_F32, 3, DIMS(batch, rows, k));
  bench_operand(&bench, MP_DTYPE_F32, 2, DIMS(batch, k));
  bench_result(&bench, MP_DTYPE_F32, 2, DIMS(batch, rows));
  set_lists(&bench, 1, DIMS(0), DIMS(0), 1, DIMS(2), DIMS(1));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){a, b}, (void *[]){out});
  for (int64_t i = 0; i < batch * rows; ++i) {
    const float expected = sum_in_lanes(k, a + i * k, b + i / rows * k);
    assert_memory_equal(&out[i], &expected, sizeof(expected));
  }
  bench_end(&bench);
}

// A product of rows with rows, [batch, m, k] x [batch, n, k].
static void run_rows(int64_t batch, int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                     float *out) {
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_DOT_GENERAL);
  bench_operand(&bench, MP_DTYPE_F32, 3, DIMS(batch, m, k));
  bench_operand(&bench, MP_DTYPE_F32, 3, DIMS(batch, n, k));
  bench_result(&bench, MP_DTYPE_F32, 3, DIMS(batch, m, n));
  set_lists(&bench, 1, DIMS(0), DIMS(0), 1, DIMS(2), DIMS(2));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){a, b}, (void *[]){out});
  bench_end(&bench);
}

// A product [m, k] x [k, n].
static void run_plain(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *out) {
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_DOT_GENERAL);
  bench_operand(&bench, MP_DTYPE_F32, 2, DIMS(m, k));
  bench_operand(&bench, MP_DTYPE_F32, 2, DIMS(k, n));
  bench_result(&bench, MP_DTYPE_F32, 2, DIMS(m, n));
  set_lists(&bench, 0, NULL, NULL, 1, DIMS(1), DIMS(0));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){a, b}, (void *[]){out});
  bench_end(&bench);
}

// Rows of a product have the same bits whether there are enough of them for a packed right side or
// not: one that is large, and one whose rows begin within cache lines.
static void packed_sides_are_as_those_that_are_read(void **state) {
  (void)state;
  enum { ROWS = 300, FEW = 20, MOST_N = 1024, MOST_K = 300 };
  static float a[ROWS * MOST_K], b[MOST_K * MOST_N], all[ROWS * MOST_N], few[FEW * MOST_N];
  for (int i = 0; i < ROWS * MOST_K; ++i) a[i] = 1 / (float)(i % 97 - 48.5);
  for (int i = 0; i < MOST_K * MOST_N; ++i) b[i] = 3 / (float)(i % 89 - 40.5);
  static const int64_t sizes[][2] = {{MOST_N, MOST_K}, {1000, 70}, {75, 270}, {33, 5}};
  for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); ++s) {
    const int64_t n = sizes[s][0], k = sizes[s][1];
    run_plain(ROWS, n, k, a, b, all);
    for (int64_t first = 0; first < ROWS; first += FEW) {
      run_plain(FEW, n, k, a + first * k, b, few);
      assert_memory_equal(few, all + first * n, (size_t)(FEW * n) * sizeof(float));
    }
  }
}

// Very small products have the bits that their elements have in a large one.
static void small_products_are_as_in_large_ones(void **state) {
  (void)state;
  enum { BATCH = 6, MOST = 9, ROWS = BATCH * MOST, DEPTH = 12 };
  static float a[ROWS * DEPTH], b[ROWS * DEPTH], small[ROWS * MOST], large[ROWS * ROWS];
  for (int i = 0; i < ROWS * DEPTH; ++i) {
    a[i] = 1 / (float)(i % 97 - 48.5);
    b[i] = 3 / (float)(i % 89 - 40.5);
  }
  for (int64_t k = 1; k <= DEPTH; ++k) {
    for (int64_t m = 2, n = MOST; m <= MOST; ++m, --n) {
      run_rows(BATCH, m, n, k, a, b, small);
      run_rows(1, BATCH * m, BATCH * n, k, a, b, large);
      for (int64_t i = 0; i < BATCH * m; ++i) {
        const float *row = large + (i * BATCH + i / m) * n;
        assert_memory_equal(small + i * n, row, (size_t)n * sizeof(float));
      }
    }
  }
}

// However lines are read, their sums have the same bits, and nothing behind them counts.
static void lines_of_any_length(void **state) {
  (void)state;
  for (int64_t k = 2; k <= 40; ++k) {
    check_lines(3, 1, k);
    check_lines(3, 5, k);
    check_lines(2, 19, k);
    check_lines(1, 7, k);
    check_lines(100, 1, k);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_of_any_length),
      cmocka_unit_test(small_products_are_as_in_large_ones),
      cmocka_unit_test(every_type_and_size),
      cmocka_unit_test(large_products_in_parts),
      cmocka_unit_test(bools_are_or_of_and),
      cmocka_unit_test(complex_products),
      cmocka_unit_test(scattered_dimensions),
      cmocka_unit_test(integers_wrap),
      cmocka_unit_test(edges_of_tiles),
      cmocka_unit_test(extremes_of_short_integers),
      cmocka_unit_test(products_of_bytes),
      cmocka_unit_test(packed_sides_are_as_those_that_are_read),
      cmocka_unit_test(batches_are_as_each_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
