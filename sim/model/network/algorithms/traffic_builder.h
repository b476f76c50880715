// Building traffic: algorithms name the flows of each transfer, and a builder makes of them what is
// wanted: stages of transfers, the time alone, or the list of single messages.
//
//   mp_builder_flow(builder, a, b, 1);            // for each flow
//   mp_builder_end_transfer(builder, bytes);      // for each size of flows in the stage
//   mp_builder_end_stage(builder);
//
// Flows whose latencies differ begin at different times, so that those of one size become a
// transfer for each latency.
//
// A builder remembers failure (memory): what follows does nothing, and mp_builder_status reports
// it.
#ifndef MINIPOD_SIM_MODEL_NETWORK_ALGORITHMS_TRAFFIC_BUILDER_H_
#define MINIPOD_SIM_MODEL_NETWORK_ALGORITHMS_TRAFFIC_BUILDER_H_

#include "sim/model/network/network_impl.h"

typedef enum {
  MP_BUILD_ESTIMATE,  // seconds
  MP_BUILD_TRAFFIC,   // stages
  MP_BUILD_SENDS,     // sends
} mp_builder_goal_t;

typedef struct {
  double latency, times;
  uint32_t first_link, num_links;  // in `links`
  int32_t source, target;
  bool is_far;  // from slice to slice
} mp_builder_flow_t;

// A transfer but for its bytes: how often these go over each link.
typedef struct {
  bool is_spread;  // its flows have latencies from the shortest to the longest
  int32_t source, target;
  double shortest, longest;
  uint32_t num_uses;
  const mp_network_use_t *uses;
} mp_builder_loads_t;

typedef MP_ARRAY(mp_builder_loads_t) mp_builder_record_t;

typedef struct {
  mp_network_t *network;
  mp_builder_goal_t goal;
  mp_arena_t *arena;  // of stages and sends
  mp_status_t status;

  // The open transfer. Flows whose links are known one by one, and loads of others: how often the
  // transfer's bytes go over a link (network->loads).
  MP_ARRAY(mp_builder_flow_t) flows;
  mp_network_route_t links;
  MP_ARRAY(uint32_t) touched;  // links with loads
  double shortest, longest;    // latencies of the flows that are only loads; shortest < 0: none
  uint32_t first_send;
  mp_builder_record_t *record;  // gets what transfers are made, in the network's arena; NULL: none
  // The open stage.
  MP_ARRAY(mp_transfer_t) transfers;
  MP_ARRAY(uint32_t) stage_touched;  // network->stage_seconds: how long links need for it
  double stage_longest, stage_seconds;
  uint32_t stage_steps, step;

  double start;   // seconds before the next stage (mp_builder_wait)
  bool is_piped;  // stages are one, each of whose parts waits for the latency of those before
  double piped;   // that latency
  double latest;  // latency of the open stage
  double seconds;
  MP_ARRAY(mp_stage_t) stages;
  MP_ARRAY(mp_network_send_t) sends;
} mp_builder_t;

void mp_builder_init(mp_builder_t *builder, mp_network_t *network, mp_builder_goal_t goal,
                     mp_arena_t *arena);
// Frees what is not in the arena, and clears what a failure has left in the network.
void mp_builder_deinit(mp_builder_t *builder);
// Gives the status to the caller.
MP_NODISCARD mp_status_t mp_builder_status(mp_builder_t *builder);
// Consumes a status that may be OK.
void mp_builder_fail(mp_builder_t *builder, mp_status_t status);

// The next stage begins so many seconds later: its transfers have them as latency. Not for sends.
void mp_builder_wait(mp_builder_t *builder, double seconds);
// Stages from here to the end of the pipe are one: of many pieces, each goes on to the next stage
// while others come behind it, so that latencies add up but bytes flow side by side. Sends stay as
// they are.
void mp_builder_begin_pipe(mp_builder_t *builder);
void mp_builder_end_pipe(mp_builder_t *builder);

// A flow of the open transfer between two devices; a flow from a device to itself is none. `times`
// is how often the transfer's bytes flow. Returns its latency (0 for sends).
double mp_builder_flow(mp_builder_t *builder, int32_t source, int32_t target, double times);
// Flows that are not named one by one: what they put on a link, and their shortest and longest
// latency. Not for sends.
void mp_builder_load(mp_builder_t *builder, uint32_t link, double times);
void mp_builder_latencies(mp_builder_t *builder, double shortest, double longest);

// Whether so many times the flows so far would be too many to be kept one by one.
bool mp_builder_counts_flows(const mp_builder_t *builder, uint32_t times);
// Makes loads of all flows so far.
void mp_builder_fold(mp_builder_t *builder);

// Each flow of the open transfer has so many bytes. No flows: there is no transfer.
void mp_builder_end_transfer(mp_builder_t *builder, double bytes);
// The same for a step that is repeated, each time with `bytes`, where all flows go at one rate.
// `latency` is that of all repetitions together.
void mp_builder_end_steps(mp_builder_t *builder, double bytes, uint32_t repeats, double latency);
// Makes the transfers of a record, each flow with so many bytes. Nothing else is in the open one.
void mp_builder_add_record(mp_builder_t *builder, const mp_builder_record_t *record, double bytes);
// The next stage waits for all transfers of this one. No transfers: there is no stage.
void mp_builder_end_stage(mp_builder_t *builder);

#endif  // MINIPOD_SIM_MODEL_NETWORK_ALGORITHMS_TRAFFIC_BUILDER_H_
