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

// One direction of the dependencies: the readers of node n, or its inputs, are [offsets[n],
// offsets[n + 1]) of `others`. `is_reached`: from the nodes of the current group.
typedef struct {
  uint32_t *offsets, *others;
  uint8_t *is_reached;  // [nodes]
} combine_way_t;

typedef struct {
  uint32_t num_nodes;
  const mp_combine_node_t *nodes;
  uint32_t *leaders;  // [nodes]
  uint32_t *next;     // [nodes] the next node of the group
  uint32_t *stack;    // [nodes]
  combine_way_t ways[2];
} combine_t;

static mp_status_t combine_make_way(const combine_t *c, mp_arena_t *scratch, uint32_t num_edges,
                                    const mp_combine_edge_t *edges, bool is_back,
                                    combine_way_t *way) {
  way->offsets = MP_ARENA_ARRAY(scratch, uint32_t, (size_t)c->num_nodes + 2);
  way->others = MP_ARENA_ARRAY(scratch, uint32_t, (size_t)num_edges + 1);
  way->is_reached = MP_ARENA_ARRAY(scratch, uint8_t, (size_t)c->num_nodes + 1);
  MP_RETURN_IF_NULL(way->offsets);
  MP_RETURN_IF_NULL(way->others);
  MP_RETURN_IF_NULL(way->is_reached);
  for (uint32_t e = 0; e < num_edges; ++e) {
    MP_ASSERT(edges[e].from < c->num_nodes && edges[e].to < c->num_nodes);
    way->offsets[(is_back ? edges[e].to : edges[e].from) + 2] += 1;
  }
  for (uint32_t n = 0; n < c->num_nodes; ++n) way->offsets[n + 2] += way->offsets[n + 1];
  for (uint32_t e = 0; e < num_edges; ++e) {
    const uint32_t node = is_back ? edges[e].to : edges[e].from;
    way->others[way->offsets[node + 1]++] = is_back ? edges[e].from : edges[e].to;
  }
  return NULL;
}

static mp_status_t combine_begin(combine_t *c, mp_arena_t *scratch, uint32_t num_edges,
                                 const mp_combine_edge_t *edges) {
  c->next = MP_ARENA_ARRAY(scratch, uint32_t, (size_t)c->num_nodes + 1);
  c->stack = MP_ARENA_ARRAY(scratch, uint32_t, (size_t)c->num_nodes + 1);
  MP_RETURN_IF_NULL(c->next);
  MP_RETURN_IF_NULL(c->stack);
  for (uint32_t n = 0; n < c->num_nodes; ++n) {
    c->leaders[n] = n;
    c->next[n] = COMBINE_NONE;
  }
  for (int back = 0; back < 2; ++back) {
    MP_RETURN_IF_ERROR(combine_make_way(c, scratch, num_edges, edges, back == 1, &c->ways[back]));
  }
  return NULL;
}

// Marks all nodes that are combined with one.
static void combine_enter(combine_t *c, combine_way_t *way, uint32_t node, uint32_t *depth) {
  for (uint32_t n = c->leaders[node]; n != COMBINE_NONE; n = c->next[n]) {
    if (way->is_reached[n]) continue;
    way->is_reached[n] = 1;
    c->stack[(*depth)++] = n;
  }
}

// Marks all nodes that depend on a node, or that it depends on.
static void combine_reach(combine_t *c, combine_way_t *way, uint32_t node) {
  uint32_t depth = 0;
  combine_enter(c, way, node, &depth);
  while (depth != 0) {
    const uint32_t from = c->stack[--depth];
    for (uint32_t i = way->offsets[from]; i < way->offsets[from + 1]; ++i) {
      if (!way->is_reached[way->others[i]]) combine_enter(c, way, way->others[i], &depth);
    }
  }
}

static void combine_reach_both(combine_t *c, uint32_t node) {
  for (int back = 0; back < 2; ++back) combine_reach(c, &c->ways[back], node);
}

// Combines later nodes with `first`.
static void combine_from(combine_t *c, uint32_t first, double most_bytes) {
  double bytes = c->nodes[first].bytes;
  uint32_t last = first, count = 1;
  bool is_reached = false;  // the nodes before and after `first` are marked
  for (uint32_t n = first + 1; n < c->num_nodes && count < COMBINE_MOST; ++n) {
    const mp_combine_node_t *node = &c->nodes[n];
    if (node->key != c->nodes[first].key || c->leaders[n] != n || c->next[n] != COMBINE_NONE) {
      continue;
    }
    if (bytes + node->bytes > most_bytes) continue;
    if (!is_reached) {
      for (int back = 0; back < 2; ++back) memset(c->ways[back].is_reached, 0, c->num_nodes);
      combine_reach_both(c, first);
      is_reached = true;
    }
    if (c->ways[0].is_reached[n] || c->ways[1].is_reached[n]) continue;
    c->leaders[n] = first;
    c->next[last] = n;
    last = n;
    count += 1;
    bytes += node->bytes;
    combine_reach_both(c, n);
  }
}

mp_status_t mp_combine_find(mp_arena_t *arena, uint32_t num_nodes, const mp_combine_node_t *nodes,
                            uint32_t num_edges, const mp_combine_edge_t *edges, double most_bytes,
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
