// Inlining: after it `main` is the only function.
//
// The bodies of callees are copied to the place of the call, by recursion: the verifier has checked
// that no function calls itself. One map from the module's value ids gives the copy of each value;
// the entries of a function's values are overwritten at its next call.

#include "sim/passes/passes.h"

enum { MP_INLINE_MAX_OPS = 1 << 20, MP_INLINE_MAX_DEPTH = 256 };

typedef struct {
  mp_module_t *module;
  mp_value_t **map;  // by id of the original value: its newest copy
  uint32_t num_ops;
} inliner_t;

static mp_value_t *inline_mapped(const inliner_t *inliner, mp_value_t *value) {
  mp_value_t *new_value = inliner->map[value->id];
  return new_value == NULL ? value : new_value;
}

static mp_status_t inline_copy_block(inliner_t *inliner, const mp_block_t *from, mp_block_t *to,
                                     uint32_t depth, mp_op_t **out_terminator);

static mp_status_t inline_find_callee(const inliner_t *inliner, const mp_op_t *op,
                                      const mp_func_t **out_func) {
  const mp_str_t name = mp_op_callee(op);
  const mp_func_t *func = mp_module_find_func(inliner->module, name);
  if (func == NULL || func->body == NULL) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "there is no function @%.*s", MP_STR_ARG(name));
  }
  *out_func = func;
  return NULL;
}

// Puts a copy of `body` in place of `op`: its arguments become the op's operands, and the op's
// results become what it returns.
static mp_status_t inline_copy_body(inliner_t *inliner, const mp_op_t *op, const mp_block_t *body,
                                    mp_block_t *to, uint32_t depth) {
  if (body->num_args != op->num_operands) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "%u operands for a body with %u arguments",
                       op->num_operands, body->num_args);
  }
  // All operands are read before any argument is written, because both may use the same entries.
  for (uint32_t i = 0; i < body->num_args; ++i) {
    inliner->map[body->args[i].id] = inline_mapped(inliner, op->operands[i]);
  }
  mp_op_t *terminator = NULL;
  MP_RETURN_IF_ERROR(inline_copy_block(inliner, body, to, depth + 1, &terminator));
  if (terminator == NULL || terminator->num_operands != op->num_results) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "the inlined body does not return %u values",
                       op->num_results);
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    inliner->map[op->results[i].id] = inline_mapped(inliner, terminator->operands[i]);
  }
  return NULL;
}

// Copies an op that stays, with its regions; its operands become the copies.
static mp_status_t inline_copy_op(inliner_t *inliner, const mp_op_t *op, mp_block_t *to,
                                  uint32_t depth) {
  mp_module_t *module = inliner->module;
  mp_value_t **operands = MP_ARENA_ARRAY(module->arena, mp_value_t *, op->num_operands);
  const mp_type_t **types = MP_ARENA_ARRAY(module->arena, const mp_type_t *, op->num_results);
  mp_block_t **regions = MP_ARENA_ARRAY(module->arena, mp_block_t *, op->num_regions);
  if (operands == NULL || types == NULL || regions == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < op->num_operands; ++i)
    operands[i] = inline_mapped(inliner, op->operands[i]);
  for (uint32_t i = 0; i < op->num_results; ++i) types[i] = op->results[i].type;
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    const mp_block_t *region = op->regions[r];
    const mp_type_t **args = MP_ARENA_ARRAY(module->arena, const mp_type_t *, region->num_args);
    MP_RETURN_IF_NULL(args);
    for (uint32_t i = 0; i < region->num_args; ++i) args[i] = region->args[i].type;
    MP_RETURN_IF_ERROR(mp_block_create(module, region->num_args, args, &regions[r]));
    for (uint32_t i = 0; i < region->num_args; ++i) {
      inliner->map[region->args[i].id] = &regions[r]->args[i];
    }
    mp_op_t *terminator = NULL;
    MP_RETURN_IF_ERROR(inline_copy_block(inliner, region, regions[r], depth + 1, &terminator));
    if (terminator != NULL)
      MP_RETURN_IF_ERROR(inline_copy_op(inliner, terminator, regions[r], depth));
  }
  const mp_op_spec_t spec = {op->code,        op->loc,  op->num_operands, operands,
                             op->num_results, types,    op->num_regions,  regions,
                             op->num_attrs,   op->attrs};
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(module, &spec, &copy));
  for (uint32_t i = 0; i < op->num_results; ++i) {
    inliner->map[op->results[i].id] = &copy->results[i];
  }
  mp_block_append(to, copy);
  return NULL;
}

// Copies all ops but the terminator. The original terminator is returned.
static mp_status_t inline_copy_block(inliner_t *inliner, const mp_block_t *from, mp_block_t *to,
                                     uint32_t depth, mp_op_t **out_terminator) {
  if (depth > MP_INLINE_MAX_DEPTH) {
    return mp_status_make(MP_RESOURCE_EXHAUSTED, "calls and regions nest deeper than %d levels",
                          MP_INLINE_MAX_DEPTH);
  }
  for (mp_op_t *op = from->first; op != NULL; op = op->next) {
    if (++inliner->num_ops > MP_INLINE_MAX_OPS) {
      return mp_status_make(MP_RESOURCE_EXHAUSTED, "the program has over %d ops after inlining",
                            MP_INLINE_MAX_OPS);
    }
    if (mp_op_has(op, MP_OP_TRAIT_TERMINATOR)) {
      *out_terminator = op;
      return NULL;
    }
    if (op->code == MP_OP_CALL || op->code == MP_OP_COMPOSITE) {
      const mp_func_t *callee = NULL;
      MP_RETURN_IF_ERROR(inline_find_callee(inliner, op, &callee));
      MP_RETURN_IF_ERROR(inline_copy_body(inliner, op, callee->body, to, depth));
    } else if (op->code == MP_OP_SDY_NAMED_COMPUTATION) {
      MP_RETURN_IF_ERROR(inline_copy_body(inliner, op, op->regions[0], to, depth));
    } else {
      MP_RETURN_IF_ERROR(inline_copy_op(inliner, op, to, depth));
    }
  }
  return NULL;
}

static mp_status_t inline_needs_inlining(void *context, mp_op_t *op) {
  bool *found = context;
  *found |= op->code == MP_OP_CALL || op->code == MP_OP_COMPOSITE ||
            op->code == MP_OP_SDY_NAMED_COMPUTATION;
  return NULL;
}

mp_status_t mp_pass_inline(mp_module_t *module) {
  mp_func_t *main = module->main;
  bool found = false;
  MP_RETURN_IF_ERROR(mp_block_walk(main->body, inline_needs_inlining, &found));
  if (found) {
    inliner_t inliner = {.module = module};
    uint32_t count = mp_module_number_values(module);
    inliner.map = MP_ARENA_ARRAY(module->arena, mp_value_t *, (size_t)count + 1);
    MP_RETURN_IF_NULL(inliner.map);
    const mp_block_t *old = main->body;
    const mp_type_t **types = MP_ARENA_ARRAY(module->arena, const mp_type_t *, old->num_args);
    MP_RETURN_IF_NULL(types);
    for (uint32_t i = 0; i < old->num_args; ++i) types[i] = old->args[i].type;
    mp_block_t *body = NULL;
    MP_RETURN_IF_ERROR(mp_block_create(module, old->num_args, types, &body));
    for (uint32_t i = 0; i < old->num_args; ++i) inliner.map[old->args[i].id] = &body->args[i];
    mp_op_t *terminator = NULL;
    MP_RETURN_IF_ERROR(inline_copy_block(&inliner, old, body, 0, &terminator));
    if (terminator != NULL) MP_RETURN_IF_ERROR(inline_copy_op(&inliner, terminator, body, 0));
    body->parent_func = main;
    main->body = body;
  }
  module->funcs.first = module->funcs.last = main;
  main->next = NULL;
  return NULL;
}
