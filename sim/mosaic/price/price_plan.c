// Prepares functions: straight code is priced once.
#include "sim/mosaic/price/price_walk.h"

typedef struct {
  mp_price_walk_t *walk;
  mp_price_value_t *values;
  uint32_t num_codes;
} planner_t;

static mp_mosaic_class_t price_plan_class(const mp_mosaic_op_t *op) {
  return mp_mosaic_op_info(op->code)->op_class;
}

static uint32_t price_plan_count(const mp_mosaic_block_t *block) {
  uint32_t count = 0;
  for (const mp_mosaic_op_t *op = block->first; op != NULL; op = op->next) ++count;
  return count;
}

static bool price_plan_breaks(const mp_mosaic_op_t *op) {
  const mp_mosaic_class_t op_class = price_plan_class(op);
  return op->num_regions > 0 || op->code == MP_MOSAIC_CALL || op_class == MP_MOSAIC_CLASS_ASYNC;
}

static bool price_plan_is_end(const mp_mosaic_op_t *op) {
  return price_plan_class(op) == MP_MOSAIC_CLASS_FLOW && !price_plan_breaks(op);
}

static mp_status_t price_plan_block(planner_t *p, const mp_mosaic_block_t *block,
                                    mp_price_plan_t **out_plan);

static mp_status_t price_plan_regions(planner_t *p, const mp_mosaic_op_t *op, mp_price_node_t *node,
                                      double *in_out_cycles) {
  const mp_price_plan_t **parts =
      MP_ARENA_ARRAY(p->walk->arena, const mp_price_plan_t *, op->num_regions + 1);
  MP_RETURN_IF_NULL(parts);
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    mp_price_plan_t *part = NULL;
    if (op->regions[r] != NULL) MP_RETURN_IF_ERROR(price_plan_block(p, op->regions[r], &part));
    parts[r] = part;
    if (part != NULL) *in_out_cycles += part->cycles;
  }
  node->parts = parts;
  return NULL;
}

// The code between two ops that break it; its node comes before the second one.
static mp_status_t price_plan_code(planner_t *p, mp_price_plan_t *plan, const mp_mosaic_op_t *first,
                                   const mp_mosaic_op_t *end) {
  mp_price_code_t *code = MP_ARENA_NEW(p->walk->arena, mp_price_code_t);
  MP_RETURN_IF_NULL(code);
  mp_price_code(p->walk->chip, first, end, ++p->num_codes, p->values, code);
  if (code->cycles == 0) return NULL;
  plan->nodes[plan->num_nodes++] = (mp_price_node_t){.kind = MP_PRICE_CODE, .code = code};
  plan->cycles += code->cycles;
  return NULL;
}

static mp_status_t price_plan_op(planner_t *p, mp_price_plan_t *plan, const mp_mosaic_op_t *op) {
  mp_price_node_t *node = &plan->nodes[plan->num_nodes++];
  *node = (mp_price_node_t){.kind = MP_PRICE_EVALUATE, .op = op};
  if (price_plan_breaks(op)) {
    plan->is_plain = false;
    node->kind = price_plan_class(op) == MP_MOSAIC_CLASS_ASYNC ? MP_PRICE_ASYNC : MP_PRICE_FLOW;
    return price_plan_regions(p, op, node, &plan->cycles);
  }
  if (price_plan_class(op) == MP_MOSAIC_CLASS_WRITE) plan->is_plain = false;
  return NULL;
}

static mp_status_t price_plan_block(planner_t *p, const mp_mosaic_block_t *block,
                                    mp_price_plan_t **out_plan) {
  mp_price_plan_t *plan = MP_ARENA_NEW(p->walk->arena, mp_price_plan_t);
  MP_RETURN_IF_NULL(plan);
  *plan = (mp_price_plan_t){.block = block, .is_plain = true};
  // Each op may have a node, and code before it.
  plan->nodes = MP_ARENA_ARRAY(p->walk->arena, mp_price_node_t, 2 * price_plan_count(block) + 1);
  MP_RETURN_IF_NULL(plan->nodes);
  const mp_mosaic_op_t *first = block->first;
  for (const mp_mosaic_op_t *op = block->first; op != NULL; op = op->next) {
    if (price_plan_is_end(op)) continue;
    if (price_plan_breaks(op)) {
      MP_RETURN_IF_ERROR(price_plan_code(p, plan, first, op));
      first = op->next;
    }
    if (!mp_price_is_code(op)) MP_RETURN_IF_ERROR(price_plan_op(p, plan, op));
  }
  MP_RETURN_IF_ERROR(price_plan_code(p, plan, first, NULL));
  *out_plan = plan;
  return NULL;
}

static mp_price_func_t *price_plan_find(mp_price_walk_t *walk, const mp_mosaic_func_t *func) {
  for (uint32_t i = 0; i < walk->num_funcs; ++i) {
    if (walk->funcs[i].func == func) return &walk->funcs[i];
  }
  return NULL;
}

mp_status_t mp_price_prepare(mp_price_walk_t *walk, const mp_mosaic_func_t *func,
                             mp_price_func_t **out_func) {
  *out_func = price_plan_find(walk, func);
  if (*out_func != NULL) return NULL;
  planner_t p = {.walk = walk};
  mp_price_plan_t *plan = NULL;
  p.values = MP_ARENA_ARRAY(walk->arena, mp_price_value_t, func->num_values);
  mp_price_slot_t *slots = MP_ARENA_ARRAY(walk->arena, mp_price_slot_t, func->num_values);
  if (p.values == NULL || slots == NULL) return mp_status_out_of_memory();
  MP_RETURN_IF_ERROR(mp_price_mark_used(walk->arena, func->body, p.values));
  MP_RETURN_IF_ERROR(price_plan_block(&p, func->body, &plan));
  *out_func = &walk->funcs[walk->num_funcs++];
  **out_func = (mp_price_func_t){.func = func, .plan = plan, .slots = slots};
  return NULL;
}
