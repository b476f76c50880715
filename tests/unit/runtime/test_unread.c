// Errors that the script never read: deliveries are counted.

#include "sim/runtime/devices/unread.h"

#include "tests/unit/support/unit.h"

static void expect_taken(const char *wanted) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_unread_take(&text);
  assert_string_equal(mp_strbuf_text(&text), wanted);
  mp_strbuf_deinit(&text);
}

static void errors_only_in_ends_of_launches_are_unread(void **state) {
  (void)state;
  mp_status_t error = mp_status_make(MP_UNAVAILABLE, "device 2 is dead");
  mp_unread_expect_ends(true);
  for (int device = 0; device < 3; ++device) {
    mp_unread_add(error);
    mp_unread_deliver(error);
  }
  expect_taken("UNAVAILABLE: device 2 is dead\n");
  expect_taken("");
  mp_status_release(error);
}

static void one_delivery_more_reads_it(void **state) {
  (void)state;
  mp_status_t error = mp_status_make(MP_UNAVAILABLE, "device 2 is dead");
  mp_unread_expect_ends(true);
  mp_unread_add(error);
  mp_unread_deliver(error);
  mp_unread_deliver(error);
  expect_taken("");
  mp_unread_expect_ends(false);
  mp_unread_add(error);
  mp_unread_deliver(error);
  expect_taken("");
  mp_status_release(error);
}

static void an_error_that_passes_it_on_reads_it_too(void **state) {
  (void)state;
  mp_status_t cause = mp_status_make(MP_UNAVAILABLE, "device 2 is dead");
  mp_unread_expect_ends(false);
  mp_unread_add(cause);
  mp_status_t effect = mp_status_annotate(mp_status_retain(cause), "argument 0 of jit_f");
  mp_unread_add(effect);
  mp_unread_deliver(effect);
  expect_taken("");
  mp_unread_add(cause);
  mp_unread_add(effect);
  mp_unread_deliver(cause);
  expect_taken("UNAVAILABLE: argument 0 of jit_f: device 2 is dead\n");
  mp_status_release(effect);
  mp_status_release(cause);
}

static void the_first_ones_are_kept_and_the_end_of_a_client_is_none(void **state) {
  (void)state;
  mp_unread_expect_ends(false);
  mp_status_t closed = mp_status_make(MP_CANCELLED, "the client was closed");
  mp_unread_add(closed);
  mp_status_release(closed);
  for (int i = 0; i < 6; ++i) {
    mp_status_t error = mp_status_make(MP_INTERNAL, "number %d", i);
    mp_unread_add(error);
    mp_status_release(error);
  }
  expect_taken("INTERNAL: number 0\nINTERNAL: number 1\nINTERNAL: number 2\nINTERNAL: number 3\n");
}

static void the_first_error_is_whole_and_others_are_a_line(void **state) {
  (void)state;
  mp_unread_expect_ends(false);
  static const char *const messages[] = {"read\n  a", "first\n  b\n  c", "second\n  d", "third"};
  for (int i = 0; i < 4; ++i) {
    mp_status_t error = mp_status_make(MP_INTERNAL, "%s", messages[i]);
    mp_unread_add(error);
    if (i == 0) mp_unread_deliver(error);
    mp_status_release(error);
  }
  expect_taken("INTERNAL: first\n  b\n  c\nINTERNAL: second\nINTERNAL: third\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(errors_only_in_ends_of_launches_are_unread),
      cmocka_unit_test(one_delivery_more_reads_it),
      cmocka_unit_test(an_error_that_passes_it_on_reads_it_too),
      cmocka_unit_test(the_first_error_is_whole_and_others_are_a_line),
      cmocka_unit_test(the_first_ones_are_kept_and_the_end_of_a_client_is_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
