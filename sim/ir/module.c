// Modules, functions and blocks. Ops are in op.c, traversals in walk.c, copies in clone.c.
#include "sim/ir/module.h"

#include <string.h>

#include "sim/base/assert.h"

mp_status_t mp_module_create(mp_module_t **out_module) {
  mp_arena_t *arena;
  MP_RETURN_IF_ERROR(mp_arena_create(&arena));
  mp_module_t *module = MP_ARENA_NEW(arena, mp_module_t);
  if (module == NULL) {
    mp_arena_release(arena);
    return mp_status_out_of_memory();
  }
  module->arena = arena;
  module->name = MP_STR("");
  module->num_replicas = 1;
  module->num_partitions = 1;
  *out_module = module;
  return NULL;
}

void mp_module_release(mp_module_t *module) {
  while (module != NULL) {
    mp_module_t *next = module->adopted;
    mp_arena_release(module->arena);  // in which the module itself lies
    module = next;
  }
}

void mp_module_adopt(mp_module_t *module, mp_module_t *other) {
  mp_module_t *last = other;
  while (last->adopted != NULL) last = last->adopted;
  last->adopted = module->adopted;
  module->adopted = other;
}

mp_func_t *mp_module_find_func(const mp_module_t *module, mp_str_t name) {
  for (mp_func_t *func = module->funcs.first; func != NULL; func = func->next)
    if (mp_str_equal(func->name, name)) return func;
  return NULL;
}

mp_status_t mp_module_add_mesh(mp_module_t *module, const mp_mesh_t *mesh) {
  MP_ASSERT(mesh != NULL);
  return MP_ARRAY_PUSH(module->arena, &module->meshes, mesh);
}

mp_status_t mp_module_make_table(mp_module_t *module, const int64_t *values, int64_t rows,
                                 int64_t columns, const mp_attr_t **out_attr) {
  const size_t bytes = (size_t)rows * (size_t)columns * sizeof(int64_t);
  for (size_t i = module->tables.count; i-- > 0;) {
    const mp_attr_t *table = module->tables.items[i];
    if (table->u.ints.dims[0] != rows || table->u.ints.dims[1] != columns) continue;
    if (bytes != 0 && memcmp(table->u.ints.values, values, bytes) != 0) continue;
    *out_attr = table;
    return NULL;
  }
  MP_RETURN_IF_ERROR(mp_attr_make_table(module->arena, values, rows, columns, out_attr));
  return MP_ARRAY_PUSH(module->arena, &module->tables, *out_attr);
}

mp_status_t mp_func_create(mp_module_t *module, mp_str_t name, uint32_t num_args,
                           const mp_type_t *const *arg_types, uint32_t num_results,
                           const mp_type_t *const *result_types, mp_func_t **out_func) {
  mp_arena_t *arena = module->arena;
  mp_func_t *func = MP_ARENA_NEW(arena, mp_func_t);
  MP_RETURN_IF_NULL(func);
  char *text = mp_arena_strndup(arena, name.data, name.size);
  MP_RETURN_IF_NULL(text);
  func->name = (mp_str_t){text, name.size};
  func->visibility = MP_STR("");
  MP_RETURN_IF_ERROR(mp_block_create(module, num_args, arg_types, &func->body));
  func->body->parent_func = func;
  func->num_results = num_results;
  func->result_types = mp_arena_copy(arena, result_types, num_results * sizeof(result_types[0]));
  func->arg_attrs = MP_ARENA_ARRAY(arena, const mp_attr_t *, num_args);
  func->result_attrs = MP_ARENA_ARRAY(arena, const mp_attr_t *, num_results);
  if (func->result_types == NULL || func->arg_attrs == NULL || func->result_attrs == NULL)
    return mp_status_out_of_memory();

  MP_QUEUE_PUSH(&module->funcs, func, next);
  *out_func = func;
  return NULL;
}

mp_status_t mp_block_create(mp_module_t *module, uint32_t num_args,
                            const mp_type_t *const *arg_types, mp_block_t **out_block) {
  mp_block_t *block = MP_ARENA_NEW(module->arena, mp_block_t);
  MP_RETURN_IF_NULL(block);
  block->args = MP_ARENA_ARRAY(module->arena, mp_value_t, num_args);
  MP_RETURN_IF_NULL(block->args);
  block->num_args = num_args;
  for (uint32_t i = 0; i < num_args; ++i)
    block->args[i] =
        (mp_value_t){.type = arg_types[i], .block = block, .index = i & MP_VALUE_INDEX_MOST};
  *out_block = block;
  return NULL;
}

void mp_block_append(mp_block_t *block, mp_op_t *op) {
  MP_ASSERT(op->parent == NULL && op->prev == NULL && op->next == NULL);
  MP_ASSERT((block->first == NULL) == (block->last == NULL));
  op->parent = block;
  MP_LIST_APPEND(block, op, prev, next);
}

void mp_block_insert_before(mp_op_t *position, mp_op_t *op) {
  MP_ASSERT(position->parent != NULL);
  MP_ASSERT(op->parent == NULL && op->prev == NULL && op->next == NULL);
  op->parent = position->parent;
  MP_LIST_INSERT_BEFORE(op->parent, position, op, prev, next);
}

void mp_op_unlink(mp_op_t *op) {
  if (op->parent == NULL) return;
  MP_ASSERT(op->prev != NULL ? op->prev->next == op : op->parent->first == op);
  MP_ASSERT(op->next != NULL ? op->next->prev == op : op->parent->last == op);
  MP_LIST_REMOVE(op->parent, op, prev, next);
  op->parent = NULL;
}
