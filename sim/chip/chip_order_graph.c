// What is done in a block, as items, and which of them waits for which.
#include "sim/chip/chip_order_impl.h"
#include "sim/plan/plan.h"
#include "sim/work/rounds.h"

typedef mp_chip_ordering_t order_t;
typedef mp_chip_order_item_t item_t;
typedef mp_combine_edge_t edge_t;

// ---- what is an item ----

static bool chip_order_graph_has_meeting(const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_regions; ++i) {
    for (const mp_op_t *in = op->regions[i]->first; in != NULL; in = in->next) {
      if (mp_plan_is_collective(in) || chip_order_graph_has_meeting(in)) return true;
    }
  }
  return false;
}

// What keeps its place: whose order is the order of what comes and goes.
static bool chip_order_graph_is_fixed(const mp_op_t *op) {
  const mp_op_role_t role = mp_op_info(op->code)->role;
  if (op->code == MP_OP_SEND || op->code == MP_OP_RECV || role == MP_OP_ROLE_COMMAND) return true;
  return role == MP_OP_ROLE_CONTROL && chip_order_graph_has_meeting(op);
}

static double chip_order_graph_block_seconds(order_t *o, const mp_block_t *block);

// Of a loop or branch; what collectives in it take is not counted.
static double chip_order_graph_control_seconds(order_t *o, const mp_op_t *op) {
  double seconds = 0;
  for (uint32_t i = 0; i < op->num_regions; ++i)
    seconds += chip_order_graph_block_seconds(o, op->regions[i]);
  const int64_t rounds = op->code == MP_OP_WHILE ? mp_work_rounds(op) : 1;
  return rounds < 0 ? seconds : seconds * (double)rounds;
}

static double chip_order_graph_seconds(order_t *o, const mp_op_t *op) {
  if (mp_plan_is_collective(op)) return 0;
  if (mp_op_info(op->code)->role == MP_OP_ROLE_CONTROL)
    return chip_order_graph_control_seconds(o, op);
  return mp_chip_kernel_seconds(o->b, op, NULL);
}

static double chip_order_graph_block_seconds(order_t *o, const mp_block_t *block) {
  double seconds = 0;
  for (const mp_op_t *op = block->first; op != NULL; op = op->next)
    seconds += chip_order_graph_seconds(o, op);
  return seconds;
}

bool mp_chip_order_is_too_small(const order_t *o, const mp_collective_t *collective) {
  return mp_overlap_is_too_small(&o->b->chip->figures, collective->kind,
                                 mp_chip_order_result_bytes(collective));
}

// What of a collective may go on beside work at the most.
mp_overlap_t mp_chip_order_overlap(const order_t *o, const mp_collective_t *collective) {
  if (mp_chip_order_is_too_small(o, collective)) return MP_OVERLAP_SYNC;
  return mp_overlap_order(&o->b->chip->figures, collective->kind,
                          mp_chip_order_num_members(collective));
}

static mp_status_t chip_order_graph_add_item(order_t *o, const mp_op_t *op, uint32_t *out_item) {
  mp_chip_builder_t *b = o->b;
  item_t item = {.is = {.op = op, .collective = ORDER_NONE, .copy = ORDER_NONE},
                 .attached = ORDER_NONE};
  *out_item = item.node = o->items.count;
  if (mp_plan_is_collective(op)) {
    MP_RETURN_IF_ERROR(mp_chip_add_collective(b, op, &item.is.collective));
    mp_chip_collective_t *one = &b->collectives.items[item.is.collective];
    const mp_chip_figures_t *figures = &b->chip->figures;
    one->overlap = mp_chip_order_overlap(o, one->collective);
    if (op->code == MP_OP_EXCHANGE && !op->by_permutes) {
      one->overlap = mp_overlap_order(figures, MP_COLLECTIVE_ALL_TO_ALL, 0);
    }
    o->has_async |= one->overlap != MP_OVERLAP_SYNC;
    MP_RETURN_IF_ERROR(b->links->seconds(b->links->context, one->collective, &item.is.seconds));
  } else if (mp_op_crosses(op)) {
    MP_RETURN_IF_ERROR(mp_chip_add_host_copy(b, op, &item.is.copy));
    item.is.seconds = b->copies.items[item.is.copy].seconds;
    o->has_async |= b->copies.items[item.is.copy].is_async;
  } else {
    const mp_chip_fusion_t *fusion = mp_chip_fusion_at(&b->fusions, op);
    item.is_matmul = fusion != NULL && fusion->work.work_class == MP_WORK_MATMUL;
    item.is.seconds = chip_order_graph_seconds(o, op);
  }
  return MP_ARRAY_PUSH(o->arena, &o->items, item);
}

// Whether something is done at the place of an op.
static bool chip_order_graph_is_item(const order_t *o, const mp_op_t *op) {
  const mp_op_role_t role = mp_op_info(op->code)->role;
  if (mp_chip_fusion_at(&o->b->fusions, op) != NULL || mp_plan_is_collective(op)) return true;
  if (mp_op_crosses(op)) return true;
  if (role == MP_OP_ROLE_CONTROL || role == MP_OP_ROLE_COMMAND) return true;
  return role != MP_OP_ROLE_KERNEL && op->num_operands > 1;
}

static mp_status_t chip_order_graph_add_edge(order_t *o, uint32_t from, uint32_t to) {
  if (from == to || from == ORDER_NONE) return NULL;
  return MP_ARRAY_PUSH(o->arena, &o->edges, (edge_t){from, to});
}

// The item reads a value: it comes after the one that makes it. What nobody makes is that of its
// operand under another type, or made by whoever reads it.
static mp_status_t chip_order_graph_read(order_t *o, const mp_block_t *block,
                                         const mp_value_t *value, uint32_t item) {
  while (value->op != NULL && value->op->parent == block) {
    // Barriers of remat are not there for what comes from the host.
    if (value->op->code == MP_OP_OPTIMIZATION_BARRIER && value->is_on_host) {
      value = value->op->operands[value->index];
      continue;
    }
    const uint32_t from = o->b->items[value->op->id];
    if (from != ORDER_NONE) return chip_order_graph_add_edge(o, from, item);
    if (value->op->num_operands == 0) return NULL;
    // What was copied into an array on the host.
    if (value->op->code == MP_OP_DYNAMIC_UPDATE_SLICE && value->is_on_host) {
      MP_RETURN_IF_ERROR(chip_order_graph_read(o, block, value->op->operands[1], item));
    }
    value = value->op->operands[0];
  }
  return NULL;
}

// ---- what comes before what ----

static mp_status_t chip_order_graph_read_fusion(order_t *o, const mp_chip_fusion_t *fusion,
                                                uint32_t item) {
  const mp_chip_fusion_access_t *accesses = mp_chip_fusion_accesses(&o->b->fusions, fusion);
  for (uint32_t i = 0; i < fusion->num_reads; ++i) {
    MP_RETURN_IF_ERROR(chip_order_graph_read(o, fusion->block, accesses[i].value, item));
  }
  return NULL;
}

// The item makes the results of an op, or those that its fusion writes.
static void chip_order_graph_write(order_t *o, const mp_op_t *op, uint32_t item) {
  const mp_chip_fusion_t *fusion = mp_chip_fusion_at(&o->b->fusions, op);
  if (fusion == NULL) {
    o->b->items[op->id] = item;
    return;
  }
  const mp_chip_fusion_access_t *accesses = mp_chip_fusion_accesses(&o->b->fusions, fusion);
  for (uint32_t i = 0; i < fusion->num_writes; ++i) {
    const mp_value_t *value = accesses[fusion->num_reads + i].value;
    if (value->op != NULL) o->b->items[value->op->id] = item;
  }
}

static mp_status_t chip_order_graph_read_all(order_t *o, const mp_op_t *op, uint32_t item) {
  const mp_chip_fusion_t *fusion = mp_chip_fusion_at(&o->b->fusions, op);
  if (fusion != NULL) return chip_order_graph_read_fusion(o, fusion, item);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(chip_order_graph_read(o, op->parent, op->operands[i], item));
  }
  if (op->num_regions == 0) return NULL;
  uint32_t count = 0;
  mp_value_t **captures = NULL;
  MP_RETURN_IF_ERROR(mp_op_captures(op, o->arena, &captures, &count));
  for (uint32_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(chip_order_graph_read(o, op->parent, captures[i], item));
  }
  return NULL;
}

// An op is done at its place, before those that read what it makes.
static mp_status_t chip_order_graph_find_items(order_t *o, const mp_block_t *block) {
  for (const mp_op_t *op = block->first; op != block->last; op = op->next) {
    if (!chip_order_graph_is_item(o, op)) continue;
    uint32_t item;
    MP_RETURN_IF_ERROR(chip_order_graph_add_item(o, op, &item));
    chip_order_graph_write(o, op, item);
  }
  return NULL;
}

static mp_status_t chip_order_graph_find_edges(order_t *o) {
  for (uint32_t item = 0; item < o->items.count; ++item) {
    const mp_op_t *op = o->items.items[item].is.op;
    MP_RETURN_IF_ERROR(chip_order_graph_read_all(o, op, item));
    if (!chip_order_graph_is_fixed(op)) continue;
    MP_RETURN_IF_ERROR(chip_order_graph_add_edge(o, o->last_fixed, item));
    o->last_fixed = item;
  }
  return NULL;
}

mp_status_t mp_chip_order_find_graph(order_t *o, const mp_block_t *block) {
  MP_RETURN_IF_ERROR(chip_order_graph_find_items(o, block));
  return chip_order_graph_find_edges(o);
}
