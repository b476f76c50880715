#include "sim/fuse/fuse.h"

#include "sim/fuse/fuse_graph.h"
#include "sim/passes/passes.h"

typedef struct {
  mp_module_t *module;
  mp_arena_t *scratch;
  mp_fuse_tables_t tables;
} fuse_t;

typedef mp_status_t (*fuse_step_t)(const fuse_t *fuse, mp_block_t *block);

// Does a step for the block and for the regions of control flow in it, which are parts of the
// program. Inner blocks come first, while their values are still the numbered ones.
static mp_status_t fuse_each_block(const fuse_t *fuse, mp_block_t *block, fuse_step_t step) {
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    if (mp_op_info(op->code)->role != MP_OP_ROLE_CONTROL) continue;
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      MP_RETURN_IF_ERROR(fuse_each_block(fuse, op->regions[r], step));
    }
  }
  return step(fuse, block);
}

static mp_status_t fuse_find_groups(const fuse_t *fuse, mp_block_t *block,
                                    mp_fuse_graph_t *out_graph) {
  MP_RETURN_IF_ERROR(mp_fuse_graph_create(fuse->module, block, fuse->scratch, out_graph));
  return mp_fuse_group(out_graph);
}

// Finds the values to recompute.
static mp_status_t fuse_prepare(const fuse_t *fuse, mp_block_t *block) {
  mp_fuse_graph_t graph;
  MP_RETURN_IF_ERROR(fuse_find_groups(fuse, block, &graph));
  return mp_fuse_again(&graph, fuse->tables.map);
}

static mp_status_t fuse_build(const fuse_t *fuse, mp_block_t *block) {
  mp_fuse_graph_t graph;
  MP_RETURN_IF_ERROR(fuse_find_groups(fuse, block, &graph));
  return mp_fuse_build(&graph, &fuse->tables);
}

// Numbers the values, and makes tables for them.
static mp_status_t fuse_make_tables(fuse_t *fuse) {
  const size_t count = (size_t)mp_module_number_values(fuse->module) + 1;
  fuse->tables = (mp_fuse_tables_t){
      .is_needed = MP_ARENA_ARRAY(fuse->scratch, bool, count),
      .replacements = MP_ARENA_ARRAY(fuse->scratch, mp_fuse_replacement_t, count),
      .map = MP_ARENA_ARRAY(fuse->scratch, mp_value_t *, count)};
  const mp_fuse_tables_t *tables = &fuse->tables;
  const bool is_there =
      tables->is_needed != NULL && tables->replacements != NULL && tables->map != NULL;
  return is_there ? NULL : mp_status_out_of_memory();
}

static mp_status_t fuse_main(fuse_t *fuse) {
  mp_block_t *body = fuse->module->main->body;
  MP_RETURN_IF_ERROR(mp_fuse_constants(fuse->module, fuse->scratch));
  MP_RETURN_IF_ERROR(mp_fuse_gathers(fuse->module));
  MP_RETURN_IF_ERROR(fuse_make_tables(fuse));
  MP_RETURN_IF_ERROR(fuse_each_block(fuse, body, fuse_prepare));
  MP_RETURN_IF_ERROR(fuse_make_tables(fuse));  // there are more values now
  MP_RETURN_IF_ERROR(fuse_each_block(fuse, body, fuse_build));
  // Removes the ops that fused ops have looked through, and so their uses of other values.
  MP_RETURN_IF_ERROR(mp_pass_dead_code(fuse->module));
  return mp_fuse_bands(fuse->module, fuse->scratch);
}

mp_status_t mp_fuse(mp_module_t *module) {
  fuse_t fuse = {.module = module};
  MP_RETURN_IF_ERROR(mp_arena_create(&fuse.scratch));
  mp_status_t status = fuse_main(&fuse);
  mp_arena_release(fuse.scratch);
  return status;
}
