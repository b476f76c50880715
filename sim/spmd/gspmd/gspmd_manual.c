// Makes manual regions. A call whose operands come through SPMDFullToShardShape and whose results
// go through SPMDShardToFullShape is one: this is how JAX writes shard_map for GSPMD.
#include "sim/spmd/gspmd/gspmd_parts.h"
#include "sim/spmd/sharding/annotations.h"

enum { MP_MAX_CALL_DEPTH = 256 };

typedef struct {
  mp_gspmd_importer_t *im;
  bool is_real;
  bool is_possible;
  uint32_t num_borders;   // the borders of all regions that were found
  uint32_t *func_axes;    // by function number: the axes that are manual around its calls
  bool *func_is_done;     // by function number
  mp_value_t **map;       // by value id: its copy in a clone
  mp_value_t **replaced;  // by value id: the replacement of a border's result
  struct dead_s *dead;    // ops to be unlinked at the end of their block
} region_maker_t;

typedef struct dead_s {
  mp_op_t *op;
  struct dead_s *next;
} dead_t;

// The exit of a result of the call: one @Sharding call uses the result, and one border uses that.
typedef struct {
  mp_op_t *constraint, *border;
} exit_t;

typedef struct {
  mp_op_t *call;
  const mp_func_t *callee;
  mp_op_t **entries;  // [call's operands]: the borders
  exit_t *exits;      // [call's results]; NULLs for results that are not used
  uint32_t num_exits;
  uint32_t axes;  // the set of axes that are manual in the region but not around it
} region_t;

static uint32_t gspmd_manual_func_number(const mp_module_t *module, const mp_func_t *func) {
  uint32_t number = 0;
  for (const mp_func_t *f = module->funcs.first; f != func; f = f->next) ++number;
  return number;
}

static uint32_t gspmd_manual_uses_of(const region_maker_t *maker, const mp_value_t *value) {
  return maker->im->uses[value->id];
}

// ---- recognising ----

// Whether all operands come through borders, which name the same manual axes, from values with a
// sharding.
static bool gspmd_manual_find_entries(region_maker_t *maker, region_t *region, uint32_t around) {
  const mp_gspmd_importer_t *im = maker->im;
  for (uint32_t i = 0; i < region->call->num_operands; ++i) {
    mp_op_t *border = region->call->operands[i]->op;
    if (!mp_gspmd_is_call(border, "SPMDFullToShardShape")) return false;
    const mp_op_t *constraint = border->operands[0]->op;
    const mp_gspmd_entry_t *entry = mp_gspmd_entry_of(im, border);
    if (!mp_gspmd_is_call(constraint, "Sharding") || entry == NULL ||
        mp_gspmd_entry_of(im, constraint) == NULL ||
        gspmd_manual_uses_of(maker, &border->results[0]) != 1) {
      return false;
    }
    const uint32_t axes = mp_gspmd_manual_axes(im, entry) & ~around;
    if (i != 0 && axes != region->axes) return false;
    region->axes = axes;
    region->entries[i] = border;
  }
  return true;
}

static bool gspmd_manual_find_exits(region_maker_t *maker, region_t *region, uint32_t around) {
  const mp_gspmd_importer_t *im = maker->im;
  for (uint32_t i = 0; i < region->call->num_results; ++i) {
    const mp_value_t *result = &region->call->results[i];
    if (gspmd_manual_uses_of(maker, result) == 0) continue;
    mp_op_t *constraint = im->users[result->id];
    if (gspmd_manual_uses_of(maker, result) != 1 || !mp_gspmd_is_call(constraint, "Sharding"))
      return false;
    const mp_value_t *inner = &constraint->results[0];
    mp_op_t *border = gspmd_manual_uses_of(maker, inner) == 1 ? im->users[inner->id] : NULL;
    const mp_gspmd_entry_t *entry = mp_gspmd_entry_of(im, constraint);
    if (!mp_gspmd_is_call(border, "SPMDShardToFullShape") || entry == NULL ||
        mp_gspmd_entry_of(im, border) == NULL || border->parent != region->call->parent) {
      return false;
    }
    const uint32_t axes = mp_gspmd_manual_axes(im, entry) & ~around;
    const bool is_first = region->num_exits == 0 && region->call->num_operands == 0;
    if (!is_first && axes != region->axes) return false;
    region->axes = axes;
    region->exits[i] = (exit_t){constraint, border};
    ++region->num_exits;
  }
  return true;
}

static bool gspmd_manual_is_region_call(const mp_op_t *op, const mp_gspmd_importer_t *im) {
  if (op->code != MP_OP_CALL) return false;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (mp_gspmd_is_call(op->operands[i]->op, "SPMDFullToShardShape")) return true;
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const mp_op_t *user = im->users[op->results[i].id];
    if (!mp_gspmd_is_call(user, "Sharding")) continue;
    const mp_op_t *next = im->users[user->results[0].id];
    if (mp_gspmd_is_call(next, "SPMDShardToFullShape")) return true;
  }
  return false;
}

// ---- making ----

static mp_status_t gspmd_manual_in_shardings(region_maker_t *maker, const region_t *region,
                                             const mp_attr_t **out_attr) {
  const uint32_t count = region->call->num_operands;
  mp_arena_t *arena = maker->im->module->arena;
  mp_sdy_sharding_t *list = MP_ARENA_ARRAY(arena, mp_sdy_sharding_t, count);
  MP_RETURN_IF_NULL(list);
  for (uint32_t i = 0; i < count; ++i) {
    const mp_op_t *constraint = region->entries[i]->operands[0]->op;
    MP_RETURN_IF_ERROR(mp_gspmd_to_sdy(maker->im, mp_gspmd_entry_of(maker->im, constraint),
                                       constraint->results[0].type, constraint, region->axes,
                                       &list[i]));
  }
  return mp_annotation_make_list(arena, list, count, out_attr);
}

static mp_status_t gspmd_manual_out_shardings(region_maker_t *maker, const region_t *region,
                                              const mp_attr_t **out_attr) {
  mp_arena_t *arena = maker->im->module->arena;
  mp_sdy_sharding_t *list = MP_ARENA_ARRAY(arena, mp_sdy_sharding_t, region->num_exits);
  MP_RETURN_IF_NULL(list);
  uint32_t count = 0;
  for (uint32_t i = 0; i < region->call->num_results; ++i) {
    const mp_op_t *border = region->exits[i].border;
    if (border == NULL) continue;
    MP_RETURN_IF_ERROR(mp_gspmd_to_sdy(maker->im, mp_gspmd_entry_of(maker->im, border),
                                       border->results[0].type, border, region->axes,
                                       &list[count++]));
  }
  return mp_annotation_make_list(arena, list, count, out_attr);
}

static mp_status_t gspmd_manual_axes(region_maker_t *maker, const region_t *region,
                                     const mp_attr_t **out_attr) {
  mp_gspmd_importer_t *im = maker->im;
  mp_axis_ref_t *axes = MP_ARENA_ARRAY(im->module->arena, mp_axis_ref_t, im->mesh->num_axes);
  mp_attr_t *attr = MP_ARENA_NEW(im->module->arena, mp_attr_t);
  if (axes == NULL || attr == NULL) return mp_status_out_of_memory();
  uint32_t count = 0;
  for (uint32_t i = 0; i < im->mesh->num_axes; ++i) {
    if (region->axes >> i & 1) axes[count++] = im->names[i];
  }
  attr->kind = MP_KIND_AXES;
  attr->u.axes = (mp_axis_list_t){count, axes};
  *out_attr = attr;
  return NULL;
}

// Copies the callee's body with the results that are used.
static mp_status_t gspmd_manual_copy_body(region_maker_t *maker, const region_t *region,
                                          mp_block_t **out_body) {
  mp_module_t *module = maker->im->module;
  const mp_block_t *from = region->callee->body;
  const mp_type_t **types = MP_ARENA_ARRAY(maker->im->scratch, const mp_type_t *, from->num_args);
  MP_RETURN_IF_NULL(types);
  for (uint32_t i = 0; i < from->num_args; ++i) types[i] = from->args[i].type;
  mp_block_t *body = NULL;
  MP_RETURN_IF_ERROR(mp_block_create(module, from->num_args, types, &body));
  for (uint32_t i = 0; i < from->num_args; ++i) maker->map[from->args[i].id] = &body->args[i];
  for (const mp_op_t *op = from->first; op != NULL; op = op->next) {
    mp_op_t *copy = NULL;
    MP_RETURN_IF_ERROR(mp_op_clone(module, op, maker->map, &copy));
    mp_block_append(body, copy);
  }
  mp_op_t *end = mp_block_terminator(body);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < region->call->num_results; ++i) {
    if (region->exits[i].border != NULL) end->operands[kept++] = end->operands[i];
  }
  end->num_operands = kept;
  *out_body = body;
  return NULL;
}

static mp_status_t gspmd_manual_make_op(region_maker_t *maker, const region_t *region,
                                        mp_op_t **out_op) {
  mp_module_t *module = maker->im->module;
  const mp_op_t *call = region->call;
  mp_value_t **operands = MP_ARENA_ARRAY(maker->im->scratch, mp_value_t *, call->num_operands);
  const mp_type_t **types =
      MP_ARENA_ARRAY(maker->im->scratch, const mp_type_t *, call->num_results);
  if (operands == NULL || types == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < call->num_operands; ++i) {
    operands[i] = region->entries[i]->operands[0];
  }
  uint32_t num_results = 0;
  for (uint32_t i = 0; i < call->num_results; ++i) {
    const mp_op_t *border = region->exits[i].border;
    if (border != NULL) types[num_results++] = border->results[0].type;
  }
  mp_named_attr_t attrs[3] = {{MP_ATTR_IN_SHARDINGS, MP_STR("in_shardings"), NULL},
                              {MP_ATTR_MANUAL_AXES, MP_STR("manual_axes"), NULL},
                              {MP_ATTR_OUT_SHARDINGS, MP_STR("out_shardings"), NULL}};
  MP_RETURN_IF_ERROR(gspmd_manual_in_shardings(maker, region, &attrs[0].value));
  MP_RETURN_IF_ERROR(gspmd_manual_axes(maker, region, &attrs[1].value));
  MP_RETURN_IF_ERROR(gspmd_manual_out_shardings(maker, region, &attrs[2].value));
  mp_block_t *body = NULL;
  MP_RETURN_IF_ERROR(gspmd_manual_copy_body(maker, region, &body));
  const mp_op_spec_t spec = {.code = MP_OP_SDY_MANUAL_COMPUTATION,
                             .loc = call->loc,
                             .num_operands = call->num_operands,
                             .operands = operands,
                             .num_results = num_results,
                             .result_types = types,
                             .num_regions = 1,
                             .regions = &body,
                             .num_attrs = 3,
                             .attrs = attrs};
  return mp_op_create(module, &spec, out_op);
}

static mp_status_t gspmd_manual_add_dead(region_maker_t *maker, mp_op_t *op) {
  dead_t *dead = MP_ARENA_NEW(maker->im->scratch, dead_t);
  MP_RETURN_IF_NULL(dead);
  *dead = (dead_t){op, maker->dead};
  maker->dead = dead;
  return NULL;
}

// Puts the region in place of the call and its borders.
static mp_status_t gspmd_manual_make_region(region_maker_t *maker, const region_t *region) {
  mp_op_t *op = NULL;
  MP_RETURN_IF_ERROR(gspmd_manual_make_op(maker, region, &op));
  mp_block_insert_before(region->call, op);
  uint32_t result = 0;
  for (uint32_t i = 0; i < region->call->num_results; ++i) {
    const exit_t *exit = &region->exits[i];
    if (exit->border == NULL) continue;
    const uint32_t id = exit->border->results[0].id;
    op->results[result].id = id;
    maker->replaced[id] = &op->results[result++];
    MP_RETURN_IF_ERROR(gspmd_manual_add_dead(maker, exit->border));
    MP_RETURN_IF_ERROR(gspmd_manual_add_dead(maker, exit->constraint));
  }
  for (uint32_t i = 0; i < region->call->num_operands; ++i) {
    MP_RETURN_IF_ERROR(gspmd_manual_add_dead(maker, region->entries[i]));
  }
  return gspmd_manual_add_dead(maker, region->call);
}

// ---- going through the functions ----

static mp_status_t gspmd_manual_visit_func(region_maker_t *maker, const mp_func_t *func,
                                           uint32_t around, uint32_t depth);

static mp_status_t gspmd_manual_visit_call(region_maker_t *maker, mp_op_t *op, uint32_t around,
                                           uint32_t depth) {
  mp_gspmd_importer_t *im = maker->im;
  region_t region = {.call = op,
                     .callee = mp_module_find_func(im->module, mp_op_str(op, MP_ATTR_CALLEE))};
  if (region.callee == NULL || region.callee->body == NULL) {
    maker->is_possible = false;
    return NULL;
  }
  if (!gspmd_manual_is_region_call(op, im))
    return gspmd_manual_visit_func(maker, region.callee, around, depth + 1);
  region.entries = MP_ARENA_ARRAY(im->scratch, mp_op_t *, op->num_operands);
  region.exits = MP_ARENA_ARRAY(im->scratch, exit_t, op->num_results);
  if (region.entries == NULL || region.exits == NULL) return mp_status_out_of_memory();
  if (!gspmd_manual_find_entries(maker, &region, around) ||
      !gspmd_manual_find_exits(maker, &region, around) || region.axes == 0) {
    maker->is_possible = false;
    return NULL;
  }
  maker->num_borders += op->num_operands + region.num_exits;
  MP_RETURN_IF_ERROR(
      gspmd_manual_visit_func(maker, region.callee, around | region.axes, depth + 1));
  return maker->is_real && maker->is_possible ? gspmd_manual_make_region(maker, &region) : NULL;
}

static mp_status_t gspmd_manual_visit_block(region_maker_t *maker, mp_block_t *block,
                                            uint32_t around, uint32_t depth) {
  dead_t *const dead = maker->dead;
  for (mp_op_t *op = block->first; op != NULL && maker->is_possible; op = op->next) {
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      mp_value_t *value = maker->replaced[op->operands[i]->id];
      if (value != NULL) op->operands[i] = value;
    }
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      // The body of a region that was just made is a copy of a function that was visited already.
      if (op->code == MP_OP_SDY_MANUAL_COMPUTATION) break;
      MP_RETURN_IF_ERROR(gspmd_manual_visit_block(maker, op->regions[r], around, depth));
    }
    if (op->code == MP_OP_CALL)
      MP_RETURN_IF_ERROR(gspmd_manual_visit_call(maker, op, around, depth));
  }
  for (; maker->dead != dead; maker->dead = maker->dead->next) {
    if (maker->dead->op->parent != NULL) mp_op_unlink(maker->dead->op);
  }
  return NULL;
}

// A function is rewritten once, so the same axes must be manual around all of its calls.
static mp_status_t gspmd_manual_visit_func(region_maker_t *maker, const mp_func_t *func,
                                           uint32_t around, uint32_t depth) {
  const uint32_t number = gspmd_manual_func_number(maker->im->module, func);
  if (maker->func_is_done[number] && maker->func_axes[number] == around) return NULL;
  if (maker->func_is_done[number] || depth > MP_MAX_CALL_DEPTH) {
    maker->is_possible = false;
    return NULL;
  }
  maker->func_is_done[number] = true;
  maker->func_axes[number] = around;
  return gspmd_manual_visit_block(maker, func->body, around, depth);
}

mp_status_t mp_gspmd_make_regions(mp_gspmd_importer_t *im, bool is_real, bool *out_possible) {
  uint32_t num_funcs = 0;
  for (const mp_func_t *func = im->module->funcs.first; func != NULL; func = func->next)
    ++num_funcs;
  region_maker_t maker = {
      .im = im,
      .is_real = is_real,
      .is_possible = true,
      .func_axes = MP_ARENA_ARRAY(im->scratch, uint32_t, num_funcs),
      .func_is_done = MP_ARENA_ARRAY(im->scratch, bool, num_funcs),
      .map = MP_ARENA_ARRAY(im->scratch, mp_value_t *, (size_t)im->num_values + 1),
      .replaced = MP_ARENA_ARRAY(im->scratch, mp_value_t *, (size_t)im->num_values + 1)};
  if (maker.func_axes == NULL || maker.func_is_done == NULL || maker.map == NULL ||
      maker.replaced == NULL) {
    return mp_status_out_of_memory();
  }
  MP_RETURN_IF_ERROR(gspmd_manual_visit_func(&maker, im->module->main, 0, 0));
  *out_possible = maker.is_possible && maker.num_borders == im->num_borders;
  return NULL;
}
