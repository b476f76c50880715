#include "sim/model/network/all_pairs.h"

#include "sim/base/assert.h"

enum { ALL_PAIRS_LARGE = 256 };

bool mp_all_pairs_are_counted(const mp_groups_of_devices_t *groups) {
  return groups->size >= ALL_PAIRS_LARGE && groups->num_dims != 0;
}

static void all_pairs_one_by_one(mp_builder_t *builder, const mp_groups_of_devices_t *groups) {
  for (uint32_t g = 0; g < groups->count; ++g) {
    const int32_t *devices = groups->devices + (size_t)g * groups->size;
    for (uint32_t i = 0; i < groups->size && builder->status == NULL; ++i) {
      // Everybody begins with its next one, so that no device is everybody's first target.
      for (uint32_t k = 1; k < groups->size; ++k) {
        mp_builder_flow(builder, devices[i], devices[(i + k) % groups->size], 1);
      }
    }
  }
}

// ---- Boxes ----

// The places of a box's devices on one axis, and what the flows between them put on a line's links:
// [axis->size] of both ways of each chip.
typedef struct {
  uint32_t count;
  uint32_t *places;  // [count], ascending
  double *loads[2];
  double latency;  // of the longest way
} axis_loads_t;

static mp_status_t all_pairs_find_places(const mp_network_t *network, mp_arena_t *scratch,
                                         const mp_groups_of_devices_t *box, uint32_t axis,
                                         axis_loads_t *loads) {
  const uint32_t size = network->axes[axis].size;
  bool *is_taken = MP_ARENA_ARRAY(scratch, bool, size);
  loads->places = MP_ARENA_ARRAY(scratch, uint32_t, size);
  loads->loads[0] = MP_ARENA_ARRAY(scratch, double, size);
  loads->loads[1] = MP_ARENA_ARRAY(scratch, double, size);
  if (is_taken == NULL || loads->places == NULL || loads->loads[0] == NULL ||
      loads->loads[1] == NULL) {
    return mp_status_out_of_memory();
  }
  for (uint32_t i = 0; i < box->size; ++i) {
    const mp_pod_device_t *device = mp_pod_device(network->pod, box->devices[i]);
    is_taken[mp_network_at(network, mp_network_chip_of(network, device), axis)] = true;
  }
  for (uint32_t at = 0; at < size; ++at) {
    if (is_taken[at]) loads->places[loads->count++] = at;
  }
  return NULL;
}

// Adds a flow over `hops` links from a place on, in a direction. The loads are kept as differences:
// what begins at a place, minus what ends there.
static void all_pairs_add_way(const mp_network_axis_t *axis, uint32_t from, uint32_t hops,
                              bool is_down, double times, double *loads) {
  // Link `i` is that of chip i, upwards to i + 1 or downwards to i - 1.
  const uint32_t size = axis->size, to = (from + (is_down ? size - hops : hops)) % size;
  const uint32_t first = is_down ? (to + 1) % size : from;  // the first link in ascending order
  const uint32_t end = first + hops;
  loads[first] += times;
  if (end < size) {
    loads[end] -= times;
  } else if (end > size) {
    loads[0] += times;
    loads[end - size] -= times;
  }
}

static void all_pairs_load_line(const mp_network_axis_t *axis, axis_loads_t *loads) {
  uint32_t longest = 0;
  for (uint32_t i = 0; i < loads->count; ++i) {
    for (uint32_t k = 0; k < loads->count; ++k) {
      if (i == k) continue;
      bool is_down, is_tie;
      const uint32_t from = loads->places[i];
      const uint32_t hops = mp_network_hops(axis, from, loads->places[k], &is_down, &is_tie);
      if (hops > longest) longest = hops;
      all_pairs_add_way(axis, from, hops, is_down, is_tie ? 0.5 : 1, loads->loads[is_down]);
      if (is_tie) all_pairs_add_way(axis, from, hops, !is_down, 0.5, loads->loads[!is_down]);
    }
  }
  for (int way = 0; way < 2; ++way) {
    for (uint32_t at = 1; at < axis->size; ++at) loads->loads[way][at] += loads->loads[way][at - 1];
  }
  loads->latency = longest * axis->link.latency;
}

static void all_pairs_load_switch(const mp_network_axis_t *axis, axis_loads_t *loads) {
  for (uint32_t i = 0; i < loads->count; ++i) {
    loads->loads[0][loads->places[i]] = loads->loads[1][loads->places[i]] = loads->count - 1;
  }
  loads->latency = loads->count > 1 ? axis->link.latency : 0;
}

// Adds the loads of a line to those of all lines of the box along an axis. A way goes along the
// axis when it has the target's places on all axes before and still the source's on all after it,
// so that as many flows take a line's link as there are combinations of other places.
static void all_pairs_add_lines(mp_builder_t *builder, const mp_groups_of_devices_t *box,
                                uint32_t axis, const axis_loads_t *loads, uint32_t cores) {
  mp_network_t *network = builder->network;
  const mp_network_axis_t *along = &network->axes[axis];
  const double times = (double)box->size / cores / loads->count * cores * cores;
  for (uint32_t i = 0; i < box->size && builder->status == NULL; i += cores) {
    const mp_pod_device_t *device = mp_pod_device(network->pod, box->devices[i]);
    const uint32_t chip = mp_network_chip_of(network, device);
    const uint32_t at = mp_network_at(network, chip, axis);
    if (at != loads->places[0]) continue;
    for (uint32_t place = 0; place < along->size; ++place) {
      const uint32_t there = chip - at * along->stride + place * along->stride;
      const uint32_t *ways =
          network->ways + (size_t)there * network->ways_per_chip + along->first_way;
      for (int way = 0; way < 2; ++way) {
        if (ways[way] != MP_NO_LINK) {
          mp_builder_load(builder, ways[way], times * loads->loads[way][place]);
        }
      }
    }
  }
}

static void all_pairs_add_cores(mp_builder_t *builder, const mp_groups_of_devices_t *box,
                                uint32_t cores) {
  mp_network_t *network = builder->network;
  if (cores == 1) return;
  for (uint32_t i = 0; i < box->size; i += cores) {
    const mp_pod_device_t *device = mp_pod_device(network->pod, box->devices[i]);
    mp_builder_load(builder, network->first_chip_link + mp_network_chip_of(network, device),
                    (double)cores * (cores - 1));
  }
}

// The flows of a box: they go axis by axis.
static void all_pairs_add_box(mp_builder_t *builder, mp_arena_t *scratch,
                              const mp_groups_of_devices_t *box) {
  mp_network_t *network = builder->network;
  axis_loads_t loads[MP_POD_MAX_DIMS] = {0};
  uint32_t chips = 1;
  double latency = 0;
  for (uint32_t d = 0; d < network->num_axes && builder->status == NULL; ++d) {
    mp_builder_fail(builder, all_pairs_find_places(network, scratch, box, d, &loads[d]));
    if (builder->status != NULL) return;
    const mp_network_axis_t *axis = &network->axes[d];
    if (axis->wiring == MP_WIRING_SWITCH) {
      all_pairs_load_switch(axis, &loads[d]);
    } else {
      all_pairs_load_line(axis, &loads[d]);
    }
    chips *= loads[d].count;
    latency += loads[d].latency;
  }
  const uint32_t cores = box->size / chips;
  for (uint32_t d = 0; d < network->num_axes; ++d) {
    if (loads[d].count > 1) all_pairs_add_lines(builder, box, d, &loads[d], cores);
  }
  all_pairs_add_cores(builder, box, cores);
  mp_builder_latency(builder, latency);
}

void mp_all_pairs_add(mp_builder_t *builder, mp_arena_t *scratch,
                      const mp_groups_of_devices_t *groups) {
  if (!mp_all_pairs_are_counted(groups) || builder->goal == MP_BUILD_SENDS) {
    all_pairs_one_by_one(builder, groups);
    return;
  }
  for (uint32_t g = 0; g < groups->count && builder->status == NULL; ++g) {
    mp_groups_of_devices_t box = *groups;
    box.count = 1;
    box.devices += (size_t)g * groups->size;
    all_pairs_add_box(builder, scratch, &box);
  }
}
