// The parameters of a chip for collectives and messages: the achieved share of a link's rate,
// start-up times, members' own parts, sums in switches, pieces between hosts.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/support/network_test.h"

#define AR MP_COLLECTIVE_ALL_REDUCE
#define AG MP_COLLECTIVE_ALL_GATHER

// A pod whose chip has these figures: "{}" is their file.
static mp_network_t *network_with_figures(const char *pod, const char *figures,
                                          const char *algorithms) {
  char path[] = "/tmp/minipod-figures-XXXXXX.yaml", text[320];
  const int file = mkstemps(path, 5);
  assert_true(file >= 0);
  assert_int_equal(write(file, figures, strlen(figures)), strlen(figures));
  close(file);
  snprintf(text, sizeof(text), "%s chip:%s", pod, path);
  mp_network_t *network = network_with(text, algorithms);
  unlink(path);
  return network;
}

// Seconds of a collective of the first devices, alone; -1: of another algorithm.
static double seconds_of(mp_network_t *network, mp_collective_kind_t kind, uint32_t size,
                         double bytes, mp_algorithm_t algorithm) {
  sample_collective_t sample = {0};
  const uint32_t devices = (uint32_t)mp_pod_info(mp_network_pod(network))->num_devices;
  sample_collective(&sample, kind, devices, size, (int64_t)bytes);
  const mp_traffic_t *traffic = traffic_of_sample(network, &sample);
  const double seconds = traffic->algorithm == algorithm ? traffic->alone : -1;
  sample_collective_end(&sample);
  return seconds;
}

static void assert_near(double value, double wanted) {
  if (fabs(value - wanted) > 1e-6 * wanted) fail_msg("%g, not %g", value, wanted);
}

#define RING "ring:4 links.latency:1us links.bandwidth:100GB/s"

static void test_share_and_start(void **state) {
  (void)state;
  static const double mib = 1024 * 1024;
  mp_network_t *network = network_with_figures(RING,
                                               "network:\n"
                                               "  share: 0.8\n"
                                               "  all_gather_start: 5us\n"
                                               "  all_gather_members: 1us\n"
                                               "  all_gather_ramp: 2us\n"
                                               "  all_gather_ramp_from: 1MiB\n"
                                               "  all_gather_own: 1000GB/s\n"
                                               "  all_reduce_start: 7us\n"
                                               "  all_reduce_all: 500GB/s\n",
                                               "all_gather:ring,all_reduce:ring");
  assert_near(mp_network_link(network, 0)->bandwidth, 80e9);
  // 5 us, twice 1 us for four members, twice 2 us for 3 MiB beyond the first; a quarter copied;
  // three quarters over a link.
  assert_near(seconds_of(network, AG, 4, 3 * mib, MP_ALGORITHM_RING),
              5e-6 + 2 * 1e-6 + 2 * 2e-6 + 0.75 * mib / 1000e9 + 3 * 1e-6 + 2.25 * mib / 80e9);
  // All of the bytes once, and six steps of a quarter.
  assert_near(seconds_of(network, AR, 4, 4 * mib, MP_ALGORITHM_RING),
              7e-6 + 4 * mib / 500e9 + 6 * 1e-6 + 6 * mib / 80e9);
  mp_network_release(network);
}

// The start is paid once, also by algorithms of several stages.
static void test_start_once(void **state) {
  (void)state;
  const char *pod = "torus:4x4 links.latency:1us links.bandwidth:100GB/s";
  const char *figures = "network:\n  all_reduce_start: 100us\n";
  mp_network_t *with = network_with_figures(pod, figures, "all_reduce:multiport_dimension_ring");
  mp_network_t *without = network_with(pod, "all_reduce:multiport_dimension_ring");
  const mp_algorithm_t algorithm = MP_ALGORITHM_MULTIPORT_DIMENSION_RING;
  assert_near(seconds_of(with, AR, 16, 1e6, algorithm),
              100e-6 + seconds_of(without, AR, 16, 1e6, algorithm));
  mp_network_release(with);
  mp_network_release(without);
}

static void test_messages(void **state) {
  (void)state;
  mp_network_t *network = network_with_figures(RING,
                                               "network:\n"
                                               "  channel: 10GB/s\n"
                                               "  permute_start: 3us\n",
                                               "");
  static const struct {
    double bytes, rate;
  } cases[] = {
      {256 << 10, 10e9}, {1 << 20, 20e9}, {16 << 20, 40e9}, {128 << 20, 80e9}, {512 << 20, 100e9}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    mp_transfer_t transfer;
    assert_ok(mp_network_message(network, mp_network_device(0), mp_network_device(1),
                                 cases[i].bytes, &transfer));
    assert_near(mp_flows_transfer_alone(network, &transfer),
                3e-6 + 1e-6 + cases[i].bytes / cases[i].rate);
  }
  // Not what the host sends.
  mp_transfer_t transfer;
  assert_ok(mp_network_message(network, mp_network_host(0), mp_network_device(1), 1000, &transfer));
  assert_true(transfer.latency < 3e-6);
  mp_network_release(network);
}

// ---- As NCCL does ----

#define SWITCH "switch:8 links.latency:500ns links.bandwidth:100GB/s"
#define GPU         \
  "compiler: gpu\n" \
  "network:\n"      \
  "  share: 0.5\n"  \
  "  all_reduce_start: 10us\n"

static void test_switch_sums(void **state) {
  (void)state;
  const char *figures = GPU "  switch_sum_start: 40us\n  switch_sum_all: 1000GB/s\n";
  mp_network_t *network = network_with_figures(SWITCH, figures, "");
  // Little: fourteen steps of two links each.
  assert_near(seconds_of(network, AR, 8, 8000, MP_ALGORITHM_RING),
              10e-6 + 14 * (1e-6 + 1000 / 50e9));
  // Much: nine eighths over each link, and once through the member's memory.
  assert_near(seconds_of(network, AR, 8, 8e9, MP_ALGORITHM_SWITCH_SUM),
              40e-6 + 4 * 0.5e-6 + 9e9 / 50e9 + 8e9 / 1000e9);
  // Two have no more to send in a ring.
  assert_near(seconds_of(network, AR, 2, 8e9, MP_ALGORITHM_RING), 10e-6 + 2 * (1e-6 + 4e9 / 50e9));
  mp_network_release(network);

  // Where the switch is asked for and cannot add, where it does not join all, in other wirings.
  static const char *const pods[] = {"switch:8", "switch:4 slices:2", "ring:8"};
  static const char *const texts[] = {GPU, GPU "  switch_sum_start: 1us\n",
                                      GPU "  switch_sum_start: 1us\n"};
  for (size_t i = 0; i < 3; ++i) {
    network = network_with_figures(pods[i], texts[i], "all_reduce:switch_sum");
    assert_true(seconds_of(network, AR, 8, 8e9, MP_ALGORITHM_SWITCH_SUM) < 0);
    mp_network_release(network);
  }
}

static void test_usual_algorithms(void **state) {
  (void)state;
  mp_network_t *plain = network_with(SWITCH, "");
  mp_network_t *gpu = network_with_figures(SWITCH, GPU, "");
  assert_true(seconds_of(plain, AR, 8, 8, MP_ALGORITHM_DIRECT) > 0);
  assert_true(seconds_of(gpu, AR, 8, 8, MP_ALGORITHM_RING) > 0);
  assert_true(seconds_of(gpu, MP_COLLECTIVE_ALL_TO_ALL, 8, 8e6, MP_ALGORITHM_DIRECT) > 0);
  mp_network_release(plain);
  mp_network_release(gpu);
}

// Between hosts all phases go on at once: the cards are busy from the first piece on, which has
// gone round in the host.
static void test_pieces_between_hosts(void **state) {
  (void)state;
  const char *pod =
      "switch:4 slices:2 links.latency:500ns links.bandwidth:100GB/s dcn.latency:10us "
      "dcn.bandwidth:10GB/s host_link.latency:1us host_link.bandwidth:1000GB/s";
  mp_network_t *network = network_with_figures(pod, GPU, "all_reduce:hierarchical");
  const double nvlink = 2 * 3. / 4 * 1e9 / 50e9, cards = 4 * 2 * 1. / 2 * 0.25e9 / 10e9;
  assert_true(cards > nvlink);
  assert_near(seconds_of(network, AR, 8, 1e9, MP_ALGORITHM_HIERARCHICAL),
              10e-6 + 3 * 1e-6 + 12e-6 + cards);
  mp_network_release(network);
}

// ---- Between hosts by NCCL's table of costs ----

#define FAR                                                                                   \
  "switch:4 slices:4 links.latency:500ns links.bandwidth:1000GB/s dcn.links:4 dcn.bandwidth:" \
  "5GB/s host_link.bandwidth:1000GB/s"
#define COSTS                                                     \
  GPU "  cards: 0.5\n"                                            \
      "  ring: [6, 14, 8, 1, 2, 3, 2.5, 4, 14, 0.5, 0.9, 1, 1]\n" \
      "  tree: [7, 15, 9, 0.5, 1, 4, 5, 8, 14, 0.25, 0.8, 0.9, 1]\n"

static void test_rings_between_hosts(void **state) {
  (void)state;
  mp_network_t *network = network_with_figures(FAR, COSTS, "");
  // Twelve steps in hosts and three between them; little by LL, much by Simple.
  assert_near(seconds_of(network, AG, 16, 1600, MP_ALGORITHM_RING),
              6e-6 + 12 * 1e-6 + 3 * 2.5e-6 + 1500 / (0.1 * 10e9));
  assert_near(seconds_of(network, AG, 16, 16e9, MP_ALGORITHM_RING),
              8e-6 + 12 * 3e-6 + 3 * 14e-6 + 15e9 / 10e9);
  assert_near(seconds_of(network, AR, 16, 16e9, MP_ALGORITHM_RING),
              1.4 * (8e-6 + 24 * 3e-6 + 6 * 14e-6) + 30e9 / 10e9);
  // Little of a sum by a tree: as long as the measured all_reduce of a host, which has a start and
  // six steps, and two steps up and down between hosts.
  assert_near(seconds_of(network, AR, 16, 64, MP_ALGORITHM_TREE),
              10e-6 + 6 * 1e-6 + 2 * 2 * 5e-6 + 2 * 3. / 4 * 64 / (0.1 * 10e9));
  mp_network_release(network);
}

// One member of each host: a step costs what a tree's does; pairs save steps.
static void test_single_members_between_hosts(void **state) {
  (void)state;
  const char *pod = "switch:1 slices:16 dcn.bandwidth:20GB/s host_link.bandwidth:1000GB/s";
  mp_network_t *rings = network_with_figures(pod, COSTS, "");
  assert_near(seconds_of(rings, AG, 16, 1.6e6, MP_ALGORITHM_RING),
              14e-6 + 15 * 8e-6 + 1.5e6 / (0.9 * 10e9));
  mp_network_release(rings);
  mp_network_t *pairs = network_with_figures(pod, COSTS "  pairs: [8, 4, 1, 0.75]\n", "");
  assert_near(seconds_of(pairs, AG, 16, 1600, MP_ALGORITHM_HALVING_DOUBLING),
              8e-6 + 4 * 4e-6 + 16 * 1e-6 + 1500 / (0.75 * 10e9));
  mp_network_release(pairs);
}

// What the description says of the network counts where it is slower than NCCL takes it to be.
static void test_slow_network_between_hosts(void **state) {
  (void)state;
  mp_network_t *network =
      network_with_figures(FAR " dcn.latency:98us host_link.latency:1us", COSTS, "");
  assert_near(seconds_of(network, AG, 16, 1600, MP_ALGORITHM_RING),
              6e-6 + 12 * 1e-6 + 3 * 100e-6 + 1500 / (0.1 * 10e9));
  mp_network_release(network);
}

// ---- Published figures ----

static void test_presets(void **state) {
  (void)state;
  static const struct {
    const char *pod;
    mp_collective_kind_t kind;
    double bytes, seconds;
    const char *algorithms;
  } cases[] = {
      // All_reduces of 370 GB/s by rings and 480 GB/s by switches, an all_gather (nccl#1455,
      // nccl-tests#212, scaling-book).
      {"h100:8", AR, 4. * (1 << 30), 1.75 * 4 * (1 << 30) / 370e9, "all_reduce:ring"},
      {"h100:8", AR, 8. * (1 << 30), 1.75 * 8 * (1 << 30) / 480e9, ""},
      {"h100:8", AG, 537e6, 1500e-6, ""},
      // Two hosts with eight cards of 200 Gbit/s (lessizzmore/create-a3mega-ztan-fork).
      {"h100:8 slices:2 dcn.bandwidth:25GB/s", AR, 8. * (1 << 30), 47535e-6, ""},
      // psum of 17,408^2 in bf16 (tpu-recipes).
      {"v6e:16x16", AR, 606076928, 2 * 255. / 256 * 606076928 / 235.76e9, ""},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    mp_network_t *network = network_with(cases[i].pod, cases[i].algorithms);
    const uint32_t devices = (uint32_t)mp_pod_info(mp_network_pod(network))->num_devices;
    sample_collective_t sample = {0};
    sample_collective(&sample, cases[i].kind, devices, devices, (int64_t)cases[i].bytes);
    const double ratio = traffic_of_sample(network, &sample)->alone / cases[i].seconds;
    if (ratio < 0.9 || ratio > 1.1) fail_msg("%s: %g of what is published", cases[i].pod, ratio);
    sample_collective_end(&sample);
    mp_network_release(network);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_share_and_start),
      cmocka_unit_test(test_start_once),
      cmocka_unit_test(test_messages),
      cmocka_unit_test(test_switch_sums),
      cmocka_unit_test(test_usual_algorithms),
      cmocka_unit_test(test_pieces_between_hosts),
      cmocka_unit_test(test_rings_between_hosts),
      cmocka_unit_test(test_single_members_between_hosts),
      cmocka_unit_test(test_slow_network_between_hosts),
      cmocka_unit_test(test_presets),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
