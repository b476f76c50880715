// Launches of some processes only (match: groups): four processes of one device, in worlds of
// threads.
#include <string.h>

#include "tests/unit/support/launches.h"
#include "tests/unit/support/processes/worlds.h"
#include "tests/unit/support/programs.h"

static const pod_option_t k_by_groups[] = {
    {"num_devices", "1"}, {"workers", "1"}, {"match", "groups"}, {NULL, NULL}};
static const pod_option_t k_by_groups_impatient[] = {
    {"num_devices", "1"},        {"workers", "1"}, {"match", "groups"}, {"collective_warn", "0"},
    {"collective_timeout", "1"}, {NULL, NULL}};
static const pod_option_t k_by_groups_less_so[] = {
    {"num_devices", "1"},        {"workers", "1"}, {"match", "groups"}, {"collective_warn", "0"},
    {"collective_timeout", "4"}, {NULL, NULL}};

// y = all_reduce(x) in groups of `size` devices, in this order.
static mp_program_t *ordered_groups_program(const int64_t all[4], int64_t size) {
  test_program_t p;
  program_begin(&p, "groups", 1, 4);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  mp_collective_t *c =
      program_collective(&p, MP_COLLECTIVE_ALL_REDUCE, "stablehlo.all_reduce", 4, x, y);
  assert_ok(
      mp_groups_create(p.arena, MP_GROUPS_FLATTENED_IDS, 1, 4, all, 4 / size, size, &c->groups));
  return program_end(&p);
}

static mp_program_t *groups_program(int64_t size) {
  return ordered_groups_program((const int64_t[]){0, 1, 2, 3}, size);
}

static void launch_own(test_launch_t *l, const pods_t *pods, uint32_t rank, mp_program_t *program) {
  mp_executable_t *executable = make_executable(pods->clients[rank], program);
  launch_begin(l, executable, 1);
  l->num_devices = 1;
  l->logical[0] = rank;
  l->arguments[0][0] = make_f32(mp_client_device(pods->clients[rank], rank), 4, (float)rank + 1);
  launch_go(l);
  mp_executable_release(executable);
}

// Ranks [first, end) launch a sum in groups of this size.
static void expect_group_sums(const pods_t *pods, uint32_t first, uint32_t end, int64_t size) {
  static const float sums[][4] = {{1, 2, 3, 4}, {3, 3, 7, 7}, {0}, {10, 10, 10, 10}};
  test_launch_t l[4];
  for (uint32_t rank = first; rank < end; ++rank) {
    launch_own(&l[rank], pods, rank, groups_program(size));
  }
  for (uint32_t rank = first; rank < end; ++rank) {
    launch_expect(&l[rank], sums[size - 1][rank]);
    launch_end(&l[rank]);
  }
}

// Launches are matched among the devices that the program's groups connect, whatever the others do.
static void test_launches_of_some_groups(void **state) {
  (void)state;
  for (uint32_t per_host = 2; per_host <= 4; per_host += 2) {
    pods_t pods;
    start_pods(&pods, 4, per_host, k_by_groups);
    for (int round = 0; round < 5; ++round) {
      expect_group_sums(&pods, 2, 4, 2);
      expect_group_sums(&pods, 0, 4, 4);
      expect_group_sums(&pods, 1, 2, 1);
      expect_group_sums(&pods, 0, 4, 2);
      expect_group_sums(&pods, 0, 2, 2);
    }
    stop_pods(&pods);
  }
}

// A failure reaches the group, and no other one; the next launches match again.
static void test_failure_in_a_group(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 4, 4, k_by_groups);
  test_launch_t l[4], refused;
  launch_own(&l[3], &pods, 3, groups_program(2));
  mp_executable_t *executable = make_executable(pods.clients[2], groups_program(2));
  launch_begin(&refused, executable, 1);
  refused.num_devices = 1;
  refused.logical[0] = 2;
  refused.arguments[0][0] = make_f32(mp_client_device(pods.clients[2], 2), 5, 1);
  mp_buffer_t *result;
  assert_status(launch_try(&refused, &result), MP_INVALID_ARGUMENT, "expected tensor<4xf32>");
  launch_expect_error(&l[3], 0, MP_INVALID_ARGUMENT, "(on process 2)");
  launch_end(&l[3]);
  mp_buffer_release(refused.arguments[0][0]);
  mp_executable_release(executable);
  expect_group_sums(&pods, 0, 2, 2);
  expect_group_sums(&pods, 0, 4, 2);
  expect_group_sums(&pods, 0, 4, 4);
  stop_pods(&pods);
}

// Processes that wait for each other in different groups: all get an error.
static void test_groups_that_do_not_match(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 4, 4, k_by_groups);
  test_launch_t l[4];
  for (uint32_t rank = 0; rank < 4; ++rank) {
    launch_own(&l[rank], &pods, rank, groups_program(rank == 0 ? 2 : 4));
  }
  for (uint32_t rank = 0; rank < 4; ++rank) {
    launch_expect_error(&l[rank], 0, MP_ABORTED, "process 1: device 1 waits in groups at ");
    launch_end(&l[rank]);
  }
  stop_pods(&pods);
}

// Process 0 waits for process 1, which waits for process 2, which has launched nothing. Returns
// whether process 0 learned in time where process 1 waits.
static bool expect_chain(const pods_t *pods) {
  test_launch_t l[2];
  launch_own(&l[0], pods, 0, groups_program(2));
  launch_own(&l[1], pods, 1, ordered_groups_program((const int64_t[]){1, 2, 0, 3}, 2));
  mp_status_t status = mp_event_await(l[0].done[0]);
  assert_int_equal(mp_status_code(status), MP_DEADLINE_EXCEEDED);
  assert_non_null(strstr(mp_status_message(status), "device 1 of process 1"));
  const bool is_told =
      strstr(mp_status_message(status),
             "; in another launch device 1 waits at stablehlo.all_reduce (psum at ") != NULL;
  mp_status_release(status);
  launch_expect_error(&l[1], 0, MP_DEADLINE_EXCEEDED, "device 2 of process 2");
  for (uint32_t rank = 0; rank < 2; ++rank) launch_end(&l[rank]);
  return is_told;
}

static void test_group_that_waits_in_another(void **state) {
  (void)state;
  bool is_told = false;
  for (int i = 0; i < 10 && !is_told; ++i) {
    pods_t pods;
    // Process 0 asks while the other one still waits.
    try_start_pods(&pods, 4, 4,
                   (const pod_option_t *const[]){k_by_groups_impatient, k_by_groups_less_so,
                                                 k_by_groups_less_so, k_by_groups_less_so});
    is_told = expect_chain(&pods);
    stop_pods(&pods);
  }
  assert_true(is_told);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_launches_of_some_groups),
      cmocka_unit_test(test_failure_in_a_group),
      cmocka_unit_test(test_groups_that_do_not_match),
      cmocka_unit_test(test_group_that_waits_in_another),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
