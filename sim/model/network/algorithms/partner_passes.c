// Passes between partners that are not neighbours.
#include "sim/base/assert.h"
#include "sim/model/network/algorithms/algorithms.h"
#include "sim/model/network/algorithms/all_pairs.h"

static void partner_passes_end_stage(mp_builder_t *builder, double bytes) {
  mp_builder_end_transfer(builder, bytes);
  mp_builder_end_stage(builder);
}

// Flows from position `from + i` of each group to position `to + i`, for i < count.
static void partner_passes_flows(mp_builder_t *builder, const mp_groups_of_devices_t *groups,
                                 uint32_t from, uint32_t to, uint32_t count) {
  for (uint32_t g = 0; g < groups->count; ++g) {
    const int32_t *devices = groups->devices + (size_t)g * groups->size;
    for (uint32_t i = 0; i < count; ++i) {
      mp_builder_flow(builder, devices[from + i], devices[to + i], 1);
    }
  }
}

// Swaps between all partners at a distance, among the first `count` positions.
static void partner_passes_swap(mp_builder_t *builder, const mp_groups_of_devices_t *groups,
                                uint32_t count, uint32_t distance, double bytes) {
  for (uint32_t g = 0; g < groups->count; ++g) {
    const int32_t *devices = groups->devices + (size_t)g * groups->size;
    for (uint32_t i = 0; i < count; ++i) {
      mp_builder_flow(builder, devices[i], devices[i ^ distance], 1);
    }
  }
  partner_passes_end_stage(builder, bytes);
}

void mp_halving_pass(mp_builder_t *builder, const mp_groups_of_devices_t *groups, double bytes,
                     bool is_gather, bool is_whole) {
  const uint32_t size = groups->size;
  uint32_t steps = 0;
  while (size >> (steps + 1) != 0) ++steps;
  const uint32_t count = UINT32_C(1) << steps, more = size - count;
  // A device beyond the power of two: its operand before, its result afterwards.
  const double part = is_whole ? bytes : bytes / size;
  if (!is_whole || !is_gather) {
    partner_passes_flows(builder, groups, count, 0, more);
    partner_passes_end_stage(builder, is_gather ? part : bytes);
  }
  for (uint32_t i = 0; i < steps && builder->status == NULL; ++i) {
    const uint32_t step = is_gather ? steps - 1 - i : i;
    partner_passes_swap(builder, groups, count, UINT32_C(1) << step,
                        bytes / (double)(UINT64_C(2) << step));
  }
  if (!is_whole || is_gather) {
    partner_passes_flows(builder, groups, 0, count, more);
    partner_passes_end_stage(builder, is_gather ? bytes : part);
  }
}

// The device at a position counted from the root.
static int32_t partner_passes_from_root(const mp_groups_of_devices_t *groups, uint32_t group,
                                        uint32_t position) {
  const uint32_t at = (groups->root + position) % groups->size;
  return groups->devices[(size_t)group * groups->size + at];
}

void mp_tree_pass(mp_builder_t *builder, const mp_groups_of_devices_t *groups, double bytes,
                  bool is_to_root) {
  const uint32_t size = groups->size;
  uint32_t steps = 0;
  while (UINT64_C(1) << steps < size) ++steps;
  for (uint32_t s = 0; s < steps && builder->status == NULL; ++s) {
    const uint32_t distance = UINT32_C(1) << (is_to_root ? s : steps - 1 - s);
    for (uint32_t g = 0; g < groups->count; ++g) {
      for (uint32_t i = 0; i < size && distance < size - i; i += 2 * distance) {
        const int32_t near = partner_passes_from_root(groups, g, i);
        const int32_t far = partner_passes_from_root(groups, g, i + distance);
        mp_builder_flow(builder, is_to_root ? far : near, is_to_root ? near : far, 1);
      }
    }
    partner_passes_end_stage(builder, bytes);
  }
}

void mp_root_pass(mp_builder_t *builder, const mp_groups_of_devices_t *groups, double bytes) {
  for (uint32_t g = 0; g < groups->count; ++g) {
    const int32_t root = partner_passes_from_root(groups, g, 0);
    for (uint32_t i = 1; i < groups->size; ++i) {
      mp_builder_flow(builder, root, partner_passes_from_root(groups, g, i), 1);
    }
  }
  partner_passes_end_stage(builder, bytes);
}

void mp_direct_pass(mp_builder_t *builder, mp_arena_t *scratch,
                    const mp_groups_of_devices_t *groups, double bytes) {
  mp_all_pairs_add(builder, scratch, groups, bytes / groups->size);
  mp_builder_end_stage(builder);
}

// For one part of 1/n: each sends its share of all sums, n of them, and one sum to be spread, and
// gets one sum to spread and all n that are spread.
void mp_switch_pass(mp_builder_t *builder, mp_arena_t *scratch,
                    const mp_groups_of_devices_t *groups, double bytes) {
  const mp_network_t *network = builder->network;
  const mp_network_axis_t *axis = &network->axes[0];
  if (builder->goal == MP_BUILD_SENDS) {  // a switch is no device: nearest to it
    mp_direct_pass(builder, scratch, groups, bytes);
    mp_direct_pass(builder, scratch, groups, bytes);
    return;
  }
  for (uint32_t i = 0; i < groups->count * groups->size; ++i) {
    const uint32_t chip =
        mp_network_chip_of(network, mp_pod_device(network->pod, groups->devices[i]));
    const uint32_t *ways = network->ways + (size_t)chip * network->ways_per_chip + axis->first_way;
    mp_builder_load(builder, ways[0], groups->size + 1);
    mp_builder_load(builder, ways[1], groups->size + 1);
  }
  const double latency = 4 * axis->link.latency;  // up and down, for the sums and for their spread
  mp_builder_latencies(builder, latency, latency);
  partner_passes_end_stage(builder, bytes / groups->size);
}
