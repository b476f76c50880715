// Which collectives of a block a compiler makes one of: those of one kind and group that do not
// need each other, until all of them together have so many bytes. Depends on its arguments alone.
#ifndef MINIPOD_SIM_CHIP_SCHEDULE_COMBINE_H_
#define MINIPOD_SIM_CHIP_SCHEDULE_COMBINE_H_

#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"

typedef struct {
  uint32_t from, to;  // nodes: `to` begins when `from` is over
} mp_combine_edge_t;

typedef struct {
  uint64_t key;  // equal for those that may be combined; 0: none may
  double bytes;  // of its results
} mp_combine_node_t;

// For each node the first of those that it is combined with, or itself, in `arena`. The only error
// is that memory is short.
MP_NODISCARD mp_status_t mp_combine_find(mp_arena_t *arena, uint32_t num_nodes,
                                         const mp_combine_node_t *nodes, uint32_t num_edges,
                                         const mp_combine_edge_t *edges, double most_bytes,
                                         const uint32_t **out_leaders);

#endif  // MINIPOD_SIM_CHIP_SCHEDULE_COMBINE_H_
