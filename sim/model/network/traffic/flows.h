// Flows: transfers under way share the links of a network max-min fair.
//
// All transfers' rates grow together from zero; when a link is full, those that use it keep the
// rate they have, and the others grow on ("progressive filling": Bertsekas and Gallager, Data
// Networks, 6.5.2). A transfer that uses a link `times` times fills it that many times as fast.
// Rates change when a transfer's latency is over and its bytes begin to flow, and when one ends.
//
// An event loop over them:
//
//   while (mp_flows_next(flows, &time)) {         // bytes begin to flow, or a transfer ends
//     while (mp_flows_finish(flows, time, &end, &tag)) ended(tag, end);  // may start others
//   }
//
// Deterministic: equal calls give equal bits. Not thread-safe.
#ifndef MINIPOD_SIM_MODEL_NETWORK_TRAFFIC_FLOWS_H_
#define MINIPOD_SIM_MODEL_NETWORK_TRAFFIC_FLOWS_H_

#include "sim/base/containers/array.h"
#include "sim/model/network/network.h"

typedef struct mp_flows_s mp_flows_t;

// Makes flows without transfers at time 0. The network must live as long.
MP_NODISCARD mp_status_t mp_flows_create(const mp_network_t *network, mp_flows_t **out_flows);
void mp_flows_release(mp_flows_t *flows);

// Starts a transfer at `now`, which is no earlier than any start, and any end that was taken out,
// before. Ends before `now` that were not taken out yet are kept. `tag` is the caller's. The uses
// must live, unchanged, as long as the flows.
MP_NODISCARD mp_status_t mp_flows_start(mp_flows_t *flows, const mp_transfer_t *transfer,
                                        double now, uint64_t tag);

// When something changes next, if nothing is started before: a transfer ends, or its bytes begin to
// flow (then mp_flows_finish finds nothing at this time, but has to be called to go on). False when
// no transfer is under way.
bool mp_flows_next(mp_flows_t *flows, double *out_time);

// Advances to `until` and takes out the first transfer that has ended by then, in the order of
// times, and of starts for equal ones. False when there is none.
bool mp_flows_finish(mp_flows_t *flows, double until, double *out_time, uint64_t *out_tag);

// ---- What others leave ----

// What has flowed from one moment to another: links at a constant rate.
typedef struct {
  const mp_network_use_t *uses;
  uint32_t num_uses;
  double rate, begin, end;
  uint64_t tag;  // of the transfer
} mp_flows_span_t;

typedef MP_ARRAY(mp_flows_span_t) mp_flows_spans_t;

typedef struct {
  mp_flows_spans_t spans;  // on the heap, the caller's
  bool is_short;           // of memory: some spans are missing
} mp_flows_log_t;

// From now on what flows is added to a log, which lives as long as the flows; each span when it
// ends.
void mp_flows_record(mp_flows_t *flows, mp_flows_log_t *log);
// Before the first transfer: links have only what these spans leave of them (copied; their uses
// live as long). Spans may begin before time 0.
MP_NODISCARD mp_status_t mp_flows_yield(mp_flows_t *flows, uint32_t count,
                                        const mp_flows_span_t *spans);

// How many transfers are under way.
uint32_t mp_flows_count(const mp_flows_t *flows);

// For tests: the rate in bytes per second that the first transfer with this tag has now; 0 if its
// latency is not over, or there is none.
double mp_flows_rate(mp_flows_t *flows, uint64_t tag);
// For tests: the bytes per second that go over a link now.
double mp_flows_link_rate(mp_flows_t *flows, uint32_t link);

// Seconds that a transfer, or traffic, takes when nothing else is under way.
double mp_flows_transfer_alone(const mp_network_t *network, const mp_transfer_t *transfer);
MP_NODISCARD mp_status_t mp_flows_time_alone(const mp_network_t *network,
                                             const mp_traffic_t *traffic, double *out_seconds);

#endif  // MINIPOD_SIM_MODEL_NETWORK_TRAFFIC_FLOWS_H_
