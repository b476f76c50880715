// Bounds: a grid of processes on the chips of a pod, as programs give it to TPU hosts.
//
// The chips of each process are a box, and all boxes together are the grid of the pod. Processes
// are numbered host by host if each box is within a host, and otherwise over the whole grid; the
// first dimension varies fastest, and before it the core of a chip.
#ifndef MINIPOD_TOPOLOGY_PROCESSES_POD_BOUNDS_H_
#define MINIPOD_TOPOLOGY_PROCESSES_POD_BOUNDS_H_

#include "topology/pod.h"
#include "topology/processes/pod_merge.h"

bool mp_pod_bounds_are_given(const mp_pod_bounds_t *bounds);
// Appends the bounds as a text, "2,2,1 x 1,1,1"; nothing where they are not given.
void mp_pod_bounds_write(const mp_pod_bounds_t *bounds, mp_strbuf_t *out_text);
// Reads that text; false when it is no such text.
bool mp_pod_bounds_read(mp_str_t text, mp_pod_bounds_t *out_bounds);

// Devices of one process on chips with this number of cores.
int32_t mp_pod_bounds_devices(const mp_pod_bounds_t *bounds, int32_t cores_per_chip);
// Whether the boxes of `count` processes are the grid of this pod. INVALID_ARGUMENT, with both.
MP_NODISCARD mp_status_t mp_pod_bounds_check(const mp_pod_bounds_t *bounds,
                                             const mp_pod_info_t *info, int32_t count);
// The number of the process that has the device. The bounds fit the pod.
int32_t mp_pod_bounds_process_of(const mp_pod_bounds_t *bounds, const mp_pod_info_t *info,
                                 const mp_pod_device_t *device);

#endif  // MINIPOD_TOPOLOGY_PROCESSES_POD_BOUNDS_H_
