#include "sim/kernels/fused/tile/tile_cycles.h"

#include <string.h>

#include "sim/kernels/fused/tile/tile_registers.h"

// A tile has whole cycles; longer cycles would make it too long for the cache. If possible, a tile
// ends at the end of a cache line.
enum { MAX_CYCLE = 1024, LINE = 16 };

// The number of elements after which a view's elements repeat; 0 if they do not.
static int64_t tile_cycles_of_view(const mp_view_t *view) {
  if (view->rank < 2 || view->dims[0].stride != 0) return 0;
  int64_t cycle = 1;
  for (uint32_t d = 1; d < view->rank; ++d) cycle *= view->dims[d].extent;
  return cycle;
}

static int64_t tile_cycles_common(int64_t a, int64_t b) {
  int64_t x = a, y = b;
  while (y != 0) {
    const int64_t rest = x % y;
    x = y;
    y = rest;
  }
  return a / x * b;
}

// Whether one step writes the slot, an element for each element of a tile.
static bool tile_cycles_is_plain(const mp_tile_program_t *program, uint32_t slot) {
  const mp_tile_slot_t *of = &program->slots[slot];
  if (of->place != MP_TILE_REGISTER || of->is_scalar || of->is_column) return false;
  uint32_t writers = 0;
  for (uint32_t s = 0; s < program->num_steps; ++s) writers += program->steps[s].out == slot;
  return writers == 1;
}

// Whether all inputs of a step are the same in each tile; `cycles` is by slot.
static bool tile_cycles_reads_cycles(const mp_tile_program_t *program, const mp_tile_step_t *step,
                                     const int64_t *cycles, int64_t *out_cycle) {
  const uint32_t num_inputs = mp_tile_num_inputs(step);
  *out_cycle = 1;
  for (uint32_t k = 0; k < num_inputs; ++k) {
    const uint32_t slot = step->in[k];
    if (program->slots[slot].is_constant) continue;
    if (cycles[slot] == 0) return false;
    *out_cycle = tile_cycles_common(*out_cycle, cycles[slot]);
  }
  return num_inputs != 0;
}

// The number of elements after which a step's result repeats; 0 if it does not.
static int64_t tile_cycles_of_step(const mp_tile_program_t *program, const mp_tile_step_t *step,
                                   const int64_t *cycles) {
  int64_t cycle = 0;
  if (!tile_cycles_is_plain(program, step->out)) return 0;
  switch (step->kind) {
    case MP_TILE_LOAD:
    case MP_TILE_COUNT:
      return tile_cycles_of_view(step->view);
    case MP_TILE_COMPUTE:
    case MP_TILE_WIDEN:
      return tile_cycles_reads_cycles(program, step, cycles, &cycle) ? cycle : 0;
    default:
      return 0;
  }
}

mp_status_t mp_tile_find_cycles(mp_arena_t *arena, mp_tile_program_t *program) {
  int64_t *cycles = MP_ARENA_ARRAY(arena, int64_t, program->num_slots + 1);
  mp_tile_step_t *steps = MP_ARENA_ARRAY(arena, mp_tile_step_t, program->num_steps + 1);
  if (cycles == NULL || steps == NULL) return mp_status_out_of_memory();
  program->cycle = program->row;
  const int64_t most = mp_tile_has_one_row(program) ? program->row : MAX_CYCLE;
  uint32_t at = program->num_first;
  for (uint32_t s = at; s < program->num_steps; ++s) {
    const mp_tile_step_t *step = &program->steps[s];
    const int64_t cycle = tile_cycles_of_step(program, step, cycles);
    if (cycle == 0 || cycle > most) continue;
    const int64_t common = tile_cycles_common(program->cycle, cycle);
    if (common > most) continue;
    program->cycle = common;
    cycles[step->out] = cycle;
    program->slots[step->out].is_cyclic = true;
    steps[at++] = *step;
  }
  program->num_cyclic = at - program->num_first;
  const int64_t lines = tile_cycles_common(program->cycle, LINE);
  if (program->num_cyclic != 0 && lines <= most && program->count % lines == 0) {
    program->cycle = lines;
  }
  for (uint32_t s = program->num_first; s < program->num_steps; ++s) {
    if (cycles[program->steps[s].out] == 0) steps[at++] = program->steps[s];
  }
  memcpy(program->steps + program->num_first, steps + program->num_first,
         (at - program->num_first) * sizeof(*steps));
  return NULL;
}
