#include "topology/machine/machine.h"

#include <errno.h>
#include <hwloc.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/alloc.h"
#include "topology/machine/cgroup.h"

// Working state of one detection.
typedef struct {
  hwloc_topology_t topology;
  hwloc_bitmap_t left;     // usable cpus not yet in a group
  hwloc_bitmap_t node;     // those of the current NUMA node
  hwloc_bitmap_t part;     // those of the current group
  hwloc_bitmap_t scratch;  // those of one core
  hwloc_obj_type_t core_type;
  mp_machine_t *machine;
} detector_t;

static bool machine_is_xml_file(const char *description) {
  size_t size = strlen(description);
  return strchr(description, '/') != NULL ||
         (size >= 4 && strcmp(description + size - 4, ".xml") == 0);
}

static mp_status_t machine_set_source(hwloc_topology_t topology, const char *description) {
  if (description[0] == '\0') return NULL;
  if (!machine_is_xml_file(description)) {
    if (hwloc_topology_set_synthetic(topology, description) == 0) return NULL;
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "option 'machine': expected an hwloc synthetic description such as "
                          "\"pack:2 numa:2 l3:1 core:4 pu:1\" or an XML file, got '%s'",
                          description);
  }
  if (access(description, R_OK) != 0) {
    return mp_status_make(MP_NOT_FOUND, "option 'machine': cannot read '%s': %s", description,
                          strerror(errno));
  }
  if (hwloc_topology_set_xml(topology, description) == 0) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "option 'machine': '%s' is not an hwloc XML file",
                        description);
}

// hwloc reads only what is needed: more would cost every process time at its start.
static mp_status_t machine_load(hwloc_topology_t topology, const char *description) {
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_icache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_L1CACHE, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_L2CACHE, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |
                                         HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
                                         HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
  MP_RETURN_IF_ERROR(machine_set_source(topology, description));
  if (hwloc_topology_load(topology) != 0) {
    return mp_status_make(description[0] == '\0' ? MP_UNAVAILABLE : MP_INVALID_ARGUMENT,
                          "hwloc cannot read the machine%s%s", description[0] == '\0' ? "" : " of ",
                          description);
  }
  return NULL;
}

// Usable cpus: those that hwloc shows and that some thread of this process may use. (One thread's
// mask is not enough: OpenMP binds the main thread to one core after start.)
static void machine_find_usable_cpus(detector_t *detector) {
  hwloc_bitmap_copy(detector->left, hwloc_topology_get_allowed_cpuset(detector->topology));
  if (!detector->machine->is_real) return;
  if (hwloc_get_cpubind(detector->topology, detector->scratch, HWLOC_CPUBIND_PROCESS) != 0) return;
  hwloc_bitmap_and(detector->scratch, detector->scratch, detector->left);
  if (!hwloc_bitmap_iszero(detector->scratch)) {
    hwloc_bitmap_copy(detector->left, detector->scratch);
  }
}

static void machine_count_all_cores(detector_t *detector) {
  hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(detector->topology);
  hwloc_obj_t core = NULL;
  while ((core = hwloc_get_next_obj_by_type(detector->topology, detector->core_type, core)) !=
         NULL) {
    if (hwloc_bitmap_intersects(core->cpuset, allowed)) ++detector->machine->num_cores_all;
  }
}

// Makes a group of the cpus in `detector->part`, which must not be empty.
static void machine_add_group(detector_t *detector, int32_t numa_node, uint64_t node_memory) {
  mp_machine_t *machine = detector->machine;
  mp_machine_group_t *group = &machine->groups[machine->num_groups++];
  *group = (mp_machine_group_t){.first_cpu = machine->num_cpus,
                                .first_core = machine->num_cores,
                                .numa_node = numa_node,
                                .node_memory = node_memory};
  for (int cpu = hwloc_bitmap_first(detector->part); cpu >= 0;
       cpu = hwloc_bitmap_next(detector->part, cpu)) {
    machine->cpus[machine->num_cpus++] = cpu;
  }
  for (hwloc_obj_t core = NULL;
       (core = hwloc_get_next_obj_covering_cpuset_by_type(detector->topology, detector->part,
                                                          detector->core_type, core)) != NULL;) {
    hwloc_bitmap_and(detector->scratch, core->cpuset, detector->part);
    int cpu = hwloc_bitmap_first(detector->scratch);
    if (cpu < 0) continue;
    for (int32_t i = group->first_cpu; i < machine->num_cpus; ++i) {
      if (hwloc_bitmap_isset(detector->scratch, (unsigned)machine->cpus[i])) {
        machine->cpu_cores[i] = machine->num_cores;
      }
    }
    machine->core_cpus[machine->num_cores++] = cpu;
  }
  if (machine->num_cores == group->first_core) {  // a recording without cores for these cpus
    for (int32_t i = group->first_cpu; i < machine->num_cpus; ++i) {
      machine->cpu_cores[i] = machine->num_cores;
    }
    machine->core_cpus[machine->num_cores++] = machine->cpus[group->first_cpu];
  }
  group->num_cpus = machine->num_cpus - group->first_cpu;
  group->num_cores = machine->num_cores - group->first_core;
}

// Splits the usable cpus of one NUMA node into groups. Nodes without cpus of their own (memory-only
// nodes, or a second kind of memory for the same cores) add nothing.
static void machine_add_node(detector_t *detector, hwloc_obj_t node) {
  hwloc_bitmap_and(detector->node, node->cpuset, detector->left);
  if (hwloc_bitmap_iszero(detector->node)) return;
  hwloc_bitmap_andnot(detector->left, detector->left, detector->node);
  ++detector->machine->num_numa_nodes;
  const uint64_t memory = node->attr == NULL ? 0 : node->attr->numanode.local_memory;
  hwloc_obj_t cache = NULL;
  while ((cache = hwloc_get_next_obj_covering_cpuset_by_type(detector->topology, node->cpuset,
                                                             HWLOC_OBJ_L3CACHE, cache)) != NULL) {
    hwloc_bitmap_and(detector->part, cache->cpuset, detector->node);
    if (hwloc_bitmap_iszero(detector->part)) continue;
    hwloc_bitmap_andnot(detector->node, detector->node, detector->part);
    machine_add_group(detector, (int32_t)node->os_index, memory);
  }
  if (hwloc_bitmap_iszero(detector->node)) return;
  hwloc_bitmap_copy(detector->part, detector->node);
  machine_add_group(detector, (int32_t)node->os_index, memory);
}

static void machine_add_groups(detector_t *detector) {
  hwloc_obj_t node = NULL;
  while ((node = hwloc_get_next_obj_by_type(detector->topology, HWLOC_OBJ_NUMANODE, node)) !=
         NULL) {
    machine_add_node(detector, node);
  }
  // Cpus that belong to no node occur only in odd recordings; they still count.
  if (hwloc_bitmap_iszero(detector->left)) return;
  hwloc_bitmap_copy(detector->part, detector->left);
  machine_add_group(detector, 0, 0);
}

static mp_status_t machine_read_limits(mp_machine_t *machine, hwloc_topology_t topology) {
  machine->memory = hwloc_get_root_obj(topology)->total_memory;
  if (machine->is_real) {
    // Some virtual machines do not attribute all memory to a node.
    long pages = sysconf(_SC_PHYS_PAGES);
    uint64_t physical = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
    if (machine->memory < physical) machine->memory = physical;
    mp_cgroup_limits_t limits;
    MP_RETURN_IF_ERROR(mp_cgroup_limits("", &limits));
    machine->cpu_quota = limits.cpus;
    if (limits.memory != 0 && limits.memory < machine->memory) machine->memory = limits.memory;
  }
  if (machine->memory == 0) machine->memory = 1ull << 30;
  return NULL;
}

static mp_status_t machine_detect(detector_t *detector) {
  mp_machine_t *machine = detector->machine;
  hwloc_topology_t topology = detector->topology;
  machine->is_real = hwloc_topology_is_thissystem(topology) != 0;
  machine->num_packages = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE);
  bool has_cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0;
  detector->core_type = has_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  machine_count_all_cores(detector);
  machine_find_usable_cpus(detector);
  int count = hwloc_bitmap_weight(detector->left);
  if (count <= 0) return mp_status_make(MP_UNAVAILABLE, "hwloc shows no usable cpu");
  // No more groups and cores than cpus. A core that straddles groups is counted in each.
  machine->groups = mp_calloc((size_t)count, sizeof(*machine->groups));
  machine->cpus = mp_calloc((size_t)count, sizeof(*machine->cpus));
  machine->cpu_cores = mp_calloc((size_t)count, sizeof(*machine->cpu_cores));
  machine->core_cpus = mp_calloc((size_t)count, sizeof(*machine->core_cpus));
  if (machine->groups == NULL || machine->cpus == NULL || machine->cpu_cores == NULL ||
      machine->core_cpus == NULL) {
    return mp_status_out_of_memory();
  }
  machine_add_groups(detector);
  return machine_read_limits(machine, topology);
}

static mp_status_t machine_load_and_detect(detector_t *detector, const char *description) {
  detector->left = hwloc_bitmap_alloc();
  detector->node = hwloc_bitmap_alloc();
  detector->part = hwloc_bitmap_alloc();
  detector->scratch = hwloc_bitmap_alloc();
  if (detector->left == NULL || detector->node == NULL || detector->part == NULL ||
      detector->scratch == NULL) {
    return mp_status_out_of_memory();
  }
  MP_RETURN_IF_ERROR(machine_load(detector->topology, description));
  return machine_detect(detector);
}

mp_status_t mp_machine_create(const char *description, mp_machine_t **out_machine) {
  detector_t detector = {0};
  detector.machine = mp_calloc(1, sizeof(*detector.machine));
  MP_RETURN_IF_NULL(detector.machine);
  if (hwloc_topology_init(&detector.topology) != 0) {
    mp_free(detector.machine);
    return mp_status_make(MP_UNAVAILABLE, "hwloc cannot start");
  }
  mp_status_t status = machine_load_and_detect(&detector, description == NULL ? "" : description);
  hwloc_bitmap_free(detector.left);
  hwloc_bitmap_free(detector.node);
  hwloc_bitmap_free(detector.part);
  hwloc_bitmap_free(detector.scratch);
  hwloc_topology_destroy(detector.topology);
  if (status != NULL) {
    mp_machine_release(detector.machine);
    return status;
  }
  *out_machine = detector.machine;
  return NULL;
}

void mp_machine_release(mp_machine_t *machine) {
  if (machine == NULL) return;
  mp_free(machine->groups);
  mp_free(machine->cpus);
  mp_free(machine->cpu_cores);
  mp_free(machine->core_cpus);
  mp_free(machine);
}

// Reduces the machine to the cores [begin, end) (positions in `core_cpus`) and their cpus.
static void machine_keep_cores(mp_machine_t *machine, int32_t begin, int32_t end) {
  mp_machine_t kept = *machine;
  kept.num_groups = kept.num_cpus = kept.num_cores = kept.num_numa_nodes = 0;
  for (int32_t g = 0; g < machine->num_groups; ++g) {
    mp_machine_group_t from = machine->groups[g];
    mp_machine_group_t to = {.first_cpu = kept.num_cpus,
                             .first_core = kept.num_cores,
                             .numa_node = from.numa_node,
                             .node_memory = from.node_memory};
    for (int32_t c = from.first_core; c < from.first_core + from.num_cores; ++c) {
      if (c >= begin && c < end) kept.core_cpus[kept.num_cores++] = machine->core_cpus[c];
    }
    to.num_cores = kept.num_cores - to.first_core;
    if (to.num_cores == 0) continue;
    for (int32_t i = from.first_cpu; i < from.first_cpu + from.num_cpus; ++i) {
      int32_t core = machine->cpu_cores[i];
      if (core < begin || core >= end) continue;
      kept.cpus[kept.num_cpus] = machine->cpus[i];
      kept.cpu_cores[kept.num_cpus++] = core - begin;
    }
    to.num_cpus = kept.num_cpus - to.first_cpu;
    // Groups of one node are neighbours.
    bool is_new =
        kept.num_groups == 0 || kept.groups[kept.num_groups - 1].numa_node != to.numa_node;
    kept.num_numa_nodes += is_new;
    kept.groups[kept.num_groups++] = to;
  }
  *machine = kept;
}

void mp_machine_keep_part(mp_machine_t *machine, int32_t index, int32_t count) {
  int32_t begin, end;
  if (machine->num_groups >= count) {
    const mp_machine_group_t *first =
        &machine->groups[mp_part_begin(machine->num_groups, index, count)];
    const mp_machine_group_t *last =
        &machine->groups[mp_part_begin(machine->num_groups, index + 1, count) - 1];
    begin = first->first_core;
    end = last->first_core + last->num_cores;
  } else {
    begin = mp_part_begin(machine->num_cores, index, count);
    end = mp_part_begin(machine->num_cores, index + 1, count);
    if (begin == end) end = begin + 1;
  }
  machine_keep_cores(machine, begin, end);
  machine->cpu_quota /= count;
}

int32_t mp_machine_default_workers(const mp_machine_t *machine) {
  double quota = ceil(machine->cpu_quota);
  if (quota >= 1 && quota < machine->num_cores) return (int32_t)quota;
  return machine->num_cores;
}
