// The pod: what hwloc finds, described pods, their places on machines, serialization.

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/base/alloc.h"
#include "tests/unit/support/options_test.h"
#include "tests/unit/support/unit.h"
#include "topology/machine/cgroup.h"
#include "topology/pod.h"

#define BIG_MACHINE "pack:2 numa:4 l3:2 core:8 pu:1"
#define FIXTURES    MINIPOD_SOURCE_DIR "/tests/fixtures/"

// Makes a pod of options given as one text: "name=value;name=value".
static mp_status_t create_pod(const char *text, mp_pod_t **out_pod) {
  mp_options_t *options = NULL;
  MP_RETURN_IF_ERROR(options_from(text, &options));
  mp_status_t status = mp_pod_create(options, out_pod);
  mp_options_release(options);
  return status;
}

static mp_pod_t *pod_of(const char *text) {
  mp_pod_t *pod = NULL;
  assert_ok(create_pod(text, &pod));
  return pod;
}

static mp_pod_t *pod_named(const char *text) {
  mp_pod_t *pod = NULL;
  assert_ok(mp_pod_create_from_name(mp_str(text), "topology name", &pod));
  return pod;
}

// What must hold for every pod on a machine.
static void check_placement(const mp_pod_t *pod) {
  const mp_pod_info_t *info = mp_pod_info(pod);
  const mp_pod_machine_t *machine = mp_pod_machine(pod);
  int32_t devices = 0;
  int32_t workers = 0;
  int32_t cores = 0;
  assert_true(machine->num_core_groups >= 1);
  for (int32_t g = 0; g < machine->num_core_groups; ++g) {
    const mp_core_group_t *group = mp_pod_core_group(pod, g);
    assert_int_equal(group->index, g);
    assert_true(group->num_workers >= 1 && group->num_devices >= 1 && group->num_cores >= 1);
    assert_true(group->num_cpus >= group->num_cores && group->num_numa_nodes >= 1);
    for (int32_t i = 0; i < group->num_devices; ++i) {
      assert_int_equal(mp_pod_device(pod, group->device_ids[i])->core_group, g);
    }
    for (int32_t i = 1; i < group->num_cpus; ++i) {
      assert_true(group->cpus[i] > group->cpus[i - 1]);
    }
    devices += group->num_devices;
    workers += group->num_workers;
    cores += group->num_cores;
  }
  assert_int_equal(devices, info->num_devices);
  assert_int_equal(workers, machine->num_workers);
  assert_int_equal(cores, machine->num_cores);
  for (int32_t id = 0; id < info->num_devices; ++id) {
    const mp_pod_device_t *device = mp_pod_device(pod, id);
    assert_int_equal(device->id, id);
    assert_in_range(device->host_index, 0, info->num_hosts - 1);
    assert_true(device->capacity[MP_MEMORY_DEVICE] >= 1 << 20);
  }
}

// The table of the design: 16 core groups of 8 cores on 8 NUMA nodes.
static const struct {
  int32_t numa_node;
  int32_t first_cpu;
} g_big_groups[16] = {{0, 0},  {0, 8},  {1, 16}, {1, 24}, {2, 32}, {2, 40},  {3, 48},  {3, 56},
                      {4, 64}, {4, 72}, {5, 80}, {5, 88}, {6, 96}, {6, 104}, {7, 112}, {7, 120}};

static void check_big_group(const mp_core_group_t *group) {
  assert_int_equal(group->num_cpus, 8);
  assert_int_equal(group->num_cores, 8);
  assert_int_equal(group->num_workers, 8);
  assert_int_equal(group->num_numa_nodes, 1);
  assert_int_equal(group->numa_nodes[0], g_big_groups[group->index].numa_node);
  for (int32_t i = 0; i < 8; ++i) {
    assert_int_equal(group->cpus[i], g_big_groups[group->index].first_cpu + i);
    assert_int_equal(group->core_cpus[i], g_big_groups[group->index].first_cpu + i);
  }
}

static void a_core_group_becomes_a_device(void **state) {
  (void)state;
  mp_pod_t *pod = pod_of("machine=" BIG_MACHINE);
  check_placement(pod);
  const mp_pod_info_t *info = mp_pod_info(pod);
  const mp_pod_machine_t *machine = mp_pod_machine(pod);
  assert_int_equal(info->num_devices, 16);
  assert_string_equal(info->kind, "minipod");
  assert_int_equal(info->num_hosts, 1);
  assert_false(machine->is_real);
  assert_true(machine->worker_per_core);
  assert_int_equal(machine->num_core_groups, 16);
  assert_int_equal(machine->num_cores, 128);
  assert_int_equal(machine->num_workers, 128);
  assert_int_equal(machine->num_numa_nodes, 8);
  for (int32_t id = 0; id < 16; ++id) {
    const mp_pod_device_t *device = mp_pod_device(pod, id);
    assert_int_equal(device->core_group, id);
    assert_int_equal(device->numa_node, g_big_groups[id].numa_node);
    assert_int_equal(device->coords[0], id);
    assert_int_equal(device->core_on_chip, 0);
    assert_int_equal(device->process_index, 0);
    assert_int_equal(device->local_hardware_id, id);
    check_big_group(mp_pod_core_group(pod, id));
  }
  mp_pod_release(pod);
}

static void more_devices_share_groups_in_pairs(void **state) {
  (void)state;
  mp_pod_t *pod = pod_of("machine=" BIG_MACHINE ";num_devices=32");
  check_placement(pod);
  assert_int_equal(mp_pod_info(pod)->num_devices, 32);
  assert_int_equal(mp_pod_machine(pod)->num_core_groups, 16);
  for (int32_t id = 0; id < 32; ++id) {
    const mp_pod_device_t *device = mp_pod_device(pod, id);
    assert_int_equal(device->core_group, id / 2);
    assert_int_equal(device->numa_node, g_big_groups[id / 2].numa_node);
    check_big_group(mp_pod_core_group(pod, id / 2));
    assert_int_equal(mp_pod_core_group(pod, id / 2)->num_devices, 2);
  }
  mp_pod_release(pod);
}

static void fewer_devices_take_several_groups(void **state) {
  (void)state;
  mp_pod_t *pod = pod_of("machine=" BIG_MACHINE ";num_devices=3");
  check_placement(pod);
  assert_int_equal(mp_pod_machine(pod)->num_core_groups, 3);
  assert_int_equal(mp_pod_core_group(pod, 0)->num_cores, 40);  // 5 groups: nodes 0, 1, half of 2
  assert_int_equal(mp_pod_core_group(pod, 0)->num_numa_nodes, 3);
  assert_int_equal(mp_pod_device(pod, 0)->numa_node, -1);
  mp_pod_release(pod);
  pod = pod_of("machine=" BIG_MACHINE ";num_devices=8");
  check_placement(pod);
  for (int32_t id = 0; id < 8; ++id) assert_int_equal(mp_pod_device(pod, id)->numa_node, id);
  mp_pod_release(pod);
}

static void fewer_workers_than_groups_leave_none_without(void **state) {
  (void)state;
  mp_pod_t *pod = pod_of("machine=" BIG_MACHINE ";workers=3;num_devices=32");
  check_placement(pod);
  assert_int_equal(mp_pod_machine(pod)->num_core_groups, 3);
  assert_int_equal(mp_pod_machine(pod)->num_workers, 3);
  assert_false(mp_pod_machine(pod)->worker_per_core);
  mp_pod_release(pod);
  pod = pod_of("machine=" BIG_MACHINE ";workers=40");
  check_placement(pod);
  assert_int_equal(mp_pod_machine(pod)->num_core_groups, 16);
  mp_pod_release(pod);
  pod = pod_of("machine=core:1 pu:1;workers=5");
  check_placement(pod);
  mp_pod_release(pod);
}

static void a_recorded_machine_with_hardware_threads(void **state) {
  (void)state;
  mp_pod_t *pod = pod_of("machine=" FIXTURES "topology/two_sockets_smt.xml");
  check_placement(pod);
  assert_int_equal(mp_pod_info(pod)->num_devices, 4);
  assert_int_equal(mp_pod_machine(pod)->num_cores, 12);
  const mp_core_group_t *group = mp_pod_core_group(pod, 2);
  const int32_t cpus[] = {6, 7, 8, 18, 19, 20};
  assert_int_equal(group->num_cpus, 6);
  assert_int_equal(group->num_cores, 3);
  assert_memory_equal(group->cpus, cpus, sizeof(cpus));
  assert_memory_equal(group->core_cpus, cpus, 3 * sizeof(*cpus));
  assert_int_equal(mp_pod_device(pod, 2)->numa_node, 1);
  mp_pod_release(pod);
}

static void odd_machines_work(void **state) {
  (void)state;
  static const struct {
    const char *machine;
    int32_t groups;
    int32_t cores;
    int32_t devices;
  } cases[] = {
      {"core:1 pu:1", 1, 1, 4},
      {"pu:6", 1, 6, 4},
      {"pack:2 core:4 pu:2", 1, 8, 4},
      {"pack:2 numa:1 core:4 pu:2", 2, 8, 4},
      {"pack:1 l3:1 numa:2 core:4 pu:1", 2, 8, 4},    // a cache that spans nodes
      {"pack:2 [numa] [numa] core:4 pu:1", 2, 8, 4},  // two kinds of memory for the same cores
      {"pack:1 numa:1 l3:5 core:3 pu:2", 5, 15, 5},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    char text[128];
    snprintf(text, sizeof(text), "machine=%s", cases[i].machine);
    mp_pod_t *pod = pod_of(text);
    check_placement(pod);
    int32_t groups = cases[i].groups < cases[i].devices ? cases[i].groups : cases[i].devices;
    assert_int_equal(mp_pod_machine(pod)->num_core_groups, groups);
    assert_int_equal(mp_pod_machine(pod)->num_cores, cases[i].cores);
    assert_int_equal(mp_pod_info(pod)->num_devices, cases[i].devices);
    mp_pod_release(pod);
  }
}

static void bad_machines_are_errors(void **state) {
  (void)state;
  mp_pod_t *pod = NULL;
  assert_status(create_pod("machine=bogus:3", &pod), MP_INVALID_ARGUMENT, "got 'bogus:3'");
  assert_status(create_pod("machine=no/such.xml", &pod), MP_NOT_FOUND, "no/such.xml");
  assert_status(create_pod("machine=" FIXTURES "topology/unknown_key.yaml", &pod),
                MP_INVALID_ARGUMENT, "unknown_key.yaml");
  assert_null(pod);
}

static void the_real_machine_makes_at_least_four(void **state) {
  (void)state;
  mp_pod_t *pod = pod_of("");
  check_placement(pod);
  assert_true(mp_pod_info(pod)->num_devices >= 4);
  assert_true(mp_pod_machine(pod)->is_real);
  assert_true(mp_pod_machine(pod)->memory > 0);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_pod_describe(pod, &text);
  assert_non_null(strstr(mp_strbuf_text(&text), "found by hwloc"));
  mp_strbuf_deinit(&text);
  mp_pod_release(pod);
}

static void the_affinity_mask_is_respected(void **state) {
  (void)state;
  cpu_set_t before;
  cpu_set_t one;
  assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &before)) ++cpu;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
  mp_pod_t *pod = pod_of("");
  assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
  check_placement(pod);
  assert_int_equal(mp_pod_machine(pod)->num_cores, 1);
  assert_int_equal(mp_pod_machine(pod)->num_workers, 1);
  assert_int_equal(mp_pod_core_group(pod, 0)->num_cpus, 1);
  assert_int_equal(mp_pod_core_group(pod, 0)->cpus[0], cpu);
  assert_int_equal(mp_pod_info(pod)->num_devices, 4);
  mp_pod_release(pod);
}

static void a_described_pod_keeps_hosts_together(void **state) {
  (void)state;
  // Four hosts of 2x2 chips on four core groups: each host's devices are on one group.
  mp_pod_t *pod = pod_of("topology=v5e:4x4;machine=pack:2 numa:2 l3:1 core:2 pu:1");
  check_placement(pod);
  const mp_pod_info_t *info = mp_pod_info(pod);
  assert_int_equal(info->num_devices, 16);
  assert_int_equal(info->num_hosts, 4);
  assert_string_equal(info->kind, "TPU v5 lite");
  for (int32_t id = 0; id < 16; ++id) {
    const mp_pod_device_t *device = mp_pod_device(pod, id);
    int32_t host = device->coords[1] / 2 * 2 + device->coords[0] / 2;
    assert_int_equal(device->coords[0], id % 4);
    assert_int_equal(device->coords[1], id / 4);
    assert_int_equal(device->coords[2], 0);
    assert_int_equal(device->host_index, host);
    assert_int_equal(device->core_group, host);
    assert_true(device->capacity[MP_MEMORY_DEVICE] == 63ull << 28);
  }
  mp_pod_release(pod);
}

// Every shape that is published for a machine; tests/e2e/plugin/test_tpu_topologies.py has the
// facts.
static void published_shapes_are_accepted(void **state) {
  (void)state;
  static const char *const v4[] = {"v4", "v4-megacore", "v5p", "7x", NULL};
  static const char *const blocks[] = {"2x2x1",    "2x2x2",    "2x2x4", "2x4x4",  "4x4x4",
                                       "4x4x8",    "4x8x8",    "8x8x8", "8x8x16", "8x16x16",
                                       "16x16x16", "12x12x24", NULL};
  static const char *const v5e[] = {"v5e", "v6e", NULL};
  static const char *const planes[] = {"1x1", "2x2",  "2x4",   "4x4", "4x8",
                                       "8x8", "8x16", "16x16", NULL};
  static const char *const gpu[] = {"a100", "h100", "h200", "b200", "gb200", NULL};
  static const char *const hosts[] = {"8", "4", NULL};
  const char *const *const families[][2] = {{v4, blocks}, {v5e, planes}, {gpu, hosts}};
  for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); ++f) {
    for (const char *const *name = families[f][0]; *name != NULL; ++name) {
      for (const char *const *shape = families[f][1]; *shape != NULL; ++shape) {
        char text[64];
        snprintf(text, sizeof(text), "%s:%s", *name, *shape);
        mp_pod_t *pod = pod_named(text);
        const mp_pod_info_t *info = mp_pod_info(pod);
        assert_int_equal(info->num_devices, info->chips_per_slice * info->cores_per_chip);
        assert_true(info->flops[MP_FLOP_BF16] > 1e12 && info->memory_bandwidth > 1e11);
        assert_true(info->ici.bandwidth > 1e10 && info->dcn.bandwidth > 1e9);
        mp_pod_release(pod);
      }
    }
  }
}

static void presets_report_what_the_machines_report(void **state) {
  (void)state;
  static const struct {
    const char *name;
    const char *kind;
    int32_t devices;
    int32_t cores_per_chip;
    int32_t cores_per_device;
    int32_t hosts;
  } cases[] = {
      {"v2:2x2", "TPU v2", 8, 2, 1, 1},     {"v3:4x4", "TPU v3", 32, 2, 1, 4},
      {"v4:2x2x4", "TPU v4", 32, 2, 1, 4},  {"v4-megacore:2x2x4", "TPU v4", 16, 1, 2, 4},
      {"v5e:1", "TPU v5 lite", 1, 1, 1, 1}, {"v5e:16x16", "TPU v5 lite", 256, 1, 1, 64},
      {"v5p:2x2x2", "TPU v5", 8, 1, 2, 2},  {"v6e:2x4", "TPU v6 lite", 8, 1, 1, 2},
      {"7x:2x2x1", "TPU7x", 8, 2, 1, 1},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    mp_pod_t *pod = pod_named(cases[i].name);
    const mp_pod_info_t *info = mp_pod_info(pod);
    assert_string_equal(info->kind, cases[i].kind);
    assert_int_equal(info->num_dims, 3);
    assert_int_equal(info->num_devices, cases[i].devices);
    assert_int_equal(info->cores_per_chip, cases[i].cores_per_chip);
    assert_int_equal(info->cores_per_device, cases[i].cores_per_device);
    assert_int_equal(info->num_hosts, cases[i].hosts);
    mp_pod_release(pod);
  }
  // On a two-core chip the cores are neighbours in the order of ids.
  mp_pod_t *pod = pod_named("v3:2x2");
  const mp_pod_device_t *device = mp_pod_device(pod, 5);
  assert_int_equal(device->core_on_chip, 1);
  assert_int_equal(device->coords[0], 0);
  assert_int_equal(device->coords[1], 1);
  mp_pod_release(pod);
}

static void slices_number_their_devices_in_turn(void **state) {
  (void)state;
  mp_pod_t *pod = pod_named("torus:2x3 slices:2 cores_per_chip:2 hosts:4");
  assert_int_equal(mp_pod_info(pod)->num_devices, 24);
  const mp_pod_device_t *device = mp_pod_device(pod, 12 + 2 * 3 + 1);
  assert_int_equal(device->slice_index, 1);
  assert_int_equal(device->chip_index, 3);
  assert_int_equal(device->coords[0], 1);
  assert_int_equal(device->coords[1], 1);
  assert_int_equal(device->core_on_chip, 1);
  assert_int_equal(device->host_index, 3);
  assert_int_equal(device->core_group, -1);
  mp_pod_release(pod);
}

static void hosts_list_their_devices_together(void **state) {
  (void)state;
  static const int32_t order[] = {0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15};
  int32_t ids[16];
  mp_pod_t *pod = pod_named("v5e:4x4");
  assert_ok(mp_pod_list_by_host(pod, ids));
  assert_memory_equal(ids, order, sizeof(order));
  mp_pod_release(pod);
}

static void counts_that_disagree_show_both(void **state) {
  (void)state;
  mp_pod_t *pod = NULL;
  setenv("MINIPOD_TOPOLOGY", "v5e:4x4", 1);
  assert_status(create_pod("num_devices=8", &pod), MP_INVALID_ARGUMENT,
                "num_devices is 8 (create option), but topology \"v5e:4x4\" (environment variable) "
                "has 16 devices");
  assert_ok(create_pod("num_devices=16", &pod));
  mp_pod_release(pod);
}

static void memory_comes_from_option_description_or_share(void **state) {
  (void)state;
  mp_pod_t *pod = pod_of("topology=v5e:2x2 memory.pinned_host:1GiB;device_memory=64MiB");
  assert_int_equal(mp_pod_device(pod, 3)->capacity[MP_MEMORY_DEVICE], 64 << 20);
  assert_int_equal(mp_pod_device(pod, 3)->capacity[MP_MEMORY_PINNED_HOST], 1 << 30);
  assert_true(mp_pod_device(pod, 3)->capacity[MP_MEMORY_UNPINNED_HOST] == UINT64_MAX);
  for (int space = 0; space < MP_MEMORY_SPACE_COUNT; ++space)
    assert_false(mp_pod_device(pod, 3)->is_shared[space]);
  mp_pod_release(pod);
  // Two nodes of 4 GiB with two devices each, which share 70 % of their node in whole MiB.
  pod = pod_of("machine=" FIXTURES "topology/two_sockets_smt.xml");
  for (int32_t id = 0; id < 4; ++id) {
    const mp_pod_device_t *device = mp_pod_device(pod, id);
    assert_int_equal(device->capacity[MP_MEMORY_DEVICE], 2867ll << 20);
    assert_true(device->is_shared[MP_MEMORY_DEVICE] && device->is_shared[MP_MEMORY_PINNED_HOST]);
    assert_false(device->is_shared[MP_MEMORY_UNPINNED_HOST]);
  }
  mp_pod_release(pod);
  // A device that lies on both nodes may have 70 % of the whole.
  pod = pod_of("num_devices=1;machine=" FIXTURES "topology/two_sockets_smt.xml");
  assert_int_equal(mp_pod_device(pod, 0)->numa_node, -1);
  assert_int_equal(mp_pod_device(pod, 0)->capacity[MP_MEMORY_DEVICE], 5734ll << 20);
  mp_pod_release(pod);
  // One space may be described and another one not.
  pod = pod_of("topology=torus:2x2 memory.pinned_host:1GiB;machine=" FIXTURES
               "topology/two_sockets_smt.xml");
  assert_true(mp_pod_device(pod, 0)->is_shared[MP_MEMORY_DEVICE]);
  assert_false(mp_pod_device(pod, 0)->is_shared[MP_MEMORY_PINNED_HOST]);
  mp_pod_release(pod);
}

static void check_same_links(const mp_pod_info_t *a, const mp_pod_info_t *b) {
  assert_int_equal(a->wiring, b->wiring);
  for (int32_t i = 0; i < a->num_dims; ++i) {
    assert_int_equal(a->dims[i].wiring, b->dims[i].wiring);
    assert_memory_equal(&a->dims[i].link, &b->dims[i].link, sizeof(a->dims[i].link));
  }
  assert_memory_equal(&a->dcn, &b->dcn, sizeof(a->dcn));
  assert_int_equal(a->dcn_links, b->dcn_links);
  assert_int_equal(a->dcn_fabric, b->dcn_fabric);
  assert_int_equal(a->dcn_leaf_hosts, b->dcn_leaf_hosts);
  assert_true(a->dcn_oversubscription == b->dcn_oversubscription);
  assert_true(a->launch_latency == b->launch_latency);
  assert_true(a->op_latency == b->op_latency && a->vector_flops == b->vector_flops);
  assert_memory_equal(a->matrix_unit, b->matrix_unit, sizeof(a->matrix_unit));
  assert_int_equal(a->cores_per_device, b->cores_per_device);
}

static void serialization_is_the_identity(void **state) {
  (void)state;
  static const char *const names[] = {
      "v5e:4x4",
      "v3:2x2",
      "torus:4x4 hosts:2 hbm:16GiB",
      "ring:8 kind:\"my core\" name:\"a b\"",
      "mesh:2x3x4 slices:3 host_shape:2x3x2 links.latency:1.3us flops.f32:1.7T launch_latency:3ns",
      "switch:5 memory.pinned_host:unlimited memory.bandwidth:100Gbit/s",
      "ring,fully_connected,switch:2x4x3 links.bandwidth:1GB/s,2GB/s,3GB/s "
      "links.latency:1us,2us,3us",
      "v5e:2x2 slices:2 launch_latency:0 op_latency:0 links.latency:0 dcn.latency:0",
      "torus:4x16 wrap.side:16 links.count:3 links.bandwidth:45GB/s cores_per_device:2",
      "fully_connected:8 slices:4 dcn.topology:fat_tree dcn.links:8 dcn.oversubscription:1.5 "
      "dcn.leaf_hosts:2 op_latency:2us matrix_unit:128x128 flops.vector:3T"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    mp_pod_t *pod = pod_named(names[i]);
    mp_pod_t *again = NULL;
    mp_strbuf_t bytes;
    mp_strbuf_init(&bytes);
    assert_ok(mp_pod_serialize(pod, &bytes));
    assert_ok(mp_pod_deserialize((mp_str_t){bytes.data, bytes.size}, &again));
    assert_true(mp_pod_fingerprint(pod) == mp_pod_fingerprint(again));
    assert_string_equal(mp_pod_info(pod)->kind, mp_pod_info(again)->kind);
    assert_string_equal(mp_pod_info(pod)->name, mp_pod_info(again)->name);
    check_same_links(mp_pod_info(pod), mp_pod_info(again));
    for (int32_t id = 0; id < mp_pod_info(pod)->num_devices; ++id) {
      const mp_pod_device_t *a = mp_pod_device(pod, id);
      const mp_pod_device_t *b = mp_pod_device(again, id);
      assert_memory_equal(a, b, offsetof(mp_pod_device_t, numa_node));
      assert_memory_equal(a->capacity, b->capacity, sizeof(a->capacity));
    }
    mp_strbuf_deinit(&bytes);
    mp_pod_release(pod);
    mp_pod_release(again);
  }
}

static void descriptions_show_links_and_network(void **state) {
  (void)state;
  static const struct {
    const char *name;
    const char *text;
  } cases[] = {
      {"v5e:4x4", "links    mesh 50GB/s, 1us\nnetwork  1 network card per host, 12.5GB/s\n"},
      {"h100:8 slices:2",
       "links    switch 450GB/s, 0.936us\nnetwork  8 network cards per host, each 50GB/s; "
       "fat tree with 32 hosts per leaf switch, oversubscription 1\n"},
      {"ring,switch:2x4x1 links.bandwidth:2GB/s,1GB/s", "links    ring 2GB/s; switch 1GB/s\n"},
      {"torus:2x2", "links    torus no figures\n"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    mp_pod_t *pod = pod_named(cases[i].name);
    mp_strbuf_t text;
    mp_strbuf_init(&text);
    mp_pod_describe(pod, &text);
    assert_non_null(strstr(mp_strbuf_text(&text), cases[i].text));
    mp_strbuf_deinit(&text);
    mp_pod_release(pod);
  }
}

static void fingerprints_tell_descriptions_apart(void **state) {
  (void)state;
  mp_pod_t *a = pod_named("torus:4x4");
  mp_pod_t *b = pod_of("topology=torus:4x4;machine=" BIG_MACHINE);
  mp_pod_t *c = pod_named("mesh:4x4");
  assert_true(mp_pod_fingerprint(a) == mp_pod_fingerprint(b));
  assert_true(mp_pod_fingerprint(a) != mp_pod_fingerprint(c));
  mp_pod_release(a);
  mp_pod_release(b);
  mp_pod_release(c);
}

// Every truncation and every single changed byte of a serialized pod is an error, never a crash.
static void damaged_bytes_are_errors(void **state) {
  (void)state;
  mp_pod_t *pod = pod_named("v5e:4x4");
  mp_pod_t *again = NULL;
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  assert_ok(mp_pod_serialize(pod, &bytes));
  for (size_t size = 0; size < bytes.size; ++size) {
    assert_status(mp_pod_deserialize((mp_str_t){bytes.data, size}, &again), MP_INVALID_ARGUMENT,
                  "serialized pod");
  }
  for (size_t i = 0; i < bytes.size; ++i) {
    bytes.data[i] ^= 1;
    mp_status_t status = mp_pod_deserialize((mp_str_t){bytes.data, bytes.size}, &again);
    // A blank of the header may turn into another.
    if (status != NULL) assert_int_equal(mp_status_code(status), MP_INVALID_ARGUMENT);
    assert_true(status != NULL || i < 40);
    mp_status_release(status);
    if (status == NULL) mp_pod_release(again);
    bytes.data[i] ^= 1;
  }
  memcpy(bytes.data, "minipod pod 0002", 16);
  assert_status(mp_pod_deserialize((mp_str_t){bytes.data, bytes.size}, &again), MP_INVALID_ARGUMENT,
                "version 2");
  mp_strbuf_deinit(&bytes);
  mp_pod_release(pod);
}

static void every_failed_allocation_is_an_error(void **state) {
  (void)state;
  bool failed = true;
  int failures = -1;
  for (int n = 1; failed; ++n, ++failures) {
    assert_true(n < 200);
    mp_pod_t *pod = NULL;
    mp_alloc_fail_at(n, 0);
    mp_status_t status = create_pod("topology=v5e:4x4;machine=pack:2 l3:2 core:2 pu:1", &pod);
    mp_alloc_fail_at(0, 0);
    failed = status != NULL;
    if (failed) assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
    mp_status_release(status);
    mp_pod_release(pod);
  }
  assert_true(failures > 5);
}

static void cgroup_limits_are_found(void **state) {
  (void)state;
  mp_cgroup_limits_t limits;
  assert_ok(mp_cgroup_limits(FIXTURES "cgroup/v2", &limits));
  assert_true(limits.cpus == 2.5);
  assert_true(limits.memory == 8ull << 30);
  assert_ok(mp_cgroup_limits(FIXTURES "cgroup/v1", &limits));
  assert_true(limits.cpus == 1.5);
  assert_true(limits.memory == 2ull << 30);
  assert_ok(mp_cgroup_limits(FIXTURES "cgroup/none", &limits));
  assert_true(limits.cpus == 0 && limits.memory == 0);
}

static double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

// Start-up time of every process: the best of five, with room for slow machines and sanitizers.
// Only the thread's own time counts: on a busy machine other processes run for most of the time
// between.
static void pods_are_made_quickly(void **state) {
  (void)state;
  static const char *const texts[] = {"num_devices=8", "num_devices=1024", "topology=v4:16x16x16"};
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
    double best = 1e9;
    for (int n = 0; n < 5; ++n) {
      double start = milliseconds();
      mp_pod_t *pod = pod_of(texts[i]);
      double taken = milliseconds() - start;
      if (taken < best) best = taken;
      mp_pod_release(pod);
    }
    print_message("%s: %.2f ms\n", texts[i], best);
    assert_true(best < 150);
  }
}

static void clouds_names_are_understood(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int chips, dims[3];
  } cases[] = {{"v5litepod-16", 16, {4, 4, 1}},
               {"v5e-8 hosts:2", 8, {2, 4, 1}},
               {"v6e-1", 1, {1, 1, 1}},
               {"v4-8", 4, {2, 2, 1}},
               {"v5p-32", 16, {2, 2, 4}},
               {"v3-32", 16, {4, 4, 1}},
               {"tpu-v6e-slice:2x4", 8, {2, 4, 1}},
               {"tpu-v5-lite-podslice:4x4", 16, {4, 4, 1}},
               {"trillium:4x4", 16, {4, 4, 1}},
               {"ironwood:2x2x1", 4, {2, 2, 1}},
               {"nvidia-h200-141gb:8", 8, {8}},
               {"a3-highgpu-8g slices:4", 8, {8}}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    mp_pod_t *pod = pod_named(cases[i].name);
    const mp_pod_info_t *info = mp_pod_info(pod);
    assert_int_equal(info->chips_per_slice, cases[i].chips);
    for (int d = 0; d < 3; ++d) assert_int_equal(info->shape[d], cases[i].dims[d]);
    mp_pod_release(pod);
  }
  static const char *const wrong[] = {"v5litepod-3", "v4-1", "v4-", "v5litepod-16x", "v5litepod"};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    mp_pod_t *pod = NULL;
    mp_status_t status = mp_pod_create_from_name(mp_str(wrong[i]), "topology name", &pod);
    assert_int_equal(mp_status_code(status), MP_INVALID_ARGUMENT);
    mp_status_release(status);
  }
}

// What the machines of a cloud have between them; words override it.
static void machines_of_clouds_are_known(void **state) {
  (void)state;
  static const struct {
    const char *name, *kind;
    int32_t devices, hosts, cards;
    double card, memory;
  } cases[] = {
      {"a3-highgpu-8g", "NVIDIA H100 80GB HBM3", 8, 1, 4, 25e9, 3350e9},
      {"a3-megagpu-8g slices:2", "NVIDIA H100 80GB HBM3", 16, 2, 8, 25e9, 3350e9},
      {"a3-ultragpu-8g slices:4", "NVIDIA H200", 32, 4, 8, 50e9, 4800e9},
      {"a3-ultragpu-8g dcn.bandwidth:10GB/s", "NVIDIA H200", 8, 1, 8, 10e9, 4800e9},
      {"a4-highgpu-8g", "NVIDIA B200", 8, 1, 8, 50e9, 7700e9},
      {"a4x-highgpu-4g", "NVIDIA GB200", 4, 1, 4, 50e9, 8000e9},
      {"gb200:72 slices:2", "NVIDIA GB200", 144, 36, 4, 50e9, 8000e9},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    mp_pod_t *pod = pod_named(cases[i].name);
    const mp_pod_info_t *info = mp_pod_info(pod);
    assert_string_equal(info->kind, cases[i].kind);
    assert_int_equal(info->num_devices, cases[i].devices);
    assert_int_equal(info->num_hosts, cases[i].hosts);
    assert_int_equal(info->dcn_links, cases[i].cards);
    assert_true(info->dcn.bandwidth == cases[i].card);
    assert_true(info->memory_bandwidth == cases[i].memory);
    mp_pod_release(pod);
  }
}

static void described_pods_have_names(void **state) {
  (void)state;
  mp_pod_t *pod = pod_named("two-slices hosts:2");
  assert_int_equal(mp_pod_info(pod)->num_slices, 2);
  assert_int_equal(mp_pod_info(pod)->chips_per_slice, 8);
  mp_pod_release(pod);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, clear_environment, clear_environment)
  const struct CMUnitTest tests[] = {
      CASE(a_core_group_becomes_a_device),
      CASE(clouds_names_are_understood),
      CASE(machines_of_clouds_are_known),
      CASE(described_pods_have_names),
      CASE(more_devices_share_groups_in_pairs),
      CASE(fewer_devices_take_several_groups),
      CASE(fewer_workers_than_groups_leave_none_without),
      CASE(a_recorded_machine_with_hardware_threads),
      CASE(odd_machines_work),
      CASE(bad_machines_are_errors),
      CASE(the_real_machine_makes_at_least_four),
      CASE(the_affinity_mask_is_respected),
      CASE(a_described_pod_keeps_hosts_together),
      CASE(published_shapes_are_accepted),
      CASE(presets_report_what_the_machines_report),
      CASE(slices_number_their_devices_in_turn),
      CASE(hosts_list_their_devices_together),
      CASE(counts_that_disagree_show_both),
      CASE(memory_comes_from_option_description_or_share),
      CASE(serialization_is_the_identity),
      CASE(descriptions_show_links_and_network),
      CASE(fingerprints_tell_descriptions_apart),
      CASE(damaged_bytes_are_errors),
      CASE(every_failed_allocation_is_an_error),
      CASE(cgroup_limits_are_found),
      CASE(pods_are_made_quickly),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
