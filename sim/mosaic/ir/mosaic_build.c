#include "sim/mosaic/ir/mosaic_build.h"

#include <stdlib.h>

// ---- modules, types, attributes ----

mp_status_t mp_mosaic_module_create(mp_mosaic_module_t **out_module) {
  mp_arena_t *arena = NULL;
  MP_RETURN_IF_ERROR(mp_arena_create(&arena));
  mp_mosaic_module_t *module = MP_ARENA_NEW(arena, mp_mosaic_module_t);
  if (module == NULL) {
    mp_arena_release(arena);
    return mp_status_out_of_memory();
  }
  module->arena = arena;
  module->version = MP_MOSAIC_NEWEST_VERSION;
  *out_module = module;
  return NULL;
}

mp_status_t mp_mosaic_type_copy(mp_arena_t *arena, const mp_mosaic_type_t *type,
                                const mp_mosaic_type_t **out_type) {
  mp_mosaic_type_t *copy = mp_arena_copy(arena, type, sizeof(*type));
  MP_RETURN_IF_NULL(copy);
  const size_t rank = type->rank, count = type->num_elements;
  if (rank > 0) {
    copy->dims = mp_arena_copy(arena, type->dims, rank * sizeof(type->dims[0]));
    MP_RETURN_IF_NULL(copy->dims);
  }
  if (type->strides != NULL) {
    // One byte more: the strides of a memref of rank 0 are not NULL either.
    int64_t *strides = MP_ARENA_ARRAY(arena, int64_t, rank + 1);
    MP_RETURN_IF_NULL(strides);
    for (size_t i = 0; i < rank; ++i) strides[i] = type->strides[i];
    copy->strides = strides;
  }
  if (type->kind == MP_MOSAIC_FUNCTION) {  // never NULL, even without elements
    copy->elements = mp_arena_copy(arena, type->elements, count * sizeof(type->elements[0]));
    MP_RETURN_IF_NULL(copy->elements);
  }
  *out_type = copy;
  return NULL;
}

mp_status_t mp_mosaic_scalar_type(mp_arena_t *arena, mp_dtype_t dtype,
                                  const mp_mosaic_type_t **out_type) {
  const mp_mosaic_type_t type = {.kind = MP_MOSAIC_SCALAR, .dtype = dtype};
  return mp_mosaic_type_copy(arena, &type, out_type);
}

mp_status_t mp_mosaic_attr_copy(mp_arena_t *arena, const mp_mosaic_attr_t *attr,
                                const mp_mosaic_attr_t **out_attr) {
  *out_attr = mp_arena_copy(arena, attr, sizeof(*attr));
  MP_RETURN_IF_NULL(*out_attr);
  return NULL;
}

static int mosaic_build_compare(const void *a, const void *b) {
  return mp_str_compare(((const mp_mosaic_named_t *)a)->name, ((const mp_mosaic_named_t *)b)->name);
}

mp_str_t mp_mosaic_sort_attrs(mp_mosaic_named_t *items, uint32_t count) {
  if (count > 1) qsort(items, count, sizeof(items[0]), mosaic_build_compare);
  for (uint32_t i = 1; i < count; ++i)
    if (mp_str_equal(items[i - 1].name, items[i].name)) return items[i].name;
  return MP_STR("");
}

// ---- blocks and ops ----

mp_status_t mp_mosaic_block_create(mp_arena_t *arena, const mp_mosaic_type_t *const *types,
                                   uint32_t num_types, mp_mosaic_block_t **out_block) {
  mp_mosaic_block_t *block = MP_ARENA_NEW(arena, mp_mosaic_block_t);
  MP_RETURN_IF_NULL(block);
  block->num_args = num_types;
  block->args = MP_ARENA_ARRAY(arena, mp_mosaic_value_t, num_types);
  MP_RETURN_IF_NULL(block->args);
  for (uint32_t i = 0; i < num_types; ++i)
    block->args[i] = (mp_mosaic_value_t){.type = types[i], .block = block, .index = i};
  *out_block = block;
  return NULL;
}

static mp_status_t mosaic_build_copy_lists(mp_arena_t *arena, const mp_mosaic_op_spec_t *spec,
                                           mp_mosaic_op_t *op) {
  op->operands =
      mp_arena_copy(arena, spec->operands, spec->num_operands * sizeof(spec->operands[0]));
  op->regions = mp_arena_copy(arena, spec->regions, spec->num_regions * sizeof(spec->regions[0]));
  op->attrs = mp_arena_copy(arena, spec->attrs, spec->num_attrs * sizeof(spec->attrs[0]));
  op->results = MP_ARENA_ARRAY(arena, mp_mosaic_value_t, spec->num_results);
  if (op->operands == NULL || op->regions == NULL || op->attrs == NULL || op->results == NULL)
    return mp_status_out_of_memory();
  return NULL;
}

mp_status_t mp_mosaic_op_create(mp_arena_t *arena, const mp_mosaic_op_spec_t *spec,
                                mp_mosaic_block_t *block, mp_mosaic_op_t **out_op) {
  mp_mosaic_op_t *op = MP_ARENA_NEW(arena, mp_mosaic_op_t);
  MP_RETURN_IF_NULL(op);
  *op = (mp_mosaic_op_t){.code = spec->code,
                         .num_operands = spec->num_operands,
                         .num_results = spec->num_results,
                         .num_regions = spec->num_regions,
                         .num_attrs = spec->num_attrs,
                         .loc = spec->loc,
                         .parent = block};
  MP_RETURN_IF_ERROR(mosaic_build_copy_lists(arena, spec, op));
  for (uint32_t i = 0; i < spec->num_results; ++i)
    op->results[i] = (mp_mosaic_value_t){.type = spec->result_types[i], .op = op, .index = i};
  for (uint32_t i = 0; i < spec->num_regions; ++i) op->regions[i]->parent_op = op;
  MP_QUEUE_PUSH(block, op, next);
  *out_op = op;
  return NULL;
}

// ---- functions ----

static void mosaic_build_number(mp_mosaic_block_t *block, uint32_t *next) {
  for (uint32_t i = 0; i < block->num_args; ++i) block->args[i].id = (*next)++;
  for (mp_mosaic_op_t *op = block->first; op != NULL; op = op->next) {
    for (uint32_t i = 0; i < op->num_results; ++i) op->results[i].id = (*next)++;
    for (uint32_t i = 0; i < op->num_regions; ++i) mosaic_build_number(op->regions[i], next);
  }
}

mp_status_t mp_mosaic_func_create(mp_mosaic_module_t *module, const mp_mosaic_named_t *attrs,
                                  uint32_t num_attrs, mp_mosaic_block_t *body,
                                  const mp_loc_t *loc) {
  const mp_mosaic_attr_t *name = mp_mosaic_attr(attrs, num_attrs, "sym_name");
  const mp_mosaic_attr_t *type = mp_mosaic_attr(attrs, num_attrs, "function_type");
  if (name == NULL || name->kind != MP_MOSAIC_STRING)
    return mp_status_make(MP_INVALID_ARGUMENT, "a function of a Mosaic module has no sym_name");
  if (type == NULL || type->kind != MP_MOSAIC_TYPE || type->type->kind != MP_MOSAIC_FUNCTION)
    return mp_status_make(MP_INVALID_ARGUMENT, "the function %.*s has no function_type",
                          MP_STR_SHOWN(name->str, 200));
  mp_mosaic_func_t *func = MP_ARENA_NEW(module->arena, mp_mosaic_func_t);
  mp_mosaic_named_t *kept = MP_ARENA_ARRAY(module->arena, mp_mosaic_named_t, num_attrs);
  if (func == NULL || kept == NULL) return mp_status_out_of_memory();
  *func = (mp_mosaic_func_t){
      .name = name->str, .type = type->type, .body = body, .attrs = kept, .loc = loc};
  for (uint32_t i = 0; i < num_attrs; ++i)
    if (attrs[i].value != name && attrs[i].value != type) kept[func->num_attrs++] = attrs[i];
  body->func = func;
  mosaic_build_number(body, &func->num_values);
  MP_QUEUE_PUSH(&module->funcs, func, next);
  return NULL;
}
