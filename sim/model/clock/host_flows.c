#include "sim/model/clock/host_flows.h"

#include <math.h>

#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/containers/array.h"

// What a flow that is the first of its device does next.
typedef enum { STATE_BEHIND, STATE_READY_LATER, STATE_LATENCY, STATE_FLOWING } state_t;

// A flow while time goes on, in seconds since `now`.
typedef struct {
  uint32_t device;
  state_t state;
  bool is_over;
  double begin, latency, bytes, most;
  double rate;  // for now; while flowing
  double need;  // seconds until its state changes, if nothing else happens
  double end;
} moving_t;

struct mp_host_flows_s {
  double bandwidth;
  mp_moment_t now;
  MP_ARRAY(mp_host_flow_t) flows;
  MP_ARRAY(moving_t) moving;  // a copy of `flows` on which time goes on
};

mp_status_t mp_host_flows_create(double bandwidth, mp_host_flows_t **out_flows) {
  MP_ASSERT(bandwidth > 0);
  mp_host_flows_t *flows = mp_calloc(1, sizeof(*flows));
  MP_RETURN_IF_NULL(flows);
  flows->bandwidth = bandwidth;
  *out_flows = flows;
  return NULL;
}

void mp_host_flows_release(mp_host_flows_t *flows) {
  if (flows == NULL) return;
  MP_ARRAY_FREE(&flows->flows);
  MP_ARRAY_FREE(&flows->moving);
  mp_free(flows);
}

const mp_host_flow_t *mp_host_flows_list(const mp_host_flows_t *flows, uint32_t *out_count) {
  *out_count = flows->flows.count;
  return flows->flows.items;
}

// ---- Time goes on ----

static void host_flows_set_moving(mp_host_flows_t *flows) {
  for (uint32_t i = 0; i < flows->flows.count; ++i) {
    const mp_host_flow_t *flow = &flows->flows.items[i];
    const bool is_ready = flow->begin <= flows->now;
    flows->moving.items[i] = (moving_t){
        .device = flow->device,
        .begin = is_ready ? 0 : mp_moment_seconds(flow->begin - flows->now),
        .latency = flow->latency,
        .bytes = flow->bytes,
        .most = flow->rate,
    };
  }
}

static bool host_flows_is_first(const mp_host_flows_t *flows, uint32_t index) {
  const moving_t *moving = flows->moving.items;
  for (uint32_t i = 0; i < index; ++i) {
    if (!moving[i].is_over && moving[i].device == moving[index].device) return false;
  }
  return true;
}

static uint32_t host_flows_set_states(mp_host_flows_t *flows, double time) {
  uint32_t num_flowing = 0;
  for (uint32_t i = 0; i < flows->flows.count; ++i) {
    moving_t *m = &flows->moving.items[i];
    m->state = STATE_BEHIND;
    m->need = INFINITY;
    m->rate = 0;
    if (m->is_over || !host_flows_is_first(flows, i)) continue;
    if (m->begin > time) {
      m->state = STATE_READY_LATER;
      m->need = m->begin - time;
    } else if (m->latency > 0) {
      m->state = STATE_LATENCY;
      m->need = m->latency;
    } else {
      m->state = STATE_FLOWING;
      num_flowing += 1;
    }
  }
  return num_flowing;
}

// Those that can have no more than an even part keep what they can have; the others share the rest.
static void host_flows_set_rates(mp_host_flows_t *flows, uint32_t num_flowing) {
  double left = flows->bandwidth;
  uint32_t num_left = num_flowing, decided = 1;
  while (num_left != 0 && decided != 0) {
    const double even = left / num_left;
    decided = 0;
    for (uint32_t i = 0; i < flows->flows.count; ++i) {
      moving_t *m = &flows->moving.items[i];
      if (m->state != STATE_FLOWING || m->rate != 0 || m->most > even) continue;
      m->rate = m->most;
      left -= m->rate;
      decided += 1;
    }
    num_left -= decided;
  }
  for (uint32_t i = 0; i < flows->flows.count; ++i) {
    moving_t *m = &flows->moving.items[i];
    if (m->state != STATE_FLOWING) continue;
    if (m->rate == 0) m->rate = left / num_left;
    MP_ASSERT(m->rate > 0 && m->rate <= flows->bandwidth);
    m->need = m->bytes / m->rate;
  }
}

// Lets `seconds` pass, in which no state changes but at the end.
static void host_flows_pass(moving_t *m, double time, double seconds) {
  MP_ASSERT(seconds >= 0);
  const bool is_done = m->need <= seconds;
  switch (m->state) {
    case STATE_BEHIND:
      break;
    case STATE_READY_LATER:
      if (is_done) m->begin = 0;
      break;
    case STATE_LATENCY:
      m->latency = is_done ? 0 : m->latency - seconds;
      break;
    case STATE_FLOWING:
      m->bytes = is_done ? 0 : m->bytes - m->rate * seconds;
      m->is_over = is_done;
      m->end = time + seconds;
      break;
  }
}

// Lets everything happen that happens within so many seconds from `now`.
static void host_flows_run(mp_host_flows_t *flows, double horizon) {
  host_flows_set_moving(flows);
  for (double time = 0; time < horizon;) {
    host_flows_set_rates(flows, host_flows_set_states(flows, time));
    double seconds = horizon - time;
    for (uint32_t i = 0; i < flows->flows.count; ++i) {
      seconds = fmin(seconds, flows->moving.items[i].need);
    }
    if (seconds == INFINITY) return;  // all are over
    for (uint32_t i = 0; i < flows->flows.count; ++i) {
      host_flows_pass(&flows->moving.items[i], time, seconds);
    }
    time += seconds;
  }
}

void mp_host_flows_advance(mp_host_flows_t *flows, mp_moment_t now) {
  if (now <= flows->now) return;
  host_flows_run(flows, mp_moment_seconds(now - flows->now));
  uint32_t kept = 0;
  for (uint32_t i = 0; i < flows->flows.count; ++i) {
    const moving_t *m = &flows->moving.items[i];
    if (m->is_over) continue;
    mp_host_flow_t *flow = &flows->flows.items[kept++];
    *flow = flows->flows.items[i];
    flow->latency = m->latency;
    flow->bytes = m->bytes;
  }
  MP_ASSERT(kept <= flows->flows.count);
  flows->flows.count = kept;
  flows->now = now;
}

// ---- More transfers ----

// The last flow of the device, if what is ready at `begin` can be one with it.
static mp_host_flow_t *host_flows_find_alike(mp_host_flows_t *flows, const mp_host_flow_t *flow) {
  for (uint32_t i = flows->flows.count; i-- > 0;) {
    mp_host_flow_t *last = &flows->flows.items[i];
    if (last->device != flow->device) continue;
    const mp_moment_t begin = last->begin > flows->now ? last->begin : flows->now;
    return flow->begin <= begin && flow->is_awaited == last->is_awaited ? last : NULL;
  }
  return NULL;
}

static void host_flows_join(mp_host_flow_t *flow, const mp_host_flow_t *more) {
  if (flow->rate != more->rate) {
    const double seconds = flow->bytes / flow->rate + more->bytes / more->rate;
    flow->rate = (flow->bytes + more->bytes) / seconds;
  }
  flow->latency += more->latency;
  flow->bytes += more->bytes;
  flow->number = more->number;
}

mp_status_t mp_host_flows_add(mp_host_flows_t *flows, const mp_host_flow_t *flow) {
  MP_ASSERT(flow->bytes > 0 && flow->rate > 0);
  const uint32_t count = flows->flows.count + 1;
  flows->moving.count = 0;
  MP_RETURN_IF_ERROR(MP_ARRAY_RESERVE(NULL, &flows->moving, count));
  mp_host_flow_t *alike = host_flows_find_alike(flows, flow);
  if (alike != NULL) {
    host_flows_join(alike, flow);
  } else {
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(NULL, &flows->flows, *flow));
  }
  host_flows_run(flows, INFINITY);
  for (uint32_t i = 0; i < flows->flows.count; ++i) {
    flows->flows.items[i].end = flows->now + mp_moment_of(flows->moving.items[i].end);
  }
  return NULL;
}
