// Building traffic: algorithms name the flows of each transfer, and a builder makes of them what is
// wanted: stages of transfers, the time alone, or the list of single messages.
//
//   mp_builder_flow(builder, a, b, 1);            // for each flow
//   mp_builder_end_transfer(builder, bytes, 1);   // for each transfer of the stage
//   mp_builder_end_stage(builder);
//
// A builder remembers failure (memory): what follows does nothing, and mp_builder_status reports
// it.
#ifndef MINIPOD_SIM_MODEL_NETWORK_TRAFFIC_BUILDER_H_
#define MINIPOD_SIM_MODEL_NETWORK_TRAFFIC_BUILDER_H_

#include "sim/model/network/network_internal.h"

typedef enum {
  MP_BUILD_ESTIMATE,  // seconds
  MP_BUILD_TRAFFIC,   // stages
  MP_BUILD_SENDS,     // sends
} mp_builder_goal_t;

typedef struct {
  mp_network_t *network;
  mp_builder_goal_t goal;
  mp_arena_t *arena;  // of stages and sends
  mp_status_t status;

  // The open transfer. network->loads says how often its bytes go over a link.
  MP_ARRAY(uint32_t) touched;  // links, in the order of their first flows
  double latency;              // the longest of its flows
  uint32_t num_flows;
  int32_t source, target;  // of the last flow
  // The open stage.
  MP_ARRAY(mp_transfer_t) transfers;
  MP_ARRAY(uint32_t) stage_touched;  // network->stage_seconds: how long a link needs for it
  double stage_latency;
  uint32_t stage_steps;

  double seconds;
  MP_ARRAY(mp_stage_t) stages;
  MP_ARRAY(mp_network_send_t) sends;
  uint32_t first_send;  // of the open transfer
  uint32_t step;        // of the open stage
  mp_network_route_t route;
} mp_builder_t;

void mp_builder_init(mp_builder_t *builder, mp_network_t *network, mp_builder_goal_t goal,
                     mp_arena_t *arena);
// Frees what is not in the arena, and clears what a failure has left in the network.
void mp_builder_deinit(mp_builder_t *builder);
// Gives the status to the caller.
MP_NODISCARD mp_status_t mp_builder_status(mp_builder_t *builder);
// Consumes a status that may be OK.
void mp_builder_fail(mp_builder_t *builder, mp_status_t status);

// A flow of the open transfer between two devices; a flow from a device to itself is none. `times`
// is how often the transfer's bytes flow.
void mp_builder_flow(mp_builder_t *builder, int32_t source, int32_t target, double times);
// Flows that are not named one by one: a link's share of them, and the longest latency. Not for
// sends.
void mp_builder_load(mp_builder_t *builder, uint32_t link, double times);
void mp_builder_latency(mp_builder_t *builder, double latency);

// The open transfer is done `repeats` times, with `bytes` each time. No flows: there is none.
void mp_builder_end_transfer(mp_builder_t *builder, double bytes, uint32_t repeats);
// The next stage waits for all transfers of this one. No transfers: there is none.
void mp_builder_end_stage(mp_builder_t *builder);

#endif  // MINIPOD_SIM_MODEL_NETWORK_TRAFFIC_BUILDER_H_
