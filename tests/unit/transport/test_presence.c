// Processes that would wait for others that cannot come: what they see, and how soon.

#include "collectives/transport/store/presence.h"
#include "tests/unit/support/processes/store_processes.h"

// Far below the time limit of joining (300 s), and above the grace on a busy machine.
enum { SOON_SECONDS = 30 };

static void expect(uint32_t index, mp_status_code_t code, const char *text) {
  const outcome_t *outcome = &g_shared->outcomes[index];
  if (outcome->code != code || strstr(outcome->message, text) == NULL) {
    fail_msg("process %u: %s: %s", index, mp_status_code_name(outcome->code), outcome->message);
  }
  assert_true(outcome->seconds < SOON_SECONDS);
}

// Runs processes whose first `num_failing` fail to join like this.
static void expect_failures(uint32_t count, const process_t *processes, uint32_t num_failing,
                            mp_status_code_t code, const char *text) {
  int ends[MOST_PROCESSES];
  run(count, processes, ends);
  for (uint32_t i = 0; i < num_failing; ++i) {
    assert_int_equal(ends[i], 0);
    expect(i, code, text);
  }
}

static void processes_that_wait_for_each_other_see_it(void **state) {
  (void)state;
  const process_t two[] = {{.rank = 0, .num_nodes = 3, .environment = "MINIPOD_SUBSET=0,1"},
                           {.rank = 1, .num_nodes = 3, .environment = "MINIPOD_SUBSET=0,1,2"},
                           {.rank = 2, .num_nodes = 3, .environment = "MINIPOD_SUBSET=0,1,2"}};
  expect_failures(3, two, 3, MP_FAILED_PRECONDITION,
                  "process 0 chose processes 0,1 (MINIPOD_SUBSET)");
  const process_t three[] = {{.rank = 0, .num_nodes = 4, .environment = "MINIPOD_SUBSET=0,1"},
                             {.rank = 1, .num_nodes = 4, .environment = "MINIPOD_SUBSET=1,2"},
                             {.rank = 2, .num_nodes = 4, .environment = "MINIPOD_SUBSET=2,0"}};
  expect_failures(3, three, 3, MP_FAILED_PRECONDITION, "processes disagree on which of them share");
  const process_t order[] = {{.rank = 0, .num_nodes = 3, .environment = "MINIPOD_SUBSET=0,1"},
                             {.rank = 1, .num_nodes = 3, .environment = "MINIPOD_SUBSET=1,0"}};
  expect_failures(2, order, 2, MP_FAILED_PRECONDITION, "waits for process 1");
}

static void a_process_without_a_list_is_seen(void **state) {
  (void)state;
  for (int i = 0; i < 2; ++i) {
    const process_t processes[] = {
        {.rank = 1, .environment = "MINIPOD_SUBSET=1,0", .can_only_wait = i},
        {.rank = 0, .num_nodes = 2, .can_only_wait = i}};
    expect_failures(2, processes, 2, MP_FAILED_PRECONDITION, "process 0 chose all processes");
  }
}

// Goes on until the other has seen that this process is elsewhere.
static void stay(mp_world_t *world) {
  (void)world;
  const double limit = mp_clock_seconds() + SOON_SECONDS;
  while (g_shared->outcomes[0].code == (mp_status_code_t)-1 && mp_clock_seconds() < limit) {
    usleep(10000);
  }
}

static void a_process_that_has_joined_others_is_seen(void **state) {
  (void)state;
  const process_t processes[] = {
      {.rank = 0, .num_nodes = 3, .environment = "MINIPOD_SUBSET=0,1"},
      {.rank = 1, .num_nodes = 3, .environment = "MINIPOD_SUBSET=1,2", .afterwards = stay},
      {.rank = 2, .num_nodes = 3, .environment = "MINIPOD_SUBSET=1,2", .afterwards = stay}};
  expect_failures(3, processes, 1, MP_FAILED_PRECONDITION,
                  "process 0 chose processes 0,1, process 1 chose processes 1,2 (MINIPOD_SUBSET)");
  assert_int_equal(g_shared->outcomes[1].code, MP_OK);
  assert_int_equal(g_shared->outcomes[2].code, MP_OK);
}

static void a_process_that_ends_before_its_hello_is_seen(void **state) {
  (void)state;
  const process_t processes[] = {{.rank = 0}, {.rank = 1}, {.rank = 2, .dies_at = "hello"}};
  expect_failures(3, processes, 2, MP_UNAVAILABLE, "has ended before all processes had joined");
}

// The others wait for one that never comes.
static void a_process_that_ends_after_its_hello_is_seen(void **state) {
  (void)state;
  const process_t processes[] = {{.rank = 0, .num_nodes = 4},
                                 {.rank = 2, .num_nodes = 4},
                                 {.rank = 3, .num_nodes = 4, .dies_for = "hello/1"}};
  expect_failures(3, processes, 2, MP_UNAVAILABLE, "has ended before all processes had joined");
}

// The others wait for a process that joins one list after another.
static void join_another(mp_world_t *world) {
  (void)world;
  const mp_named_value_t values[] = {
      {.name = MP_STR("node_id"), .type = MP_VALUE_INT64, .int64_value = g_process->rank},
      {.name = MP_STR("num_nodes"), .type = MP_VALUE_INT64, .int64_value = 3},
      {.name = MP_STR("subset"), .type = MP_VALUE_STRING, .string_value = MP_STR("0,1,2")}};
  mp_options_t *options = NULL;
  mp_world_t *all = NULL;
  if (g_process->rank == 1) sleep(4);  // the others wait longer than the grace
  if (mp_options_create(values, 3, &options) != NULL) _exit(1);
  mp_status_t status = mp_world_join(options, &k_store, &all);
  if (status != NULL) fprintf(stderr, "%s\n", mp_status_message(status));
  if (status != NULL || mp_world_size(all) != 3) _exit(2);
  mp_options_release(options);
}

static void a_process_that_joins_two_lists_is_waited_for(void **state) {
  (void)state;
  const process_t processes[] = {
      {.rank = 0, .num_nodes = 3, .environment = "MINIPOD_SUBSET=0,1", .afterwards = join_another},
      {.rank = 1, .num_nodes = 3, .environment = "MINIPOD_SUBSET=0,1", .afterwards = join_another},
      {.rank = 2, .num_nodes = 3, .environment = "MINIPOD_SUBSET=2", .afterwards = join_another}};
  int ends[3];
  run(3, processes, ends);
  for (int i = 0; i < 3; ++i) assert_int_equal(ends[i], 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(processes_that_wait_for_each_other_see_it),
      cmocka_unit_test(a_process_without_a_list_is_seen),
      cmocka_unit_test(a_process_that_has_joined_others_is_seen),
      cmocka_unit_test(a_process_that_ends_before_its_hello_is_seen),
      cmocka_unit_test(a_process_that_ends_after_its_hello_is_seen),
      cmocka_unit_test(a_process_that_joins_two_lists_is_waited_for),
  };
  return cmocka_run_group_tests(tests, store_setup, store_teardown);
}
