// Dead code: one backward sweep marks what is needed, one forward sweep removes the rest.
//
// An op is needed if it has an effect, ends a block, or one of its results is used by a needed op.
// Blocks are swept backwards, so a use is always seen before the definition; a loop's carried
// values are used by its terminators, which are always needed.
#include "sim/passes/passes.h"

static bool dead_code_has_effect(const mp_op_t *op) {
  const uint32_t keep = MP_OP_TRAIT_EFFECT | MP_OP_TRAIT_TERMINATOR | MP_OP_TRAIT_COLLECTIVE;
  const mp_op_info_t *info = mp_op_info(op->code);
  if (op->code == MP_OP_CUSTOM_CALL) return mp_op_bool(op, MP_ATTR_HAS_SIDE_EFFECT, false);
  // A loop may run for ever, and what its regions do may have effects.
  return (info->traits & keep) != 0 || op->code == MP_OP_WHILE;
}

static void dead_code_sweep_block(mp_block_t *block, bool *used);

static bool dead_code_region_has_effect(const mp_op_t *op) {
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    for (const mp_op_t *inner = op->regions[r]->first; inner != NULL; inner = inner->next) {
      if (mp_op_info(inner->code)->traits & MP_OP_TRAIT_TERMINATOR) continue;
      if (dead_code_has_effect(inner) || dead_code_region_has_effect(inner)) return true;
    }
  }
  return false;
}

static bool dead_code_is_needed(const mp_op_t *op, const bool *used) {
  if (dead_code_has_effect(op)) return true;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (used[op->results[i].id]) return true;
  }
  return dead_code_region_has_effect(op);
}

static void dead_code_sweep_block(mp_block_t *block, bool *used) {
  for (mp_op_t *op = block->last; op != NULL;) {
    mp_op_t *previous = op->prev;
    if (dead_code_is_needed(op, used)) {
      for (uint32_t i = 0; i < op->num_operands; ++i) used[op->operands[i]->id] = true;
      for (uint32_t r = 0; r < op->num_regions; ++r) dead_code_sweep_block(op->regions[r], used);
    } else {
      mp_op_unlink(op);
    }
    op = previous;
  }
}

mp_status_t mp_pass_dead_code(mp_module_t *module) {
  uint32_t count = mp_module_number_values(module);
  bool *used = MP_ARENA_ARRAY(module->arena, bool, (size_t)count + 1);
  MP_RETURN_IF_NULL(used);
  for (mp_func_t *func = module->first_func; func != NULL; func = func->next) {
    if (func->body != NULL) dead_code_sweep_block(func->body, used);
  }
  return NULL;
}
