#include "sim/chip/schedule/edges.h"

#include "sim/base/assert.h"

// A counting sort. While it fills `nodes`, first[n + 1] is where the next neighbour of n goes.
mp_status_t mp_edges_sort(mp_arena_t *arena, uint32_t num_nodes, uint32_t num_edges,
                          const mp_edge_t *edges, bool is_back, mp_adjacency_t *out) {
  out->first = MP_ARENA_ARRAY(arena, uint32_t, (size_t)num_nodes + 2);
  out->nodes = MP_ARENA_ARRAY(arena, uint32_t, (size_t)num_edges + 1);
  MP_RETURN_IF_NULL(out->first);
  MP_RETURN_IF_NULL(out->nodes);
  for (uint32_t e = 0; e < num_edges; ++e) {
    MP_ASSERT(edges[e].from < num_nodes && edges[e].to < num_nodes);
    out->first[(is_back ? edges[e].to : edges[e].from) + 2] += 1;
  }
  for (uint32_t n = 0; n < num_nodes; ++n) out->first[n + 2] += out->first[n + 1];
  for (uint32_t e = 0; e < num_edges; ++e) {
    const uint32_t node = is_back ? edges[e].to : edges[e].from;
    out->nodes[out->first[node + 1]++] = is_back ? edges[e].from : edges[e].to;
  }
  return NULL;
}
