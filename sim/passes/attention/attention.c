#include "sim/passes/attention/attention.h"

#include "sim/passes/attention/attention_impl.h"

typedef struct {
  mp_module_t *module;
  bool was_found;
  mp_value_t **now;  // by value id: the replacement of the value; NULL: it stays
} opener_t;

static mp_status_t attention_find(void *context, mp_op_t *op) {
  opener_t *o = context;
  o->was_found |= mp_attention_is_call(op);
  return NULL;
}

// A result without elements is the workspace; all others already have replacements.
static mp_status_t attention_finish(mp_attention_build_t *b, const mp_op_t *op, uint32_t index,
                                    mp_value_t **result) {
  int64_t count = 0;
  if (b->status != NULL || *result != NULL) return b->status;
  const mp_type_t *type = op->results[index].type;
  const bool is_empty = mp_type_num_elements(type, &count) && count == 0;
  if (!is_empty && type->dtype != MP_DTYPE_U8)
    return mp_op_error(op, MP_INVALID_ARGUMENT, "cuDNN's attention has no result %u", index);
  *result = mp_attention_nothing(b, type);
  return b->status;
}

static mp_status_t attention_open(opener_t *o, mp_op_t *op) {
  mp_attention_call_t call;
  mp_attention_build_t b = {.module = o->module, .position = op};
  MP_RETURN_IF_ERROR(mp_attention_read(op, &call));
  mp_value_t **results = MP_ARENA_ARRAY(o->module->arena, mp_value_t *, op->num_results);
  MP_RETURN_IF_NULL(results);
  (call.is_backward ? mp_attention_backward : mp_attention_forward)(&b, &call, results);
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(attention_finish(&b, op, i, &results[i]));
    o->now[op->results[i].id] = results[i];
  }
  mp_op_unlink(op);
  return b.status;
}

// In the order of the program, so that replacements of operands already exist.
static mp_status_t attention_open_block(opener_t *o, mp_block_t *block) {
  for (mp_op_t *op = block->first, *next; op != NULL; op = next) {
    next = op->next;
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      mp_value_t *now = o->now[op->operands[i]->id];
      if (now != NULL) op->operands[i] = now;
    }
    if (mp_attention_is_call(op)) {
      MP_RETURN_IF_ERROR(attention_open(o, op));
      continue;
    }
    for (uint32_t r = 0; r < op->num_regions; ++r)
      MP_RETURN_IF_ERROR(attention_open_block(o, op->regions[r]));
  }
  return NULL;
}

mp_status_t mp_pass_open_attention(mp_module_t *module, bool *out_is_changed) {
  opener_t o = {.module = module};
  MP_RETURN_IF_ERROR(mp_module_walk(module, attention_find, &o));
  *out_is_changed = o.was_found;
  if (!o.was_found) return NULL;
  const uint32_t count = mp_module_number_values(module);
  o.now = MP_ARENA_ARRAY(module->arena, mp_value_t *, (size_t)count + 1);
  MP_RETURN_IF_NULL(o.now);
  return attention_open_block(&o, module->main->body);
}
