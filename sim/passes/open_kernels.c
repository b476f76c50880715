// The user's kernels become the ops that compute the same, or calls without regions.
#include "sim/passes/passes.h"

typedef struct {
  bool was_found;
  mp_value_t **now;  // by value id: the replacement of the value; NULL: it stays
} opener_t;

static mp_status_t open_kernels_find(void *context, mp_op_t *op) {
  opener_t *o = context;
  o->was_found |= mp_op_is_kernel(op);
  return NULL;
}

static mp_status_t open_kernels_close(void *context, mp_op_t *op) {
  (void)context;
  if (mp_op_is_kernel(op)) op->num_regions = 0;
  return NULL;
}

mp_status_t mp_pass_close_kernels(mp_module_t *module) {
  return mp_module_walk(module, open_kernels_close, NULL);
}

static mp_value_t *open_kernels_now(const opener_t *o, mp_value_t *value) {
  mp_value_t *now = o->now[value->id];
  return now == NULL ? value : now;
}

static void open_kernels_block(opener_t *o, mp_block_t *block, bool is_kernel);

static void open_kernels_kernel(opener_t *o, mp_op_t *op) {
  mp_block_t *body = op->regions[0];
  for (uint32_t i = 0; i < op->num_operands; ++i) o->now[body->args[i].id] = op->operands[i];
  open_kernels_block(o, body, true);
  mp_op_t *end = mp_block_terminator(body);
  for (uint32_t i = 0; i < op->num_results; ++i) o->now[op->results[i].id] = end->operands[i];
  while (body->first != end) {
    mp_op_t *inner = body->first;
    mp_op_unlink(inner);
    mp_block_insert_before(op, inner);
  }
  mp_op_unlink(op);
}

// Operands are replaced in the order of the program, so that their replacements already exist.
static void open_kernels_block(opener_t *o, mp_block_t *block, bool is_kernel) {
  for (mp_op_t *op = block->first, *next; op != NULL; op = next) {
    next = op->next;
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      op->operands[i] = open_kernels_now(o, op->operands[i]);
    }
    if (is_kernel) op->control = 0;
    if (mp_op_is_kernel(op)) {
      open_kernels_kernel(o, op);
      continue;
    }
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      open_kernels_block(o, op->regions[r], is_kernel);
    }
  }
}

mp_status_t mp_pass_open_kernels(mp_module_t *module) {
  opener_t o = {0};
  MP_RETURN_IF_ERROR(mp_module_walk(module, open_kernels_find, &o));
  if (!o.was_found) return NULL;
  const uint32_t count = mp_module_number_values(module);
  o.now = MP_ARENA_ARRAY(module->arena, mp_value_t *, (size_t)count + 1);
  MP_RETURN_IF_NULL(o.now);
  open_kernels_block(&o, module->main->body, false);
  return NULL;
}
