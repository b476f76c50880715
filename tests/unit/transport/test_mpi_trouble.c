// The MPI transport in trouble: peers that are dropped while messages to them are under way, an MPI
// that fails altogether, and moments without memory.
#include "tests/unit/support/processes/fake_mpi.h"

// More than any of these drains needs on a busy machine, and what a good exit would wait in vain.
enum { LIMIT_S = 100 };

static void await_loss(inbox_t *inbox, unsigned count) {
  await_count(&inbox->num_lost, count);
}

// A header, and the pieces after it, are posted and never complete; then the peer is dropped. Its
// pending messages, including the goodbye, no longer count.
static void what_is_under_way_to_a_dropped_peer_does_not_count(void **state) {
  (void)state;
  static job_t job;
  start(&job);
  atomic_store(&g_stuck, 2);
  for (uint64_t i = 0; i < 3; ++i) assert_ok(send_number(job.worlds[0], 2, i, 20 << 20));
  const mp_transport_t *mpi = job.worlds[0]->transports[0];
  while (atomic_load(&g_num_sent[0]) < 4) usleep(200);  // the first one's window is full
  assert_false(mpi->ops->drained(job.worlds[0]->transports[0]));
  atomic_store(&g_deaf, 0);  // the next look at it fails
  await_loss(&job.inboxes[0], 2);
  mp_world_say_goodbye(job.worlds[0], 0);
  assert_true(mp_world_drain(job.worlds[0], LIMIT_S));
  end(&job);
}

// The same where only this one peer is dropped, and the others are as before.
static void the_others_are_still_reached(void **state) {
  (void)state;
  static job_t job;
  start(&job);
  atomic_store(&g_stuck, 2);
  assert_ok(send_number(job.worlds[0], 2, 0, 100));  // posted, never done
  while (atomic_load(&g_num_sent[0]) < 1) usleep(200);
  atomic_store(&g_broken, 2);
  assert_ok(send_number(job.worlds[0], 2, 1, 100));  // cannot be posted
  await_loss(&job.inboxes[0], 1);
  assert_ok(send_number(job.worlds[0], 1, 0, 100000));
  await_count(&job.inboxes[1].num_packets, 1);
  for (int i = 0; i < RANKS; ++i) mp_world_say_goodbye(job.worlds[i], 0);
  for (int i = 0; i < 2; ++i) {
    assert_true(mp_world_drain(job.worlds[i], LIMIT_S));
  }
  end(&job);
}

// Leaving waits until MPI is not called any more, which must come soon when MPI is broken too.
static void a_broken_mpi_can_be_closed(void **state) {
  (void)state;
  static job_t job;
  start(&job);
  atomic_store(&g_deaf, 1);
  await_loss(&job.inboxes[1], 2);
  assert_status(send_number(job.worlds[1], 0, 0, 8), MP_UNAVAILABLE, "nothing works any more");
  mp_world_say_goodbye(job.worlds[1], 0);
  assert_true(mp_world_drain(job.worlds[1], LIMIT_S));
  end(&job);
}

// Messages come while there is no memory for them: they wait, in order, and no peer counts as lost.
static void messages_wait_for_memory(void **state) {
  (void)state;
  static const size_t sizes[] = {8, 100, 5000, 3000000};
  enum { COUNT = 12 };
  static job_t job;
  start(&job);
  atomic_store(&g_held, 1);
  for (uint64_t i = 0; i < COUNT; ++i) assert_ok(send_number(job.worlds[0], 1, i, sizes[i % 4]));
  assert_true(mp_world_drain(job.worlds[0], LIMIT_S));
  const unsigned before = atomic_load(&g_num_received[1]);
  mp_alloc_fail_at(1, 1);
  atomic_store(&g_held, -1);
  while (atomic_load(&g_num_received[1]) == before) usleep(200);
  usleep(20000);  // a while without memory
  mp_alloc_fail_at(0, 0);
  await_count(&job.inboxes[1].num_packets, COUNT);
  assert_int_equal(job.inboxes[1].num_wrong, 0);
  assert_int_equal(job.inboxes[1].num_lost, 0);
  stop(&job);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_under_way_to_a_dropped_peer_does_not_count),
      cmocka_unit_test(the_others_are_still_reached),
      cmocka_unit_test(a_broken_mpi_can_be_closed),
      cmocka_unit_test(messages_wait_for_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
