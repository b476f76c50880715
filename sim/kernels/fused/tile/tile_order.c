#include "sim/kernels/fused/tile/tile_order.h"

#include "sim/kernels/fused/tile/tile_registers.h"
#include "sim/kernels/shape.h"

// LINE: the bytes of a cache line; a block has so many of each column, so that lines are read once.
// MIN_ROW: shorter rows are read by whole rows in each tile. BLOCK_LANES: the elements of a row in
// a block, which stays in the second cache until its last row is read.
enum { LINE = 64, LINES = 4, MIN_ROW = 256, BLOCK_LANES = 256, MAX_BLOCK_BYTES = 128 * 1024 };

// Whether a step loads an array through a view that allows blocks, with rows of `row` elements if
// that is not 0.
static bool tile_order_can_block(const mp_tile_program_t *program, const mp_tile_step_t *step,
                                 int64_t row) {
  if (step->kind != MP_TILE_LOAD || program->slots[step->out].is_column) return false;
  const mp_view_t *view = step->view;
  if (!mp_view_transposes(view)) return false;
  const int64_t width = view->dims[view->rank - 1].extent,
                height = view->dims[view->rank - 2].extent;
  return width >= MIN_ROW && height >= 4 && (row == 0 || width == row);
}

// The lanes of tiles that divide a row about equally.
static uint32_t tile_order_lanes(int64_t row) {
  const int64_t tiles = (row + BLOCK_LANES - 1) / BLOCK_LANES;
  return (uint32_t)(((row + tiles - 1) / tiles + 15) & ~(int64_t)15);
}

void mp_tile_choose_order(mp_tile_program_t *program) {
  mp_tile_blocks_t *blocks = &program->blocks;
  if (program->row != 1) return;
  for (uint32_t s = program->num_first; s < program->num_steps; ++s) {
    mp_tile_step_t *step = &program->steps[s];
    if (!tile_order_can_block(program, step, blocks->row)) continue;
    const mp_view_t *view = step->view;
    const uint32_t size = program->slots[step->out].size;
    if (blocks->row == 0) {
      const int64_t rows = view->dims[view->rank - 2].extent;
      *blocks = (mp_tile_blocks_t){.row = view->dims[view->rank - 1].extent, .num_rows = rows};
      blocks->height = (uint32_t)mp_min_i64(LINES * LINE / size, rows);
      blocks->lanes = tile_order_lanes(blocks->row);
    } else if (view->dims[view->rank - 2].extent % blocks->num_rows != 0) {
      continue;  // a block would cross where the view's dimensions end
    }
    const uint32_t bytes = blocks->height * size;
    if ((blocks->bytes + bytes) * blocks->lanes > MAX_BLOCK_BYTES) continue;
    step->is_block = true;
    step->block = blocks->bytes;
    blocks->bytes += bytes;
  }
}

// The first step that writes a slot.
static uint32_t tile_order_writer(const mp_tile_program_t *program, uint32_t slot) {
  uint32_t s = 0;
  while (s < program->num_steps && program->steps[s].out != slot) ++s;
  return s;
}

// Whether no step after `s` reads or writes the slot.
static bool tile_order_ends(const mp_tile_program_t *program, uint32_t slot, uint32_t s) {
  for (++s; s < program->num_steps; ++s) {
    const mp_tile_step_t *step = &program->steps[s];
    const uint32_t num_inputs = mp_tile_num_inputs(step);
    if (step->out == slot) return false;
    for (uint32_t k = 0; k < num_inputs; ++k) {
      if (step->in[k] == slot) return false;
    }
  }
  return true;
}

void mp_tile_choose_landing(mp_tile_program_t *program) {
  for (uint32_t i = 0; i < program->num_slots; ++i) {
    const mp_tile_slot_t *result = &program->slots[i];
    if (result->place != MP_TILE_RESULT || result->is_column) continue;
    const uint32_t end = tile_order_writer(program, i);
    for (uint32_t s = program->num_first + program->num_cyclic; s < end; ++s) {
      mp_tile_step_t *step = &program->steps[s];
      const mp_tile_slot_t *slot = &program->slots[step->out];
      if (step->kind != MP_TILE_LOAD || step->is_block || slot->is_column) continue;
      if (slot->size != result->size) continue;
      if (!tile_order_ends(program, step->out, end)) continue;
      step->lands = true;
      step->landing = i;
      program->num_landing = s + 1;
      return;
    }
  }
}
