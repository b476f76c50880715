// The pod's own structure, for the files that build, write and describe it.
#ifndef MINIPOD_TOPOLOGY_POD_INTERNAL_H_
#define MINIPOD_TOPOLOGY_POD_INTERNAL_H_

#include <stdatomic.h>

#include "sim/base/arena.h"
#include "topology/machine.h"
#include "topology/pod.h"
#include "topology/spec.h"

struct mp_pod_s {
  atomic_int references;
  mp_arena_t *arena;  // all arrays
  mp_pod_spec_t spec;
  char name[MP_SPEC_MAX_TEXT + 1];
  mp_pod_info_t info;
  mp_pod_machine_t machine;
  mp_pod_device_t *devices;
  mp_core_group_t *groups;
  // What hwloc found, before groups were folded; 0s without a machine.
  int32_t machine_packages;
  int32_t machine_groups;
  int32_t machine_cpus;
};

// Makes a pod of a finished spec without placing it. `name` is used where the spec has none.
MP_NODISCARD mp_status_t mp_pod_build(const mp_pod_spec_t *spec, mp_str_t name, mp_pod_t **out_pod);

// Lays the pod's devices and `workers` workers onto the machine's core groups, and gives memory
// spaces without a described capacity their share of the machine's.
MP_NODISCARD mp_status_t mp_pod_place(mp_pod_t *pod, const mp_machine_t *machine, int32_t workers);

#endif  // MINIPOD_TOPOLOGY_POD_INTERNAL_H_
