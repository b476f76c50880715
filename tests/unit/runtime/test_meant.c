// Launches that are meant for processes which others have replaced, in the words of a coordinator.
#include "sim/runtime/devices/client_impl.h"
#include "tests/unit/support/processes/pairs.h"

static const char *const k_why = "process 1 has ended, and a restarted one has replaced it";

typedef struct {
  pods_t pods;
  mp_executable_t *executables[2];
} pair_t;

static void begin(pair_t *pair) {
  start_pair(&pair->pods);
  make_pair_executables(&pair->pods, pair_sum_program, pair->executables);
}

static void end(pair_t *pair) {
  for (uint32_t rank = 0; rank < 2; ++rank) mp_executable_release(pair->executables[rank]);
  stop_pods(&pair->pods);
}

// The coordinator tells both that these are the processes now.
static void tell(const pair_t *pair, uint64_t first, uint64_t second) {
  for (uint32_t rank = 0; rank < 2; ++rank) {
    mp_client_note_incarnations(pair->pods.clients[rank], 2, (uint64_t[]){first, second});
  }
}

// A launch of one of the processes that is meant for these.
static void go(const pair_t *pair, test_launch_t *l, uint32_t rank, int64_t first, int64_t second) {
  static const int tasks[] = {1, 0, 7, -1};  // in any order; some that there are not
  int64_t incarnations[] = {second, first, 1, 2};
  pair_launch_begin(l, &pair->pods, rank, pair->executables[rank]);
  l->launch.num_tasks = 4;
  l->launch.task_ids = tasks;
  l->launch.incarnation_ids = incarnations;
  launch_go(l);
}

static void expect_sum(const pair_t *pair, int64_t first, int64_t second) {
  test_launch_t l[2];
  for (uint32_t rank = 0; rank < 2; ++rank) go(pair, &l[rank], rank, first, second);
  for (uint32_t rank = 0; rank < 2; ++rank) launch_expect(&l[rank], 2);
  for (uint32_t rank = 0; rank < 2; ++rank) launch_end(&l[rank]);
}

static void expect_failure(test_launch_t l[2]) {
  assert_status(mp_event_await(l[0].done[0]), MP_UNAVAILABLE, k_why);
  assert_status(mp_event_await(l[1].done[0]), MP_UNAVAILABLE, k_why);
  for (uint32_t rank = 0; rank < 2; ++rank) launch_end(&l[rank]);
}

static void one_that_comes_too_late_fails(void **state) {
  (void)state;
  pair_t pair;
  begin(&pair);
  expect_sum(&pair, 11, 12);  // the coordinator has reported nothing yet
  tell(&pair, 11, 12);
  expect_sum(&pair, 11, 12);
  tell(&pair, 11, 13);
  test_launch_t l[2];
  for (uint32_t rank = 0; rank < 2; ++rank) go(&pair, &l[rank], rank, 11, 12);
  expect_failure(l);
  expect_sum(&pair, 11, 13);
  // One that the coordinator's word has not reached everywhere.
  expect_sum(&pair, 11, 14);
  tell(&pair, 11, 14);
  tell(&pair, 11, 13);  // old news
  expect_sum(&pair, 11, 14);
  end(&pair);
}

static void a_waiting_launch_fails_when_notified(void **state) {
  (void)state;
  pair_t pair;
  begin(&pair);
  tell(&pair, 11, 12);
  test_launch_t l[2];
  go(&pair, &l[0], 0, 11, 12);
  let_it_park();
  mp_client_note_incarnations(pair.pods.clients[0], 2, (uint64_t[]){11, 13});
  assert_status(mp_event_await(l[0].done[0]), MP_UNAVAILABLE, k_why);
  // The other process does not know that yet. It gets the error of this launch, unless it already
  // has all that it needs from this process.
  go(&pair, &l[1], 1, 11, 12);
  mp_status_t status = mp_event_await(l[1].done[0]);
  if (status != NULL) assert_status(status, MP_UNAVAILABLE, k_why);
  for (uint32_t rank = 0; rank < 2; ++rank) launch_end(&l[rank]);
  expect_sum(&pair, 11, 13);
  end(&pair);
}

// One that was made when the coordinator was ahead of what had been heard is not given up for it.
static void one_that_is_ahead_is_not_given_up(void **state) {
  (void)state;
  pair_t pair;
  begin(&pair);
  tell(&pair, 11, 12);
  test_launch_t l[2];
  go(&pair, &l[0], 0, 11, 13);
  let_it_park();
  tell(&pair, 11, 13);
  go(&pair, &l[1], 1, 11, 13);
  for (uint32_t rank = 0; rank < 2; ++rank) launch_expect(&l[rank], 2);
  for (uint32_t rank = 0; rank < 2; ++rank) launch_end(&l[rank]);
  end(&pair);
}

static void of_other_jobs_nothing_is_believed(void **state) {
  (void)state;
  pair_t pair;
  begin(&pair);
  tell(&pair, 11, 12);
  mp_client_note_incarnations(pair.pods.clients[0], 3, (uint64_t[]){11, 13, 14});
  expect_sum(&pair, 11, 12);
  end(&pair);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_that_comes_too_late_fails),
      cmocka_unit_test(a_waiting_launch_fails_when_notified),
      cmocka_unit_test(one_that_is_ahead_is_not_given_up),
      cmocka_unit_test(of_other_jobs_nothing_is_believed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
