// Moves manual operations among others into a function that is called.
//
// JAX writes a manual region as a call between borders. PyTorch/XLA writes its operations inline:
// the result of SPMDFullToShardShape is a device's own part, and so are all values computed from
// it, until SPMDShardToFullShape. These operations become a function; its call gets borders like
// JAX's, and gspmd_manual.c does the rest. The entry function has one such region at most, no part
// leaves it, and its operations capture none: otherwise nothing is done.
#include "sim/spmd/gspmd/gspmd_parts.h"

typedef enum {
  OUTSIDE,  // needed by the region, or not concerned
  MANUAL,   // a device's own part
  LATE,     // computed from results of the region
} place_t;

typedef struct {
  mp_module_t *module;
  mp_arena_t *scratch;
  mp_block_t *body;   // the entry function's
  uint8_t *places;    // by value id: place_t
  mp_value_t **map;   // by value id: in the function; a placeholder while it is only listed
  mp_op_t **ops;      // [num_ops]: of the region, in order
  mp_op_t **exits;    // [num_exits]: SPMDShardToFullShape
  mp_op_t **late;     // [num_late]: with the exits
  mp_value_t **args;  // [num_args]: the operands: parts, and whole values that its ops use
  uint32_t num_ops, num_exits, num_late, num_args;
  bool is_possible;
} outliner_t;

static bool gspmd_outline_is_entry(const mp_op_t *op) {
  return mp_gspmd_is_call(op, "SPMDFullToShardShape");
}

// ---- finding ----

static void gspmd_outline_add_arg(outliner_t *o, mp_value_t *value) {
  if (o->map[value->id] != NULL) return;
  o->map[value->id] = value;
  o->args[o->num_args++] = value;
  if (!mp_type_is_tensor(value->type)) o->is_possible = false;
}

static place_t gspmd_outline_place_of(outliner_t *o, mp_op_t *op, mp_value_t *const *values,
                                      uint32_t count) {
  place_t place = OUTSIDE;
  for (uint32_t i = 0; i < count; ++i) {
    const place_t other = (place_t)o->places[values[i]->id];
    if (other == OUTSIDE || other == place) continue;
    if (place != OUTSIDE) o->is_possible = false;
    place = other;
  }
  if (place == MANUAL && (op->code == MP_OP_CALL || op == mp_block_terminator(o->body))) {
    o->is_possible = false;  // JAX's form, or a part that leaves the program
  }
  return place;
}

static mp_status_t gspmd_outline_visit(outliner_t *o, mp_op_t *op) {
  mp_value_t **captured = NULL;
  uint32_t num_captured = 0;
  MP_RETURN_IF_ERROR(mp_op_captures(op, o->scratch, &captured, &num_captured));
  if (gspmd_outline_place_of(o, op, captured, num_captured) == MANUAL) o->is_possible = false;
  place_t place = gspmd_outline_place_of(o, op, op->operands, op->num_operands);
  for (uint32_t i = 0; i < num_captured; ++i) {
    if (o->places[captured[i]->id] == LATE) place = LATE;
    if (place == MANUAL) o->is_possible = false;
  }
  if (gspmd_outline_is_entry(op)) {
    if (place != OUTSIDE) o->is_possible = false;
    gspmd_outline_add_arg(o, &op->results[0]);
    place = MANUAL;
  } else if (mp_gspmd_is_call(op, "SPMDShardToFullShape") && place == MANUAL) {
    o->exits[o->num_exits++] = op;
    place = LATE;
  } else if (place == MANUAL) {
    o->ops[o->num_ops++] = op;
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      if (o->places[op->operands[i]->id] == OUTSIDE) gspmd_outline_add_arg(o, op->operands[i]);
    }
  }
  if (place == LATE || op == mp_block_terminator(o->body)) o->late[o->num_late++] = op;
  for (uint32_t i = 0; i < op->num_results; ++i) o->places[op->results[i].id] = (uint8_t)place;
  return NULL;
}

static mp_status_t gspmd_outline_find(outliner_t *o) {
  const uint32_t num_values = mp_module_number_values(o->module);
  uint32_t num_ops = 0;
  for (const mp_op_t *op = o->body->first; op != NULL; op = op->next) ++num_ops;
  o->places = MP_ARENA_ARRAY(o->scratch, uint8_t, (size_t)num_values + 1);
  o->map = MP_ARENA_ARRAY(o->scratch, mp_value_t *, (size_t)num_values + 1);
  o->args = MP_ARENA_ARRAY(o->scratch, mp_value_t *, (size_t)num_values + 1);
  o->ops = MP_ARENA_ARRAY(o->scratch, mp_op_t *, (size_t)num_ops + 1);
  o->exits = MP_ARENA_ARRAY(o->scratch, mp_op_t *, (size_t)num_ops + 1);
  o->late = MP_ARENA_ARRAY(o->scratch, mp_op_t *, (size_t)num_ops + 1);
  if (o->places == NULL || o->map == NULL || o->args == NULL || o->ops == NULL ||
      o->exits == NULL || o->late == NULL) {
    return mp_status_out_of_memory();
  }
  o->is_possible = true;
  for (mp_op_t *op = o->body->first; op != NULL && o->is_possible; op = op->next) {
    MP_RETURN_IF_ERROR(gspmd_outline_visit(o, op));
  }
  o->is_possible = o->is_possible && o->num_exits != 0;
  return NULL;
}

// ---- making ----

// Appends a custom call of one operand, with a sharding.
static mp_status_t gspmd_outline_call(outliner_t *o, const char *target, mp_str_t sharding,
                                      mp_value_t *operand, const mp_loc_t *loc, mp_op_t **out_op) {
  mp_named_attr_t attrs[2] = {
      {.name = MP_ATTR_CALL_TARGET_NAME, .text = MP_STR("call_target_name")},
      {.name = MP_ATTR_MHLO_SHARDING, .text = MP_STR("mhlo.sharding")}};
  mp_arena_t *arena = o->module->arena;
  MP_RETURN_IF_ERROR(mp_attr_make_string(arena, mp_str(target), &attrs[0].value));
  MP_RETURN_IF_ERROR(mp_attr_make_string(arena, sharding, &attrs[1].value));
  const mp_op_spec_t spec = {.code = MP_OP_CUSTOM_CALL,
                             .loc = loc,
                             .num_operands = 1,
                             .operands = &operand,
                             .num_results = 1,
                             .result_types = &operand->type,
                             .num_attrs = 2,
                             .attrs = attrs};
  MP_RETURN_IF_ERROR(mp_op_create(o->module, &spec, out_op));
  mp_block_append(o->body, *out_op);
  return NULL;
}

// The sharding of a value by its own annotation.
static mp_str_t gspmd_outline_sharding_of(const outliner_t *o, const mp_value_t *value) {
  mp_str_t text = {0};
  if (value->op != NULL) {
    text = mp_op_str(value->op, MP_ATTR_MHLO_SHARDING);
  } else if (value->block == o->body) {
    const mp_attr_t *attr =
        mp_attr_dict_get(o->module->main->arg_attrs[value->index], MP_ATTR_MHLO_SHARDING);
    if (attr != NULL && attr->kind == MP_KIND_STRING) text = attr->u.str;
  }
  return text.size == 0 ? MP_STR("{replicated}") : text;
}

// An operand of the call, after a constraint and a border.
static mp_status_t gspmd_outline_enter(outliner_t *o, mp_value_t *arg, mp_value_t **out_value) {
  mp_op_t *entry = arg->op, *constraint = NULL;
  const mp_loc_t *loc = entry == NULL ? NULL : entry->loc;
  if (!gspmd_outline_is_entry(entry)) {
    MP_RETURN_IF_ERROR(
        gspmd_outline_call(o, "Sharding", MP_STR("{replicated}"), arg, loc, &constraint));
    MP_RETURN_IF_ERROR(gspmd_outline_call(o, "SPMDFullToShardShape", MP_STR("{manual}"),
                                          &constraint->results[0], loc, &entry));
  } else if (!mp_gspmd_is_call(entry->operands[0]->op, "Sharding")) {
    MP_RETURN_IF_ERROR(gspmd_outline_call(o, "Sharding",
                                          gspmd_outline_sharding_of(o, entry->operands[0]),
                                          entry->operands[0], loc, &constraint));
    entry->operands[0] = &constraint->results[0];
    mp_op_unlink(entry);
    mp_block_append(o->body, entry);
  }
  *out_value = &entry->results[0];
  return NULL;
}

static mp_status_t gspmd_outline_make_func(outliner_t *o, mp_func_t **out_func) {
  const mp_type_t **types =
      MP_ARENA_ARRAY(o->scratch, const mp_type_t *, (size_t)o->num_args + o->num_exits);
  mp_value_t **results = MP_ARENA_ARRAY(o->scratch, mp_value_t *, o->num_exits);
  if (types == NULL || results == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < o->num_args; ++i) types[i] = o->args[i]->type;
  for (uint32_t i = 0; i < o->num_exits; ++i) {
    types[o->num_args + i] = o->exits[i]->operands[0]->type;
  }
  mp_func_t *func = NULL;
  MP_RETURN_IF_ERROR(mp_func_create(o->module, MP_STR("minipod.manual"), o->num_args, types,
                                    o->num_exits, types + o->num_args, &func));
  func->visibility = MP_STR("private");
  for (uint32_t i = 0; i < o->num_args; ++i) o->map[o->args[i]->id] = &func->body->args[i];
  for (uint32_t i = 0; i < o->num_ops; ++i) {
    mp_op_t *copy = NULL;
    // Inside the region parts need no annotation.
    if (mp_gspmd_is_call(o->ops[i], "Sharding") &&
        mp_str_is(mp_op_str(o->ops[i], MP_ATTR_MHLO_SHARDING), "{manual}")) {
      o->map[o->ops[i]->results[0].id] = o->map[o->ops[i]->operands[0]->id];
      continue;
    }
    MP_RETURN_IF_ERROR(mp_op_clone(o->module, o->ops[i], o->map, &copy));
    mp_block_append(func->body, copy);
  }
  for (uint32_t i = 0; i < o->num_exits; ++i) results[i] = o->map[o->exits[i]->operands[0]->id];
  const mp_op_spec_t end = {
      .code = MP_OP_RETURN, .num_operands = o->num_exits, .operands = results};
  mp_op_t *terminator = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(o->module, &end, &terminator));
  mp_block_append(func->body, terminator);
  *out_func = func;
  return NULL;
}

static mp_status_t gspmd_outline_make_call(outliner_t *o, const mp_func_t *func,
                                           mp_op_t **out_call) {
  mp_named_attr_t callee = {.name = MP_ATTR_CALLEE, .text = MP_STR("callee")};
  MP_RETURN_IF_ERROR(mp_attr_make_string(o->module->arena, func->name, &callee.value));
  mp_value_t **operands = MP_ARENA_ARRAY(o->scratch, mp_value_t *, o->num_args);
  MP_RETURN_IF_NULL(operands);
  for (uint32_t i = 0; i < o->num_args; ++i) {
    MP_RETURN_IF_ERROR(gspmd_outline_enter(o, o->args[i], &operands[i]));
  }
  const mp_op_spec_t spec = {.code = MP_OP_CALL,
                             .loc = o->exits[0]->loc,
                             .num_operands = o->num_args,
                             .operands = operands,
                             .num_results = o->num_exits,
                             .result_types = func->result_types,
                             .num_attrs = 1,
                             .attrs = &callee};
  MP_RETURN_IF_ERROR(mp_op_create(o->module, &spec, out_call));
  mp_block_append(o->body, *out_call);
  return NULL;
}

// Reorders the block: all ops that are not computed from the region, the call, and the ops after
// it.
static mp_status_t gspmd_outline_rewrite(outliner_t *o) {
  mp_func_t *func = NULL;
  mp_op_t *call = NULL;
  MP_RETURN_IF_ERROR(gspmd_outline_make_func(o, &func));
  for (uint32_t i = 0; i < o->num_ops; ++i) mp_op_unlink(o->ops[i]);
  for (uint32_t i = 0; i < o->num_late; ++i) mp_op_unlink(o->late[i]);
  MP_RETURN_IF_ERROR(gspmd_outline_make_call(o, func, &call));
  for (uint32_t i = 0; i < o->num_exits; ++i) {
    mp_op_t *constraint = NULL;
    MP_RETURN_IF_ERROR(gspmd_outline_call(o, "Sharding", MP_STR("{manual}"), &call->results[i],
                                          call->loc, &constraint));
    o->exits[i]->operands[0] = &constraint->results[0];
  }
  for (uint32_t i = 0; i < o->num_late; ++i) mp_block_append(o->body, o->late[i]);
  return NULL;
}

mp_status_t mp_gspmd_outline(mp_module_t *module, mp_arena_t *scratch) {
  outliner_t o = {.module = module, .scratch = scratch, .body = module->main->body};
  bool has_entry = false;
  for (const mp_op_t *op = o.body->first; op != NULL && !has_entry; op = op->next) {
    has_entry = gspmd_outline_is_entry(op);
  }
  if (!has_entry) return NULL;
  MP_RETURN_IF_ERROR(gspmd_outline_find(&o));
  return o.is_possible ? gspmd_outline_rewrite(&o) : NULL;
}
