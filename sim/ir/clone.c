// Copying ops with their regions, and main.
#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/ir/module.h"

static mp_status_t clone_block(mp_module_t *module, const mp_block_t *block, mp_value_t **map,
                               mp_block_t **out_block) {
  const mp_type_t **types = MP_ARENA_ARRAY(module->arena, const mp_type_t *, block->num_args);
  MP_RETURN_IF_NULL(types);
  for (uint32_t i = 0; i < block->num_args; ++i) types[i] = block->args[i].type;
  mp_block_t *copy;
  MP_RETURN_IF_ERROR(mp_block_create(module, block->num_args, types, &copy));
  for (uint32_t i = 0; i < block->num_args; ++i) {
    copy->args[i].id = block->args[i].id;
    map[block->args[i].id] = &copy->args[i];
  }
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    mp_op_t *op_copy;
    MP_RETURN_IF_ERROR(mp_op_clone(module, op, map, &op_copy));
    mp_block_append(copy, op_copy);
  }
  *out_block = copy;
  return NULL;
}

mp_status_t mp_op_clone(mp_module_t *module, const mp_op_t *op, mp_value_t **map,
                        mp_op_t **out_op) {
  mp_arena_t *arena = module->arena;
  mp_value_t **operands = MP_ARENA_ARRAY(arena, mp_value_t *, op->num_operands);
  const mp_type_t **types = MP_ARENA_ARRAY(arena, const mp_type_t *, op->num_results);
  mp_block_t **regions = MP_ARENA_ARRAY(arena, mp_block_t *, op->num_regions);
  if (operands == NULL || types == NULL || regions == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    mp_value_t *mapped = map[op->operands[i]->id];
    operands[i] = mapped != NULL ? mapped : op->operands[i];
  }
  for (uint32_t i = 0; i < op->num_results; ++i) types[i] = op->results[i].type;
  for (uint32_t i = 0; i < op->num_regions; ++i)
    MP_RETURN_IF_ERROR(clone_block(module, op->regions[i], map, &regions[i]));

  mp_op_t *copy;
  mp_op_spec_t spec = {
      .code = op->code,
      .loc = op->loc,
      .num_operands = op->num_operands,
      .operands = operands,
      .num_results = op->num_results,
      .result_types = types,
      .num_regions = op->num_regions,
      .regions = regions,
      .num_attrs = op->num_attrs,
      .attrs = op->attrs,
  };
  MP_RETURN_IF_ERROR(mp_op_create(module, &spec, &copy));
  MP_ASSERT(copy->parent == NULL);
  copy->id = op->id;
  copy->control = op->control;
  copy->rings = op->rings;
  copy->by_permutes = op->by_permutes;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    copy->results[i].id = op->results[i].id;
    map[op->results[i].id] = &copy->results[i];
  }
  *out_op = copy;
  return NULL;
}

static mp_status_t clone_main(mp_module_t *module, mp_module_t *copy) {
  const mp_func_t *main = module->main;
  const uint32_t num_values = mp_module_number_values(module);
  mp_value_t **map = mp_calloc((size_t)num_values + 1, sizeof(mp_value_t *));
  MP_RETURN_IF_NULL(map);
  mp_block_t *body = NULL;
  mp_status_t status = clone_block(copy, main->body, map, &body);
  mp_free(map);
  if (status != NULL) return status;
  mp_func_t *func = MP_ARENA_NEW(copy->arena, mp_func_t);
  MP_RETURN_IF_NULL(func);
  *func = *main;
  func->next = NULL;
  func->body = body;
  body->parent_func = func;
  MP_QUEUE_PUSH(&copy->funcs, func, next);
  copy->main = func;
  return NULL;
}

mp_status_t mp_module_copy_main(mp_module_t *module, mp_module_t **out_copy) {
  mp_module_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_module_create(&copy));
  copy->name = module->name;
  copy->num_replicas = module->num_replicas;
  copy->num_partitions = module->num_partitions;
  const mp_status_t status = clone_main(module, copy);
  if (status != NULL) {
    mp_module_release(copy);
    return status;
  }
  *out_copy = copy;
  return NULL;
}
