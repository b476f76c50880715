// Arrays that several devices are to hold: which these are, and where two of them differ.
#include "sim/runtime/replicas/replicas.h"

#include <string.h>

#include "tests/unit/support/unit.h"

enum { DEVICES = 4 };

static const uint32_t k_ids[DEVICES] = {10, 11, 12, 13};
static const uint32_t k_first[DEVICES] = {0, 0, 2, 2};
static const mp_replicas_t k_replicas = {
    .num_devices = DEVICES, .num_partitions = DEVICES, .ids = k_ids};

// An array of two dimensions, of which each device has a part: [2 * DEVICES] starts and sizes.
static mp_replicated_t array_of(mp_dtype_t dtype, const int64_t *dims, const int64_t *starts,
                                const int64_t *sizes) {
  return (mp_replicated_t){
      .dtype = dtype, .rank = 2, .dims = dims, .starts = starts, .sizes = sizes, .first = k_first};
}

static void expect_text(const mp_replicated_t *array, uint32_t d, const void *a, const void *b,
                        const char *expected) {
  const mp_replicas_difference_t difference = mp_replicas_compare(&k_replicas, array, d, a, b);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  if (difference.num_different != 0) {
    mp_replicas_print(&k_replicas, array, d, &difference, a, b, &text);
  }
  assert_string_equal(mp_strbuf_text(&text), expected);
  mp_strbuf_deinit(&text);
  const bool is_equal =
      mp_replicas_digest(&k_replicas, array, d, a) == mp_replicas_digest(&k_replicas, array, d, b);
  assert_int_equal(is_equal, difference.num_different == 0);
}

// Of [3, 4], cut into two parts of [2, 4] and [1, 4]: what lies beyond the second one is garbage.
static void test_garbage_beyond_a_part_is_not_compared(void **state) {
  (void)state;
  static const int64_t dims[2] = {2, 4};
  static const int64_t starts[2 * DEVICES] = {0, 0, 0, 0, 2, 0, 2, 0};
  static const int64_t sizes[2 * DEVICES] = {2, 4, 2, 4, 1, 4, 1, 4};
  const mp_replicated_t array = array_of(MP_DTYPE_S32, dims, starts, sizes);
  const int32_t a[8] = {0, 1, 2, 3, 4, 5, 6, 7}, b[8] = {0, 1, 2, 3, 4, -5, 6, -7};
  expect_text(&array, 3, a, b, "");
  expect_text(&array, 1, a, b, "2 of 8 elements (first at [1, 1]: 5 instead of -5)");
  const int32_t c[8] = {0, 1, 9, 3};
  expect_text(&array, 3, a, c, "1 of 4 elements (first at [2, 2]: 2 instead of 9)");
}

// Of [2, 3], cut in the last dimension into parts of two columns and of one.
static void test_rows_of_a_part_lie_apart(void **state) {
  (void)state;
  static const int64_t dims[2] = {2, 2};
  static const int64_t starts[2 * DEVICES] = {0, 0, 0, 0, 0, 2, 0, 2};
  static const int64_t sizes[2 * DEVICES] = {2, 2, 2, 2, 2, 1, 2, 1};
  const mp_replicated_t array = array_of(MP_DTYPE_U8, dims, starts, sizes);
  const uint8_t a[4] = {1, 2, 3, 4}, b[4] = {1, 9, 3, 9}, c[4] = {1, 9, 200, 9};
  expect_text(&array, 3, a, b, "");
  expect_text(&array, 3, a, c, "1 of 2 elements (first at [1, 2]: 3 instead of 200)");
  // The same, where the first dimension is the program's second one.
  static const uint32_t order[2] = {1, 0};
  mp_replicated_t turned = array;
  turned.order = order;
  expect_text(&turned, 3, a, c, "1 of 2 elements (first at [2, 1]: 3 instead of 200)");
}

static void test_bits_count(void **state) {
  (void)state;
  mp_replicated_t array = {.dtype = MP_DTYPE_F32, .first = k_first};
  const float zero = 0.0F, minus_zero = -0.0F, tenth = 0.1F;
  expect_text(&array, 1, &zero, &minus_zero, "1 of 1 elements (first at []: 0 instead of -0)");
  expect_text(&array, 1, &tenth, &zero, "1 of 1 elements (first at []: 0.1 instead of 0)");
  const uint32_t nan = 0x7fc00000, other_nan = 0xffc00001, infinity = 0xff800000;
  expect_text(&array, 1, &nan, &nan, "");
  expect_text(&array, 1, &other_nan, &infinity,
              "1 of 1 elements (first at []: nan (0xffc00001) instead of -inf)");
  const float complex_a[2] = {1, 2.5F}, complex_b[2] = {1, 2};
  array.dtype = MP_DTYPE_C64;
  expect_text(&array, 1, complex_a, complex_b,
              "1 of 1 elements (first at []: (1, 2.5) instead of (1, 2))");
  const uint8_t yes = 1, no = 0;
  array.dtype = MP_DTYPE_BOOL;
  expect_text(&array, 1, &yes, &no, "1 of 1 elements (first at []: true instead of false)");
  const uint8_t minus_one = 15;
  array.dtype = MP_DTYPE_S4;
  expect_text(&array, 1, &minus_one, &yes, "1 of 1 elements (first at []: -1 instead of 1)");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_garbage_beyond_a_part_is_not_compared),
      cmocka_unit_test(test_rows_of_a_part_lie_apart),
      cmocka_unit_test(test_bits_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
