#include "sim/fuse/fuse_graph.h"

#include "sim/base/assert.h"
#include "sim/base/containers/array.h"
#include "sim/kernels/fused/fusion_end.h"
#include "sim/kernels/fused/tile/tile.h"
#include "sim/kernels/fused/tile/view.h"

// A use of an op's results, while they are collected.
typedef struct {
  uint32_t used, user;
} use_t;

typedef struct {
  mp_fuse_graph_t *graph;
  MP_ARRAY(use_t) uses;
} collector_t;

mp_fuse_node_t *mp_fuse_node_of(const mp_fuse_graph_t *graph, const mp_value_t *value) {
  if (value->op == NULL || value->op->parent != graph->block) return NULL;
  MP_ASSERT(graph->nodes[value->op->id].op == value->op);
  return &graph->nodes[value->op->id];
}

// ---- Members and what they read ----

// SMALL: arrays of at most so many elements stay in the cache, in whatever order they are read.
enum { SMALL = 4096, SHORT_RUN = 8, LONG_RUN = 64 };

static void fuse_graph_find_member(mp_fuse_node_t *node) {
  const mp_op_t *op = node->op;
  node->is_reduction = mp_tile_reduces(op, &node->row);
  node->is_end = !node->is_reduction && mp_fusion_may_end(op, &node->operand);
  if (!node->is_reduction && !node->is_end && !mp_tile_computes(op)) return;
  if (!node->is_reduction) node->row = 1;
  const mp_type_t *type =
      node->is_reduction || node->is_end ? op->operands[node->operand]->type : op->results[0].type;
  node->is_member = mp_type_num_elements(type, &node->full) && node->full > 0;
  // Small arrays stay in the cache anyway, and may be part of a small loop.
  if (node->is_end && node->full < SMALL) node->is_member = node->is_end = false;
  node->count = node->is_reduction ? node->full / node->row : node->full;
}

// Whether the view transposes so many rows that most of a cache line is read at once.
static bool fuse_graph_is_transposed(const mp_view_t *view) {
  return mp_view_transposes(view) && view->dims[view->rank - 1].extent >= SHORT_RUN &&
         view->dims[view->rank - 2].extent >= 2 * SHORT_RUN;
}

// Whether reading through the view costs about as much as reading the moved array.
static bool fuse_graph_is_cheap(const mp_view_t *view, const mp_value_t *base) {
  int64_t count = 0;
  if (mp_view_is_one(view)) return true;
  if (mp_type_num_elements(base->type, &count) && count <= SMALL) return true;
  const int64_t extent = view->dims[view->rank - 1].extent,
                stride = view->dims[view->rank - 1].stride;
  if (stride == 0 || stride == 1) return extent >= SHORT_RUN;
  return stride >= -2 && stride <= 2 && extent >= LONG_RUN;
}

// The length of the rows into which the view expands single elements of a base of `base_count`; 0
// for other views.
static int64_t fuse_graph_row(const mp_view_t *view, int64_t base_count) {
  if (view->rank == 0 || view->rank > 2) return 0;
  const int64_t row = view->dims[view->rank - 1].extent;
  int64_t count = 0;
  if (__builtin_mul_overflow(base_count, row, &count)) return 0;
  return mp_view_is_spread(view, count, row) ? row : 0;
}

// `is_by_tiles`: the tiles are not rows of a reduction, so that they may be taken in any order.
static mp_fuse_source_t fuse_graph_source(const mp_value_t *operand, int64_t count,
                                          bool is_by_tiles) {
  static const uint32_t depths[] = {MP_VIEW_MAX_OPS, 1};
  for (uint32_t i = 0; i < sizeof(depths) / sizeof(depths[0]); ++i) {
    mp_view_t view;
    const mp_value_t *base;
    mp_view_of(operand, depths[i], &view, &base);
    const mp_op_t *op = base->op;
    const bool is_made = op != NULL && (op->code == MP_OP_IOTA ||
                                        (op->code == MP_OP_CONSTANT && mp_op_splat(op) != NULL));
    if (is_made) return (mp_fuse_source_t){0};
    int64_t base_count = 0;
    if (!mp_type_num_elements(base->type, &base_count)) continue;
    const bool is_whole = mp_view_is_whole(&view, count) && base_count == count;
    const bool is_cheap = is_whole || fuse_graph_is_cheap(&view, base);
    if (is_cheap || (is_by_tiles && fuse_graph_is_transposed(&view))) {
      return (mp_fuse_source_t){(mp_value_t *)(uintptr_t)base, is_whole,
                                fuse_graph_row(&view, base_count), !is_cheap};
    }
  }
  return (mp_fuse_source_t){.value = (mp_value_t *)(uintptr_t)operand, .is_whole = true};
}

static mp_status_t fuse_graph_find_sources(mp_fuse_graph_t *graph, mp_fuse_node_t *node) {
  const mp_op_t *op = node->op;
  mp_fuse_source_t *sources = MP_ARENA_ARRAY(graph->scratch, mp_fuse_source_t, op->num_operands);
  MP_RETURN_IF_NULL(sources);
  const bool is_by_tiles = !node->is_reduction && !node->is_end;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    // The second operand of a reduction is its start value.
    const bool is_start = (node->is_reduction || node->is_end) && i == 1 && node->operand == 0;
    const int64_t count = is_start ? 1 : node->full;
    // The table of a gather must be an array.
    const bool is_table = node->is_end && node->operand == 1 && i == 0;
    sources[i] = is_table ? (mp_fuse_source_t){.value = op->operands[i]}
                          : fuse_graph_source(op->operands[i], count, is_by_tiles);
    node->is_transposed |= sources[i].is_transposed;
  }
  node->sources = sources;
  return NULL;
}

// ---- Uses ----

static mp_status_t fuse_graph_note_use(collector_t *collector, uint32_t user,
                                       const mp_value_t *value) {
  while (value->op != NULL && mp_view_looks_through(value->op)) value = value->op->operands[0];
  const mp_fuse_node_t *node = mp_fuse_node_of(collector->graph, value);
  if (node == NULL || node->op->id == user) return NULL;
  const use_t use = {node->op->id, user};
  return MP_ARRAY_PUSH(collector->graph->scratch, &collector->uses, use);
}

// Records the uses of the op, and of the ops in its regions, as uses by the op at `user`.
static mp_status_t fuse_graph_note_uses(collector_t *collector, uint32_t user, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(fuse_graph_note_use(collector, user, op->operands[i]));
  }
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    for (const mp_op_t *in = op->regions[r]->first; in != NULL; in = in->next) {
      MP_RETURN_IF_ERROR(fuse_graph_note_uses(collector, user, in));
    }
  }
  return NULL;
}

// Sorts the uses by the used value.
static mp_status_t fuse_graph_list_users(collector_t *collector) {
  mp_fuse_graph_t *graph = collector->graph;
  uint32_t *users = MP_ARENA_ARRAY(graph->scratch, uint32_t, collector->uses.count + 1);
  uint32_t *next = MP_ARENA_ARRAY(graph->scratch, uint32_t, graph->count + 1);
  if (users == NULL || next == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < collector->uses.count; ++i) {
    ++graph->nodes[collector->uses.items[i].used].num_users;
  }
  uint32_t total = 0;
  for (uint32_t i = 0; i < graph->count; ++i) {
    next[i] = total;
    graph->nodes[i].users = users + total;
    total += graph->nodes[i].num_users;
  }
  for (uint32_t i = 0; i < collector->uses.count; ++i) {
    const use_t use = collector->uses.items[i];
    users[next[use.used]++] = use.user;
  }
  return NULL;
}

mp_status_t mp_fuse_graph_create(mp_module_t *module, mp_block_t *block, mp_arena_t *scratch,
                                 mp_fuse_graph_t *out_graph) {
  mp_fuse_graph_t *graph = out_graph;
  *graph = (mp_fuse_graph_t){.module = module, .scratch = scratch, .block = block};
  for (mp_op_t *op = block->first; op != NULL; op = op->next) op->id = graph->count++;
  graph->nodes = MP_ARENA_ARRAY(scratch, mp_fuse_node_t, graph->count + 1);
  MP_RETURN_IF_NULL(graph->nodes);
  collector_t collector = {.graph = graph};
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    mp_fuse_node_t *node = &graph->nodes[op->id];
    *node = (mp_fuse_node_t){.op = op, .group = MP_FUSE_NONE, .next = MP_FUSE_NONE};
    fuse_graph_find_member(node);
    if (node->is_member) {
      node->group = op->id;
      MP_RETURN_IF_ERROR(fuse_graph_find_sources(graph, node));
    }
    if (!mp_view_looks_through(op)) {
      MP_RETURN_IF_ERROR(fuse_graph_note_uses(&collector, op->id, op));
    }
  }
  return fuse_graph_list_users(&collector);
}
