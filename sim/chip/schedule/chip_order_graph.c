// Finds the items of a block and the dependencies between them.
#include "sim/base/assert.h"
#include "sim/chip/schedule/chip_order_impl.h"
#include "sim/plan/plan.h"
#include "sim/work/rounds.h"

typedef mp_chip_ordering_t order_t;
typedef mp_chip_item_t item_t;

// ---- what is an item ----

// Whether the op is one of those that keep the order of the program: devices meet and send messages
// in that order.
static bool chip_order_graph_is_fixed(const mp_op_t *op) {
  const mp_op_role_t role = mp_op_info(op->code)->role;
  if (op->code == MP_OP_SEND || op->code == MP_OP_RECV || role == MP_OP_ROLE_COMMAND) return true;
  return role == MP_OP_ROLE_CONTROL && mp_communication_is_in(op);
}

// The estimated seconds of a fusion, loop or branch, without its collectives. A branch counts all
// of its regions, a loop with an unknown trip count one iteration.
static double chip_order_graph_seconds(const order_t *o, const mp_op_t *op) {
  double seconds = 0;
  for (uint32_t i = 0; i < op->num_regions; ++i) {
    for (const mp_op_t *in = op->regions[i]->first; in != NULL; in = in->next) {
      seconds += chip_order_graph_seconds(o, in);
    }
  }
  const int64_t trip_count = op->code == MP_OP_WHILE ? mp_work_rounds(op) : 1;
  if (trip_count > 0) seconds *= (double)trip_count;
  return seconds + mp_chip_order_kernel_seconds(o, op, (mp_ring_matmul_t){0});
}

static mp_status_t chip_order_graph_add_item(order_t *o, const mp_op_t *op, uint32_t *out_item) {
  mp_communication_t *c = o->c;
  item_t item = {.op = op, .collective = ORDER_NONE, .copy = ORDER_NONE, .messages = ORDER_NONE};
  *out_item = item.node = o->items.count;
  if (mp_plan_is_collective(op)) {
    MP_RETURN_IF_ERROR(mp_communication_add(c, op, &item.collective));
    mp_chip_collective_t *one = &c->collectives.items[item.collective];
    one->overlap = op->code == MP_OP_EXCHANGE && !op->by_permutes
                       ? mp_overlap_order(&c->chip->figures, MP_COLLECTIVE_ALL_TO_ALL, 0)
                       : mp_chip_order_overlap(o, one->collective);
    MP_RETURN_IF_ERROR(c->links->seconds(c->links->context, one->collective, &item.seconds));
  } else if (mp_op_crosses(op)) {
    MP_RETURN_IF_ERROR(mp_communication_add_copy(c, op, &item.copy));
    item.seconds = c->copies.items[item.copy].seconds;
  } else {
    const mp_chip_fusion_t *fusion = mp_chip_fusion_at(c->fusions, op);
    item.is_matmul = fusion != NULL && fusion->work.work_class == MP_WORK_MATMUL;
    item.seconds = chip_order_graph_seconds(o, op);
  }
  return MP_ARRAY_PUSH(c->scratch, &o->items, item);
}

// Whether the op is an item: a fusion, collective, host copy, command, loop, branch, or a barrier
// of several values.
static bool chip_order_graph_is_item(const order_t *o, const mp_op_t *op) {
  const mp_op_role_t role = mp_op_info(op->code)->role;
  if (mp_chip_fusion_at(o->c->fusions, op) != NULL || mp_plan_is_collective(op)) return true;
  if (mp_op_crosses(op)) return true;
  if (role == MP_OP_ROLE_CONTROL || role == MP_OP_ROLE_COMMAND) return true;
  return role != MP_OP_ROLE_KERNEL && op->num_operands > 1;
}

static mp_status_t chip_order_graph_add_edge(order_t *o, uint32_t from, uint32_t to) {
  if (from == to || from == ORDER_NONE) return NULL;
  MP_ASSERT(o->edges.count == 0 || o->edges.items[o->edges.count - 1].to <= to);  // sorted
  return MP_ARRAY_PUSH(o->arena, &o->edges, (mp_edge_t){from, to});
}

// The item reads a value, so it depends on the item that produces the value. If no item does, the
// value is an alias of its first operand, or each reader computes it from that operand.
static mp_status_t chip_order_graph_read(order_t *o, const mp_block_t *block,
                                         const mp_value_t *value, uint32_t item) {
  while (value->op != NULL && value->op->parent == block) {
    // Optimization barriers of rematerialization do not hold back values on the host.
    if (value->op->code == MP_OP_OPTIMIZATION_BARRIER && value->is_on_host) {
      value = value->op->operands[value->index];
      continue;
    }
    const uint32_t from = o->c->items[value->op->id];
    if (from != ORDER_NONE) return chip_order_graph_add_edge(o, from, item);
    if (value->op->num_operands == 0) return NULL;
    // An array on the host also depends on the slice that was copied into it.
    if (value->op->code == MP_OP_DYNAMIC_UPDATE_SLICE && value->is_on_host) {
      MP_RETURN_IF_ERROR(chip_order_graph_read(o, block, value->op->operands[1], item));
    }
    value = value->op->operands[0];
  }
  return NULL;
}

// ---- dependencies ----

static mp_status_t chip_order_graph_read_fusion(order_t *o, const mp_chip_fusion_t *fusion,
                                                uint32_t item) {
  const mp_chip_fusion_access_t *accesses = mp_chip_fusion_accesses(o->c->fusions, fusion);
  for (uint32_t i = 0; i < fusion->num_reads; ++i) {
    MP_RETURN_IF_ERROR(chip_order_graph_read(o, fusion->block, accesses[i].value, item));
  }
  return NULL;
}

// Notes the item as the producer of what the op's fusion writes; without one, of the op's results.
static void chip_order_graph_write(order_t *o, const mp_op_t *op, uint32_t item) {
  const mp_chip_fusion_t *fusion = mp_chip_fusion_at(o->c->fusions, op);
  if (fusion == NULL) {
    o->c->items[op->id] = item;
    return;
  }
  const mp_chip_fusion_access_t *accesses = mp_chip_fusion_accesses(o->c->fusions, fusion);
  for (uint32_t i = 0; i < fusion->num_writes; ++i) {
    const mp_value_t *value = accesses[fusion->num_reads + i].value;
    if (value->op != NULL) o->c->items[value->op->id] = item;
  }
}

static mp_status_t chip_order_graph_read_all(order_t *o, const mp_op_t *op, uint32_t item) {
  const mp_chip_fusion_t *fusion = mp_chip_fusion_at(o->c->fusions, op);
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

// Finds all items before any dependency: a fusion writes results of earlier ops, too.
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
  uint32_t last_fixed = ORDER_NONE;
  for (uint32_t item = 0; item < o->items.count; ++item) {
    const mp_op_t *op = o->items.items[item].op;
    MP_RETURN_IF_ERROR(chip_order_graph_read_all(o, op, item));
    if (!chip_order_graph_is_fixed(op)) continue;
    MP_RETURN_IF_ERROR(chip_order_graph_add_edge(o, last_fixed, item));
    last_fixed = item;
  }
  return NULL;
}

mp_status_t mp_chip_order_find_graph(order_t *o, const mp_block_t *block) {
  MP_RETURN_IF_ERROR(chip_order_graph_find_items(o, block));
  return chip_order_graph_find_edges(o);
}
