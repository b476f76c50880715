// Groups of devices that do the same side by side, and their positions in the pod.
//
// A group is put in the order of the pod, slice by slice and chip by chip: algorithms need
// neighbours, and what a collective's own order means for its data changes nothing about how much
// of it is sent.
#ifndef MINIPOD_SIM_MODEL_NETWORK_ALGORITHMS_DEVICE_GROUPS_H_
#define MINIPOD_SIM_MODEL_NETWORK_ALGORITHMS_DEVICE_GROUPS_H_

#include "sim/model/network/network_impl.h"

enum { MP_GROUP_MAX_DIMS = MP_POD_MAX_DIMS + 1 };

typedef struct {
  uint32_t count, size;    // so many groups of so many devices
  const int32_t *devices;  // [count][size] ids
  uint32_t root;           // position of the device that a broadcast starts from, in each group
  // A group may be a box: all combinations of some places on each axis of a slice (a whole grid, a
  // row, every second column) and of some cores. Then its devices are in the order of a grid of
  // these sizes, the first dimension fastest; dimensions of size 1 are left out. 0: no boxes, or a
  // single device.
  uint32_t num_dims;
  uint32_t dims[MP_GROUP_MAX_DIMS];
  bool has_cores;  // the first dimension is that of a chip's cores
} mp_groups_of_devices_t;

// One group of `size` devices, the first of which is the root. `devices` are different.
MP_NODISCARD mp_status_t mp_device_groups_make(const mp_network_t *network, mp_arena_t *arena,
                                               const int32_t *devices, uint32_t size,
                                               mp_groups_of_devices_t *out_groups);

// The lines of boxes along one of their dimensions, as groups of one dimension each. The root has
// no meaning.
MP_NODISCARD mp_status_t mp_device_groups_lines(mp_arena_t *arena,
                                                const mp_groups_of_devices_t *boxes, uint32_t dim,
                                                mp_groups_of_devices_t *out_lines);

// The same devices, those of boxes in such an order that neighbours in it are neighbours in the
// box: to and fro along each dimension.
MP_NODISCARD mp_status_t mp_device_groups_snake(mp_arena_t *arena,
                                                const mp_groups_of_devices_t *groups,
                                                mp_groups_of_devices_t *out_snakes);

// Divides one group that has equally many devices, more than one, in each of several slices:
// `inner` are the parts in one slice each, `outer` the devices at the same position in all parts.
// The roots are those of the parts with the group's root. False when the group is none of these.
MP_NODISCARD mp_status_t mp_device_groups_split(const mp_network_t *network, mp_arena_t *arena,
                                                const mp_groups_of_devices_t *group,
                                                mp_groups_of_devices_t *out_inner,
                                                mp_groups_of_devices_t *out_outer,
                                                bool *out_is_split);

#endif  // MINIPOD_SIM_MODEL_NETWORK_ALGORITHMS_DEVICE_GROUPS_H_
