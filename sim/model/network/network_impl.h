// What the files of this room share: the network itself, its graph and its routes.
//
// The chips of a slice are a grid of axes: those of the description's grid, or one axis of all
// chips where a switch, or links between any two, join them all whatever their grid.
//
// Vertices are numbered: chips slice by slice, hosts, the switch (or the upper switches, taken
// together) between hosts, other switches.
#ifndef MINIPOD_SIM_MODEL_NETWORK_NETWORK_IMPL_H_
#define MINIPOD_SIM_MODEL_NETWORK_NETWORK_IMPL_H_

#include "sim/base/containers/array.h"
#include "sim/base/containers/hash_map.h"
#include "sim/model/network/network.h"
#include "topology/figures/figures.h"

#define MP_NO_LINK UINT32_MAX

typedef MP_ARRAY(uint32_t) mp_network_route_t;  // links in order

// One dimension of the grid of chips of a slice: lines of chips, all wired alike.
typedef struct {
  mp_wiring_t wiring;     // of each line: ring, mesh, switch or fully connected
  uint32_t size, stride;  // chips of a line; how far apart neighbours are in the slice's list
  mp_link_t link;         // between neighbours, or between a chip and the switch
  // The links of a chip, from `first_way` on in its row of `ways`. Ring and mesh: to the next and
  // to the previous chip; switch: to the switch and from it; fully connected: mp_network_way_to.
  uint32_t first_way, num_ways;
} mp_network_axis_t;

// Traffic, a message's uses, a choice, or loads, with all that it follows from.
typedef struct {
  uint64_t hash;
  size_t key_size;
  const void *key;
  // mp_traffic_t, mp_transfer_t of 0 bytes, mp_algorithm_t, mp_builder_record_t
  const void *value;
} mp_network_known_t;

typedef MP_HASH_MAP(mp_network_known_t) mp_network_cache_t;

struct mp_network_s {
  mp_pod_t *pod;
  const mp_pod_info_t *info;
  mp_chip_figures_t figures;  // of the chip that the description names
  mp_network_options_t options;
  mp_network_t *unchanged;  // borrowed: the one whose links have the described figures; NULL: this
  mp_arena_t *arena;        // links and what is kept
  mp_arena_t *scratch;      // of one call

  uint32_t num_vertices;
  MP_ARRAY(mp_network_link_t) links;
  uint32_t num_axes;
  mp_network_axis_t axes[MP_POD_MAX_DIMS];
  uint32_t ways_per_chip;
  uint32_t *ways;            // [chips][ways_per_chip] links; MP_NO_LINK where there is none
  uint32_t first_chip_link;  // one per chip, between its cores; none if it has one
  uint32_t first_host_link;  // two per device: to its host, from it
  uint32_t first_nic_link;   // two per host: up, and down; none for one host
  uint32_t first_leaf_link;  // two per leaf of a fat tree: up, and down; none for one leaf
  uint32_t hosts_per_leaf;

  int32_t *devices;  // [chips][cores of a chip] ids

  mp_network_cache_t traffics, messages, choices, pairs;
  // Of the transfer and the stage under construction (traffic_builder.h): [links], all zero
  // between them.
  double *loads, *stage_seconds;
};

// The chip of a device, numbered over all slices.
static inline uint32_t mp_network_chip_of(const mp_network_t *network,
                                          const mp_pod_device_t *device) {
  return (uint32_t)(device->slice_index * network->info->chips_per_slice + device->chip_index);
}

static inline uint32_t mp_network_num_chips(const mp_pod_info_t *info) {
  return (uint32_t)(info->num_slices * info->chips_per_slice);
}

// The id of the device that is this core of a chip.
static inline int32_t mp_network_device_at(const mp_network_t *network, uint32_t chip,
                                           uint32_t core) {
  return network->devices[(size_t)chip * (uint32_t)network->info->cores_per_chip + core];
}

// Where a chip is on an axis.
static inline uint32_t mp_network_at(const mp_network_t *network, uint32_t chip, uint32_t axis) {
  const mp_network_axis_t *along = &network->axes[axis];
  return chip % (uint32_t)network->info->chips_per_slice / along->stride % along->size;
}

// Whether the last chip of a line is the neighbour of the first one by a link of their own. In a
// line of two they are neighbours already, and there is no second link.
static inline bool mp_network_wraps(const mp_network_axis_t *axis) {
  return axis->wiring == MP_WIRING_RING && axis->size > 2;
}

// The way from one place to another on a fully connected axis.
static inline uint32_t mp_network_way_to(uint32_t from, uint32_t to) {
  return to < from ? to : to - 1;
}

// Makes vertices and links. RESOURCE_EXHAUSTED when there are too many.
MP_NODISCARD mp_status_t mp_network_graph_build(mp_network_t *network);

// Appends the links of the way from one end to another to `route`, which lies on the heap, and
// returns their latency in all.
MP_NODISCARD mp_status_t mp_network_route(const mp_network_t *network, mp_network_end_t from,
                                          mp_network_end_t to, mp_network_route_t *route,
                                          double *out_latency);
// The number of hops of the shorter way between two places on an axis of neighbours, and its
// direction; at a tie both are as short.
uint32_t mp_network_hops(const mp_network_axis_t *axis, uint32_t from, uint32_t to,
                         bool *out_is_down, bool *out_is_tie);
// At most so many links make up a way between devices of a slice.
uint32_t mp_network_diameter(const mp_network_t *network);

// Seconds that a collective of so many members takes besides what its links do (overheads.c);
// `bytes` are those of algorithms.h.
double mp_network_overhead(const mp_network_t *network, mp_collective_kind_t kind,
                           mp_algorithm_t algorithm, uint32_t size, double bytes);
// The same of a message between devices, whose links let it go at `rate`.
double mp_network_message_overhead(const mp_network_t *network, double rate, double bytes);
// Whether the switch of a slice adds up what its chips send.
static inline bool mp_network_has_switch_sums(const mp_network_t *network) {
  return network->num_axes == 1 && network->axes[0].wiring == MP_WIRING_SWITCH &&
         network->info->cores_per_chip == 1 && !isnan(network->figures.switch_sum_start);
}

// The value kept for a key, or NULL.
const void *mp_network_cache_find(const mp_network_cache_t *cache, const void *key, size_t size);
// Keeps a value that lies in the network's arena, with a copy of its key.
MP_NODISCARD mp_status_t mp_network_cache_add(mp_network_t *network, mp_network_cache_t *cache,
                                              const void *key, size_t size, const void *value);

#endif  // MINIPOD_SIM_MODEL_NETWORK_NETWORK_IMPL_H_
