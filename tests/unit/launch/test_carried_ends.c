// The rest of a launch after the thread for messages has ended a collective of it: which thread
// runs it, and the client's end meanwhile. Two processes (worlds of threads) of one device each.
#include <string.h>
#include <sys/prctl.h>

#include "sim/runtime/devices/client_impl.h"
#include "tests/unit/support/processes/pairs.h"

enum { NAME_BYTES = 16 };

static void note_thread(mp_status_t status, void *context) {
  assert_null(status);
  assert_int_equal(prctl(PR_GET_NAME, context), 0);
}

// How many of so many launches of the program end on a thread of this name in process 0, which
// comes first and waits.
static int count_ends(const pods_t *pods, mp_program_t *(*make)(void), const char *name,
                      int num_launches) {
  mp_executable_t *executables[2];
  make_pair_executables(pods, make, executables);
  int count = 0;
  for (int i = 0; i < num_launches; ++i) {
    char thread[NAME_BYTES] = "";
    test_launch_t l[2];
    pair_launch(&l[0], pods, 0, executables[0]);
    assert_ok(mp_event_on_ready(l[0].done[0], note_thread, thread));
    let_it_park();
    pair_launch(&l[1], pods, 1, executables[1]);
    for (uint32_t rank = 0; rank < 2; ++rank) launch_expect(&l[rank], 2);
    // A thread that the event wakes may be ahead of the event's callbacks.
    while (*(volatile char *)thread == '\0') let_it_park();
    count += strncmp(thread, name, strlen(name)) == 0;
    for (uint32_t rank = 0; rank < 2; ++rank) launch_end(&l[rank]);
  }
  for (uint32_t rank = 0; rank < 2; ++rank) mp_executable_release(executables[rank]);
  return count;
}

static mp_program_t *long_program(void) {
  mp_program_t *program = pair_sum_program();
  program->flops = 1e9;
  return program;
}

static void a_short_rest_is_run_by_the_thread_for_messages(void **state) {
  (void)state;
  pods_t pods;
  start_pair(&pods);
  assert_true(count_ends(&pods, pair_sum_program, "mp-world", 20) > 0);
  stop_pods(&pods);
}

static void a_long_rest_is_run_by_workers(void **state) {
  (void)state;
  pods_t pods;
  start_pair(&pods);
  assert_int_equal(count_ends(&pods, long_program, "mp-world", 20), 0);
  stop_pods(&pods);
}

// Launches a sum of both in process 0.
static void begin_pair(pods_t *pods, test_launch_t *l, mp_executable_t *executables[2]) {
  start_pair(pods);
  make_pair_executables(pods, pair_sum_program, executables);
  pair_launch(l, pods, 0, executables[0]);
}

// Both launches go well, whatever became of the clients; then everything is given back.
static void expect_good_ends(pods_t *pods, test_launch_t l[2], mp_executable_t *executables[2]) {
  for (uint32_t rank = 0; rank < 2; ++rank) assert_ok(mp_event_await(l[rank].done[0]));
  for (uint32_t rank = 0; rank < 2; ++rank) launch_end(&l[rank]);
  for (uint32_t rank = 0; rank < 2; ++rank) mp_executable_release(executables[rank]);
  stop_pods(pods);
}

// The client of process 0 ends within a callback, whichever thread that is on.
static void a_callback_may_release_the_client(void **state) {
  (void)state;
  for (int round = 0; round < 5; ++round) {
    pods_t pods;
    mp_executable_t *executables[2];
    test_launch_t l[2];
    begin_pair(&pods, &l[0], executables);
    assert_ok(mp_event_on_ready(l[0].done[0], release_client, pods.clients[0]));
    pods.clients[0] = NULL;
    let_it_park();
    pair_launch(&l[1], &pods, 1, executables[1]);
    expect_good_ends(&pods, l, executables);
  }
}

// Process 0 ends while it waits for the other one, or while the thread for messages is at its end.
static void the_client_may_end_at_any_time(void **state) {
  (void)state;
  for (long round = 0; round < 40; ++round) {
    pods_t pods;
    mp_executable_t *executables[2];
    test_launch_t l[2];
    begin_pair(&pods, &l[0], executables);
    let_it_park();
    pair_launch(&l[1], &pods, 1, executables[1]);
    nanosleep(&(struct timespec){.tv_nsec = round * 2000}, NULL);
    mp_client_release(pods.clients[0]);
    pods.clients[0] = NULL;
    // A process that leaves finishes what others take part in.
    expect_good_ends(&pods, l, executables);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_short_rest_is_run_by_the_thread_for_messages),
      cmocka_unit_test(a_long_rest_is_run_by_workers),
      cmocka_unit_test(a_callback_may_release_the_client),
      cmocka_unit_test(the_client_may_end_at_any_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
