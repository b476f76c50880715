// Greedy, in the order of the nodes: each node that is not combined yet takes later nodes, while
// they fit and neither depends on the other, directly or through other nodes, combined ones
// included.
#include "sim/chip/schedule/combine.h"

#include <stdbool.h>
#include <string.h>

#include "sim/base/assert.h"

#define COMBINE_NONE UINT32_MAX

// The most collectives in a group: libtpu combines 300 into two, and XLA for GPUs passes the same
// limit to its combiners.
enum { COMBINE_MOST = 256 };

typedef struct {
  uint32_t num_nodes;
  const mp_combine_node_t *nodes;
  uint32_t *leaders;  // [nodes]
  uint32_t *next;     // [nodes] the next node of the group
  uint32_t *stack;    // [nodes]
  // The readers of nodes, and their inputs; which of them are reached from the current group.
  mp_adjacency_t ways[2];
  uint8_t *is_reached[2];  // [nodes]
} combine_t;

static mp_status_t combine_begin(combine_t *c, mp_arena_t *scratch, uint32_t num_edges,
                                 const mp_edge_t *edges) {
  c->next = MP_ARENA_ARRAY(scratch, uint32_t, (size_t)c->num_nodes + 1);
  c->stack = MP_ARENA_ARRAY(scratch, uint32_t, (size_t)c->num_nodes + 1);
  MP_RETURN_IF_NULL(c->next);
  MP_RETURN_IF_NULL(c->stack);
  for (uint32_t n = 0; n < c->num_nodes; ++n) {
    c->leaders[n] = n;
    c->next[n] = COMBINE_NONE;
  }
  for (int back = 0; back < 2; ++back) {
    MP_RETURN_IF_ERROR(
        mp_edges_sort(scratch, c->num_nodes, num_edges, edges, back == 1, &c->ways[back]));
    c->is_reached[back] = MP_ARENA_ARRAY(scratch, uint8_t, (size_t)c->num_nodes + 1);
    MP_RETURN_IF_NULL(c->is_reached[back]);
  }
  return NULL;
}

// Marks all nodes that are combined with one.
static void combine_enter(combine_t *c, int back, uint32_t node, uint32_t *depth) {
  if (c->is_reached[back][node]) return;
  for (uint32_t n = c->leaders[node]; n != COMBINE_NONE; n = c->next[n]) {
    c->is_reached[back][n] = 1;
    c->stack[(*depth)++] = n;
  }
}

// Marks all nodes that depend on a node, and those that it depends on.
static void combine_reach(combine_t *c, uint32_t node) {
  for (int back = 0; back < 2; ++back) {
    const mp_adjacency_t *way = &c->ways[back];
    uint32_t depth = 0;
    combine_enter(c, back, node, &depth);
    while (depth != 0) {
      const uint32_t from = c->stack[--depth];
      for (uint32_t i = way->first[from]; i < way->first[from + 1]; ++i) {
        combine_enter(c, back, way->nodes[i], &depth);
      }
    }
  }
}

// Combines later nodes with `first`.
static void combine_from(combine_t *c, uint32_t first, double most_bytes) {
  double bytes = c->nodes[first].bytes;
  uint32_t last = first, count = 1;
  bool is_reached = false;  // the nodes before and after `first` are marked
  for (uint32_t n = first + 1; n < c->num_nodes && count < COMBINE_MOST; ++n) {
    const mp_combine_node_t *node = &c->nodes[n];
    if (node->key != c->nodes[first].key || c->leaders[n] != n) continue;
    if (bytes + node->bytes > most_bytes) continue;
    if (!is_reached) {
      for (int back = 0; back < 2; ++back) memset(c->is_reached[back], 0, c->num_nodes);
      combine_reach(c, first);
      is_reached = true;
    }
    if (c->is_reached[0][n] || c->is_reached[1][n]) continue;
    c->leaders[n] = first;
    c->next[last] = n;
    last = n;
    count += 1;
    bytes += node->bytes;
    combine_reach(c, n);
  }
}

mp_status_t mp_combine_find(mp_arena_t *arena, uint32_t num_nodes, const mp_combine_node_t *nodes,
                            uint32_t num_edges, const mp_edge_t *edges, double most_bytes,
                            const uint32_t **out_leaders) {
  combine_t c = {.num_nodes = num_nodes, .nodes = nodes};
  mp_arena_t *scratch = NULL;
  c.leaders = MP_ARENA_ARRAY(arena, uint32_t, (size_t)num_nodes + 1);
  MP_RETURN_IF_NULL(c.leaders);
  MP_RETURN_IF_ERROR(mp_arena_create(&scratch));
  mp_status_t status = combine_begin(&c, scratch, num_edges, edges);
  for (uint32_t n = 0; n < num_nodes && status == NULL; ++n) {
    if (nodes[n].key != 0 && c.leaders[n] == n) combine_from(&c, n, most_bytes);
  }
  mp_arena_release(scratch);
  *out_leaders = c.leaders;
  return status;
}
