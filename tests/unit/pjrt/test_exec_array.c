// Arrays of `minipod exec`: NumPy's files of every type, parts, random elements, differences.
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "pjrt/command/exec_array.h"
#include "pjrt/command/exec_part.h"
#include "pjrt/command/exec_values.h"
#include "tests/unit/support/fixtures.h"

static char g_path[64];

static mp_exec_array_t random_array(mp_dtype_t dtype, int64_t rows, int64_t columns) {
  mp_exec_array_t array = {
      .dtype = dtype, .rank = 2, .dims = {rows, columns}, .count = rows * columns};
  assert_ok(mp_exec_array_allocate(&array));
  for (int64_t i = 0; i < array.count; ++i) {
    mp_exec_values_random(1, 2, i, dtype, array.data + (size_t)i * mp_dtype_size(dtype));
  }
  return array;
}

static void test_every_type_comes_back(void **state) {
  (void)state;
  for (int i = 0; i < MP_DTYPE_COUNT; ++i) {
    const mp_dtype_t dtype = (mp_dtype_t)i;
    if (!mp_dtype_is_storable(dtype)) continue;
    mp_exec_array_t array = random_array(dtype, 3, 5), again = array;
    again.data = NULL;
    assert_ok(mp_exec_array_write(g_path, &array));
    assert_ok(mp_exec_array_read(g_path, "argument 0", &again));
    assert_memory_equal(again.data, array.data, 15 * mp_dtype_size(dtype));
    assert_true(mp_exec_values_compare(&array, &again).largest == 0);
    mp_exec_array_deinit(&array);
    mp_exec_array_deinit(&again);
  }
}

// Any byte of a file may be any other one: it is read or refused.
static void test_changed_bytes(void **state) {
  (void)state;
  mp_exec_array_t array = random_array(MP_DTYPE_F32, 2, 2);
  assert_ok(mp_exec_array_write(g_path, &array));
  char bytes[256];
  FILE *file = fopen(g_path, "rb");
  assert_non_null(file);
  const size_t size = fread(bytes, 1, sizeof(bytes), file);
  fclose(file);
  assert_int_equal(size, 144);
  for (size_t at = 0; at < 128; ++at) {
    for (int with = 0; with < 256; with += 15) {
      char changed[256];
      memcpy(changed, bytes, size);
      changed[at] = (char)with;
      file = fopen(g_path, "wb");
      assert_non_null(file);
      fwrite(changed, 1, at % 2 == 0 ? size : at, file);
      fclose(file);
      mp_exec_array_t again = array;
      again.data = NULL;
      mp_status_ignore(mp_exec_array_read(g_path, "argument 0", &again));
      mp_exec_array_deinit(&again);
    }
  }
  mp_exec_array_deinit(&array);
}

static void test_parts_make_the_whole(void **state) {
  (void)state;
  mp_exec_array_t whole = random_array(MP_DTYPE_S64, 4, 6), again = whole;
  assert_ok(mp_exec_array_allocate(&again));
  for (int64_t p = 0; p < 4; ++p) {  // 2x2 parts of 2x3
    const mp_exec_part_t part = {
        .rank = 2, .dims = {2, 3}, .steps = {6, 1}, .begin = p / 2 * 12 + p % 2 * 3, .count = 6};
    int64_t taken[6], drawn[6];
    mp_exec_part_take(&part, &whole, (char *)taken);
    mp_exec_part_draw(&part, MP_DTYPE_S64, 1, 2, (char *)drawn);
    assert_memory_equal(taken, drawn, sizeof(taken));
    mp_exec_part_give(&part, (const char *)taken, &again);
  }
  assert_memory_equal(again.data, whole.data, 24 * sizeof(int64_t));
  mp_exec_array_deinit(&whole);
  mp_exec_array_deinit(&again);
}

static double difference(mp_dtype_t dtype, const void *a, const void *b) {
  const mp_exec_array_t x = {.dtype = dtype, .count = 1, .data = (char *)a};
  const mp_exec_array_t y = {.dtype = dtype, .count = 1, .data = (char *)b};
  return mp_exec_values_compare(&x, &y).largest;
}

static void test_differences(void **state) {
  (void)state;
  const double one = 1, nan = NAN, inf = INFINITY;
  assert_true(difference(MP_DTYPE_F64, &nan, &nan) == 0);
  assert_true(difference(MP_DTYPE_F64, &inf, &inf) == 0);
  assert_true(isinf(difference(MP_DTYPE_F64, &nan, &one)));
  assert_true(isinf(difference(MP_DTYPE_F64, &one, &inf)));
  const int64_t large = INT64_MAX, less = INT64_MAX - 1, least = INT64_MIN;
  assert_true(difference(MP_DTYPE_S64, &large, &less) == 1);
  assert_true(difference(MP_DTYPE_U64, &less, &large) == 1);
  assert_true(difference(MP_DTYPE_S64, &least, &large) == 0x1p64);
  const char minus_one = 15, seven = 7;
  assert_true(difference(MP_DTYPE_S4, &minus_one, &seven) == 8);
}

int main(void) {
  snprintf(g_path, sizeof(g_path), "/tmp/test_exec_array.%d.npy", (int)getpid());
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_type_comes_back),
      cmocka_unit_test(test_changed_bytes),
      cmocka_unit_test(test_parts_make_the_whole),
      cmocka_unit_test(test_differences),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  unlink(g_path);
  return failed;
}
