// Joining through a key-value store: success, the errors when a process ends, and failures.

#include "sim/base/alloc.h"
#include "tests/unit/support/processes/store_processes.h"
#include "tests/unit/support/processes/ucx_sanitized.h"

// Runs processes of which all fail in joining, or `survivors` of them.
// ---- What goes well ----

static void talk(mp_world_t *world) {
  const uint32_t rank = mp_world_rank(world), size = mp_world_size(world);
  check(rank == g_process->rank, "another rank");
  check(mp_world_joined() == world, "another world");
  for (uint32_t i = 0; i < size; ++i) {
    const mp_peer_t *peer = mp_world_peer(world, i);
    check(peer->host == 0 && peer->rank_on_host == i && peer->ranks_on_host == size,
          "another host");
    check(peer->hostname != NULL && kill((pid_t)peer->pid, 0) == 0, "another process");
  }
  enum { LONG = 100000 };
  static unsigned char bytes[LONG];
  memset(bytes, (int)rank, sizeof(bytes));
  for (int round = 0; round < 20; ++round) {
    void **all = NULL;
    size_t *sizes = NULL;
    check(mp_world_exchange(world, bytes, round % 2 == 0 ? 8 : LONG, 30, &all, &sizes) == NULL,
          "no exchange");
    for (uint32_t i = 0; i < size; ++i) {
      check(sizes[i] == (round % 2 == 0 ? 8 : LONG) && *(unsigned char *)all[i] == i,
            "other bytes");
    }
    mp_free(all);
  }
  // The second client of a process is in the same world, and what it says must fit.
  mp_world_t *again = NULL;
  check(join(rank, size, NULL, &again) == NULL && again == world, "no second client");
  mp_status_t status = join(rank, size + 1, &k_store, &again);
  check(mp_status_code(status) == MP_INVALID_ARGUMENT, "wrong numbers are taken");
  mp_status_release(status);
  // A forked child has no part.
  pid_t child = fork();
  if (child == 0) {
    again = world;
    _exit(join(rank, size, &k_store, &again) == NULL && again == NULL ? 0 : 1);
  }
  int end = -1;
  check(waitpid(child, &end, 0) == child && end == 0, "the child has a part");
}

static void processes_join_and_talk(void **state) {
  (void)state;
  for (uint32_t count = 2; count <= MOST_PROCESSES; count += 3) {
    process_t processes[MOST_PROCESSES] = {{.rank = 0}};
    for (uint32_t i = 0; i < count; ++i) {
      processes[i] = (process_t){.rank = count - 1 - i, .afterwards = talk};
    }
    int ends[MOST_PROCESSES];
    const double begin = mp_clock_seconds();
    run(count, processes, ends);
    for (uint32_t i = 0; i < count; ++i) {
      if (ends[i] != 0) fail_msg("%s (%d)", g_shared->outcomes[i].message, ends[i]);
      assert_int_equal(g_shared->outcomes[i].code, MP_OK);
    }
    assert_true(mp_clock_seconds() - begin < 25);  // no process waits for a goodbye in vain
  }
}

// ---- Some of the processes ----

static mp_status_t join_subset(const char *list, const mp_key_value_store_t *store,
                               mp_world_t **out_world) {
  const mp_named_value_t values[] = {
      {.name = MP_STR("node_id"), .type = MP_VALUE_INT64, .int64_value = g_process->rank},
      {.name = MP_STR("num_nodes"), .type = MP_VALUE_INT64, .int64_value = 4},
      {.name = MP_STR("subset"), .type = MP_VALUE_STRING, .string_value = {list, strlen(list)}}};
  mp_options_t *options = NULL;
  MP_RETURN_IF_ERROR(mp_options_create(values, 3, &options));
  mp_status_t status = mp_world_join(options, store, out_world);
  mp_options_release(options);
  return status;
}

// Says its rank in the job to those of a world, of which `list` knows the numbers.
static void talk_in(mp_world_t *world, const char *list) {
  for (int round = 0; round < 20; ++round) {
    void **all = NULL;
    size_t *sizes = NULL;
    const char rank = (char)('0' + g_process->rank);
    check(mp_world_exchange(world, &rank, 1, 30, &all, &sizes) == NULL, "no exchange");
    for (uint32_t i = 0; i < mp_world_size(world); ++i) {
      check(sizes[i] == 1 && *(char *)all[i] == list[2 * i], "bytes of another");
    }
    mp_free(all);
  }
}

static void talk_in_a_subset(mp_world_t *world) {
  const char *const list = g_process->rank % 2 == 0 ? "2,0" : "1,3";
  mp_world_t *half = NULL, *again = NULL;
  mp_status_t status = join_subset(list, NULL, &half);
  check(mp_status_code(status) == MP_FAILED_PRECONDITION, "a subset without a store");
  mp_status_release(status);
  status = join_subset(list, &k_store, &half);
  check(status == NULL, mp_status_message(status));
  check(half != world && mp_world_size(half) == 2, "another world");
  check(mp_world_rank(half) == (g_process->rank % 3 == 0), "another rank");
  talk_in(half, list);
  check(join_subset(list, NULL, &again) == NULL && again == half, "no second client");
  check(mp_world_joined() == world, "the job is another one");
  talk_in(world, "0,1,2,3");
}

// They are in the world of the job, and in that of a half, and leave both.
static void halves_join_and_talk(void **state) {
  (void)state;
  const process_t processes[] = {{.rank = 0, .afterwards = talk_in_a_subset},
                                 {.rank = 1, .afterwards = talk_in_a_subset},
                                 {.rank = 2, .afterwards = talk_in_a_subset},
                                 {.rank = 3, .afterwards = talk_in_a_subset}};
  int ends[4];
  run(4, processes, ends);
  for (uint32_t i = 0; i < 4; ++i) assert_int_equal(ends[i], 0);
}

static void see_the_other_of_a_subset_end(mp_world_t *world) {
  (void)world;
  mp_world_t *half = NULL;
  check(join_subset("1,0", &k_store, &half) == NULL, "no subset");
  if (g_process->rank == 1) exit(3);
  void **all = NULL;
  size_t *sizes = NULL;
  mp_status_t status = mp_world_exchange(half, "x", 1, LIMIT_SECONDS, &all, &sizes);
  check(mp_status_code(status) == MP_UNAVAILABLE, "no loss");
  check(strstr(mp_status_message(status), "has exited with status 3") != NULL,
        mp_status_message(status));
  mp_status_release(status);
}

static void an_end_is_heard_of_in_a_subset(void **state) {
  (void)state;
  const process_t processes[] = {{.rank = 0, .afterwards = see_the_other_of_a_subset_end},
                                 {.rank = 1, .afterwards = see_the_other_of_a_subset_end}};
  int ends[2];
  run(2, processes, ends);
  assert_int_equal(ends[0], 0);
  assert_int_equal(WEXITSTATUS(ends[1]), 3);
}

// ---- Errors of the surviving processes ----

static void expect_loss(mp_world_t *world, const char *text) {
  void **all = NULL;
  size_t *sizes = NULL;
  const double begin = mp_clock_seconds();
  mp_status_t status = mp_world_exchange(world, "x", 1, LIMIT_SECONDS, &all, &sizes);
  check(mp_status_code(status) == MP_UNAVAILABLE, "no loss");
  check(strstr(mp_status_message(status), text) != NULL, mp_status_message(status));
  check(mp_clock_seconds() - begin < 5, "a late loss");
  mp_status_release(status);
}

static void hear_of_a_death(mp_world_t *world) {
  expect_loss(world, "has ended unexpectedly");
}
static void hear_of_an_error(mp_world_t *world) {
  expect_loss(world, "has exited with status 3; see its own output");
}
static void hear_of_an_end(mp_world_t *world) {
  expect_loss(world, "has exited");
}
static void die(mp_world_t *world) {
  (void)world;
  raise(SIGKILL);
}
static void end_with_3(mp_world_t *world) {
  (void)world;
  exit(3);
}

static void an_end_is_heard_of(void **state) {
  (void)state;
  const process_t ends_of[][3] = {
      {{.rank = 0, .afterwards = hear_of_a_death},
       {.rank = 1, .afterwards = hear_of_a_death},
       {.rank = 2, .afterwards = die}},
      {{.rank = 0, .afterwards = hear_of_an_error},
       {.rank = 1, .afterwards = hear_of_an_error},
       {.rank = 2, .afterwards = end_with_3}},
      {{.rank = 0, .afterwards = hear_of_an_end},
       {.rank = 1, .afterwards = hear_of_an_end},
       {.rank = 2}},
  };
  for (size_t i = 0; i < sizeof(ends_of) / sizeof(ends_of[0]); ++i) {
    int ends[3];
    run(3, ends_of[i], ends);
    assert_int_equal(ends[0], 0);
    assert_int_equal(ends[1], 0);
  }
}

// ---- What fails ----

static const char *const k_short = "MINIPOD_INIT_TIMEOUT_S=2";

static void a_process_never_comes(void **state) {
  (void)state;
  const process_t processes[] = {{.rank = 0, .num_nodes = 4, .environment = k_short},
                                 {.rank = 2, .num_nodes = 4, .environment = k_short}};
  expect_failure(2, processes, 2, MP_DEADLINE_EXCEEDED,
                 "no message within 2 s from process 1, process 3 (of the 4 processes");
}

static void numbers_do_not_fit(void **state) {
  (void)state;
  const process_t differ[] = {{.rank = 0, .num_nodes = 2}, {.rank = 1, .num_nodes = 3}};
  expect_failure(2, differ, 2, MP_FAILED_PRECONDITION, "disagree on how many they are");
  const process_t beyond[] = {{.rank = 5, .num_nodes = 2}};
  expect_failure(1, beyond, 1, MP_INVALID_ARGUMENT, "0 to 1 (num_nodes is 2), got 5");
  // Two processes have rank 1, and none has rank 2.
  const process_t twice[] = {{.rank = 1, .environment = k_short},
                             {.rank = 1, .environment = k_short},
                             {.rank = 0, .environment = k_short}};
  int ends[3];
  run(3, twice, ends);
  const outcome_t *outcomes = g_shared->outcomes;
  const int late = outcomes[0].code == MP_ALREADY_EXISTS ? 0 : 1;
  assert_int_equal(outcomes[late].code, MP_ALREADY_EXISTS);
  assert_non_null(strstr(outcomes[late].message, "has joined as process 1 (node_id)"));
  assert_int_equal(outcomes[1 - late].code, MP_DEADLINE_EXCEEDED);
  assert_int_equal(outcomes[2].code, MP_DEADLINE_EXCEEDED);
}

static void change_version(mp_hello_t *hello) {
  hello->version[0] ^= 1;
}
static void change_build(mp_hello_t *hello) {
  hello->build ^= 1;
}
static void change_memory(mp_hello_t *hello) {
  hello->address.cookie[1] ^= 1;
}

// All see what process 2 says, and process 2 itself fails one way or another.
static void processes_do_not_fit(void **state) {
  (void)state;
  static const struct {
    void (*tamper)(mp_hello_t *hello);
    mp_status_code_t code;
    const char *text;
  } cases[] = {{change_version, MP_FAILED_PRECONDITION, "mixes versions of minipod"},
               {change_build, MP_FAILED_PRECONDITION, "mixes builds of minipod"},
               {change_memory, MP_UNAVAILABLE, "rank 2: the memory of process"}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    const process_t processes[] = {
        {.rank = 0}, {.rank = 1}, {.rank = 2, .tamper = cases[i].tamper}};
    expect_failure(3, processes, 2, cases[i].code, cases[i].text);
    assert_int_not_equal(g_shared->outcomes[2].code, MP_OK);
  }
}

static void a_process_fails_on_the_way(void **state) {
  (void)state;
  const process_t no_store[] = {{.rank = 0, .num_nodes = 2, .refused_at = "hello"}};
  expect_failure(1, no_store, 1, MP_UNAVAILABLE, "the coordinator is away");
  const process_t refused[] = {{.rank = 0}, {.rank = 1}, {.rank = 2, .refused_at = "connected"}};
  // Whether the others have mapped the memory of process 2 by then is a matter of chance.
  expect_failure(3, refused, 3, MP_UNAVAILABLE, "");
  const process_t dies[] = {{.rank = 0}, {.rank = 1}, {.rank = 2, .dies_at = "connected"}};
  expect_failure(3, dies, 2, MP_UNAVAILABLE, "has ended");
}

// The system refuses the n-th request of each kind in process 1: both fail, or both join.
static void any_refusal_is_heard_of(void **state) {
  (void)state;
  expect_that_refusals_are_heard_of(200, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(processes_join_and_talk),
      cmocka_unit_test(an_end_is_heard_of),
      cmocka_unit_test(a_process_never_comes),
      cmocka_unit_test(numbers_do_not_fit),
      cmocka_unit_test(processes_do_not_fit),
      cmocka_unit_test(a_process_fails_on_the_way),
      cmocka_unit_test(any_refusal_is_heard_of),
      cmocka_unit_test(halves_join_and_talk),
      cmocka_unit_test(an_end_is_heard_of_in_a_subset),
  };
  return cmocka_run_group_tests(tests, store_setup, store_teardown);
}
