// The insides of a pod, for the files that build, write and describe it.
#ifndef MINIPOD_TOPOLOGY_POD_IMPL_H_
#define MINIPOD_TOPOLOGY_POD_IMPL_H_

#include <stdatomic.h>

#include "sim/base/arena.h"
#include "topology/machine/machine.h"
#include "topology/pod.h"
#include "topology/spec.h"

struct mp_pod_s {
  atomic_int references;
  mp_arena_t *arena;  // all arrays
  mp_pod_spec_t spec;
  char name[MP_SPEC_MAX_TEXT + 1];
  mp_pod_info_t info;
  uint64_t fingerprint;  // of the spec
  mp_pod_machine_t machine;
  mp_pod_device_t *devices;
  mp_core_group_t *groups;
  // The found machine, before groups were folded; 0s without a machine.
  int32_t machine_packages;
  int32_t machine_groups;
  int32_t machine_cpus;
};

// Devices of a host without a description of the pod: one per core group, but not fewer than these.
enum { MP_POD_LEAST_DEVICES = 4 };

// Reads and finishes a one-line description; messages about it begin with `where`.
// INVALID_ARGUMENT, or NOT_FOUND for a missing file.
MP_NODISCARD mp_status_t mp_pod_read_description(mp_str_t text, const char *where,
                                                 mp_pod_spec_t *out_spec);

// Makes a pod of a finished spec, with all devices in one process, and does not place them. `name`
// is the pod's if the spec has none.
MP_NODISCARD mp_status_t mp_pod_build(const mp_pod_spec_t *spec, mp_str_t name, mp_pod_t **out_pod);

// Appends the settings, besides the description, that must be equal in all processes of a pod:
// lines "<what>\t<value>", "?" for a value that cannot be compared. INVALID_ARGUMENT for an option
// that cannot be read.
MP_NODISCARD mp_status_t mp_pod_write_settings(const mp_pod_spec_t *spec,
                                               const mp_options_t *options, uint64_t faults,
                                               const char *libtpu_flags, mp_strbuf_t *out_text);

// Places the devices of this process, and `workers` workers, on the machine's core groups.
MP_NODISCARD mp_status_t mp_pod_place(mp_pod_t *pod, const mp_machine_t *machine, int32_t workers);

// Sets the capacity of those memory spaces for which none is described, for devices first .. first
// + count - 1, which are those of one process. They share it: their part of a host's `memory`
// bytes, to which each of `sharers` devices contributes equally, but at most their NUMA node's
// memory. The devices of this process have already been placed.
void mp_pod_share_memory(mp_pod_t *pod, int32_t first, int32_t count, uint64_t memory,
                         int32_t sharers);

#endif  // MINIPOD_TOPOLOGY_POD_IMPL_H_
