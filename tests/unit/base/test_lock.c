// Units of sim/base/lock: each rule of the lock order is checked, on each thread by itself.
#include "sim/base/os/lock.h"

#include "tests/unit/support/aborts.h"

static mp_lock_t g_launch = MP_LOCK_INITIALIZER(MP_LOCK_LAUNCH);
static mp_lock_t g_session = MP_LOCK_INITIALIZER(MP_LOCK_SESSION);
static mp_lock_t g_other_session = MP_LOCK_INITIALIZER(MP_LOCK_SESSION);
static mp_lock_t g_memory = MP_LOCK_INITIALIZER(MP_LOCK_MEMORY);
static mp_lock_t g_world = MP_LOCK_INITIALIZER(MP_LOCK_WORLD);
static mp_lock_t g_bootstrap = MP_LOCK_INITIALIZER(MP_LOCK_BOOTSTRAP);
static mp_lock_t g_nothing;

static void take_in_order(void *context) {
  (void)context;
  mp_lock(&g_launch);
  mp_lock(&g_session);
  mp_lock(&g_memory);
  mp_lock_assert_held(&g_launch);
  mp_lock_assert_held(&g_memory);
  mp_unlock(&g_launch);  // in another order than taken
  mp_lock_assert_held(&g_session);
  mp_unlock(&g_memory);
  mp_unlock(&g_session);
  mp_lock_assert_none_held();
  mp_lock(&g_session);
  mp_unlock(&g_session);
}

static void take_out_of_order(void *context) {
  (void)context;
  mp_lock(&g_session);
  mp_lock(&g_launch);
}

static void take_two_of_one_rank(void *context) {
  (void)context;
  mp_lock(&g_session);
  mp_lock(&g_other_session);
}

static void take_one_twice(void *context) {
  (void)context;
  mp_lock(&g_session);
  mp_lock(&g_session);
}

static void take_under_leaf(void *context) {
  (void)context;
  mp_lock(&g_memory);
  mp_lock(&g_world);
}

static void give_back_what_is_not_held(void *context) {
  (void)context;
  mp_unlock(&g_session);
}

static void take_without_init(void *context) {
  (void)context;
  mp_lock(&g_nothing);
}

static void take_after_deinit(void *context) {
  (void)context;
  mp_lock_deinit(&g_session);
  mp_lock(&g_session);
}

static void deinit_while_held(void *context) {
  (void)context;
  mp_lock(&g_session);
  mp_lock_deinit(&g_session);
}

static void call_without_the_lock(void *context) {
  (void)context;
  mp_lock_assert_held(&g_session);
}

static void call_back_with_a_lock(void *context) {
  (void)context;
  mp_lock(&g_session);
  mp_lock_assert_none_held();
}

static pthread_cond_t g_changed = PTHREAD_COND_INITIALIZER;
static const struct timespec k_long_ago = {0};

static void wait_with_another_lock(void *context) {
  (void)context;
  mp_lock(&g_launch);
  mp_lock(&g_world);
  (void)mp_lock_wait_until(&g_world, &g_changed, &k_long_ago);
}

static void wait_with_a_long_lock(void *context) {
  (void)context;
  mp_lock(&g_bootstrap);
  mp_lock(&g_world);
  if (mp_lock_wait_until(&g_world, &g_changed, &k_long_ago)) _exit(1);
  mp_lock_assert_held(&g_world);
  mp_unlock(&g_world);
  mp_lock_assert_none_held();  // long locks do not count
  mp_unlock(&g_bootstrap);
}

static void *take_session_on_a_thread(void *context) {
  mp_lock(&g_session);
  mp_unlock(&g_session);
  return context;
}

// What one thread holds is nothing to another's order.
static void take_on_two_threads(void *context) {
  (void)context;
  mp_lock(&g_memory);
  pthread_t thread;
  if (pthread_create(&thread, NULL, take_session_on_a_thread, NULL) != 0) _exit(1);
  pthread_join(thread, NULL);
  mp_unlock(&g_memory);
}

static void right_orders_are_fine(void **state) {
  (void)state;
  expect_no_abort(take_in_order, NULL);
  expect_no_abort(wait_with_a_long_lock, NULL);
  expect_no_abort(take_on_two_threads, NULL);
}

static void wrong_orders_are_found(void **state) {
  (void)state;
  expect_abort_with(take_out_of_order, NULL, "'launch' is taken while 'session' is held (since ");
  expect_abort_with(take_two_of_one_rank, NULL, "which has the same rank");
  expect_abort_with(take_one_twice, NULL, "which is the same lock");
  expect_abort_with(take_under_leaf, NULL, "'world' is taken while 'memory' is held (since ");
  expect_abort_with(take_under_leaf, NULL, "which is a leaf");
}

static void wrong_uses_are_found(void **state) {
  (void)state;
  expect_abort_with(give_back_what_is_not_held, NULL, "'session' is not held by this thread");
  expect_abort_with(take_without_init, NULL, "it is not initialized");
  expect_abort_with(take_after_deinit, NULL, "it is not initialized, or not any more");
  expect_abort_with(deinit_while_held, NULL, "'session' is destroyed while it is held");
  expect_abort_with(call_without_the_lock, NULL, "'session' is not held");
  expect_abort_with(call_back_with_a_lock, NULL, "nothing may be held here, but 'session' is");
  expect_abort_with(wait_with_another_lock, NULL,
                    "a thread waits on 'world' while it holds 'launch'");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(right_orders_are_fine),
      cmocka_unit_test(wrong_orders_are_found),
      cmocka_unit_test(wrong_uses_are_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
