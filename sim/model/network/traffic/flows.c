#include "sim/model/network/traffic/flows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/assert.h"
#include "sim/model/network/traffic/flows_share.h"

// A transfer under way: first its latency passes, then its bytes flow.
typedef struct {
  uint64_t tag;
  double bytes;  // left at `since`
  double since;  // when the rate was set
  double next;   // when the latency is over, or the last byte has come, as things stand
  bool is_flowing;
  mp_flows_user_t user;  // its uses and its rate
} flow_t;

typedef struct {
  double time;
  uint64_t tag;
} flows_end_t;

struct mp_flows_s {
  const mp_network_t *network;
  double now;
  bool is_stale;                // bytes began or ceased to flow since the rates were computed
  double earliest;              // change, unless stale; INFINITY when nothing is under way
  MP_ARRAY(flow_t) active;      // in the order of starts
  MP_ARRAY(flows_end_t) ended;  // not taken out yet, from first_ended on
  uint32_t first_ended;
  size_t num_uses;                    // of the active ones
  MP_ARRAY(mp_flows_user_t *) users;  // of the transfers whose bytes flow
  mp_flows_share_t share;
  mp_flows_log_t *log;       // NULL: not wanted
  mp_flows_spans_t others;   // what they use is not available; by their begins
  MP_ARRAY(double) changes;  // moments at which what they leave is another, ascending
  uint32_t first_other, next_change;
};

mp_status_t mp_flows_create(const mp_network_t *network, mp_flows_t **out_flows) {
  mp_flows_t *flows = mp_calloc(1, sizeof(*flows));
  MP_RETURN_IF_NULL(flows);
  flows->network = network;
  flows->earliest = INFINITY;
  mp_status_t status = mp_flows_share_init(&flows->share, network);
  if (status != NULL) {
    mp_flows_release(flows);
    return status;
  }
  *out_flows = flows;
  return NULL;
}

void mp_flows_release(mp_flows_t *flows) {
  if (flows == NULL) return;
  mp_flows_share_deinit(&flows->share);
  MP_ARRAY_FREE(&flows->active);
  MP_ARRAY_FREE(&flows->ended);
  MP_ARRAY_FREE(&flows->users);
  MP_ARRAY_FREE(&flows->others);
  MP_ARRAY_FREE(&flows->changes);
  mp_free(flows);
}

// ---- What others leave ----

void mp_flows_record(mp_flows_t *flows, mp_flows_log_t *log) {
  flows->log = log;
}

// What a transfer has sent since it got its rate.
static void flows_log(mp_flows_t *flows, const flow_t *flow) {
  if (flows->log == NULL || !flow->is_flowing || flow->user.previous_rate <= 0) return;
  if (flow->since >= flows->now) return;
  const mp_flows_span_t span = {flow->user.uses, flow->user.num_uses, flow->user.previous_rate,
                                flow->since,     flows->now,          flow->tag};
  mp_status_t status = MP_ARRAY_PUSH(NULL, &flows->log->spans, span);
  flows->log->is_short |= status != NULL;
  mp_status_release(status);
}

static int flows_compare_spans(const void *a, const void *b) {
  const mp_flows_span_t *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  if (x->end != y->end) return x->end < y->end ? -1 : 1;
  if (x->rate != y->rate) return x->rate < y->rate ? -1 : 1;
  if (x->num_uses != y->num_uses) return x->num_uses < y->num_uses ? -1 : 1;
  return memcmp(x->uses, y->uses, x->num_uses * sizeof(*x->uses));
}

static int flows_compare_times(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

mp_status_t mp_flows_yield(mp_flows_t *flows, uint32_t count, const mp_flows_span_t *spans) {
  MP_ASSERT(flows->active.count == 0);
  for (uint32_t i = 0; i < count; ++i) {
    if (spans[i].end <= 0 || spans[i].num_uses == 0) continue;
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(NULL, &flows->others, spans[i]));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(NULL, &flows->changes, spans[i].begin));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(NULL, &flows->changes, spans[i].end));
  }
  if (flows->others.count == 0) return NULL;
  MP_RETURN_IF_ERROR(mp_flows_share_yield(&flows->share));
  qsort(flows->others.items, flows->others.count, sizeof(*flows->others.items),
        flows_compare_spans);
  qsort(flows->changes.items, flows->changes.count, sizeof(*flows->changes.items),
        flows_compare_times);
  return NULL;
}

// Sets the bandwidths of the links that others use to what they leave now. A link that is full has
// next to nothing left, not nothing: a transfer that waits for it ends.
static void flows_set_bandwidths(mp_flows_t *flows) {
  static const double least = 1e-9;
  const mp_flows_spans_t *others = &flows->others;
  uint32_t end = flows->first_other;
  for (; end < others->count && others->items[end].begin <= flows->now; ++end) {
    for (uint32_t u = 0; u < others->items[end].num_uses; ++u) {
      const uint32_t link = others->items[end].uses[u].link;
      flows->share.bandwidths[link] = mp_network_link(flows->network, link)->bandwidth;
    }
  }
  for (uint32_t i = flows->first_other; i < end; ++i) {
    const mp_flows_span_t *span = &others->items[i];
    if (span->end <= flows->now) continue;
    for (uint32_t u = 0; u < span->num_uses; ++u) {
      const uint32_t link = span->uses[u].link;
      const double bandwidth = mp_network_link(flows->network, link)->bandwidth;
      const double left = flows->share.bandwidths[link] - span->rate * span->uses[u].times;
      flows->share.bandwidths[link] = fmax(left, least * bandwidth);
    }
  }
  while (flows->first_other < end && others->items[flows->first_other].end <= flows->now) {
    ++flows->first_other;
  }
}

// When others leave more or less next, as things stand; INFINITY: no more.
static double flows_next_change(mp_flows_t *flows) {
  while (flows->next_change < flows->changes.count &&
         flows->changes.items[flows->next_change] <= flows->now) {
    ++flows->next_change;
  }
  return flows->next_change < flows->changes.count ? flows->changes.items[flows->next_change]
                                                   : INFINITY;
}

// ---- Rates ----

uint32_t mp_flows_count(const mp_flows_t *flows) {
  return flows->active.count + flows->ended.count - flows->first_ended;
}

// Gives every transfer whose bytes flow its rate from now on. What keeps its rate keeps its end, to
// the bit.
static void flows_set_rates(mp_flows_t *flows) {
  flows->users.count = 0;
  if (flows->others.count != 0) flows_set_bandwidths(flows);
  for (uint32_t i = 0; i < flows->active.count; ++i) {
    flow_t *flow = &flows->active.items[i];
    MP_ASSERT(flows->users.count < flows->users.capacity);  // starting a transfer makes room
    if (flow->is_flowing) flows->users.items[flows->users.count++] = &flow->user;
  }
  if (flows->others.count != 0) {
    mp_flows_share_compute(&flows->share, flows->users.count, flows->users.items);
  } else {
    mp_flows_share_recall(&flows->share, flows->users.count, flows->users.items);
  }
  for (uint32_t i = 0; i < flows->active.count; ++i) {
    flow_t *flow = &flows->active.items[i];
    if (!flow->is_flowing || flow->user.rate == flow->user.previous_rate) continue;
    MP_ASSERT(flow->user.rate > 0 && flow->since <= flows->now);
    flows_log(flows, flow);
    flow->bytes -= flow->user.previous_rate * (flows->now - flow->since);
    if (flow->bytes < 0) flow->bytes = 0;
    flow->since = flows->now;
    flow->next = flows->now + flow->bytes / flow->user.rate;
    flow->user.previous_rate = flow->user.rate;
  }
}

static void flows_refresh(mp_flows_t *flows) {
  if (!flows->is_stale) return;
  flows->is_stale = false;
  flows_set_rates(flows);
  flows->earliest = INFINITY;
  for (uint32_t i = 0; i < flows->active.count; ++i) {
    flows->earliest = fmin(flows->earliest, flows->active.items[i].next);
  }
  if (flows->active.count != 0) flows->earliest = fmin(flows->earliest, flows_next_change(flows));
}

static double flows_earliest(mp_flows_t *flows) {
  flows_refresh(flows);
  return flows->earliest;
}

// Lets everything happen that happens at `time`, which is the earliest change: transfers that have
// ended are moved to the ended ones, in the order of their starts.
static void flows_step(mp_flows_t *flows, double time) {
  MP_ASSERT(time >= flows->now && time < INFINITY);
  uint32_t kept = 0;
  flows->now = time;
  flows->is_stale = true;
  for (uint32_t i = 0; i < flows->active.count; ++i) {
    flow_t *flow = &flows->active.items[i];
    bool has_ended = false;
    if (flow->next <= time) {
      has_ended = flow->is_flowing || flow->bytes == 0 || flow->user.num_uses == 0;
      flows_log(flows, flow);
      flow->is_flowing = true;
      flow->since = time;
      flow->next = INFINITY;
    }
    if (has_ended) {
      MP_ASSERT(flows->ended.count < flows->ended.capacity);  // starting a transfer makes room
      MP_ASSERT(flows->num_uses >= flow->user.num_uses);
      flows->ended.items[flows->ended.count++] = (flows_end_t){time, flow->tag};
      flows->num_uses -= flow->user.num_uses;
    } else {
      if (kept != i) flows->active.items[kept] = *flow;
      ++kept;
    }
  }
  flows->active.count = kept;
}

// Lets everything happen that happens before `now`.
static void flows_advance(mp_flows_t *flows, double now) {
  while (flows_earliest(flows) < now) flows_step(flows, flows->earliest);
  if (flows->now < now) flows->now = now;
}

mp_status_t mp_flows_start(mp_flows_t *flows, const mp_transfer_t *transfer, double now,
                           uint64_t tag) {
  MP_ASSERT(transfer->bytes >= 0 && transfer->latency >= 0);
  flows_advance(flows, now);
  if (flows->first_ended == flows->ended.count) flows->first_ended = flows->ended.count = 0;
  const uint32_t count = flows->active.count + 1;
  MP_RETURN_IF_ERROR(MP_ARRAY_RESERVE(NULL, &flows->ended, count));
  flows->users.count = 0;
  MP_RETURN_IF_ERROR(MP_ARRAY_RESERVE(NULL, &flows->users, count));
  const size_t num_uses = flows->num_uses + transfer->num_uses;
  MP_RETURN_IF_ERROR(mp_flows_share_reserve(&flows->share, num_uses));
  MP_RETURN_IF_ERROR(
      MP_ARRAY_PUSH(NULL, &flows->active,
                    (flow_t){
                        .tag = tag,
                        .bytes = transfer->bytes,
                        .next = flows->now + transfer->latency,
                        .user = {.uses = transfer->uses, .num_uses = transfer->num_uses},
                    }));
  flows->num_uses = num_uses;
  flows->earliest = fmin(flows->earliest, flows->now + transfer->latency);
  return NULL;
}

bool mp_flows_next(mp_flows_t *flows, double *out_time) {
  if (flows->first_ended < flows->ended.count) {
    *out_time = flows->ended.items[flows->first_ended].time;
    return true;
  }
  const double next = flows_earliest(flows);
  if (next == INFINITY) return false;
  *out_time = next;
  return true;
}

bool mp_flows_finish(mp_flows_t *flows, double until, double *out_time, uint64_t *out_tag) {
  while (flows->first_ended == flows->ended.count) {
    const double next = flows_earliest(flows);
    if (next > until || next == INFINITY) return false;
    flows_step(flows, next);
  }
  const flows_end_t *end = &flows->ended.items[flows->first_ended];
  MP_ASSERT(end->time <= flows->now);
  if (end->time > until) return false;
  *out_time = end->time;
  *out_tag = end->tag;
  ++flows->first_ended;
  return true;
}

double mp_flows_rate(mp_flows_t *flows, uint64_t tag) {
  flows_refresh(flows);
  for (uint32_t i = 0; i < flows->active.count; ++i) {
    const flow_t *flow = &flows->active.items[i];
    if (flow->tag == tag) return flow->is_flowing ? flow->user.rate : 0;
  }
  return 0;
}

double mp_flows_link_rate(mp_flows_t *flows, uint32_t link) {
  flows_refresh(flows);
  double rate = 0;
  for (uint32_t i = 0; i < flows->active.count; ++i) {
    const flow_t *flow = &flows->active.items[i];
    if (!flow->is_flowing) continue;
    for (uint32_t u = 0; u < flow->user.num_uses; ++u) {
      if (flow->user.uses[u].link == link) rate += flow->user.rate * flow->user.uses[u].times;
    }
  }
  return rate;
}

// ---- Traffic by itself ----

// The same bits as in flows with this transfer alone.
static double flows_time_of_transfer(const mp_network_t *network, const mp_transfer_t *transfer,
                                     double start) {
  double rate = INFINITY;
  for (uint32_t i = 0; i < transfer->num_uses; ++i) {
    const double bandwidth = mp_network_link(network, transfer->uses[i].link)->bandwidth;
    const double share = mp_network_flow_rate(bandwidth, transfer->uses[i].times);
    if (share < rate) rate = share;
  }
  const double flowing = start + transfer->latency;
  return transfer->bytes == 0 ? flowing : flowing + transfer->bytes / rate;
}

double mp_flows_transfer_alone(const mp_network_t *network, const mp_transfer_t *transfer) {
  return flows_time_of_transfer(network, transfer, 0);
}

static mp_status_t flows_time_of_stage(const mp_network_t *network, const mp_stage_t *stage,
                                       double start, double *out_end) {
  if (stage->num_transfers == 1) {
    *out_end = flows_time_of_transfer(network, &stage->transfers[0], start);
    return NULL;
  }
  mp_flows_t *flows = NULL;
  MP_RETURN_IF_ERROR(mp_flows_create(network, &flows));
  mp_status_t status = NULL;
  for (uint32_t i = 0; i < stage->num_transfers && status == NULL; ++i) {
    status = mp_flows_start(flows, &stage->transfers[i], start, i);
  }
  double end = start;
  uint64_t tag;
  while (status == NULL && mp_flows_finish(flows, INFINITY, &end, &tag)) {
  }
  mp_flows_release(flows);
  if (status == NULL) *out_end = end;
  return status;
}

mp_status_t mp_flows_time_alone(const mp_network_t *network, const mp_traffic_t *traffic,
                                double *out_seconds) {
  double time = 0;
  for (uint32_t i = 0; i < traffic->num_stages; ++i) {
    MP_RETURN_IF_ERROR(flows_time_of_stage(network, &traffic->stages[i], time, &time));
  }
  *out_seconds = time;
  return NULL;
}
