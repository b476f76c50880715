// The network of a pod: its links as a graph, and the routes of messages through it.
//
// Vertices are chips, hosts, switches and the core of the network between hosts; links are
// directed. The devices of a chip share the chip's links. A message from device to device goes
// through the links of their slice (dimension by dimension on grids), or, from slice to slice, over
// the hosts of both.
//
// A collective becomes traffic: stages one after the other, each of transfers that start together.
// traffic/traffic.h computes them, and traffic/flows.h how fast they are.
//
// Times are in seconds, amounts in bytes, both doubles; sums are taken in a fixed order, so that
// equal pods and collectives give the same bits in every run, process and build. Nothing here
// depends on the machine. A network belongs to one thread at a time, because it keeps what it has
// computed; all that it returns lives as long as it does.
#ifndef MINIPOD_SIM_MODEL_NETWORK_NETWORK_H_
#define MINIPOD_SIM_MODEL_NETWORK_NETWORK_H_

#include <stdbool.h>
#include <stdint.h>

#include "collectives/collective.h"
#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/base/str.h"
#include "sim/model/network/network_link.h"
#include "topology/pod.h"

typedef struct mp_network_s mp_network_t;

// ---- Algorithms ----

// Enum name, name for users. The order is that of preference: of candidates whose times are within
// 5 % of the best one's, the first is taken.
//   dimension_ring: two-way rings along one dimension after the other (in dimensions that do not
//     wrap around, the way back goes over the line itself); multiport: in as many parts as there
//     are dimensions, each beginning with another one, so that all links are busy
//   bidirectional_ring: half of the bytes each way round
//   hierarchical: in slices, between them, in slices
//   switch_sum: the switch adds up what it gets, and sends sums to all
//   halving_doubling: partners at distances 1, 2, 4, ...
//   tree: binomial
// direct: all to all at once
#define MP_ALGORITHMS(X)                                  \
  X(AUTO, "auto")                                         \
  X(MULTIPORT_DIMENSION_RING, "multiport_dimension_ring") \
  X(DIMENSION_RING, "dimension_ring")                     \
  X(BIDIRECTIONAL_RING, "bidirectional_ring")             \
  X(RING, "ring")                                         \
  X(HIERARCHICAL, "hierarchical")                         \
  X(SWITCH_SUM, "switch_sum")                             \
  X(HALVING_DOUBLING, "halving_doubling")                 \
  X(TREE, "tree")                                         \
  X(DIRECT, "direct")

typedef enum {
#define MP_ALGORITHM_ENUM(name, text) MP_ALGORITHM_##name,
  MP_ALGORITHMS(MP_ALGORITHM_ENUM)
#undef MP_ALGORITHM_ENUM
      MP_ALGORITHM_COUNT
} mp_algorithm_t;

const char *mp_algorithm_name(mp_algorithm_t algorithm);

// All zero: the defaults.
typedef struct {
  // By kind of collective. One that cannot be used for a group (dimension_ring where the group is
  // no box of the grid, hierarchical within one slice) leaves the choice to the rule.
  mp_algorithm_t algorithms[MP_COLLECTIVE_KINDS];
} mp_network_options_t;

// ---- The graph ----

// Makes the network of a pod, which it retains. `options` may be NULL. What the description leaves
// open (latencies and bandwidths of 0) takes the values of network_defaults.h; where it names a
// chip, links in slices have the share of their bandwidth that arrives (topology/figures).
MP_NODISCARD mp_status_t mp_network_create(mp_pod_t *pod, const mp_network_options_t *options,
                                           mp_network_t **out_network);
void mp_network_release(mp_network_t *network);

// The same network with other figures for some links. Messages go the same ways and collectives
// have the same algorithms, as without the changes. `network` is borrowed, and the same thread uses
// both.
MP_NODISCARD mp_status_t mp_network_create_changed(mp_network_t *network, uint32_t num_changes,
                                                   const mp_network_change_t *changes,
                                                   mp_network_t **out_network);
// The link with this name; false: there is none.
bool mp_network_find_link(const mp_network_t *network, const char *name, uint32_t *out_link);

const mp_pod_t *mp_network_pod(const mp_network_t *network);
uint32_t mp_network_num_links(const mp_network_t *network);
const mp_network_link_t *mp_network_link(const mp_network_t *network, uint32_t link);
uint32_t mp_network_num_vertices(const mp_network_t *network);

// A place that messages come from and go to.
typedef struct {
  bool is_host;
  int32_t index;  // global id of the device, or number of the described host
} mp_network_end_t;

static inline mp_network_end_t mp_network_device(int32_t id) {
  return (mp_network_end_t){.is_host = false, .index = id};
}
static inline mp_network_end_t mp_network_host(int32_t index) {
  return (mp_network_end_t){.is_host = true, .index = index};
}

// ---- Traffic ----

// How many times a transfer's bytes go over a link: 1 for one flow, n when n flows of the transfer
// do, each at the transfer's rate.
typedef struct {
  uint32_t link;
  double times;
} mp_network_use_t;

// Bytes that move at one rate: one flow, or all equal flows of a step of an algorithm that begin at
// one time (so that a step whose ways differ in length is several transfers). A step that is
// repeated k times is one transfer of k times the bytes.
typedef struct {
  int32_t source, target;  // global device ids; -1: several, or a host
  double latency;          // seconds in all during which nothing flows; spent first
  double bytes;            // of one flow
  uint32_t num_uses;       // 0: nothing is shared, and the bytes take no time
  const mp_network_use_t *uses;
} mp_transfer_t;

// Adds what the transfer puts on each link to `bytes`, [links of the network].
static inline void mp_transfer_add_bytes(const mp_transfer_t *transfer, double *bytes) {
  for (uint32_t i = 0; i < transfer->num_uses; ++i) {
    bytes[transfer->uses[i].link] += transfer->bytes * transfer->uses[i].times;
  }
}

// Transfers that start together; the stage ends when the last one does.
typedef struct {
  uint32_t num_transfers;
  const mp_transfer_t *transfers;
} mp_stage_t;

typedef struct {
  mp_algorithm_t algorithm;
  uint32_t num_stages;  // one after the other; 0: nothing is sent
  const mp_stage_t *stages;
  double alone;  // seconds that it takes when nothing else is under way
} mp_traffic_t;

// One message: device to device, host to device, device to host, host to host. From an end to
// itself it uses no link and takes no time.
MP_NODISCARD mp_status_t mp_network_message(mp_network_t *network, mp_network_end_t from,
                                            mp_network_end_t to, double bytes,
                                            mp_transfer_t *out_transfer);

// One message of an algorithm, as single devices send them.
typedef struct {
  uint32_t step;           // messages of one step start together, and the next step waits for them
  int32_t source, target;  // global device ids
  double bytes;
} mp_network_send_t;

#endif  // MINIPOD_SIM_MODEL_NETWORK_NETWORK_H_
