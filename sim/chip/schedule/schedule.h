// The order in which a block of a program is done, where collectives can go on beside work.
//
// A list scheduler from the end of the block to its beginning, as compilers have it that hide
// latencies: what waits for a collective stands where its result is first needed, what starts it
// early enough for all of it to go by in between. What waits for more of them comes later; where
// that is equal, things stay in the order in which they were given. Depends on its arguments alone.
#ifndef MINIPOD_SIM_CHIP_SCHEDULE_SCHEDULE_H_
#define MINIPOD_SIM_CHIP_SCHEDULE_SCHEDULE_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"

// Where async nodes go on: what is on one stream comes one after the other, or of collectives some
// at a time.
typedef enum {
  MP_SCHEDULE_COLLECTIVES,
  MP_SCHEDULE_TO_HOST,
  MP_SCHEDULE_FROM_HOST,
  MP_SCHEDULE_STREAMS,
} mp_schedule_stream_t;

// Something that is done as a whole. Nodes stand in an order in which they can be done.
typedef struct {
  double seconds;  // that it takes
  bool is_async;   // it takes them beside others, between its start and its end
  mp_schedule_stream_t stream;
  uint32_t num_inputs;
  const uint32_t *inputs;  // earlier nodes that have to be over before it begins
} mp_schedule_node_t;

typedef enum {
  MP_SCHEDULE_ALL,    // of a node that is not async
  MP_SCHEDULE_START,  // of one that is
  MP_SCHEDULE_DONE,
} mp_schedule_part_t;

typedef struct {
  uint32_t node;
  mp_schedule_part_t part;
} mp_schedule_slot_t;

typedef struct {
  uint32_t num_tracks;    // how many collectives go on at a time; the others wait
  uint32_t most_started;  // of these, at a time: what they make lies in memory from their start on
} mp_schedule_limits_t;

// Orders the nodes: [*out_count] slots, one of each node that is not async and two of the others,
// in `arena`. The only error is that memory is short.
MP_NODISCARD mp_status_t mp_schedule_order(mp_arena_t *arena, uint32_t num_nodes,
                                           const mp_schedule_node_t *nodes,
                                           const mp_schedule_limits_t *limits, uint32_t *out_count,
                                           const mp_schedule_slot_t **out_slots);

#endif  // MINIPOD_SIM_CHIP_SCHEDULE_SCHEDULE_H_
