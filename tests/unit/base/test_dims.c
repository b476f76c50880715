// Units of sim/base/dims: products, and what does not fit.

#include "sim/numeric/dims.h"

#include "tests/unit/support/unit.h"

static void products(void **state) {
  (void)state;
  static const int64_t dims[] = {2, 3, 5, 7};
  int64_t count = -1;
  assert_int_equal(mp_dims_product(dims, 0, 4), 210);
  assert_int_equal(mp_dims_product(dims, 1, 3), 15);
  assert_int_equal(mp_dims_product(dims, 4, 4), 1);
  assert_int_equal(mp_dims_product(NULL, 0, 0), 1);
  assert_true(mp_dims_count(dims, 2, 4, &count));
  assert_int_equal(count, 35);
}

static void what_does_not_fit(void **state) {
  (void)state;
  const int64_t half = INT64_C(1) << 32;
  const int64_t dims[] = {half, half / 4, 2, 0, half, half, -1, 0};
  int64_t count = -1;
  assert_true(mp_dims_count(dims, 0, 2, &count));
  assert_true(count == INT64_C(1) << 62);
  assert_false(mp_dims_count(dims, 0, 3, &count));
  assert_true(count == INT64_C(1) << 62);  // untouched
  assert_true(mp_dims_product(dims, 0, 3) == INT64_MAX);
  // One 0 makes it empty, before or behind what would not fit.
  assert_true(mp_dims_count(dims, 0, 6, &count));
  assert_int_equal(count, 0);
  assert_int_equal(mp_dims_product(dims, 3, 6), 0);
  assert_true(mp_dims_count(dims, 6, 8, &count));
  assert_false(mp_dims_count(dims, 5, 7, &count));
  assert_true(mp_dims_product(dims, 6, 7) == INT64_MAX);
}

static void strides(void **state) {
  (void)state;
  assert_int_equal(mp_dims_next_stride(4, 3), 12);
  assert_int_equal(mp_dims_next_stride(4, 0), 0);
  assert_int_equal(mp_dims_next_stride(4, INT64_C(1) << 61), 0);
  assert_int_equal(mp_dims_next_stride(0, INT64_MAX), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products),
      cmocka_unit_test(what_does_not_fit),
      cmocka_unit_test(strides),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
