// Hosts in virtual time, by hand: what their devices share, copies to and from their memory, what
// launches cost them.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/model/clock/host_flows.h"
#include "tests/unit/support/timed.h"

static void expect_near(double found, double expected) {
  if (fabs(found - expected) > 1e-9 * expected) fail_msg("%.9f, expected %.9f", found, expected);
}

static double micros(mp_moment_t moment) {
  return mp_moment_seconds(moment) * 1e6;
}

// ---- What is shared ----

static const double k_no_latency = 0;

// Adds a transfer of so many megabytes at 1 GB/s.
static void add(mp_host_flows_t *flows, uint64_t number, uint32_t device, double begin_us,
                double latency, double megabytes) {
  const mp_host_flow_t flow = {.device = device,
                               .number = number,
                               .begin = mp_moment_of(begin_us * 1e-6),
                               .latency = latency,
                               .bytes = megabytes * 1e6,
                               .rate = 1e9};
  assert_ok(mp_host_flows_add(flows, &flow));
}

// The end of a transfer in microseconds.
static double end_of(const mp_host_flows_t *flows, uint64_t number) {
  uint32_t count;
  const mp_host_flow_t *flow = mp_host_flows_list(flows, &count);
  for (uint32_t i = 0; i < count; ++i) {
    if (flow[i].number == number) return micros(flow[i].end);
  }
  fail_msg("no transfer has the number %d", (int)number);
  return 0;
}

static mp_host_flows_t *make_flows(double bandwidth) {
  mp_host_flows_t *flows = NULL;
  assert_ok(mp_host_flows_create(bandwidth, &flows));
  return flows;
}

static void test_even_parts(void **state) {
  (void)state;
  mp_host_flows_t *flows = make_flows(2e9);
  add(flows, 1, 0, 0, k_no_latency, 1);
  expect_near(end_of(flows, 1), 1000);
  add(flows, 2, 1, 0, k_no_latency, 1);
  expect_near(end_of(flows, 1), 1000);  // there is enough for two
  for (uint32_t d = 2; d < 4; ++d) add(flows, d + 1, d, 0, k_no_latency, 1);
  for (uint32_t d = 0; d < 4; ++d) expect_near(end_of(flows, d + 1), 2000);
  mp_host_flows_release(flows);
}

static void test_long_and_short(void **state) {
  (void)state;
  mp_host_flows_t *flows = make_flows(1e9);
  add(flows, 1, 0, 0, k_no_latency, 3);
  add(flows, 2, 1, 0, k_no_latency, 1);
  // Half of the rate each until the short one is over.
  expect_near(end_of(flows, 2), 2000);
  expect_near(end_of(flows, 1), 4000);
  // A flow that is ready later takes its share from then on; during its latency it takes none.
  add(flows, 3, 2, 2000, 500e-6, 1);
  expect_near(end_of(flows, 1), 2500 + 1500 * 2 - 500);
  expect_near(end_of(flows, 3), 2500 + 2000);
  mp_host_flows_release(flows);
}

static void test_one_after_the_other(void **state) {
  (void)state;
  mp_host_flows_t *flows = make_flows(1.5e9);
  add(flows, 1, 0, 0, k_no_latency, 1);
  add(flows, 2, 0, 0, k_no_latency, 1);  // one with the first
  expect_near(end_of(flows, 2), 2000);
  add(flows, 3, 1, 1000, k_no_latency, 1);
  expect_near(end_of(flows, 2), 1000 + 1000 / 0.75);
  // Behind what is not ready yet.
  add(flows, 4, 1, 4000, k_no_latency, 1);
  expect_near(end_of(flows, 4), 5000);
  uint32_t count;
  (void)mp_host_flows_list(flows, &count);
  assert_int_equal(count, 3);
  mp_host_flows_release(flows);
}

static void test_what_is_over_is_forgotten(void **state) {
  (void)state;
  mp_host_flows_t *flows = make_flows(1e9);
  add(flows, 1, 0, 0, k_no_latency, 1);
  add(flows, 2, 1, 0, k_no_latency, 2);
  mp_host_flows_advance(flows, mp_moment_of(2500e-6));
  uint32_t count;
  const mp_host_flow_t *left = mp_host_flows_list(flows, &count);
  assert_int_equal(count, 1);
  assert_int_equal(left->number, 2);
  expect_near(left->bytes, 0.5e6);
  add(flows, 3, 0, 2500, k_no_latency, 1);
  expect_near(end_of(flows, 2), 3500);
  expect_near(end_of(flows, 3), 4000);
  mp_host_flows_release(flows);
}

// ---- The model ----

// Four devices of one host, or two of each of two.
#define POD                                                                             \
  "hbm:1GiB launch_latency:1us op_latency:1us links.latency:1us links.bandwidth:1GB/s " \
  "memory.bandwidth:1TB/s host_link.latency:2us host_link.bandwidth:1GB/s flops.f32:1T"

static const char k_add[] =
    "module @add attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {\n"
    "func.func @main(%x: tensor<250000xf32>) -> tensor<250000xf32> {\n"
    "  %d = stablehlo.add %x, %x : tensor<250000xf32>\n"
    "  return %d : tensor<250000xf32>\n}\n}\n";

// A pod of this shape whose chip has these figures.
static timed_t time_with(const char *shape, const char *figures) {
  char path[] = "/tmp/test_host_XXXXXX.yaml", pod[1024];
  const int file = mkstemps(path, 5);
  assert_true(file >= 0 && write(file, figures, strlen(figures)) == (ssize_t)strlen(figures));
  (void)close(file);
  (void)snprintf(pod, sizeof(pod), "%s chip:%s " POD, shape, path);
  const timed_t t = time_text_on(pod, k_add, 4);
  (void)unlink(path);
  return t;
}

static mp_model_books_t read_books(timed_t *t) {
  mp_model_books_t books;
  mp_model_read(t->model, &books, NULL, NULL);
  assert_int_equal(books.lost, 0);
  return books;
}

static double host_of(timed_t *t) {
  return micros(read_books(t).host);
}

static mp_model_place_t on_device(uint32_t device) {
  return (mp_model_place_t){.device = device, .space = MP_MEMORY_DEVICE};
}

static mp_model_place_t on_host(uint32_t device) {
  return (mp_model_place_t){.device = device, .space = MP_MEMORY_PINNED_HOST};
}

static void test_rates(void **state) {
  (void)state;
  timed_t t = time_with("ring:4",
                        "host:\n  latency: 8us\n  share: 0.8\n  put: 500MB/s\n"
                        "  get: 250MB/s\n");
  mp_stamp_t stamp = mp_model_put(t.model, 0, 1000000);
  mp_model_get(t.model, 0, 0, stamp);
  expect_near(host_of(&t), 10 + 2000);
  mp_model_get(t.model, 0, 1000000, stamp);
  expect_near(host_of(&t), 2010 + 4010);
  // Pinned memory has what the link reaches.
  stamp = mp_model_copy(t.model, on_device(0), on_host(0), 1000000, stamp);
  mp_model_get(t.model, 0, 0, stamp);
  expect_near(host_of(&t), 6020 + 1260);
  stamp = mp_model_copy(t.model, on_host(0), on_device(1), 1000000, stamp);
  mp_model_get(t.model, 0, 0, stamp);
  expect_near(host_of(&t), 7280 + 1260);
  // Inside the host nothing is transferred.
  stamp = mp_model_copy(t.model, on_host(0), on_host(1), 1000000, stamp);
  mp_model_get(t.model, 0, 0, stamp);
  expect_near(host_of(&t), 7280 + 1260);
  time_end(&t);
}

static void test_no_op_waits_for_a_copy(void **state) {
  (void)state;
  timed_t t = time_with("ring:4", "compiler: plain\n");
  const mp_stamp_t made = time_launch(&t, 4, NULL);
  const double work = micros(read_books(&t).now) - 1;
  const mp_stamp_t away = mp_model_copy(t.model, on_device(0), on_host(0), 1000000, made);
  assert_true(host_of(&t) == 0);
  (void)time_launch(&t, 4, NULL);  // beside the copy
  expect_near(micros(read_books(&t).now), 1 + 2 * work);
  // Back again when it has arrived, and then a program that needs it.
  const mp_stamp_t back = mp_model_copy(t.model, on_host(0), on_device(0), 1000000, away);
  const mp_stamp_t inputs[4] = {back};
  (void)time_launch(&t, 4, inputs);
  expect_near(micros(read_books(&t).devices[0]), 1 + work + 1002 + 1002 + work);
  expect_near(micros(read_books(&t).devices[1]), 1 + 3 * work);
  time_end(&t);
}

static void test_shared(void **state) {
  (void)state;
  timed_t t = time_with("ring:4", "host:\n  bandwidth: 2GB/s\n");
  mp_stamp_t puts[4];
  for (uint32_t d = 0; d < 4; ++d) puts[d] = mp_model_put(t.model, d, 1000000);
  const mp_stamp_t made = time_launch(&t, 4, puts);
  const double work = micros(read_books(&t).now) - 2002;
  for (uint32_t d = 0; d < 4; ++d) {
    expect_near(micros(read_books(&t).devices[d]), 2002 + work);  // with the ends of all
  }
  // The host waits for all that it reads at the same time; two have enough.
  for (uint32_t d = 0; d < 2; ++d) mp_model_get(t.model, d, 1000000, made);
  expect_near(host_of(&t), 2002 + work + 1002);
  (void)mp_model_put(t.model, 3, 0);  // the next reads begin when the last ones are over
  for (uint32_t d = 0; d < 4; ++d) mp_model_get(t.model, d, 1000000, made);
  expect_near(host_of(&t), 2002 + work + 1002 + 2002);
  // What is small does not share.
  (void)mp_model_put(t.model, 3, 0);
  for (uint32_t d = 0; d < 4; ++d) mp_model_get(t.model, d, 4000, made);
  expect_near(host_of(&t), 2002 + work + 1002 + 2002 + 6);
  time_end(&t);
}

static void test_hosts_share_for_themselves(void **state) {
  (void)state;
  timed_t t = time_with("ring:2 slices:2", "host:\n  bandwidth: 1GB/s\n");
  mp_stamp_t puts[4];
  for (uint32_t d = 0; d < 4; ++d) puts[d] = mp_model_put(t.model, d, 1000000);
  for (uint32_t d = 0; d < 4; ++d) mp_model_get(t.model, d, 0, puts[d]);
  expect_near(host_of(&t), 2002);
  time_end(&t);
}

// A description for another purpose: flows that share nothing have the same times as before.
static void test_enough_for_all(void **state) {
  (void)state;
  timed_t t = time_with("ring:4", "host:\n  bandwidth: 4GB/s\n");
  mp_stamp_t puts[4];
  for (uint32_t d = 0; d < 4; ++d) puts[d] = mp_model_put(t.model, d, 1000000);
  for (uint32_t d = 0; d < 4; ++d) mp_model_get(t.model, d, 0, puts[d]);
  assert_true(read_books(&t).host == mp_moment_of(1002e-6));
  time_end(&t);
}

static void test_dispatch(void **state) {
  (void)state;
  timed_t t = time_with("ring:4", "host:\n  dispatch: 10us\n");
  mp_stamp_t stamp = time_launch(&t, 4, NULL);
  const double work = micros(read_books(&t).now) - 11;
  expect_near(host_of(&t), 10);
  assert_true(work > 1 && work < 9);
  // Devices that are faster than the host wait for it.
  for (int i = 0; i < 10; ++i) stamp = time_launch(&t, 4, NULL);
  expect_near(host_of(&t), 110);
  expect_near(micros(read_books(&t).now), 111 + work);
  mp_model_get(t.model, 0, 4, stamp);
  expect_near(host_of(&t), 111 + work + 2.004);
  // A loop that reads each result.
  for (int i = 0; i < 5; ++i) mp_model_get(t.model, 0, 4, time_launch(&t, 4, NULL));
  expect_near(host_of(&t), 6 * (11 + work + 2.004) + 100);
  time_end(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_even_parts),
      cmocka_unit_test(test_long_and_short),
      cmocka_unit_test(test_one_after_the_other),
      cmocka_unit_test(test_what_is_over_is_forgotten),
      cmocka_unit_test(test_rates),
      cmocka_unit_test(test_no_op_waits_for_a_copy),
      cmocka_unit_test(test_shared),
      cmocka_unit_test(test_hosts_share_for_themselves),
      cmocka_unit_test(test_enough_for_all),
      cmocka_unit_test(test_dispatch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
