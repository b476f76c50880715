// Elementwise kernels: meaning at the edges, all element types, scalar operands, parts.
#include <complex.h>
#include <math.h>

#include "sim/kernels/elementwise/convert.h"
#include "sim/numeric/float.h"
#include "tests/unit/support/kernel_test.h"

// Runs an op over n elements; operands and result of these types.
static void run(mp_opcode_t code, uint32_t num_operands, const mp_dtype_t *dtypes,
                mp_dtype_t result, int64_t n, const void *const *in, void *out) {
  kernel_bench_t bench;
  bench_begin(&bench, code);
  for (uint32_t i = 0; i < num_operands; ++i) bench_operand(&bench, dtypes[i], 1, &n);
  bench_result(&bench, result, 1, &n);
  bench_make(&bench);
  bench_run(&bench, in, &out);
  bench_end(&bench);
}

static void unary(mp_opcode_t code, mp_dtype_t dtype, mp_dtype_t result, int64_t n, const void *in,
                  void *out) {
  run(code, 1, &dtype, result, n, &in, out);
}

static void binary(mp_opcode_t code, mp_dtype_t dtype, int64_t n, const void *x, const void *y,
                   void *out) {
  run(code, 2, (mp_dtype_t[]){dtype, dtype}, dtype, n, (const void *[]){x, y}, out);
}

// ---- Integers ----

static void test_division_at_the_edges(void **state) {
  (void)state;
  const int32_t x[] = {7, -7, INT32_MIN, 5, INT32_MIN}, y[] = {0, 2, -1, -3, 0};
  const int32_t quotients[] = {-1, -3, INT32_MIN, -1, -1}, rests[] = {7, -1, 0, 2, INT32_MIN};
  int32_t out[5];
  binary(MP_OP_DIVIDE, MP_DTYPE_S32, 5, x, y, out);
  assert_memory_equal(out, quotients, sizeof(out));
  binary(MP_OP_REMAINDER, MP_DTYPE_S32, 5, x, y, out);
  assert_memory_equal(out, rests, sizeof(out));
  const uint64_t a[] = {UINT64_MAX, 9}, b[] = {0, 4}, want[] = {UINT64_MAX, 2};
  uint64_t out64[2];
  binary(MP_OP_DIVIDE, MP_DTYPE_U64, 2, a, b, out64);
  assert_memory_equal(out64, want, sizeof(out64));
}

static void test_shifts_by_the_width_and_more(void **state) {
  (void)state;
  const int8_t x[] = {-128, -128, 1, 1, -1}, y[] = {7, 8, 7, -1, 100};
  const int8_t left[] = {0, 0, -128, 0, 0}, logical[] = {1, 0, 0, 0, 0};
  const int8_t arithmetic[] = {-1, -1, 0, 0, -1};
  int8_t out[5];
  binary(MP_OP_SHIFT_LEFT, MP_DTYPE_S8, 5, x, y, out);
  assert_memory_equal(out, left, sizeof(out));
  binary(MP_OP_SHIFT_RIGHT_LOGICAL, MP_DTYPE_S8, 5, x, y, out);
  assert_memory_equal(out, logical, sizeof(out));
  binary(MP_OP_SHIFT_RIGHT_ARITHMETIC, MP_DTYPE_S8, 5, x, y, out);
  assert_memory_equal(out, arithmetic, sizeof(out));
}

static void test_integer_powers(void **state) {
  (void)state;
  const int16_t x[] = {3, -2, 1, -1, -1, 0, 2, 5, 0}, y[] = {4, 3, -9, -9, -8, 0, -1, 0, -1};
  const int16_t want[] = {81, -8, 1, -1, 1, 1, 0, 1, 0};
  int16_t out[9];
  binary(MP_OP_POWER, MP_DTYPE_S16, 9, x, y, out);
  assert_memory_equal(out, want, sizeof(out));
}

static void test_counts_of_set_bits(void **state) {
  (void)state;
  const uint8_t x8[] = {0, 1, 255, 0xa5}, want8[] = {0, 1, 8, 4};
  const int16_t x16[] = {0, -1, INT16_MIN, 0x1234}, want16[] = {0, 16, 1, 5};
  const uint32_t x32[] = {0, UINT32_MAX, 0x80000001, 0x12345678}, want32[] = {0, 32, 2, 13};
  const int64_t x64[] = {0, -1, INT64_MIN, 0x123456789abcdef}, want64[] = {0, 64, 1, 32};
  int64_t out[4];
  unary(MP_OP_POPCNT, MP_DTYPE_U8, MP_DTYPE_U8, 4, x8, out);
  assert_memory_equal(out, want8, sizeof(want8));
  unary(MP_OP_POPCNT, MP_DTYPE_S16, MP_DTYPE_S16, 4, x16, out);
  assert_memory_equal(out, want16, sizeof(want16));
  unary(MP_OP_POPCNT, MP_DTYPE_U32, MP_DTYPE_U32, 4, x32, out);
  assert_memory_equal(out, want32, sizeof(want32));
  unary(MP_OP_POPCNT, MP_DTYPE_S64, MP_DTYPE_S64, 4, x64, out);
  assert_memory_equal(out, want64, sizeof(want64));
}

// 4-bit integers are stored in the low bits of a byte.
static void test_four_bit_integers_wrap(void **state) {
  (void)state;
  const uint8_t x[] = {7, 8, 15, 8}, y[] = {1, 15, 3, 15};  // 7, -8, -1, -8 and 1, -1, 3, -1
  uint8_t out[4];
  binary(MP_OP_ADD, MP_DTYPE_S4, 4, x, y, out);
  assert_memory_equal(out, ((uint8_t[]){8, 7, 2, 7}), 4);
  binary(MP_OP_DIVIDE, MP_DTYPE_S4, 4, x, y, out);
  assert_memory_equal(out, ((uint8_t[]){7, 8, 0, 8}), 4);
  binary(MP_OP_MAXIMUM, MP_DTYPE_S4, 4, x, y, out);
  assert_memory_equal(out, ((uint8_t[]){7, 15, 3, 15}), 4);
  binary(MP_OP_SHIFT_RIGHT_LOGICAL, MP_DTYPE_S4, 4, x, (uint8_t[]){1, 1, 1, 4}, out);
  assert_memory_equal(out, ((uint8_t[]){3, 4, 7, 0}), 4);
  binary(MP_OP_SHIFT_RIGHT_ARITHMETIC, MP_DTYPE_U4, 4, x, (uint8_t[]){1, 1, 1, 4}, out);
  assert_memory_equal(out, ((uint8_t[]){3, 12, 15, 15}), 4);
  unary(MP_OP_COUNT_LEADING_ZEROS, MP_DTYPE_S4, MP_DTYPE_S4, 4, (uint8_t[]){0, 1, 6, 15}, out);
  assert_memory_equal(out, ((uint8_t[]){4, 3, 1, 0}), 4);
  unary(MP_OP_POPCNT, MP_DTYPE_S4, MP_DTYPE_S4, 4, (uint8_t[]){0, 1, 6, 15}, out);
  assert_memory_equal(out, ((uint8_t[]){0, 1, 2, 4}), 4);
  const float wide[] = {100, -100, 2.9f, NAN};
  unary(MP_OP_CONVERT, MP_DTYPE_F32, MP_DTYPE_S4, 4, wide, out);
  assert_memory_equal(out, ((uint8_t[]){7, 8, 2, 0}), 4);
  unary(MP_OP_CONVERT, MP_DTYPE_S32, MP_DTYPE_U4, 4, (int32_t[]){17, -1, 5, 16}, out);
  assert_memory_equal(out, ((uint8_t[]){1, 15, 5, 0}), 4);
  float back[4];
  unary(MP_OP_CONVERT, MP_DTYPE_S4, MP_DTYPE_F32, 4, x, back);
  assert_true(back[0] == 7 && back[1] == -8 && back[2] == -1);
}

// ---- Floats ----

static void test_minimum_maximum(void **state) {
  (void)state;
  const double x[] = {NAN, 1, -0.0, 0.0, -3}, y[] = {1, NAN, 0.0, -0.0, 2};
  double out[5];
  binary(MP_OP_MAXIMUM, MP_DTYPE_F64, 5, x, y, out);
  assert_true(isnan(out[0]) && isnan(out[1]) && !signbit(out[2]) && !signbit(out[3]));
  assert_true(out[4] == 2);
  binary(MP_OP_MINIMUM, MP_DTYPE_F64, 5, x, y, out);
  assert_true(isnan(out[0]) && isnan(out[1]) && signbit(out[2]) && signbit(out[3]));
  assert_true(out[4] == -3);
}

static void test_signs_and_rounding(void **state) {
  (void)state;
  const float x[] = {-0.0f, NAN, -7, 0.49999997f, 2.5f, -2.5f, 8388609.0f};
  float out[7];
  unary(MP_OP_SIGN, MP_DTYPE_F32, MP_DTYPE_F32, 7, x, out);
  assert_true(out[0] == 0 && signbit(out[0]) && isnan(out[1]) && out[2] == -1 && out[3] == 1);
  unary(MP_OP_ROUND_NEAREST_AFZ, MP_DTYPE_F32, MP_DTYPE_F32, 7, x, out);
  assert_true(signbit(out[0]) && out[3] == 0 && out[4] == 3 && out[5] == -3 && out[6] == x[6]);
  unary(MP_OP_ROUND_NEAREST_EVEN, MP_DTYPE_F32, MP_DTYPE_F32, 7, x, out);
  assert_true(signbit(out[0]) && out[3] == 0 && out[4] == 2 && out[5] == -2 && out[6] == x[6]);
  uint8_t finite[7];
  unary(MP_OP_IS_FINITE, MP_DTYPE_F32, MP_DTYPE_BOOL, 7, x, finite);
  assert_memory_equal(finite, ((uint8_t[]){1, 0, 1, 1, 1, 1, 1}), 7);
}

// The vectorised functions of f32 against libm's of f64; the error is counted in units in the last
// place.
static void check_within(double units, mp_opcode_t code, double (*want)(double), float low,
                         float high) {
  enum { N = 5000 };
  static float x[N], out[N];
  const float edges[] = {0, -0.0f, INFINITY, -INFINITY, NAN, 1, -1, 1e-40f, 3e38f, -3e38f, 2e7f};
  const size_t num_edges = sizeof(edges) / sizeof(edges[0]);
  for (int i = 0; i < N; ++i) x[i] = low + (high - low) * (float)i / N;
  memcpy(x, edges, sizeof(edges));
  unary(code, MP_DTYPE_F32, MP_DTYPE_F32, N, x, out);
  for (size_t i = 0; i < N; ++i) {
    double exact = want(x[i]);
    float rounded = (float)exact, unit = nextafterf(fabsf(rounded), INFINITY) - fabsf(rounded);
    bool same = out[i] == rounded || (isnan(out[i]) && isnan(rounded));
    if (!same && !(fabs(out[i] - exact) <= units * (double)unit)) {
      fail_msg("%s(%.9g) = %.9g, not %.9g", mp_op_info(code)->name, (double)x[i], (double)out[i],
               exact);
    }
    if (i < num_edges && !isnan(rounded)) assert_true(signbit(out[i]) == signbit(rounded));
  }
}

static void check_function(mp_opcode_t code, double (*want)(double), float low, float high) {
  check_within(1.07, code, want, low, high);
}

static double logistic(double x) {
  return 1 / (1 + exp(-x));
}

static void test_functions(void **state) {
  (void)state;
  check_function(MP_OP_EXPONENTIAL, exp, -110, 95);
  check_function(MP_OP_EXPONENTIAL, exp, -104.1f, -86);  // results below the normal numbers
  check_function(MP_OP_LOGISTIC, logistic, -104.1f, -86);
  check_function(MP_OP_EXPONENTIAL_MINUS_ONE, expm1, -25, 95);
  check_function(MP_OP_LOG, log, 0, 1e-38f);
  check_function(MP_OP_LOG_PLUS_ONE, log1p, 1e38f, 3.4e38f);
  check_function(MP_OP_TANH, tanh, -1e-3f, 1e-3f);
  check_function(MP_OP_EXPONENTIAL_MINUS_ONE, expm1, -5, 5);
  check_function(MP_OP_LOG, log, -1, 4);
  check_function(MP_OP_LOG_PLUS_ONE, log1p, -1.1f, 2);
  check_function(MP_OP_LOG_PLUS_ONE, log1p, -0.002f, 0.002f);
  check_function(MP_OP_LOGISTIC, logistic, -100, 100);
  check_function(MP_OP_TANH, tanh, -12, 12);
  check_function(MP_OP_SINE, sin, -1000, 1000);
  check_function(MP_OP_COSINE, cos, -1000, 1000);
  check_within(0.6, MP_OP_TAN, tan, -10, 10);
  check_function(MP_OP_SINE, sin, 5e5f, 2e6f);
}

// The vectorised functions of f64 against libm's of long double, which is wider on x86.
static void check_function_f64(mp_opcode_t code, long double (*want)(long double), double low,
                               double high) {
  enum { N = 3001 };
  static double x[N], out[N];
  const double edges[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 1e-310, 1e308, -1e308};
  const size_t num_edges = sizeof(edges) / sizeof(edges[0]);
  for (int i = 0; i < N; ++i) x[i] = low + (high - low) * i / N;
  memcpy(x, edges, sizeof(edges));
  unary(code, MP_DTYPE_F64, MP_DTYPE_F64, N, x, out);
  for (size_t i = 0; i < N; ++i) {
    long double exact = want(x[i]);
    double rounded = (double)exact, unit = nextafter(fabs(rounded), INFINITY) - fabs(rounded);
    bool same = out[i] == rounded || (isnan(out[i]) && isnan(rounded));
    if (!same && !(fabsl(out[i] - exact) <= (long double)unit)) {
      fail_msg("%s(%.17g) = %.17g, not %.17g", mp_op_info(code)->name, x[i], out[i], rounded);
    }
    if (i < num_edges && !isnan(rounded)) assert_true(!signbit(out[i]) == !signbit(rounded));
  }
}

static long double logistic_wide(long double x) {
  return 1 / (1 + expl(-x));
}

static void test_functions_f64(void **state) {
  (void)state;
  check_function_f64(MP_OP_EXPONENTIAL, expl, -746, 710);
  check_function_f64(MP_OP_EXPONENTIAL, expl, -745.2, -708);  // results below the normal numbers
  check_function_f64(MP_OP_EXPONENTIAL_MINUS_ONE, expm1l, -40, 710);
  check_function_f64(MP_OP_EXPONENTIAL_MINUS_ONE, expm1l, -1, 1);
  check_function_f64(MP_OP_LOG, logl, -1, 4);
  check_function_f64(MP_OP_LOG, logl, 0, 2e-308);
  check_function_f64(MP_OP_LOG_PLUS_ONE, log1pl, -1.1, 2);
  check_function_f64(MP_OP_LOG_PLUS_ONE, log1pl, 1e307, 1.7e308);
  check_function_f64(MP_OP_LOGISTIC, logistic_wide, -740, 40);
  check_function_f64(MP_OP_LOGISTIC, logistic_wide, -2, 2);
  check_function_f64(MP_OP_TANH, tanhl, -20, 20);
  check_function_f64(MP_OP_TANH, tanhl, -1e-3, 1e-3);
}

// An element alone gives the bits that it gives between others.
static void test_functions_regardless_of_position(void **state) {
  (void)state;
  const mp_opcode_t codes[] = {MP_OP_EXPONENTIAL, MP_OP_EXPONENTIAL_MINUS_ONE,
                               MP_OP_LOG,         MP_OP_LOG_PLUS_ONE,
                               MP_OP_LOGISTIC,    MP_OP_TANH,
                               MP_OP_SINE,        MP_OP_COSINE};
  enum { N = 203 };
  float x[N], together[N], alone[N];
  for (int i = 0; i < N; ++i) x[i] = ((float)i - 50) * 0.37f;
  for (size_t k = 0; k < sizeof(codes) / sizeof(codes[0]); ++k) {
    unary(codes[k], MP_DTYPE_F32, MP_DTYPE_F32, N, x, together);
    for (int i = 0; i < N; ++i) unary(codes[k], MP_DTYPE_F32, MP_DTYPE_F32, 1, x + i, alone + i);
    assert_memory_equal(together, alone, sizeof(alone));
  }
}

static void test_atan2(void **state) {
  (void)state;
  const float values[] = {0, -0.0f, 1, -1, 1e-40f, -2.5f, 3e38f, INFINITY, -INFINITY, NAN, 0.3f};
  enum { N = sizeof(values) / sizeof(values[0]) };
  float y[N * N], x[N * N], out[N * N];
  for (int i = 0; i < N * N; ++i) {
    y[i] = values[i / N];
    x[i] = values[i % N];
  }
  binary(MP_OP_ATAN2, MP_DTYPE_F32, N * N, y, x, out);
  for (int i = 0; i < N * N; ++i) {
    double want = atan2(y[i], x[i]);
    if (isnan(want)) {
      assert_true(isnan(out[i]));
      continue;
    }
    if (!(fabs(out[i] - want) <= 1e-7 * fabs(want) + 1e-45) || !signbit(out[i]) != !signbit(want)) {
      fail_msg("atan2(%.9g, %.9g) = %.9g, not %.9g", (double)y[i], (double)x[i], (double)out[i],
               want);
    }
  }
}

// Powers of f32 are the exact ones rounded once: what C's pow says in double precision, which is
// within a bit of them, up to one float beside it where that is between two of them.
static void check_power(float x, float y, float got) {
  const double want = pow(x, y), bound = 1.0001 * fabs((double)nextafterf((float)want, INFINITY) -
                                                       (double)(float)want);
  if (isnan(want) && isnan(got)) return;
  const float rounded = (float)want;
  const bool is_same = got == rounded && !signbit(got) == !signbit(rounded);
  const bool is_tie = fabs(want - got) < 0.51 * bound && fabs(want - rounded) > 0.49 * bound;
  if (!is_same && !is_tie) {
    fail_msg("%.9g to the power of %.9g = %.9g, not %.9g", (double)x, (double)y, (double)got, want);
  }
}

static void test_power(void **state) {
  (void)state;
  const float values[] = {0,         -0.0F,    1,           -1,         2,         -2,
                          3,         -3,       0.5F,        -0.5F,      1.5F,      INFINITY,
                          -INFINITY, NAN,      1e-45F,      -1e-45F,    1e38F,     -3e38F,
                          16777215,  -8388607, 8388609,     8388608.5F, 33,        -150,
                          1e-3F,     1.7F,     0.99999994F, 1.0000001F, -16777216, 0.33333334F};
  enum { N = sizeof(values) / sizeof(values[0]) };
  float x[N * N], y[N * N], out[N * N];
  for (int i = 0; i < N * N; ++i) {
    x[i] = values[i / N];
    y[i] = values[i % N];
  }
  binary(MP_OP_POWER, MP_DTYPE_F32, N * N, x, y, out);
  for (int i = 0; i < N * N; ++i) check_power(x[i], y[i], out[i]);
  for (uint32_t bits = 1; bits < 0x7f800000; bits += 100003 * N * N) {
    for (uint32_t i = 0; i < N * N; ++i) {
      const uint32_t at = bits + 100003 * i < 0x7f800000 ? bits + 100003 * i : 1;
      memcpy(&x[i], &at, sizeof(at));
      y[i] = ((float)(i % 61) - 30) * 0.0731F;
    }
    binary(MP_OP_POWER, MP_DTYPE_F32, N * N, x, y, out);
    for (int i = 0; i < N * N; ++i) check_power(x[i], y[i], out[i]);
  }
}

static void test_float_to_integer_saturates(void **state) {
  (void)state;
  const float x[] = {NAN, 3e9f, -3e9f, 1.9f, -1.9f, INFINITY};
  int32_t s32[6];
  unary(MP_OP_CONVERT, MP_DTYPE_F32, MP_DTYPE_S32, 6, x, s32);
  assert_memory_equal(s32, ((int32_t[]){0, INT32_MAX, INT32_MIN, 1, -1, INT32_MAX}), sizeof(s32));
  uint64_t u64[6];
  unary(MP_OP_CONVERT, MP_DTYPE_F32, MP_DTYPE_U64, 6, x, u64);
  assert_memory_equal(u64, ((uint64_t[]){0, 3000000000u, 0, 1, 0, UINT64_MAX}), sizeof(u64));
  uint8_t truth[6];
  unary(MP_OP_CONVERT, MP_DTYPE_F32, MP_DTYPE_BOOL, 6, x, truth);
  assert_memory_equal(truth, ((uint8_t[]){1, 1, 1, 1, 1, 1}), 6);
}

// bf16 and f8 are computed in f32 and rounded once; also in place and longer than a block.
static void test_narrow_floats(void **state) {
  (void)state;
  enum { N = 1000 };
  static uint16_t x[N], y[N], out[N];
  float wide[N];
  for (int i = 0; i < N; ++i) wide[i] = (float)(i + 1) / 8;
  mp_float_narrow(MP_DTYPE_BF16, N, wide, x);
  mp_float_narrow(MP_DTYPE_BF16, N, (float[N]){3}, y);
  for (int i = 0; i < N; ++i) y[i] = y[0];
  binary(MP_OP_DIVIDE, MP_DTYPE_BF16, N, x, y, out);
  for (int i = 0; i < N; ++i) {
    uint16_t want;
    float quotient = (float)mp_float_decode(MP_DTYPE_BF16, &x[i]) / 3;
    mp_float_narrow(MP_DTYPE_BF16, 1, &quotient, &want);
    assert_int_equal(out[i], want);
  }
  binary(MP_OP_DIVIDE, MP_DTYPE_BF16, N, x, y, x);
  assert_memory_equal(x, out, sizeof(out));
  const uint8_t f8[] = {0x38, 0x7e, 0x08};  // 1, 448, 2^-6
  uint8_t f8_out[3];
  binary(MP_OP_ADD, MP_DTYPE_F8E4M3FN, 3, f8, f8, f8_out);
  assert_memory_equal(f8_out, ((uint8_t[]){0x40, 0x7f, 0x10}), 3);
}

static void test_all_types_add_and_convert(void **state) {
  (void)state;
  for (int d = MP_DTYPE_BOOL; d < MP_DTYPE_COUNT; ++d) {
    mp_dtype_t dtype = (mp_dtype_t)d;
    if (dtype == MP_DTYPE_TF32 || dtype == MP_DTYPE_INDEX) continue;
    _Alignas(16) char one[4 * 16] = {0}, sum[4 * 16] = {0};
    float ones[4] = {1, 1, 1, 1}, back[4];
    unary(MP_OP_CONVERT, MP_DTYPE_F32, dtype, 4, ones, one);
    binary(MP_OP_ADD, dtype, 4, one, one, sum);
    if (mp_dtype_is_complex(dtype)) continue;
    unary(MP_OP_CONVERT, dtype, MP_DTYPE_F32, 4, sum, back);
    float want = dtype == MP_DTYPE_BOOL ? 1 : dtype == MP_DTYPE_S2 ? -2 : 2;
    for (int i = 0; i < 4; ++i) assert_true(back[i] == want);
  }
}

static void test_reduce_precision(void **state) {
  (void)state;
  const float x[] = {1.3f, 70000, 1e-6f, -INFINITY, NAN};
  float out[5];
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_REDUCE_PRECISION);
  bench_operand(&bench, MP_DTYPE_F32, 1, (int64_t[]){5});
  bench_result(&bench, MP_DTYPE_F32, 1, (int64_t[]){5});
  bench_int(&bench, MP_ATTR_EXPONENT_BITS, 5);
  bench_int(&bench, MP_ATTR_MANTISSA_BITS, 2);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){x}, (void *[]){out});
  assert_true(out[0] == 1.25f && isinf(out[1]) && out[2] == 0 && out[3] == -INFINITY);
  assert_true(isnan(out[4]));
  bench_end(&bench);
}

// ---- Complex ----

static void test_complex(void **state) {
  (void)state;
  const float x[] = {3, 4, -1, 0, 0, 0}, y[] = {1, -2, 0.5f, 0, 2, 0};
  float out[6], parts[3];
  binary(MP_OP_MULTIPLY, MP_DTYPE_C64, 3, x, y, out);
  assert_true(out[0] == 11 && out[1] == -2 && out[2] == -0.5f);
  binary(MP_OP_DIVIDE, MP_DTYPE_C64, 3, x, y, out);
  assert_true(out[0] == -1 && out[1] == 2 && out[2] == -2);
  binary(MP_OP_POWER, MP_DTYPE_C64, 3, x, y, out);
  assert_float_equal(out[2], 0, 1e-6);
  assert_float_equal(out[3], 1, 1e-6);  // (-1)^(1/2) = i
  assert_true(out[4] == 0 && out[5] == 0);
  unary(MP_OP_ABS, MP_DTYPE_C64, MP_DTYPE_F32, 3, x, parts);
  assert_true(parts[0] == 5 && parts[1] == 1 && parts[2] == 0);
  unary(MP_OP_SQRT, MP_DTYPE_C64, MP_DTYPE_C64, 3, x, out);
  assert_true(out[0] == 2 && out[1] == 1 && out[2] == 0 && out[3] == 1);
  run(MP_OP_COMPLEX, 2, (mp_dtype_t[]){MP_DTYPE_F64, MP_DTYPE_F64}, MP_DTYPE_C128, 1,
      (const void *[]){&(double){1}, &(double){2}}, out);
  double value[2];
  memcpy(value, out, sizeof(value));
  assert_true(value[0] == 1 && value[1] == 2);
}

// Quotients are C's own, to the bit and the sign of zero, whatever stands beside them.
static void complex_quotients(void **state) {
  (void)state;
  const float kinds[] = {0,       -0.0f,  1,        -2.5f,     3e38f, 1e-45f,
                         -1e-38f, 7e-20f, INFINITY, -INFINITY, NAN,   0.1f};
  enum { KINDS = sizeof(kinds) / sizeof(kinds[0]), COUNT = KINDS * KINDS * KINDS * KINDS };
  static float x[2 * COUNT], y[2 * COUNT], out[2 * COUNT];
  for (int finite = 0; finite < 2; ++finite) {
    int count = 0;
    for (int i = 0; i < COUNT; ++i) {
      const float a = kinds[i % KINDS], b = kinds[i / KINDS % KINDS];
      const float c = kinds[i / KINDS / KINDS % KINDS], d = kinds[i / KINDS / KINDS / KINDS];
      const bool is_plain = isfinite(a + b) && isfinite(c + d) && (c != 0 || d != 0);
      if (finite == 1 && !is_plain) continue;
      x[2 * count] = a, x[2 * count + 1] = b;
      y[2 * count] = c, y[2 * count + 1] = d;
      ++count;
    }
    binary(MP_OP_DIVIDE, MP_DTYPE_C64, count, x, y, out);
    for (int i = 0; i < count; ++i) {
      const double _Complex top = __builtin_complex((double)x[2 * i], (double)x[2 * i + 1]);
      const double _Complex by = __builtin_complex((double)y[2 * i], (double)y[2 * i + 1]);
      const double _Complex quotient = top / by;
      const float wanted[2] = {(float)creal(quotient), (float)cimag(quotient)};
      for (int p = 0; p < 2; ++p) {
        const float got = out[2 * i + p];
        bool is_same = got == wanted[p] && signbit(got) == signbit(wanted[p]);
#ifdef FP_FAST_FMA
        // There the compiler's own division rounds once less, and what should cancel leaves a rest.
        is_same = is_same || fabs((double)got - (double)wanted[p]) <= 1e-15 * cabs(quotient);
#endif
        if (isnan(wanted[p]) ? isnan(got) : is_same) continue;
        fail_msg("part %d of (%g, %g) / (%g, %g): %g, not %g", p, creal(top), cimag(top), creal(by),
                 cimag(by), (double)got, (double)wanted[p]);
      }
    }
  }
}

// ---- Compare, select, clamp ----

static void compare(uint32_t direction, uint32_t type, mp_dtype_t dtype, int64_t n, const void *x,
                    const void *y, uint8_t *out) {
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_COMPARE);
  bench_operand(&bench, dtype, 1, &n);
  bench_operand(&bench, dtype, 1, &n);
  bench_result(&bench, MP_DTYPE_BOOL, 1, &n);
  bench_enum(&bench, MP_ATTR_COMPARISON_DIRECTION, MP_ENUM_COMPARISON_DIRECTION, direction);
  bench_enum(&bench, MP_ATTR_COMPARE_TYPE, MP_ENUM_COMPARISON_TYPE, type);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){x, y}, (void *[]){out});
  bench_end(&bench);
}

static void test_compare(void **state) {
  (void)state;
  const float x[] = {-0.0f, NAN, -NAN, 1, -INFINITY}, y[] = {0.0f, INFINITY, -INFINITY, NAN, -1};
  uint8_t out[5];
  compare(MP_CMP_LT, MP_CMP_FLOAT, MP_DTYPE_F32, 5, x, y, out);
  assert_memory_equal(out, ((uint8_t[]){0, 0, 0, 0, 1}), 5);
  compare(MP_CMP_NE, MP_CMP_FLOAT, MP_DTYPE_F32, 5, x, y, out);
  assert_memory_equal(out, ((uint8_t[]){0, 1, 1, 1, 1}), 5);
  compare(MP_CMP_LT, MP_CMP_TOTALORDER, MP_DTYPE_F32, 5, x, y, out);
  assert_memory_equal(out, ((uint8_t[]){1, 0, 1, 1, 1}), 5);
  const uint8_t s4[] = {15, 1}, zero[] = {0, 0};
  compare(MP_CMP_LT, MP_CMP_SIGNED, MP_DTYPE_S4, 2, s4, zero, out);
  assert_memory_equal(out, ((uint8_t[]){1, 0}), 2);
  compare(MP_CMP_LT, MP_CMP_UNSIGNED, MP_DTYPE_U4, 2, s4, zero, out);
  assert_memory_equal(out, ((uint8_t[]){0, 0}), 2);
}

static void test_scalar_operands(void **state) {
  (void)state;
  enum { N = 3000 };
  static float x[N], y[N], out[N];
  for (int i = 0; i < N; ++i) {
    x[i] = (float)i;
    y[i] = -1;
  }
  x[5] = NAN;
  const int64_t n = N;
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CLAMP);
  bench_operand(&bench, MP_DTYPE_F32, 0, NULL);
  bench_operand(&bench, MP_DTYPE_F32, 1, &n);
  bench_operand(&bench, MP_DTYPE_F32, 1, &n);
  bench_result(&bench, MP_DTYPE_F32, 1, &n);
  bench_make(&bench);
  float low = 10;
  for (int i = 0; i < N; ++i) y[i] = 2000;
  bench_run(&bench, (const void *[]){&low, x, y}, (void *[]){out});
  for (int i = 0; i < N; ++i) {
    if (i != 5) assert_true(out[i] == (float)(i < 10 ? 10 : i > 2000 ? 2000 : i));
  }
  assert_true(isnan(out[5]));
  bench_end(&bench);

  bench_begin(&bench, MP_OP_SELECT);
  bench_operand(&bench, MP_DTYPE_BOOL, 0, NULL);
  bench_operand(&bench, MP_DTYPE_F32, 1, &n);
  bench_operand(&bench, MP_DTYPE_F32, 1, &n);
  bench_result(&bench, MP_DTYPE_F32, 1, &n);
  bench_make(&bench);
  for (uint8_t which = 0; which < 2; ++which) {
    bench_run(&bench, (const void *[]){&which, x, y}, (void *[]){out});
    assert_memory_equal(out, which != 0 ? x : y, sizeof(out));
  }
  bench_end(&bench);
}

// What kernels of other ops convert has the bits of `convert`, for all pairs of types.
static void test_arrays_are_converted_as_by_the_op(void **state) {
  (void)state;
  enum { N = 300 };  // more than a block
  const float numbers[] = {0, -0.75f, 1, 2.5f, -8, 7, 100, -1e3f, 3e10f, INFINITY, -INFINITY, NAN};
  float values[N];
  for (int i = 0; i < N; ++i) values[i] = numbers[i % 12] * (float)(1 + i / 12);
  for (int f = 1; f < MP_DTYPE_COUNT; ++f) {
    const mp_dtype_t from = (mp_dtype_t)f;
    if (!mp_dtype_is_storable(from)) continue;
    _Alignas(16) char in[N * 16], by_op[N * 16], by_array[N * 16];
    unary(MP_OP_CONVERT, MP_DTYPE_F32, from, N, values, in);
    for (int t = 1; t < MP_DTYPE_COUNT; ++t) {
      const mp_dtype_t to = (mp_dtype_t)t;
      mp_convert_t convert;
      if (!mp_dtype_is_storable(to)) continue;
      unary(MP_OP_CONVERT, from, to, N, in, by_op);
      assert_true(mp_convert_bind(from, to, &convert));
      mp_convert_run(&convert, N, in, by_array);
      assert_memory_equal(by_array, by_op, N * mp_dtype_size(to));
    }
  }
}

static void test_parts_cover_everything(void **state) {
  (void)state;
  enum { N = 300001 };
  int32_t *x = malloc(N * sizeof(*x)), *out = malloc(N * sizeof(*out));
  for (int i = 0; i < N; ++i) x[i] = i;
  unary(MP_OP_NEGATE, MP_DTYPE_S32, MP_DTYPE_S32, N, x, out);
  for (int i = 0; i < N; ++i) assert_int_equal(out[i], -i);
  free(x);
  free(out);
  assert_int_equal(mp_part_count(0, 10), 1);
  assert_int_equal(mp_part_count(99, 10), 9);
  assert_int_equal(mp_part_count(INT64_MAX, 1), 64);
  int64_t begin, end, at = 0;
  for (uint32_t p = 0; p < 64; ++p) {
    mp_part_range(INT64_MAX, 64, p, &begin, &end);
    assert_true(begin == at && end > begin);
    at = end;
  }
  assert_true(at == INT64_MAX);
}

static void test_types_without_a_kernel_are_refused(void **state) {
  (void)state;
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_SINE);
  bench_operand(&bench, MP_DTYPE_S32, 1, (int64_t[]){4});
  bench_result(&bench, MP_DTYPE_S32, 1, (int64_t[]){4});
  bench_make_op(&bench);
  assert_status(mp_kernel_create(bench.module->arena, bench.op, &bench.kernel), MP_UNIMPLEMENTED,
                "i32");
  bench_end(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_division_at_the_edges),
      cmocka_unit_test(test_shifts_by_the_width_and_more),
      cmocka_unit_test(test_integer_powers),
      cmocka_unit_test(test_counts_of_set_bits),
      cmocka_unit_test(test_four_bit_integers_wrap),
      cmocka_unit_test(test_minimum_maximum),
      cmocka_unit_test(test_signs_and_rounding),
      cmocka_unit_test(test_functions),
      cmocka_unit_test(test_functions_f64),
      cmocka_unit_test(test_functions_regardless_of_position),
      cmocka_unit_test(test_atan2),
      cmocka_unit_test(test_power),
      cmocka_unit_test(test_float_to_integer_saturates),
      cmocka_unit_test(test_narrow_floats),
      cmocka_unit_test(test_all_types_add_and_convert),
      cmocka_unit_test(test_reduce_precision),
      cmocka_unit_test(test_complex),
      cmocka_unit_test(complex_quotients),
      cmocka_unit_test(test_compare),
      cmocka_unit_test(test_scalar_operands),
      cmocka_unit_test(test_arrays_are_converted_as_by_the_op),
      cmocka_unit_test(test_parts_cover_everything),
      cmocka_unit_test(test_types_without_a_kernel_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
