// Places devices on core groups. Everything is linear in devices plus cores.
//
// Devices in the order of their hosts and core groups in hwloc's order are both sorted by locality,
// so dividing each list into contiguous equal parts keeps neighbours together.
#include <stdlib.h>

#include "sim/base/alloc.h"
#include "topology/pod_impl.h"

// The shares of the host's memory, and of each NUMA node's, for spaces without a described
// capacity. The rest is for the user's programs, which also use the unpinned memory.
#define SHARE_DEVICE        0.7
#define SHARE_PINNED_HOST   0.1
#define SHARE_UNPINNED_HOST 0
static const double g_memory_share[MP_MEMORY_SPACE_COUNT] = {
#define ROW(name, text) [MP_MEMORY_##name] = SHARE_##name,
    MP_MEMORY_SPACES(ROW)
#undef ROW
};

enum { MP_MEBIBYTE = 1 << 20 };

static int place_devices_compare_ints(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a;
  int32_t y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

static int32_t place_devices_min3(int32_t a, int32_t b, int32_t c) {
  int32_t least = a < b ? a : b;
  return least < c ? least : c;
}

// Folds neighbouring core groups of the machine into `count` groups, so that every group has a
// device and a worker.
static mp_status_t place_devices_fold_groups(mp_pod_t *pod, const mp_machine_t *machine,
                                             int32_t count) {
  int32_t *cpus =
      mp_arena_copy(pod->arena, machine->cpus, sizeof(*cpus) * (size_t)machine->num_cpus);
  int32_t *cores =
      mp_arena_copy(pod->arena, machine->core_cpus, sizeof(*cores) * (size_t)machine->num_cores);
  int32_t *nodes = MP_ARENA_ARRAY(pod->arena, int32_t, (size_t)machine->num_groups);
  pod->groups = MP_ARENA_ARRAY(pod->arena, mp_core_group_t, (size_t)count);
  if (cpus == NULL || cores == NULL || nodes == NULL || pod->groups == NULL) {
    return mp_status_out_of_memory();
  }
  pod->machine.num_core_groups = count;
  for (int32_t index = 0; index < count; ++index) {
    mp_core_group_t *group = &pod->groups[index];
    int32_t begin = mp_part_begin(machine->num_groups, index, count);
    int32_t end = mp_part_begin(machine->num_groups, index + 1, count);
    const mp_machine_group_t *first = &machine->groups[begin];
    const mp_machine_group_t *last = &machine->groups[end - 1];
    group->index = index;
    group->cpus = cpus + first->first_cpu;
    group->num_cpus = last->first_cpu + last->num_cpus - first->first_cpu;
    group->core_cpus = cores + first->first_core;
    group->num_cores = last->first_core + last->num_cores - first->first_core;
    group->numa_nodes = nodes + begin;
    for (int32_t g = begin; g < end; ++g) {
      // Groups of one node are neighbours.
      if (g != begin && machine->groups[g].numa_node == machine->groups[g - 1].numa_node) continue;
      nodes[begin + group->num_numa_nodes++] = machine->groups[g].numa_node;
    }
    if (group->num_numa_nodes == 1) group->node_memory = machine->groups[begin].node_memory;
    qsort(cpus + first->first_cpu, (size_t)group->num_cpus, sizeof(int32_t),
          place_devices_compare_ints);
  }
  return NULL;
}

// Gives each group one worker, and the remaining ones in proportion to the groups' further cores.
static void place_devices_share_workers(mp_pod_t *pod, int32_t workers) {
  int32_t groups = pod->machine.num_core_groups;
  int64_t extra = workers - groups;
  int64_t total = pod->machine.num_cores - groups;
  int64_t before = 0;
  for (int32_t index = 0; index < groups; ++index) {
    mp_core_group_t *group = &pod->groups[index];
    if (total > 0) {
      int64_t after = before + group->num_cores - 1;
      group->num_workers = 1 + (int32_t)(extra * after / total - extra * before / total);
      before = after;
    } else {
      group->num_workers = 1 + mp_part_begin((int32_t)extra, index + 1, groups) -
                           mp_part_begin((int32_t)extra, index, groups);
    }
  }
  pod->machine.num_workers = workers;
  pod->machine.worker_per_core = workers == pod->machine.num_cores;
}

// A counting sort: ids stay ascending within a host.
mp_status_t mp_pod_list_by_host(const mp_pod_t *pod, int32_t *out_ids) {
  int32_t *begin = mp_calloc((size_t)pod->info.num_hosts + 1, sizeof(*begin));
  MP_RETURN_IF_NULL(begin);
  int32_t first = pod->info.first_local_device;
  int32_t end = first + pod->info.num_local_devices;
  for (int32_t id = first; id < end; ++id) ++begin[pod->devices[id].host_index + 1];
  for (int32_t host = 0; host < pod->info.num_hosts; ++host) begin[host + 1] += begin[host];
  for (int32_t id = first; id < end; ++id) {
    out_ids[begin[pod->devices[id].host_index]++] = id;
  }
  mp_free(begin);
  return NULL;
}

static mp_status_t place_devices(mp_pod_t *pod) {
  int32_t devices = pod->info.num_local_devices;
  int32_t groups = pod->machine.num_core_groups;
  int32_t *ids = MP_ARENA_ARRAY(pod->arena, int32_t, (size_t)devices);
  MP_RETURN_IF_NULL(ids);
  MP_RETURN_IF_ERROR(mp_pod_list_by_host(pod, ids));
  for (int32_t index = 0; index < groups; ++index) {
    mp_core_group_t *group = &pod->groups[index];
    int32_t begin = mp_part_begin(devices, index, groups);
    group->device_ids = ids + begin;
    group->num_devices = mp_part_begin(devices, index + 1, groups) - begin;
    for (int32_t i = 0; i < group->num_devices; ++i) {
      mp_pod_device_t *device = &pod->devices[group->device_ids[i]];
      device->core_group = index;
      device->numa_node = group->num_numa_nodes == 1 ? group->numa_nodes[0] : -1;
    }
  }
  return NULL;
}

// The capacity that a device of this process shares with those of its NUMA node, out of `total`.
// The pages will be bound to the node, so it is at most the node's memory.
static double place_devices_share_of_node(const mp_pod_t *pod, const mp_pod_device_t *device,
                                          double total, double share) {
  if (device->core_group < 0 || pod->machine.num_numa_nodes < 2) return total;
  const uint64_t memory = pod->groups[device->core_group].node_memory;
  return memory == 0 || (double)memory * share > total ? total : (double)memory * share;
}

void mp_pod_share_memory(mp_pod_t *pod, int32_t first, int32_t count, uint64_t memory,
                         int32_t sharers) {
  for (int space = 0; space < MP_MEMORY_SPACE_COUNT; ++space) {
    const double share = g_memory_share[space];
    if (pod->spec.memory[space] != 0 || share == 0) continue;
    const double total = (double)memory * share * count / sharers;
    for (int32_t id = first; id < first + count; ++id) {
      mp_pod_device_t *device = &pod->devices[id];
      const uint64_t bytes = (uint64_t)place_devices_share_of_node(pod, device, total, share);
      device->capacity[space] =
          bytes < MP_MEBIBYTE ? MP_MEBIBYTE : bytes / MP_MEBIBYTE * MP_MEBIBYTE;
      device->is_shared[space] = true;
    }
  }
}

mp_status_t mp_pod_place(mp_pod_t *pod, const mp_machine_t *machine, int32_t workers) {
  pod->machine.is_real = machine->is_real;
  pod->machine.num_cores = machine->num_cores;
  pod->machine.num_numa_nodes = machine->num_numa_nodes;
  pod->machine.cpu_quota = machine->cpu_quota;
  pod->machine.memory = machine->memory;
  pod->machine_packages = machine->num_packages;
  pod->machine_groups = machine->num_groups;
  pod->machine_cpus = machine->num_cpus;
  int32_t groups = place_devices_min3(machine->num_groups, pod->info.num_local_devices, workers);
  MP_RETURN_IF_ERROR(place_devices_fold_groups(pod, machine, groups));
  place_devices_share_workers(pod, workers);
  return place_devices(pod);
}
