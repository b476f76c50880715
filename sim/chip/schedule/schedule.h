// The latency-hiding scheduler: orders a block so that collectives overlap with compute.
//
// A list scheduler from the end of the block to its beginning. The end of a collective is placed
// just before the first reader of its result, its start early enough to hide all of it. Nodes that
// wait for more seconds of collectives come later; ties keep the given order. A pure function.
#ifndef MINIPOD_SIM_CHIP_SCHEDULE_SCHEDULE_H_
#define MINIPOD_SIM_CHIP_SCHEDULE_SCHEDULE_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"

// The stream of an async node. Nodes of a stream run one after the other, collectives on several
// tracks.
typedef enum {
  MP_SCHEDULE_COLLECTIVES,
  MP_SCHEDULE_TO_HOST,
  MP_SCHEDULE_FROM_HOST,
  MP_SCHEDULE_STREAMS,
} mp_schedule_stream_t;

// A unit of the schedule. Nodes are in topological order.
typedef struct {
  double seconds;
  bool is_async;  // other nodes may run between its start and its end
  mp_schedule_stream_t stream;
  uint32_t num_inputs;
  const uint32_t *inputs;  // earlier nodes that it depends on
} mp_schedule_node_t;

typedef enum {
  MP_SCHEDULE_ALL,    // a node that is not async
  MP_SCHEDULE_START,  // of an async node
  MP_SCHEDULE_DONE,
} mp_schedule_part_t;

typedef struct {
  uint32_t node;
  mp_schedule_part_t part;
} mp_schedule_slot_t;

typedef struct {
  uint32_t num_tracks;    // how many collectives run at a time
  uint32_t most_started;  // how many are started at a time: each has its results in memory
} mp_schedule_limits_t;

// Orders the nodes: [*out_count] slots, two per async node and one per other node, in `arena`. The
// only error is that memory is short.
MP_NODISCARD mp_status_t mp_schedule_order(mp_arena_t *arena, uint32_t num_nodes,
                                           const mp_schedule_node_t *nodes,
                                           const mp_schedule_limits_t *limits, uint32_t *out_count,
                                           const mp_schedule_slot_t **out_slots);

#endif  // MINIPOD_SIM_CHIP_SCHEDULE_SCHEDULE_H_
