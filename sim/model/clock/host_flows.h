// What the devices of a host share: its memory, and the switches on the way to it, carry so many
// bytes a second in one direction, for all devices together.
//
// Transfers of one device come one after the other; those of several devices that are under way at
// the same time share what the host carries max-min fair, and none is faster than its own link.
// Later transfers change the ends of those under way: a device that has used such an end before
// keeps it, and all others find the new one. So ends depend on the order of the log alone.
//
// Deterministic: equal calls give equal bits. Not thread-safe.
#ifndef MINIPOD_SIM_MODEL_CLOCK_HOST_FLOWS_H_
#define MINIPOD_SIM_MODEL_CLOCK_HOST_FLOWS_H_

#include <stdbool.h>

#include "sim/base/status.h"
#include "sim/chip/steps/moment.h"

typedef struct mp_host_flows_s mp_host_flows_t;

// A transfer, or several of a device that were ready at the same time.
typedef struct {
  uint32_t device;
  bool is_awaited;    // by the host
  uint64_t number;    // of its entry in the log: the newest one's
  mp_moment_t begin;  // when it is ready
  double latency;     // seconds that are left of it, in which nothing flows; spent first
  double bytes;       // that are left
  double rate;        // at which they flow alone, bytes per second, above 0
  mp_moment_t end;    // as things stand
} mp_host_flow_t;

// No transfers; all together get at most `bandwidth` bytes per second, above 0.
MP_NODISCARD mp_status_t mp_host_flows_create(double bandwidth, mp_host_flows_t **out_flows);
// NULL has no effect.
void mp_host_flows_release(mp_host_flows_t *flows);

// No transfer will be added that is ready before `now`, which never falls: what ended before is
// forgotten.
void mp_host_flows_advance(mp_host_flows_t *flows, mp_moment_t now);
// Adds a transfer with bytes, behind those of its device, and sets the ends of all.
MP_NODISCARD mp_status_t mp_host_flows_add(mp_host_flows_t *flows, const mp_host_flow_t *flow);
// What is under way or to come, in the order of adding. Valid until the next call.
const mp_host_flow_t *mp_host_flows_list(const mp_host_flows_t *flows, uint32_t *out_count);

#endif  // MINIPOD_SIM_MODEL_CLOCK_HOST_FLOWS_H_
