#include "sim/kernels/fused/tile/tile_registers.h"

#include "sim/base/assert.h"
#include "sim/kernels/shape.h"

// REGISTER_BYTES: of all registers of a tile, so that they stay in the first-level cache with the
// operands and results. A tile has MIN_LANES to MAX_LANES lanes.
enum { REGISTER_BYTES = 24 * 1024, MIN_LANES = 256, MAX_LANES = 2048 };

uint32_t mp_tile_num_inputs(const mp_tile_step_t *step) {
  switch (step->kind) {
    case MP_TILE_COMPUTE:
      return step->ew.num_inputs;
    case MP_TILE_REDUCE:
      return 2;
    case MP_TILE_SPREAD:
    case MP_TILE_WIDEN:
    case MP_TILE_ROUND:
    case MP_TILE_NARROW:
    case MP_TILE_COPY:
      return 1;
    default:
      return 0;
  }
}

// The largest element.
enum { SCALAR_BYTES = 16 };

typedef struct {
  mp_tile_program_t *program;
  uint32_t *last;       // by slot: the last step that reads or writes it
  bool *has_place;      // by slot
  uint32_t *free_ones;  // slots with registers that may be reused
  uint32_t num_free;
  uint32_t bytes;  // per lane, of all registers
  uint32_t scalar_bytes;
} placer_t;

static void tile_registers_find_ends(placer_t *p) {
  const mp_tile_program_t *program = p->program;
  for (uint32_t s = 0; s < program->num_steps; ++s) {
    const mp_tile_step_t *step = &program->steps[s];
    const uint32_t num_inputs = mp_tile_num_inputs(step);
    for (uint32_t k = 0; k < num_inputs; ++k) p->last[step->in[k]] = s;
    p->last[step->out] = s;
  }
  for (uint32_t i = 0; i < program->num_slots; ++i) {
    if (program->slots[i].is_constant || program->slots[i].is_cyclic) p->last[i] = UINT32_MAX;
  }
}

static void tile_registers_release(placer_t *p, uint32_t slot, uint32_t step) {
  const mp_tile_slot_t *of = &p->program->slots[slot];
  // Scalars have places of their own.
  if (of->place != MP_TILE_REGISTER || of->is_scalar || p->last[slot] != step) return;
  p->last[slot] = UINT32_MAX;  // so that it is released only once
  p->free_ones[p->num_free++] = slot;
}

static void tile_registers_take(placer_t *p, uint32_t slot) {
  mp_tile_slot_t *slots = p->program->slots;
  if (slots[slot].place != MP_TILE_REGISTER || p->has_place[slot]) return;
  p->has_place[slot] = true;
  if (slots[slot].is_scalar) {
    slots[slot].offset = p->scalar_bytes;
    p->scalar_bytes += SCALAR_BYTES;
    return;
  }
  for (uint32_t i = 0; i < p->num_free; ++i) {
    const uint32_t old = p->free_ones[i];
    if (slots[old].size != slots[slot].size) continue;
    slots[slot].offset = slots[old].offset;
    p->free_ones[i] = p->free_ones[--p->num_free];
    return;
  }
  slots[slot].offset = p->bytes;
  p->bytes += slots[slot].size;
}

// Operands that result `index` may overwrite: they are read in their own order, and no later than
// by the step that writes the result.
static uint32_t tile_registers_in_place(const mp_tile_program_t *program, uint32_t index) {
  uint32_t written = UINT32_MAX, size = 0, allowed = 0, refused = 0;
  for (uint32_t s = 0; s < program->num_steps; ++s) {
    const mp_tile_step_t *step = &program->steps[s];
    const mp_tile_slot_t *out = &program->slots[step->out];
    if (out->place == MP_TILE_RESULT && out->index == index && written == UINT32_MAX) {
      written = s;
      size = out->size;
    }
    const bool is_own = step->kind == MP_TILE_LOAD || step->kind == MP_TILE_FILL;
    if (is_own && step->element == NULL && step->operand < 32) refused |= 1u << step->operand;
    const uint32_t num_inputs = mp_tile_num_inputs(step);
    for (uint32_t k = 0; k < num_inputs; ++k) {
      const mp_tile_slot_t *in = &program->slots[step->in[k]];
      if (in->place != MP_TILE_OPERAND || in->index >= 32) continue;
      // The size of the result's elements is not known before the step that writes it.
      allowed |= 1u << in->index;
      if (s > written) refused |= 1u << in->index;
    }
  }
  for (uint32_t i = 0; i < program->num_slots; ++i) {
    const mp_tile_slot_t *slot = &program->slots[i];
    if (slot->place == MP_TILE_OPERAND && slot->index < 32 && slot->size != size) {
      refused |= 1u << slot->index;
    }
  }
  return allowed & ~refused;
}

// As many lanes as fit the cache; with rows or cycles, as many as fit, and one at least.
static void tile_registers_choose_lanes(mp_tile_program_t *program, uint32_t bytes,
                                        uint32_t scalar_bytes) {
  int64_t lanes = MAX_LANES;
  while (lanes > MIN_LANES && lanes * bytes > REGISTER_BYTES) lanes /= 2;
  lanes = mp_min_i64(lanes, mp_max_i64(program->count, 1));
  if (program->blocks.row != 0) lanes = mp_min_i64(lanes, program->blocks.lanes);
  lanes = mp_max_i64(mp_tile_has_one_row(program) ? 1 : lanes / program->cycle, 1) * program->cycle;
  program->lanes = (uint32_t)lanes;
  program->room = (uint32_t)(lanes + 63) & ~63u;
  size_t fold_bytes = 0;
  for (uint32_t s = 0; s < program->num_steps; ++s) {
    const mp_fold_t *fold = program->steps[s].fold;
    if (fold != NULL && fold->scratch_bytes > fold_bytes) fold_bytes = fold->scratch_bytes;
  }
  program->scalars = (size_t)bytes * program->room;
  program->pointers = program->scalars + mp_round_up_64(scalar_bytes);
  program->fold = program->pointers + mp_round_up_64(program->num_slots * sizeof(char *));
  program->blocks.offset = program->fold + mp_round_up_64(fold_bytes);
  program->scratch_bytes =
      program->blocks.offset + (size_t)program->blocks.bytes * program->blocks.lanes;
}

static mp_status_t tile_registers_list_moving(mp_arena_t *arena, mp_tile_program_t *program) {
  uint32_t *moving = MP_ARENA_ARRAY(arena, uint32_t, program->num_slots + 1);
  MP_RETURN_IF_NULL(moving);
  program->num_moving = 0;
  for (uint32_t i = 0; i < program->num_slots; ++i) {
    if (program->slots[i].place != MP_TILE_REGISTER) moving[program->num_moving++] = i;
  }
  program->moving = moving;
  return NULL;
}

mp_status_t mp_tile_place_registers(mp_arena_t *arena, uint32_t num_results,
                                    mp_tile_program_t *program) {
  placer_t p = {.program = program,
                .last = MP_ARENA_ARRAY(arena, uint32_t, program->num_slots + 1),
                .has_place = MP_ARENA_ARRAY(arena, bool, program->num_slots + 1),
                .free_ones = MP_ARENA_ARRAY(arena, uint32_t, program->num_slots + 1)};
  if (p.last == NULL || p.has_place == NULL || p.free_ones == NULL) {
    return mp_status_out_of_memory();
  }
  tile_registers_find_ends(&p);
  for (uint32_t s = 0; s < program->num_steps; ++s) {
    const mp_tile_step_t *step = &program->steps[s];
    const uint32_t num_inputs = mp_tile_num_inputs(step);
    // A loop may write where it reads if the elements are equally large.
    const bool is_loop = step->kind == MP_TILE_COMPUTE || step->kind == MP_TILE_ROUND;
    if (!is_loop) tile_registers_take(&p, step->out);
    for (uint32_t k = 0; k < num_inputs; ++k) tile_registers_release(&p, step->in[k], s);
    tile_registers_take(&p, step->out);
    tile_registers_release(&p, step->out, s);
  }
  tile_registers_choose_lanes(program, p.bytes, p.scalar_bytes);
  uint32_t *in_place = MP_ARENA_ARRAY(arena, uint32_t, num_results + 1);
  MP_RETURN_IF_NULL(in_place);
  for (uint32_t r = 0; r < num_results; ++r) in_place[r] = tile_registers_in_place(program, r);
  program->in_place = in_place;
  return tile_registers_list_moving(arena, program);
}
