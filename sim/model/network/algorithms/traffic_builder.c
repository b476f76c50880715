#include "sim/model/network/algorithms/traffic_builder.h"

#include <stdlib.h>

#include "sim/base/assert.h"

// Links of flows that are kept to tell them apart; more become loads.
enum { MAX_LINKS = 1 << 22 };

// Different latencies of flows that each have a transfer.
enum { MAX_LATENCIES = 8 };

void mp_builder_init(mp_builder_t *builder, mp_network_t *network, mp_builder_goal_t goal,
                     mp_arena_t *arena) {
  *builder = (mp_builder_t){.network = network, .goal = goal, .arena = arena, .shortest = -1};
}

static void traffic_builder_clear_loads(mp_builder_t *builder) {
  for (uint32_t i = 0; i < builder->touched.count; ++i) {
    builder->network->loads[builder->touched.items[i]] = 0;
  }
  builder->touched.count = 0;
}

static void traffic_builder_clear_stage(mp_builder_t *builder) {
  for (uint32_t i = 0; i < builder->stage_touched.count; ++i) {
    builder->network->stage_seconds[builder->stage_touched.items[i]] = 0;
  }
  builder->stage_touched.count = 0;
  builder->stage_longest = builder->stage_seconds = 0;
  builder->stage_steps = 0;
}

void mp_builder_deinit(mp_builder_t *builder) {
  traffic_builder_clear_loads(builder);
  traffic_builder_clear_stage(builder);
  MP_ARRAY_FREE(&builder->flows);
  MP_ARRAY_FREE(&builder->links);
  MP_ARRAY_FREE(&builder->touched);
  MP_ARRAY_FREE(&builder->stage_touched);
  MP_ARRAY_FREE(&builder->transfers);
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
}

void mp_builder_latencies(mp_builder_t *builder, double shortest, double longest) {
  if (builder->shortest < 0 || shortest < builder->shortest) builder->shortest = shortest;
  if (longest > builder->longest) builder->longest = longest;
}

static void traffic_builder_load_flow(mp_builder_t *builder, const mp_builder_flow_t *flow) {
  for (uint32_t i = 0; i < flow->num_links; ++i) {
    mp_builder_load(builder, builder->links.items[flow->first_link + i], flow->times);
  }
}

void mp_builder_fold(mp_builder_t *builder) {
  for (uint32_t i = 0; i < builder->flows.count; ++i) {
    const mp_builder_flow_t *flow = &builder->flows.items[i];
    traffic_builder_load_flow(builder, flow);
    mp_builder_latencies(builder, flow->latency, flow->latency);
  }
  builder->flows.count = 0;
  builder->links.count = 0;
}

bool mp_builder_counts_flows(const mp_builder_t *builder, uint32_t times) {
  if (builder->shortest >= 0) return true;
  if (builder->flows.count == 0) return false;
  // As the last flow finds it.
  const uint32_t last = builder->flows.items[builder->flows.count - 1].num_links;
  return (uint64_t)builder->links.count * times - last > MAX_LINKS;
}

double mp_builder_flow(mp_builder_t *builder, int32_t source, int32_t target, double times) {
  if (builder->status != NULL || source == target) return 0;
  if (builder->goal == MP_BUILD_SENDS) {
    const mp_network_send_t send = {builder->step, source, target, times};
    mp_builder_fail(builder, MP_ARRAY_PUSH(builder->arena, &builder->sends, send));
    return 0;
  }
  if (builder->links.count > MAX_LINKS) mp_builder_fold(builder);
  mp_builder_flow_t flow = {
      .times = times, .first_link = builder->links.count, .source = source, .target = target};
  flow.is_far = mp_pod_device(builder->network->pod, source)->slice_index !=
                mp_pod_device(builder->network->pod, target)->slice_index;
  mp_builder_fail(builder,
                  mp_network_route(builder->network, mp_network_device(source),
                                   mp_network_device(target), &builder->links, &flow.latency));
  flow.num_links = builder->links.count - flow.first_link;
  if (builder->status == NULL) {
    mp_builder_fail(builder, MP_ARRAY_PUSH(NULL, &builder->flows, flow));
  }
  return flow.latency;
}

// ---- Transfers of loads ----

// Adds to the time that each link needs for the stage, if there were no latencies.
static void traffic_builder_weigh(mp_builder_t *builder, double bytes) {
  mp_network_t *network = builder->network;
  for (uint32_t i = 0; i < builder->touched.count && builder->status == NULL; ++i) {
    const uint32_t link = builder->touched.items[i];
    double *seconds = &network->stage_seconds[link];
    if (*seconds == 0) {
      mp_builder_fail(builder, MP_ARRAY_PUSH(NULL, &builder->stage_touched, link));
    }
    if (builder->status != NULL) return;
    *seconds += mp_network_link_seconds(&network->links.items[link], bytes * network->loads[link]);
    if (*seconds > builder->stage_longest) builder->stage_longest = *seconds;
  }
}

// A copy of the loads; NULL: the builder has failed.
static mp_network_use_t *traffic_builder_uses(mp_builder_t *builder, mp_arena_t *arena) {
  const uint32_t count = builder->touched.count;
  mp_network_use_t *uses = MP_ARENA_ARRAY(arena, mp_network_use_t, count);
  if (uses == NULL) mp_builder_fail(builder, mp_status_out_of_memory());
  for (uint32_t i = 0; i < count && uses != NULL; ++i) {
    const uint32_t link = builder->touched.items[i];
    uses[i] = (mp_network_use_t){link, builder->network->loads[link]};
  }
  return uses;
}

static void traffic_builder_keep(mp_builder_t *builder, mp_transfer_t transfer) {
  mp_network_use_t *uses = traffic_builder_uses(builder, builder->arena);
  if (uses == NULL) return;
  transfer.num_uses = builder->touched.count;
  transfer.uses = uses;
  mp_builder_fail(builder, MP_ARRAY_PUSH(NULL, &builder->transfers, transfer));
}

// Makes a transfer of the loads. Transfers of one size come with falling latencies: what has a
// longer latency has all its bytes still to send when the next one begins, so that latency and
// bytes so far are no more than the time of the stage.
static void traffic_builder_add(mp_builder_t *builder, mp_transfer_t transfer) {
  if (builder->status != NULL) return;
  transfer.latency += builder->start + builder->piped;
  if (transfer.latency > builder->latest) builder->latest = transfer.latency;
  if (builder->goal == MP_BUILD_TRAFFIC) {
    traffic_builder_keep(builder, transfer);
  } else {
    traffic_builder_weigh(builder, transfer.bytes);
    const double seconds = transfer.latency + builder->stage_longest;
    if (seconds > builder->stage_seconds) builder->stage_seconds = seconds;
  }
  traffic_builder_clear_loads(builder);
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
  if (count != 0 && repeats > builder->stage_steps) builder->stage_steps = repeats;
}

// The latency of flows that begin one after the other and end together: the first ones keep the
// busiest link busy while the latency of the last ones passes, but the last one's bytes come behind
// that.
static double traffic_builder_latency(const mp_builder_t *builder, double bytes) {
  const mp_network_t *network = builder->network;
  double busiest = 0, once = 0;
  for (uint32_t i = 0; i < builder->touched.count; ++i) {
    const uint32_t link = builder->touched.items[i];
    const double seconds = mp_network_link_seconds(&network->links.items[link], bytes);
    if (seconds > once) once = seconds;
    if (seconds * network->loads[link] > busiest) busiest = seconds * network->loads[link];
  }
  const double latency = builder->longest + once - busiest;
  return latency > builder->shortest ? latency : builder->shortest;
}

static void traffic_builder_note(mp_builder_t *builder, mp_builder_loads_t loads) {
  const uint32_t count = builder->touched.count;
  mp_network_use_t *uses = traffic_builder_uses(builder, builder->network->arena);
  if (uses == NULL) return;
  loads.num_uses = count;
  loads.uses = uses;
  mp_builder_fail(builder, MP_ARRAY_PUSH(builder->network->arena, builder->record, loads));
}

// Makes one transfer of the loads, whose flows have latencies between the shortest and the longest
// (`is_spread`), or all the same.
static void traffic_builder_end_loads(mp_builder_t *builder, bool is_spread, int32_t source,
                                      int32_t target, double bytes) {
  if (builder->record != NULL && builder->status == NULL) {
    traffic_builder_note(builder, (mp_builder_loads_t){.is_spread = is_spread,
                                                       .source = source,
                                                       .target = target,
                                                       .shortest = builder->shortest,
                                                       .longest = builder->longest});
  }
  const double latency = is_spread ? traffic_builder_latency(builder, bytes) : builder->longest;
  traffic_builder_add(
      builder,
      (mp_transfer_t){.source = source, .target = target, .latency = latency, .bytes = bytes});
  builder->shortest = -1;
  builder->longest = 0;
}

void mp_builder_add_record(mp_builder_t *builder, const mp_builder_record_t *record, double bytes) {
  MP_ASSERT(builder->goal != MP_BUILD_SENDS && builder->shortest < 0);
  for (uint32_t i = 0; i < record->count && builder->status == NULL; ++i) {
    const mp_builder_loads_t *loads = &record->items[i];
    for (uint32_t k = 0; k < loads->num_uses; ++k) {
      mp_builder_load(builder, loads->uses[k].link, loads->uses[k].times);
    }
    mp_builder_latencies(builder, loads->shortest, loads->longest);
    traffic_builder_end_loads(builder, loads->is_spread, loads->source, loads->target, bytes);
  }
}

// From slice to slice first, then the longest latency first, then in the order in which they were
// named.
static int traffic_builder_compare(const void *a, const void *b) {
  const mp_builder_flow_t *x = a, *y = b;
  if (x->is_far != y->is_far) return x->is_far ? -1 : 1;
  if (x->latency != y->latency) return x->latency > y->latency ? -1 : 1;
  return x->first_link < y->first_link ? -1 : x->first_link > y->first_link;
}

// The end of the run of flows from `first` on that have the same latency. Sums of the same
// latencies in another order may differ in the last bits.
static uint32_t traffic_builder_run(const mp_builder_flow_t *flows, uint32_t first, uint32_t end) {
  const double least = flows[first].latency * (1 - 1e-9);
  uint32_t i = first;
  while (i < end && flows[i].latency >= least) ++i;
  return i;
}

// A transfer for each latency of some sorted flows, or one for all.
static void traffic_builder_end_flows(mp_builder_t *builder, uint32_t begin, uint32_t end,
                                      double bytes) {
  const mp_builder_flow_t *flows = builder->flows.items;
  uint32_t latencies = 0;
  for (uint32_t i = begin; i < end; i = traffic_builder_run(flows, i, end)) ++latencies;
  const bool is_one_by_one = latencies <= MAX_LATENCIES;
  for (uint32_t first = begin, next; first < end; first = next) {
    next = traffic_builder_run(flows, first, end);
    for (uint32_t i = first; i < next; ++i) traffic_builder_load_flow(builder, &flows[i]);
    mp_builder_latencies(builder, flows[next - 1].latency, flows[first].latency);
    if (!is_one_by_one) continue;
    const bool is_one = next - first == 1;
    traffic_builder_end_loads(builder, false, is_one ? flows[first].source : -1,
                              is_one ? flows[first].target : -1, bytes);
  }
  if (builder->shortest >= 0) traffic_builder_end_loads(builder, true, -1, -1, bytes);
}

void mp_builder_end_transfer(mp_builder_t *builder, double bytes) {
  MP_ASSERT(bytes >= 0);
  if (builder->goal == MP_BUILD_SENDS) {
    traffic_builder_end_sends(builder, bytes, 1);
    return;
  }
  if (builder->shortest >= 0) {
    mp_builder_fold(builder);
    traffic_builder_end_loads(builder, true, -1, -1, bytes);
    return;
  }
  mp_builder_flow_t *flows = builder->flows.items;
  const uint32_t count = builder->flows.count;
  if (count != 0) qsort(flows, count, sizeof(*flows), traffic_builder_compare);
  uint32_t num_far = 0;
  while (num_far < count && flows[num_far].is_far) ++num_far;
  traffic_builder_end_flows(builder, 0, num_far, bytes);
  traffic_builder_end_flows(builder, num_far, count, bytes);
  builder->flows.count = 0;
  builder->links.count = 0;
}

void mp_builder_end_steps(mp_builder_t *builder, double bytes, uint32_t repeats, double latency) {
  MP_ASSERT(bytes >= 0);
  if (builder->goal == MP_BUILD_SENDS) {
    traffic_builder_end_sends(builder, bytes, repeats);
    return;
  }
  mp_builder_fold(builder);
  traffic_builder_add(
      builder,
      (mp_transfer_t){.source = -1, .target = -1, .latency = latency, .bytes = bytes * repeats});
  builder->shortest = -1;
  builder->longest = 0;
}

void mp_builder_wait(mp_builder_t *builder, double seconds) {
  builder->start += seconds;
}

void mp_builder_begin_pipe(mp_builder_t *builder) {
  builder->is_piped = builder->goal != MP_BUILD_SENDS;
}

void mp_builder_end_pipe(mp_builder_t *builder) {
  builder->is_piped = false;
  builder->piped = 0;
  mp_builder_end_stage(builder);
}

void mp_builder_end_stage(mp_builder_t *builder) {
  if (builder->latest > 0) builder->start = 0;  // a flow has waited
  if (builder->is_piped) {
    builder->piped = builder->latest;
    return;
  }
  builder->latest = 0;
  builder->seconds += builder->stage_seconds;
  builder->step += builder->stage_steps;
  traffic_builder_clear_stage(builder);
  const uint32_t count = builder->transfers.count;
  if (count == 0 || builder->status != NULL) return;
  const mp_transfer_t *transfers =
      mp_arena_copy(builder->arena, builder->transfers.items, count * sizeof(*transfers));
  mp_builder_fail(builder, transfers == NULL ? mp_status_out_of_memory()
                                             : MP_ARRAY_PUSH(builder->arena, &builder->stages,
                                                             (mp_stage_t){count, transfers}));
  builder->transfers.count = 0;
}
