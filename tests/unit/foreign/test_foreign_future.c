// Futures: the result arrives once, whether the setter or the taker comes first.
#include <pthread.h>

#include "tests/unit/support/foreign_test.h"

enum { NUM_ROUNDS = 3000 };

static void set_before_taking_gives_the_result_at_once(void **state) {
  (void)state;
  XLA_FFI_Future *future = NULL;
  foreign_end_t end = {0};
  mp_status_t status = NULL;
  assert_ok(mp_foreign_future_create(&future));
  assert_true(mp_foreign_future_set(future, mp_status_make(MP_ABORTED, "first")));
  assert_false(mp_foreign_future_set(future, mp_status_make(MP_ABORTED, "second")));
  assert_true(mp_foreign_future_take(future, foreign_note_end, &end, &status));
  assert_status(status, MP_ABORTED, "first");
  assert_int_equal(end.num_ends, 0);
}

static void taking_before_set_calls_back(void **state) {
  (void)state;
  XLA_FFI_Future *future = NULL;
  foreign_end_t end = {0};
  mp_status_t status = NULL;
  assert_ok(mp_foreign_future_create(&future));
  assert_false(mp_foreign_future_take(future, foreign_note_end, &end, &status));
  assert_int_equal(end.num_ends, 0);
  assert_true(mp_foreign_future_set(future, NULL));
  assert_int_equal(end.num_ends, 1);
  assert_null(end.status);
}

// ---- Two threads at once ----

static XLA_FFI_Future *g_futures[NUM_ROUNDS];

static void *set_all(void *argument) {
  (void)argument;
  for (int i = 0; i < NUM_ROUNDS; ++i) {
    mp_status_t status = i % 3 == 0 ? mp_status_make(MP_ABORTED, "%d", i) : NULL;
    if (!mp_foreign_future_set(g_futures[i], status)) abort();
  }
  return NULL;
}

static void results_arrive_once(void **state) {
  (void)state;
  static foreign_end_t ends[NUM_ROUNDS];
  for (int i = 0; i < NUM_ROUNDS; ++i) assert_ok(mp_foreign_future_create(&g_futures[i]));
  pthread_t setter;
  assert_int_equal(pthread_create(&setter, NULL, set_all, NULL), 0);
  for (int i = 0; i < NUM_ROUNDS; ++i) {
    mp_status_t status = NULL;
    if (mp_foreign_future_take(g_futures[i], foreign_note_end, &ends[i], &status)) {
      foreign_note_end(&ends[i], status);
    }
  }
  assert_int_equal(pthread_join(setter, NULL), 0);
  for (int i = 0; i < NUM_ROUNDS; ++i) {
    assert_int_equal(ends[i].num_ends, 1);
    assert_int_equal(mp_status_code(ends[i].status), i % 3 == 0 ? MP_ABORTED : MP_OK);
    mp_status_release(ends[i].status);
  }
}

static void waiting_ends_when_the_future_is_set(void **state) {
  (void)state;
  for (int i = 0; i < NUM_ROUNDS; ++i) assert_ok(mp_foreign_future_create(&g_futures[i]));
  pthread_t setter;
  assert_int_equal(pthread_create(&setter, NULL, set_all, NULL), 0);
  for (int i = 0; i < NUM_ROUNDS; ++i) {
    mp_status_t status = mp_foreign_future_await(g_futures[i]);
    assert_int_equal(mp_status_code(status), i % 3 == 0 ? MP_ABORTED : MP_OK);
    mp_status_release(status);
  }
  assert_int_equal(pthread_join(setter, NULL), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(set_before_taking_gives_the_result_at_once),
      cmocka_unit_test(taking_before_set_calls_back),
      cmocka_unit_test(results_arrive_once),
      cmocka_unit_test(waiting_ends_when_the_future_is_set),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
