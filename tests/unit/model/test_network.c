// Links, routes, algorithms of collectives and the rule that chooses among them.

#include "sim/model/network/algorithms/network_options.h"
#include "sim/model/network/traffic/traffic.h"
#include "tests/unit/support/network_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/alloc.h"

// From a chip to the next one, and to and from a switch: a microsecond, 100 GB/s.
#define LINKS        " links.latency:1us links.bandwidth:100GB/s"
#define SWITCH_LINKS " links.latency:500ns links.bandwidth:100GB/s"

static const char *links_of(const char *pod) {
  return strncmp(pod, "switch", 6) == 0 ? SWITCH_LINKS : LINKS;
}

static bool near_to(double value, double wanted) {
  return fabs(value - wanted) <= 0.02 * fabs(wanted);
}

// ---- Links ----

static void check_count(const char *pod, uint32_t between_chips) {
  mp_network_t *network = network_of(pod);
  const uint32_t devices = (uint32_t)mp_pod_info(mp_network_pod(network))->num_devices;
  const uint32_t hosts = (uint32_t)mp_pod_info(mp_network_pod(network))->num_hosts;
  const uint32_t nics = hosts > 1 ? 2 * hosts : 0;
  assert_int_equal(mp_network_num_links(network), between_chips + 2 * devices + nics);
  for (uint32_t i = 0; i < mp_network_num_links(network); ++i) {
    const mp_network_link_t *link = mp_network_link(network, i);
    assert_true(link->from < mp_network_num_vertices(network));
    assert_true(link->to < mp_network_num_vertices(network));
    assert_true(link->bandwidth > 0 && link->latency >= 0 && strlen(link->name) > 0);
  }
  mp_network_release(network);
}

static void test_links(void **state) {
  (void)state;
  check_count("ring:8", 16);
  check_count("mesh:8", 14);
  check_count("torus:4x4", 64);
  check_count("mesh:4x4", 48);
  check_count("torus:4x4x4", 384);
  check_count("torus:4x2", 8 * 3);  // one pair of links between the two chips of a column
  check_count("ring:2", 2);
  check_count("ring:1", 0);
  check_count("switch:8", 16);
  check_count("fully_connected:8", 56);
  check_count("fully_connected:4x2", 56);
  check_count("ring,fully_connected:4x3", 12 * (2 + 2));
  check_count("ring,switch:4x3", 12 * (2 + 2));
  check_count("torus:4x1", 8);
  check_count("torus:4x4 slices:2", 128);
  check_count("torus:4x4 hosts:4", 64);
  check_count("ring:4 cores_per_chip:2", 8 + 4);
}

static void test_named_links(void **state) {
  (void)state;
  mp_network_t *network = network_of(
      "torus:4x3 slices:2 links.bandwidth:50GB/s links.latency:2us dcn.latency:20us "
      "dcn.bandwidth:25GB/s host_link.bandwidth:32GB/s host_link.latency:3us");
  const mp_network_link_t *link = mp_network_link(network, link_named(network, "slice 1 (3,0) +x"));
  assert_true(link->latency == 2e-6 && link->bandwidth == 50e9);
  assert_int_equal(link->from, 12 + 3);
  assert_int_equal(link->to, 12 + 0);
  link = mp_network_link(network, link_named(network, "slice 0 (1,0) -y"));
  assert_int_equal(link->to, 1 + 2 * 4);
  link = mp_network_link(network, link_named(network, "host 1 up"));
  assert_true(near_to(link->latency, 10e-6) && link->bandwidth == 25e9);
  link = mp_network_link(network, link_named(network, "device 13 from host"));
  assert_true(link->latency == 3e-6 && link->bandwidth == 32e9);
  mp_network_release(network);
}

// No time at all is a time, unlike one that is not described.
static void test_links_without_latency(void **state) {
  (void)state;
  mp_network_t *network = network_of(
      "torus:4x3 slices:2 links.latency:0,0 links.bandwidth:50GB/s dcn.latency:0s "
      "host_link.latency:0us");
  for (uint32_t i = 0; i < mp_network_num_links(network); ++i) {
    assert_true(mp_network_link(network, i)->latency == 0);
  }
  mp_network_release(network);
  network = network_of("torus:4x3 slices:2 host_link.bandwidth:1GB/s");
  for (uint32_t i = 0; i < mp_network_num_links(network); ++i) {
    assert_true(mp_network_link(network, i)->latency > 0);
  }
  mp_network_release(network);
}

// Four leaves of two hosts, with half of their hosts' bandwidth upwards.
#define FAT_TREE                                                                     \
  "switch:2 slices:8 dcn.topology:fat_tree dcn.leaf_hosts:2 dcn.oversubscription:2 " \
  "dcn.links:2 dcn.bandwidth:10GB/s dcn.latency:4us"

static void test_fat_tree_links(void **state) {
  (void)state;
  mp_network_t *network = network_of(FAT_TREE);
  assert_int_equal(mp_network_num_links(network), 2 * (16 + 16 + 8 + 4));
  const mp_network_link_t *host = mp_network_link(network, link_named(network, "host 5 up"));
  const mp_network_link_t *leaf = mp_network_link(network, link_named(network, "leaf 2 up"));
  assert_int_equal(host->to, leaf->from);
  assert_true(host->bandwidth == 20e9 && near_to(host->latency, 2e-6));
  assert_true(leaf->bandwidth == 20e9 && leaf->latency > 0);
  mp_network_release(network);
  // One leaf needs none above.
  network = network_of("switch:2 slices:8 dcn.topology:fat_tree dcn.leaf_hosts:8");
  assert_int_equal(mp_network_num_links(network), 2 * (16 + 16 + 8));
  mp_network_release(network);
}

static void test_too_many_links(void **state) {
  (void)state;
  mp_pod_t *pod = NULL;
  mp_network_t *network = NULL;
  assert_ok(mp_pod_create_from_name(MP_STR("fully_connected:20000"), "test", &pod));
  assert_status(mp_network_create(pod, NULL, &network), MP_RESOURCE_EXHAUSTED, "links");
  mp_pod_release(pod);
}

// ---- Routes ----

// The names of a message's links, comma-separated without "slice 0 ".
static void check_route(mp_network_t *network, mp_network_end_t from, mp_network_end_t to,
                        const char *wanted) {
  mp_transfer_t transfer;
  char text[1024] = "";
  assert_ok(mp_network_message(network, from, to, 10, &transfer));
  assert_true(transfer.bytes == 10);
  double latency = 0;
  for (uint32_t i = 0; i < transfer.num_uses; ++i) {
    const mp_network_link_t *link = mp_network_link(network, transfer.uses[i].link);
    const char *name = link->name;
    if (strncmp(name, "slice 0 ", 8) == 0) name += 8;
    if (i != 0) strcat(text, ", ");
    strcat(text, name);
    latency += link->latency;
    assert_true(transfer.uses[i].times == 1);
  }
  assert_string_equal(text, wanted);
  assert_true(transfer.latency == latency);
}

static void check_way(const char *pod, int32_t from, int32_t to, const char *wanted) {
  mp_network_t *network = network_of(pod);
  check_route(network, mp_network_device(from), mp_network_device(to), wanted);
  mp_network_release(network);
}

static void test_routes(void **state) {
  (void)state;
  check_way("ring:8", 0, 3, "(0) +x, (1) +x, (2) +x");
  check_way("ring:8", 0, 6, "(0) -x, (7) -x");
  check_way("mesh:8", 0, 6, "(0) +x, (1) +x, (2) +x, (3) +x, (4) +x, (5) +x");
  check_way("ring:8", 0, 4, "(0) +x, (1) +x, (2) +x, (3) +x");
  check_way("ring:8", 1, 5, "(1) -x, (0) -x, (7) -x, (6) -x");
  check_way("torus:4x4", 0, 14, "(0,0) -x, (3,0) -x, (2,0) -y");
  check_way("torus:4x4", 0, 10, "(0,0) +x, (1,0) +x, (2,0) +y, (2,1) +y");
  check_way("mesh:4x4", 15, 0, "(3,3) -x, (2,3) -x, (1,3) -x, (0,3) -y, (0,2) -y, (0,1) -y");
  check_way("torus:2x2", 0, 3, "(0,0) +x, (1,0) +y");
  check_way("switch:8", 2, 5, "(2) to switch, (5) from switch");
  check_way("fully_connected:8", 2, 5, "(2) to (5)");
  check_way("ring,switch:4x3", 0, 9, "(0,0) +x, (1,0) to switch y, (1,2) from switch y");
  check_way("mesh,fully_connected:4x3", 0, 9, "(0,0) +x, (1,0) to (1,2)");
  check_way(FAT_TREE, 0, 3, "device 0 to host, host 0 up, host 1 down, device 3 from host");
  check_way(
      FAT_TREE, 0, 15,
      "device 0 to host, host 0 up, leaf 0 up, leaf 3 down, host 7 down, device 15 from host");
  check_way("ring:4 cores_per_chip:2", 2, 3, "(1) inside");
  check_way("ring:4 cores_per_chip:2", 2, 5, "(1) +x");
  check_way("ring:4", 2, 2, "");
  check_way("ring:4 slices:2 hosts:2", 1, 6,
            "device 1 to host, host 0 up, host 1 down, device 6 from host");
  check_way("ring:4 hosts:2", 1, 2, "(1) +x");
}

static void test_routes_of_hosts(void **state) {
  (void)state;
  mp_network_t *network = network_of("ring:4 hosts:2");
  check_route(network, mp_network_host(0), mp_network_device(1), "device 1 from host");
  check_route(network, mp_network_device(2), mp_network_host(1), "device 2 to host");
  check_route(network, mp_network_host(0), mp_network_device(3),
              "host 0 up, host 1 down, device 3 from host");
  check_route(network, mp_network_host(1), mp_network_host(0), "host 1 up, host 0 down");
  check_route(network, mp_network_host(1), mp_network_host(1), "");
  mp_network_release(network);
}

// ---- Times of algorithms without contention ----

static const double A = 1e-6, B = 100e9;

typedef struct {
  const char *pod;
  mp_collective_kind_t kind;
  const char *algorithm;
  uint32_t size;  // the first devices
  // Seconds = latencies * A + bytes * share / B.
  double latencies, share;
  // Where flows have different latencies, that is for many bytes: those that come first keep the
  // busiest link busy. For few bytes the flows with the longest way make the time, which is longer.
  double late_latencies, late_share;
} form_t;

#define AR MP_COLLECTIVE_ALL_REDUCE
#define RS MP_COLLECTIVE_REDUCE_SCATTER
#define AG MP_COLLECTIVE_ALL_GATHER
#define AA MP_COLLECTIVE_ALL_TO_ALL
#define BC MP_COLLECTIVE_BROADCAST

static const form_t k_forms[] = {
    // A ring of n: n - 1 steps with 1/n of the bytes.
    {"ring:8", AR, "ring", 8, 14, 14. / 8, 0, 0},
    {"ring:8", RS, "ring", 8, 7, 7. / 8, 0, 0},
    {"ring:8", AG, "ring", 8, 7, 7. / 8, 0, 0},
    {"ring:8", AR, "bidirectional_ring", 8, 14, 14. / 16, 0, 0},
    {"ring:8", AG, "bidirectional_ring", 8, 7, 7. / 16, 0, 0},
    {"ring:8", AG, "dimension_ring", 8, 7, 7. / 16, 0, 0},  // the same in one dimension
    // From the root to each of the others 1/n: four of the way up, three of the way down, or the
    // other way round; then an all_gather.
    {"ring:8", BC, "ring", 8, 1 + 7, 4. / 8 + 7. / 8, 4 + 7, 1. / 8 + 7. / 8},
    // On a line what the last one sends goes all the way back, once for each part of the bytes.
    {"mesh:4", AR, "ring", 4, 2 * (2 + 3), 2 * 3 * (1. / 4), 0, 0},
    {"mesh:4", AR, "bidirectional_ring", 4, 2 * (2 + 3), 2 * 3 * (2. / 8), 0, 0},
    {"torus:4x4", AR, "dimension_ring", 16, 12, 2 * (3. / 8 + 3. / 32), 0, 0},
    {"torus:4x4", RS, "dimension_ring", 16, 6, 3. / 8 + 3. / 32, 0, 0},
    {"torus:4x4", AG, "multiport_dimension_ring", 16, 6, 3. / 16 + 3. / 64, 0, 0},
    {"torus:4x4", AR, "multiport_dimension_ring", 16, 12, 2 * (3. / 16 + 3. / 64), 0, 0},
    {"torus:4x4x4", AR, "dimension_ring", 64, 18, 2 * (3. / 8 + 3. / 32 + 3. / 128), 0, 0},
    {"torus:4x4x4", AR, "multiport_dimension_ring", 64, 18, 2 * (1. / 8 + 1. / 32 + 1. / 128), 0,
     0},
    // Parts of 6/13 and 7/13: both are done with their first dimension at the same time.
    {"torus:8x4", RS, "multiport_dimension_ring", 32, 14, 42. / 208 + 49. / 832, 0, 0},
    // The halves between the cores of a chip at 400 GB/s, the rest of both over the chip's links.
    {"torus:4x4 cores_per_chip:2", RS, "multiport_dimension_ring", 32, 6, 1. / 4 + 15. / 64, 0, 0},
    {"torus:4x4", BC, "dimension_ring", 16, 1 + 6, 6. / 16 + 15. / 32, 4 + 6, 1. / 16 + 15. / 32},
    // To and fro through the torus: the way from the last device to the first is one hop.
    {"torus:4x4", AR, "ring", 16, 30, 30. / 16, 0, 0},
    {"torus:4x4", AR, "bidirectional_ring", 16, 30, 30. / 32, 0, 0},
    // Partners on a switch: 1/2, 1/4, 1/8.
    {"switch:8", AR, "halving_doubling", 8, 6, 2 * 7. / 8, 0, 0},
    {"switch:8", RS, "halving_doubling", 8, 3, 7. / 8, 0, 0},
    {"switch:8", AG, "halving_doubling", 8, 3, 7. / 8, 0, 0},
    // Six: two of them give all to a partner before, and get all from it afterwards.
    {"switch:6", AR, "halving_doubling", 6, 2 + 4, 2 + 2 * 3. / 4, 0, 0},
    {"switch:6", RS, "halving_doubling", 6, 2 + 2, 1 + 3. / 4 + 1. / 6, 0, 0},
    {"switch:6", AG, "halving_doubling", 6, 2 + 2, 1 + 3. / 4 + 1. / 6, 0, 0},
    // Partners on a ring: one flow per link, then two, then two on longer ways.
    {"ring:8", RS, "halving_doubling", 8, 1 + 2 + 4, 1. / 2 + 2. / 4 + 2. / 8, 0, 0},
    {"switch:8", AR, "tree", 8, 6, 6, 0, 0},
    {"switch:8", BC, "tree", 8, 3, 3, 0, 0},
    {"switch:5", BC, "tree", 5, 3, 3, 0, 0},
    {"switch:8", BC, "direct", 8, 1, 7, 0, 0},
    {"switch:8", BC, "ring", 8, 1 + 7, 7. / 8 + 7. / 8, 0, 0},
    {"switch:8", AR, "direct", 8, 2, 2 * 7. / 8, 0, 0},
    {"switch:8", AG, "direct", 8, 1, 7. / 8, 0, 0},
    {"switch:8", AR, "ring", 8, 14, 14. / 8, 0, 0},
    {"switch:8", AA, "direct", 8, 1, 7. / 8, 0, 0},
    {"mesh:8", AA, "direct", 8, 1, 16. / 8, 7, 1. / 8},  // four on either side of the middle link
    {"ring:8", AA, "direct", 8, 1, 8. / 8, 4, 2. / 8},   // 1 + 2 + 3 + 4 / 2 flows per link
    {"torus:4x4", AA, "direct", 16, 1, 8. / 16, 4, 1. / 16},
    {"torus:4x4x4", AA, "direct", 64, 1, 32. / 64, 6, 1. / 64},
    {"torus:16x16", AA, "direct", 256, 1, 16 * 32. / 256, 16, 4. / 256},
    {"torus:32x16", AA, "direct", 512, 1, 16 * 128. / 512, 24, 1. / 512},
    {"mesh:16x16", AA, "direct", 256, 1, 16 * 64. / 256, 30, 1. / 256},
    {"fully_connected:8", AR, "ring", 8, 14, 14. / 8, 0, 0},
    {"fully_connected:8", AR, "bidirectional_ring", 8, 14, 14. / 16, 0, 0},
    {"fully_connected:8", RS, "halving_doubling", 8, 3, 7. / 8, 0, 0},
    {"fully_connected:8", AG, "direct", 8, 1, 1. / 8, 0, 0},
    {"fully_connected:8", AA, "direct", 8, 1, 1. / 8, 0, 0},
    {"fully_connected:8", BC, "tree", 8, 3, 3, 0, 0},
    // Rings of four, and four rings side by side between any two of the second dimension.
    {"ring,fully_connected:4x3", AR, "dimension_ring", 12, 10, 2 * (3. / 8 + 2. / 24), 0, 0},
    {"ring,switch:4x3", AA, "direct", 12, 2, 8. / 12, 4, 2. / 12},
    {"fully_connected:600", AA, "direct", 600, 1, 1. / 600, 0, 0},
    {"switch:300", AA, "direct", 300, 1, 299. / 300, 0, 0},
    {"switch:600", AA, "direct", 600, 1, 599. / 600, 0, 0},
};

static void test_closed_forms(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(k_forms) / sizeof(k_forms[0]); ++i) {
    const form_t *form = &k_forms[i];
    char text[128], algorithms[128];
    snprintf(text, sizeof(text), "%s%s", form->pod, links_of(form->pod));
    snprintf(algorithms, sizeof(algorithms), "%s:%s", mp_collective_kind_name(form->kind),
             form->algorithm);
    mp_network_t *network = network_with(text, algorithms);
    const uint32_t devices = (uint32_t)mp_pod_info(mp_network_pod(network))->num_devices;
    for (int64_t bytes = 115200; bytes <= 115200000; bytes *= 1000) {
      sample_collective_t sample = {0};
      sample_collective(&sample, form->kind, devices, form->size, bytes);
      const mp_traffic_t *traffic = traffic_of_sample(network, &sample);
      const double wanted = fmax(form->latencies * A + (double)bytes * form->share / B,
                                 form->late_latencies * A + (double)bytes * form->late_share / B);
      if (!near_to(traffic->alone, wanted)) {
        fail_msg("%s %s %lld: %g, not %g", form->pod, algorithms, (long long)bytes, traffic->alone,
                 wanted);
      }
      sample_collective_end(&sample);
    }
    mp_network_release(network);
  }
}

// Every second chip of a ring, in any order: steps of two hops.
static void test_strided_groups(void **state) {
  (void)state;
  static const int64_t devices[] = {6, 0, 4, 2};
  mp_network_t *network = network_with("ring:8" LINKS, "all_reduce:ring");
  sample_collective_t sample = {0};
  sample_collective_of(&sample, AR, 8, devices, 4, 4000);
  const mp_traffic_t *traffic = traffic_of_sample(network, &sample);
  assert_int_equal(traffic->algorithm, MP_ALGORITHM_RING);
  assert_true(near_to(traffic->alone, 6 * (2 * A + 1000 / B)));
  sample_collective_end(&sample);
  mp_network_release(network);
}

// A column of a torus is a ring, a quarter of it a line in each dimension.
static void test_parts_of_grids(void **state) {
  (void)state;
  static const int64_t column[] = {1, 5, 9, 13}, quarter[] = {0, 1, 4, 5};
  mp_network_t *network = network_with("torus:4x4" LINKS, "all_gather:dimension_ring");
  sample_collective_t sample = {0}, other = {0};
  sample_collective_of(&sample, AG, 16, column, 4, 8000);
  assert_true(near_to(traffic_of_sample(network, &sample)->alone, 3 * (A + 1000 / B)));
  sample_collective_of(&other, AG, 16, quarter, 4, 8000);
  const mp_traffic_t *traffic = traffic_of_sample(network, &other);
  assert_int_equal(traffic->algorithm, MP_ALGORITHM_DIMENSION_RING);
  // Two neighbours swap: half of their bytes along y, then all along x.
  assert_true(near_to(traffic->alone, A + 2000 / B + A + 4000 / B));
  sample_collective_end(&sample);
  sample_collective_end(&other);
  mp_network_release(network);
}

// ---- Slices ----

#define TWO_SLICES                \
  "ring:4 slices:2 hosts:2" LINKS \
  " dcn.latency:8us dcn.bandwidth:10GB/s host_link.latency:1us host_link.bandwidth:50GB/s"

static void test_hierarchical(void **state) {
  (void)state;
  const double bytes = 8e6, far = 10e-6, nic = 10e9;
  const double ring = 3 * (A + bytes / 8 / B);  // a reduce_scatter or all_gather in a slice
  mp_network_t *network =
      network_with(TWO_SLICES,
                   "all_reduce:hierarchical,all_gather:hierarchical,reduce_scatter:hierarchical,"
                   "all_to_all:hierarchical,collective_broadcast:hierarchical");
  sample_collective_t samples[5] = {0};
  // Between the slices four pairs swap halves of a quarter, twice, over one host on each side.
  sample_collective(&samples[0], AR, 8, 8, (int64_t)bytes);
  const mp_traffic_t *traffic = traffic_of_sample(network, &samples[0]);
  assert_int_equal(traffic->algorithm, MP_ALGORITHM_HIERARCHICAL);
  assert_true(near_to(traffic->alone, 2 * ring + 2 * (far + bytes / 2 / nic)));
  sample_collective(&samples[1], RS, 8, 8, (int64_t)bytes);
  traffic = traffic_of_sample(network, &samples[1]);
  assert_true(near_to(traffic->alone, ring + far + bytes / 2 / nic));
  sample_collective(&samples[2], AG, 8, 8, (int64_t)bytes);
  traffic = traffic_of_sample(network, &samples[2]);
  assert_true(near_to(traffic->alone, ring + far + bytes / 2 / nic));
  // Each sends half of its bytes to the other slice.
  sample_collective(&samples[3], AA, 8, 8, (int64_t)bytes);
  traffic = traffic_of_sample(network, &samples[3]);
  assert_true(near_to(traffic->alone, 2 * A + 2 * bytes / 4 / B + far + 4 * bytes / 2 / nic));
  sample_collective(&samples[4], BC, 8, 8, (int64_t)bytes);
  traffic = traffic_of_sample(network, &samples[4]);
  assert_true(traffic->alone > far + bytes / nic && traffic->alone < far + 1.2 * bytes / nic);
  for (int i = 0; i < 5; ++i) sample_collective_end(&samples[i]);
  mp_network_release(network);
}

// ---- The rule ----

static void check_choice(const char *pod, mp_collective_kind_t kind, uint32_t size, int64_t bytes,
                         const char *wanted) {
  char text[256];
  snprintf(text, sizeof(text), "%s%s", pod, links_of(pod));
  mp_network_t *network = network_of(text);
  sample_collective_t sample = {0};
  const uint32_t devices = (uint32_t)mp_pod_info(mp_network_pod(network))->num_devices;
  sample_collective(&sample, kind, devices, size, bytes);
  assert_string_equal(mp_algorithm_name(traffic_of_sample(network, &sample)->algorithm), wanted);
  sample_collective_end(&sample);
  mp_network_release(network);
}

static void test_rule(void **state) {
  (void)state;
  check_choice("ring:8", AR, 8, 1 << 30, "bidirectional_ring");
  check_choice("ring:8", AR, 8, 1 << 10, "direct");
  check_choice("torus:4x4", AR, 16, 1 << 30, "multiport_dimension_ring");
  check_choice("torus:4x4", AR, 4, 1 << 30, "bidirectional_ring");
  check_choice("torus:4x4", AR, 16, 1 << 10, "direct");
  check_choice("mesh:4x4", AG, 16, 1 << 30, "multiport_dimension_ring");
  check_choice("switch:8", AR, 8, 1 << 30, "bidirectional_ring");
  check_choice("switch:8", AR, 8, 1 << 12, "direct");
  check_choice("switch:8", BC, 8, 1 << 12, "direct");
  check_choice("switch:8", AA, 8, 1 << 12, "direct");
  check_choice("torus:4x4 slices:2", AR, 32, 1 << 28, "hierarchical");
  check_choice("torus:4x4 slices:2", AR, 16, 1 << 28, "multiport_dimension_ring");
}

static void test_options(void **state) {
  (void)state;
  mp_network_options_t options = {0};
  assert_ok(mp_network_options_read(MP_STR("all_reduce:tree,all_gather:ring"), &options));
  assert_ok(mp_network_options_read(MP_STR("all_gather:auto,exchange:direct"), &options));
  assert_int_equal(options.algorithms[AR], MP_ALGORITHM_TREE);
  assert_int_equal(options.algorithms[AG], MP_ALGORITHM_AUTO);
  assert_int_equal(options.algorithms[MP_COLLECTIVE_EXCHANGE], MP_ALGORITHM_DIRECT);
  assert_status(mp_network_options_read(MP_STR("all_reduc:ring"), &options), MP_INVALID_ARGUMENT,
                "did you mean 'all_reduce'");
  assert_status(mp_network_options_read(MP_STR("all_reduce:rign"), &options), MP_INVALID_ARGUMENT,
                "did you mean 'ring'");
  assert_status(mp_network_options_read(MP_STR("all_to_all:tree"), &options), MP_INVALID_ARGUMENT,
                "all_to_all: algorithm 'tree' is unknown; expected one of auto, direct, "
                "hierarchical");
  assert_status(mp_network_options_read(MP_STR("all_reduce"), &options), MP_INVALID_ARGUMENT,
                "multiport_dimension_ring, dimension_ring");
  assert_int_equal(options.algorithms[AR], MP_ALGORITHM_TREE);
}

// An algorithm that does not fit a group leaves the choice to the rule.
static void test_unfit_algorithms(void **state) {
  (void)state;
  static const int64_t corner[] = {0, 1, 4};
  mp_network_t *network =
      network_with("torus:4x4" LINKS, "all_reduce:dimension_ring,all_gather:hierarchical");
  sample_collective_t sample = {0}, other = {0};
  sample_collective_of(&sample, AR, 16, corner, 3, 1 << 28);
  assert_int_equal(traffic_of_sample(network, &sample)->algorithm, MP_ALGORITHM_BIDIRECTIONAL_RING);
  sample_collective(&other, AG, 16, 16, 1 << 28);
  assert_int_equal(traffic_of_sample(network, &other)->algorithm,
                   MP_ALGORITHM_MULTIPORT_DIMENSION_RING);
  sample_collective_end(&sample);
  sample_collective_end(&other);
  mp_network_release(network);
}

// ---- Messages of single devices ----

// What the messages of all steps put on every link is what the stages do.
static void check_sends(const char *pod, const char *algorithms, mp_collective_kind_t kind,
                        const int64_t *devices, uint32_t size) {
  mp_network_t *network = network_with(pod, algorithms);
  const uint32_t num_links = mp_network_num_links(network);
  sample_collective_t sample = {0};
  const uint32_t num_devices = (uint32_t)mp_pod_info(mp_network_pod(network))->num_devices;
  sample_collective_of(&sample, kind, num_devices, devices, size, 1 << 20);
  const mp_traffic_t *traffic = traffic_of_sample(network, &sample);
  mp_network_sends_t expanded;
  assert_ok(mp_network_expand(network, sample.arena, &sample.collective, 0, sample.ids, &expanded));
  const mp_network_send_t *sends = expanded.sends;
  const uint32_t count = expanded.count;
  assert_int_equal(expanded.algorithm, traffic->algorithm);
  double *loads = calloc(num_links, sizeof(*loads)), *wanted = calloc(num_links, sizeof(*wanted));
  for (uint32_t i = 0; i < count; ++i) {
    mp_transfer_t transfer;
    assert_ok(mp_network_message(network, mp_network_device(sends[i].source),
                                 mp_network_device(sends[i].target), sends[i].bytes, &transfer));
    for (uint32_t u = 0; u < transfer.num_uses; ++u) {
      loads[transfer.uses[u].link] += transfer.bytes;
    }
    assert_true(sends[i].bytes > 0 && (i == 0 || sends[i].step >= sends[i - 1].step));
  }
  for (uint32_t s = 0; s < traffic->num_stages; ++s) {
    for (uint32_t t = 0; t < traffic->stages[s].num_transfers; ++t) {
      const mp_transfer_t *transfer = &traffic->stages[s].transfers[t];
      for (uint32_t u = 0; u < transfer->num_uses; ++u) {
        wanted[transfer->uses[u].link] += transfer->bytes * transfer->uses[u].times;
      }
    }
  }
  for (uint32_t i = 0; i < num_links; ++i) {
    if (fabs(loads[i] - wanted[i]) > 1e-6 * wanted[i]) {
      fail_msg("%s %s, %s: %g, not %g", pod, mp_collective_kind_name(kind),
               mp_network_link(network, i)->name, wanted[i], loads[i]);
    }
  }
  free(loads);
  free(wanted);
  sample_collective_end(&sample);
  mp_network_release(network);
}

static void test_sends(void **state) {
  (void)state;
  static const char *const algorithms[] = {"multiport_dimension_ring",
                                           "dimension_ring",
                                           "bidirectional_ring",
                                           "ring",
                                           "hierarchical",
                                           "halving_doubling",
                                           "tree",
                                           "direct"};
  static const char *const pods[] = {"torus:4x4",       "mesh:4x3",
                                     "torus:2x3x4",     "switch:7",
                                     "ring:3 slices:3", "torus:4x2 cores_per_chip:2 slices:2"};
  static const mp_collective_kind_t kinds[] = {AR, RS, AG, AA, BC};
  for (size_t p = 0; p < sizeof(pods) / sizeof(pods[0]); ++p) {
    mp_network_t *network = network_of(pods[p]);
    const uint32_t devices = (uint32_t)mp_pod_info(mp_network_pod(network))->num_devices;
    mp_network_release(network);
    for (size_t k = 0; k < 5; ++k) {
      for (size_t a = 0; a < 8; ++a) {
        char options[128];
        mp_network_options_t read = {0};
        snprintf(options, sizeof(options), "%s:%s", mp_collective_kind_name(kinds[k]),
                 algorithms[a]);
        mp_status_t status = mp_network_options_read(mp_str(options), &read);
        if (status != NULL) {  // not an algorithm of this kind
          mp_status_release(status);
          continue;
        }
        check_sends(pods[p], options, kinds[k], NULL, devices);
      }
    }
  }
}

// Flows of large boxes are counted link by link.
static void test_counted_pairs(void **state) {
  (void)state;
  check_sends("torus:32x16", "", AA, NULL, 512);
  check_sends("mesh:8x8x4 cores_per_chip:2", "", AA, NULL, 512);
  check_sends("switch:513", "", AA, NULL, 513);
  check_sends("ring,switch,fully_connected:8x8x8", "", AA, NULL, 512);
  int64_t strided[512];  // every second column
  for (int i = 0; i < 512; ++i) strided[i] = 2 * (i % 16) + 32 * (i / 16);
  check_sends("torus:32x32", "", AA, strided, 512);
}

// Of many flows in slices that are alike, those of one slice are counted.
static void test_pairs_of_slices(void **state) {
  (void)state;
  check_sends("ring:100 cores_per_chip:2 slices:5", "all_to_all:hierarchical", AA, NULL, 1000);
  check_sends("torus:16x16 slices:9", "all_to_all:hierarchical", AA, NULL, 9 * 256);
}

static void test_permute(void **state) {
  (void)state;
  static const uint32_t pairs[] = {7, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7};
  mp_network_t *network = network_of("ring:8" LINKS);
  sample_collective_t sample = {0};
  sample_collective(&sample, MP_COLLECTIVE_PERMUTE, 8, 8, 1 << 20);
  sample.collective.num_pairs = 8;
  sample.collective.pairs = pairs;
  const mp_traffic_t *traffic = traffic_of_sample(network, &sample);
  assert_int_equal(traffic->num_stages, 1);
  assert_int_equal(traffic->stages[0].num_transfers, 1);
  assert_int_equal(traffic->stages[0].transfers[0].num_uses, 8);
  assert_int_equal(traffic->stages[0].transfers[0].source, -1);
  assert_true(near_to(traffic->alone, A + (1 << 20) / B));
  sample.collective.num_pairs = 1;
  sample.collective.digest = 0;
  traffic = traffic_of_sample(network, &sample);
  assert_int_equal(traffic->stages[0].transfers[0].source, 7);
  assert_int_equal(traffic->stages[0].transfers[0].target, 0);
  sample_collective_end(&sample);
  mp_network_release(network);
}

// Four devices have quarters of 16 elements; the first two want 10, and all 16.
static void test_exchange(void **state) {
  (void)state;
  static const int64_t starts[] = {0, 4, 8, 12}, sizes[] = {4, 4, 4, 4};
  static const int64_t wanted_starts[] = {0, 0, 0, 0}, wanted_sizes[] = {10, 16, 0, 0};
  static const uint32_t owner[] = {0, 1, 2, 3};
  mp_network_t *network = network_of("switch:4" SWITCH_LINKS);
  sample_collective_t sample = {0};
  sample_collective(&sample, MP_COLLECTIVE_EXCHANGE, 4, 4, 4);
  sample.collective.source = (mp_collective_boxes_t){starts, sizes, owner};
  sample.collective.target = (mp_collective_boxes_t){wanted_starts, wanted_sizes, NULL};
  mp_network_sends_t expanded;
  assert_ok(mp_network_expand(network, sample.arena, &sample.collective, 0, sample.ids, &expanded));
  const mp_network_send_t *sends = expanded.sends;
  const uint32_t count = expanded.count;
  assert_int_equal(count, 5);
  double bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    assert_true(sends[i].target < 2 && sends[i].source != sends[i].target && sends[i].step == 0);
    bytes += sends[i].bytes;
  }
  assert_true(bytes == 6 + 12);
  const mp_traffic_t *traffic = traffic_of_sample(network, &sample);
  assert_int_equal(traffic->num_stages, 1);
  assert_int_equal(traffic->stages[0].num_transfers, 2);  // of 4 bytes, and of 2
  sample_collective_end(&sample);
  mp_network_release(network);
}

static void test_ragged(void **state) {
  (void)state;
  int64_t rows[] = {1000}, room[] = {600};
  mp_network_t *network = network_of("switch:4" SWITCH_LINKS);
  sample_collective_t sample = {0};
  sample_collective(&sample, MP_COLLECTIVE_RAGGED_ALL_TO_ALL, 4, 4, 1000);
  mp_collective_operand_t operands[6];
  for (int i = 0; i < 6; ++i) operands[i] = sample.operand;
  operands[0].dims = rows;
  operands[1].dims = room;
  sample.collective.operands = operands;
  sample.collective.num_operands = 6;
  const mp_traffic_t *traffic = traffic_of_sample(network, &sample);
  assert_true(traffic->stages[0].transfers[0].bytes == 150);
  sample_collective_end(&sample);
  mp_network_release(network);
}

static void test_nothing_to_send(void **state) {
  (void)state;
  mp_network_t *network = network_of("switch:4");
  sample_collective_t sample = {0}, empty = {0}, send = {0};
  const mp_traffic_t *traffic;
  sample_collective(&sample, AR, 4, 1, 1000);
  assert_int_equal(traffic_of_sample(network, &sample)->num_stages, 0);
  sample_collective(&empty, AR, 4, 4, 0);
  traffic = traffic_of_sample(network, &empty);
  assert_true(isfinite(traffic->alone) && traffic->alone > 0);
  sample_collective(&send, MP_COLLECTIVE_SEND_RECV, 4, 4, 1000);
  assert_status(mp_network_traffic(network, &send.collective, 0, send.ids, &traffic), MP_INTERNAL,
                "not a group operation");
  sample_collective_end(&sample);
  sample_collective_end(&empty);
  sample_collective_end(&send);
  mp_network_release(network);
}

// ---- The same again ----

static void test_kept_and_equal(void **state) {
  (void)state;
  mp_network_t *networks[] = {network_of("torus:4x4x2"), network_of("torus:4x4x2")};
  sample_collective_t sample = {0}, again = {0}, larger = {0};
  sample_collective(&sample, AR, 32, 32, 12345);
  sample_collective(&again, AR, 32, 32, 12345);
  sample_collective(&larger, AR, 32, 32, 123450);
  const mp_traffic_t *traffic = traffic_of_sample(networks[0], &sample);
  assert_ptr_equal(traffic, traffic_of_sample(networks[0], &again));
  assert_ptr_not_equal(traffic, traffic_of_sample(networks[0], &larger));
  const mp_traffic_t *other = traffic_of_sample(networks[1], &sample);
  assert_int_equal(traffic->algorithm, other->algorithm);
  assert_memory_equal(&traffic->alone, &other->alone, sizeof(double));
  for (int i = 0; i < 2; ++i) mp_network_release(networks[i]);
  sample_collective_end(&sample);
  sample_collective_end(&again);
  sample_collective_end(&larger);
}

static void check_same_traffic(const mp_traffic_t *traffic, const mp_traffic_t *wanted) {
  assert_memory_equal(&traffic->alone, &wanted->alone, sizeof(double));
  assert_int_equal(traffic->num_stages, wanted->num_stages);
  for (uint32_t s = 0; s < wanted->num_stages; ++s) {
    assert_int_equal(traffic->stages[s].num_transfers, wanted->stages[s].num_transfers);
    for (uint32_t t = 0; t < wanted->stages[s].num_transfers; ++t) {
      const mp_transfer_t *a = &traffic->stages[s].transfers[t];
      const mp_transfer_t *b = &wanted->stages[s].transfers[t];
      assert_true(a->latency == b->latency && a->bytes == b->bytes);
      assert_true(a->source == b->source && a->target == b->target);
      assert_int_equal(a->num_uses, b->num_uses);
      assert_memory_equal(a->uses, b->uses, b->num_uses * sizeof(*b->uses));
    }
  }
}

// Flows that are remembered from another number of bytes come to the same, to the bit: those of a
// few latencies, of many, of slices that are alike, and of slices that are not.
static void test_kept_pairs(void **state) {
  (void)state;
  static const char *const pods[] = {"switch:80", "torus:16x16", "torus:16x16 slices:9",
                                     "ring:33 slices:4", "fully_connected:9x9 cores_per_chip:2"};
  for (size_t p = 0; p < sizeof(pods) / sizeof(pods[0]); ++p) {
    mp_network_t *used = network_of(pods[p]), *fresh = network_of(pods[p]);
    const uint32_t devices = (uint32_t)mp_pod_info(mp_network_pod(used))->num_devices;
    sample_collective_t samples[2] = {0};
    sample_collective(&samples[0], AA, devices, devices, 12345);
    sample_collective(&samples[1], AA, devices, devices, 1 << 22);
    traffic_of_sample(used, &samples[0]);
    check_same_traffic(traffic_of_sample(used, &samples[1]), traffic_of_sample(fresh, &samples[1]));
    for (int i = 0; i < 2; ++i) sample_collective_end(&samples[i]);
    mp_network_release(used);
    mp_network_release(fresh);
  }
}

// A pod of ten thousand devices: all of them, and the devices of all rows.
static void test_large_pod(void **state) {
  (void)state;
  static const mp_collective_kind_t kinds[] = {AR, AG, AA, BC};
  mp_network_t *network = network_of("torus:100x100" LINKS);
  for (int k = 0; k < 4; ++k) {
    sample_collective_t sample = {0};
    sample_collective(&sample, kinds[k], 10000, 10000, 1 << 30);
    const mp_traffic_t *traffic = traffic_of_sample(network, &sample);
    assert_true(traffic->alone > 0 && traffic->num_stages < 40);
    sample_collective_end(&sample);
  }
  mp_network_release(network);
}

static mp_status_t do_all(mp_pod_t *pod, const sample_collective_t *samples, int count) {
  mp_network_t *network = NULL;
  MP_RETURN_IF_ERROR(mp_network_create(pod, NULL, &network));
  mp_status_t status = NULL;
  const mp_traffic_t *traffic;
  for (int i = 0; i < count && status == NULL; ++i) {
    status = mp_network_traffic(network, &samples[i].collective, 0, samples[i].ids, &traffic);
  }
  mp_network_release(network);
  return status;
}

static void test_failing_allocations(void **state) {
  (void)state;
  mp_pod_t *pod = NULL;
  assert_ok(mp_pod_create_from_name(MP_STR("torus:4x4 slices:5"), "test", &pod));
  sample_collective_t samples[4] = {0};
  sample_collective(&samples[0], AR, 80, 32, 1 << 20);
  sample_collective(&samples[1], AA, 80, 16, 1 << 20);
  sample_collective(&samples[2], BC, 80, 32, 1 << 10);
  sample_collective(&samples[3], AA, 80, 80, 1 << 10);
  const int64_t before = mp_alloc_live();
  for (int64_t n = 1;; ++n) {
    mp_alloc_fail_at(n, 0);
    mp_status_t status = do_all(pod, samples, 4);
    mp_alloc_fail_at(0, 0);
    const bool is_done = status == NULL;
    if (!is_done) assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
    mp_status_release(status);
    assert_int_equal(mp_alloc_live(), before);
    if (is_done) break;
  }
  for (int i = 0; i < 4; ++i) sample_collective_end(&samples[i]);
  mp_pod_release(pod);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_links),
      cmocka_unit_test(test_named_links),
      cmocka_unit_test(test_links_without_latency),
      cmocka_unit_test(test_fat_tree_links),
      cmocka_unit_test(test_too_many_links),
      cmocka_unit_test(test_routes),
      cmocka_unit_test(test_routes_of_hosts),
      cmocka_unit_test(test_closed_forms),
      cmocka_unit_test(test_strided_groups),
      cmocka_unit_test(test_parts_of_grids),
      cmocka_unit_test(test_hierarchical),
      cmocka_unit_test(test_rule),
      cmocka_unit_test(test_options),
      cmocka_unit_test(test_unfit_algorithms),
      cmocka_unit_test(test_sends),
      cmocka_unit_test(test_counted_pairs),
      cmocka_unit_test(test_pairs_of_slices),
      cmocka_unit_test(test_permute),
      cmocka_unit_test(test_exchange),
      cmocka_unit_test(test_ragged),
      cmocka_unit_test(test_nothing_to_send),
      cmocka_unit_test(test_kept_and_equal),
      cmocka_unit_test(test_kept_pairs),
      cmocka_unit_test(test_large_pod),
      cmocka_unit_test(test_failing_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
