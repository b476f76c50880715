// The algorithms that collectives can have, and the passes that these are made of.
#include "sim/model/network/algorithms/algorithms.h"

#include "sim/base/assert.h"

#define RINGS                                                         \
  MP_ALGORITHM_MULTIPORT_DIMENSION_RING, MP_ALGORITHM_DIMENSION_RING, \
      MP_ALGORITHM_BIDIRECTIONAL_RING, MP_ALGORITHM_RING
// Of each kind, by its name.
#define CANDIDATES_ALL_REDUCE                                                               \
  RINGS, MP_ALGORITHM_HIERARCHICAL, MP_ALGORITHM_SWITCH_SUM, MP_ALGORITHM_HALVING_DOUBLING, \
      MP_ALGORITHM_TREE, MP_ALGORITHM_DIRECT
#define CANDIDATES_ALL_GATHER \
  RINGS, MP_ALGORITHM_HIERARCHICAL, MP_ALGORITHM_HALVING_DOUBLING, MP_ALGORITHM_DIRECT
#define CANDIDATES_REDUCE_SCATTER CANDIDATES_ALL_GATHER
#define CANDIDATES_ALL_TO_ALL     MP_ALGORITHM_DIRECT, MP_ALGORITHM_HIERARCHICAL
#define CANDIDATES_PERMUTE        MP_ALGORITHM_DIRECT
#define CANDIDATES_BROADCAST \
  RINGS, MP_ALGORITHM_HIERARCHICAL, MP_ALGORITHM_TREE, MP_ALGORITHM_DIRECT
#define CANDIDATES_RAGGED_ALL_TO_ALL MP_ALGORITHM_DIRECT
#define CANDIDATES_EXCHANGE          MP_ALGORITHM_DIRECT
#define CANDIDATES_SEND_RECV         MP_ALGORITHM_DIRECT

enum { MAX_CANDIDATES = 10 };

static const mp_algorithm_t g_candidates[MP_COLLECTIVE_KINDS][MAX_CANDIDATES] = {
#define ROW(name, ...) [MP_COLLECTIVE_##name] = {CANDIDATES_##name},
    MP_COLLECTIVES(ROW)
#undef ROW
};

const mp_algorithm_t *mp_algorithms_of(mp_collective_kind_t kind) {
  MP_ASSERT(kind < MP_COLLECTIVE_KINDS);
  return g_candidates[kind];
}

// ---- Building ----

static void algorithms_pass(mp_builder_t *builder, mp_arena_t *scratch,
                            const mp_grouped_collective_t *collective, bool is_gather) {
  const mp_groups_of_devices_t *groups = collective->groups;
  const double bytes = collective->bytes;
  mp_groups_of_devices_t snakes = *groups;
  switch (collective->algorithm) {
    case MP_ALGORITHM_MULTIPORT_DIMENSION_RING:
      mp_multiport_pass(builder, scratch, groups, bytes, is_gather);
      return;
    case MP_ALGORITHM_DIMENSION_RING:
      mp_dimension_pass(builder, scratch, groups, bytes, is_gather);
      return;
    case MP_ALGORITHM_BIDIRECTIONAL_RING:
    case MP_ALGORITHM_RING:
      mp_builder_fail(builder, mp_device_groups_snake(scratch, groups, &snakes));
      mp_ring_pass(builder, &snakes, bytes,
                   collective->algorithm == MP_ALGORITHM_BIDIRECTIONAL_RING);
      return;
    case MP_ALGORITHM_HALVING_DOUBLING:
      mp_halving_pass(builder, groups, bytes, is_gather,
                      collective->kind == MP_COLLECTIVE_ALL_REDUCE);
      return;
    default:
      MP_ASSERT(collective->algorithm == MP_ALGORITHM_DIRECT);
      mp_direct_pass(builder, scratch, groups, bytes);
  }
}

static void algorithms_broadcast(mp_builder_t *builder, mp_arena_t *scratch,
                                 const mp_grouped_collective_t *collective) {
  const mp_groups_of_devices_t *groups = collective->groups;
  if (collective->algorithm == MP_ALGORITHM_TREE) {
    mp_tree_pass(builder, groups, collective->bytes, false);
  } else if (collective->algorithm == MP_ALGORITHM_DIRECT) {
    mp_root_pass(builder, groups, collective->bytes);
  } else {
    mp_root_pass(builder, groups, collective->bytes / groups->size);
    algorithms_pass(builder, scratch, collective, true);
  }
}

// One phase of a hierarchical algorithm: a collective of its own, by the algorithm that is best.
static void algorithms_phase(mp_builder_t *builder, mp_arena_t *scratch, mp_collective_kind_t kind,
                             const mp_groups_of_devices_t *groups, double bytes) {
  mp_grouped_collective_t phase = {kind, groups, bytes, MP_ALGORITHM_AUTO};
  if (builder->status != NULL) return;
  mp_builder_fail(builder, mp_algorithms_choose(builder->network, scratch, &phase));
  mp_algorithms_build(builder, scratch, &phase);
}

// In slices (`inner`), between the slices, in slices.
static void algorithms_phases(mp_builder_t *builder, mp_arena_t *scratch, mp_collective_kind_t kind,
                              mp_groups_of_devices_t inner, mp_groups_of_devices_t outer,
                              double bytes) {
  switch (kind) {
    case MP_COLLECTIVE_ALL_REDUCE:
      algorithms_phase(builder, scratch, MP_COLLECTIVE_REDUCE_SCATTER, &inner, bytes);
      algorithms_phase(builder, scratch, kind, &outer, bytes / inner.size);
      algorithms_phase(builder, scratch, MP_COLLECTIVE_ALL_GATHER, &inner, bytes);
      return;
    case MP_COLLECTIVE_REDUCE_SCATTER:
      algorithms_phase(builder, scratch, kind, &inner, bytes);
      algorithms_phase(builder, scratch, kind, &outer, bytes / inner.size);
      return;
    case MP_COLLECTIVE_ALL_GATHER:
      algorithms_phase(builder, scratch, kind, &outer, bytes / inner.size);
      algorithms_phase(builder, scratch, kind, &inner, bytes);
      return;
    case MP_COLLECTIVE_ALL_TO_ALL:
      algorithms_phase(builder, scratch, kind, &inner, bytes);
      algorithms_phase(builder, scratch, kind, &outer, bytes);
      return;
    default: {
      MP_ASSERT(kind == MP_COLLECTIVE_BROADCAST);
      // First only between the root's column.
      mp_groups_of_devices_t column = outer;
      column.devices += (size_t)inner.root * outer.size;
      column.count = 1;
      algorithms_phase(builder, scratch, kind, &column, bytes);
      algorithms_phase(builder, scratch, kind, &inner, bytes);
    }
  }
}

static void algorithms_hierarchical(mp_builder_t *builder, mp_arena_t *scratch,
                                    const mp_grouped_collective_t *collective) {
  mp_groups_of_devices_t inner, outer;
  bool is_split = false;
  mp_builder_fail(builder, mp_device_groups_split(builder->network, scratch, collective->groups,
                                                  &inner, &outer, &is_split));
  if (builder->status != NULL) return;
  MP_ASSERT(is_split);
  // NCCL sends pieces on between hosts while others still go round in them.
  const bool is_piped = builder->network->figures.compiler == MP_CHIP_COMPILER_GPU;
  if (is_piped) mp_builder_begin_pipe(builder);
  algorithms_phases(builder, scratch, collective->kind, inner, outer, collective->bytes);
  if (is_piped) mp_builder_end_pipe(builder);
}

double mp_algorithms_start(const mp_network_t *network, const mp_grouped_collective_t *collective) {
  const mp_groups_of_devices_t *groups = collective->groups;
  if (mp_between_hosts_can(network, collective->kind, groups, collective->algorithm)) return 0;
  return mp_network_overhead(network, collective->kind, collective->algorithm, groups->size,
                             collective->bytes);
}

void mp_algorithms_build(mp_builder_t *builder, mp_arena_t *scratch,
                         const mp_grouped_collective_t *collective) {
  const mp_collective_kind_t kind = collective->kind;
  const mp_groups_of_devices_t *groups = collective->groups;
  const double bytes = collective->bytes;
  const mp_algorithm_t algorithm = collective->algorithm;
  if (builder->status != NULL || groups->size < 2) return;
  if (mp_between_hosts_can(builder->network, kind, groups, algorithm)) {
    mp_between_hosts_build(builder, scratch, kind, groups, bytes, algorithm);
    return;
  }
  if (algorithm == MP_ALGORITHM_HIERARCHICAL) {
    algorithms_hierarchical(builder, scratch, collective);
    return;
  }
  switch (kind) {
    case MP_COLLECTIVE_ALL_REDUCE:
      if (algorithm == MP_ALGORITHM_TREE) {
        mp_tree_pass(builder, groups, bytes, true);
        mp_tree_pass(builder, groups, bytes, false);
        return;
      }
      if (algorithm == MP_ALGORITHM_SWITCH_SUM) {
        mp_switch_pass(builder, scratch, groups, bytes);
        return;
      }
      algorithms_pass(builder, scratch, collective, false);
      algorithms_pass(builder, scratch, collective, true);
      return;
    case MP_COLLECTIVE_REDUCE_SCATTER:
    case MP_COLLECTIVE_ALL_GATHER:
      algorithms_pass(builder, scratch, collective, kind == MP_COLLECTIVE_ALL_GATHER);
      return;
    case MP_COLLECTIVE_BROADCAST:
      algorithms_broadcast(builder, scratch, collective);
      return;
    default:
      mp_direct_pass(builder, scratch, groups, bytes);
  }
}
