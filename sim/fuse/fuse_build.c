// Makes one op of each group: its region has copies of the members and of the ops that they look
// through.
#include "sim/base/assert.h"
#include "sim/base/containers/array.h"
#include "sim/fuse/fuse_graph.h"
#include "sim/kernels/fused/tile/view.h"

typedef struct {
  mp_fuse_graph_t *graph;
  bool *is_needed;  // as in mp_fuse_tables_t
  mp_fuse_replacement_t *replacements;
  mp_value_t **map;
  MP_ARRAY(uint32_t) mapped;      // the ids in `map`
  MP_ARRAY(mp_value_t *) inputs;  // of that region
  MP_ARRAY(uint32_t) members;     // of its group, in their order
} builder_t;

// ---- Which values are still needed as arrays ----

static void fuse_build_need(builder_t *b, const mp_value_t *value) {
  b->is_needed[value->id] = true;
}

static void fuse_build_need_operands(builder_t *b, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) fuse_build_need(b, op->operands[i]);
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    for (const mp_op_t *in = op->regions[r]->first; in != NULL; in = in->next) {
      fuse_build_need_operands(b, in);
    }
  }
}

// Goes backwards, so that it is known whether an op is needed before its operands are visited.
static void fuse_build_find_needs(builder_t *b) {
  const mp_fuse_graph_t *graph = b->graph;
  for (uint32_t i = graph->count; i-- > 0;) {
    const mp_fuse_node_t *node = &graph->nodes[i];
    const mp_op_t *op = node->op;
    if (!node->is_fused) {
      const bool can_go = mp_view_looks_through(op) && !b->is_needed[op->results[0].id];
      if (!can_go) fuse_build_need_operands(b, op);
      continue;
    }
    for (uint32_t k = 0; k < op->num_operands; ++k) {
      const mp_value_t *source = node->sources[k].value;
      if (source == NULL) continue;
      const mp_fuse_node_t *from = mp_fuse_node_of(graph, source);
      const bool is_inside = from != NULL && from->group == node->group;
      if (!is_inside) fuse_build_need(b, source);
    }
  }
}

// ---- Regions ----

static mp_status_t fuse_build_map(builder_t *b, const mp_value_t *old, mp_value_t *value) {
  b->map[old->id] = value;
  return MP_ARRAY_PUSH(b->graph->scratch, &b->mapped, old->id);
}

// Lists the group's members from first to last.
static mp_status_t fuse_build_list_members(builder_t *b, uint32_t group) {
  b->members.count = 0;
  for (uint32_t i = group; i != MP_FUSE_NONE; i = b->graph->nodes[i].next) {
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(b->graph->scratch, &b->members, i));
    for (uint32_t k = b->members.count - 1; k > 0; --k) {
      uint32_t *at = &b->members.items[k];
      if (at[-1] < at[0]) break;
      const uint32_t other = at[-1];
      at[-1] = at[0];
      at[0] = other;
    }
  }
  return NULL;
}

// Collects what the members read from outside of the group.
static mp_status_t fuse_build_collect_inputs(builder_t *b, uint32_t group) {
  b->inputs.count = 0;
  for (uint32_t m = 0; m < b->members.count; ++m) {
    const mp_fuse_node_t *node = &b->graph->nodes[b->members.items[m]];
    for (uint32_t k = 0; k < node->op->num_operands; ++k) {
      mp_value_t *source = node->sources[k].value;
      if (source == NULL) continue;
      const mp_fuse_node_t *from = mp_fuse_node_of(b->graph, source);
      bool is_known = from != NULL && from->group == group;
      for (uint32_t i = 0; i < b->inputs.count && !is_known; ++i) {
        is_known = b->inputs.items[i] == source;
      }
      if (is_known) continue;
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(b->graph->scratch, &b->inputs, source));
    }
  }
  return NULL;
}

static mp_status_t fuse_build_begin_region(builder_t *b, mp_block_t **out_block) {
  mp_module_t *module = b->graph->module;
  const uint32_t count = b->inputs.count;
  const mp_type_t **types = MP_ARENA_ARRAY(b->graph->scratch, const mp_type_t *, count + 1);
  MP_RETURN_IF_NULL(types);
  for (uint32_t i = 0; i < count; ++i) types[i] = b->inputs.items[i]->type;
  MP_RETURN_IF_ERROR(mp_block_create(module, count, types, out_block));
  for (uint32_t i = 0; i < count; ++i) {
    (*out_block)->args[i].id = b->inputs.items[i]->id;
    MP_RETURN_IF_ERROR(fuse_build_map(b, b->inputs.items[i], &(*out_block)->args[i]));
  }
  return NULL;
}

static mp_status_t fuse_build_copy(builder_t *b, mp_block_t *block, const mp_op_t *op) {
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_op_clone(b->graph->module, op, b->map, &copy));
  mp_block_append(block, copy);
  return fuse_build_map(b, &op->results[0], &copy->results[0]);
}

// Copies the ops between an input or a member and an operand of a member.
static mp_status_t fuse_build_copy_chain(builder_t *b, mp_block_t *block, const mp_value_t *value) {
  const mp_op_t *chain[MP_VIEW_MAX_OPS + 1];
  uint32_t count = 0;
  while (b->map[value->id] == NULL) {
    MP_ASSERT(value->op != NULL && count <= MP_VIEW_MAX_OPS);
    chain[count++] = value->op;
    if (value->op->num_operands == 0) break;
    value = value->op->operands[0];
  }
  while (count > 0) MP_RETURN_IF_ERROR(fuse_build_copy(b, block, chain[--count]));
  return NULL;
}

static mp_status_t fuse_build_fill_region(builder_t *b, mp_block_t *block) {
  for (uint32_t m = 0; m < b->members.count; ++m) {
    const mp_op_t *op = b->graph->nodes[b->members.items[m]].op;
    for (uint32_t k = 0; k < op->num_operands; ++k) {
      MP_RETURN_IF_ERROR(fuse_build_copy_chain(b, block, op->operands[k]));
    }
    MP_RETURN_IF_ERROR(fuse_build_copy(b, block, op));
  }
  return NULL;
}

// ---- The op ----

// Ends the region with the values that are needed outside, and makes the op. `out_olds` gets the
// values that its results replace.
static mp_status_t fuse_build_end(builder_t *b, mp_block_t *block, mp_op_t **out_op,
                                  const mp_value_t ***out_olds) {
  mp_arena_t *scratch = b->graph->scratch;
  const uint32_t most = b->members.count;
  const mp_value_t **olds = MP_ARENA_ARRAY(scratch, const mp_value_t *, most + 1);
  mp_value_t **returned = MP_ARENA_ARRAY(scratch, mp_value_t *, most + 1);
  const mp_type_t **types = MP_ARENA_ARRAY(scratch, const mp_type_t *, most + 1);
  if (olds == NULL || returned == NULL || types == NULL) return mp_status_out_of_memory();
  uint32_t count = 0;
  for (uint32_t m = 0; m < most; ++m) {
    const mp_value_t *result = &b->graph->nodes[b->members.items[m]].op->results[0];
    if (!b->is_needed[result->id]) continue;
    olds[count] = result;
    returned[count] = b->map[result->id];
    types[count++] = result->type;
  }
  const mp_op_t *last = b->graph->nodes[b->members.items[most - 1]].op;
  mp_op_t *end = NULL;
  const mp_op_spec_t end_spec = {
      .code = MP_OP_RETURN, .loc = last->loc, .num_operands = count, .operands = returned};
  MP_RETURN_IF_ERROR(mp_op_create(b->graph->module, &end_spec, &end));
  mp_block_append(block, end);
  const mp_op_spec_t spec = {.code = MP_OP_FUSION,
                             .loc = last->loc,
                             .num_operands = b->inputs.count,
                             .operands = b->inputs.items,
                             .num_results = count,
                             .result_types = types,
                             .num_regions = 1,
                             .regions = &block};
  *out_olds = olds;
  return mp_op_create(b->graph->module, &spec, out_op);
}

static mp_status_t fuse_build_one(builder_t *b, uint32_t group) {
  mp_block_t *block = NULL;
  mp_op_t *op = NULL;
  const mp_value_t **olds = NULL;
  MP_RETURN_IF_ERROR(fuse_build_list_members(b, group));
  MP_RETURN_IF_ERROR(fuse_build_collect_inputs(b, group));
  MP_RETURN_IF_ERROR(fuse_build_begin_region(b, &block));
  MP_RETURN_IF_ERROR(fuse_build_fill_region(b, block));
  MP_RETURN_IF_ERROR(fuse_build_end(b, block, &op, &olds));
  for (uint32_t i = 0; i < b->mapped.count; ++i) b->map[b->mapped.items[i]] = NULL;
  b->mapped.count = 0;
  if (op->num_results == 0) return NULL;  // dead code
  mp_op_t *last = b->graph->nodes[b->members.items[b->members.count - 1]].op;
  op->id = last->id;
  mp_block_insert_before(last, op);
  for (uint32_t i = 0; i < op->num_results; ++i) {
    op->results[i].id = olds[i]->id;
    b->replacements[olds[i]->id] = (mp_fuse_replacement_t){olds[i], &op->results[i]};
  }
  for (uint32_t m = 0; m < b->members.count; ++m) {
    mp_op_unlink(b->graph->nodes[b->members.items[m]].op);
  }
  return NULL;
}

// ---- Afterwards ----

static void fuse_build_replace(const builder_t *b, mp_block_t *block) {
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      const mp_fuse_replacement_t *replacement = &b->replacements[op->operands[i]->id];
      if (replacement->old == op->operands[i]) op->operands[i] = replacement->by;
    }
    for (uint32_t r = 0; r < op->num_regions; ++r) fuse_build_replace(b, op->regions[r]);
  }
}

// Moves ops that move elements of a fused op's result after that op.
static void fuse_build_move_behind(mp_block_t *block) {
  for (mp_op_t *op = block->first, *next; op != NULL; op = next) {
    next = op->next;
    if (!mp_view_looks_through(op)) continue;
    const mp_op_t *from = op->operands[0]->op;
    if (from == NULL || from->parent != block || from->id <= op->id) continue;
    op->id = from->id;
    mp_op_unlink(op);
    mp_block_insert_before(from->next, op);
  }
}

mp_status_t mp_fuse_build(mp_fuse_graph_t *graph, const mp_fuse_tables_t *tables) {
  builder_t b = {.graph = graph,
                 .is_needed = tables->is_needed,
                 .replacements = tables->replacements,
                 .map = tables->map};
  fuse_build_find_needs(&b);
  for (uint32_t i = 0; i < graph->count; ++i) {
    const mp_fuse_node_t *node = &graph->nodes[i];
    if (!node->is_fused || node->group != i) continue;
    MP_RETURN_IF_ERROR(fuse_build_one(&b, i));
  }
  fuse_build_replace(&b, graph->block);
  fuse_build_move_behind(graph->block);
  return NULL;
}
