// Dead code: one backward sweep marks the ops that are needed, and a forward sweep removes all
// others.
//
// An op is needed if it or an op in its regions has an effect (terminators have one), unless it
// says that it may be removed all the same, or if a needed op uses one of its results. The sweep
// goes backwards so that it sees the uses of a value before its definition. The values that a loop
// carries are used by its terminators, which are needed.
#include "sim/passes/passes.h"

static void dead_code_sweep_block(mp_block_t *block, bool *used);

static bool dead_code_region_has_effect(const mp_op_t *op) {
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    for (const mp_op_t *inner = op->regions[r]->first; inner != NULL; inner = inner->next) {
      if (mp_op_has(inner, MP_OP_TRAIT_TERMINATOR)) continue;
      if (mp_op_has_effect(inner) || dead_code_region_has_effect(inner)) return true;
    }
  }
  return false;
}

// JAX marks kernels whose effects are seen in their results alone.
static bool dead_code_may_go(const mp_op_t *op) {
  const mp_attr_t *may = mp_attr_dict_get_text(mp_op_attr(op, MP_ATTR_MHLO_FRONTEND_ATTRIBUTES),
                                               "xla_allow_dce_side_effecting_op");
  return op->code == MP_OP_CUSTOM_CALL && may != NULL && may->kind == MP_KIND_STRING &&
         mp_str_is(may->u.str, "true");
}

static bool dead_code_is_needed(const mp_op_t *op, const bool *used) {
  if (mp_op_has_effect(op) && !dead_code_may_go(op)) return true;
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
  for (mp_func_t *func = module->funcs.first; func != NULL; func = func->next) {
    if (func->body != NULL) dead_code_sweep_block(func->body, used);
  }
  return NULL;
}
