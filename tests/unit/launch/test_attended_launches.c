// Threads that launch and wait at once, and make progress meanwhile. Two processes (worlds of
// threads) of one device each, on two hosts.
#include <pthread.h>
#include <stdatomic.h>

#include "sim/runtime/devices/launching.h"
#include "tests/unit/support/processes/pairs.h"

enum { NUM_LAUNCHES = 200 };

typedef struct {
  const pods_t *pods;
  mp_executable_t *executable;
  uint32_t rank;
  int num_done;  // launches that were over when they had been launched
} side_t;

// As a user's loop does it: a launch, its result, the next launch.
static void *launch_and_wait(void *context) {
  side_t *side = context;
  for (int i = 0; i < NUM_LAUNCHES; ++i) {
    test_launch_t l;
    pair_launch(&l, side->pods, side->rank, side->executable);
    side->num_done += mp_event_is_ready(l.done[0]);
    mp_launching_note_wait();
    launch_expect(&l, 2);
    launch_end(&l);
  }
  return NULL;
}

static void start_far_pair(pods_t *pods) {
  static const pod_option_t options[] = {{"num_devices", "1"}, {"workers", "2"}, {NULL, NULL}};
  start_pods(pods, 2, 1, options);
}

static void a_thread_that_waits_at_once_has_the_result_at_once(void **state) {
  (void)state;
  pods_t pods;
  start_far_pair(&pods);
  mp_executable_t *executables[2];
  make_pair_executables(&pods, pair_sum_program, executables);
  side_t sides[2];
  pthread_t threads[2];
  for (uint32_t rank = 0; rank < 2; ++rank) {
    sides[rank] = (side_t){.pods = &pods, .executable = executables[rank], .rank = rank};
    assert_int_equal(pthread_create(&threads[rank], NULL, launch_and_wait, &sides[rank]), 0);
  }
  for (uint32_t rank = 0; rank < 2; ++rank) pthread_join(threads[rank], NULL);
  // The side that comes second has it in any case. On a busy machine the other one gives up often.
  assert_true(sides[0].num_done + sides[1].num_done > NUM_LAUNCHES + NUM_LAUNCHES / 20);
  for (uint32_t rank = 0; rank < 2; ++rank) mp_executable_release(executables[rank]);
  stop_pods(&pods);
}

typedef struct {
  const pods_t *pods;
  mp_executable_t *executable;
  test_launch_t launch;
} peer_t;

static void *launch_peer(void *context) {
  peer_t *peer = context;
  pair_launch(&peer->launch, peer->pods, 1, peer->executable);
  return NULL;
}

// It comes on this thread, on the world's, or on one that attends.
static void a_callback_may_release_the_client_of_an_attending_thread(void **state) {
  (void)state;
  for (int round = 0; round < 5; ++round) {
    pods_t pods;
    start_far_pair(&pods);
    mp_executable_t *executables[2];
    make_pair_executables(&pods, pair_sum_program, executables);
    for (int i = 0; i < 3; ++i) {
      mp_launching_note_wait();
      (void)mp_launching_note();
    }
    mp_launching_note_wait();
    peer_t peer = {.pods = &pods, .executable = executables[1]};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, launch_peer, &peer), 0);
    test_launch_t l;
    pair_launch(&l, &pods, 0, executables[0]);
    assert_ok(mp_event_on_ready(l.done[0], release_client, pods.clients[0]));
    pods.clients[0] = NULL;
    pthread_join(thread, NULL);
    assert_ok(mp_event_await(l.done[0]));
    assert_ok(mp_event_await(peer.launch.done[0]));
    launch_end(&l);
    launch_end(&peer.launch);
    for (uint32_t rank = 0; rank < 2; ++rank) mp_executable_release(executables[rank]);
    stop_pods(&pods);
  }
}

// On a thread of its own: what it did before counts.
static void *count_waits(void *context) {
  (void)context;
  assert_false(mp_launching_note());
  mp_launching_note_wait();
  assert_false(mp_launching_note());
  mp_launching_note_wait();
  mp_launching_note_wait();  // for the same launch
  assert_true(mp_launching_note());
  mp_launching_note_wait();
  assert_true(mp_launching_note());
  assert_false(mp_launching_note());  // it has launched ahead
  mp_launching_note_wait();
  assert_false(mp_launching_note());
  mp_launching_note_wait();
  assert_true(mp_launching_note());
  return NULL;
}

static void two_waits_in_a_row_are_expected_to_be_followed_by_others(void **state) {
  (void)state;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, count_waits, NULL), 0);
  pthread_join(thread, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_thread_that_waits_at_once_has_the_result_at_once),
      cmocka_unit_test(a_callback_may_release_the_client_of_an_attending_thread),
      cmocka_unit_test(two_waits_in_a_row_are_expected_to_be_followed_by_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
