// The algorithms of collectives, as the flows of their steps.
//
// Each works on groups of equal size side by side, which wait for each other after every step. The
// bytes of a collective are those of the longest array that a device has of it: the operand of an
// all_reduce, reduce_scatter, broadcast or all_to_all, the result of an all_gather.
//
// A reduce_scatter and an all_gather are the same steps in opposite order, so that one function
// does both: a "pass". An all_reduce is a reduce_scatter and an all_gather of what that leaves (R.
// Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004), with all passes
// here; a broadcast of much is a scatter and an all_gather (van de Geijn).
#ifndef MINIPOD_SIM_MODEL_NETWORK_ALGORITHMS_ALGORITHMS_H_
#define MINIPOD_SIM_MODEL_NETWORK_ALGORITHMS_ALGORITHMS_H_

#include "sim/model/network/algorithms/device_groups.h"
#include "sim/model/network/algorithms/traffic_builder.h"

// A collective of groups, and its algorithm; AUTO: none was asked for.
typedef struct {
  mp_collective_kind_t kind;
  const mp_groups_of_devices_t *groups;
  double bytes;
  mp_algorithm_t algorithm;
} mp_grouped_collective_t;

// ---- Which ----

// The algorithms that a kind of collective can have, in the order of preference, up to AUTO.
const mp_algorithm_t *mp_algorithms_of(mp_collective_kind_t kind);

// Sets the algorithm to the best by estimated times, unless one is set that can be used for the
// groups. `scratch` is an arena.
MP_NODISCARD mp_status_t mp_algorithms_choose(mp_network_t *network, mp_arena_t *scratch,
                                              mp_grouped_collective_t *collective);

// Seconds that the algorithm takes before its stages.
double mp_algorithms_start(const mp_network_t *network, const mp_grouped_collective_t *collective);

// Builds the stages of an all_reduce, reduce_scatter, all_gather, broadcast or all_to_all by an
// algorithm that mp_algorithms_choose has set.
void mp_algorithms_build(mp_builder_t *builder, mp_arena_t *scratch,
                         const mp_grouped_collective_t *collective);

// ---- Between hosts of GPUs (between_hosts.c) ----

// Whether the group's collectives of this kind are done as NCCL does them between hosts: the chip
// has figures for it, and the group has members in several hosts.
bool mp_between_hosts(const mp_network_t *network, mp_collective_kind_t kind,
                      const mp_groups_of_devices_t *group);
// Whether such a group can have the algorithm; the one that is soonest done.
bool mp_between_hosts_can(const mp_network_t *network, mp_collective_kind_t kind,
                          const mp_groups_of_devices_t *group, mp_algorithm_t algorithm);
mp_algorithm_t mp_between_hosts_choose(const mp_network_t *network, mp_collective_kind_t kind,
                                       const mp_groups_of_devices_t *group, double bytes);
// Builds its stages, start and latencies of steps included.
void mp_between_hosts_build(mp_builder_t *builder, mp_arena_t *scratch, mp_collective_kind_t kind,
                            const mp_groups_of_devices_t *group, double bytes,
                            mp_algorithm_t algorithm);

// ---- Rings (ring_passes.c) ----

// n - 1 steps in which every member sends a part of 1/n to the next one, or half of a part to
// either side.
void mp_ring_pass(mp_builder_t *builder, const mp_groups_of_devices_t *groups, double bytes,
                  bool is_both_ways);
// Two-way rings along each dimension of boxes: the first of a reduce_scatter with all bytes, each
// next one with what that leaves.
void mp_dimension_pass(mp_builder_t *builder, mp_arena_t *scratch,
                       const mp_groups_of_devices_t *boxes, double bytes, bool is_gather);
// The same for as many parts of the bytes as there are dimensions at once, each part beginning with
// a dimension of its own, and as large as that one's rings are fast. Between the cores of chips it
// is done before, or after.
void mp_multiport_pass(mp_builder_t *builder, mp_arena_t *scratch,
                       const mp_groups_of_devices_t *boxes, double bytes, bool is_gather);

// ---- Partners (partner_passes.c) ----

// Partners at distances 1, 2, 4 ... swap half of what they have. Those beyond the last power of two
// give theirs to a partner before, and get the result from it afterwards.
void mp_halving_pass(mp_builder_t *builder, const mp_groups_of_devices_t *groups, double bytes,
                     bool is_gather, bool is_whole);
// A binomial tree: from the root to all others, or from them to the root.
void mp_tree_pass(mp_builder_t *builder, const mp_groups_of_devices_t *groups, double bytes,
                  bool is_to_root);
// In one step, from the root to all others.
void mp_root_pass(mp_builder_t *builder, const mp_groups_of_devices_t *groups, double bytes);
// In one step, a part of the bytes from every member to every other.
void mp_direct_pass(mp_builder_t *builder, mp_arena_t *scratch,
                    const mp_groups_of_devices_t *groups, double bytes);

// Each asks the switch of the slice for the sums of a part, and has it send them to all.
void mp_switch_pass(mp_builder_t *builder, mp_arena_t *scratch,
                    const mp_groups_of_devices_t *groups, double bytes);

#endif  // MINIPOD_SIM_MODEL_NETWORK_ALGORITHMS_ALGORITHMS_H_
