// Dependencies between the units of a block.
#ifndef MINIPOD_SIM_CHIP_SCHEDULE_EDGES_H_
#define MINIPOD_SIM_CHIP_SCHEDULE_EDGES_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"

typedef struct {
  uint32_t from, to;  // nodes: `to` depends on `from`
} mp_edge_t;

// One direction of dependencies: the neighbours of node n are [first[n], first[n + 1]) of `nodes`,
// in the order of the edges.
typedef struct {
  uint32_t *first, *nodes;
} mp_adjacency_t;

// Finds for each node the nodes that depend on it; with `is_back` those that it depends on. In
// `arena`. The only error is that memory is short.
MP_NODISCARD mp_status_t mp_edges_sort(mp_arena_t *arena, uint32_t num_nodes, uint32_t num_edges,
                                       const mp_edge_t *edges, bool is_back, mp_adjacency_t *out);

#endif  // MINIPOD_SIM_CHIP_SCHEDULE_EDGES_H_
