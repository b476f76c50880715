// Traversals: visiting ops, numbering values, finding what regions capture.
//
// Recursion follows the nesting of regions, which the readers bound.
#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"
#include "sim/ir/module.h"

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
  for (mp_func_t *func = module->funcs.first; func != NULL; func = func->next)
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
  for (mp_func_t *func = module->funcs.first; func != NULL; func = func->next)
    next_id = walk_number_block(func->body, next_id);
  return next_id;
}

// What a TPU kernel does may depend on values, too.
static bool walk_has_choices(const mp_op_t *op) {
  return mp_op_info(op->code)->role == MP_OP_ROLE_CONTROL ||
         (op->code == MP_OP_CUSTOM_CALL &&
          mp_str_is(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME), "tpu_custom_call"));
}

static mp_status_t walk_number_control(void *context, mp_op_t *op) {
  uint32_t *count = context;
  if (walk_has_choices(op)) op->control = ++*count;
  return NULL;
}

mp_status_t mp_module_number_control(mp_module_t *module) {
  uint32_t count = 0;
  return mp_block_walk(module->main->body, walk_number_control, &count);
}

// ---- captures ----

static bool walk_is_inside(const mp_value_t *value, const mp_op_t *op) {
  const mp_block_t *block = value->op != NULL ? value->op->parent : value->block;
  while (block != NULL && block->parent_op != NULL) {
    if (block->parent_op == op) return true;
    block = block->parent_op->parent;
  }
  return false;
}

typedef struct {
  uint64_t hash;  // of the pointer to a value
} captured_t;

typedef struct {
  const mp_op_t *op;
  mp_arena_t *arena;
  MP_HASH_MAP(captured_t) known;
  MP_ARRAY(mp_value_t *) list;  // in the order in which they are met
} captures_t;

static mp_status_t walk_capture(captures_t *captures, mp_value_t *value) {
  const captured_t wanted = {mp_hash_pointer(value)}, *known;
  if (MP_HASH_MAP_GET(&captures->known, wanted.hash, known) != NULL) return NULL;
  MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(captures->arena, &captures->known, &wanted));
  return MP_ARRAY_PUSH(captures->arena, &captures->list, value);
}

static mp_status_t walk_collect(void *context, mp_op_t *op) {
  captures_t *captures = context;
  for (uint32_t i = 0; i < op->num_operands; ++i)
    if (!walk_is_inside(op->operands[i], captures->op))
      MP_RETURN_IF_ERROR(walk_capture(captures, op->operands[i]));
  return NULL;
}

mp_status_t mp_op_captures(const mp_op_t *op, mp_arena_t *arena, mp_value_t ***out_values,
                           uint32_t *out_count) {
  captures_t captures = {.op = op, .arena = arena};
  for (uint32_t i = 0; i < op->num_regions; ++i)
    MP_RETURN_IF_ERROR(mp_block_walk(op->regions[i], walk_collect, &captures));
  *out_values = captures.list.items;
  *out_count = captures.list.count;
  return NULL;
}
