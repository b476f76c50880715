// Units of sim/base: status, arena, strings, element types.

#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/base/str.h"
#include "sim/numeric/dtype.h"
#include "tests/unit/support/unit.h"

static void status_carries_code_message_and_context(void **state) {
  (void)state;
  mp_status_t status = mp_status_make(MP_NOT_FOUND, "no device %d", 7);
  status = mp_status_annotate(status, "looking up");
  assert_int_equal(mp_status_code(status), MP_NOT_FOUND);
  assert_string_equal(mp_status_message(status), "looking up: no device 7");
  mp_status_t again = mp_status_retain(status);
  mp_status_release(status);
  assert_string_equal(mp_status_message(again), "looking up: no device 7");
  mp_status_release(again);
  assert_null(mp_status_annotate(NULL, "nothing"));
}

// In builds with assertions an error keeps the line that made it, whatever is added to its message
// later.
static void messages_cannot_steer_terminals(void **state) {
  (void)state;
  mp_status_t status = mp_status_make(MP_NOT_FOUND, "%s", "a\033[31m\tb\n\xC2\x9B\x7F\xC3\xA9");
  assert_string_equal(mp_status_message(status), "a\\x1b[31m\tb\n\xC2\\x9b\\x7f\xC3\xA9");
  mp_status_release(status);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_put_visible(&text, MP_STR("a\n\0b"));
  assert_string_equal(mp_strbuf_text(&text), "a\\x0a\\x00b");
  mp_strbuf_deinit(&text);
}

static void status_knows_its_origin(void **state) {
  (void)state;
  int line = 0, origin = 0;
  assert_null(mp_status_origin(NULL, &line));
  assert_null(mp_status_origin(mp_status_out_of_memory(), &line));
  mp_status_t status = mp_status_make(MP_NOT_FOUND, "no device %d", 7);
  const int made = __LINE__ - 1;
  status = mp_status_annotate(status, "looking up");
  const char *file = mp_status_origin(status, &origin);
#ifdef MINIPOD_ASSERTS
  assert_non_null(file);
  assert_non_null(strstr(file, "unit/base/test_base.c"));
  assert_int_equal(origin, made);
#else
  (void)made;
  assert_null(file);
#endif
  assert_string_equal(mp_status_message(status), "looking up: no device 7");
  mp_status_release(status);
}

static void status_survives_a_failed_allocation(void **state) {
  (void)state;
  mp_alloc_fail_at(1, 1);
  mp_status_t status = mp_status_make(MP_INTERNAL, "lost");
  mp_alloc_fail_at(0, 0);
  assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
  mp_status_release(status);
  mp_status_release(status);  // static: releasing it twice is harmless
}

static void arena_zeroes_aligns_and_respects_its_limit(void **state) {
  (void)state;
  mp_arena_t *arena = NULL;
  assert_null(mp_arena_create(&arena));
  for (size_t size = 1; size < 10000; size *= 3) {
    unsigned char *bytes = mp_arena_alloc(arena, size);
    assert_non_null(bytes);
    assert_int_equal((uintptr_t)bytes % 16, 0);
    for (size_t i = 0; i < size; ++i) assert_int_equal(bytes[i], 0);
  }
  mp_arena_set_limit(arena, mp_arena_bytes(arena) + 64);
  assert_non_null(mp_arena_alloc(arena, 64));
  assert_null(mp_arena_alloc(arena, 1));
  assert_null(mp_arena_alloc_array(arena, SIZE_MAX, 16));
  mp_arena_set_limit(arena, 0);
  for (int round = 0; round < 3; ++round) {
    mp_arena_reset(arena);
    assert_int_equal(mp_arena_bytes(arena), 0);
    unsigned char *bytes = mp_arena_alloc(arena, 5000);
    for (int i = 0; i < 5000; ++i) assert_int_equal(bytes[i], 0);
    memset(bytes, 0xff, 5000);
  }
  mp_arena_release(arena);
}

static void strings_are_cut_and_trimmed(void **state) {
  (void)state;
  mp_str_t text = MP_STR(" a : b\t:\r");
  assert_true(mp_str_is(mp_str_trim(mp_str_cut(&text, ':')), "a"));
  assert_true(mp_str_is(mp_str_cut(&text, ':'), " b\t"));
  assert_true(mp_str_is(text, "\r"));
  assert_int_equal(mp_str_trim(text).size, 0);
  assert_true(mp_str_is(mp_str_cut(&text, ':'), "\r"));  // all of it
  assert_int_equal(text.size, 0);
  assert_int_equal(mp_str_cut(&text, ':').size, 0);
  assert_int_equal(mp_str_trim((mp_str_t){NULL, 0}).size, 0);
  assert_true(mp_str_compare(MP_STR("ab"), MP_STR("b")) < 0);
  assert_true(mp_str_compare(MP_STR("ab"), MP_STR("a")) > 0);
  assert_true(mp_str_compare((mp_str_t){NULL, 0}, MP_STR("a")) < 0);
  assert_int_equal(mp_str_compare(MP_STR("ab"), MP_STR("ab")), 0);
}

static void strings_suggest_and_parse(void **state) {
  (void)state;
  static const char *const keys[] = {"hosts", "chips", "memory"};
  assert_string_equal(mp_str_nearest(MP_STR("host"), keys, 3), "hosts");
  assert_null(mp_str_nearest(MP_STR("zzzzzz"), keys, 3));
  unsigned long long bytes = 0;
  assert_true(mp_str_parse_bytes(MP_STR("64MiB"), &bytes));
  assert_int_equal(bytes, 64 << 20);
  assert_true(mp_str_parse_bytes(MP_STR("1.5 GiB"), &bytes));
  assert_int_equal(bytes, 3ull << 29);
  assert_false(mp_str_parse_bytes(MP_STR("64 parsecs"), &bytes));
  long long number = 0;
  assert_true(mp_str_parse_i64(MP_STR("-12"), &number));
  assert_int_equal(number, -12);
  assert_false(mp_str_parse_i64(MP_STR("12x"), &number));
  assert_false(mp_str_parse_i64(MP_STR("99999999999999999999"), &number));
}

// printf counts in int; a text that is longer must not lose its end or be read without one.
static void long_strings_print_as_far_as_printf_counts(void **state) {
  (void)state;
  static const size_t sizes[] = {((size_t)1 << 32) + 1, (size_t)1 << 31, SIZE_MAX};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    assert_int_equal(mp_str_precision(sizes[i]), INT_MAX);
    char text[16];
    const mp_str_t claims_to_be_long = {"abc", sizes[i]};
    snprintf(text, sizeof(text), "<%.*s>", MP_STR_ARG(claims_to_be_long));
    assert_string_equal(text, "<abc>");
  }
  assert_int_equal(mp_str_precision(INT_MAX), INT_MAX);
  assert_int_equal(mp_str_precision(3), 3);
  // A width beyond INT_MAX; volatile, because compilers warn of what they see.
  const char *volatile more_than_printf_counts = "%2147483648d";
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, more_than_printf_counts, 1);
  assert_status(mp_strbuf_status(&text), MP_RESOURCE_EXHAUSTED, "memory");
  mp_strbuf_deinit(&text);
}

static void doubles_read_back_in_any_locale(void **state) {
  (void)state;
  static const double values[] = {0, 1, -0.1, 1e-6, 1.0 / 3, 5e-324, 1.7976931348623157e308, 45e9};
  setlocale(LC_NUMERIC, "de_DE.UTF-8");  // where it is installed
  for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i) {
    mp_strbuf_t text;
    mp_strbuf_init(&text);
    mp_strbuf_put_double(&text, values[i]);
    double again = 7;
    assert_int_equal(mp_str_scan_double(mp_str(mp_strbuf_text(&text)), &again), text.size);
    assert_true(again == values[i]);
    assert_null(memchr(text.data, ',', text.size));
    mp_strbuf_deinit(&text);
  }
  setlocale(LC_NUMERIC, "C");
  double value = 0;
  assert_int_equal(mp_str_scan_double(MP_STR("1.5e3us"), &value), 5);
  assert_true(value == 1500);
  assert_int_equal(mp_str_scan_double(MP_STR("2e"), &value), 1);
  assert_int_equal(mp_str_scan_double(MP_STR("0x10"), &value), 1);
  static const char *const none[] = {"", "-", ".5", "inf", "nan", "e5"};
  for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); ++i) {
    assert_int_equal(mp_str_scan_double(mp_str(none[i]), &value), 0);
  }
}

static void dtypes_round_trip(void **state) {
  (void)state;
  for (int d = 1; d < MP_DTYPE_COUNT; ++d) {
    mp_dtype_t dtype = (mp_dtype_t)d;
    assert_int_equal(mp_dtype_from_name(mp_str(mp_dtype_name(dtype))), dtype);
    for (int n = 0; n < MP_NUMBERS_COUNT; ++n) {
      const mp_dtype_numbers_t numbers = (mp_dtype_numbers_t)n;
      const int number = mp_dtype_number(dtype, numbers);
      if (number == mp_dtype_number(MP_DTYPE_INVALID, numbers)) continue;
      assert_int_equal(mp_dtype_from_number(numbers, (uint64_t)number), dtype);
    }
  }
  for (int n = 0; n < MP_NUMBERS_COUNT; ++n) {
    const mp_dtype_numbers_t numbers = (mp_dtype_numbers_t)n;
    assert_int_equal(mp_dtype_from_number(numbers, 9999), MP_DTYPE_INVALID);
    assert_int_equal(mp_dtype_from_number(numbers, UINT64_MAX), MP_DTYPE_INVALID);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(status_carries_code_message_and_context),
      cmocka_unit_test(messages_cannot_steer_terminals),
      cmocka_unit_test(status_knows_its_origin),
      cmocka_unit_test(status_survives_a_failed_allocation),
      cmocka_unit_test(arena_zeroes_aligns_and_respects_its_limit),
      cmocka_unit_test(strings_are_cut_and_trimmed),
      cmocka_unit_test(strings_suggest_and_parse),
      cmocka_unit_test(long_strings_print_as_far_as_printf_counts),
      cmocka_unit_test(doubles_read_back_in_any_locale),
      cmocka_unit_test(dtypes_round_trip),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
