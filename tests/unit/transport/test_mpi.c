// The MPI transport over a stand-in for MPI: messages that come late, sends that take long, errors.
#include "tests/unit/support/processes/fake_mpi.h"

// ---- Tests ----

static void keeps_order_of_all_sizes(void **state) {
  (void)state;
  static job_t job;
  start(&job);
  static const size_t sizes[] = {0,      8,      64,     65,      32768,         32769,
                                 262144, 262145, 100000, 1 << 20, (1 << 20) + 1, 9000000};
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
  // Closing does not wait for lost processes.
  for (int i = 0; i < RANKS; ++i) mp_world_say_goodbye(job.worlds[i], 0);
  for (int i = 0; i < 2; ++i) assert_true(mp_world_drain(job.worlds[i], 100));
  assert_true(mp_world_await_goodbyes(job.worlds[0], 100));
  end(&job);
}

// One payload in several packets: what goes before the data is not the same for all of them.
static void one_payload_in_several_packets(void **state) {
  (void)state;
  static job_t job;
  start(&job);
  mp_payload_t *payload;
  assert_ok(mp_payload_create(job.worlds[0], 100000, &payload));
  unsigned char *data = payload->data;
  for (size_t i = 0; i < payload->bytes; ++i) data[i] = byte_at(0, 0, i);
  for (uint32_t to = 0; to < RANKS; ++to) {
    const mp_envelope_t envelope = {.channel = CHANNEL, .key = {0, payload->bytes, to}};
    assert_ok(mp_world_send(job.worlds[0], to, &envelope, payload));
  }
  mp_payload_release(payload);
  for (int i = 0; i < RANKS; ++i) {
    await_count(&job.inboxes[i].num_packets, 1);
    assert_int_equal(job.inboxes[i].num_wrong, 0);
  }
  stop(&job);
}

static void what_lies_before_the_data(void **state) {
  (void)state;
  mp_payload_block_t *block = mp_payload_block_create(100);
  assert_non_null(block);
  char words[MP_PAYLOAD_ALIGNMENT] = "to all";
  assert_true(mp_payload_block_write_wire(block, words, sizeof(words)));
  assert_true(mp_payload_block_write_wire(block, words, sizeof(words)));
  words[0] = 'T';
  assert_false(mp_payload_block_write_wire(block, words, sizeof(words)));
  assert_memory_equal((char *)mp_payload_block_data(block) - sizeof(words), "to all", 7);
  mp_payload_block_release(block);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keeps_order_of_all_sizes),  cmocka_unit_test(long_queues),
      cmocka_unit_test(an_error_loses_the_peer),   cmocka_unit_test(one_payload_in_several_packets),
      cmocka_unit_test(what_lies_before_the_data),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
