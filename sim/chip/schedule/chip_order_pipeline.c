// Pipelined collectives and host copies: a loop runs them one iteration early or late, so they need
// not wait, or be waited for, in their own iteration.
#include "sim/chip/rules/chip_policy.h"
#include "sim/chip/schedule/chip_order_impl.h"

typedef mp_chip_ordering_t order_t;

// Whether an item is a kernel other than a matmul: it may run between a carried value and a
// pipelined collective.
static bool chip_order_pipeline_is_light(const mp_chip_item_t *item) {
  return mp_op_info(item->op->code)->role == MP_OP_ROLE_KERNEL && !item->is_matmul &&
         item->copy == ORDER_NONE && item->collective == ORDER_NONE;
}

// For each item, whether all items that it depends on in the block are light; with `is_back`,
// whether all items that depend on it are. One pass suffices: edges are sorted, and lead to later
// items.
static void chip_order_pipeline_find_light(const order_t *o, bool is_back, uint8_t *lights) {
  const uint32_t count = o->edges.count;
  for (uint32_t i = 0; i < o->items.count; ++i) lights[i] = 1;
  for (uint32_t k = 0; k < count; ++k) {
    const mp_edge_t *edge = &o->edges.items[is_back ? count - 1 - k : k];
    const uint32_t from = is_back ? edge->to : edge->from, to = is_back ? edge->from : edge->to;
    lights[to] &= lights[from] && chip_order_pipeline_is_light(&o->items.items[from]);
  }
}

// Whether a loop copies from the host one iteration early, in programs for several devices. The
// copy of the first iteration, before the loop, is not counted.
static bool chip_order_pipeline_fetches_early(const order_t *o) {
  const mp_program_t *program = o->c->program;
  return mp_chip_policy(&o->c->chip->figures)->fetches_early &&
         (uint64_t)program->num_replicas * program->num_partitions > 1;
}

static bool chip_order_pipeline_is_fetch(const order_t *o, uint32_t item) {
  const uint32_t copy = o->items.items[item].copy;
  return copy != ORDER_NONE && !o->c->copies.items[copy].is_to_host;
}

// An all_gather of what a loop carries may run one iteration early, and so may a host copy: no item
// waits for them. A sum for what the loop carries may run one iteration late: it waits for no item.
mp_status_t mp_chip_order_pipeline(order_t *o, const mp_block_t *block) {
  const bool is_loop = block->parent_op != NULL && block->parent_op->code == MP_OP_WHILE;
  const bool may_meet = o->c->chip->figures.overlap_pipeline > 0;
  const bool may_fetch = chip_order_pipeline_fetches_early(o);
  if (!is_loop || (!may_meet && !may_fetch)) return NULL;
  uint8_t *before = MP_ARENA_ARRAY(o->arena, uint8_t, (size_t)o->items.count + 1);
  uint8_t *after = MP_ARENA_ARRAY(o->arena, uint8_t, (size_t)o->items.count + 1);
  MP_RETURN_IF_NULL(before);
  MP_RETURN_IF_NULL(after);
  chip_order_pipeline_find_light(o, false, before);
  chip_order_pipeline_find_light(o, true, after);
  uint32_t count = 0;
  for (uint32_t e = 0; e < o->edges.count; ++e) {
    const mp_edge_t edge = o->edges.items[e];
    const bool is_gather = may_meet && mp_chip_order_kind(o, edge.from) == MP_COLLECTIVE_ALL_GATHER;
    const bool is_fetch = may_fetch && chip_order_pipeline_is_fetch(o, edge.from);
    const bool is_early = before[edge.from] && (is_gather || is_fetch);
    const uint32_t kind = may_meet ? mp_chip_order_kind(o, edge.to) : MP_COLLECTIVE_KINDS;
    const bool is_late = kind == MP_COLLECTIVE_REDUCE_SCATTER || kind == MP_COLLECTIVE_ALL_REDUCE;
    if (is_early || (is_late && after[edge.to])) continue;
    o->edges.items[count++] = edge;
  }
  o->edges.count = count;
  return NULL;
}
