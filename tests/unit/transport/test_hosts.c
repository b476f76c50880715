// Joining through a key-value store over several hosts, which UCX connects. The hosts are
// simulated: their processes report different host names.
#include "sim/base/alloc.h"
#include "tests/unit/support/processes/store_processes.h"
#include "tests/unit/support/processes/ucx_sanitized.h"

static void other_host(mp_hello_t *hello) {
  hello->hostname[0] ^= 1;
}
static void third_host(mp_hello_t *hello) {
  hello->hostname[0] ^= 2;
}
static void other_boot(mp_hello_t *hello) {
  hello->process.boot_id[0] ^= 1;
}

static void expect_ends(uint32_t count, const int *ends) {
  for (uint32_t i = 0; i < count; ++i) {
    if (ends[i] != 0) fail_msg("%u: %s (%x)", i, g_shared->outcomes[i].message, ends[i]);
    if (g_shared->outcomes[i].code != MP_OK) fail_msg("%u: %s", i, g_shared->outcomes[i].message);
  }
}

static void exchange(mp_world_t *world) {
  const uint32_t rank = mp_world_rank(world), size = mp_world_size(world);
  enum { LONG = 3000000 };
  unsigned char *bytes = malloc(LONG);
  memset(bytes, (int)rank, LONG);
  for (int round = 0; round < 12; ++round) {
    const size_t wanted = round % 3 == 0 ? 8 : round % 3 == 1 ? 50000 : LONG;
    void **all = NULL;
    size_t *sizes = NULL;
    mp_status_t status = mp_world_exchange(world, bytes, wanted, 30, &all, &sizes);
    check(status == NULL, mp_status_message(status));
    for (uint32_t i = 0; i < size; ++i) {
      const unsigned char *came = all[i];
      check(sizes[i] == wanted && came[0] == i && came[wanted - 1] == i, "other bytes");
    }
    mp_free(all);
  }
  free(bytes);
}

// Ranks 0 and 2 are on one host, 1 and 3 on another, 4 on a third.
static void talk(mp_world_t *world) {
  static const uint32_t hosts[] = {0, 1, 0, 1, 2}, nears[] = {2, 2, 2, 2, 1};
  for (uint32_t i = 0; i < mp_world_size(world); ++i) {
    const mp_peer_t *peer = mp_world_peer(world, i);
    check(peer->host == hosts[i] && peer->ranks_on_host == nears[i], "another host");
  }
  exchange(world);
}

static void hosts_are_joined(void **state) {
  (void)state;
  if (!ucx_is_here()) skip();
  const process_t processes[] = {{.rank = 0, .afterwards = talk},
                                 {.rank = 1, .afterwards = talk, .tamper = other_host},
                                 {.rank = 2, .afterwards = talk},
                                 {.rank = 3, .afterwards = talk, .tamper = other_host},
                                 {.rank = 4, .afterwards = talk, .tamper = other_boot}};
  int ends[5];
  const double begin = mp_clock_seconds();
  run(5, processes, ends);
  expect_ends(5, ends);
  assert_true(mp_clock_seconds() - begin < 25);  // no process waits for a goodbye in vain
  const process_t two[] = {{.rank = 1, .afterwards = exchange},
                           {.rank = 0, .afterwards = exchange, .tamper = third_host}};
  run(2, two, ends);
  expect_ends(2, ends);
}

// ---- Errors of the surviving processes ----

static void expect_loss(mp_world_t *world, const char *text) {
  void **all = NULL;
  size_t *sizes = NULL;
  const double begin = mp_clock_seconds();
  mp_status_t status = mp_world_exchange(world, "x", 1, LIMIT_SECONDS, &all, &sizes);
  check(mp_status_code(status) == MP_UNAVAILABLE, "no loss");
  check(strstr(mp_status_message(status), text) != NULL, mp_status_message(status));
  check(strstr(mp_status_message(status), "process 2 (pid ") != NULL, mp_status_message(status));
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
  usleep(300000);  // until the others have joined, too
  raise(SIGKILL);
}
static void end_with_3(mp_world_t *world) {
  (void)world;
  exit(3);
}

static void an_end_is_heard_of_on_other_hosts(void **state) {
  (void)state;
  if (!ucx_is_here()) skip();
  const process_t ends_of[][3] = {
      {{.rank = 0, .afterwards = hear_of_a_death},
       {.rank = 1, .afterwards = hear_of_a_death},
       {.rank = 2, .afterwards = die, .tamper = other_host}},
      {{.rank = 0, .afterwards = hear_of_a_death},
       {.rank = 1, .afterwards = hear_of_a_death, .tamper = other_host},
       {.rank = 2, .afterwards = die, .tamper = other_host}},
      {{.rank = 0, .afterwards = hear_of_an_error},
       {.rank = 1, .afterwards = hear_of_an_error, .tamper = third_host},
       {.rank = 2, .afterwards = end_with_3, .tamper = other_host}},
      {{.rank = 0, .afterwards = hear_of_an_end},
       {.rank = 1, .afterwards = hear_of_an_end},
       {.rank = 2, .tamper = other_host}},
  };
  for (size_t i = 0; i < sizeof(ends_of) / sizeof(ends_of[0]); ++i) {
    int ends[3];
    run(3, ends_of[i], ends);
    assert_int_equal(ends[0], 0);
    assert_int_equal(ends[1], 0);
  }
}

// ---- What fails ----

static void a_host_without_a_network_is_named(void **state) {
  (void)state;
  if (!ucx_is_here()) skip();
  const process_t processes[] = {{.rank = 0},
                                 {.rank = 1, .environment = "UCX_TLS=none", .tamper = other_host}};
  expect_failure(2, processes, 2, MP_FAILED_PRECONDITION, "'mpirun --bind-to none");
  assert_non_null(strstr(g_shared->outcomes[0].message, "process 1 (pid "));
  assert_non_null(strstr(g_shared->outcomes[0].message, "process 0 is on host "));
}

static void a_process_dies_on_the_way(void **state) {
  (void)state;
  if (!ucx_is_here()) skip();
  static const char *const moments[] = {"card", "connected"};
  for (int i = 0; i < 2; ++i) {
    // On simulated hosts, a process sees the end of a process on another host.
    const process_t dies[] = {
        {.rank = 0}, {.rank = 1}, {.rank = 2, .dies_at = moments[i], .tamper = other_host}};
    expect_failure(3, dies, 2, MP_UNAVAILABLE, "process 2 (pid ");
    const process_t refused[] = {
        {.rank = 0}, {.rank = 1}, {.rank = 2, .refused_at = moments[i], .tamper = other_host}};
    // Once connected, the end of process 2 may be seen before its error.
    expect_failure(3, refused, 3, MP_UNAVAILABLE, i == 0 ? "the coordinator is away" : "");
  }
}

// The system refuses the n-th request of each kind in process 1: both fail, or both join.
static void any_refusal_is_heard_of(void **state) {
  (void)state;
  if (!ucx_is_here()) skip();
  expect_that_refusals_are_heard_of(300, other_host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hosts_are_joined),
      cmocka_unit_test(an_end_is_heard_of_on_other_hosts),
      cmocka_unit_test(a_host_without_a_network_is_named),
      cmocka_unit_test(a_process_dies_on_the_way),
      cmocka_unit_test(any_refusal_is_heard_of),
  };
  return cmocka_run_group_tests(tests, store_setup, store_teardown);
}
