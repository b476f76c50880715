// fft against the sum that defines it.
#include <math.h>

#include "tests/unit/support/kernel_test.h"

enum { MOST = 1 << 13 };

static double wave(int64_t i) {
  return sin(0.7 * (double)i + 0.3) + 0.25 * (double)(i % 5);
}

// The transform of [rows, n] complex numbers along n with the given sign, by definition; `step` is
// the distance of neighbours.
static void slow_line(int64_t n, int64_t step, int sign, double *data) {
  static double result[2 * MOST];
  for (int64_t k = 0; k < n; ++k) {
    double re = 0, im = 0;
    for (int64_t i = 0; i < n; ++i) {
      double angle = sign * 2 * M_PI * (double)(i * k % n) / (double)n;
      double c = cos(angle), s = sin(angle);
      const double *x = data + 2 * i * step;
      re += x[0] * c - x[1] * s;
      im += x[0] * s + x[1] * c;
    }
    result[2 * k] = re;
    result[2 * k + 1] = im;
  }
  for (int64_t k = 0; k < n; ++k) {
    data[2 * k * step] = result[2 * k];
    data[2 * k * step + 1] = result[2 * k + 1];
  }
}

// [batch, dims...], all dimensions but the first.
static void slow_fft(int64_t batch, uint32_t rank, const int64_t *dims, int sign, double *data) {
  int64_t count = batch, inner = 1;
  for (uint32_t d = 0; d < rank; ++d) count *= dims[d];
  for (uint32_t d = rank; d-- > 0;) {
    for (int64_t i = 0; i < count; ++i) {
      if (i / inner % dims[d] == 0) slow_line(dims[d], inner, sign, data + 2 * i);
    }
    inner *= dims[d];
  }
}

// One transform along the last dimension but `kept`.
static void run_line(uint32_t type, mp_dtype_t in_type, uint32_t in_rank, const int64_t *in_dims,
                     mp_dtype_t out_type, const int64_t *out_dims, int64_t length, uint32_t kept,
                     const void *in, void *out) {
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_FFT);
  bench_operand(&bench, in_type, in_rank, in_dims);
  bench_result(&bench, out_type, in_rank, out_dims);
  bench_enum(&bench, MP_ATTR_FFT_TYPE, MP_ENUM_FFT_TYPE, type);
  bench_ints(&bench, MP_ATTR_FFT_LENGTH, 1, &length);
  if (kept > 0) bench_int(&bench, MP_ATTR_KEPT, kept);
  bench_make(&bench);
  const bool is_complex = type == MP_FFT_FFT || type == MP_FFT_IFFT;
  if (in != NULL) assert_int_equal(bench.kernel->in_place, is_complex ? 1 : 0);
  bench_run(&bench, (const void *[]){in}, (void *[]){out});
  bench_end(&bench);
}

// A transform over the last `rank` dimensions, one after the other as sim/passes/transforms.c does
// it: the last one first, or last when the results are real; all others in place.
static void run_fft(uint32_t type, mp_dtype_t in_type, uint32_t in_rank, const int64_t *in_dims,
                    mp_dtype_t out_type, const int64_t *out_dims, uint32_t rank,
                    const int64_t *dims, const void *in, void *out) {
  static double between[2 * MOST];
  const bool to_real = type == MP_FFT_IRFFT, is_inverse = to_real || type == MP_FFT_IFFT;
  const int64_t *complex_dims = to_real ? in_dims : out_dims;
  const mp_dtype_t complex_type = to_real ? in_type : out_type;
  void *values = out;
  if (to_real) {
    size_t bytes = mp_dtype_size(in_type);
    for (uint32_t d = 0; d < in_rank; ++d) bytes *= (size_t)in_dims[d];
    if (bytes > 0) memcpy(between, in, bytes);
    values = between;
  } else {
    run_line(type, in_type, in_rank, in_dims, out_type, out_dims, dims[rank - 1], 0, in, out);
  }
  for (uint32_t kept = 1; kept < rank; ++kept) {
    run_line(is_inverse ? MP_FFT_IFFT : MP_FFT_FFT, complex_type, in_rank, complex_dims,
             complex_type, complex_dims, dims[rank - 1 - kept], kept, values, values);
  }
  if (to_real) {
    run_line(type, in_type, in_rank, in_dims, out_type, out_dims, dims[rank - 1], 0, values, out);
  }
}

static void assert_close(const double *got, const double *wanted, int64_t count, int64_t n) {
  for (int64_t i = 0; i < count; ++i) {
    double error = fabs(got[i] - wanted[i]);
    if (!(error < 1e-11 * (double)(n + 10))) {
      fail_msg("length %d, element %d: %.17g, not %.17g", (int)n, (int)i, got[i], wanted[i]);
    }
  }
}

// Both directions of the complex and the real transforms.
static void check(int64_t batch, uint32_t rank, const int64_t *dims) {
  static double in[2 * MOST], wanted[2 * MOST], out[2 * MOST], back[2 * MOST], real[MOST];
  int64_t full[4] = {batch}, halved[4] = {batch}, count = batch, last = dims[rank - 1];
  for (uint32_t d = 0; d < rank; ++d) {
    full[d + 1] = halved[d + 1] = dims[d];
    count *= dims[d];
  }
  int64_t half = halved[rank] = last / 2 + 1;
  assert_true(count <= MOST);
  for (int64_t i = 0; i < 2 * count; ++i) in[i] = wanted[i] = wave(i);
  slow_fft(batch, rank, dims, -1, wanted);
  run_fft(MP_FFT_FFT, MP_DTYPE_C128, rank + 1, full, MP_DTYPE_C128, full, rank, dims, in, out);
  assert_close(out, wanted, 2 * count, last);
  run_fft(MP_FFT_IFFT, MP_DTYPE_C128, rank + 1, full, MP_DTYPE_C128, full, rank, dims, out, back);
  assert_close(back, in, 2 * count, 1);

  for (int64_t i = 0; i < count; ++i) {
    real[i] = wanted[2 * i] = wave(i);
    wanted[2 * i + 1] = 0;
  }
  slow_fft(batch, rank, dims, -1, wanted);
  run_fft(MP_FFT_RFFT, MP_DTYPE_F64, rank + 1, full, MP_DTYPE_C128, halved, rank, dims, real, out);
  for (int64_t r = 0; r < count / last; ++r) {
    assert_close(out + 2 * r * half, wanted + 2 * r * last, 2 * half, last);
  }
  run_fft(MP_FFT_IRFFT, MP_DTYPE_C128, rank + 1, halved, MP_DTYPE_F64, full, rank, dims, out, back);
  assert_close(back, real, count, 1);
}

static void every_length(void **state) {
  (void)state;
  for (int64_t n = 1; n <= 130; ++n) check(3, 1, &n);
  static const int64_t long_ones[] = {256, 360, 37 * 37, 1009, 1024, 2048, 31 * 64};
  for (size_t i = 0; i < sizeof(long_ones) / sizeof(long_ones[0]); ++i) check(1, 1, &long_ones[i]);
}

static void many_lines_and_dimensions(void **state) {
  (void)state;
  check(37, 1, (int64_t[]){12});
  check(2, 2, (int64_t[]){6, 10});
  check(1, 2, (int64_t[]){37, 8});
  check(1, 2, (int64_t[]){5, 1});
  check(3, 3, (int64_t[]){4, 5, 6});
  check(2, 3, (int64_t[]){3, 2, 7});
  check(1, 2, (int64_t[]){9, 40});
  check(3, 2, (int64_t[]){16, 35});
  check(2, 3, (int64_t[]){5, 12, 18});
  check(19, 1, (int64_t[]){33});
  check(33, 1, (int64_t[]){34});
}

// Columns are transformed as rows are, to the bit, wherever they stand among others.
static void columns_and_rows(void **state) {
  (void)state;
  enum { N = 24, MOST_INNER = 37 };
  static float in[2 * 3 * N * MOST_INNER], out[2 * 3 * N * MOST_INNER];
  for (int64_t inner = 1; inner <= MOST_INNER; inner += 3) {
    const int64_t dims[3] = {3, N, inner}, row[1] = {N};
    for (int64_t i = 0; i < 2 * 3 * N * inner; ++i) in[i] = (float)wave(i % 977);
    run_line(MP_FFT_IFFT, MP_DTYPE_C64, 3, dims, MP_DTYPE_C64, dims, N, 1, in, out);
    for (int64_t line = 0; line < 3 * inner; ++line) {
      const int64_t at = 2 * (line / inner * N * inner + line % inner);
      float x[2 * N], y[2 * N];
      for (int64_t i = 0; i < N; ++i) memcpy(x + 2 * i, in + at + 2 * i * inner, sizeof(float) * 2);
      run_line(MP_FFT_IFFT, MP_DTYPE_C64, 1, row, MP_DTYPE_C64, row, N, 0, x, y);
      for (int64_t i = 0; i < N; ++i) {
        assert_memory_equal(y + 2 * i, out + at + 2 * i * inner, sizeof(float) * 2);
      }
    }
  }
}

// Infinities and NaNs stay in their lines, and the parts of a real transform that are zero by
// definition are so whatever is stored there.
static void hostile_values(void **state) {
  (void)state;
  enum { LINES = 21, N = 12 };
  float in[2 * LINES * N], out[2 * LINES * N], clean[2 * LINES * N];
  const int64_t dims[2] = {LINES, N}, half[2] = {LINES, N / 2 + 1};
  for (int i = 0; i < 2 * LINES * N; ++i) in[i] = (float)wave(i);
  run_line(MP_FFT_FFT, MP_DTYPE_C64, 2, dims, MP_DTYPE_C64, dims, N, 0, in, clean);
  in[2 * (5 * N + 3)] = INFINITY;
  in[2 * (17 * N) + 1] = NAN;
  run_line(MP_FFT_FFT, MP_DTYPE_C64, 2, dims, MP_DTYPE_C64, dims, N, 0, in, out);
  for (int l = 0; l < LINES; ++l) {
    if (l == 5 || l == 17) {
      for (int i = l * N; i < (l + 1) * N; ++i) {
        assert_false(isfinite(out[2 * i]) && isfinite(out[2 * i + 1]));
      }
    } else {
      assert_memory_equal(out + 2 * l * N, clean + 2 * l * N, 2 * N * sizeof(float));
    }
  }
  for (int i = 0; i < 2 * LINES * (N / 2 + 1); ++i) in[i] = (float)wave(i);
  run_line(MP_FFT_IRFFT, MP_DTYPE_C64, 2, half, MP_DTYPE_F32, dims, N, 0, in, clean);
  for (int l = 0; l < LINES; ++l) {
    in[2 * l * (N / 2 + 1) + 1] = NAN;
    in[2 * (l * (N / 2 + 1) + N / 2) + 1] = INFINITY;
  }
  run_line(MP_FFT_IRFFT, MP_DTYPE_C64, 2, half, MP_DTYPE_F32, dims, N, 0, in, out);
  assert_memory_equal(out, clean, LINES * N * sizeof(float));
}

static void floats_and_nothing(void **state) {
  (void)state;
  float in[16], out[16];
  double wide[16];
  for (int i = 0; i < 16; ++i) wide[i] = in[i] = (float)wave(i);
  slow_fft(1, 1, (int64_t[]){8}, -1, wide);
  run_fft(MP_FFT_FFT, MP_DTYPE_C64, 1, (int64_t[]){8}, MP_DTYPE_C64, (int64_t[]){8}, 1,
          (int64_t[]){8}, in, out);
  for (int i = 0; i < 16; ++i) assert_true(fabs((double)out[i] - wide[i]) < 1e-5);
  run_fft(MP_FFT_FFT, MP_DTYPE_C64, 2, (int64_t[]){0, 8}, MP_DTYPE_C64, (int64_t[]){0, 8}, 1,
          (int64_t[]){8}, NULL, NULL);
  run_fft(MP_FFT_FFT, MP_DTYPE_C64, 2, (int64_t[]){8, 0}, MP_DTYPE_C64, (int64_t[]){8, 0}, 1,
          (int64_t[]){0}, NULL, NULL);
}

static void too_long_lines_are_refused(void **state) {
  (void)state;
  int64_t dims[1] = {(1 << 24) + 1};
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_FFT);
  bench_operand(&bench, MP_DTYPE_C64, 1, dims);
  bench_result(&bench, MP_DTYPE_C64, 1, dims);
  bench_enum(&bench, MP_ATTR_FFT_TYPE, MP_ENUM_FFT_TYPE, MP_FFT_FFT);
  bench_ints(&bench, MP_ATTR_FFT_LENGTH, 1, dims);
  bench_make_op(&bench);
  assert_status(mp_kernel_create(bench.module->arena, bench.op, &bench.kernel), MP_UNIMPLEMENTED,
                "16777217 points");
  bench_end(&bench);
}

// Thousands of rows in parts.
static void parts(void **state) {
  (void)state;
  enum { ROWS = 3000, N = 64 };
  float *in = malloc(ROWS * N * 8), *out = malloc(ROWS * N * 8), line[2 * N];
  for (int i = 0; i < ROWS * N * 2; ++i) in[i] = (float)wave(i % 1000);
  int64_t dims[2] = {ROWS, N};
  run_fft(MP_FFT_FFT, MP_DTYPE_C64, 2, dims, MP_DTYPE_C64, dims, 1, dims + 1, in, out);
  for (int r = 0; r < ROWS; r += 7) {
    run_fft(MP_FFT_FFT, MP_DTYPE_C64, 1, dims + 1, MP_DTYPE_C64, dims + 1, 1, dims + 1,
            in + r * 2 * N, line);
    assert_memory_equal(line, out + r * 2 * N, sizeof(line));
  }
  free(in);
  free(out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_length),
      cmocka_unit_test(many_lines_and_dimensions),
      cmocka_unit_test(columns_and_rows),
      cmocka_unit_test(hostile_values),
      cmocka_unit_test(floats_and_nothing),
      cmocka_unit_test(too_long_lines_are_refused),
      cmocka_unit_test(parts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
