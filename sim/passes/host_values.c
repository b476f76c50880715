// Values in the memory of the device's host.
//
// Programs put values there by placements (mp_op_is_placement), and by memory kinds of parameters
// and results. Slices and reshapes of such values, loops and branches that pass them on, and arrays
// that such values partly overwrite are in host memory, too: so a compiler follows a stack of
// activations from one loop to another. Everything else works on the device's memory. If a value is
// needed in the other memory without a placement, one is inserted, so that afterwards all copies
// between host and device are placements (mp_op_crosses).
#include "sim/base/containers/array.h"
#include "sim/passes/passes.h"
#include "sim/passes/rewrite/rewrite.h"

typedef struct {
  mp_module_t *module;
  bool has_changed;
  mp_value_t **moved;  // by value id: the value in the other memory; NULL: not needed there
} places_t;

// ---- removing placements ----

static mp_status_t host_values_skip(void *context, mp_op_t *op) {
  bool *was_found = context;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    while (op->operands[i]->op != NULL && mp_op_is_placement(op->operands[i]->op)) {
      op->operands[i] = op->operands[i]->op->operands[0];
      *was_found = true;
    }
  }
  return NULL;
}

// They are now unused, but dead-code elimination would keep those with a side effect.
static mp_status_t host_values_unlink(void *context, mp_op_t *op) {
  (void)context;
  if (mp_op_is_placement(op)) mp_op_unlink(op);
  return NULL;
}

mp_status_t mp_pass_drop_placements(mp_module_t *module) {
  bool was_found = false;
  MP_RETURN_IF_ERROR(mp_module_walk(module, host_values_skip, &was_found));
  MP_RETURN_IF_ERROR(mp_module_walk(module, host_values_unlink, NULL));
  if (!was_found) return NULL;
  MP_RETURN_IF_ERROR(mp_pass_fold(module));
  return mp_pass_dead_code(module);
}

// ---- which values are in host memory ----

static bool host_values_is_view(const mp_op_t *op) {
  switch (op->code) {
    case MP_OP_RESHAPE:
    case MP_OP_SLICE:
    case MP_OP_DYNAMIC_SLICE:
    case MP_OP_TRANSPOSE:
      return true;
    default:
      return false;
  }
}

static void host_values_mark(places_t *p, mp_value_t *value) {
  p->has_changed |= !value->is_on_host;
  value->is_on_host = 1;
}

// A loop-carried value stays in one memory.
static void host_values_follow_loop(places_t *p, mp_op_t *loop) {
  const mp_op_t *end = mp_block_terminator(loop->regions[1]);
  for (uint32_t i = 0; i < loop->num_operands; ++i) {
    if (!loop->operands[i]->is_on_host && !end->operands[i]->is_on_host) continue;
    host_values_mark(p, &loop->results[i]);
    host_values_mark(p, &loop->regions[0]->args[i]);
    host_values_mark(p, &loop->regions[1]->args[i]);
  }
}

static void host_values_follow_branch(places_t *p, mp_op_t *op) {
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    const mp_op_t *end = mp_block_terminator(op->regions[r]);
    for (uint32_t i = 0; i < op->num_results; ++i) {
      if (end->operands[i]->is_on_host) host_values_mark(p, &op->results[i]);
    }
  }
}

static mp_status_t host_values_follow(void *context, mp_op_t *op) {
  places_t *p = context;
  if (op->code == MP_OP_WHILE) {
    host_values_follow_loop(p, op);
  } else if (op->code == MP_OP_CASE || op->code == MP_OP_IF) {
    host_values_follow_branch(p, op);
  } else if (op->code == MP_OP_OPTIMIZATION_BARRIER) {
    for (uint32_t i = 0; i < op->num_results; ++i) {
      if (op->operands[i]->is_on_host) host_values_mark(p, &op->results[i]);
    }
  } else if (op->code == MP_OP_DYNAMIC_UPDATE_SLICE) {
    if (op->operands[0]->is_on_host || op->operands[1]->is_on_host) {
      host_values_mark(p, &op->results[0]);
    }
  } else if (mp_op_is_placement(op)) {
    if (mp_op_places_on_host(op)) host_values_mark(p, &op->results[0]);
  } else if (host_values_is_view(op) && op->operands[0]->is_on_host) {
    host_values_mark(p, &op->results[0]);
  }
  return NULL;
}

static bool host_values_is_host_kind(const mp_attr_t *const *attrs, uint32_t i) {
  const mp_attr_t *kind =
      attrs == NULL ? NULL : mp_attr_dict_get(attrs[i], MP_ATTR_MHLO_MEMORY_KIND);
  return kind != NULL && kind->kind == MP_KIND_STRING && mp_is_host_memory(kind->u.str);
}

// ---- between the memories ----

// Whether an op reads its operand on the host. The index of a branch, a slice or the like never is
// on the host.
static bool host_values_wants_host(const places_t *p, const mp_op_t *op, uint32_t operand) {
  const mp_block_t *block = op->parent;
  if (op->code == MP_OP_WHILE || op->code == MP_OP_OPTIMIZATION_BARRIER) {
    return op->results[operand].is_on_host;
  }
  if (op->code == MP_OP_DYNAMIC_UPDATE_SLICE) return operand < 2 && op->results[0].is_on_host;
  if (host_values_is_view(op)) return operand == 0 && op->results[0].is_on_host;
  if (op != mp_block_terminator(block)) return false;
  const mp_op_t *parent = block->parent_op;
  if (parent == NULL) return host_values_is_host_kind(p->module->main->result_attrs, operand);
  if (parent->code == MP_OP_WHILE) {
    return block == parent->regions[1] && block->args[operand].is_on_host;
  }
  const bool is_branch = parent->code == MP_OP_CASE || parent->code == MP_OP_IF;
  return is_branch && parent->results[operand].is_on_host;
}

// Whether to recompute the value on the host instead of copying it.
static bool host_values_is_made_anywhere(const mp_op_t *op) {
  return op != NULL && (op->code == MP_OP_CONSTANT || op->code == MP_OP_IOTA ||
                        (op->code == MP_OP_BROADCAST_IN_DIM && op->operands[0]->op != NULL &&
                         op->operands[0]->op->code == MP_OP_CONSTANT));
}

static mp_status_t host_values_insert(places_t *p, mp_value_t *value, mp_op_t *position,
                                      mp_value_t **out_value) {
  const mp_attr_t *target = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_string(p->module->arena, MP_STR(MP_PLACEMENT_TARGET), &target));
  const mp_named_attr_t attr = mp_rewrite_attr(MP_ATTR_CALL_TARGET_NAME, target);
  const mp_op_one_t op = {.code = MP_OP_CUSTOM_CALL,
                          .type = value->type,
                          .operands = &value,
                          .num_operands = 1,
                          .attrs = &attr,
                          .num_attrs = 1};
  return mp_rewrite_insert_op(p->module, position, &op, out_value);
}

// A copy of the op, before a position.
static mp_status_t host_values_make_again(places_t *p, const mp_op_t *op, mp_op_t *position,
                                          mp_value_t **out_value) {
  mp_op_t *made = NULL;
  const mp_op_spec_t spec = {.code = op->code,
                             .loc = op->loc,
                             .num_operands = op->num_operands,
                             .operands = op->operands,
                             .num_results = 1,
                             .result_types = &op->results[0].type,
                             .num_attrs = op->num_attrs,
                             .attrs = op->attrs};
  MP_RETURN_IF_ERROR(mp_op_create(p->module, &spec, &made));
  mp_block_insert_before(position, made);
  *out_value = &made->results[0];
  return NULL;
}

// The op of the block that contains another op, or that op itself.
static mp_op_t *host_values_op_in(const mp_block_t *block, mp_op_t *op) {
  while (op->parent != block) op = op->parent->parent_op;
  return op;
}

// The value in the other memory: copied once, in the block where it is defined, before all its
// readers there. Ops are visited in order, so the first reader is the current op.
static mp_status_t host_values_move(places_t *p, mp_op_t *op, uint32_t operand) {
  mp_value_t *value = op->operands[operand];
  const mp_block_t *home = value->op != NULL ? value->op->parent : value->block;
  if (p->moved[value->id] == NULL) {
    mp_op_t *position = host_values_op_in(home, op);
    mp_value_t *made = NULL;
    const bool is_free = !value->is_on_host && host_values_is_made_anywhere(value->op);
    MP_RETURN_IF_ERROR(is_free ? host_values_make_again(p, value->op, position, &made)
                               : host_values_insert(p, value, position, &made));
    made->is_on_host = !value->is_on_host;
    p->moved[value->id] = made;
  }
  op->operands[operand] = p->moved[value->id];
  return NULL;
}

static mp_status_t host_values_meet(void *context, mp_op_t *op) {
  places_t *p = context;
  if (mp_op_is_placement(op)) return NULL;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (op->operands[i]->is_on_host == host_values_wants_host(p, op, i)) continue;
    MP_RETURN_IF_ERROR(host_values_move(p, op, i));
  }
  return NULL;
}

// ---- placements that do nothing ----

static mp_status_t host_values_skip_idle(void *context, mp_op_t *op) {
  (void)context;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_op_t *from = op->operands[i]->op;
    while (from != NULL && mp_op_is_placement(from) && !mp_op_crosses(from)) {
      op->operands[i] = from->operands[0];
      from = op->operands[i]->op;
    }
  }
  return NULL;
}

static mp_status_t host_values_unlink_idle(void *context, mp_op_t *op) {
  (void)context;
  if (mp_op_is_placement(op) && !mp_op_crosses(op)) mp_op_unlink(op);
  return NULL;
}

// ---- all ----

static mp_status_t host_values_find_placement(void *context, mp_op_t *op) {
  bool *is_there = context;
  *is_there |= mp_op_is_placement(op);
  return NULL;
}

static mp_status_t host_values_begin(mp_module_t *module, bool *out_is_any) {
  const mp_func_t *main = module->main;
  *out_is_any = false;
  for (uint32_t i = 0; i < main->body->num_args; ++i) {
    main->body->args[i].is_on_host = host_values_is_host_kind(main->arg_attrs, i);
    *out_is_any |= main->body->args[i].is_on_host;
  }
  for (uint32_t i = 0; i < main->num_results; ++i) {
    *out_is_any |= host_values_is_host_kind(main->result_attrs, i);
  }
  return mp_module_walk(module, host_values_find_placement, out_is_any);
}

mp_status_t mp_pass_find_host_values(mp_module_t *module) {
  bool is_any = false;
  MP_RETURN_IF_ERROR(host_values_begin(module, &is_any));
  if (!is_any) return NULL;
  places_t p = {.module = module, .has_changed = true};
  while (p.has_changed) {
    p.has_changed = false;
    MP_RETURN_IF_ERROR(mp_block_walk(module->main->body, host_values_follow, &p));
  }
  const uint32_t count = mp_module_number_values(module);
  p.moved = MP_ARENA_ARRAY(module->arena, mp_value_t *, (size_t)count + 1);
  MP_RETURN_IF_NULL(p.moved);
  MP_RETURN_IF_ERROR(mp_block_walk(module->main->body, host_values_meet, &p));
  MP_RETURN_IF_ERROR(mp_block_walk(module->main->body, host_values_skip_idle, NULL));
  MP_RETURN_IF_ERROR(mp_block_walk(module->main->body, host_values_unlink_idle, NULL));
  return mp_pass_dead_code(module);
}
