// The UCX transport between worlds of one process, over 127.0.0.1: order, sizes, strangers, memory.
#include "tests/unit/support/processes/ucx_worlds.h"

typedef struct {
  mp_world_t *worlds[RANKS];
  mp_transport_t *transports[RANKS];
  inbox_t inboxes[RANKS];
} job_t;

static void connect_all(job_t *job) {
  for (uint32_t i = 0; i < RANKS; ++i) {
    for (uint32_t k = 0; k < RANKS; ++k) {
      if (i == k) continue;
      assert_ok(mp_ucx_connect(job->transports[i], k, mp_ucx_address(job->transports[k])));
    }
  }
}

static bool start(job_t *job) {
  const mp_ucx_library_t *library = ucx_or_skip();
  if (library == NULL) return false;
  memset(job, 0, sizeof(*job));
  for (uint32_t i = 0; i < RANKS; ++i) {
    const mp_handler_t handler = {
        .deliver = inbox_deliver, .lost = inbox_lost, .context = &job->inboxes[i]};
    job->transports[i] = make_world(library, i, RANKS, &handler, &job->worlds[i]);
  }
  connect_all(job);
  for (uint32_t i = 0; i < RANKS; ++i) assert_ok(mp_world_start(job->worlds[i]));
  return true;
}

static void stop(job_t *job) {
  for (int i = 0; i < RANKS; ++i) mp_world_say_goodbye(job->worlds[i], 0);
  for (int i = 0; i < RANKS; ++i) {
    assert_true(mp_world_drain(job->worlds[i], 30));
    assert_true(mp_world_await_goodbyes(job->worlds[i], 30));
  }
  for (int i = 0; i < RANKS; ++i) assert_true(mp_transport_close(job->transports[i], 10));
  for (int i = 0; i < RANKS; ++i) mp_world_release(job->worlds[i]);
}

static void keeps_order_of_all_sizes(void **state) {
  (void)state;
  static job_t job;
  if (!start(&job)) skip();
  static const size_t sizes[] = {
      0, 8, 64, 65, 4096, 8192, 100000, 300000, 1 << 20, (1 << 20) + 1, 9000000};
  enum { ROUNDS = 60, SIZES = sizeof(sizes) / sizeof(sizes[0]) };
  for (uint64_t round = 0; round < ROUNDS; ++round) {
    for (uint32_t from = 0; from < RANKS; ++from) {
      for (uint32_t to = 0; to < RANKS; ++to) {
        const size_t bytes = sizes[(round * 7 + from + to) % (round % 10 == 0 ? SIZES : SIZES - 2)];
        assert_ok(send_number(job.worlds[from], to, round, bytes));
      }
    }
  }
  for (int i = 0; i < RANKS; ++i) {
    assert_true(await_count(&job.inboxes[i].num_packets, ROUNDS * RANKS, 100));
    assert_int_equal(job.inboxes[i].num_wrong, 0);
  }
  stop(&job);
}

static void long_queues(void **state) {
  (void)state;
  static job_t job;
  if (!start(&job)) skip();
  enum { COUNT = 5000 };
  for (uint64_t i = 0; i < COUNT; ++i) assert_ok(send_number(job.worlds[0], 1, i, i % 300));
  assert_true(await_count(&job.inboxes[1].num_packets, COUNT, 100));
  assert_int_equal(job.inboxes[1].num_wrong, 0);
  stop(&job);
}

// Messages before a goodbye arrive, however soon the end comes after it.
static void a_goodbye_comes_last(void **state) {
  (void)state;
  static job_t job;
  if (!start(&job)) skip();
  enum { COUNT = 20 };
  for (uint64_t i = 0; i < COUNT; ++i) assert_ok(send_number(job.worlds[2], 0, i, 500000));
  mp_world_say_goodbye(job.worlds[2], 0);
  assert_true(mp_world_drain(job.worlds[2], 30));
  assert_true(mp_transport_close(job.transports[2], 10));
  assert_true(await_count(&job.inboxes[0].num_packets, COUNT, 30));
  assert_int_equal(job.inboxes[0].num_wrong, 0);
  assert_true(await_count(&job.inboxes[0].num_lost, 1, 30));
  assert_non_null(strstr(job.inboxes[0].why, "has exited"));
  // Closing does not wait for processes that have left.
  for (int i = 0; i < 2; ++i) mp_world_say_goodbye(job.worlds[i], 0);
  for (int i = 0; i < 2; ++i) assert_true(mp_world_drain(job.worlds[i], 30));
  for (int i = 0; i < 2; ++i) assert_true(mp_transport_close(job.transports[i], 10));
  for (int i = 0; i < RANKS; ++i) mp_world_release(job.worlds[i]);
}

// A connection that breaks is a loss, and the others go on.
static void an_end_without_goodbye_is_a_loss(void **state) {
  (void)state;
  static job_t job;
  if (!start(&job)) skip();
  for (int i = 0; i < RANKS; ++i) {
    for (int k = 0; k < RANKS; ++k) {
      if (i != k) assert_ok(send_number(job.worlds[i], (uint32_t)k, 0, 8));
    }
  }
  for (int i = 0; i < RANKS; ++i) assert_true(await_count(&job.inboxes[i].num_packets, 2, 30));
  assert_true(mp_transport_close(job.transports[2], 10));
  for (int i = 0; i < 2; ++i) {
    assert_true(await_count(&job.inboxes[i].num_lost, 1, 30));
    assert_non_null(strstr(job.inboxes[i].why, "process 2 has ended unexpectedly"));
    assert_true(job.transports[i]->ops->is_over(job.transports[i], 2));
    assert_false(job.transports[i]->ops->is_over(job.transports[i], (uint32_t)(1 - i)));
    assert_status(send_number(job.worlds[i], 2, 1, 8), MP_UNAVAILABLE, "process 2");
  }
  assert_ok(send_number(job.worlds[0], 1, 1, 3000000));
  assert_true(await_count(&job.inboxes[1].num_packets, 3, 30));
  for (int i = 0; i < 2; ++i) mp_world_say_goodbye(job.worlds[i], 0);
  for (int i = 0; i < 2; ++i) assert_true(mp_world_drain(job.worlds[i], 30));
  for (int i = 0; i < 2; ++i) assert_true(mp_transport_close(job.transports[i], 10));
  for (int i = 0; i < RANKS; ++i) mp_world_release(job.worlds[i]);
}

// Messages of a process that does not know the key of the job are ignored.
static void strangers_are_not_heard(void **state) {
  (void)state;
  static job_t job;
  const mp_ucx_library_t *library = ucx_or_skip();
  if (library == NULL) skip();
  memset(&job, 0, sizeof(job));
  for (uint32_t i = 0; i < RANKS; ++i) {
    const mp_handler_t handler = {
        .deliver = inbox_deliver, .lost = inbox_lost, .context = &job.inboxes[i]};
    job.transports[i] = make_world(library, i, RANKS, &handler, &job.worlds[i]);
  }
  const mp_seal_key_t other = {{1, 3}};
  mp_ucx_set_key(job.transports[2], &other);
  connect_all(&job);
  for (uint32_t i = 0; i < RANKS; ++i) assert_ok(mp_world_start(job.worlds[i]));
  assert_ok(send_number(job.worlds[2], 0, 0, 8));
  assert_ok(send_number(job.worlds[2], 0, 1, 3000000));
  assert_true(mp_world_drain(job.worlds[2], 30));
  assert_ok(send_number(job.worlds[1], 0, 0, 3000000));
  assert_true(await_count(&job.inboxes[0].num_packets, 1, 30));
  usleep(200000);
  assert_int_equal(atomic_load(&job.inboxes[0].num_packets), 1);
  assert_int_equal(job.inboxes[0].num_wrong, 0);
  for (int i = 0; i < RANKS; ++i) assert_true(mp_transport_close(job.transports[i], 10));
  for (int i = 0; i < RANKS; ++i) mp_world_release(job.worlds[i]);
}

// The vector of SipHash's authors for a message of 15 bytes.
static void seals_are_siphash(void **state) {
  (void)state;
  unsigned char bytes[16];
  for (unsigned i = 0; i < 16; ++i) bytes[i] = (unsigned char)i;
  mp_seal_key_t key;
  memcpy(&key, bytes, sizeof(key));
  assert_true(mp_seal(&key, bytes, 15) == UINT64_C(0xa129ca6149be45e5));
  assert_true(mp_seal(&key, bytes, 8) != mp_seal(&key, bytes, 7));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(seals_are_siphash),
      cmocka_unit_test(keeps_order_of_all_sizes),
      cmocka_unit_test(long_queues),
      cmocka_unit_test(a_goodbye_comes_last),
      cmocka_unit_test(an_end_without_goodbye_is_a_loss),
      cmocka_unit_test(strangers_are_not_heard),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
