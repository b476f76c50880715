// Which ops become one. A group stands where its last member stands, so nobody outside of it may
// use one of its results earlier than that. Then what it needs is there, and the order of all other
// ops can stay: no circle can arise.
//
// Members join the group of those that use them, from the last one to the first.
#include "sim/base/assert.h"
#include "sim/fuse/fuse_graph.h"
#include "sim/kernels/fused/view.h"

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

// Whether nobody but the members of `a` and `b` uses what those of `group` compute before `last`.
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

static void fuse_groups_try(mp_fuse_graph_t *graph, uint32_t a, uint32_t b) {
  uint32_t last = 0;
  if (a == b) return;
  const uint32_t size = fuse_groups_size(graph, a, &last) + fuse_groups_size(graph, b, &last);
  if (size > MAX_MEMBERS) return;
  if (!fuse_groups_can_wait(graph, a, a, b, last) || !fuse_groups_can_wait(graph, b, a, b, last)) {
    return;
  }
  uint32_t end = b;
  for (uint32_t i = b; i != MP_FUSE_NONE; i = graph->nodes[i].next) {
    graph->nodes[i].group = a;
    end = i;
  }
  graph->nodes[end].next = graph->nodes[a].next;
  graph->nodes[a].next = b;
}

// Whether the user reads all elements of the producer in their order, and as many.
static bool fuse_groups_reads_whole(const mp_fuse_node_t *user, const mp_fuse_node_t *producer) {
  if (!user->is_member || user->count != producer->count) return false;
  bool reads = false;
  for (uint32_t i = 0; i < user->op->num_operands; ++i) {
    const mp_fuse_source_t source = user->sources[i];
    if (source.value == NULL || source.value->op != producer->op) continue;
    // Through a view, the elements of a step come from others than those of the step before.
    if (!source.is_whole) return false;
    reads = true;
  }
  return reads;
}

static bool fuse_groups_pays(const mp_fuse_graph_t *graph, uint32_t group) {
  const mp_fuse_node_t *node = &graph->nodes[group];
  if (node->next != MP_FUSE_NONE) return true;
  // An op alone is worth it if it reads something that nobody has to make then.
  for (uint32_t i = 0; i < node->op->num_operands; ++i) {
    const mp_value_t *operand = node->op->operands[i];
    const bool is_constant = operand->op != NULL && operand->op->code == MP_OP_CONSTANT;
    if (node->sources[i].value != operand && !is_constant) return true;
  }
  return false;
}

// Whether a member of the group reads, through a view that is not whole, what another one computes.
static bool fuse_groups_is_crossed(const mp_fuse_graph_t *graph, uint32_t a, uint32_t b) {
  for (uint32_t i = a; i != MP_FUSE_NONE; i = graph->nodes[i].next) {
    const mp_fuse_node_t *node = &graph->nodes[i];
    for (uint32_t k = 0; k < node->op->num_operands; ++k) {
      const mp_fuse_source_t source = node->sources[k];
      if (source.value == NULL) continue;
      // Also what the source is made of by moving elements.
      const mp_value_t *value = source.value;
      bool is_whole = source.is_whole;
      while (value->op != NULL && mp_view_looks_through(value->op)) {
        value = value->op->operands[0];
        is_whole = false;
      }
      const mp_fuse_node_t *from = mp_fuse_node_of(graph, value);
      if (from != NULL && from->is_member && !is_whole && from->group == b) return true;
    }
  }
  return false;
}

void mp_fuse_group(mp_fuse_graph_t *graph) {
  for (uint32_t i = graph->count; i-- > 0;) {
    const mp_fuse_node_t *node = &graph->nodes[i];
    if (!node->is_member) continue;
    for (uint32_t k = 0; k < node->num_users; ++k) {
      const mp_fuse_node_t *user = &graph->nodes[node->users[k]];
      if (!fuse_groups_reads_whole(user, node)) continue;
      const uint32_t a = node->group, b = user->group;
      if (fuse_groups_is_crossed(graph, a, b) || fuse_groups_is_crossed(graph, b, a)) continue;
      fuse_groups_try(graph, a, b);
    }
  }
  for (uint32_t i = 0; i < graph->count; ++i) {
    mp_fuse_node_t *node = &graph->nodes[i];
    if (node->is_member) node->is_fused = fuse_groups_pays(graph, node->group);
  }
}
