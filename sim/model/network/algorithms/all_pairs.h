// A flow from every device of a group to every other one.
#ifndef MINIPOD_SIM_MODEL_NETWORK_ALGORITHMS_ALL_PAIRS_H_
#define MINIPOD_SIM_MODEL_NETWORK_ALGORITHMS_ALL_PAIRS_H_

#include "sim/model/network/algorithms/device_groups.h"
#include "sim/model/network/algorithms/traffic_builder.h"

// Whether the flows are counted link by link instead of one by one: in large groups that are boxes.
// Two ways that are equally long then have half of a flow each, which is what single flows come to
// on average.
bool mp_all_pairs_are_counted(const mp_groups_of_devices_t *groups);

// Adds the flows to the open stage of `builder`, each with so many bytes.
void mp_all_pairs_add(mp_builder_t *builder, mp_arena_t *scratch,
                      const mp_groups_of_devices_t *groups, double bytes);

#endif  // MINIPOD_SIM_MODEL_NETWORK_ALGORITHMS_ALL_PAIRS_H_
