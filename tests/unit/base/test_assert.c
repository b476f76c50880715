// Units of sim/base/assert: in builds with assertions a broken one is reported and ends the
// process; in other builds nothing is evaluated.
#include "sim/base/assert.h"

#include "tests/unit/support/aborts.h"

static int g_num_evaluated;

static bool count_and_return(bool value) {
  g_num_evaluated += 1;
  return value;
}

static void assertions_are_evaluated_where_they_are_on(void **state) {
  (void)state;
  g_num_evaluated = 0;
  MP_ASSERT(count_and_return(true));
  MP_ASSERT_MSG(count_and_return(true), "%d", 1);
#ifdef MINIPOD_ASSERTS
  assert_int_equal(g_num_evaluated, 2);
#else
  MP_ASSERT(count_and_return(false));
  MP_ASSERT_MSG(count_and_return(false), "%d", 1);
  MP_ASSERT_NOT_REACHED();
  assert_int_equal(g_num_evaluated, 0);
#endif
}

static void break_assertion(void *context) {
  MP_ASSERT(*(const int *)context == 2);
}

static void break_assertion_with_words(void *context) {
  const int number = *(const int *)context;
  MP_ASSERT_MSG(number == 2, "%d apples", number);
}

static void come_where_nobody_comes(void *context) {
  switch (*(const int *)context) {
    case 2:
      break;
    default:
      MP_ASSERT_NOT_REACHED();
  }
}

static void say_more_than_fits(void *context) {
  (void)context;
  char words[4096];
  memset(words, 'x', sizeof(words) - 1);
  words[sizeof(words) - 1] = '\0';
  MP_ASSERT_MSG(false, "%s", words);
}

static void broken_assertions_say_where_and_what(void **state) {
  (void)state;
  int three = 3;
  expect_abort_with(break_assertion, &three, "test_assert.c:");
  expect_abort_with(break_assertion, &three,
                    ": break_assertion: MP_ASSERT(*(const int *)context == 2) is broken\n");
  expect_abort_with(break_assertion_with_words, &three,
                    "MP_ASSERT(number == 2) is broken: 3 apples\n");
  expect_abort_with(come_where_nobody_comes, &three, "this place is never reached");
  expect_abort_with(say_more_than_fits, NULL, "xxxx\n");
  int two = 2;
  expect_no_abort(break_assertion, &two);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(assertions_are_evaluated_where_they_are_on),
      cmocka_unit_test(broken_assertions_say_where_and_what),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
