// rng_bit_generator against numbers recorded from XLA's CPU backend, and against itself in parts.
#include "tests/unit/support/kernel_test.h"

#define DIMS(...) ((int64_t[]){__VA_ARGS__})

static void bits(uint32_t algorithm, uint32_t words, const uint64_t *state, mp_dtype_t dtype,
                 uint32_t rank, const int64_t *dims, uint64_t *new_state, void *out) {
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_RNG_BIT_GENERATOR);
  bench_operand(&bench, MP_DTYPE_U64, 1, DIMS(words));
  bench_result(&bench, MP_DTYPE_U64, 1, DIMS(words));
  bench_result(&bench, dtype, rank, dims);
  bench_enum(&bench, MP_ATTR_RNG_ALGORITHM, MP_ENUM_RNG_ALGORITHM, algorithm);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){state}, (void *[]){new_state, out});
  bench_end(&bench);
}

static const uint64_t g_state[2] = {0x123456789abcdef0, 0xfffffffffffffffe};

static void threefry_like_xla(void **unused) {
  (void)unused;
  uint64_t after[2];
  uint32_t out[12];
  bits(MP_RNG_THREE_FRY, 2, g_state, MP_DTYPE_U32, 1, DIMS(5), after, out);
  assert_memory_equal(
      out, ((uint32_t[]){0x3c3b507a, 0x7093e72c, 0xa4317ba7, 0x21f1aaca, 0x5eff803d}), 20);
  assert_true(after[0] == g_state[0] && after[1] == 1);
  uint32_t blocks[6][2] = {{0x3c3b507a, 0x7093e72c}, {0xa4317ba7, 0x21f1aaca},
                           {0x5eff803d, 0x4ce380f9}, {0x394bdefc, 0x64dfd0ae},
                           {0x523f5786, 0x4028dd8d}, {0x553d0168, 0xe364850a}};
  // The first even dimension holds the pairs.
  bits(MP_RNG_THREE_FRY, 2, g_state, MP_DTYPE_U32, 2, DIMS(4, 3), after, out);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 3; ++j) assert_int_equal(out[i * 3 + j], blocks[i / 2 * 3 + j][i % 2]);
  }
  bits(MP_RNG_THREE_FRY, 2, g_state, MP_DTYPE_U32, 2, DIMS(3, 4), after, out);
  for (int i = 0; i < 12; ++i) assert_int_equal(out[i], blocks[i / 2][i % 2]);
  // None is even: the longest, the first of them.
  bits(MP_RNG_THREE_FRY, 2, g_state, MP_DTYPE_U32, 2, DIMS(3, 3), after, out);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) assert_int_equal(out[i * 3 + j], blocks[i / 2 * 3 + j][i % 2]);
  }
  assert_true(after[1] == 4);
}

static void threefry_of_other_widths(void **unused) {
  (void)unused;
  uint64_t after[2], wide[3];
  bits(MP_RNG_THREE_FRY, 2, g_state, MP_DTYPE_U64, 1, DIMS(3), after, wide);
  assert_true(wide[0] == 0x7093e72c3c3b507a && wide[2] == 0x4ce380f95eff803d && after[1] == 1);
  uint8_t narrow[5];
  bits(MP_RNG_THREE_FRY, 2, g_state, MP_DTYPE_U8, 1, DIMS(5), after, narrow);
  assert_memory_equal(narrow, ((uint8_t[]){0x7a, 0x2c, 0xa7, 0xca, 0x3d}), 5);
  uint32_t scalar = 0;
  bits(MP_RNG_THREE_FRY, 2, g_state, MP_DTYPE_U32, 0, NULL, after, &scalar);
  assert_int_equal(scalar, 0x3c3b507a);
  assert_true(after[1] == UINT64_MAX);
}

static void philox_like_xla(void **unused) {
  (void)unused;
  static const uint64_t state[2] = {5, 7};
  uint64_t after[2];
  uint32_t out[9];
  bits(MP_RNG_PHILOX, 2, state, MP_DTYPE_U32, 1, DIMS(9), after, out);
  assert_memory_equal(out,
                      ((uint32_t[]){0x74a851f1, 0xc4a35ba8, 0x82800aa7, 0xaf5f7739, 0xf093503c,
                                    0xcdb47eb1, 0x928cbbd9, 0x67547b88, 0xc7afef0}),
                      36);
  assert_true(after[0] == 5 && after[1] == 10);
  uint16_t narrow[5];
  bits(MP_RNG_DEFAULT, 2, state, MP_DTYPE_U16, 1, DIMS(5), after, narrow);
  assert_memory_equal(narrow, ((uint16_t[]){0x51f1, 0x5ba8, 0x0aa7, 0x7739, 0x503c}), 10);
  uint64_t wide[3];
  bits(MP_RNG_PHILOX, 2, state, MP_DTYPE_U64, 1, DIMS(3), after, wide);
  assert_memory_equal(wide, out, 24);
  assert_true(after[1] == 9);
}

// A 128-bit counter carries; parts continue where the one before ended.
static void philox_counts_on(void **unused) {
  (void)unused;
  enum { N = 300000, HEAD = 1024 };
  static const uint64_t state[3] = {99, UINT64_MAX - 10, 4};
  uint64_t after[3];
  uint32_t *all = malloc(4 * N), head[HEAD], rest[8];
  bits(MP_RNG_PHILOX, 3, state, MP_DTYPE_U32, 1, DIMS(N), after, all);
  assert_true(after[0] == 99 && after[1] == N / 4 - 11 && after[2] == 5);
  bits(MP_RNG_PHILOX, 3, state, MP_DTYPE_U32, 1, DIMS(HEAD), after, head);
  assert_memory_equal(all, head, sizeof(head));
  bits(MP_RNG_PHILOX, 3, after, MP_DTYPE_U32, 1, DIMS(8), after, rest);
  assert_memory_equal(all + HEAD, rest, sizeof(rest));
  free(all);
}

static void rng_stays_in_range(void **unused) {
  (void)unused;
  enum { N = 100000 };
  float low = -2, high = 3, *out = malloc(4 * N);
  for (uint32_t kind = MP_RNG_UNIFORM; kind <= MP_RNG_NORMAL; ++kind) {
    kernel_bench_t bench;
    bench_begin(&bench, MP_OP_RNG);
    bench_operand(&bench, MP_DTYPE_F32, 0, NULL);
    bench_operand(&bench, MP_DTYPE_F32, 0, NULL);
    bench_operand(&bench, MP_DTYPE_S64, 1, DIMS(1));
    bench_result(&bench, MP_DTYPE_F32, 1, DIMS(N));
    bench_enum(&bench, MP_ATTR_RNG_DISTRIBUTION, MP_ENUM_RNG_DISTRIBUTION, kind);
    bench_make(&bench);
    bench_run(&bench, (const void *[]){&low, &high, NULL}, (void *[]){out});
    double sum = 0, squares = 0;
    for (int i = 0; i < N; ++i) {
      if (kind == MP_RNG_UNIFORM) assert_true(out[i] >= low && out[i] < high);
      sum += out[i];
      squares += (double)out[i] * out[i];
    }
    double mean = sum / N, variance = squares / N - mean * mean;
    double wanted_mean = kind == MP_RNG_UNIFORM ? 0.5 : -2;
    double wanted_variance = kind == MP_RNG_UNIFORM ? 25.0 / 12 : 9;
    assert_true(mean > wanted_mean - 0.05 && mean < wanted_mean + 0.05);
    assert_true(variance > wanted_variance * 0.97 && variance < wanted_variance * 1.03);
    bench_end(&bench);
  }
  free(out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threefry_like_xla),  cmocka_unit_test(threefry_of_other_widths),
      cmocka_unit_test(philox_like_xla),    cmocka_unit_test(philox_counts_on),
      cmocka_unit_test(rng_stays_in_range),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
