// Recomputes values where they are used, instead of keeping them: the backward pass of a training
// step reads many values that the forward pass had in registers, and that a few cheap ops recompute
// from arrays that are kept anyway. That saves the array, writing it and its memory.
//
// A value is recomputed if each group of ops that reads it, except its own, can recompute it by a
// few cheap ops from arrays that are kept until then, or are small.
#include "sim/base/containers/array.h"
#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"
#include "sim/fuse/fuse_graph.h"
#include "sim/kernels/elementwise/elementwise.h"

// MIN_COUNT: arrays of fewer elements are kept. MAX_OPS: the most ops that recompute one value. A
// group may read MAX_READS arrays more than before, instead of the one that it no longer reads.
// SMALL: an array is small if it is this many times smaller than the value.
enum { MIN_COUNT = 2048, MAX_OPS = 8, MAX_READS = 1, SMALL = 16 };

// The replacement of a value in one group. The hash is of both.
typedef struct {
  uint64_t hash;
  uint32_t group;
  const mp_value_t *old;
  mp_value_t *by;
} copy_t;

// An operand that will become a copy.
typedef struct {
  mp_op_t *op;
  uint32_t operand;
  mp_value_t *by;
} change_t;

typedef struct {
  mp_fuse_graph_t *graph;
  const mp_block_t *main;
  mp_value_t **map;  // by value id, all NULL between the uses
  uint32_t *ends;    // by position: the last position at which the op's result is read
  uint32_t *groups;  // by position of a group's first member: that of its last one
  bool *is_again;    // by position: the value is recomputed
  MP_HASH_MAP(copy_t) copies;
  MP_ARRAY(change_t) changes;
} again_t;

// One question: whether `group` can compute a value again.
typedef struct {
  const again_t *again;
  uint32_t group;
  uint32_t until;  // the position of the fused op
  int64_t count;   // elements of the value
  uint32_t num_ops, num_reads;
} question_t;

// ---- The lives of values ----

static uint32_t fuse_again_position(const again_t *again, uint32_t index) {
  const mp_fuse_node_t *node = &again->graph->nodes[index];
  return node->is_member ? again->groups[node->group] : index;
}

static void fuse_again_find_ends(again_t *again) {
  const mp_fuse_graph_t *graph = again->graph;
  for (uint32_t i = 0; i < graph->count; ++i) {
    const mp_fuse_node_t *node = &graph->nodes[i];
    if (node->is_member && i > again->groups[node->group]) again->groups[node->group] = i;
  }
  for (uint32_t i = 0; i < graph->count; ++i) {
    const mp_fuse_node_t *node = &graph->nodes[i];
    for (uint32_t k = 0; k < node->num_users; ++k) {
      const mp_fuse_node_t *user = &graph->nodes[node->users[k]];
      const bool is_inside = node->is_member && user->is_member && user->group == node->group;
      const uint32_t position = fuse_again_position(again, node->users[k]);
      if (!is_inside && position > again->ends[i]) again->ends[i] = position;
    }
  }
}

static bool fuse_again_is_small(const question_t *q, const mp_value_t *value) {
  int64_t count = 0;
  return mp_type_num_elements(value->type, &count) && count <= q->count / SMALL;
}

// Whether the value lives until the group's op in any case.
static bool fuse_again_is_kept(const question_t *q, const mp_value_t *value) {
  const mp_fuse_graph_t *graph = q->again->graph;
  const mp_op_t *op = value->op;
  if (op == NULL && value->block == graph->block) {
    if (value->block != q->again->main) return false;  // loop-carried values are overwritten
    const mp_func_t *main = graph->module->main;
    const mp_attr_t *attrs = main->arg_attrs == NULL ? NULL : main->arg_attrs[value->index];
    return mp_attr_dict_get(attrs, MP_ATTR_TF_ALIASING_OUTPUT) == NULL &&
           mp_attr_dict_get(attrs, MP_ATTR_JAX_BUFFER_DONOR) == NULL;
  }
  if (op == NULL || op->parent != graph->block || op->code == MP_OP_CONSTANT) return true;
  const mp_fuse_node_t *node = mp_fuse_node_of(graph, value);
  return !q->again->is_again[op->id] && node != NULL && q->again->ends[op->id] >= q->until;
}

// Whether the group can read the value: because it lives until then, or because it is so small,
// compared with the recomputed value, that it may be kept.
static bool fuse_again_is_there(const question_t *q, const mp_value_t *value) {
  return fuse_again_is_small(q, value) || fuse_again_is_kept(q, value);
}

// Whether a member of the group reads the value anyway.
static bool fuse_again_is_read(const question_t *q, const mp_value_t *value) {
  const mp_fuse_graph_t *graph = q->again->graph;
  for (uint32_t i = q->group; i != MP_FUSE_NONE; i = graph->nodes[i].next) {
    const mp_fuse_node_t *node = &graph->nodes[i];
    for (uint32_t k = 0; k < node->op->num_operands; ++k) {
      if (node->sources[k].value == value) return true;
    }
  }
  return false;
}

// ---- Whether a value can be recomputed ----

static bool fuse_again_is_cheap(const mp_fuse_node_t *node) {
  return node->is_member && !node->is_reduction && !node->is_end && node->op->num_results == 1 &&
         mp_op_info(node->op->code)->cost != MP_OP_COST_COSTLY;
}

static bool fuse_again_can_compute(question_t *q, const mp_fuse_node_t *node);

static bool fuse_again_can_read(question_t *q, const mp_fuse_node_t *node, uint32_t k) {
  const mp_value_t *value = node->sources[k].value;
  if (value == NULL) return true;
  if (fuse_again_is_there(q, value)) {
    const bool is_more = !fuse_again_is_small(q, value) && !fuse_again_is_read(q, value);
    q->num_reads += is_more ? 1 : 0;
    return q->num_reads <= MAX_READS;
  }
  const mp_fuse_node_t *from = mp_fuse_node_of(q->again->graph, value);
  // Only values that are read directly: a view of the value would have to be recomputed, too.
  return from != NULL && node->op->operands[k] == value && fuse_again_can_compute(q, from);
}

static bool fuse_again_can_compute(question_t *q, const mp_fuse_node_t *node) {
  if (++q->num_ops > MAX_OPS || !fuse_again_is_cheap(node)) return false;
  for (uint32_t k = 0; k < node->op->num_operands; ++k) {
    if (!fuse_again_can_read(q, node, k)) return false;
  }
  return true;
}

// Whether the user, a member of another group, reads the value directly and in a form that its
// group can compute.
static bool fuse_again_is_read_whole(const mp_fuse_node_t *user, const mp_value_t *value) {
  for (uint32_t k = 0; k < user->op->num_operands; ++k) {
    const mp_value_t *operand = user->op->operands[k];
    if (user->sources[k].value != value) continue;
    if (operand != value || (user->is_end && k != user->operand)) return false;
  }
  return true;
}

static bool fuse_again_is_worth(const again_t *again, uint32_t index) {
  const mp_fuse_graph_t *graph = again->graph;
  const mp_fuse_node_t *node = &graph->nodes[index];
  if (!fuse_again_is_cheap(node) || node->count < MIN_COUNT) return false;
  bool is_read_elsewhere = false;
  for (uint32_t k = 0; k < node->num_users; ++k) {
    const mp_fuse_node_t *user = &graph->nodes[node->users[k]];
    if (!user->is_member) return false;
    if (user->group == node->group) continue;
    is_read_elsewhere = true;
    if (!fuse_again_is_read_whole(user, &node->op->results[0])) return false;
    question_t q = {again, user->group, again->groups[user->group], node->count, 0, 0};
    if (!fuse_again_can_compute(&q, node)) return false;
  }
  return is_read_elsewhere;
}

// ---- Recomputing ----

static uint64_t fuse_again_hash(uint32_t group, const mp_value_t *value) {
  return mp_hash_u64(mp_hash_u64(MP_HASH_START, group), value->id);
}

static mp_value_t *fuse_again_find_copy(const again_t *again, uint32_t group,
                                        const mp_value_t *value) {
  const copy_t *copy;
  MP_HASH_MAP_EACH(&again->copies, fuse_again_hash(group, value), copy) {
    if (copy->group == group && copy->old == value) return copy->by;
  }
  return NULL;
}

// Recomputes the value for the group, before `position`, which is a member of it.
static mp_status_t fuse_again_copy(again_t *again, uint32_t group, uint32_t until,
                                   mp_op_t *position, mp_value_t *value, mp_value_t **out_value) {
  *out_value = fuse_again_find_copy(again, group, value);
  if (*out_value != NULL) return NULL;
  const mp_fuse_graph_t *graph = again->graph;
  const mp_fuse_node_t *node = mp_fuse_node_of(graph, value);
  mp_value_t *operands[MP_EW_MAX_INPUTS];
  const question_t q = {again, group, until, node->count, 0, 0};
  for (uint32_t k = 0; k < node->op->num_operands; ++k) {
    mp_value_t *operand = operands[k] = node->op->operands[k];
    if (node->sources[k].value != operand) continue;
    if (fuse_again_is_there(&q, operand)) continue;
    MP_RETURN_IF_ERROR(fuse_again_copy(again, group, until, position, operand, &operands[k]));
  }
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_op_clone(graph->module, node->op, again->map, &copy));
  again->map[value->id] = NULL;
  for (uint32_t k = 0; k < copy->num_operands; ++k) copy->operands[k] = operands[k];
  mp_block_insert_before(position, copy);
  *out_value = &copy->results[0];
  const copy_t entry = {fuse_again_hash(group, value), group, value, *out_value};
  return MP_HASH_MAP_ADD(graph->scratch, &again->copies, &entry);
}

// Members in their order, so that all users of a shared copy come after it. The operands change at
// the end, because copies are made from the original ops.
static mp_status_t fuse_again_rewrite(again_t *again) {
  const mp_fuse_graph_t *graph = again->graph;
  for (uint32_t i = 0; i < graph->count; ++i) {
    const mp_fuse_node_t *node = &graph->nodes[i];
    for (uint32_t k = 0; node->is_member && k < node->op->num_operands; ++k) {
      mp_value_t *operand = node->op->operands[k];
      const mp_fuse_node_t *from = mp_fuse_node_of(graph, operand);
      if (from == NULL || !again->is_again[from->op->id] || from->group == node->group) continue;
      change_t change = {node->op, k, NULL};
      MP_RETURN_IF_ERROR(fuse_again_copy(again, node->group, again->groups[node->group], node->op,
                                         operand, &change.by));
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(graph->scratch, &again->changes, change));
    }
  }
  for (uint32_t i = 0; i < again->changes.count; ++i) {
    const change_t *change = &again->changes.items[i];
    change->op->operands[change->operand] = change->by;
  }
  return NULL;
}

mp_status_t mp_fuse_again(mp_fuse_graph_t *graph, mp_value_t **map) {
  const size_t count = (size_t)graph->count + 1;
  again_t again = {.graph = graph,
                   .main = graph->module->main->body,
                   .map = map,
                   .ends = MP_ARENA_ARRAY(graph->scratch, uint32_t, count),
                   .groups = MP_ARENA_ARRAY(graph->scratch, uint32_t, count),
                   .is_again = MP_ARENA_ARRAY(graph->scratch, bool, count)};
  if (again.ends == NULL || again.groups == NULL || again.is_again == NULL) {
    return mp_status_out_of_memory();
  }
  fuse_again_find_ends(&again);
  bool is_any = false;
  for (uint32_t i = 0; i < graph->count; ++i) {
    again.is_again[i] = fuse_again_is_worth(&again, i);
    is_any = is_any || again.is_again[i];
  }
  return is_any ? fuse_again_rewrite(&again) : NULL;
}
