#include "sim/mosaic/price/price_walk.h"

#include <math.h>

static mp_status_t price_walk_plan(mp_price_walk_t *walk, mp_price_func_t *func,
                                   const mp_price_plan_t *plan);

static void price_walk_spend(mp_price_walk_t *walk, double cycles) {
  walk->now += cycles;
  walk->compute += cycles;
}

static void price_walk_overhead(mp_price_walk_t *walk, double cycles) {
  if (!walk->chip->rules.overhead) return;
  price_walk_spend(walk, cycles);
  walk->units[MP_PRICE_SCALAR] += cycles;
}

static void price_walk_code(mp_price_walk_t *walk, const mp_price_code_t *code, double times) {
  price_walk_spend(walk, code->cycles * times);
  walk->flops += code->flops * times;
  for (int u = 0; u < MP_PRICE_UNIT_COUNT; ++u) walk->units[u] += code->units[u] * times;
}

// ---- values of regions ----

static void price_walk_move(mp_price_func_t *func, mp_mosaic_value_t *const *from,
                            const mp_mosaic_value_t *to, uint32_t count) {
  // All are read before one is written: loops exchange their values.
  enum { FEW = 16 };
  mp_price_slot_t few[FEW];
  for (uint32_t first = 0; first < count; first += FEW) {
    const uint32_t end = count - first < FEW ? count - first : FEW;
    for (uint32_t i = 0; i < end; ++i) few[i] = func->slots[from[first + i]->id];
    for (uint32_t i = 0; i < end; ++i) func->slots[to[first + i].id] = few[i];
  }
}

static void price_walk_forget(mp_price_func_t *func, const mp_mosaic_value_t *values,
                              uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) func->slots[values[i].id].is_known = false;
}

// The operands of a block's last op: what it yields, after `skip` of them.
static void price_walk_take(mp_price_func_t *func, const mp_mosaic_block_t *block, uint32_t skip,
                            const mp_mosaic_value_t *to, uint32_t count) {
  const mp_mosaic_op_t *end = block->last;
  if (end == NULL || end->num_operands < skip + count) {
    price_walk_forget(func, to, count);
    return;
  }
  price_walk_move(func, end->operands + skip, to, count);
}

// ---- conditions ----

static mp_status_t price_walk_region(mp_price_walk_t *walk, mp_price_func_t *func,
                                     const mp_price_node_t *node, uint32_t region) {
  const mp_price_plan_t *plan = region < node->op->num_regions ? node->parts[region] : NULL;
  price_walk_overhead(walk, mp_price_core(walk->chip)->condition);
  if (plan == NULL) return NULL;
  MP_RETURN_IF_ERROR(price_walk_plan(walk, func, plan));
  price_walk_take(func, plan->block, 0, node->op->results, node->op->num_results);
  return NULL;
}

// The region with the most code.
static uint32_t price_walk_longest(mp_price_walk_t *walk, const mp_price_node_t *node) {
  uint32_t longest = 0;
  double most = -1;
  walk->is_guessed = true;
  for (uint32_t r = 0; r < node->op->num_regions; ++r) {
    const double cycles = node->parts[r] == NULL ? 0 : node->parts[r]->cycles;
    if (cycles <= most) continue;
    most = cycles;
    longest = r;
  }
  return longest;
}

static mp_status_t price_walk_if(mp_price_walk_t *walk, mp_price_func_t *func,
                                 const mp_price_node_t *node) {
  const mp_price_slot_t *condition = &func->slots[node->op->operands[0]->id];
  const uint32_t region = !condition->is_known     ? price_walk_longest(walk, node)
                          : condition->number != 0 ? 0
                                                   : 1;
  const bool is_guess = !condition->is_known;
  MP_RETURN_IF_ERROR(price_walk_region(walk, func, node, region));
  if (is_guess) price_walk_forget(func, node->op->results, node->op->num_results);
  return NULL;
}

static mp_status_t price_walk_switch(mp_price_walk_t *walk, mp_price_func_t *func,
                                     const mp_price_node_t *node) {
  const mp_price_slot_t *index = &func->slots[node->op->operands[0]->id];
  const mp_mosaic_attr_t *cases = mp_mosaic_op_attr(node->op, "cases");
  if (!index->is_known || cases == NULL || cases->kind != MP_MOSAIC_INTS)
    return price_walk_region(walk, func, node, price_walk_longest(walk, node));
  for (uint32_t i = 0; i < cases->ints.count; ++i) {
    if (cases->ints.values[i] == index->number) return price_walk_region(walk, func, node, i + 1);
  }
  return price_walk_region(walk, func, node, 0);
}

// ---- loops ----

typedef struct {
  double now, compute, wait, copies, bytes, flops;
  double units[MP_PRICE_UNIT_COUNT];
} totals_t;

static totals_t price_walk_totals(const mp_price_walk_t *walk) {
  totals_t t = {walk->now, walk->compute, walk->wait, walk->copies, walk->bytes, walk->flops, {0}};
  for (int u = 0; u < MP_PRICE_UNIT_COUNT; ++u) t.units[u] = walk->units[u];
  return t;
}

// Adds what has come since `before`, so many times more.
static void price_walk_repeat(mp_price_walk_t *walk, const totals_t *before, double times) {
  walk->is_sampled = true;
  walk->dma_free += (walk->now - before->now) * times;
  walk->now += (walk->now - before->now) * times;
  walk->compute += (walk->compute - before->compute) * times;
  walk->wait += (walk->wait - before->wait) * times;
  walk->copies += (walk->copies - before->copies) * times;
  walk->bytes += (walk->bytes - before->bytes) * times;
  walk->flops += (walk->flops - before->flops) * times;
  for (int u = 0; u < MP_PRICE_UNIT_COUNT; ++u)
    walk->units[u] += (walk->units[u] - before->units[u]) * times;
}

// A body of code alone, whose results are no scalars, is not run round by round.
static bool price_walk_is_simple(const mp_price_node_t *node) {
  if (node->parts[0] == NULL || !node->parts[0]->is_plain) return false;
  for (uint32_t i = 0; i < node->op->num_results; ++i) {
    if (node->op->results[i].type->kind != MP_MOSAIC_VECTOR) return false;
  }
  return true;
}

static void price_walk_simple(mp_price_walk_t *walk, const mp_price_plan_t *plan, double rounds) {
  for (uint32_t i = 0; i < plan->num_nodes; ++i) {
    if (plan->nodes[i].kind == MP_PRICE_CODE) price_walk_code(walk, plan->nodes[i].code, rounds);
  }
  price_walk_overhead(walk, mp_price_core(walk->chip)->iteration * rounds);
}

// The rounds of a loop; 1 if its bounds are not known.
static int64_t price_walk_rounds(mp_price_walk_t *walk, const mp_price_func_t *func,
                                 const mp_mosaic_op_t *op) {
  const mp_price_slot_t *begin = &func->slots[op->operands[0]->id];
  const mp_price_slot_t *end = &func->slots[op->operands[1]->id];
  const mp_price_slot_t *step = &func->slots[op->operands[2]->id];
  if (!begin->is_known || !end->is_known || !step->is_known || step->number < 1) {
    walk->is_guessed = true;
    return 1;
  }
  if (begin->number >= end->number) return 0;
  const uint64_t length = (uint64_t)end->number - (uint64_t)begin->number;
  return (int64_t)((length - 1) / (uint64_t)step->number + 1);
}

static mp_status_t price_walk_for(mp_price_walk_t *walk, mp_price_func_t *func,
                                  const mp_price_node_t *node) {
  const mp_mosaic_op_t *op = node->op;
  const mp_mosaic_block_t *body = op->regions[0];
  const int64_t rounds = price_walk_rounds(walk, func, op);
  const uint32_t carried = op->num_results;
  if (price_walk_is_simple(node)) {
    price_walk_simple(walk, node->parts[0], (double)rounds);
    return NULL;
  }
  const mp_price_slot_t begin = func->slots[op->operands[0]->id];
  const int64_t step = func->slots[op->operands[2]->id].number;
  const totals_t before = price_walk_totals(walk);
  price_walk_move(func, op->operands + 3, body->args + 1, carried);
  for (int64_t i = 0; i < rounds; ++i) {
    if (++walk->evaluated > MP_PRICE_EVALUATIONS && i > 0) {
      price_walk_repeat(walk, &before, (double)(rounds - i) / (double)i);
      price_walk_forget(func, op->results, carried);
      return NULL;
    }
    func->slots[body->args[0].id] = (mp_price_slot_t){
        .is_known = begin.is_known,
        .number = (int64_t)((uint64_t)begin.number + (uint64_t)i * (uint64_t)step)};
    price_walk_overhead(walk, mp_price_core(walk->chip)->iteration);
    MP_RETURN_IF_ERROR(price_walk_plan(walk, func, node->parts[0]));
    price_walk_take(func, body, 0, body->args + 1, carried);
  }
  for (uint32_t i = 0; i < carried; ++i)
    func->slots[op->results[i].id] = func->slots[body->args[1 + i].id];
  return NULL;
}

static mp_status_t price_walk_while(mp_price_walk_t *walk, mp_price_func_t *func,
                                    const mp_price_node_t *node) {
  const mp_mosaic_op_t *op = node->op;
  const mp_mosaic_block_t *before = op->regions[0], *after = op->regions[1];
  price_walk_move(func, op->operands, before->args, before->num_args);
  for (bool is_guess = false;;) {
    MP_RETURN_IF_ERROR(price_walk_plan(walk, func, node->parts[0]));
    const mp_price_slot_t condition = func->slots[before->last->operands[0]->id];
    price_walk_take(func, before, 1, after->args, after->num_args);
    if (is_guess || (condition.is_known && condition.number == 0)) break;
    if (!condition.is_known || ++walk->evaluated > MP_PRICE_EVALUATIONS) {
      is_guess = true;
      walk->is_guessed = true;
    }
    price_walk_overhead(walk, mp_price_core(walk->chip)->iteration);
    MP_RETURN_IF_ERROR(price_walk_plan(walk, func, node->parts[1]));
    price_walk_take(func, after, 0, before->args, before->num_args);
  }
  for (uint32_t i = 0; i < op->num_results && i < after->num_args; ++i)
    func->slots[op->results[i].id] = func->slots[after->args[i].id];
  return NULL;
}

// ---- calls ----

static mp_status_t price_walk_call(mp_price_walk_t *walk, mp_price_func_t *func,
                                   const mp_mosaic_op_t *op) {
  const mp_mosaic_attr_t *name = mp_mosaic_op_attr(op, "callee");
  mp_price_func_t *called = NULL;
  const mp_mosaic_func_t *found =
      name == NULL ? NULL : mp_mosaic_find_func(walk->module, name->str);
  if (found == NULL || found->body->num_args != op->num_operands)
    return mp_mosaic_op_error(op, MP_INVALID_ARGUMENT, "it calls a function that does not exist");
  MP_RETURN_IF_ERROR(mp_price_prepare(walk, found, &called));
  for (uint32_t i = 0; i < op->num_operands; ++i)
    called->slots[found->body->args[i].id] = func->slots[op->operands[i]->id];
  MP_RETURN_IF_ERROR(mp_price_run(walk, called));
  const mp_mosaic_op_t *end = found->body->last;
  for (uint32_t i = 0; i < op->num_results && i < end->num_operands; ++i)
    func->slots[op->results[i].id] = called->slots[end->operands[i]->id];
  return NULL;
}

static mp_status_t price_walk_flow(mp_price_walk_t *walk, mp_price_func_t *func,
                                   const mp_price_node_t *node) {
  switch (node->op->code) {
    case MP_MOSAIC_IF:
      return price_walk_if(walk, func, node);
    case MP_MOSAIC_INDEX_SWITCH:
      return price_walk_switch(walk, func, node);
    case MP_MOSAIC_FOR:
      return price_walk_for(walk, func, node);
    case MP_MOSAIC_WHILE:
      return price_walk_while(walk, func, node);
    case MP_MOSAIC_CALL:
      return price_walk_call(walk, func, node->op);
    default:
      if (node->parts[0] == NULL) return NULL;
      MP_RETURN_IF_ERROR(price_walk_plan(walk, func, node->parts[0]));
      price_walk_take(func, node->parts[0]->block, 0, node->op->results, node->op->num_results);
      return NULL;
  }
}

static mp_status_t price_walk_plan(mp_price_walk_t *walk, mp_price_func_t *func,
                                   const mp_price_plan_t *plan) {
  for (uint32_t i = 0; i < plan->num_nodes; ++i) {
    const mp_price_node_t *node = &plan->nodes[i];
    switch (node->kind) {
      case MP_PRICE_CODE:
        price_walk_code(walk, node->code, 1);
        break;
      case MP_PRICE_EVALUATE:
        MP_RETURN_IF_ERROR(mp_price_evaluate(walk, func, node->op));
        break;
      case MP_PRICE_FLOW:
        MP_RETURN_IF_ERROR(price_walk_flow(walk, func, node));
        break;
      case MP_PRICE_ASYNC:
        mp_price_async(walk, func, node->op);
        break;
    }
  }
  return NULL;
}

mp_status_t mp_price_run(mp_price_walk_t *walk, mp_price_func_t *func) {
  return price_walk_plan(walk, func, func->plan);
}
