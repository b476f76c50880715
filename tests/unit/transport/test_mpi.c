// The MPI transport over a stand-in for MPI: messages that come late, sends that take long, errors.
#include "tests/unit/support/fake_mpi.h"

// ---- Tests ----

static void keeps_order_of_all_sizes(void **state) {
  (void)state;
  static job_t job;
  start(&job);
  static const size_t sizes[] = {0,      8, 64, 65, 65536, 65537, 100000, 1 << 20, (1 << 20) + 1,
                                 9000000};
  enum { ROUNDS = 60, SIZES = sizeof(sizes) / sizeof(sizes[0]) };
  for (uint64_t round = 0; round < ROUNDS; ++round) {
    for (uint32_t from = 0; from < RANKS; ++from) {
      for (uint32_t to = 0; to < RANKS; ++to) {
        size_t bytes = sizes[(round * 7 + from + to) % (round % 10 == 0 ? SIZES : SIZES - 2)];
        assert_ok(send_number(job.worlds[from], to, round, bytes));
      }
    }
  }
  for (int i = 0; i < RANKS; ++i) {
    await_count(&job.inboxes[i].num_packets, ROUNDS * RANKS);
    assert_int_equal(job.inboxes[i].num_wrong, 0);
  }
  stop(&job);
}

static void long_queues(void **state) {
  (void)state;
  static job_t job;
  start(&job);
  enum { COUNT = 2000 };
  for (uint64_t i = 0; i < COUNT; ++i) assert_ok(send_number(job.worlds[0], 1, i, i % 300));
  await_count(&job.inboxes[1].num_packets, COUNT);
  assert_int_equal(job.inboxes[1].num_wrong, 0);
  stop(&job);
}

static void an_error_loses_the_peer(void **state) {
  (void)state;
  static job_t job;
  start(&job);
  atomic_store(&g_broken, 2);
  assert_ok(send_number(job.worlds[0], 2, 0, 100000));
  await_count(&job.inboxes[0].num_lost, 1);
  assert_status(send_number(job.worlds[0], 2, 1, 8), MP_UNAVAILABLE, "the cable is broken");
  assert_ok(send_number(job.worlds[0], 1, 0, 100000));  // the others are as before
  await_count(&job.inboxes[1].num_packets, 1);
  // Who was lost is not waited for.
  for (int i = 0; i < RANKS; ++i) mp_world_say_goodbye(job.worlds[i], 0);
  for (int i = 0; i < 2; ++i) assert_true(mp_world_drain(job.worlds[i], 100));
  assert_true(mp_world_await_goodbyes(job.worlds[0], 100));
  end(&job);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keeps_order_of_all_sizes),
      cmocka_unit_test(long_queues),
      cmocka_unit_test(an_error_loses_the_peer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
