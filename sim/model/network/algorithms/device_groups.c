#include "sim/model/network/algorithms/device_groups.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/assert.h"

typedef struct {
  uint64_t order;  // slice, chip, core
  int32_t id;
} device_place_t;

static int device_groups_compare(const void *a, const void *b) {
  const uint64_t x = ((const device_place_t *)a)->order, y = ((const device_place_t *)b)->order;
  return x < y ? -1 : x > y;
}

// Puts devices in the order of the pod.
static mp_status_t device_groups_sort(const mp_network_t *network, mp_arena_t *arena,
                                      const int32_t *devices, uint32_t size,
                                      const int32_t **out_sorted) {
  device_place_t *places = MP_ARENA_ARRAY(arena, device_place_t, size);
  int32_t *sorted = MP_ARENA_ARRAY(arena, int32_t, size);
  if (places == NULL || sorted == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < size; ++i) {
    const mp_pod_device_t *device = mp_pod_device(network->pod, devices[i]);
    const uint64_t chip = mp_network_chip_of(network, device);
    places[i].order =
        chip * (uint64_t)network->info->cores_per_chip + (uint64_t)device->core_on_chip;
    places[i].id = devices[i];
  }
  qsort(places, size, sizeof(*places), device_groups_compare);
  for (uint32_t i = 0; i < size; ++i) sorted[i] = places[i].id;
  *out_sorted = sorted;
  return NULL;
}

// ---- Boxes ----

// How many different places devices take on an axis; axis num_axes are the cores of a chip.
static mp_status_t device_groups_count_places(const mp_network_t *network, mp_arena_t *arena,
                                              const int32_t *devices, uint32_t size, uint32_t axis,
                                              uint32_t *out_count) {
  const bool is_core = axis == network->num_axes;
  bool *is_taken = MP_ARENA_ARRAY(
      arena, bool, is_core ? (size_t)network->info->cores_per_chip : network->axes[axis].size);
  MP_RETURN_IF_NULL(is_taken);
  uint32_t count = 0;
  for (uint32_t i = 0; i < size; ++i) {
    const mp_pod_device_t *device = mp_pod_device(network->pod, devices[i]);
    const uint32_t at = is_core ? (uint32_t)device->core_on_chip
                                : mp_network_at(network, mp_network_chip_of(network, device), axis);
    count += !is_taken[at];
    is_taken[at] = true;
  }
  *out_count = count;
  return NULL;
}

// Fills in the dimensions of a sorted group if it is a box: different devices of one slice are one
// when they are as many as the combinations of their places.
static mp_status_t device_groups_find_box(const mp_network_t *network, mp_arena_t *arena,
                                          mp_groups_of_devices_t *group) {
  const mp_pod_device_t *first = mp_pod_device(network->pod, group->devices[0]);
  const mp_pod_device_t *last = mp_pod_device(network->pod, group->devices[group->size - 1]);
  if (first->slice_index != last->slice_index) return NULL;
  uint64_t product = 1;
  uint32_t num_dims = 0;
  group->has_cores = false;
  for (uint32_t i = 0; i <= network->num_axes; ++i) {
    const uint32_t axis = i == 0 ? network->num_axes : i - 1;  // cores are the fastest
    uint32_t count = 0;
    MP_RETURN_IF_ERROR(
        device_groups_count_places(network, arena, group->devices, group->size, axis, &count));
    product *= count;
    if (i == 0) group->has_cores = count > 1;
    if (count > 1) group->dims[num_dims++] = count;
    if (product > group->size) return NULL;
  }
  if (product == group->size) group->num_dims = num_dims;
  return NULL;
}

mp_status_t mp_device_groups_make(const mp_network_t *network, mp_arena_t *arena,
                                  const int32_t *devices, uint32_t size,
                                  mp_groups_of_devices_t *out_groups) {
  mp_groups_of_devices_t group = {.count = 1, .size = size};
  MP_RETURN_IF_ERROR(device_groups_sort(network, arena, devices, size, &group.devices));
  for (uint32_t i = 0; i < size; ++i) {
    if (group.devices[i] == devices[0]) group.root = i;
  }
  MP_RETURN_IF_ERROR(device_groups_find_box(network, arena, &group));
  *out_groups = group;
  return NULL;
}

mp_status_t mp_device_groups_lines(mp_arena_t *arena, const mp_groups_of_devices_t *boxes,
                                   uint32_t dim, mp_groups_of_devices_t *out_lines) {
  MP_ASSERT(dim < boxes->num_dims);
  uint32_t stride = 1;
  for (uint32_t d = 0; d < dim; ++d) stride *= boxes->dims[d];
  const uint32_t length = boxes->dims[dim], total = boxes->count * boxes->size;
  int32_t *devices = MP_ARENA_ARRAY(arena, int32_t, total);
  MP_RETURN_IF_NULL(devices);
  uint32_t at = 0;
  for (uint32_t first = 0; first < total; ++first) {
    if (first / stride % length != 0) continue;
    for (uint32_t i = 0; i < length; ++i) devices[at++] = boxes->devices[first + i * stride];
  }
  *out_lines = (mp_groups_of_devices_t){
      .count = total / length, .size = length, .devices = devices, .num_dims = 1, .dims = {length}};
  return NULL;
}

// The position in a box of the `i`-th device on the way to and fro: a reflected Gray code with a
// radix per dimension. With each step of the slower dimensions the faster ones turn round.
static uint32_t device_groups_on_snake(const mp_groups_of_devices_t *boxes, uint32_t i) {
  uint32_t position = 0, stride = 1;
  for (uint32_t d = 0; d < boxes->num_dims; ++d) {
    const uint32_t size = boxes->dims[d];
    const uint32_t digit = i / stride % size, turns = i / stride / size;
    position += (turns % 2 == 0 ? digit : size - 1 - digit) * stride;
    stride *= size;
  }
  return position;
}

mp_status_t mp_device_groups_snake(mp_arena_t *arena, const mp_groups_of_devices_t *groups,
                                   mp_groups_of_devices_t *out_snakes) {
  *out_snakes = *groups;
  if (groups->num_dims < 2) return NULL;
  int32_t *devices = MP_ARENA_ARRAY(arena, int32_t, (size_t)groups->count * groups->size);
  MP_RETURN_IF_NULL(devices);
  for (uint32_t i = 0; i < groups->size; ++i) {
    const uint32_t position = device_groups_on_snake(groups, i);
    if (position == groups->root) out_snakes->root = i;
    for (uint32_t g = 0; g < groups->count; ++g) {
      devices[(size_t)g * groups->size + i] = groups->devices[(size_t)g * groups->size + position];
    }
  }
  out_snakes->devices = devices;
  out_snakes->num_dims = 0;
  return NULL;
}

// ---- Slices ----

// In how many slices a sorted group has devices, if it has equally many in each; else 0.
static uint32_t device_groups_num_parts(const mp_network_t *network,
                                        const mp_groups_of_devices_t *group) {
  uint32_t parts = 1;
  const int32_t first = mp_pod_device(network->pod, group->devices[0])->slice_index;
  int32_t slice = first;
  uint32_t size = 0;
  for (uint32_t i = 0; i < group->size; ++i) {
    const int32_t next = mp_pod_device(network->pod, group->devices[i])->slice_index;
    if (next == slice) continue;
    if (size == 0) size = i;
    if (i != parts * size) return 0;
    ++parts;
    slice = next;
  }
  return group->size == parts * size ? parts : 0;
}

// The dimensions that all parts have; none if they differ.
static mp_status_t device_groups_find_boxes(const mp_network_t *network, mp_arena_t *arena,
                                            mp_groups_of_devices_t *parts) {
  for (uint32_t p = 0; p < parts->count; ++p) {
    mp_groups_of_devices_t part = {
        .count = 1, .size = parts->size, .devices = parts->devices + (size_t)p * parts->size};
    MP_RETURN_IF_ERROR(device_groups_find_box(network, arena, &part));
    if (p == 0) {
      parts->num_dims = part.num_dims;
      parts->has_cores = part.has_cores;
      memcpy(parts->dims, part.dims, sizeof(part.dims));
    } else if (parts->num_dims != part.num_dims || parts->has_cores != part.has_cores ||
               memcmp(parts->dims, part.dims, part.num_dims * sizeof(*part.dims)) != 0) {
      parts->num_dims = 0;
      return NULL;
    }
  }
  return NULL;
}

mp_status_t mp_device_groups_split(const mp_network_t *network, mp_arena_t *arena,
                                   const mp_groups_of_devices_t *group,
                                   mp_groups_of_devices_t *out_inner,
                                   mp_groups_of_devices_t *out_outer, bool *out_is_split) {
  *out_is_split = false;
  const uint32_t parts = group->count == 1 ? device_groups_num_parts(network, group) : 0;
  if (parts < 2 || group->size == parts) return NULL;
  const uint32_t size = group->size / parts;
  int32_t *devices = MP_ARENA_ARRAY(arena, int32_t, group->size);
  MP_RETURN_IF_NULL(devices);
  for (uint32_t i = 0; i < group->size; ++i)
    devices[i % size * parts + i / size] = group->devices[i];
  *out_inner = (mp_groups_of_devices_t){
      .count = parts, .size = size, .devices = group->devices, .root = group->root % size};
  *out_outer = (mp_groups_of_devices_t){
      .count = size, .size = parts, .devices = devices, .root = group->root / size};
  *out_is_split = true;
  return device_groups_find_boxes(network, arena, out_inner);
}
