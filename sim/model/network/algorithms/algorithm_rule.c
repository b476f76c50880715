// Which algorithm a collective has.
#include <math.h>
#include <string.h>

#include "sim/model/network/algorithms/algorithms.h"
#include "sim/model/network/algorithms/all_pairs.h"

// Most flows' links that are looked at for the estimate of one candidate; more would take longer
// than a second, and such a candidate (all to all in a group of thousands) is hopeless.
#define MAX_ESTIMATE 5e7

// A candidate is taken before others of which none is faster by more than this.
#define NEGLIGIBLE 1.05

// How many links of flows an estimate looks at, roughly.
static double algorithm_rule_work(const mp_network_t *network, const mp_groups_of_devices_t *groups,
                                  mp_algorithm_t algorithm) {
  const double devices = (double)groups->count * groups->size;
  double flows = devices * 2;
  if (algorithm == MP_ALGORITHM_HALVING_DOUBLING) flows = devices * log2(groups->size);
  if (algorithm == MP_ALGORITHM_DIRECT) {
    flows = devices * (mp_all_pairs_are_counted(groups) ? 1 : groups->size);
  }
  return flows * mp_network_diameter(network);
}

// Whether the devices are all of one slice.
static bool algorithm_rule_is_near(const mp_network_t *network,
                                   const mp_groups_of_devices_t *groups) {
  const int32_t slice = mp_pod_device(network->pod, groups->devices[0])->slice_index;
  for (uint32_t i = 1; i < groups->count * groups->size; ++i) {
    if (mp_pod_device(network->pod, groups->devices[i])->slice_index != slice) return false;
  }
  return true;
}

// Whether the chip's runtime takes such an algorithm by itself. NCCL has rings and trees, the trees
// between hosts; all members send to all only if they have different bytes for each.
static bool algorithm_rule_is_usual(const mp_network_t *network, mp_collective_kind_t kind,
                                    const mp_groups_of_devices_t *groups,
                                    mp_algorithm_t algorithm) {
  if (network->figures.compiler != MP_CHIP_COMPILER_GPU) return true;
  switch (algorithm) {
    case MP_ALGORITHM_RING:
    case MP_ALGORITHM_SWITCH_SUM:
    case MP_ALGORITHM_HIERARCHICAL:
      return true;
    case MP_ALGORITHM_TREE:
      return !algorithm_rule_is_near(network, groups);
    case MP_ALGORITHM_DIRECT:
      return mp_algorithms_of(kind)[0] == MP_ALGORITHM_DIRECT;
    default:
      return false;
  }
}

static mp_status_t algorithm_rule_fits(mp_network_t *network, mp_arena_t *scratch,
                                       const mp_groups_of_devices_t *groups,
                                       mp_algorithm_t algorithm, bool *out_fits) {
  mp_groups_of_devices_t inner, outer;
  *out_fits = true;
  switch (algorithm) {
    case MP_ALGORITHM_MULTIPORT_DIMENSION_RING:
      *out_fits = groups->num_dims > 1U + groups->has_cores;
      return NULL;
    case MP_ALGORITHM_DIMENSION_RING:
      *out_fits = groups->num_dims > 1;
      return NULL;
    case MP_ALGORITHM_SWITCH_SUM:
      *out_fits = mp_network_has_switch_sums(network) && algorithm_rule_is_near(network, groups);
      return NULL;
    case MP_ALGORITHM_HIERARCHICAL:
      return mp_device_groups_split(network, scratch, groups, &inner, &outer, out_fits);
    default:
      return NULL;
  }
}

static mp_status_t algorithm_rule_estimate(mp_network_t *network, mp_arena_t *scratch,
                                           const mp_grouped_collective_t *candidate,
                                           double *out_seconds) {
  mp_builder_t builder;
  mp_builder_init(&builder, network, MP_BUILD_ESTIMATE, scratch);
  mp_builder_wait(&builder, mp_algorithms_start(network, candidate));
  mp_algorithms_build(&builder, scratch, candidate);
  *out_seconds = builder.seconds;
  mp_status_t status = mp_builder_status(&builder);
  mp_builder_deinit(&builder);
  return status;
}

// The candidates that can be used for the groups, as many of them as can be weighed in reasonable
// time; if that is none, the one that is weighed fastest.
static mp_status_t algorithm_rule_list(mp_network_t *network, mp_arena_t *scratch,
                                       const mp_grouped_collective_t *collective,
                                       mp_algorithm_t *out_list, uint32_t *out_count) {
  const mp_groups_of_devices_t *groups = collective->groups;
  const mp_algorithm_t *candidates = mp_algorithms_of(collective->kind);
  mp_algorithm_t easiest = MP_ALGORITHM_AUTO;
  double least = INFINITY;
  *out_count = 0;
  for (uint32_t i = 0; candidates[i] != MP_ALGORITHM_AUTO; ++i) {
    bool fits;
    MP_RETURN_IF_ERROR(algorithm_rule_fits(network, scratch, groups, candidates[i], &fits));
    if (!fits) continue;
    if (candidates[i] == collective->algorithm) {
      out_list[0] = candidates[i];
      *out_count = 1;
      return NULL;
    }
    if (!algorithm_rule_is_usual(network, collective->kind, groups, candidates[i])) continue;
    const double work = algorithm_rule_work(network, groups, candidates[i]);
    if (work <= MAX_ESTIMATE) out_list[(*out_count)++] = candidates[i];
    if (work < least) {
      least = work;
      easiest = candidates[i];
    }
  }
  if (*out_count == 0) out_list[(*out_count)++] = easiest;
  return NULL;
}

// The first candidate that is nearly as good as the best one.
static mp_status_t algorithm_rule_apply(mp_network_t *network, mp_arena_t *scratch,
                                        mp_grouped_collective_t *collective) {
  const mp_collective_kind_t kind = collective->kind;
  const mp_groups_of_devices_t *groups = collective->groups;
  mp_algorithm_t list[MP_ALGORITHM_COUNT];
  double seconds[MP_ALGORITHM_COUNT] = {0}, least = INFINITY;
  uint32_t count;
  if (collective->algorithm == MP_ALGORITHM_AUTO && mp_between_hosts(network, kind, groups)) {
    collective->algorithm = mp_between_hosts_choose(network, kind, groups, collective->bytes);
    return NULL;
  }
  MP_RETURN_IF_ERROR(algorithm_rule_list(network, scratch, collective, list, &count));
  for (uint32_t i = 0; i < count && count > 1; ++i) {
    const mp_grouped_collective_t candidate = {kind, groups, collective->bytes, list[i]};
    MP_RETURN_IF_ERROR(algorithm_rule_estimate(network, scratch, &candidate, &seconds[i]));
    if (seconds[i] < least) least = seconds[i];
  }
  uint32_t best = 0;
  while (seconds[best] > least * NEGLIGIBLE) ++best;
  collective->algorithm = list[best];
  return NULL;
}

// ---- Boxes: the same wherever they lie ----

typedef struct {
  uint64_t kind, wanted, root;
  double bytes;
} rule_key_t;

// The first of several boxes, moved to the beginning of the first slice: what is best for one is
// best for all, and does not depend on which of them is asked for first.
static mp_status_t algorithm_rule_move(const mp_network_t *network, mp_arena_t *scratch,
                                       const mp_groups_of_devices_t *boxes,
                                       mp_groups_of_devices_t *out_box) {
  int32_t *devices = MP_ARENA_ARRAY(scratch, int32_t, boxes->size);
  MP_RETURN_IF_NULL(devices);
  // In a box the first device has the first place on every axis.
  const mp_pod_device_t *first = mp_pod_device(network->pod, boxes->devices[0]);
  for (uint32_t i = 0; i < boxes->size; ++i) {
    const mp_pod_device_t *device = mp_pod_device(network->pod, boxes->devices[i]);
    devices[i] = mp_network_device_at(network, (uint32_t)(device->chip_index - first->chip_index),
                                      (uint32_t)(device->core_on_chip - first->core_on_chip));
  }
  *out_box = *boxes;
  out_box->count = 1;
  out_box->devices = devices;
  return NULL;
}

static mp_status_t algorithm_rule_choose_for_box(mp_network_t *network, mp_arena_t *scratch,
                                                 mp_grouped_collective_t *collective) {
  mp_groups_of_devices_t box;
  MP_RETURN_IF_ERROR(algorithm_rule_move(network, scratch, collective->groups, &box));
  mp_grouped_collective_t moved = *collective;
  moved.groups = &box;
  const rule_key_t head = {moved.kind, moved.algorithm, box.root, moved.bytes};
  const size_t devices_size = box.size * sizeof(*box.devices), size = sizeof(head) + devices_size;
  char *key = mp_arena_alloc(scratch, size);
  MP_RETURN_IF_NULL(key);
  memcpy(key, &head, sizeof(head));
  memcpy(key + sizeof(head), box.devices, devices_size);
  const mp_algorithm_t *known = mp_network_cache_find(&network->choices, key, size);
  if (known != NULL) {
    collective->algorithm = *known;
    return NULL;
  }
  MP_RETURN_IF_ERROR(algorithm_rule_apply(network, scratch, &moved));
  collective->algorithm = moved.algorithm;
  const mp_algorithm_t *kept = mp_arena_copy(network->arena, &moved.algorithm, sizeof(*kept));
  MP_RETURN_IF_NULL(kept);
  return mp_network_cache_add(network, &network->choices, key, size, kept);
}

mp_status_t mp_algorithms_choose(mp_network_t *network, mp_arena_t *scratch,
                                 mp_grouped_collective_t *collective) {
  const mp_algorithm_t wanted = collective->algorithm;
  if (network->unchanged != NULL) network = network->unchanged;
  // In one dimension, the rings along dimensions are two-way rings.
  if (collective->groups->num_dims == 1 &&
      (wanted == MP_ALGORITHM_DIMENSION_RING || wanted == MP_ALGORITHM_MULTIPORT_DIMENSION_RING)) {
    collective->algorithm = MP_ALGORITHM_BIDIRECTIONAL_RING;
  }
  return collective->groups->num_dims != 0
             ? algorithm_rule_choose_for_box(network, scratch, collective)
             : algorithm_rule_apply(network, scratch, collective);
}
