// CPU and memory limits that Linux control groups (v1 and v2) put on this process.
//
// A file that is missing or unreadable counts as no limit. The limits of all ancestors that are
// visible in this mount namespace apply; the smallest counts. Thread-safe.
#ifndef MINIPOD_TOPOLOGY_MACHINE_CGROUP_H_
#define MINIPOD_TOPOLOGY_MACHINE_CGROUP_H_

#include <stdint.h>

#include "sim/base/status.h"

typedef struct {
  double cpus;      // CPU time per wall time, in cores; 0 = no limit
  uint64_t memory;  // bytes; 0 = no limit
} mp_cgroup_limits_t;

// Reads <root>/proc/self/{cgroup,mountinfo} and the control files below the mount points, whose
// paths are prefixed with `root` as well. The root is "" for the running system; tests pass a
// folder. RESOURCE_EXHAUSTED when memory or open files have run out: then the limits are unknown.
MP_NODISCARD mp_status_t mp_cgroup_limits(const char *root, mp_cgroup_limits_t *out_limits);

#endif  // MINIPOD_TOPOLOGY_MACHINE_CGROUP_H_
