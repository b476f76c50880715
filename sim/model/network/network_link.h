// A link, and what it costs: how long its bytes take, what each of several flows gets of it, and
// what a fault leaves of it. Estimates, flows, reports and tools all ask here.
//
// A link with `bandwidth` is busy for `bytes / bandwidth` seconds, for any sender. A message has
// the latencies of all its links first, in which nothing flows, and then moves at the least rate
// that one of them gives it (flows.h).
#ifndef MINIPOD_SIM_MODEL_NETWORK_NETWORK_LINK_H_
#define MINIPOD_SIM_MODEL_NETWORK_NETWORK_LINK_H_

#include <stdint.h>

typedef struct {
  const char *name;   // "slice 0 (1,2,0) +x", "host 3 up"
  uint32_t from, to;  // vertices
  double latency;     // seconds
  double bandwidth;   // bytes/s
} mp_network_link_t;

// What is different about a link.
typedef struct {
  uint32_t link;
  double bandwidth;  // the share that is left of it, above 0
  double latency;    // seconds more
} mp_network_change_t;

// For how many seconds these bytes keep the link busy.
static inline double mp_network_link_seconds(const mp_network_link_t *link, double bytes) {
  return bytes / link->bandwidth;
}

// The bytes per second of each of so many flows that share a bandwidth evenly.
static inline double mp_network_flow_rate(double bandwidth, double flows) {
  return bandwidth / flows;
}

// Adds a fault of a link to what is different about it: the share of the bandwidth that it leaves,
// the share of bytes that are lost, and seconds of latency. What is lost is sent again, and may be
// lost again: 1 + p + p^2 ... times the bytes.
static inline void mp_network_change_add(mp_network_change_t *change, double bandwidth, double loss,
                                         double latency) {
  change->bandwidth *= bandwidth * (1 - loss);
  change->latency += latency;
}

static inline void mp_network_link_apply(mp_network_link_t *link,
                                         const mp_network_change_t *change) {
  link->bandwidth *= change->bandwidth;
  link->latency += change->latency;
}

#endif  // MINIPOD_SIM_MODEL_NETWORK_NETWORK_LINK_H_
