// Transfers that share links: max-min fair rates, ends, order.

#include "sim/model/network/traffic/flows.h"

#include <math.h>
#include <stdlib.h>

#include "tests/unit/support/network_test.h"

// A line of four chips, 100 bytes/s each way, a second per link.
#define LINE "mesh:4 links.latency:1s links.bandwidth:100B/s"

static void start(mp_network_t *network, mp_flows_t *flows, int32_t from, int32_t to, double bytes,
                  double now, uint64_t tag) {
  mp_transfer_t transfer;
  assert_ok(mp_network_message(network, mp_network_device(from), mp_network_device(to), bytes,
                               &transfer));
  assert_ok(mp_flows_start(flows, &transfer, now, tag));
}

// The next transfer that ends must be this one, at this time.
static void check_end(mp_flows_t *flows, double wanted_time, uint64_t wanted_tag) {
  double time, end;
  uint64_t tag;
  while (mp_flows_next(flows, &time)) {
    if (!mp_flows_finish(flows, time, &end, &tag)) continue;
    assert_true(end == time);
    assert_int_equal(tag, wanted_tag);
    if (fabs(end - wanted_time) > 1e-9 * wanted_time) fail_msg("%.17g, not %g", end, wanted_time);
    return;
  }
  fail_msg("transfer %d does not end", (int)wanted_tag);
}

static void check_done(mp_flows_t *flows) {
  double time;
  assert_false(mp_flows_next(flows, &time));
  assert_int_equal(mp_flows_count(flows), 0);
}

static void test_alone(void **state) {
  (void)state;
  mp_network_t *network = network_of(LINE);
  mp_flows_t *flows = NULL;
  assert_ok(mp_flows_create(network, &flows));
  check_done(flows);
  start(network, flows, 0, 1, 100, 0, 7);
  check_end(flows, 2, 7);
  start(network, flows, 0, 3, 50, 10, 8);
  assert_int_equal(mp_flows_count(flows), 1);
  check_end(flows, 13.5, 8);
  // Nothing to send, and nowhere to send it.
  start(network, flows, 0, 1, 0, 20, 9);
  check_end(flows, 21, 9);
  start(network, flows, 2, 2, 1000, 22, 10);
  check_end(flows, 22, 10);
  check_done(flows);
  mp_flows_release(flows);
  mp_network_release(network);
}

// Both directions of a link are links of their own.
static void test_sharing(void **state) {
  (void)state;
  mp_network_t *network = network_of(LINE);
  mp_flows_t *flows = NULL;
  assert_ok(mp_flows_create(network, &flows));
  start(network, flows, 0, 1, 200, 0, 1);  // flows from 1
  start(network, flows, 0, 1, 100, 0, 2);
  start(network, flows, 1, 0, 100, 0, 3);
  check_end(flows, 2, 3);
  check_end(flows, 3, 2);  // half of the link each
  check_end(flows, 4, 1);  // all of it for the last 100
  // One that comes later.
  start(network, flows, 0, 1, 100, 10, 4);  // alone from 11 to 11.5
  start(network, flows, 0, 1, 100, 10.5, 5);
  check_end(flows, 12.5, 4);
  check_end(flows, 13, 5);
  check_done(flows);
  mp_flows_release(flows);
  mp_network_release(network);
}

// The textbook's line: one flow over all links, one over each, two over the last.
static void test_max_min(void **state) {
  (void)state;
  mp_network_t *network = network_of(LINE);
  mp_flows_t *flows = NULL;
  assert_ok(mp_flows_create(network, &flows));
  start(network, flows, 0, 3, 1000, 0, 0);  // limited by the last link: 100 / 3
  start(network, flows, 0, 1, 1000, 2, 1);  // what is left: 200 / 3
  start(network, flows, 1, 2, 1000, 2, 2);
  start(network, flows, 2, 3, 1000, 2, 3);
  start(network, flows, 2, 3, 1000, 2, 4);
  double time, end;
  uint64_t tag;
  assert_true(mp_flows_next(flows, &time) && time == 3);
  assert_false(mp_flows_finish(flows, time, &end, &tag));
  const uint32_t first = link_named(network, "slice 0 (0) +x");
  const uint32_t last = link_named(network, "slice 0 (2) +x");
  assert_true(fabs(mp_flows_link_rate(flows, first) - 100) < 1e-9);
  assert_true(fabs(mp_flows_link_rate(flows, last) - 100) < 1e-9);
  assert_true(mp_flows_link_rate(flows, link_named(network, "slice 0 (1) -x")) == 0);
  check_end(flows, 3 + 1000 / (200. / 3), 1);
  check_end(flows, 18, 2);
  check_end(flows, 33, 0);  // all three at a third until the end
  check_end(flows, 33, 3);
  check_end(flows, 33, 4);
  check_done(flows);
  mp_flows_release(flows);
  mp_network_release(network);
}

// A transfer of many flows takes as many shares.
static void test_times(void **state) {
  (void)state;
  mp_network_t *network = network_of(LINE);
  mp_flows_t *flows = NULL;
  assert_ok(mp_flows_create(network, &flows));
  const uint32_t link = link_named(network, "slice 0 (0) +x");
  const mp_network_use_t three = {link, 3}, one = {link, 1};
  const mp_transfer_t many = {-1, -1, 0, 100, 1, &three}, single = {0, 1, 0, 100, 1, &one};
  assert_ok(mp_flows_start(flows, &many, 0, 1));
  assert_ok(mp_flows_start(flows, &single, 0, 2));
  check_end(flows, 4, 1);  // a quarter of the link each of the four flows
  check_end(flows, 4, 2);
  check_done(flows);
  mp_flows_release(flows);
  mp_network_release(network);
}

// Several ends may be passed at once, and come out in order.
static void test_late_taker(void **state) {
  (void)state;
  mp_network_t *network = network_of(LINE);
  mp_flows_t *flows = NULL;
  assert_ok(mp_flows_create(network, &flows));
  start(network, flows, 0, 1, 300, 0, 1);
  start(network, flows, 1, 2, 100, 0, 2);
  start(network, flows, 2, 3, 200, 0, 3);
  start(network, flows, 3, 2, 200, 0, 4);
  double time;
  uint64_t tag;
  for (uint64_t wanted = 2; wanted <= 4; ++wanted) {
    assert_true(mp_flows_finish(flows, 3.5, &time, &tag));
    assert_int_equal(tag, wanted);
    assert_true(time == (wanted == 2 ? 2 : 3));
  }
  assert_false(mp_flows_finish(flows, 3.5, &time, &tag));
  // A start may come after ends that were not taken yet.
  start(network, flows, 1, 2, 100, 5, 5);
  assert_int_equal(mp_flows_count(flows), 2);
  check_end(flows, 4, 1);
  check_end(flows, 7, 5);
  check_done(flows);
  mp_flows_release(flows);
  mp_network_release(network);
}

// ---- Random transfers ----

static uint64_t g_state;

static uint32_t below(uint32_t n) {
  g_state = g_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((g_state >> 33) % n);
}

// No link carries more than its bandwidth.
static void check_rates(mp_network_t *network, mp_flows_t *flows) {
  for (uint32_t i = 0; i < mp_network_num_links(network); ++i) {
    assert_true(mp_flows_link_rate(flows, i) <=
                mp_network_link(network, i)->bandwidth * (1 + 1e-9));
  }
}

// Runs random transfers; returns a sum that depends on all times' bits.
static double run_random(const char *pod, uint64_t seed, bool has_checks) {
  mp_network_t *network = network_of(pod);
  mp_flows_t *flows = NULL;
  assert_ok(mp_flows_create(network, &flows));
  g_state = seed;
  const uint32_t devices = (uint32_t)mp_pod_info(mp_network_pod(network))->num_devices;
  enum { COUNT = 300 };
  double digest = 0, time = 0, end;
  uint32_t started = 0, ended = 0;
  uint64_t tag;
  bool is_known[COUNT] = {false};
  while (ended < COUNT) {
    while (started < COUNT && (started - ended < 20 || below(4) == 0)) {
      const int32_t from = (int32_t)below(devices), to = (int32_t)below(devices);
      start(network, flows, from, to, 1e6 * (1 + below(100)), time, started++);
    }
    assert_true(mp_flows_next(flows, &time));
    while (mp_flows_finish(flows, time, &end, &tag)) {
      assert_true(tag < started && !is_known[tag]);
      is_known[tag] = true;
      ++ended;
      digest = digest * 1.0000001 + end * (double)(tag + 1);
    }
    if (has_checks) check_rates(network, flows);
  }
  check_done(flows);
  mp_flows_release(flows);
  mp_network_release(network);
  return digest;
}

// Starts some transfers at a time, and takes their ends out: a number that depends on all bits.
static double run_round(mp_network_t *network, mp_flows_t *flows, uint64_t seed, double begin) {
  enum { COUNT = 12 };
  g_state = seed;
  for (uint32_t i = 0; i < COUNT; ++i) {
    const int32_t from = (int32_t)below(16), to = (int32_t)below(16);
    start(network, flows, from, to, 1e6 * (1 + below(4)), begin, i);
  }
  double digest = 0, time, end;
  uint64_t tag;
  while (mp_flows_next(flows, &time)) {
    while (mp_flows_finish(flows, time, &end, &tag)) {
      digest = digest * 1.0000001 + end * (double)(tag + 1);
    }
  }
  return digest;
}

// What was under way before, in the same order or in another one, changes nothing.
static void test_rounds(void **state) {
  (void)state;
  enum { ROUNDS = 40 };
  mp_network_t *network = network_of("torus:4x4");
  mp_flows_t *flows = NULL;
  assert_ok(mp_flows_create(network, &flows));
  for (uint32_t i = 0; i < ROUNDS; ++i) {
    mp_flows_t *fresh = NULL;
    assert_ok(mp_flows_create(network, &fresh));
    const uint64_t seed = 1 + i % 7;
    const double digest = run_round(network, flows, seed, i);
    const double alone = run_round(network, fresh, seed, i);
    assert_memory_equal(&digest, &alone, sizeof(digest));
    mp_flows_release(fresh);
  }
  mp_flows_release(flows);
  mp_network_release(network);
}

static void test_random(void **state) {
  (void)state;
  static const char *const pods[] = {"torus:4x4", "mesh:3x3x3", "switch:9",
                                     "torus:4x2 slices:2 hosts:4", "ring:6 cores_per_chip:2"};
  for (size_t p = 0; p < sizeof(pods) / sizeof(pods[0]); ++p) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const double digest = run_random(pods[p], seed, true);
      const double again = run_random(pods[p], seed, false);
      assert_memory_equal(&digest, &again, sizeof(digest));
    }
  }
}

// Whether rates are max-min fair: each of some transfers has a full link where none is faster.
static void test_random_rates(void **state) {
  (void)state;
  enum { COUNT = 40 };
  mp_network_t *network = network_of("torus:4x4");
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    mp_flows_t *flows = NULL;
    mp_transfer_t transfers[COUNT];
    double rates[COUNT], time;
    uint64_t tag;
    assert_ok(mp_flows_create(network, &flows));
    g_state = seed;
    for (uint32_t i = 0; i < COUNT; ++i) {
      const int32_t from = (int32_t)below(16);
      assert_ok(mp_network_message(network, mp_network_device(from),
                                   mp_network_device((from + 1 + (int32_t)below(15)) % 16), 1e12,
                                   &transfers[i]));
      transfers[i].latency = 0;
      assert_ok(mp_flows_start(flows, &transfers[i], 0, i));
    }
    assert_false(mp_flows_finish(flows, 0, &time, &tag));
    for (uint32_t i = 0; i < COUNT; ++i) rates[i] = mp_flows_rate(flows, i);
    for (uint32_t i = 0; i < COUNT; ++i) {
      bool is_held = false;
      for (uint32_t u = 0; u < transfers[i].num_uses && !is_held; ++u) {
        const uint32_t link = transfers[i].uses[u].link;
        if (mp_flows_link_rate(flows, link) <
            mp_network_link(network, link)->bandwidth * (1 - 1e-9)) {
          continue;
        }
        is_held = true;
        for (uint32_t k = 0; k < COUNT && is_held; ++k) {
          for (uint32_t v = 0; v < transfers[k].num_uses; ++v) {
            if (transfers[k].uses[v].link == link && rates[k] > rates[i] * (1 + 1e-9)) {
              is_held = false;
            }
          }
        }
      }
      assert_true(is_held);
    }
    mp_flows_release(flows);
  }
  mp_network_release(network);
}

// Thousands of transfers that begin and end together.
static void test_many(void **state) {
  (void)state;
  mp_network_t *network = network_of("torus:100x100");
  mp_flows_t *flows = NULL;
  assert_ok(mp_flows_create(network, &flows));
  for (int round = 0; round < 5; ++round) {
    for (int32_t i = 0; i < 10000; ++i) {
      start(network, flows, i, (i + 250) % 10000, 1e6, round, (uint64_t)i);
    }
    double time;
    uint64_t tag, count = 0;
    while (mp_flows_finish(flows, round + 1, &time, &tag)) ++count;
    assert_int_equal(count, 10000);
  }
  check_done(flows);
  mp_flows_release(flows);
  mp_network_release(network);
}

// The record of a transfer is its bytes, and other transfers get the rest of the link: a link never
// carries more than its bandwidth, and no transfer waits longer than that requires.
static void test_what_others_leave(void **state) {
  (void)state;
  mp_network_t *network = network_of(LINE);
  mp_flows_t *flows = NULL;
  mp_flows_log_t log = {0};
  assert_ok(mp_flows_create(network, &flows));
  mp_flows_record(flows, &log);
  start(network, flows, 0, 1, 200, 0, 1);  // 1 to 2 alone, to 4 with half of the link
  start(network, flows, 0, 1, 100, 1, 2);  // 2 to 4
  check_end(flows, 4, 1);
  check_end(flows, 4, 2);
  check_done(flows);
  double bytes = 0;
  for (uint32_t i = 0; i < log.spans.count; ++i) {
    const mp_flows_span_t *span = &log.spans.items[i];
    bytes += span->rate * (span->end - span->begin);
  }
  assert_float_equal(bytes, 300, 1e-9);
  assert_false(log.is_short);
  mp_flows_release(flows);

  // The link is full from 1 to 4. Another link is free.
  assert_ok(mp_flows_create(network, &flows));
  assert_ok(mp_flows_yield(flows, log.spans.count, log.spans.items));
  start(network, flows, 0, 1, 50, 0, 1);
  start(network, flows, 2, 3, 50, 0, 2);
  check_end(flows, 1.5, 2);
  check_end(flows, 4.5, 1);
  start(network, flows, 0, 1, 50, 10, 3);
  check_end(flows, 11.5, 3);
  mp_flows_release(flows);

  // 60 of 100 bytes/s go away from before the beginning until 3.
  const mp_network_use_t use = log.spans.items[0].uses[0];
  const mp_flows_span_t some = {&use, 1, 60, -5, 3, 0};
  assert_ok(mp_flows_create(network, &flows));
  assert_ok(mp_flows_yield(flows, 1, &some));
  start(network, flows, 0, 1, 100, 0, 1);
  check_end(flows, 3.2, 1);
  check_done(flows);
  mp_flows_release(flows);
  MP_ARRAY_FREE(&log.spans);
  mp_network_release(network);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_alone),      cmocka_unit_test(test_sharing),
      cmocka_unit_test(test_max_min),    cmocka_unit_test(test_times),
      cmocka_unit_test(test_late_taker), cmocka_unit_test(test_rounds),
      cmocka_unit_test(test_random),     cmocka_unit_test(test_random_rates),
      cmocka_unit_test(test_many),       cmocka_unit_test(test_what_others_leave),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
