// Collectives and copies that a loop does in the round before or behind: they need not wait, or be
// waited for, in their own.
#include "sim/chip/chip_order_impl.h"
#include "sim/chip/rules/chip_rules.h"

typedef mp_chip_ordering_t order_t;
typedef mp_chip_order_item_t item_t;
typedef mp_combine_edge_t edge_t;

// Whether an item only moves what a loop carries to a collective, or from it.
static bool chip_order_rounds_is_light(const item_t *item) {
  const bool is_work =
      item->is.copy == ORDER_NONE && mp_op_info(item->is.op->code)->role == MP_OP_ROLE_KERNEL;
  return is_work && !item->is_matmul && item->is.collective == ORDER_NONE;
}

// Of each item, whether all that it comes of in the block is light, or all that comes of it. Edges
// lead to later items, and are in their order.
static void chip_order_rounds_find_light(const order_t *o, bool is_back, uint8_t *lights) {
  const uint32_t count = o->edges.count;
  for (uint32_t i = 0; i < o->items.count; ++i) lights[i] = 1;
  for (uint32_t k = 0; k < count; ++k) {
    const edge_t *edge = &o->edges.items[is_back ? count - 1 - k : k];
    const uint32_t from = is_back ? edge->to : edge->from, to = is_back ? edge->from : edge->to;
    lights[to] &= lights[from] && chip_order_rounds_is_light(&o->items.items[from]);
  }
}

// Whether copies from the host are made in the round before. So does the TPU's compiler in programs
// for several devices; the first round's, before the loop, is not counted.
static bool chip_order_rounds_fetches_early(const order_t *o) {
  const mp_program_t *program = o->b->program;
  return o->b->chip->figures.compiler == MP_CHIP_COMPILER_TPU &&
         (uint64_t)program->num_replicas * program->num_partitions > 1;
}

static bool chip_order_rounds_is_fetch(const order_t *o, uint32_t item) {
  const uint32_t copy = o->items.items[item].is.copy;
  return copy != ORDER_NONE && !o->b->copies.items[copy].is_to_host;
}

// A gather of what a loop carries may be done in the round before, a sum for what it carries in the
// one behind: such a collective waits for nobody in its round, or nobody for it. So may a copy from
// the host.
mp_status_t mp_chip_order_pipeline(order_t *o, const mp_block_t *block) {
  const bool is_loop = block->parent_op != NULL && block->parent_op->code == MP_OP_WHILE;
  const bool may_meet = o->b->chip->figures.overlap_pipeline > 0;
  const bool may_fetch = chip_order_rounds_fetches_early(o);
  if (!is_loop || (!may_meet && !may_fetch)) return NULL;
  uint8_t *before = MP_ARENA_ARRAY(o->arena, uint8_t, (size_t)o->items.count + 1);
  uint8_t *behind = MP_ARENA_ARRAY(o->arena, uint8_t, (size_t)o->items.count + 1);
  MP_RETURN_IF_NULL(before);
  MP_RETURN_IF_NULL(behind);
  chip_order_rounds_find_light(o, false, before);
  chip_order_rounds_find_light(o, true, behind);
  uint32_t count = 0;
  for (uint32_t e = 0; e < o->edges.count; ++e) {
    const edge_t edge = o->edges.items[e];
    const bool is_gather = may_meet && mp_chip_order_kind(o, edge.from) == MP_COLLECTIVE_ALL_GATHER;
    const bool is_fetch = may_fetch && chip_order_rounds_is_fetch(o, edge.from);
    const bool is_early = before[edge.from] &&
                          (is_gather || (is_fetch && mp_chip_rule(&o->b->chip->figures,
                                                                  MP_CHIP_RULE_host_fetch_early)));
    const uint32_t kind = may_meet ? mp_chip_order_kind(o, edge.to) : MP_COLLECTIVE_KINDS;
    const bool is_late = kind == MP_COLLECTIVE_REDUCE_SCATTER || kind == MP_COLLECTIVE_ALL_REDUCE;
    if (is_early || (is_late && behind[edge.to])) continue;
    o->edges.items[count++] = edge;
  }
  o->edges.count = count;
  return NULL;
}
