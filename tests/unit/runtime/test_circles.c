// Circles of waits between processes: launches of different groups in different orders.
//
// MINIPOD_TEST_CIRCLES: how many random orders (30).
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sim/base/os/clock.h"
#include "sim/runtime/circles/probe.h"
#include "sim/runtime/launch/launch.h"
#include "sim/runtime/watch/watch.h"
#include "tests/unit/support/launches.h"
#include "tests/unit/support/processes/worlds.h"
#include "tests/unit/support/programs.h"

enum { RANKS = 4, MOST = 16 };

static const pod_option_t k_options[] = {{"num_devices", "1"},         {"workers", "1"},
                                         {"match", "groups"},          {"collective_warn", "0"},
                                         {"collective_timeout", "60"}, {NULL, NULL}};

// The group is a set of bits; the other devices are alone.
static mp_program_t *group_program(uint32_t group) {
  int64_t table[RANKS * RANKS];
  int64_t rows = 0, columns = 0;
  for (uint32_t i = 0; i < RANKS * RANKS; ++i) table[i] = -1;
  for (uint32_t rank = 0; rank < RANKS; ++rank) {
    if ((group >> rank & 1) != 0) table[columns++] = rank;
  }
  rows = 1;
  for (uint32_t rank = 0; rank < RANKS; ++rank) {
    if ((group >> rank & 1) == 0) table[columns * rows++] = rank;
  }
  char *name = NULL;
  test_program_t p;
  program_begin(&p, "sum", 1, RANKS);
  name = mp_arena_alloc(p.arena, 32);
  (void)snprintf(name, 32, "train.py:%u", group);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  mp_collective_t *c =
      program_collective(&p, MP_COLLECTIVE_ALL_REDUCE, "stablehlo.all_reduce", RANKS, x, y);
  c->location = name;
  assert_ok(mp_groups_create(p.arena, MP_GROUPS_FLATTENED_IDS, 1, RANKS, table, rows, columns,
                             &c->groups));
  return program_end(&p);
}

static void launch_group(test_launch_t *l, const pods_t *pods, uint32_t rank, uint32_t group) {
  static const uint32_t ids[RANKS] = {0, 1, 2, 3};
  mp_executable_t *executable = NULL;
  assert_ok(mp_executable_create(pods->clients[rank], group_program(group), ids, &executable));
  launch_begin(l, executable, 1);
  l->num_devices = 1;
  l->logical[0] = rank;
  l->arguments[0][0] = make_f32(mp_client_device(pods->clients[rank], rank), 4, 1);
  launch_go(l);
  mp_executable_release(executable);
}

static void pause_ms(long ms) {
  nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

// What each rank launches, in order; 0 ends it.
typedef struct {
  uint32_t of[RANKS][MOST];
} orders_t;

typedef struct {
  test_launch_t launches[RANKS][MOST];
} run_t;

static void launch_all(run_t *run, const pods_t *pods, const orders_t *orders) {
  for (uint32_t i = 0; i < MOST; ++i) {
    for (uint32_t rank = 0; rank < RANKS; ++rank) {
      if (orders->of[rank][i] != 0)
        launch_group(&run->launches[rank][i], pods, rank, orders->of[rank][i]);
    }
  }
}

static void end_all(run_t *run, const orders_t *orders) {
  for (uint32_t rank = 0; rank < RANKS; ++rank) {
    for (uint32_t i = 0; i < MOST && orders->of[rank][i] != 0; ++i)
      launch_end(&run->launches[rank][i]);
  }
}

static void expect_stuck_or_done(test_launch_t *l, const char *text) {
  mp_status_t status = mp_event_await(l->done[0]);
  if (status == NULL) return;
  assert_int_equal(mp_status_code(status), MP_ABORTED);
  if (strncmp(mp_status_message(status), text, strlen(text)) != 0) {
    fail_msg("%s\ninstead of\n%s", mp_status_message(status), text);
  }
  mp_status_release(status);
}

static void expect_stuck(test_launch_t *l, const char *text) {
  expect_stuck_or_done(l, text);
  mp_status_t status = mp_event_await(l->done[0]);
  assert_non_null(status);
  mp_status_release(status);
}

static const char k_three[] =
    "collectives are stuck: each of these processes waits for the next one, and the last one for "
    "the first: process 0: device 0 waits in sum at stablehlo.all_reduce (train.py:3) of devices "
    "0, 1 for device 1; process 1: device 1 waits in sum at stablehlo.all_reduce (train.py:6) of "
    "devices 1, 2 for device 2; process 2: device 2 waits in sum at stablehlo.all_reduce "
    "(train.py:5) of devices 0, 2 for device 0";

// Process 3 has no part in it.
static void test_three(void **state) {
  (void)state;
  static const orders_t orders = {{{3, 5}, {6, 3}, {5, 6}, {8}}};
  pods_t pods;
  static run_t run;
  start_pods(&pods, RANKS, 2, k_options);
  const double begin = mp_clock_seconds();
  launch_all(&run, &pods, &orders);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    for (uint32_t i = 0; i < 2; ++i) expect_stuck(&run.launches[rank][i], k_three);
  }
  launch_expect(&run.launches[3][0], 1);
  assert_true(mp_clock_seconds() - begin < 10);  // about 1 s
  end_all(&run, &orders);
  // The next launches match again.
  static const orders_t right = {{{3, 5, 15}, {3, 6, 15}, {5, 6, 15}, {15}}};
  launch_all(&run, &pods, &right);
  launch_expect(&run.launches[3][0], 4);
  launch_expect(&run.launches[2][1], 2);
  end_all(&run, &right);
  stop_pods(&pods);
}

// The circle has two of the three members of a group; the third one gets the error, too.
static void test_two_of_three(void **state) {
  (void)state;
  static const orders_t orders = {{{3, 7}, {7, 3}, {7}}};
  pods_t pods;
  static run_t run;
  start_pods(&pods, RANKS, 4, k_options);
  launch_all(&run, &pods, &orders);
  static const char text[] =
      "collectives are stuck: each of these processes waits for the next one, and the last one for "
      "the first: process 0: device 0 waits in sum at stablehlo.all_reduce (train.py:3) of devices "
      "0, 1 for device 1; process 1: device 1 waits in sum at stablehlo.all_reduce (train.py:7) of "
      "devices 0-2 for device 0";
  for (uint32_t rank = 0; rank < 3; ++rank) expect_stuck(&run.launches[rank][0], text);
  for (uint32_t rank = 0; rank < 2; ++rank) expect_stuck(&run.launches[rank][1], text);
  end_all(&run, &orders);
  stop_pods(&pods);
}

// Each process waits for its first launch before it makes the next one.
static void test_launches_that_never_come(void **state) {
  (void)state;
  static const orders_t orders = {{{3}, {6}, {5}, {8}}};
  static const orders_t right = {{{3, 5, 15}, {3, 6, 15}, {5, 6, 15}, {15}}};
  pods_t pods;
  static run_t run;
  start_pods(&pods, RANKS, 2, k_options);
  const double begin = mp_clock_seconds();
  launch_all(&run, &pods, &orders);
  for (uint32_t rank = 0; rank < 3; ++rank) expect_stuck(&run.launches[rank][0], k_three);
  launch_expect(&run.launches[3][0], 1);
  assert_true(mp_clock_seconds() - begin < 10);  // about 1 s
  // The launches for which the others have waited fail, too, unless the values of the others have
  // come before their errors.
  static const uint32_t others[] = {5, 3, 6};
  for (uint32_t rank = 0; rank < 3; ++rank) {
    launch_group(&run.launches[rank][1], &pods, rank, others[rank]);
    expect_stuck_or_done(&run.launches[rank][1], k_three);
    launch_end(&run.launches[rank][1]);
  }
  end_all(&run, &orders);
  launch_all(&run, &pods, &right);
  launch_expect(&run.launches[3][0], 4);
  launch_expect(&run.launches[2][1], 2);
  end_all(&run, &right);
  stop_pods(&pods);
}

// A process that waits for nothing may still make the right launch: nothing fails before that.
static void test_launches_that_come_late(void **state) {
  (void)state;
  atomic_store(&mp_watch_tick_ms, 20);
  pods_t pods;
  static run_t run;
  start_pods(&pods, RANKS, 4, k_options);
  static const orders_t orders = {{{3, 5}, {6, 3}, {5, 6}}};
  static const orders_t early = {{{3, 5}, {6, 3}, {0}}};
  launch_all(&run, &pods, &early);
  pause_ms(300);
  launch_group(&run.launches[2][0], &pods, 2, 6);  // not 5
  launch_group(&run.launches[2][1], &pods, 2, 5);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    for (uint32_t i = 0; i < 2; ++i) launch_expect(&run.launches[rank][i], 2);
  }
  end_all(&run, &orders);

  launch_all(&run, &pods, &early);
  pause_ms(300);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    assert_false(mp_event_is_ready(run.launches[rank][0].done[0]));
  }
  launch_group(&run.launches[2][0], &pods, 2, 5);
  launch_group(&run.launches[2][1], &pods, 2, 6);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    for (uint32_t i = 0; i < 2; ++i) expect_stuck(&run.launches[rank][i], k_three);
  }
  end_all(&run, &orders);
  stop_pods(&pods);
  atomic_store(&mp_watch_tick_ms, 500);
}

// ---- Random orders ----

static uint32_t draw(uint64_t *seed, uint32_t below) {
  *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*seed >> 33) % below;
}

// Each group is launched by all of its members. At first the orders agree; then each rank swaps
// some neighbours.
static void draw_orders(uint64_t seed, orders_t *orders) {
  uint32_t count[RANKS] = {0};
  memset(orders, 0, sizeof(*orders));
  for (uint32_t n = 0; n < MOST - 1; ++n) {
    const uint32_t group = 1 + draw(&seed, (1 << RANKS) - 1);
    for (uint32_t rank = 0; rank < RANKS; ++rank) {
      if ((group >> rank & 1) != 0) orders->of[rank][count[rank]++] = group;
    }
  }
  for (uint32_t swaps = draw(&seed, 3); swaps-- > 0;) {
    const uint32_t rank = draw(&seed, RANKS);
    if (count[rank] < 2) continue;
    const uint32_t at = draw(&seed, count[rank] - 1);
    const uint32_t other = orders->of[rank][at];
    orders->of[rank][at] = orders->of[rank][at + 1];
    orders->of[rank][at + 1] = other;
  }
}

// Whether all launches end if each waits for its members: those that all members have first end.
static bool would_end(const orders_t *orders) {
  uint32_t next[RANKS] = {0};
  for (bool again = true; again;) {
    again = false;
    for (uint32_t group = 1; group < 1 << RANKS; ++group) {
      bool is_first = true;
      for (uint32_t r = 0; r < RANKS; ++r) {
        is_first &= (group >> r & 1) == 0 || orders->of[r][next[r]] == group;
      }
      for (uint32_t r = 0; r < RANKS && is_first; ++r) next[r] += group >> r & 1;
      again |= is_first;
    }
  }
  for (uint32_t r = 0; r < RANKS; ++r) {
    if (orders->of[r][next[r]] != 0) return false;
  }
  return true;
}

typedef struct {
  const pods_t *pods;
  const uint32_t *order;
  test_launch_t *launches;
  uint32_t rank;
  bool waits;  // for each launch before the next one
  uint64_t seed;
} launcher_t;

static void *launch_some(void *context) {
  launcher_t *l = context;
  for (uint32_t i = 0; l->order[i] != 0; ++i) {
    if (draw(&l->seed, 4) == 0) pause_ms(draw(&l->seed, 5));
    launch_group(&l->launches[i], l->pods, l->rank, l->order[i]);
    if (l->waits) mp_status_release(mp_event_await(l->launches[i].done[0]));
  }
  return NULL;
}

static void test_random(void **state) {
  (void)state;
  const char *variable = getenv("MINIPOD_TEST_CIRCLES");
  const uint64_t rounds = variable == NULL ? 30 : strtoull(variable, NULL, 10);
  atomic_store(&mp_watch_tick_ms, 1);
  static run_t run;
  static orders_t orders;
  uint32_t num_stuck = 0;
  for (uint64_t seed = 1; seed <= rounds; ++seed) {
    pods_t pods;
    draw_orders(seed, &orders);
    start_pods(&pods, RANKS, seed % 2 == 0 ? 2 : 4, k_options);
    pthread_t threads[RANKS];
    launcher_t launchers[RANKS];
    for (uint32_t r = 0; r < RANKS; ++r) {
      launchers[r] =
          (launcher_t){&pods, orders.of[r], run.launches[r], r, seed % 3 == 0, seed * RANKS + r};
      assert_int_equal(pthread_create(&threads[r], NULL, launch_some, &launchers[r]), 0);
    }
    for (uint32_t r = 0; r < RANKS; ++r) pthread_join(threads[r], NULL);
    uint32_t num_failed = 0;
    for (uint32_t r = 0; r < RANKS; ++r) {
      for (uint32_t i = 0; orders.of[r][i] != 0; ++i) {
        mp_status_t status = mp_event_await(run.launches[r][i].done[0]);
        num_failed += status != NULL;
        if (status != NULL && mp_status_code(status) != MP_ABORTED) {
          fail_msg("seed %u: %s", (unsigned)seed, mp_status_message(status));
        }
        mp_status_release(status);
      }
    }
    const bool is_stuck = !would_end(&orders);
    num_stuck += is_stuck;
    if (is_stuck != (num_failed != 0)) {
      fail_msg("seed %u: %u launches failed, but %s", (unsigned)seed, num_failed,
               is_stuck ? "it is stuck" : "it is not stuck");
    }
    end_all(&run, &orders);
    stop_pods(&pods);
  }
  atomic_store(&mp_watch_tick_ms, 500);
  printf("%u of %u orders were stuck\n", num_stuck, (unsigned)rounds);
}

// ---- Probes ----

static void test_probes_that_are_none(void **state) {
  (void)state;
  mp_probe_t probe = {.round = 7, .changes = 9, .num_hops = 2}, read;
  probe.hops[0] = (mp_probe_hop_t){3, 1, 2, 4, MP_STR("process 3: first")};
  probe.hops[1] = (mp_probe_hop_t){2, 5, 6, 8, MP_STR("process 2: second")};
  mp_strbuf_t bytes, text;
  mp_strbuf_init(&bytes);
  mp_strbuf_init(&text);
  mp_probe_write(&probe, &bytes);
  assert_true(mp_probe_read(bytes.data, bytes.size, &read));
  assert_int_equal(read.num_hops, 2);
  assert_int_equal(read.hops[1].number, 8);
  mp_probe_describe(&read, &text);
  assert_non_null(strstr(mp_strbuf_text(&text), "process 2: second; process 3: first"));
  for (size_t size = 0; size < bytes.size; ++size) {
    assert_false(mp_probe_read(bytes.data, size, &read));
  }
  ((uint64_t *)(void *)bytes.data)[2] = MP_PROBE_HOPS + 1;
  assert_false(mp_probe_read(bytes.data, bytes.size, &read));
  mp_strbuf_deinit(&text);
  mp_strbuf_deinit(&bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_probes_that_are_none),
      cmocka_unit_test(test_three),
      cmocka_unit_test(test_two_of_three),
      cmocka_unit_test(test_launches_that_never_come),
      cmocka_unit_test(test_launches_that_come_late),
      cmocka_unit_test(test_random),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
