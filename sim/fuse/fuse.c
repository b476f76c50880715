#include "sim/fuse/fuse.h"

#include "sim/fuse/fuse_graph.h"
#include "sim/passes/passes.h"

typedef struct {
  mp_module_t *module;
  mp_arena_t *scratch;
  mp_fuse_tables_t tables;
} fuse_t;

// Looks for what can be computed now and what can be computed again in the block, and in the
// regions of control flow in it.
static mp_status_t fuse_again_in(const fuse_t *fuse, mp_block_t *block, mp_value_t **map) {
  mp_fuse_graph_t graph;
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    if (mp_op_info(op->code)->role != MP_OP_ROLE_CONTROL) continue;
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      MP_RETURN_IF_ERROR(fuse_again_in(fuse, op->regions[r], map));
    }
  }
  MP_RETURN_IF_ERROR(mp_fuse_constants(fuse->module, block));
  MP_RETURN_IF_ERROR(mp_fuse_graph_create(fuse->module, block, fuse->scratch, &graph));
  mp_fuse_group(&graph);
  return mp_fuse_again(&graph, map);
}

// The regions of control flow are parts of the program; those within come first, while their values
// still are those that were numbered.
static mp_status_t fuse_block(const fuse_t *fuse, mp_block_t *block) {
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    if (mp_op_info(op->code)->role != MP_OP_ROLE_CONTROL) continue;
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      MP_RETURN_IF_ERROR(fuse_block(fuse, op->regions[r]));
    }
  }
  mp_fuse_graph_t graph;
  MP_RETURN_IF_ERROR(mp_fuse_graph_create(fuse->module, block, fuse->scratch, &graph));
  mp_fuse_group(&graph);
  return mp_fuse_build(&graph, &fuse->tables);
}

static mp_status_t fuse_main(fuse_t *fuse) {
  size_t count = (size_t)mp_module_number_values(fuse->module) + 1;
  mp_value_t **map = MP_ARENA_ARRAY(fuse->scratch, mp_value_t *, count);
  MP_RETURN_IF_NULL(map);
  MP_RETURN_IF_ERROR(fuse_again_in(fuse, fuse->module->main->body, map));
  count = (size_t)mp_module_number_values(fuse->module) + 1;
  fuse->tables = (mp_fuse_tables_t){
      .is_needed = MP_ARENA_ARRAY(fuse->scratch, bool, count),
      .replacements = MP_ARENA_ARRAY(fuse->scratch, mp_fuse_replacement_t, count),
      .map = MP_ARENA_ARRAY(fuse->scratch, mp_value_t *, count)};
  if (fuse->tables.is_needed == NULL || fuse->tables.replacements == NULL ||
      fuse->tables.map == NULL) {
    return mp_status_out_of_memory();
  }
  return fuse_block(fuse, fuse->module->main->body);
}

mp_status_t mp_fuse(mp_module_t *module) {
  fuse_t fuse = {.module = module};
  MP_RETURN_IF_ERROR(mp_arena_create(&fuse.scratch));
  mp_status_t status = fuse_main(&fuse);
  mp_arena_release(fuse.scratch);
  return status != NULL ? status : mp_pass_dead_code(module);
}
