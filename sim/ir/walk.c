// Traversals: visiting ops, numbering values, finding what regions capture.
//
// Recursion follows the nesting of regions, which the readers bound.
#include "sim/ir/module.h"

#include <string.h>

mp_status_t mp_block_walk(mp_block_t *block, mp_op_visitor_t visit, void *context) {
  for (mp_op_t *op = block->first, *next; op != NULL; op = next) {
    next = op->next;
    MP_RETURN_IF_ERROR(visit(context, op));
    if (op->parent == NULL) continue;
    for (uint32_t i = 0; i < op->num_regions; ++i)
      MP_RETURN_IF_ERROR(mp_block_walk(op->regions[i], visit, context));
  }
  return NULL;
}

mp_status_t mp_module_walk(mp_module_t *module, mp_op_visitor_t visit, void *context) {
  for (mp_func_t *func = module->first_func; func != NULL; func = func->next)
    MP_RETURN_IF_ERROR(mp_block_walk(func->body, visit, context));
  return NULL;
}

static uint32_t walk_number_block(mp_block_t *block, uint32_t next_id) {
  for (uint32_t i = 0; i < block->num_args; ++i) block->args[i].id = next_id++;
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    for (uint32_t i = 0; i < op->num_regions; ++i)
      next_id = walk_number_block(op->regions[i], next_id);
    for (uint32_t i = 0; i < op->num_results; ++i) op->results[i].id = next_id++;
  }
  return next_id;
}

uint32_t mp_module_number_values(mp_module_t *module) {
  uint32_t next_id = 0;
  for (mp_func_t *func = module->first_func; func != NULL; func = func->next)
    next_id = walk_number_block(func->body, next_id);
  return next_id;
}

// ---- captures ----

// A list of distinct values with an open-addressing table beside it (capacity a power of two, at
// most half full).
typedef struct {
  mp_arena_t *arena;
  mp_value_t **list;
  mp_value_t **slots;
  uint32_t count;
  uint32_t capacity;
} value_set_t;

static mp_value_t **walk_find_slot(mp_value_t **slots, uint32_t capacity, const mp_value_t *value) {
  uint32_t i = (uint32_t)(((uintptr_t)value >> 4) * 2654435761u) & (capacity - 1);
  while (slots[i] != NULL && slots[i] != value) i = (i + 1) & (capacity - 1);
  return &slots[i];
}

static mp_status_t walk_set_grow(value_set_t *set) {
  uint32_t capacity = set->capacity == 0 ? 16 : set->capacity * 2;
  mp_value_t **slots = MP_ARENA_ARRAY(set->arena, mp_value_t *, capacity);
  mp_value_t **list = MP_ARENA_ARRAY(set->arena, mp_value_t *, capacity / 2);
  if (slots == NULL || list == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < set->count; ++i) {
    list[i] = set->list[i];
    *walk_find_slot(slots, capacity, list[i]) = list[i];
  }
  set->slots = slots;
  set->list = list;
  set->capacity = capacity;
  return NULL;
}

static mp_status_t walk_set_add(value_set_t *set, mp_value_t *value) {
  if (set->count * 2 >= set->capacity) MP_RETURN_IF_ERROR(walk_set_grow(set));
  mp_value_t **slot = walk_find_slot(set->slots, set->capacity, value);
  if (*slot != NULL) return NULL;
  *slot = value;
  set->list[set->count++] = value;
  return NULL;
}

static bool walk_is_inside(const mp_value_t *value, const mp_op_t *op) {
  const mp_block_t *block = value->op != NULL ? value->op->parent : value->block;
  while (block != NULL && block->parent_op != NULL) {
    if (block->parent_op == op) return true;
    block = block->parent_op->parent;
  }
  return false;
}

typedef struct {
  const mp_op_t *op;
  value_set_t set;
} captures_t;

static mp_status_t walk_collect(void *context, mp_op_t *op) {
  captures_t *captures = context;
  for (uint32_t i = 0; i < op->num_operands; ++i)
    if (!walk_is_inside(op->operands[i], captures->op))
      MP_RETURN_IF_ERROR(walk_set_add(&captures->set, op->operands[i]));
  return NULL;
}

mp_status_t mp_op_captures(const mp_op_t *op, mp_arena_t *arena, mp_value_t ***out_values,
                           uint32_t *out_count) {
  captures_t captures = {.op = op, .set = {.arena = arena}};
  for (uint32_t i = 0; i < op->num_regions; ++i)
    MP_RETURN_IF_ERROR(mp_block_walk(op->regions[i], walk_collect, &captures));
  *out_values = captures.set.list;
  *out_count = captures.set.count;
  return NULL;
}
