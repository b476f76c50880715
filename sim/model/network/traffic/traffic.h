// Traffic: what the devices of a collective send each other.
//
// A collective becomes stages one after the other, each of transfers that start together. The
// algorithm is chosen by the times that the candidates would take alone, unless options name one.
#ifndef MINIPOD_SIM_MODEL_NETWORK_TRAFFIC_TRAFFIC_H_
#define MINIPOD_SIM_MODEL_NETWORK_TRAFFIC_TRAFFIC_H_

#include "sim/model/network/network.h"

// What group `group` of a collective does. ids[logical number] is the global id of the device. The
// result is kept by content: equal collectives of equal groups give the same pointer. SEND_RECV is
// no group's: each of its messages is one of mp_network_message.
//
// What is sent is what the operands say (bytes on a device). Of RAGGED_ALL_TO_ALL, whose sizes are
// data, each member is taken to send an equal part of its operand to every member.
MP_NODISCARD mp_status_t mp_network_traffic(mp_network_t *network,
                                            const mp_collective_t *collective, uint32_t group,
                                            const int32_t *ids, const mp_traffic_t **out_traffic);

// Whether a round of a collective is messages of pairs; otherwise it is the traffic of groups.
bool mp_network_is_of_pairs(const mp_collective_t *collective);

typedef void (*mp_transfer_visitor_t)(void *context, const mp_transfer_t *transfer);

// Calls `visit` for each transfer of one round of a collective: all its groups, or all its
// messages, once. `ids` as of mp_network_traffic.
MP_NODISCARD mp_status_t mp_network_visit_round(mp_network_t *network,
                                                const mp_collective_t *collective,
                                                const int32_t *ids, mp_transfer_visitor_t visit,
                                                void *context);

// ---- For tests and comparisons with other simulators ----

typedef struct {
  mp_algorithm_t algorithm;
  uint32_t count;
  const mp_network_send_t *sends;  // [count]
} mp_network_sends_t;

// All messages of the algorithm that mp_network_traffic takes, repeated steps written out, in the
// order of steps. The array lies in `arena`.
MP_NODISCARD mp_status_t mp_network_expand(mp_network_t *network, mp_arena_t *arena,
                                           const mp_collective_t *collective, uint32_t group,
                                           const int32_t *ids, mp_network_sends_t *out_sends);

#endif  // MINIPOD_SIM_MODEL_NETWORK_TRAFFIC_TRAFFIC_H_
