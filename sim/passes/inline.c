// Inlining: after it `main` is the only function.
//
// Replaces calls by copies of the callees' bodies, recursively: the verifier has checked that no
// function calls itself. One map from the module's value ids gives the copy of each value; the
// entries of a function's values are overwritten at its next call.

#include <string.h>

#include "sim/ir/schema.h"
#include "sim/passes/passes.h"
#include "sim/passes/scan.h"

enum {
  MP_INLINE_MAX_OPS = 1 << 20,
  MP_INLINE_MAX_DEPTH = 256,
  MP_INLINE_MAX_PATH = 1000,  // longer names are not extended: the callee's ops keep theirs
};

typedef struct {
  mp_module_t *module;
  mp_value_t **map;  // by id of the original value: its newest copy
  // The location of the innermost call with a known place in a file; NULL: none.
  const mp_loc_t *call;
  mp_str_t path;  // the name of the innermost call, below those around it
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

// The name of a callee's op is relative to its function, "mlp/dot_general"; the copy's name starts
// from the program, "jit(step)/layer0/closed_call/mlp/dot_general". Names that already start from
// the program, as XLA and older versions of JAX write them, stay.
static mp_status_t inline_path(const inliner_t *inliner, const mp_loc_t *loc, mp_str_t *out_path) {
  const mp_loc_t *found = mp_loc_find(loc).name;
  const mp_str_t outer = inliner->path, name = found == NULL ? MP_STR("") : found->text;
  const char *end = outer.size == 0 ? NULL : memchr(outer.data, '/', outer.size);
  const mp_str_t first = {outer.data, end == NULL ? outer.size : (size_t)(end - outer.data)};
  *out_path = name.size == 0 ? outer : name;
  if (outer.size == 0 || name.size == 0 || outer.size + name.size >= MP_INLINE_MAX_PATH)
    return NULL;
  if (name.size >= first.size && memcmp(name.data, first.data, first.size) == 0 &&
      (name.size == first.size || name.data[first.size] == '/'))
    return NULL;
  char *text = MP_ARENA_ARRAY(inliner->module->arena, char, outer.size + 1 + name.size);
  MP_RETURN_IF_NULL(text);
  memcpy(text, outer.data, outer.size);
  text[outer.size] = '/';
  memcpy(text + outer.size + 1, name.data, name.size);
  *out_path = (mp_str_t){text, outer.size + 1 + name.size};
  return NULL;
}

// Functions that JAX caches between programs (those of random bits) have no places of their own, so
// their ops get that of the call.
static mp_status_t inline_place(const inliner_t *inliner, const mp_loc_t *loc,
                                const mp_loc_t **out_loc) {
  *out_loc = loc == NULL ? inliner->call : loc;
  if (inliner->call == NULL || loc == NULL || mp_loc_has_file(loc)) return NULL;
  mp_arena_t *arena = inliner->module->arena;
  mp_loc_t *site = MP_ARENA_ARRAY(arena, mp_loc_t, 1);
  const mp_loc_t **parts = MP_ARENA_ARRAY(arena, const mp_loc_t *, 2);
  if (site == NULL || parts == NULL) return mp_status_out_of_memory();
  parts[0] = loc;
  parts[1] = inliner->call;
  *site = (mp_loc_t){.kind = MP_LOC_CALL_SITE, .num_children = 2, .children = parts};
  *out_loc = site;
  return NULL;
}

// The location of a copy of an op.
static mp_status_t inline_loc(const inliner_t *inliner, const mp_op_t *op,
                              const mp_loc_t **out_loc) {
  const mp_loc_t *place;
  MP_RETURN_IF_ERROR(inline_place(inliner, op->loc, &place));
  *out_loc = place;
  if (inliner->path.size == 0) return NULL;
  mp_str_t path;
  MP_RETURN_IF_ERROR(inline_path(inliner, op->loc, &path));
  const mp_loc_t *inner = place != NULL && place->kind == MP_LOC_NAME && place->num_children == 1
                              ? place->children[0]
                              : place;
  mp_arena_t *arena = inliner->module->arena;
  mp_loc_t *name = MP_ARENA_ARRAY(arena, mp_loc_t, 1);
  const mp_loc_t **child = MP_ARENA_ARRAY(arena, const mp_loc_t *, 1);
  if (name == NULL || child == NULL) return mp_status_out_of_memory();
  *child = inner;
  *name = (mp_loc_t){
      .kind = MP_LOC_NAME, .text = path, .num_children = inner != NULL, .children = child};
  *out_loc = name;
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
  const mp_loc_t *outer_call = inliner->call;
  const mp_str_t outer_path = inliner->path;
  MP_RETURN_IF_ERROR(inline_path(inliner, op->loc, &inliner->path));
  if (mp_loc_has_file(op->loc)) inliner->call = op->loc;
  MP_RETURN_IF_ERROR(inline_copy_block(inliner, body, to, depth + 1, &terminator));
  inliner->call = outer_call;
  inliner->path = outer_path;
  if (terminator == NULL || terminator->num_operands != op->num_results) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "the inlined body does not return %u values",
                       op->num_results);
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    inliner->map[op->results[i].id] = inline_mapped(inliner, terminator->operands[i]);
  }
  return NULL;
}

static mp_status_t inline_copy_region(inliner_t *inliner, const mp_block_t *from,
                                      mp_block_t **out_block, uint32_t depth);

static mp_status_t inline_copy_operands(const inliner_t *inliner, const mp_op_t *op,
                                        mp_value_t ***out_operands, const mp_type_t ***out_types) {
  mp_arena_t *arena = inliner->module->arena;
  *out_operands = MP_ARENA_ARRAY(arena, mp_value_t *, op->num_operands);
  *out_types = MP_ARENA_ARRAY(arena, const mp_type_t *, op->num_results);
  if (*out_operands == NULL || *out_types == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    (*out_operands)[i] = inline_mapped(inliner, op->operands[i]);
  }
  for (uint32_t i = 0; i < op->num_results; ++i) (*out_types)[i] = op->results[i].type;
  return NULL;
}

static mp_status_t inline_put_copy(inliner_t *inliner, const mp_op_t *op, const mp_op_spec_t *spec,
                                   mp_block_t *to) {
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(inliner->module, spec, &copy));
  for (uint32_t i = 0; i < op->num_results; ++i) {
    inliner->map[op->results[i].id] = &copy->results[i];
  }
  mp_block_append(to, copy);
  return NULL;
}

// ---- the user's kernels ----

static bool inline_is_kernel(const mp_op_t *op) {
  return op->code == MP_OP_COMPOSITE && mp_str_is(mp_op_str(op, MP_ATTR_NAME), MP_KERNEL_TARGET);
}

// A composite's description of its kernel, as attributes of a custom_call.
static mp_status_t inline_kernel_attrs(inliner_t *inliner, const mp_op_t *op, mp_named_attr_t **out,
                                       uint32_t *out_count) {
  static const mp_attr_name_t names[] = {MP_ATTR_BACKEND_CONFIG, MP_ATTR_KERNEL_NAME,
                                         MP_ATTR_HAS_SIDE_EFFECT, MP_ATTR_OUTPUT_OPERAND_ALIASES,
                                         MP_ATTR_MHLO_FRONTEND_ATTRIBUTES};
  enum { COUNT = sizeof(names) / sizeof(names[0]) };
  mp_arena_t *arena = inliner->module->arena;
  const mp_attr_t *said = mp_op_attr(op, MP_ATTR_COMPOSITE_ATTRIBUTES);
  mp_named_attr_t attrs[COUNT + 1] = {{.name = MP_ATTR_CALL_TARGET_NAME}};
  uint32_t count = 1;
  MP_RETURN_IF_ERROR(mp_attr_make_string(arena, MP_STR(MP_KERNEL_TARGET), &attrs[0].value));
  for (size_t i = 0; i < COUNT; ++i) {
    const mp_attr_t *value = mp_attr_dict_get(said, names[i]);
    if (value != NULL) attrs[count++] = (mp_named_attr_t){.name = names[i], .value = value};
  }
  for (uint32_t i = 0; i < count; ++i) attrs[i].text = mp_str(mp_attr_name_text(attrs[i].name));
  return mp_schema_complete(arena, MP_OP_CUSTOM_CALL, attrs, count, out, out_count);
}

// A kernel stays one op: a custom_call with its decomposition as a region.
static mp_status_t inline_copy_kernel(inliner_t *inliner, const mp_op_t *op, const mp_block_t *body,
                                      mp_block_t *to, uint32_t depth) {
  mp_op_spec_t spec = {.code = MP_OP_CUSTOM_CALL,
                       .num_operands = op->num_operands,
                       .num_results = op->num_results,
                       .num_regions = 1};
  mp_value_t **operands = NULL;
  mp_named_attr_t *attrs = NULL;
  const mp_type_t **types = NULL;
  mp_block_t *region = NULL;
  MP_RETURN_IF_ERROR(inline_loc(inliner, op, &spec.loc));
  MP_RETURN_IF_ERROR(inline_copy_operands(inliner, op, &operands, &types));
  MP_RETURN_IF_ERROR(inline_copy_region(inliner, body, &region, depth));
  MP_RETURN_IF_ERROR(inline_kernel_attrs(inliner, op, &attrs, &spec.num_attrs));
  spec.operands = operands;
  spec.result_types = types;
  spec.regions = &region;
  spec.attrs = attrs;
  return inline_put_copy(inliner, op, &spec, to);
}

// ---- scans ----

typedef struct {
  inliner_t *inliner;
  uint32_t depth;
} inline_scan_t;

static mp_status_t inline_copy_scan_region(void *context, const mp_block_t *region,
                                           mp_value_t *const *args, mp_block_t *to,
                                           mp_value_t **out_results) {
  const inline_scan_t *scan = context;
  for (uint32_t i = 0; i < region->num_args; ++i) {
    scan->inliner->map[region->args[i].id] = args[i];
  }
  mp_op_t *end = NULL;
  MP_RETURN_IF_ERROR(inline_copy_block(scan->inliner, region, to, scan->depth + 1, &end));
  for (uint32_t i = 0; end != NULL && i < end->num_operands; ++i) {
    out_results[i] = inline_mapped(scan->inliner, end->operands[i]);
  }
  return NULL;
}

static mp_status_t inline_copy_scan(inliner_t *inliner, const mp_op_t *op, const mp_block_t *body,
                                    mp_block_t *to, uint32_t depth) {
  inline_scan_t context = {inliner, depth};
  mp_scan_t scan = {.module = inliner->module,
                    .op = op,
                    .copy_region = inline_copy_scan_region,
                    .context = &context};
  mp_value_t **operands = NULL;
  mp_value_t **results = MP_ARENA_ARRAY(inliner->module->arena, mp_value_t *, op->num_results);
  const mp_type_t **types = NULL;
  bool is_made = false;
  MP_RETURN_IF_NULL(results);
  MP_RETURN_IF_ERROR(inline_copy_operands(inliner, op, &operands, &types));
  MP_RETURN_IF_ERROR(inline_loc(inliner, op, &scan.loc));
  scan.operands = operands;
  MP_RETURN_IF_ERROR(mp_scan_make(&scan, to, results, &is_made));
  if (!is_made) return inline_copy_body(inliner, op, body, to, depth);
  for (uint32_t i = 0; i < op->num_results; ++i) inliner->map[op->results[i].id] = results[i];
  return NULL;
}

// ---- ops ----

// What takes the place of a call.
static mp_status_t inline_copy_call(inliner_t *inliner, const mp_op_t *op, mp_block_t *to,
                                    uint32_t depth) {
  const mp_func_t *callee = NULL;
  MP_RETURN_IF_ERROR(inline_find_callee(inliner, op, &callee));
  if (inline_is_kernel(op)) return inline_copy_kernel(inliner, op, callee->body, to, depth);
  if (mp_scan_is(op)) return inline_copy_scan(inliner, op, callee->body, to, depth);
  return inline_copy_body(inliner, op, callee->body, to, depth);
}

// Copies an op that stays, with its regions; its operands become the copies.
static mp_status_t inline_copy_op(inliner_t *inliner, const mp_op_t *op, mp_block_t *to,
                                  uint32_t depth) {
  mp_value_t **operands = NULL;
  const mp_type_t **types = NULL;
  mp_block_t **regions = MP_ARENA_ARRAY(inliner->module->arena, mp_block_t *, op->num_regions);
  MP_RETURN_IF_NULL(regions);
  MP_RETURN_IF_ERROR(inline_copy_operands(inliner, op, &operands, &types));
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    MP_RETURN_IF_ERROR(inline_copy_region(inliner, op->regions[r], &regions[r], depth));
  }
  const mp_loc_t *loc = NULL;
  MP_RETURN_IF_ERROR(inline_loc(inliner, op, &loc));
  const mp_op_spec_t spec = {op->code,        loc,      op->num_operands, operands,
                             op->num_results, types,    op->num_regions,  regions,
                             op->num_attrs,   op->attrs};
  return inline_put_copy(inliner, op, &spec, to);
}

static mp_status_t inline_copy_region(inliner_t *inliner, const mp_block_t *from,
                                      mp_block_t **out_block, uint32_t depth) {
  mp_module_t *module = inliner->module;
  const mp_type_t **args = MP_ARENA_ARRAY(module->arena, const mp_type_t *, from->num_args);
  MP_RETURN_IF_NULL(args);
  for (uint32_t i = 0; i < from->num_args; ++i) args[i] = from->args[i].type;
  MP_RETURN_IF_ERROR(mp_block_create(module, from->num_args, args, out_block));
  for (uint32_t i = 0; i < from->num_args; ++i) {
    inliner->map[from->args[i].id] = &(*out_block)->args[i];
  }
  mp_op_t *terminator = NULL;
  MP_RETURN_IF_ERROR(inline_copy_block(inliner, from, *out_block, depth + 1, &terminator));
  return terminator == NULL ? NULL : inline_copy_op(inliner, terminator, *out_block, depth);
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
      MP_RETURN_IF_ERROR(inline_copy_call(inliner, op, to, depth));
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
