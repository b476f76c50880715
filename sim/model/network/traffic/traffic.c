#include "sim/model/network/traffic/traffic.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/collective_parts.h"
#include "collectives/mailbox.h"
#include "sim/base/assert.h"
#include "sim/model/network/algorithms/algorithms.h"
#include "sim/model/network/traffic/flows.h"

// One collective of one group.
typedef struct {
  mp_network_t *network;
  const mp_collective_t *collective;
  const uint32_t *members;  // [size] logical numbers
  uint32_t group, size;
  const int32_t *ids;  // [logical numbers]
  double bytes;        // as algorithms.h has them
} traffic_t;

// ---- Bytes ----

static double traffic_bytes(const mp_collective_t *collective) {
  const bool is_gather = collective->kind == MP_COLLECTIVE_ALL_GATHER;
  const mp_collective_operand_t *operands = collective->operands;
  double bytes = 0;
  switch (collective->kind) {
    case MP_COLLECTIVE_EXCHANGE:
      return 0;  // each box has its own
    case MP_COLLECTIVE_RAGGED_ALL_TO_ALL: {
      // No more than the operand has, and no more than the output takes.
      const size_t sent = mp_operand_bytes(&operands[0], operands[0].dims);
      const size_t taken = mp_operand_bytes(&operands[1], operands[1].dims);
      return (double)(sent < taken ? sent : taken);
    }
    default:
      for (uint32_t i = 0; i < collective->num_operands; ++i) {
        const mp_collective_operand_t *operand = &operands[i];
        bytes +=
            (double)mp_operand_bytes(operand, is_gather ? operand->result_dims : operand->dims);
      }
      return bytes;
  }
}

// ---- Collectives that say who sends what ----

static void traffic_permute(const traffic_t *traffic, mp_builder_t *builder) {
  const mp_collective_t *collective = traffic->collective;
  for (uint32_t i = 0; i < collective->num_pairs; ++i) {
    const uint32_t source = collective->pairs[2 * i], target = collective->pairs[2 * i + 1];
    if (collective->groups->group_of[target] != (int32_t)traffic->group) continue;
    mp_builder_flow(builder, traffic->ids[source], traffic->ids[target], 1);
  }
  mp_builder_end_transfer(builder, traffic->bytes);
  mp_builder_end_stage(builder);
}

typedef struct {
  double bytes;
  uint32_t source, target;  // positions in the group
} traffic_part_t;

typedef MP_ARRAY(traffic_part_t) traffic_parts_t;

// Largest first.
static int traffic_compare_parts(const void *a, const void *b) {
  const traffic_part_t *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  if (x->target != y->target) return x->target < y->target ? -1 : 1;
  return x->source < y->source ? -1 : x->source > y->source;
}

// What each member gets of the boxes of others (collectives/README.md: the owners of boxes).
static mp_status_t traffic_find_parts(const traffic_t *traffic, mp_arena_t *scratch,
                                      traffic_parts_t *parts) {
  const mp_collective_t *collective = traffic->collective;
  const uint32_t *owner = collective->source.owner;
  const double element = (double)mp_dtype_size(collective->operands[0].dtype);
  for (uint32_t target = 0; target < traffic->size; ++target) {
    for (uint32_t source = 0; source < traffic->size; ++source) {
      const uint32_t logical = traffic->members[source];
      if (owner[logical] != logical || owner[traffic->members[target]] == logical) continue;
      mp_exchange_part_t part;
      if (!mp_exchange_part(collective, traffic->members, source, target, &part)) continue;
      const double bytes =
          (double)mp_dims_product(part.size, 0, collective->operands[0].rank) * element;
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(scratch, parts, (traffic_part_t){bytes, source, target}));
    }
  }
  return NULL;
}

// One stage: a transfer for all parts of one size.
static void traffic_exchange(const traffic_t *traffic, mp_arena_t *scratch, mp_builder_t *builder) {
  traffic_parts_t parts = {0};
  mp_builder_fail(builder, traffic_find_parts(traffic, scratch, &parts));
  if (parts.count != 0) {
    qsort(parts.items, parts.count, sizeof(*parts.items), traffic_compare_parts);
  }
  for (uint32_t i = 0; i < parts.count && builder->status == NULL; ++i) {
    const traffic_part_t *part = &parts.items[i];
    mp_builder_flow(builder, traffic->ids[traffic->members[part->source]],
                    traffic->ids[traffic->members[part->target]], 1);
    if (i + 1 == parts.count || parts.items[i + 1].bytes != part->bytes) {
      mp_builder_end_transfer(builder, part->bytes);
    }
  }
  mp_builder_end_stage(builder);
}

// ---- All collectives ----

static void traffic_by_algorithm(const traffic_t *traffic, mp_arena_t *scratch,
                                 mp_builder_t *builder, mp_algorithm_t *out_algorithm) {
  const mp_collective_kind_t kind = traffic->collective->kind;
  int32_t *devices = MP_ARENA_ARRAY(scratch, int32_t, traffic->size);
  if (devices == NULL) {
    mp_builder_fail(builder, mp_status_out_of_memory());
    return;
  }
  for (uint32_t i = 0; i < traffic->size; ++i) devices[i] = traffic->ids[traffic->members[i]];
  mp_groups_of_devices_t group;
  mp_grouped_collective_t collective = {kind, &group, traffic->bytes,
                                        traffic->network->options.algorithms[kind]};
  mp_status_t status =
      mp_device_groups_make(traffic->network, scratch, devices, traffic->size, &group);
  if (status == NULL) status = mp_algorithms_choose(traffic->network, scratch, &collective);
  if (status != NULL) {
    mp_builder_fail(builder, status);
    return;
  }
  *out_algorithm = collective.algorithm;
  mp_builder_wait(builder, mp_algorithms_start(traffic->network, &collective));
  mp_algorithms_build(builder, scratch, &collective);
}

static double traffic_message_overhead(const traffic_t *traffic) {
  return mp_network_message_overhead(traffic->network, traffic->network->axes[0].link.bandwidth,
                                     traffic->bytes);
}

static void traffic_build(const traffic_t *traffic, mp_arena_t *scratch, mp_builder_t *builder,
                          mp_algorithm_t *out_algorithm) {
  *out_algorithm = MP_ALGORITHM_DIRECT;
  const mp_collective_kind_t kind = traffic->collective->kind;
  switch (kind) {
    case MP_COLLECTIVE_PERMUTE:
      mp_builder_wait(builder, traffic_message_overhead(traffic));
      traffic_permute(traffic, builder);
      return;
    case MP_COLLECTIVE_EXCHANGE:
      mp_builder_wait(builder, mp_network_overhead(traffic->network, kind, MP_ALGORITHM_DIRECT,
                                                   traffic->size, traffic->bytes));
      traffic_exchange(traffic, scratch, builder);
      return;
    default:
      if (traffic->size > 1) traffic_by_algorithm(traffic, scratch, builder, out_algorithm);
  }
}

static mp_status_t traffic_of(mp_network_t *network, const mp_collective_t *collective,
                              uint32_t group, const int32_t *ids, traffic_t *out_traffic) {
  if (collective->kind == MP_COLLECTIVE_SEND_RECV) {
    return mp_status_make(MP_INTERNAL, "%s is not a group operation", collective->name);
  }
  const mp_groups_t *groups = collective->groups;
  MP_ASSERT(group < groups->num_groups);
  *out_traffic = (traffic_t){
      .network = network,
      .collective = collective,
      .members = groups->members + groups->offsets[group],
      .group = group,
      .size = groups->offsets[group + 1] - groups->offsets[group],
      .ids = ids,
      .bytes = traffic_bytes(collective),
  };
  return NULL;
}

// ---- What is kept ----

typedef struct {
  uint64_t kind;
  uint64_t digest;  // where the members send each other different things
  double bytes;
} traffic_key_t;

// All that the traffic follows from: a traffic_key_t, the members' ids, and their logical numbers
// where the description is by these.
static mp_status_t traffic_make_key(const traffic_t *traffic, mp_arena_t *scratch,
                                    const void **out_key, size_t *out_size) {
  const mp_collective_t *collective = traffic->collective;
  const bool is_by_member =
      collective->kind == MP_COLLECTIVE_PERMUTE || collective->kind == MP_COLLECTIVE_EXCHANGE;
  const traffic_key_t key = {
      .kind = collective->kind,
      .digest = is_by_member ? mp_collective_digest(collective) : 0,
      .bytes = traffic->bytes,
  };
  const size_t size = sizeof(key) + traffic->size * sizeof(int32_t) * (is_by_member ? 2 : 1);
  char *bytes = mp_arena_alloc(scratch, size);
  MP_RETURN_IF_NULL(bytes);
  memcpy(bytes, &key, sizeof(key));
  int32_t *numbers = (int32_t *)(void *)(bytes + sizeof(key));
  for (uint32_t i = 0; i < traffic->size; ++i) {
    numbers[i] = traffic->ids[traffic->members[i]];
    if (is_by_member) numbers[traffic->size + i] = (int32_t)traffic->members[i];
  }
  *out_key = bytes;
  *out_size = size;
  return NULL;
}

static mp_status_t traffic_make(const traffic_t *traffic, mp_arena_t *scratch,
                                const mp_traffic_t **out_traffic) {
  mp_network_t *network = traffic->network;
  mp_traffic_t *made = MP_ARENA_NEW(network->arena, mp_traffic_t);
  MP_RETURN_IF_NULL(made);
  mp_builder_t builder;
  mp_builder_init(&builder, network, MP_BUILD_TRAFFIC, network->arena);
  traffic_build(traffic, scratch, &builder, &made->algorithm);
  made->num_stages = builder.stages.count;
  made->stages = builder.stages.items;
  mp_status_t status = mp_builder_status(&builder);
  mp_builder_deinit(&builder);
  if (status == NULL) status = mp_flows_time_alone(network, made, &made->alone);
  if (status == NULL) *out_traffic = made;
  return status;
}

static mp_status_t traffic_get(const traffic_t *traffic, mp_arena_t *scratch,
                               const mp_traffic_t **out_traffic) {
  mp_network_t *network = traffic->network;
  const void *key = NULL;
  size_t size = 0;
  MP_RETURN_IF_ERROR(traffic_make_key(traffic, scratch, &key, &size));
  const mp_traffic_t *known = mp_network_cache_find(&network->traffics, key, size);
  if (known == NULL) {
    MP_RETURN_IF_ERROR(traffic_make(traffic, scratch, &known));
    MP_RETURN_IF_ERROR(mp_network_cache_add(network, &network->traffics, key, size, known));
  }
  *out_traffic = known;
  return NULL;
}

mp_status_t mp_network_traffic(mp_network_t *network, const mp_collective_t *collective,
                               uint32_t group, const int32_t *ids,
                               const mp_traffic_t **out_traffic) {
  traffic_t traffic;
  MP_RETURN_IF_ERROR(traffic_of(network, collective, group, ids, &traffic));
  mp_status_t status = traffic_get(&traffic, network->scratch, out_traffic);
  mp_arena_reset(network->scratch);
  return status;
}

// Puts sends in the order of their steps, and leaves those of a step as they are.
static mp_status_t traffic_sort_sends(mp_arena_t *arena, const mp_builder_t *builder,
                                      const mp_network_send_t **out_sends) {
  const uint32_t count = builder->sends.count;
  uint32_t *first = MP_ARENA_ARRAY(arena, uint32_t, (size_t)builder->step + 1);
  mp_network_send_t *sorted = MP_ARENA_ARRAY(arena, mp_network_send_t, count);
  if (first == NULL || sorted == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < count; ++i) ++first[builder->sends.items[i].step + 1];
  for (uint32_t step = 1; step < builder->step; ++step) first[step] += first[step - 1];
  for (uint32_t i = 0; i < count; ++i) {
    sorted[first[builder->sends.items[i].step]++] = builder->sends.items[i];
  }
  *out_sends = sorted;
  return NULL;
}

mp_status_t mp_network_expand(mp_network_t *network, mp_arena_t *arena,
                              const mp_collective_t *collective, uint32_t group, const int32_t *ids,
                              mp_network_sends_t *out_sends) {
  traffic_t traffic;
  MP_RETURN_IF_ERROR(traffic_of(network, collective, group, ids, &traffic));
  mp_builder_t builder;
  mp_algorithm_t algorithm;
  mp_builder_init(&builder, network, MP_BUILD_SENDS, arena);
  traffic_build(&traffic, network->scratch, &builder, &algorithm);
  const mp_network_send_t *sends = NULL;
  const uint32_t count = builder.sends.count;
  mp_status_t status = mp_builder_status(&builder);
  if (status == NULL) status = traffic_sort_sends(arena, &builder, &sends);
  mp_builder_deinit(&builder);
  mp_arena_reset(network->scratch);
  if (status != NULL) return status;
  *out_sends = (mp_network_sends_t){.algorithm = algorithm, .count = count, .sends = sends};
  return NULL;
}

// ---- A round: all transfers of a collective, one after the other ----

bool mp_network_is_of_pairs(const mp_collective_t *collective) {
  return collective->kind == MP_COLLECTIVE_PERMUTE || collective->kind == MP_COLLECTIVE_SEND_RECV;
}

static mp_status_t traffic_visit_pairs(mp_network_t *network, const mp_collective_t *collective,
                                       const int32_t *ids, mp_transfer_visitor_t visit,
                                       void *context) {
  const double bytes = (double)mp_message_bytes(collective);
  for (uint32_t i = 0; i < collective->num_pairs; ++i) {
    mp_transfer_t transfer;
    MP_RETURN_IF_ERROR(mp_network_message(network, mp_network_device(ids[collective->pairs[2 * i]]),
                                          mp_network_device(ids[collective->pairs[2 * i + 1]]),
                                          bytes, &transfer));
    visit(context, &transfer);
  }
  return NULL;
}

static mp_status_t traffic_visit_groups(mp_network_t *network, const mp_collective_t *collective,
                                        const int32_t *ids, mp_transfer_visitor_t visit,
                                        void *context) {
  for (uint32_t g = 0; g < collective->groups->num_groups; ++g) {
    const mp_traffic_t *traffic = NULL;
    MP_RETURN_IF_ERROR(mp_network_traffic(network, collective, g, ids, &traffic));
    for (uint32_t s = 0; s < traffic->num_stages; ++s) {
      const mp_stage_t *stage = &traffic->stages[s];
      for (uint32_t t = 0; t < stage->num_transfers; ++t) visit(context, &stage->transfers[t]);
    }
  }
  return NULL;
}

mp_status_t mp_network_visit_round(mp_network_t *network, const mp_collective_t *collective,
                                   const int32_t *ids, mp_transfer_visitor_t visit, void *context) {
  return mp_network_is_of_pairs(collective)
             ? traffic_visit_pairs(network, collective, ids, visit, context)
             : traffic_visit_groups(network, collective, ids, visit, context);
}
