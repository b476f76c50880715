// Chooses the ops that become one. A group takes the place of its last member, so no op outside of
// it may use one of its results before that. Then all its operands exist, and the order of all
// other ops can stay: no cycle can arise.
//
// Members join the group of their users, from the last one to the first.
#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"
#include "sim/fuse/fuse_graph.h"
#include "sim/kernels/fused/tile/view.h"

// The most members of a group: its kernel is made in a time that grows with the square.
enum { MAX_MEMBERS = 256 };

static uint32_t fuse_groups_size(const mp_fuse_graph_t *graph, uint32_t group, uint32_t *last) {
  uint32_t size = 0;
  for (uint32_t i = group; i != MP_FUSE_NONE; i = graph->nodes[i].next) {
    ++size;
    if (i > *last) *last = i;
  }
  return size;
}

// Whether only members of `a` and `b` use results of the members of `group` before `last`.
static bool fuse_groups_can_wait(const mp_fuse_graph_t *graph, uint32_t group, uint32_t a,
                                 uint32_t b, uint32_t last) {
  for (uint32_t i = group; i != MP_FUSE_NONE; i = graph->nodes[i].next) {
    const mp_fuse_node_t *node = &graph->nodes[i];
    for (uint32_t k = 0; k < node->num_users; ++k) {
      const uint32_t user = node->users[k], of = graph->nodes[user].group;
      if (user < last && of != a && of != b) return false;
    }
  }
  return true;
}

// Whether one group can have the members of both: their arrays are equally large, or those of one
// are columns of the other.
static bool fuse_groups_fit(const mp_fuse_node_t *a, const mp_fuse_node_t *b, int64_t *out_full,
                            int64_t *out_row) {
  if (a->full == b->full) {
    *out_full = a->full;
    *out_row = a->row > b->row ? a->row : b->row;
    return a->row == b->row || a->row == 1 || b->row == 1;
  }
  const mp_fuse_node_t *rows = a->row > 1 ? a : b, *columns = a->row > 1 ? b : a;
  *out_full = rows->full;
  *out_row = rows->row;
  return rows->row > 1 && columns->row == 1 && columns->full == rows->full / rows->row;
}

// The fixed cost of a step of a tile, in elements that are additionally read and written.
enum { STEP_COST = 40, LONG_ROW = 256 };

static int64_t fuse_groups_num_columns(const mp_fuse_graph_t *graph, uint32_t group, int64_t full) {
  int64_t columns = 0;
  for (uint32_t i = group; i != MP_FUSE_NONE; i = graph->nodes[i].next) {
    columns += graph->nodes[i].full != full;
  }
  return columns;
}

// Whether computing with columns takes longer than passing them on. A tile of long rows has one or
// two of them, so each step for columns computes only one or two elements.
static bool fuse_groups_is_crowded(const mp_fuse_graph_t *graph, uint32_t a, uint32_t b,
                                   int64_t full, int64_t row) {
  return row >= LONG_ROW &&
         (fuse_groups_num_columns(graph, a, full) + fuse_groups_num_columns(graph, b, full)) *
                 STEP_COST >
             row;
}

// Whether operand `k` of `user` can be a slot of the previous step, `producer`: the same elements,
// or an element of a column for each row.
static bool fuse_groups_flows(const mp_fuse_node_t *producer, const mp_fuse_node_t *user,
                              uint32_t k, int64_t full, int64_t row) {
  const mp_fuse_source_t source = user->sources[k];
  if (user->is_reduction) return k == 0 && source.is_whole && producer->count == full;
  if (source.is_whole) return producer->count == user->count;
  return source.row > 1 && source.row == row && user->count == full &&
         producer->count == full / row;
}

// Whether values that members of group `a` read from members of group `b` can flow from step to
// step.
static bool fuse_groups_all_flow(const mp_fuse_graph_t *graph, uint32_t a, uint32_t b, int64_t full,
                                 int64_t row) {
  for (uint32_t i = a; i != MP_FUSE_NONE; i = graph->nodes[i].next) {
    const mp_fuse_node_t *node = &graph->nodes[i];
    for (uint32_t k = 0; k < node->op->num_operands; ++k) {
      const mp_value_t *value = node->sources[k].value;
      if (value == NULL) continue;
      const mp_fuse_node_t *from = mp_fuse_node_of(graph, value);
      if (from != NULL && from->group == b && !fuse_groups_flows(from, node, k, full, row)) {
        return false;
      }
      // If a source is itself a view, its base must exist first, too.
      while (value->op != NULL && mp_view_looks_through(value->op)) {
        value = value->op->operands[0];
        from = mp_fuse_node_of(graph, value);
        if (from != NULL && from->group == b) return false;
      }
    }
  }
  return true;
}

static void fuse_groups_try(mp_fuse_graph_t *graph, uint32_t a, uint32_t b) {
  uint32_t last = 0;
  int64_t full = 0, row = 0;
  if (a == b || graph->nodes[a].is_end || graph->nodes[b].is_end) return;
  if (!fuse_groups_fit(&graph->nodes[a], &graph->nodes[b], &full, &row)) return;
  const uint32_t size = fuse_groups_size(graph, a, &last) + fuse_groups_size(graph, b, &last);
  if (size > MAX_MEMBERS) return;
  // Tiles that are rows cannot be taken in the order in which transposed arrays are read well.
  const bool is_transposed = graph->nodes[a].is_transposed || graph->nodes[b].is_transposed;
  if (is_transposed && row > 1) return;
  if (fuse_groups_is_crowded(graph, a, b, full, row)) return;
  if (!fuse_groups_can_wait(graph, a, a, b, last) || !fuse_groups_can_wait(graph, b, a, b, last)) {
    return;
  }
  if (!fuse_groups_all_flow(graph, a, b, full, row) ||
      !fuse_groups_all_flow(graph, b, a, full, row)) {
    return;
  }
  uint32_t end = b;
  for (uint32_t i = b; i != MP_FUSE_NONE; i = graph->nodes[i].next) {
    graph->nodes[i].group = a;
    end = i;
  }
  graph->nodes[end].next = graph->nodes[a].next;
  graph->nodes[a].next = b;
  graph->nodes[a].full = full;
  graph->nodes[a].row = row;
  graph->nodes[a].is_transposed = is_transposed;
}

// ---- Siblings ----

// Groups that read the same array not in its order, like the components of a product of
// quaternions: as one op they move its elements once. That pays off if moving takes as long as
// computing, for arrays that stay in the cache. Those of up to STEP_COUNT elements may be steps of
// a sequence (sim/loops); then everything that the group computes has to stay in the first-level
// cache.
enum { SIBLING_COUNT = 16384, SIBLINGS = 48, STEP_COUNT = 2048, STEP_BYTES = 18 * 1024 };

// The node that last read a value for arrays of `full` elements. The hash is of both.
typedef struct {
  uint64_t hash;
  const mp_value_t *value;
  int64_t full;
  uint32_t reader;
} reader_t;

typedef MP_HASH_MAP(reader_t) readers_t;

static int64_t fuse_groups_bytes(const mp_fuse_graph_t *graph, uint32_t group) {
  int64_t bytes = 0, more = 0;
  for (uint32_t i = group; i != MP_FUSE_NONE; i = graph->nodes[i].next) {
    if (mp_type_num_bytes(graph->nodes[i].op->results[0].type, &more)) bytes += more;
  }
  return bytes;
}

static bool fuse_groups_are_few(const mp_fuse_graph_t *graph, uint32_t a, uint32_t b) {
  uint32_t last = 0;
  if (graph->nodes[a].full > STEP_COUNT) {
    return fuse_groups_size(graph, a, &last) + fuse_groups_size(graph, b, &last) <= SIBLINGS;
  }
  return fuse_groups_bytes(graph, a) + fuse_groups_bytes(graph, b) <= STEP_BYTES;
}

static void fuse_groups_try_siblings(mp_fuse_graph_t *graph, uint32_t a, uint32_t b) {
  if (a == b || graph->nodes[a].full != graph->nodes[b].full) return;
  if (fuse_groups_are_few(graph, a, b)) fuse_groups_try(graph, a, b);
}

// Records what a member reads, and merges it into the group of an earlier reader of the same value.
static mp_status_t fuse_groups_meet_siblings(mp_fuse_graph_t *graph, readers_t *readers,
                                             uint32_t index) {
  const mp_fuse_node_t *node = &graph->nodes[index];
  for (uint32_t k = 0; k < node->op->num_operands; ++k) {
    const mp_fuse_source_t *source = &node->sources[k];
    if (source->value == NULL || source->is_whole || source->is_transposed) continue;
    const uint64_t hash =
        mp_hash_u64(mp_hash_u64(MP_HASH_START, (uintptr_t)source->value), (uint64_t)node->full);
    reader_t *known = NULL, *entry;
    MP_HASH_MAP_EACH(readers, hash, entry) {
      if (entry->value == source->value && entry->full == node->full) known = entry;
    }
    if (known == NULL) {
      const reader_t reader = {hash, source->value, node->full, index};
      MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(graph->scratch, readers, &reader));
      continue;
    }
    fuse_groups_try_siblings(graph, graph->nodes[known->reader].group, node->group);
    known->reader = index;
  }
  return NULL;
}

static mp_status_t fuse_groups_find_siblings(mp_fuse_graph_t *graph) {
  readers_t readers = {0};
  for (uint32_t i = 0; i < graph->count; ++i) {
    const mp_fuse_node_t *node = &graph->nodes[i];
    const bool is_small = node->is_member && !node->is_end && node->full <= SIBLING_COUNT;
    if (is_small) MP_RETURN_IF_ERROR(fuse_groups_meet_siblings(graph, &readers, i));
  }
  return NULL;
}

// ---- Ends ----

// Whether all users of the op are in the group, and read the whole result in its order.
static bool fuse_groups_is_only_for(const mp_fuse_graph_t *graph, const mp_fuse_node_t *node,
                                    uint32_t group) {
  for (uint32_t k = 0; k < node->num_users; ++k) {
    const mp_fuse_node_t *user = &graph->nodes[node->users[k]];
    if (!user->is_member || user->group != group) return false;
    for (uint32_t i = 0; i < user->op->num_operands; ++i) {
      const mp_fuse_source_t *source = &user->sources[i];
      const mp_value_t *value = source->value;
      const bool is_read = value == &node->op->results[0];
      if (is_read && (!source->is_whole || user->full != node->full)) return false;
      if (is_read || value == NULL) continue;
      // A value that is moved before it is read must be an array.
      while (value->op != NULL && mp_view_looks_through(value->op)) value = value->op->operands[0];
      if (value == &node->op->results[0]) return false;
    }
  }
  return true;
}

// Adds to the group of the end all ops whose results only it uses, from `user` back.
static void fuse_groups_add_producers(mp_fuse_graph_t *graph, uint32_t end, uint32_t user,
                                      uint32_t *size) {
  const mp_fuse_node_t *reader = &graph->nodes[user];
  for (uint32_t k = 0; k < reader->op->num_operands; ++k) {
    const mp_value_t *value = reader->sources[k].value;
    mp_fuse_node_t *node = value == NULL ? NULL : mp_fuse_node_of(graph, value);
    if (node == NULL || !node->is_member || node->is_reduction || node->is_end) continue;
    if (node->is_transposed) continue;
    if (node->group != node->op->id || node->next != MP_FUSE_NONE || *size == MAX_MEMBERS) continue;
    if (!fuse_groups_is_only_for(graph, node, end)) continue;
    node->group = end;
    node->next = graph->nodes[end].next;
    graph->nodes[end].next = node->op->id;
    ++*size;
    fuse_groups_add_producers(graph, end, node->op->id, size);
  }
}

// Whether the user reads the producer's result directly.
static bool fuse_groups_reads(const mp_fuse_node_t *user, const mp_fuse_node_t *producer) {
  if (!user->is_member) return false;
  for (uint32_t k = 0; k < user->op->num_operands; ++k) {
    const mp_value_t *source = user->sources[k].value;
    if (source != NULL && source->op == producer->op) return true;
  }
  return false;
}

static bool fuse_groups_pays(const mp_fuse_graph_t *graph, uint32_t group) {
  const mp_fuse_node_t *node = &graph->nodes[group];
  if (node->next != MP_FUSE_NONE) return true;
  if (node->is_reduction) return false;
  if (node->is_end) {
    const mp_fuse_source_t *source = &node->sources[node->operand];
    return source->value == NULL || !source->is_whole;
  }
  // A single op is worth fusing if one of its operands then need not be computed.
  for (uint32_t i = 0; i < node->op->num_operands; ++i) {
    const mp_value_t *operand = node->op->operands[i];
    const bool is_constant = operand->op != NULL && operand->op->code == MP_OP_CONSTANT;
    if (node->sources[i].value != operand && !is_constant) return true;
  }
  return false;
}

mp_status_t mp_fuse_group(mp_fuse_graph_t *graph) {
  for (uint32_t i = graph->count; i-- > 0;) {
    uint32_t size = 1;
    if (graph->nodes[i].is_end) fuse_groups_add_producers(graph, i, i, &size);
  }
  for (uint32_t i = graph->count; i-- > 0;) {
    const mp_fuse_node_t *node = &graph->nodes[i];
    if (!node->is_member) continue;
    for (uint32_t k = 0; k < node->num_users; ++k) {
      const mp_fuse_node_t *user = &graph->nodes[node->users[k]];
      if (fuse_groups_reads(user, node)) fuse_groups_try(graph, node->group, user->group);
    }
  }
  MP_RETURN_IF_ERROR(fuse_groups_find_siblings(graph));
  for (uint32_t i = 0; i < graph->count; ++i) {
    mp_fuse_node_t *node = &graph->nodes[i];
    if (node->is_member) node->is_fused = fuse_groups_pays(graph, node->group);
  }
  return NULL;
}
