#include "sim/ir/verify/module_check.h"

#ifdef MINIPOD_ASSERTS

#include "sim/base/assert.h"
#include "sim/ir/verify/verify.h"

static void module_check_block(const mp_block_t *block);

static void module_check_op(const mp_op_t *op) {
  MP_ASSERT((unsigned)op->code < MP_OP_COUNT);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_value_t *value = op->operands[i];
    MP_ASSERT(value != NULL && value->type != NULL);
    // A value is either the result of an op in a block or the argument of a block.
    MP_ASSERT((value->op == NULL) != (value->block == NULL));
    if (value->op != NULL) {
      MP_ASSERT_MSG(value->op->parent != NULL, "%s uses a %s that was removed",
                    mp_op_info(op->code)->name, mp_op_info(value->op->code)->name);
      MP_ASSERT(value->index < value->op->num_results);
      MP_ASSERT(&value->op->results[value->index] == value);
    } else {
      MP_ASSERT(value->index < value->block->num_args);
      MP_ASSERT(&value->block->args[value->index] == value);
    }
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const mp_value_t *result = &op->results[i];
    MP_ASSERT(result->op == op && result->block == NULL && result->index == i);
    MP_ASSERT(result->type != NULL);
  }
  for (uint32_t i = 0; i < op->num_attrs; ++i) MP_ASSERT(op->attrs[i].value != NULL);
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    MP_ASSERT(op->regions[r] != NULL && op->regions[r]->parent_op == op);
    module_check_block(op->regions[r]);
  }
}

static void module_check_block(const mp_block_t *block) {
  for (uint32_t i = 0; i < block->num_args; ++i) {
    const mp_value_t *arg = &block->args[i];
    MP_ASSERT(arg->block == block && arg->op == NULL && arg->index == i && arg->type != NULL);
  }
  const mp_op_t *previous = NULL;
  for (const mp_op_t *op = block->first; op != NULL; previous = op, op = op->next) {
    MP_ASSERT(op->parent == block && op->prev == previous);
    const bool is_end = (mp_op_info(op->code)->traits & MP_OP_TRAIT_TERMINATOR) != 0;
    MP_ASSERT(is_end == (op->next == NULL));
    module_check_op(op);
  }
  MP_ASSERT(block->last == previous);
}

void mp_module_check(mp_module_t *module) {
  const mp_func_t *last = NULL;
  bool has_main = false;
  for (const mp_func_t *func = module->funcs.first; func != NULL; last = func, func = func->next) {
    has_main |= func == module->main;
    MP_ASSERT(func->body->parent_func == func && func->body->parent_op == NULL);
    module_check_block(func->body);
  }
  MP_ASSERT(last == module->funcs.last && has_main);
}

void mp_module_check_verified(mp_module_t *module) {
  mp_module_check(module);
  mp_status_t status = mp_module_verify(module);
  // In tests that make allocations fail, the verifier itself may run out of memory.
  MP_ASSERT_MSG(status == NULL || mp_status_code(status) == MP_RESOURCE_EXHAUSTED, "%s",
                mp_status_message(status));
  mp_status_ignore(status);
}

#endif  // MINIPOD_ASSERTS
