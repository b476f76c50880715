// Which algorithm a collective has, and what passes it is made of.
#include "sim/model/network/algorithms.h"

#include <math.h>

#include "sim/base/assert.h"
#include "sim/model/network/all_pairs.h"

// Most flows' links that are looked at for the estimate of one candidate; more would take longer
// than a second, and such a candidate (everybody to everybody in a group of thousands) is hopeless.
#define MAX_ESTIMATE 5e7

// A candidate is taken before others of which none is faster by more than this.
#define NEGLIGIBLE 1.05

#define RINGS                                                         \
  MP_ALGORITHM_MULTIPORT_DIMENSION_RING, MP_ALGORITHM_DIMENSION_RING, \
      MP_ALGORITHM_BIDIRECTIONAL_RING, MP_ALGORITHM_RING

enum { MAX_CANDIDATES = 9 };

static const mp_algorithm_t g_candidates[MP_COLLECTIVE_KINDS][MAX_CANDIDATES] = {
    [MP_COLLECTIVE_ALL_REDUCE] = {RINGS, MP_ALGORITHM_HIERARCHICAL, MP_ALGORITHM_HALVING_DOUBLING,
                                  MP_ALGORITHM_TREE, MP_ALGORITHM_DIRECT},
    [MP_COLLECTIVE_ALL_GATHER] = {RINGS, MP_ALGORITHM_HIERARCHICAL, MP_ALGORITHM_HALVING_DOUBLING,
                                  MP_ALGORITHM_DIRECT},
    [MP_COLLECTIVE_REDUCE_SCATTER] = {RINGS, MP_ALGORITHM_HIERARCHICAL,
                                      MP_ALGORITHM_HALVING_DOUBLING, MP_ALGORITHM_DIRECT},
    [MP_COLLECTIVE_ALL_TO_ALL] = {MP_ALGORITHM_DIRECT, MP_ALGORITHM_HIERARCHICAL},
    [MP_COLLECTIVE_PERMUTE] = {MP_ALGORITHM_DIRECT},
    [MP_COLLECTIVE_BROADCAST] = {RINGS, MP_ALGORITHM_HIERARCHICAL, MP_ALGORITHM_TREE,
                                 MP_ALGORITHM_DIRECT},
    [MP_COLLECTIVE_RAGGED_ALL_TO_ALL] = {MP_ALGORITHM_DIRECT},
    [MP_COLLECTIVE_EXCHANGE] = {MP_ALGORITHM_DIRECT},
    [MP_COLLECTIVE_SEND_RECV] = {MP_ALGORITHM_DIRECT},
};

const mp_algorithm_t *mp_algorithms_of(mp_collective_kind_t kind) {
  MP_ASSERT(kind <= MP_COLLECTIVE_SEND_RECV);
  return g_candidates[kind];
}

// ---- Building ----

static void algorithms_pass(mp_builder_t *builder, mp_arena_t *scratch, mp_algorithm_t algorithm,
                            const mp_groups_of_devices_t *groups, double bytes, bool is_gather,
                            bool is_whole) {
  mp_groups_of_devices_t snakes = *groups;
  switch (algorithm) {
    case MP_ALGORITHM_MULTIPORT_DIMENSION_RING:
      mp_multiport_pass(builder, scratch, groups, bytes, is_gather);
      return;
    case MP_ALGORITHM_DIMENSION_RING:
      mp_dimension_pass(builder, scratch, groups, bytes, is_gather);
      return;
    case MP_ALGORITHM_BIDIRECTIONAL_RING:
    case MP_ALGORITHM_RING:
      mp_builder_fail(builder, mp_device_groups_snake(scratch, groups, &snakes));
      mp_ring_pass(builder, &snakes, bytes, algorithm == MP_ALGORITHM_BIDIRECTIONAL_RING);
      return;
    case MP_ALGORITHM_HALVING_DOUBLING:
      mp_halving_pass(builder, groups, bytes, is_gather, is_whole);
      return;
    default:
      MP_ASSERT(algorithm == MP_ALGORITHM_DIRECT);
      mp_direct_pass(builder, scratch, groups, bytes);
  }
}

static void algorithms_broadcast(mp_builder_t *builder, mp_arena_t *scratch,
                                 mp_algorithm_t algorithm, const mp_groups_of_devices_t *groups,
                                 double bytes) {
  if (algorithm == MP_ALGORITHM_TREE) {
    mp_tree_pass(builder, groups, bytes, false);
  } else if (algorithm == MP_ALGORITHM_DIRECT) {
    mp_root_pass(builder, groups, bytes);
  } else {
    mp_root_pass(builder, groups, bytes / groups->size);
    algorithms_pass(builder, scratch, algorithm, groups, bytes, true, false);
  }
}

// One phase of a hierarchical algorithm: a collective of its own, by the algorithm that is best.
static void algorithms_phase(mp_builder_t *builder, mp_arena_t *scratch, mp_collective_kind_t kind,
                             const mp_groups_of_devices_t *groups, double bytes) {
  mp_algorithm_t algorithm = MP_ALGORITHM_AUTO;
  if (builder->status != NULL) return;
  mp_builder_fail(builder, mp_algorithms_choose(builder->network, scratch, kind, groups, bytes,
                                                MP_ALGORITHM_AUTO, &algorithm));
  mp_algorithms_build(builder, scratch, kind, groups, bytes, algorithm);
}

// In slices, between the slices, in slices.
static void algorithms_hierarchical(mp_builder_t *builder, mp_arena_t *scratch,
                                    mp_collective_kind_t kind, const mp_groups_of_devices_t *group,
                                    double bytes) {
  mp_groups_of_devices_t inner, outer;
  bool is_split = false;
  mp_builder_fail(
      builder, mp_device_groups_split(builder->network, scratch, group, &inner, &outer, &is_split));
  if (builder->status != NULL) return;
  MP_ASSERT(is_split);
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

void mp_algorithms_build(mp_builder_t *builder, mp_arena_t *scratch, mp_collective_kind_t kind,
                         const mp_groups_of_devices_t *groups, double bytes,
                         mp_algorithm_t algorithm) {
  if (builder->status != NULL || groups->size < 2) return;
  if (algorithm == MP_ALGORITHM_HIERARCHICAL) {
    algorithms_hierarchical(builder, scratch, kind, groups, bytes);
    return;
  }
  switch (kind) {
    case MP_COLLECTIVE_ALL_REDUCE:
      if (algorithm == MP_ALGORITHM_TREE) {
        mp_tree_pass(builder, groups, bytes, true);
        mp_tree_pass(builder, groups, bytes, false);
        return;
      }
      algorithms_pass(builder, scratch, algorithm, groups, bytes, false, true);
      algorithms_pass(builder, scratch, algorithm, groups, bytes, true, true);
      return;
    case MP_COLLECTIVE_REDUCE_SCATTER:
    case MP_COLLECTIVE_ALL_GATHER:
      algorithms_pass(builder, scratch, algorithm, groups, bytes, kind == MP_COLLECTIVE_ALL_GATHER,
                      false);
      return;
    case MP_COLLECTIVE_BROADCAST:
      algorithms_broadcast(builder, scratch, algorithm, groups, bytes);
      return;
    default:
      mp_direct_pass(builder, scratch, groups, bytes);
  }
}

// ---- Choosing ----

// How many links of flows an estimate looks at, roughly.
static double algorithms_work(const mp_network_t *network, const mp_groups_of_devices_t *groups,
                              mp_algorithm_t algorithm) {
  const double devices = (double)groups->count * groups->size;
  double flows = devices * 2;
  if (algorithm == MP_ALGORITHM_HALVING_DOUBLING) flows = devices * log2(groups->size);
  if (algorithm == MP_ALGORITHM_DIRECT) {
    flows = devices * (mp_all_pairs_are_counted(groups) ? 1 : groups->size);
  }
  return flows * mp_network_diameter(network);
}

static mp_status_t algorithms_fits(mp_network_t *network, mp_arena_t *scratch,
                                   const mp_groups_of_devices_t *groups, mp_algorithm_t algorithm,
                                   bool *out_fits) {
  mp_groups_of_devices_t inner, outer;
  *out_fits = true;
  switch (algorithm) {
    case MP_ALGORITHM_MULTIPORT_DIMENSION_RING:
    case MP_ALGORITHM_DIMENSION_RING:
      *out_fits = groups->num_dims > 1;
      return NULL;
    case MP_ALGORITHM_HIERARCHICAL:
      return mp_device_groups_split(network, scratch, groups, &inner, &outer, out_fits);
    default:
      return NULL;
  }
}

static mp_status_t algorithms_estimate(mp_network_t *network, mp_arena_t *scratch,
                                       mp_collective_kind_t kind,
                                       const mp_groups_of_devices_t *groups, double bytes,
                                       mp_algorithm_t algorithm, double *out_seconds) {
  mp_builder_t builder;
  mp_builder_init(&builder, network, MP_BUILD_ESTIMATE, scratch);
  mp_algorithms_build(&builder, scratch, kind, groups, bytes, algorithm);
  *out_seconds = builder.seconds;
  mp_status_t status = mp_builder_status(&builder);
  mp_builder_deinit(&builder);
  return status;
}

// The candidates that can be used for the groups, as many of them as can be weighed in reasonable
// time; if that is none, the one that is weighed fastest.
static mp_status_t algorithms_list(mp_network_t *network, mp_arena_t *scratch,
                                   mp_collective_kind_t kind, const mp_groups_of_devices_t *groups,
                                   mp_algorithm_t wanted, mp_algorithm_t *out_list,
                                   uint32_t *out_count) {
  const mp_algorithm_t *candidates = mp_algorithms_of(kind);
  mp_algorithm_t easiest = MP_ALGORITHM_AUTO;
  double least = INFINITY;
  *out_count = 0;
  for (uint32_t i = 0; candidates[i] != MP_ALGORITHM_AUTO; ++i) {
    bool fits;
    MP_RETURN_IF_ERROR(algorithms_fits(network, scratch, groups, candidates[i], &fits));
    if (!fits) continue;
    if (candidates[i] == wanted) {
      out_list[0] = wanted;
      *out_count = 1;
      return NULL;
    }
    const double work = algorithms_work(network, groups, candidates[i]);
    if (work <= MAX_ESTIMATE) out_list[(*out_count)++] = candidates[i];
    if (work < least) {
      least = work;
      easiest = candidates[i];
    }
  }
  if (*out_count == 0) out_list[(*out_count)++] = easiest;
  return NULL;
}

mp_status_t mp_algorithms_choose(mp_network_t *network, mp_arena_t *scratch,
                                 mp_collective_kind_t kind, const mp_groups_of_devices_t *groups,
                                 double bytes, mp_algorithm_t wanted,
                                 mp_algorithm_t *out_algorithm) {
  // In one dimension, the rings along dimensions are two-way rings.
  if (groups->num_dims == 1 &&
      (wanted == MP_ALGORITHM_DIMENSION_RING || wanted == MP_ALGORITHM_MULTIPORT_DIMENSION_RING)) {
    wanted = MP_ALGORITHM_BIDIRECTIONAL_RING;
  }
  mp_algorithm_t list[MAX_CANDIDATES];
  double seconds[MAX_CANDIDATES] = {0}, least = INFINITY;
  uint32_t count;
  MP_RETURN_IF_ERROR(algorithms_list(network, scratch, kind, groups, wanted, list, &count));
  for (uint32_t i = 0; i < count && count > 1; ++i) {
    MP_RETURN_IF_ERROR(
        algorithms_estimate(network, scratch, kind, groups, bytes, list[i], &seconds[i]));
    if (seconds[i] < least) least = seconds[i];
  }
  uint32_t best = 0;
  while (seconds[best] > least * NEGLIGIBLE) ++best;
  *out_algorithm = list[best];
  return NULL;
}
