// The collective combiner: collectives of a block with the same key become one, if none depends on
// another, up to a number of bytes. A pure function.
#ifndef MINIPOD_SIM_CHIP_SCHEDULE_COMBINE_H_
#define MINIPOD_SIM_CHIP_SCHEDULE_COMBINE_H_

#include "sim/chip/schedule/edges.h"

typedef struct {
  uint64_t key;  // nodes with the same key may be combined; 0: this one may not
  double bytes;  // of the results
} mp_combine_node_t;

// For each node the first node of its combined group, in `arena`; the node itself if it stays
// alone. The only error is that memory is short.
MP_NODISCARD mp_status_t mp_combine_find(mp_arena_t *arena, uint32_t num_nodes,
                                         const mp_combine_node_t *nodes, uint32_t num_edges,
                                         const mp_edge_t *edges, double most_bytes,
                                         const uint32_t **out_leaders);

#endif  // MINIPOD_SIM_CHIP_SCHEDULE_COMBINE_H_
