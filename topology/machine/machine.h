// The properties of the machine that the pod needs: core groups with their NUMA nodes, limits,
// memory.
//
// A core group is the set of cores of one NUMA node that share a last-level cache (L3), or the
// node's cores if there is none. Only cpus that the process may use count: hwloc omits those that
// the cpuset cgroup forbids, and the affinity masks of the process's threads exclude more.
//
// The caller of mp_machine_create owns the machine; only one thread at a time may use it while it
// changes.
#ifndef MINIPOD_TOPOLOGY_MACHINE_MACHINE_H_
#define MINIPOD_TOPOLOGY_MACHINE_MACHINE_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

// A slice of the machine's `cpus` and `core_cpus` arrays. Groups are in hwloc's logical order, so
// neighbours in the list are near each other.
typedef struct {
  int32_t first_cpu;
  int32_t num_cpus;
  int32_t first_core;
  int32_t num_cores;
  int32_t numa_node;     // OS index
  uint64_t node_memory;  // bytes of that node; 0: not known
} mp_machine_group_t;

typedef struct {
  bool is_real;  // false when synthetic or recorded
  int32_t num_packages;
  int32_t num_numa_nodes;  // with usable cores
  int32_t num_groups;      // at least 1
  mp_machine_group_t *groups;
  int32_t num_cpus;
  int32_t *cpus;       // OS indices, ascending in each group
  int32_t *cpu_cores;  // by position in `cpus`: the core of the cpu, a position in `core_cpus`
  int32_t num_cores;
  int32_t *core_cpus;     // the first cpu of each core
  int32_t num_cores_all;  // including those that the affinity mask excludes
  double cpu_quota;       // 0 = none
  uint64_t memory;        // bytes, cgroup limit respected
} mp_machine_t;

// Reads the running machine ("" or NULL), or the described one: an hwloc synthetic description
// ("pack:2 numa:4 l3:2 core:8 pu:1") or an XML file (a word that has a '/' or ends in ".xml").
// INVALID_ARGUMENT for a bad description, NOT_FOUND for a missing file, UNAVAILABLE when hwloc
// cannot read the machine.
MP_NODISCARD mp_status_t mp_machine_create(const char *description, mp_machine_t **out_machine);
// Frees a machine that mp_machine_create made. NULL: nothing.
void mp_machine_release(mp_machine_t *machine);

// The number of workers that the cores and the CPU quota allow; at least 1.
int32_t mp_machine_default_workers(const mp_machine_t *machine);

// Reduces the machine, in place, to part `index` of `count` equal parts: whole core groups if there
// are enough of them, otherwise cores of a group, otherwise one core that several parts share. The
// CPU quota is divided, the memory is not.
void mp_machine_keep_part(mp_machine_t *machine, int32_t index, int32_t count);

// The begin of part `index` when `total` items are divided into `count` contiguous parts.
static inline int32_t mp_part_begin(int32_t total, int32_t index, int32_t count) {
  return (int32_t)((int64_t)total * index / count);
}

#endif  // MINIPOD_TOPOLOGY_MACHINE_MACHINE_H_
