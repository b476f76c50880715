#include "sim/model/network/algorithms/all_pairs.h"

#include <math.h>
#include <string.h>

enum { ALL_PAIRS_LARGE = 512 };

// So many flows are worth to be remembered.
enum { ALL_PAIRS_KEPT = 4096 };

bool mp_all_pairs_are_counted(const mp_groups_of_devices_t *groups) {
  return groups->size >= ALL_PAIRS_LARGE && groups->num_dims != 0;
}

// ---- Groups at the same places of different slices ----

static bool all_pairs_is_like_first(const mp_network_t *network,
                                    const mp_groups_of_devices_t *groups, uint32_t g) {
  const int32_t *first = groups->devices, *devices = first + (size_t)g * groups->size;
  const int32_t slice = mp_pod_device(network->pod, devices[0])->slice_index;
  for (uint32_t i = 0; i < groups->size; ++i) {
    const mp_pod_device_t *a = mp_pod_device(network->pod, first[i]);
    const mp_pod_device_t *b = mp_pod_device(network->pod, devices[i]);
    if (a->chip_index != b->chip_index || a->core_on_chip != b->core_on_chip) return false;
    if (b->slice_index != slice) return false;
  }
  return true;
}

// Whether the groups are in slices of their own, and all at the same places there, with links that
// are alike.
static bool all_pairs_are_alike(const mp_network_t *network, const mp_groups_of_devices_t *groups) {
  int32_t newest = -1;
  if (network->unchanged != NULL) return false;
  for (uint32_t g = 0; g < groups->count; ++g) {
    const int32_t first = groups->devices[(size_t)g * groups->size];
    const int32_t slice = mp_pod_device(network->pod, first)->slice_index;
    if (slice <= newest || !all_pairs_is_like_first(network, groups, g)) return false;
    newest = slice;
  }
  return true;
}

// Of each link of a slice the number of its chip there, times ways_per_chip, plus its way.
static uint32_t *all_pairs_find_ways(const mp_network_t *network, mp_arena_t *scratch,
                                     uint32_t slice) {
  const uint32_t chips = (uint32_t)network->info->chips_per_slice;
  const uint32_t per_slice = chips * network->ways_per_chip;
  const uint32_t *ways = network->ways + (size_t)slice * per_slice;
  uint32_t *found = MP_ARENA_ARRAY(scratch, uint32_t, network->links.count);
  for (uint32_t i = 0; i < per_slice && found != NULL; ++i) {
    if (ways[i] != MP_NO_LINK) found[ways[i]] = i;
  }
  return found;
}

// The flows so far are those of the first group, and become loads: adds those of the others, which
// are the same elsewhere.
static void all_pairs_repeat(mp_builder_t *builder, mp_arena_t *scratch,
                             const mp_groups_of_devices_t *groups) {
  const mp_network_t *network = builder->network;
  const uint32_t chips = (uint32_t)network->info->chips_per_slice;
  const uint32_t slice = (uint32_t)mp_pod_device(network->pod, groups->devices[0])->slice_index;
  const uint32_t *found = all_pairs_find_ways(network, scratch, slice);
  mp_builder_fold(builder);
  if (found == NULL) mp_builder_fail(builder, mp_status_out_of_memory());
  const uint32_t count = builder->touched.count;
  for (uint32_t g = 1; g < groups->count && builder->status == NULL; ++g) {
    const int32_t first = groups->devices[(size_t)g * groups->size];
    const uint32_t there = (uint32_t)mp_pod_device(network->pod, first)->slice_index;
    const uint32_t *ways = network->ways + (size_t)there * chips * network->ways_per_chip;
    for (uint32_t i = 0; i < count && builder->status == NULL; ++i) {
      const uint32_t link = builder->touched.items[i];
      const bool is_inside = link - network->first_chip_link < mp_network_num_chips(network->info);
      const uint32_t like = is_inside ? link + (there - slice) * chips : ways[found[link]];
      mp_builder_load(builder, like, network->loads[link]);
    }
  }
}

// ---- Flows one by one ----

// Either the flows within slices, or those from slice to slice.
static void all_pairs_one_by_one(mp_builder_t *builder, mp_arena_t *scratch,
                                 const mp_groups_of_devices_t *groups, bool is_far) {
  const mp_pod_t *pod = builder->network->pod;
  const bool is_first = builder->flows.count == 0 && builder->touched.count == 0;
  const bool can_repeat = is_first && groups->count > 1 && builder->goal != MP_BUILD_SENDS &&
                          all_pairs_are_alike(builder->network, groups);
  if (is_far && can_repeat) return;  // there are none
  for (uint32_t g = 0; g < groups->count; ++g) {
    if (can_repeat && g == 1 && mp_builder_counts_flows(builder, groups->count)) {
      all_pairs_repeat(builder, scratch, groups);
      return;
    }
    const int32_t *devices = groups->devices + (size_t)g * groups->size;
    for (uint32_t i = 0; i < groups->size && builder->status == NULL; ++i) {
      const int32_t slice = mp_pod_device(pod, devices[i])->slice_index;
      for (uint32_t k = 0; k < groups->size; ++k) {
        if ((mp_pod_device(pod, devices[k])->slice_index != slice) != is_far) continue;
        mp_builder_flow(builder, devices[i], devices[k], 1);
      }
    }
  }
}

// ---- Boxes ----

// The places of a box's devices on one axis, and what the flows between them put on the links of a
// line along it.
typedef struct {
  uint32_t count;
  uint32_t *places;          // [count], ascending
  double *loads;             // [axis->size][axis->num_ways]
  double shortest, longest;  // latencies of ways
} axis_loads_t;

static mp_status_t all_pairs_find_places(const mp_network_t *network, mp_arena_t *scratch,
                                         const mp_groups_of_devices_t *box, uint32_t axis,
                                         axis_loads_t *loads) {
  const mp_network_axis_t *along = &network->axes[axis];
  bool *is_taken = MP_ARENA_ARRAY(scratch, bool, along->size);
  loads->places = MP_ARENA_ARRAY(scratch, uint32_t, along->size);
  loads->loads = MP_ARENA_ARRAY(scratch, double, (size_t)along->size * along->num_ways);
  if (is_taken == NULL || loads->places == NULL || loads->loads == NULL) {
    return mp_status_out_of_memory();
  }
  for (uint32_t i = 0; i < box->size; ++i) {
    const mp_pod_device_t *device = mp_pod_device(network->pod, box->devices[i]);
    is_taken[mp_network_at(network, mp_network_chip_of(network, device), axis)] = true;
  }
  for (uint32_t at = 0; at < along->size; ++at) {
    if (is_taken[at]) loads->places[loads->count++] = at;
  }
  return NULL;
}

// Adds a flow over `hops` links of one direction, from a place on. The loads are kept as
// differences for now: what begins at a place, minus what ends there.
static void all_pairs_add_way(const mp_network_axis_t *axis, uint32_t from, uint32_t hops,
                              bool is_down, double times, double *loads) {
  // The link of place i goes up to i + 1, or down to i - 1.
  const uint32_t size = axis->size, to = (from + (is_down ? size - hops : hops)) % size;
  const uint32_t first = is_down ? (to + 1) % size : from;  // the first link in ascending order
  const uint32_t end = first + hops;
  loads[2 * first + is_down] += times;
  if (end < size) {
    loads[2 * end + is_down] -= times;
  } else if (end > size) {
    loads[is_down] += times;
    loads[2 * (end - size) + is_down] -= times;
  }
}

static void all_pairs_load_line(const mp_network_axis_t *axis, axis_loads_t *loads) {
  uint32_t longest = 0, shortest = UINT32_MAX;
  for (uint32_t i = 0; i < loads->count; ++i) {
    for (uint32_t k = 0; k < loads->count; ++k) {
      if (i == k) continue;
      bool is_down, is_tie;
      const uint32_t from = loads->places[i];
      const uint32_t hops = mp_network_hops(axis, from, loads->places[k], &is_down, &is_tie);
      if (hops > longest) longest = hops;
      if (hops < shortest) shortest = hops;
      all_pairs_add_way(axis, from, hops, is_down, is_tie ? 0.5 : 1, loads->loads);
      if (is_tie) all_pairs_add_way(axis, from, hops, !is_down, 0.5, loads->loads);
    }
  }
  for (uint32_t i = 2; i < 2 * axis->size; ++i) loads->loads[i] += loads->loads[i - 2];
  loads->longest = longest * axis->link.latency;
  loads->shortest = shortest * axis->link.latency;
}

// A line with a switch: a link up and one down for every place.
static void all_pairs_load_switch(const mp_network_axis_t *axis, axis_loads_t *loads) {
  for (uint32_t i = 0; i < loads->count; ++i) {
    const uint32_t up = 2 * loads->places[i];
    loads->loads[up] = loads->loads[up + 1] = loads->count - 1;
  }
  loads->shortest = loads->longest = 2 * axis->link.latency;
}

static void all_pairs_load_connected(const mp_network_axis_t *axis, axis_loads_t *loads) {
  for (uint32_t i = 0; i < loads->count; ++i) {
    const uint32_t from = loads->places[i];
    for (uint32_t k = 0; k < loads->count; ++k) {
      if (i == k) continue;
      const uint32_t way = mp_network_way_to(from, loads->places[k]);
      loads->loads[(size_t)from * axis->num_ways + way] = 1;
    }
  }
  loads->shortest = loads->longest = axis->link.latency;
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
      const double *load = loads->loads + (size_t)place * along->num_ways;
      for (uint32_t way = 0; way < along->num_ways; ++way) {
        if (ways[way] != MP_NO_LINK) mp_builder_load(builder, ways[way], times * load[way]);
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

static mp_status_t all_pairs_load_axis(const mp_network_t *network, mp_arena_t *scratch,
                                       const mp_groups_of_devices_t *box, uint32_t d,
                                       axis_loads_t *loads) {
  const mp_network_axis_t *axis = &network->axes[d];
  MP_RETURN_IF_ERROR(all_pairs_find_places(network, scratch, box, d, loads));
  if (loads->count == 1) return NULL;
  switch (axis->wiring) {
    case MP_WIRING_SWITCH:
      all_pairs_load_switch(axis, loads);
      return NULL;
    case MP_WIRING_FULLY_CONNECTED:
      all_pairs_load_connected(axis, loads);
      return NULL;
    default:
      all_pairs_load_line(axis, loads);
      return NULL;
  }
}

// The flows of a box: they go axis by axis. The shortest way is one along one axis (or inside a
// chip), the longest one goes along all of them.
static void all_pairs_add_box(mp_builder_t *builder, mp_arena_t *scratch,
                              const mp_groups_of_devices_t *box) {
  mp_network_t *network = builder->network;
  axis_loads_t loads[MP_POD_MAX_DIMS] = {0};
  uint32_t chips = 1;
  double longest = 0, shortest = INFINITY;
  for (uint32_t d = 0; d < network->num_axes; ++d) {
    mp_builder_fail(builder, all_pairs_load_axis(network, scratch, box, d, &loads[d]));
    if (builder->status != NULL) return;
    chips *= loads[d].count;
    longest += loads[d].longest;
    if (loads[d].count > 1 && loads[d].shortest < shortest) shortest = loads[d].shortest;
  }
  const uint32_t cores = box->size / chips;
  for (uint32_t d = 0; d < network->num_axes; ++d) {
    if (loads[d].count > 1) all_pairs_add_lines(builder, box, d, &loads[d], cores);
  }
  all_pairs_add_cores(builder, box, cores);
  mp_builder_latencies(builder, cores > 1 ? 0 : shortest, longest);
}

// ---- What is kept of flows one by one ----

typedef struct {
  uint64_t count, size;
} pairs_key_t;

static void all_pairs_end_one_by_one(mp_builder_t *builder, mp_arena_t *scratch,
                                     const mp_groups_of_devices_t *groups, double bytes) {
  all_pairs_one_by_one(builder, scratch, groups, true);
  mp_builder_end_transfer(builder, bytes);
  all_pairs_one_by_one(builder, scratch, groups, false);
  mp_builder_end_transfer(builder, bytes);
}

// Whether looking at all flows again, for each number of bytes, takes much longer than keeping
// what they put on each link.
static bool all_pairs_are_kept(const mp_builder_t *builder, const mp_groups_of_devices_t *groups) {
  const bool is_alone =
      builder->flows.count == 0 && builder->touched.count == 0 && builder->shortest < 0;
  const double flows = (double)groups->count * groups->size * (groups->size - 1);
  return builder->goal != MP_BUILD_SENDS && is_alone && flows >= ALL_PAIRS_KEPT;
}

static mp_status_t all_pairs_make_key(mp_arena_t *scratch, const mp_groups_of_devices_t *groups,
                                      const void **out_key, size_t *out_size) {
  const pairs_key_t head = {groups->count, groups->size};
  const size_t devices = (size_t)groups->count * groups->size * sizeof(*groups->devices);
  char *key = mp_arena_alloc(scratch, sizeof(head) + devices);
  MP_RETURN_IF_NULL(key);
  memcpy(key, &head, sizeof(head));
  memcpy(key + sizeof(head), groups->devices, devices);
  *out_key = key;
  *out_size = sizeof(head) + devices;
  return NULL;
}

// The flows are looked at once, and then added as the loads that they are.
static void all_pairs_end_kept(mp_builder_t *builder, mp_arena_t *scratch,
                               const mp_groups_of_devices_t *groups, double bytes) {
  mp_network_t *network = builder->network;
  const void *key = NULL;
  size_t size = 0;
  mp_builder_fail(builder, all_pairs_make_key(scratch, groups, &key, &size));
  if (builder->status != NULL) return;
  const mp_builder_record_t *known = mp_network_cache_find(&network->pairs, key, size);
  if (known != NULL) {
    mp_builder_add_record(builder, known, bytes);
    return;
  }
  mp_builder_record_t *record = MP_ARENA_NEW(network->arena, mp_builder_record_t);
  if (record == NULL) {
    mp_builder_fail(builder, mp_status_out_of_memory());
    return;
  }
  builder->record = record;
  all_pairs_end_one_by_one(builder, scratch, groups, bytes);
  builder->record = NULL;
  if (builder->status != NULL) return;
  mp_builder_fail(builder, mp_network_cache_add(network, &network->pairs, key, size, record));
}

void mp_all_pairs_add(mp_builder_t *builder, mp_arena_t *scratch,
                      const mp_groups_of_devices_t *groups, double bytes) {
  if (!mp_all_pairs_are_counted(groups) || builder->goal == MP_BUILD_SENDS) {
    const bool is_kept = all_pairs_are_kept(builder, groups);
    (is_kept ? all_pairs_end_kept : all_pairs_end_one_by_one)(builder, scratch, groups, bytes);
    return;
  }
  for (uint32_t g = 0; g < groups->count && builder->status == NULL; ++g) {
    mp_groups_of_devices_t box = *groups;
    box.count = 1;
    box.devices += (size_t)g * groups->size;
    all_pairs_add_box(builder, scratch, &box);
  }
  mp_builder_end_transfer(builder, bytes);
}
