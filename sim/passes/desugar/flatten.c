// Flattening: replaces values of tuple and future type by the plain values in them.
//
// Rebuilds the body of main. Each old value becomes a list of new ones: one value if its type is
// plain, and otherwise the leaves of the tuple or future in order. tuple, get_tuple_element and
// async_done only rearrange such lists, and async_start is replaced by its region. In all other
// ops, the arguments of their regions, and main itself leaves replace tuples.
#include "sim/passes/desugar/desugar.h"

// A type of n nodes can have 2^n leaves, because nodes are shared. These limit the nodes of types
// that one run visits in total, and their depth.
enum { MP_FLATTEN_MAX_VISITS = 1 << 24, MP_FLATTEN_MAX_DEPTH = 256 };

typedef struct {
  uint32_t count;
  mp_value_t **values;
} flat_t;

typedef struct {
  mp_module_t *module;
  flat_t *flat;     // by id of the old value
  uint32_t visits;  // nodes of types visited so far
} flattener_t;

static bool flatten_is_compound(const mp_type_t *type) {
  return type->kind == MP_TYPE_TUPLE || type->kind == MP_TYPE_FUTURE;
}

// ---- types ----

// Counts the leaves of `type`, and appends them to `leaves` unless that is NULL.
static mp_status_t flatten_collect_leaves(flattener_t *f, const mp_type_t *type, uint32_t depth,
                                          const mp_type_t **leaves, uint32_t *count) {
  if (depth > MP_FLATTEN_MAX_DEPTH || ++f->visits > MP_FLATTEN_MAX_VISITS) {
    return mp_status_make(MP_RESOURCE_EXHAUSTED, "the program's tuples are too large or too deep");
  }
  if (!flatten_is_compound(type)) {
    if (leaves != NULL) leaves[*count] = type;
    ++*count;
    return NULL;
  }
  for (uint32_t i = 0; i < type->num_elements; ++i) {
    MP_RETURN_IF_ERROR(flatten_collect_leaves(f, type->elements[i], depth + 1, leaves, count));
  }
  return NULL;
}

static mp_status_t flatten_count_leaves(flattener_t *f, const mp_type_t *type,
                                        uint32_t *out_count) {
  *out_count = 0;
  return flatten_collect_leaves(f, type, 0, NULL, out_count);
}

// The leaves of the types of all `values`, in order.
static mp_status_t flatten_flat_types(flattener_t *f, const mp_value_t *values, uint32_t num_values,
                                      const mp_type_t ***out_types, uint32_t *out_count) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < num_values; ++i) {
    uint32_t count = 0;
    MP_RETURN_IF_ERROR(flatten_count_leaves(f, values[i].type, &count));
    total += count;
  }
  const mp_type_t **types = MP_ARENA_ARRAY(f->module->arena, const mp_type_t *, (size_t)total);
  MP_RETURN_IF_NULL(types);
  uint32_t at = 0;
  for (uint32_t i = 0; i < num_values; ++i) {
    MP_RETURN_IF_ERROR(flatten_collect_leaves(f, values[i].type, 0, types, &at));
  }
  *out_types = types;
  *out_count = at;
  return NULL;
}

// ---- values ----

// The lists of `num_values` old values as one list.
static mp_status_t flatten_gather(flattener_t *f, mp_value_t *const *values, uint32_t num_values,
                                  flat_t *out_flat) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < num_values; ++i) total += f->flat[values[i]->id].count;
  if (total > UINT32_MAX) return mp_status_make(MP_RESOURCE_EXHAUSTED, "a tuple is too large");
  flat_t flat = {0, MP_ARENA_ARRAY(f->module->arena, mp_value_t *, (size_t)total)};
  MP_RETURN_IF_NULL(flat.values);
  for (uint32_t i = 0; i < num_values; ++i) {
    const flat_t *part = &f->flat[values[i]->id];
    for (uint32_t k = 0; k < part->count; ++k) flat.values[flat.count++] = part->values[k];
  }
  *out_flat = flat;
  return NULL;
}

// Distributes the values of `flat` over old values, to each as many as its type has leaves. The
// verifier has checked that the numbers match; if they do not, the error is about `op`.
static mp_status_t flatten_deal(flattener_t *f, const mp_op_t *op, flat_t flat,
                                const mp_value_t *values, uint32_t num_values) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < num_values; ++i) {
    uint32_t count = 0;
    MP_RETURN_IF_ERROR(flatten_count_leaves(f, values[i].type, &count));
    if (count > flat.count - at) break;
    f->flat[values[i].id] = (flat_t){count, flat.values + at};
    at += count;
    if (i + 1 == num_values && at == flat.count) return NULL;
  }
  if (num_values == 0 && flat.count == 0) return NULL;
  return mp_op_error(op, MP_INVALID_ARGUMENT, "%u values for %u results or arguments of tuple type",
                     flat.count, num_values);
}

static mp_status_t flatten_pointers_to(flattener_t *f, mp_value_t *values, uint32_t count,
                                       flat_t *out_flat) {
  flat_t flat = {count, MP_ARENA_ARRAY(f->module->arena, mp_value_t *, count)};
  MP_RETURN_IF_NULL(flat.values);
  for (uint32_t i = 0; i < count; ++i) flat.values[i] = &values[i];
  *out_flat = flat;
  return NULL;
}

// ---- ops ----

static mp_status_t flatten_block(flattener_t *f, const mp_block_t *from, mp_block_t *to,
                                 const mp_op_t **out_terminator);

// Makes a block without ops whose arguments are the leaves of the arguments of `from`.
static mp_status_t flatten_new_block(flattener_t *f, const mp_op_t *op, const mp_block_t *from,
                                     mp_block_t **out_block) {
  const mp_type_t **types = NULL;
  uint32_t count = 0;
  flat_t flat = {0};
  MP_RETURN_IF_ERROR(flatten_flat_types(f, from->args, from->num_args, &types, &count));
  MP_RETURN_IF_ERROR(mp_block_create(f->module, count, types, out_block));
  MP_RETURN_IF_ERROR(flatten_pointers_to(f, (*out_block)->args, count, &flat));
  return flatten_deal(f, op, flat, from->args, from->num_args);
}

static mp_status_t flatten_copy_op(flattener_t *f, const mp_op_t *op, mp_block_t *to) {
  mp_module_t *module = f->module;
  flat_t operands = {0};
  flat_t results = {0};
  const mp_type_t **types = NULL;
  uint32_t num_results = 0;
  mp_block_t **regions = MP_ARENA_ARRAY(module->arena, mp_block_t *, op->num_regions);
  MP_RETURN_IF_NULL(regions);
  MP_RETURN_IF_ERROR(flatten_gather(f, op->operands, op->num_operands, &operands));
  MP_RETURN_IF_ERROR(flatten_flat_types(f, op->results, op->num_results, &types, &num_results));
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    const mp_op_t *terminator = NULL;
    MP_RETURN_IF_ERROR(flatten_new_block(f, op, op->regions[r], &regions[r]));
    MP_RETURN_IF_ERROR(flatten_block(f, op->regions[r], regions[r], &terminator));
    if (terminator != NULL) MP_RETURN_IF_ERROR(flatten_copy_op(f, terminator, regions[r]));
  }
  const mp_op_spec_t spec = {.code = op->code,
                             .loc = op->loc,
                             .num_operands = operands.count,
                             .operands = operands.values,
                             .num_results = num_results,
                             .result_types = types,
                             .num_regions = op->num_regions,
                             .regions = regions,
                             .num_attrs = op->num_attrs,
                             .attrs = op->attrs};
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(module, &spec, &copy));
  mp_block_append(to, copy);
  MP_RETURN_IF_ERROR(flatten_pointers_to(f, copy->results, num_results, &results));
  return flatten_deal(f, op, results, op->results, op->num_results);
}

// For tuple and async_done: the results stand for the same values as the operands.
static mp_status_t flatten_forward(flattener_t *f, const mp_op_t *op) {
  flat_t operands = {0};
  MP_RETURN_IF_ERROR(flatten_gather(f, op->operands, op->num_operands, &operands));
  return flatten_deal(f, op, operands, op->results, op->num_results);
}

static mp_status_t flatten_forward_element(flattener_t *f, const mp_op_t *op) {
  const mp_type_t *type = op->operands[0]->type;
  const int64_t index = mp_op_int(op, MP_ATTR_INDEX, -1);
  if (type->kind != MP_TYPE_TUPLE || index < 0 || index >= (int64_t)type->num_elements) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "the operand has no element %lld",
                       (long long)index);
  }
  flat_t flat = f->flat[op->operands[0]->id];
  uint32_t count = 0;
  for (int64_t i = 0; i <= index; ++i) {
    flat.values += count;
    MP_RETURN_IF_ERROR(flatten_count_leaves(f, type->elements[i], &count));
  }
  flat.count = count;
  return flatten_deal(f, op, flat, op->results, op->num_results);
}

// Copies the region to the place of the async_start. The future stands for the region's values.
static mp_status_t flatten_inline_async(flattener_t *f, const mp_op_t *op, mp_block_t *to) {
  const mp_block_t *region = op->regions[0];
  const mp_op_t *terminator = NULL;
  flat_t flat = {0};
  MP_RETURN_IF_ERROR(flatten_gather(f, op->operands, op->num_operands, &flat));
  MP_RETURN_IF_ERROR(flatten_deal(f, op, flat, region->args, region->num_args));
  MP_RETURN_IF_ERROR(flatten_block(f, region, to, &terminator));
  if (terminator == NULL) return mp_op_error(op, MP_INVALID_ARGUMENT, "the region does not return");
  MP_RETURN_IF_ERROR(flatten_gather(f, terminator->operands, terminator->num_operands, &flat));
  return flatten_deal(f, op, flat, op->results, op->num_results);
}

// Copies all ops but the terminator, which is returned.
static mp_status_t flatten_block(flattener_t *f, const mp_block_t *from, mp_block_t *to,
                                 const mp_op_t **out_terminator) {
  for (const mp_op_t *op = from->first; op != NULL; op = op->next) {
    if (mp_op_has(op, MP_OP_TRAIT_TERMINATOR)) {
      *out_terminator = op;
      return NULL;
    }
    switch (op->code) {
      case MP_OP_TUPLE:
      case MP_OP_ASYNC_DONE:
        MP_RETURN_IF_ERROR(flatten_forward(f, op));
        break;
      case MP_OP_GET_TUPLE_ELEMENT:
        MP_RETURN_IF_ERROR(flatten_forward_element(f, op));
        break;
      case MP_OP_ASYNC_START:
        MP_RETURN_IF_ERROR(flatten_inline_async(f, op, to));
        break;
      default:
        MP_RETURN_IF_ERROR(flatten_copy_op(f, op, to));
    }
  }
  return NULL;
}

// ---- main ----

// Attributes of parameters and results stay with them. Attributes of a tuple are refused, because
// they do not say to which leaf they belong.
static mp_status_t flatten_attrs(flattener_t *f, const char *what, const mp_type_t *const *types,
                                 uint32_t num_types, const mp_attr_t *const *attrs,
                                 uint32_t num_leaves, const mp_attr_t ***out_attrs) {
  const mp_attr_t **flat = MP_ARENA_ARRAY(f->module->arena, const mp_attr_t *, num_leaves);
  MP_RETURN_IF_NULL(flat);
  uint32_t at = 0;
  for (uint32_t i = 0; i < num_types; ++i) {
    const mp_attr_t *dict = attrs == NULL ? NULL : attrs[i];
    uint32_t count = 0;
    MP_RETURN_IF_ERROR(flatten_count_leaves(f, types[i], &count));
    if (!flatten_is_compound(types[i])) {
      flat[at] = dict;
    } else if (dict != NULL && dict->u.dict.count != 0) {
      return mp_status_make(MP_UNIMPLEMENTED, "%s %u of main is a tuple and has attributes", what,
                            i);
    }
    at += count;
  }
  *out_attrs = flat;
  return NULL;
}

static mp_status_t flatten_signature(flattener_t *f, mp_func_t *main, const mp_block_t *old) {
  const mp_type_t **types = NULL;
  uint32_t num_results = 0;
  mp_value_t *results = MP_ARENA_ARRAY(f->module->arena, mp_value_t, main->num_results);
  const mp_type_t **params = MP_ARENA_ARRAY(f->module->arena, const mp_type_t *, old->num_args);
  if (results == NULL || params == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < main->num_results; ++i) results[i].type = main->result_types[i];
  for (uint32_t i = 0; i < old->num_args; ++i) params[i] = old->args[i].type;
  MP_RETURN_IF_ERROR(flatten_flat_types(f, results, main->num_results, &types, &num_results));
  MP_RETURN_IF_ERROR(flatten_attrs(f, "argument", params, old->num_args, main->arg_attrs,
                                   main->body->num_args, &main->arg_attrs));
  MP_RETURN_IF_ERROR(flatten_attrs(f, "result", main->result_types, main->num_results,
                                   main->result_attrs, num_results, &main->result_attrs));
  for (uint32_t i = 0; num_results != main->num_results && i < main->body->num_args; ++i) {
    if (mp_attr_dict_get(main->arg_attrs[i], MP_ATTR_TF_ALIASING_OUTPUT) != NULL) {
      return mp_status_make(MP_UNIMPLEMENTED,
                            "main returns tuples and aliases an argument with a result");
    }
  }
  main->result_types = types;
  main->num_results = num_results;
  return NULL;
}

static mp_status_t flatten_find_compound(void *context, mp_op_t *op) {
  bool *found = context;
  *found |= op->code == MP_OP_TUPLE;  // no other op need have the type of an empty tuple
  for (uint32_t i = 0; i < op->num_operands; ++i)
    *found |= flatten_is_compound(op->operands[i]->type);
  for (uint32_t i = 0; i < op->num_results; ++i) *found |= flatten_is_compound(op->results[i].type);
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    const mp_block_t *region = op->regions[r];
    for (uint32_t i = 0; i < region->num_args; ++i)
      *found |= flatten_is_compound(region->args[i].type);
  }
  return NULL;
}

mp_status_t mp_pass_flatten(mp_module_t *module) {
  mp_func_t *main = module->main;
  bool found = false;
  for (uint32_t i = 0; i < main->body->num_args; ++i) {
    found |= flatten_is_compound(main->body->args[i].type);
  }
  MP_RETURN_IF_ERROR(mp_block_walk(main->body, flatten_find_compound, &found));
  if (!found) return NULL;
  const uint32_t count = mp_module_number_values(module);
  flattener_t f = {.module = module,
                   .flat = MP_ARENA_ARRAY(module->arena, flat_t, (size_t)count + 1)};
  MP_RETURN_IF_NULL(f.flat);
  const mp_block_t *old = main->body;
  const mp_op_t *terminator = NULL;
  mp_block_t *body = NULL;
  MP_RETURN_IF_ERROR(flatten_new_block(&f, old->first, old, &body));
  body->parent_func = main;
  MP_RETURN_IF_ERROR(flatten_block(&f, old, body, &terminator));
  if (terminator != NULL) MP_RETURN_IF_ERROR(flatten_copy_op(&f, terminator, body));
  main->body = body;
  return flatten_signature(&f, main, old);
}
