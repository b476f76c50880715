#include "sim/model/network/traffic_builder.h"

#include "sim/base/assert.h"

void mp_builder_init(mp_builder_t *builder, mp_network_t *network, mp_builder_goal_t goal,
                     mp_arena_t *arena) {
  *builder = (mp_builder_t){.network = network, .goal = goal, .arena = arena};
}

void mp_builder_deinit(mp_builder_t *builder) {
  for (uint32_t i = 0; i < builder->touched.count; ++i) {
    builder->network->loads[builder->touched.items[i]] = 0;
  }
  for (uint32_t i = 0; i < builder->stage_touched.count; ++i) {
    builder->network->stage_seconds[builder->stage_touched.items[i]] = 0;
  }
  MP_ARRAY_FREE(&builder->touched);
  MP_ARRAY_FREE(&builder->stage_touched);
  MP_ARRAY_FREE(&builder->transfers);
  MP_ARRAY_FREE(&builder->route);
  mp_status_release(builder->status);
  builder->status = NULL;
}

mp_status_t mp_builder_status(mp_builder_t *builder) {
  mp_status_t status = builder->status;
  builder->status = NULL;
  return status;
}

void mp_builder_fail(mp_builder_t *builder, mp_status_t status) {
  if (builder->status == NULL) {
    builder->status = status;
  } else {
    mp_status_release(status);
  }
}

// ---- Flows of the open transfer ----

void mp_builder_load(mp_builder_t *builder, uint32_t link, double times) {
  if (builder->status != NULL || times == 0) return;
  double *load = &builder->network->loads[link];
  if (*load == 0) mp_builder_fail(builder, MP_ARRAY_PUSH(NULL, &builder->touched, link));
  if (builder->status == NULL) *load += times;
  ++builder->num_flows;
  builder->source = builder->target = -1;
}

void mp_builder_latency(mp_builder_t *builder, double latency) {
  if (latency > builder->latency) builder->latency = latency;
}

void mp_builder_flow(mp_builder_t *builder, int32_t source, int32_t target, double times) {
  if (builder->status != NULL || source == target) return;
  const uint32_t num_flows = builder->num_flows + 1;
  if (builder->goal == MP_BUILD_SENDS) {
    builder->num_flows = num_flows;
    mp_builder_fail(builder,
                    MP_ARRAY_PUSH(builder->arena, &builder->sends,
                                  (mp_network_send_t){builder->step, source, target, times}));
    return;
  }
  double latency = 0;
  builder->route.count = 0;
  mp_builder_fail(builder, mp_network_route(builder->network, mp_network_device(source),
                                            mp_network_device(target), &builder->route, &latency));
  for (uint32_t i = 0; i < builder->route.count; ++i) {
    mp_builder_load(builder, builder->route.items[i], times);
  }
  builder->num_flows = num_flows;
  builder->source = source;
  builder->target = target;
  mp_builder_latency(builder, latency);
}

// ---- The end of a transfer ----

// The flows of the transfer are sends with their `times`: they get their bytes, and are repeated.
static void traffic_builder_end_sends(mp_builder_t *builder, double bytes, uint32_t repeats) {
  const uint32_t first = builder->first_send, count = builder->sends.count - first;
  for (uint32_t i = first; i < first + count; ++i) builder->sends.items[i].bytes *= bytes;
  for (uint32_t r = 1; r < repeats && builder->status == NULL; ++r) {
    for (uint32_t i = first; i < first + count && builder->status == NULL; ++i) {
      mp_network_send_t again = builder->sends.items[i];
      again.step += r;
      mp_builder_fail(builder, MP_ARRAY_PUSH(builder->arena, &builder->sends, again));
    }
  }
  builder->first_send = builder->sends.count;
}

// What the transfer adds to the time of the stage, if links are all that limits it.
static void traffic_builder_weigh(mp_builder_t *builder, double bytes) {
  mp_network_t *network = builder->network;
  for (uint32_t i = 0; i < builder->touched.count && builder->status == NULL; ++i) {
    const uint32_t link = builder->touched.items[i];
    double *seconds = &network->stage_seconds[link];
    if (*seconds == 0) {
      mp_builder_fail(builder, MP_ARRAY_PUSH(NULL, &builder->stage_touched, link));
    }
    if (builder->status == NULL) {
      *seconds += bytes * network->loads[link] / network->links.items[link].bandwidth;
    }
  }
}

static void traffic_builder_keep(mp_builder_t *builder, double bytes, double latency) {
  const uint32_t count = builder->touched.count;
  mp_network_use_t *uses = MP_ARENA_ARRAY(builder->arena, mp_network_use_t, count);
  if (uses == NULL) {
    mp_builder_fail(builder, mp_status_out_of_memory());
    return;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t link = builder->touched.items[i];
    uses[i] = (mp_network_use_t){link, builder->network->loads[link]};
  }
  const bool is_one = builder->num_flows == 1;
  mp_builder_fail(builder, MP_ARRAY_PUSH(NULL, &builder->transfers,
                                         (mp_transfer_t){
                                             .source = is_one ? builder->source : -1,
                                             .target = is_one ? builder->target : -1,
                                             .latency = latency,
                                             .bytes = bytes,
                                             .num_uses = count,
                                             .uses = uses,
                                         }));
}

void mp_builder_end_transfer(mp_builder_t *builder, double bytes, uint32_t repeats) {
  MP_ASSERT(bytes >= 0);
  const double latency = builder->latency * repeats;
  if (builder->status == NULL && builder->num_flows != 0 && repeats != 0) {
    if (builder->goal == MP_BUILD_SENDS) {
      traffic_builder_end_sends(builder, bytes, repeats);
    } else if (builder->goal == MP_BUILD_TRAFFIC) {
      traffic_builder_keep(builder, bytes * repeats, latency);
    } else {
      traffic_builder_weigh(builder, bytes * repeats);
    }
    if (latency > builder->stage_latency) builder->stage_latency = latency;
    if (repeats > builder->stage_steps) builder->stage_steps = repeats;
  }
  for (uint32_t i = 0; i < builder->touched.count; ++i) {
    builder->network->loads[builder->touched.items[i]] = 0;
  }
  builder->touched.count = 0;
  builder->num_flows = 0;
  builder->latency = 0;
}

// ---- The end of a stage ----

void mp_builder_end_stage(mp_builder_t *builder) {
  MP_ASSERT(builder->status != NULL || builder->num_flows == 0);
  double longest = 0;
  for (uint32_t i = 0; i < builder->stage_touched.count; ++i) {
    double *seconds = &builder->network->stage_seconds[builder->stage_touched.items[i]];
    if (*seconds > longest) longest = *seconds;
    *seconds = 0;
  }
  builder->stage_touched.count = 0;
  builder->seconds += builder->stage_latency + longest;
  builder->stage_latency = 0;
  builder->step += builder->stage_steps;
  builder->stage_steps = 0;
  const uint32_t count = builder->transfers.count;
  if (count == 0 || builder->status != NULL) return;
  const mp_transfer_t *transfers =
      mp_arena_copy(builder->arena, builder->transfers.items, count * sizeof(*transfers));
  mp_builder_fail(builder, transfers == NULL ? mp_status_out_of_memory()
                                             : MP_ARRAY_PUSH(builder->arena, &builder->stages,
                                                             (mp_stage_t){count, transfers}));
  builder->transfers.count = 0;
}
