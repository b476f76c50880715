// Values that a loop carries but never changes: its body returns the argument as it got it. Inside
// of the loop and after it they are the value with which the loop began, so the loop need not carry
// them. Frontends carry everything that a body reads, weights and inputs of a scan for example;
// each carried value takes memory of its own and is copied there.
#include "sim/passes/passes.h"

typedef struct {
  const mp_value_t *old;
  mp_value_t *by;
} replacement_t;

typedef struct {
  mp_module_t *module;
  replacement_t *replaced;  // by value id; a new value has the id of the one that it replaces
  bool is_early;            // see mp_pass_loop_values_early
} dropper_t;

static mp_value_t *loop_values_now(const dropper_t *d, mp_value_t *value) {
  while (d->replaced[value->id].old == value) value = d->replaced[value->id].by;
  return value;
}

static void loop_values_replace(dropper_t *d, const mp_value_t *old, mp_value_t *by) {
  d->replaced[old->id] = (replacement_t){old, by};
}

// Keeps those of `operands` that are carried; returns how many.
static uint32_t loop_values_keep(const bool *is_carried, mp_value_t **operands, uint32_t count) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (is_carried[i]) operands[kept++] = operands[i];
  }
  return kept;
}

// Gives a region arguments for the values that are still carried.
static mp_status_t loop_values_set_args(dropper_t *d, mp_block_t *block, const bool *is_carried,
                                        mp_value_t *const *starts, const mp_type_t *const *types,
                                        uint32_t num_types) {
  mp_block_t *fresh = NULL;
  MP_RETURN_IF_ERROR(mp_block_create(d->module, num_types, types, &fresh));
  for (uint32_t i = 0, k = 0; i < block->num_args; ++i) {
    const mp_value_t *old = &block->args[i];
    if (is_carried[i]) {
      fresh->args[k].block = block;
      fresh->args[k].id = old->id;
      loop_values_replace(d, old, &fresh->args[k++]);
    } else {
      loop_values_replace(d, old, starts[i]);
    }
  }
  block->args = fresh->args;
  block->num_args = num_types;
  return NULL;
}

// Replaces `op` by a loop that carries fewer values.
static mp_status_t loop_values_shrink(dropper_t *d, mp_op_t *op, const bool *is_carried) {
  const uint32_t count = op->num_operands;
  mp_value_t **starts = mp_arena_copy(d->module->arena, op->operands, count * sizeof(*starts));
  const mp_type_t **types = MP_ARENA_ARRAY(d->module->arena, const mp_type_t *, count);
  if (starts == NULL || types == NULL) return mp_status_out_of_memory();
  uint32_t num_types = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (is_carried[i]) types[num_types++] = op->results[i].type;
  }
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    MP_RETURN_IF_ERROR(
        loop_values_set_args(d, op->regions[r], is_carried, starts, types, num_types));
  }
  mp_op_t *end = mp_block_terminator(op->regions[1]);
  end->num_operands = loop_values_keep(is_carried, end->operands, count);
  const mp_op_spec_t spec = {.code = op->code,
                             .loc = op->loc,
                             .num_operands = loop_values_keep(is_carried, op->operands, count),
                             .operands = op->operands,
                             .num_results = num_types,
                             .result_types = types,
                             .num_regions = op->num_regions,
                             .regions = op->regions,
                             .num_attrs = op->num_attrs,
                             .attrs = op->attrs};
  mp_op_t *smaller = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(d->module, &spec, &smaller));
  for (uint32_t i = 0, k = 0; i < count; ++i) {
    mp_value_t *by = is_carried[i] ? &smaller->results[k++] : starts[i];
    if (is_carried[i]) by->id = op->results[i].id;
    loop_values_replace(d, &op->results[i], by);
  }
  mp_block_insert_before(op, smaller);
  mp_op_unlink(op);
  return NULL;
}

// Whether the loop must carry the value whose start value is `start`.
static bool loop_values_is_kept(const dropper_t *d, const mp_op_t *op, const mp_value_t *start) {
  if (!d->is_early) return false;
  return mp_op_attr(op, MP_ATTR_SDY_SHARDING) != NULL ||
         (start->op == NULL && start->block == d->module->main->body);
}

static mp_status_t loop_values_while(dropper_t *d, mp_op_t *op) {
  const mp_block_t *body = op->regions[1];
  const mp_op_t *end = mp_block_terminator(body);
  bool *is_carried = MP_ARENA_ARRAY(d->module->arena, bool, (size_t)op->num_operands + 1);
  MP_RETURN_IF_NULL(is_carried);
  uint32_t num_carried = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    is_carried[i] = loop_values_now(d, end->operands[i]) != &body->args[i] ||
                    loop_values_is_kept(d, op, loop_values_now(d, op->operands[i]));
    num_carried += is_carried[i];
  }
  // A loop that changes no value at all stays unchanged.
  if (num_carried == 0 || num_carried == op->num_operands) return NULL;
  return loop_values_shrink(d, op, is_carried);
}

// Inner loops first: values that they do not change may be unchanged in the loops around them, too.
static mp_status_t loop_values_block(dropper_t *d, mp_block_t *block) {
  for (mp_op_t *op = block->first, *next; op != NULL; op = next) {
    next = op->next;
    if (op->code != MP_OP_WHILE && op->code != MP_OP_CASE && op->code != MP_OP_CUSTOM_CALL)
      continue;
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      MP_RETURN_IF_ERROR(loop_values_block(d, op->regions[r]));
    }
    if (op->code == MP_OP_WHILE) MP_RETURN_IF_ERROR(loop_values_while(d, op));
  }
  return NULL;
}

static mp_status_t loop_values_use(void *context, mp_op_t *op) {
  const dropper_t *d = context;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    op->operands[i] = loop_values_now(d, op->operands[i]);
  }
  return NULL;
}

static mp_status_t loop_values_drop(mp_module_t *module, bool is_early) {
  const uint32_t count = mp_module_number_values(module);
  dropper_t d = {.module = module,
                 .is_early = is_early,
                 .replaced = MP_ARENA_ARRAY(module->arena, replacement_t, (size_t)count + 1)};
  MP_RETURN_IF_NULL(d.replaced);
  MP_RETURN_IF_ERROR(loop_values_block(&d, module->main->body));
  return mp_module_walk(module, loop_values_use, &d);
}

mp_status_t mp_pass_loop_values(mp_module_t *module) {
  return loop_values_drop(module, false);
}

mp_status_t mp_pass_loop_values_early(mp_module_t *module) {
  return loop_values_drop(module, true);
}
