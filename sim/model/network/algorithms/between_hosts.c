// Collectives of GPUs between hosts, as NCCL chooses and does them: rings and trees, each in three
// protocols that pay for a short latency with bandwidth; trees that add in switches; and exchanges
// of pairs where a host has one member. Figures are those of NCCL's own table of costs
// (src/graph/tuning.cc), by which it chooses: the model of a collective is that choice's.
#include <math.h>

#include "sim/model/network/algorithms/algorithms.h"

enum { LL, LL128, SIMPLE, PROTOCOLS };

// Positions in the lists of parameters of the first protocol's number; the others follow.
enum {
  START = MP_NETWORK_COSTS_START,
  INNER = MP_NETWORK_COSTS_INNER,
  OUTER = MP_NETWORK_COSTS_OUTER,
  SHARE = MP_NETWORK_COSTS_SHARE,
  LL_MOST = MP_NETWORK_COSTS_LL_MOST,
  COSTS_COUNT = MP_NETWORK_COSTS_COUNT
};

// A group and its cards.
typedef struct {
  const mp_network_t *network;
  mp_collective_kind_t kind;
  double size, hosts, bytes;
  double rate;   // bytes/s between hosts, of the cards that its members have
  double given;  // seconds between devices of different hosts as described, 0: left open
} between_t;

// What an algorithm and a protocol take: latency of the start with the steps inside hosts, and of
// those between hosts.
typedef struct {
  double inside, between, share, seconds;
} cost_t;

// All_reduces of medium size reach this share of a tree's rate: by protocol, for powers of two from
// 64 bytes on.
static const double g_tree_shares[PROTOCOLS][24] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
     .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}};

// ---- Groups ----

static uint32_t between_hosts_num(const mp_network_t *network,
                                  const mp_groups_of_devices_t *group) {
  uint32_t hosts = 0;
  int32_t last = -1;
  for (uint32_t i = 0; i < group->size; ++i) {
    const int32_t slice = mp_pod_device(network->pod, group->devices[i])->slice_index;
    hosts += slice != last;
    last = slice;
  }
  return hosts;
}

bool mp_between_hosts(const mp_network_t *network, mp_collective_kind_t kind,
                      const mp_groups_of_devices_t *group) {
  const bool is_known = kind == MP_COLLECTIVE_ALL_REDUCE || kind == MP_COLLECTIVE_ALL_GATHER ||
                        kind == MP_COLLECTIVE_REDUCE_SCATTER;
  return is_known && network->figures.network_ring.count == COSTS_COUNT && group->count == 1 &&
         network->first_nic_link < network->links.count && between_hosts_num(network, group) > 1;
}

static between_t between_hosts_of(const mp_network_t *network, mp_collective_kind_t kind,
                                  const mp_groups_of_devices_t *group, double bytes) {
  const mp_pod_info_t *info = network->info;
  const double per_host = (double)info->num_devices / info->num_hosts;
  between_t b = {.network = network,
                 .kind = kind,
                 .size = group->size,
                 .hosts = between_hosts_num(network, group),
                 .bytes = bytes};
  const double cards = network->links.items[network->first_nic_link].bandwidth;
  b.rate = cards * fmin(1, b.size / b.hosts / per_host);
  if (info->dcn.latency >= 0) {
    const mp_network_link_t *link = &network->links.items[network->first_host_link];
    b.given = info->dcn.latency + 2 * link->latency;
  }
  return b;
}

// ---- What each takes ----

static double between_hosts_micro(const mp_figure_list_t *list, int first, int protocol) {
  return list->each[first + protocol] * 1e-6;
}

// A step between hosts, no shorter than what the description says.
static double between_hosts_step(const between_t *b, const mp_figure_list_t *list, int protocol) {
  return fmax(between_hosts_micro(list, OUTER, protocol), b->given);
}

static cost_t between_hosts_ring(const between_t *b, int p) {
  const mp_figure_list_t *list = &b->network->figures.network_ring;
  const mp_figure_list_t *tree = &b->network->figures.network_tree;
  const bool is_sum = b->kind == MP_COLLECTIVE_ALL_REDUCE;
  const double passes = is_sum ? 2 : 1, steps = passes * (b->size - 1);
  const double outer = passes * (b->hosts - 1);
  // Where a host has one member, nothing hides the latency between hosts, as in a tree.
  const bool is_bare = b->size == b->hosts && tree->count == COSTS_COUNT;
  const double plateau = is_sum && p == SIMPLE ? 1.4 : 1;  // of the ring
  const double inside = plateau * (between_hosts_micro(list, START, p) +
                                   (steps - outer) * between_hosts_micro(list, INNER, p));
  const double between = plateau * outer * between_hosts_step(b, is_bare ? tree : list, p);
  double share = list->each[SHARE + p];
  if (p == LL) share = fmin(share, list->each[LL_MOST] * 1e9 / b->rate);
  const double sent = steps / b->size * b->bytes;
  return (cost_t){inside, between, share, inside + between + sent / (share * b->rate)};
}

static cost_t between_hosts_tree(const between_t *b, int p) {
  enum { LEAST = 64, POWERS = 24 };
  const mp_figure_list_t *list = &b->network->figures.network_tree;
  const double inside = between_hosts_micro(list, START, p) +
                        2 * (b->size / b->hosts - 1) * between_hosts_micro(list, INNER, p);
  const double between = 2 * floor(log2(b->hosts)) * between_hosts_step(b, list, p);
  double share = list->each[SHARE + p];
  if (p == LL) share = fmin(share, list->each[LL_MOST] * 1e9 / b->rate);
  const double power = b->bytes >= LEAST ? floor(log2(b->bytes / LEAST)) : POWERS;
  if (power < POWERS) share *= g_tree_shares[p][(int)power];
  const double bytes = (b->hosts > 2 ? 2 : 1) * b->bytes;
  return (cost_t){inside, between, share, inside + between + bytes / (share * b->rate)};
}

// Of switches that add in each host, and a tree between them: start, step between hosts, share.
static cost_t between_hosts_switches(const between_t *b) {
  const double *each = b->network->figures.network_switch_tree.each;
  const double step = fmax(each[MP_NETWORK_SWITCHES_STEP] * 1e-6, b->given);
  const double inside = each[MP_NETWORK_SWITCHES_START] * 1e-6;
  const double between = 2 * floor(log2(b->hosts)) * step, share = each[MP_NETWORK_SWITCHES_SHARE];
  const double bytes = (b->hosts > 2 ? 2 : 1) * (b->size - 1) / b->size * b->bytes;
  return (cost_t){inside, between, share, inside + between + bytes / (share * b->rate)};
}

// Exchanges of pairs: start, step of each doubling, time of each member, share.
static cost_t between_hosts_pairs(const between_t *b) {
  const double *each = b->network->figures.network_pairs.each;
  const double step = fmax(each[MP_NETWORK_PAIRS_DOUBLING] * 1e-6, b->given);
  const double inside =
      (each[MP_NETWORK_PAIRS_START] + b->size * each[MP_NETWORK_PAIRS_MEMBER]) * 1e-6;
  const double between = floor(log2(b->hosts)) * step, share = each[MP_NETWORK_PAIRS_SHARE];
  const double bytes = (b->size - 1) / b->size * b->bytes;
  return (cost_t){inside, between, share, inside + between + bytes / (share * b->rate)};
}

// By the protocol that is soonest done. Seconds INFINITY: the group has no such algorithm.
static cost_t between_hosts_cost(const between_t *b, mp_algorithm_t algorithm) {
  const mp_chip_figures_t *figures = &b->network->figures;
  const bool is_sum = b->kind == MP_COLLECTIVE_ALL_REDUCE;
  cost_t best = {0, 0, 1, INFINITY};
  switch (algorithm) {
    case MP_ALGORITHM_HIERARCHICAL:
      if (!is_sum || figures->network_switch_tree.count != MP_NETWORK_SWITCHES_COUNT) return best;
      return b->size > b->hosts ? between_hosts_switches(b) : best;
    case MP_ALGORITHM_HALVING_DOUBLING:
      if (is_sum || figures->network_pairs.count != MP_NETWORK_PAIRS_COUNT) return best;
      return b->size == b->hosts ? between_hosts_pairs(b) : best;
    case MP_ALGORITHM_TREE:
      if (!is_sum || figures->network_tree.count != COSTS_COUNT) return best;
      break;
    case MP_ALGORITHM_RING:
      break;
    default:
      return best;
  }
  for (int p = 0; p < PROTOCOLS; ++p) {
    const cost_t cost =
        algorithm == MP_ALGORITHM_RING ? between_hosts_ring(b, p) : between_hosts_tree(b, p);
    if (cost.seconds < best.seconds) best = cost;
  }
  return best;
}

// ---- Choosing ----

static const mp_algorithm_t g_known[] = {MP_ALGORITHM_RING, MP_ALGORITHM_TREE,
                                         MP_ALGORITHM_HIERARCHICAL, MP_ALGORITHM_HALVING_DOUBLING};

bool mp_between_hosts_can(const mp_network_t *network, mp_collective_kind_t kind,
                          const mp_groups_of_devices_t *group, mp_algorithm_t algorithm) {
  if (!mp_between_hosts(network, kind, group)) return false;
  const between_t b = between_hosts_of(network, kind, group, 1);
  return between_hosts_cost(&b, algorithm).seconds < INFINITY;
}

mp_algorithm_t mp_between_hosts_choose(const mp_network_t *network, mp_collective_kind_t kind,
                                       const mp_groups_of_devices_t *group, double bytes) {
  const between_t b = between_hosts_of(network, kind, group, bytes);
  mp_algorithm_t best = MP_ALGORITHM_RING;
  for (size_t i = 1; i < sizeof(g_known) / sizeof(g_known[0]); ++i) {
    const double least = between_hosts_cost(&b, best).seconds;
    if (between_hosts_cost(&b, g_known[i]).seconds < least) best = g_known[i];
  }
  return best;
}

// ---- Building ----

// The latency of a message between two devices.
static double between_hosts_latency(mp_builder_t *builder, const mp_network_t *network,
                                    int32_t from, int32_t to) {
  mp_network_route_t route = {0};
  double seconds = 0;
  mp_builder_fail(builder, mp_network_route(network, mp_network_device(from), mp_network_device(to),
                                            &route, &seconds));
  MP_ARRAY_FREE(&route);
  return seconds;
}

// The latency of the collective among one host's members, by the soonest algorithm. It was
// measured, while NCCL's table, by which NCCL chooses, leaves out what a launch takes. 0: a single
// member.
static double between_hosts_inside(mp_builder_t *builder, const mp_network_t *network,
                                   const mp_groups_of_devices_t *group, const between_t *b) {
  const uint32_t members = (uint32_t)(b->size / b->hosts);
  if (members < 2) return 0;
  const double step = between_hosts_latency(builder, network, group->devices[0], group->devices[1]);
  const bool is_sum = b->kind == MP_COLLECTIVE_ALL_REDUCE;
  const double ring = mp_network_overhead(network, b->kind, MP_ALGORITHM_RING, members, 0) +
                      (is_sum ? 2 : 1) * (members - 1) * step;
  if (!is_sum || !(network->figures.switch_sum_start > 0)) return ring;
  return fmin(
      ring, 2 * step + mp_network_overhead(network, b->kind, MP_ALGORITHM_SWITCH_SUM, members, 0));
}

// The latency of a flow with all faults, less that without.
static double between_hosts_fault(mp_builder_t *builder, int32_t from, int32_t to, double latency) {
  const mp_network_t *unchanged = builder->network->unchanged;
  if (unchanged == NULL || builder->goal == MP_BUILD_SENDS) return 0;
  return latency - between_hosts_latency(builder, unchanged, from, to);
}

// Passes around a ring of each group in which every member sends a part of 1/size each time.
// Latencies are those of the whole collective, but for what faults add.
static void between_hosts_pass(mp_builder_t *builder, const mp_groups_of_devices_t *groups,
                               double bytes, uint32_t passes) {
  const uint32_t size = groups->size;
  double longest = 0;
  for (uint32_t g = 0; g < groups->count; ++g) {
    const int32_t *devices = groups->devices + (size_t)g * size;
    double latency = 0;
    for (uint32_t i = 0; i < size; ++i) {
      const int32_t next = devices[i + 1 == size ? 0 : i + 1];
      latency += between_hosts_fault(builder, devices[i], next,
                                     mp_builder_flow(builder, devices[i], next, 1));
    }
    longest = fmax(longest, latency * passes);
  }
  mp_builder_end_steps(builder, bytes / size, passes * (size - 1), longest);
  mp_builder_end_stage(builder);
}

// How much longer a host's switches need because members move all bytes in and out of buffers, too.
static double between_hosts_buffers(const mp_network_t *network, double members) {
  const double buffers = network->figures.switch_sum_all;
  if (!(buffers > 0)) return 1;
  return 1 + network->axes[0].link.bandwidth / buffers * members / (members + 1);
}

// A ring for each member of a host, in which it is the first one of its host: all cards are used.
static mp_status_t between_hosts_channels(mp_arena_t *scratch, const mp_groups_of_devices_t *group,
                                          uint32_t hosts, mp_groups_of_devices_t *out_rings) {
  const uint32_t size = group->size, members = size / hosts;
  *out_rings = *group;
  if (size % hosts != 0) return NULL;
  int32_t *devices = MP_ARENA_ARRAY(scratch, int32_t, (size_t)members * size);
  MP_RETURN_IF_NULL(devices);
  for (uint32_t c = 0; c < members; ++c) {
    for (uint32_t i = 0; i < size; ++i) {
      const uint32_t first = i / members * members;
      devices[(size_t)c * size + i] = group->devices[first + (i + c) % members];
    }
  }
  out_rings->count = members;
  out_rings->devices = devices;
  return NULL;
}

void mp_between_hosts_build(mp_builder_t *builder, mp_arena_t *scratch, mp_collective_kind_t kind,
                            const mp_groups_of_devices_t *group, double bytes,
                            mp_algorithm_t algorithm) {
  const mp_network_t *network = builder->network;
  const mp_network_t *whole = network->unchanged != NULL ? network->unchanged : network;
  const between_t b = between_hosts_of(whole, kind, group, bytes);
  const cost_t cost = between_hosts_cost(&b, algorithm);
  const bool is_sum = kind == MP_COLLECTIVE_ALL_REDUCE;
  const double inside = fmax(cost.inside, between_hosts_inside(builder, whole, group, &b));
  mp_builder_wait(builder, inside + cost.between);
  mp_groups_of_devices_t inner, outer;
  bool is_split = false;
  if (algorithm == MP_ALGORITHM_TREE || algorithm == MP_ALGORITHM_HIERARCHICAL) {
    mp_builder_fail(builder,
                    mp_device_groups_split(network, scratch, group, &inner, &outer, &is_split));
  }
  if (builder->status != NULL) return;
  if (!is_split) {
    mp_groups_of_devices_t rings;
    mp_builder_fail(builder, between_hosts_channels(scratch, group, (uint32_t)b.hosts, &rings));
    if (builder->status != NULL) return;
    between_hosts_pass(builder, &rings, bytes / rings.count / cost.share, is_sum ? 2 : 1);
    return;
  }
  // A tree takes all bytes over each host's cards as often as rings of one member of each host do.
  mp_builder_begin_pipe(builder);
  if (algorithm == MP_ALGORITHM_TREE) {
    between_hosts_pass(builder, &inner, bytes, 2);
  } else {
    mp_switch_pass(builder, scratch, &inner, bytes * between_hosts_buffers(network, inner.size));
  }
  between_hosts_pass(builder, &outer, bytes / inner.size / cost.share, 2);
  mp_builder_end_pipe(builder);
}
