#include "sim/kernels/fused/tile_improve.h"

#include <string.h>

#include "sim/kernels/fused/tile_registers.h"

// Keeps the steps that are marked.
static void tile_improve_keep(mp_tile_program_t *program, const bool *is_kept) {
  uint32_t kept = 0, first = 0;
  for (uint32_t s = 0; s < program->num_steps; ++s) {
    if (!is_kept[s]) continue;
    if (s < program->num_first) ++first;
    program->steps[kept++] = program->steps[s];
  }
  program->num_steps = kept;
  program->num_first = first;
}

// ---- Roundings ----

// What is only read to be made narrow is rounded there. `is_read` is by slot.
static void tile_improve_drop_roundings(mp_tile_program_t *program, bool *is_read, bool *is_kept) {
  memset(is_read, 0, program->num_slots * sizeof(*is_read));
  for (uint32_t s = 0; s < program->num_steps; ++s) {
    const mp_tile_step_t *step = &program->steps[s];
    if (step->kind == MP_TILE_NARROW || step->kind == MP_TILE_ROUND) continue;
    const uint32_t num_inputs = mp_tile_num_inputs(step);
    for (uint32_t k = 0; k < num_inputs; ++k) is_read[step->in[k]] = true;
  }
  for (uint32_t s = 0; s < program->num_steps; ++s) {
    const mp_tile_step_t *step = &program->steps[s];
    // A result in f32 may be the rounded number itself, converted.
    const bool is_result = program->slots[step->out].place == MP_TILE_RESULT;
    is_kept[s] = step->kind != MP_TILE_ROUND || is_read[step->out] || is_result;
  }
  tile_improve_keep(program, is_kept);
}

// ---- Dead steps ----

// A register is written by one step, and perhaps rounded in place by a second one.
static void tile_improve_drop_dead(mp_tile_program_t *program, bool *is_read, bool *is_kept) {
  memset(is_read, 0, program->num_slots * sizeof(*is_read));
  for (uint32_t s = program->num_steps; s-- > 0;) {
    const mp_tile_step_t *step = &program->steps[s];
    is_kept[s] = is_read[step->out] || program->slots[step->out].place == MP_TILE_RESULT;
    const uint32_t num_inputs = is_kept[s] ? mp_tile_num_inputs(step) : 0;
    for (uint32_t k = 0; k < num_inputs; ++k) is_read[step->in[k]] = true;
  }
  tile_improve_keep(program, is_kept);
}

// ---- Scalars ----

static bool tile_improve_are_constant(const mp_tile_program_t *program, const mp_tile_step_t *step,
                                      uint32_t inputs) {
  for (uint32_t k = 0; k < MP_EW_MAX_INPUTS; ++k) {
    if ((inputs >> k & 1) != 0 && !program->slots[step->in[k]].is_constant) return false;
  }
  return true;
}

// Lets loops read one element where all are the same.
static void tile_improve_use_scalars(mp_tile_program_t *program) {
  for (uint32_t s = program->num_first; s < program->num_steps; ++s) {
    mp_tile_step_t *step = &program->steps[s];
    if (step->kind == MP_TILE_REDUCE) step->scalars = 1 << 1;
    if (step->kind != MP_TILE_COMPUTE || step->scalars != 0) continue;
    for (uint32_t k = 0; k < MP_TILE_NUM_SCALARS && step->scalars == 0; ++k) {
      if (step->with_scalars[k] == NULL) continue;
      if (!tile_improve_are_constant(program, step, mp_tile_scalars[k])) continue;
      step->ew.loop = step->with_scalars[k];
      step->scalars = mp_tile_scalars[k];
    }
  }
}

// What nobody reads more than one element of need not be repeated. `is_read`: more than one is
// read.
static void tile_improve_mark_scalars(mp_tile_program_t *program, bool *is_read) {
  memset(is_read, 0, program->num_slots * sizeof(*is_read));
  for (uint32_t s = program->num_steps; s-- > 0;) {
    const mp_tile_step_t *step = &program->steps[s];
    const bool is_first = s < program->num_first;
    const uint32_t num_inputs = mp_tile_num_inputs(step);
    for (uint32_t k = 0; k < num_inputs; ++k) {
      const bool reads_one = is_first ? !is_read[step->out] : (step->scalars >> k & 1) != 0;
      if (!reads_one) is_read[step->in[k]] = true;
    }
  }
  for (uint32_t i = 0; i < program->num_slots; ++i) {
    mp_tile_slot_t *slot = &program->slots[i];
    slot->is_scalar = slot->is_constant && !is_read[i];
  }
}

mp_status_t mp_tile_improve(mp_arena_t *arena, mp_tile_program_t *program) {
  bool *is_read = MP_ARENA_ARRAY(arena, bool, program->num_slots + 1);
  bool *is_kept = MP_ARENA_ARRAY(arena, bool, program->num_steps + 1);
  if (is_read == NULL || is_kept == NULL) return mp_status_out_of_memory();
  tile_improve_drop_roundings(program, is_read, is_kept);
  tile_improve_drop_dead(program, is_read, is_kept);
  tile_improve_use_scalars(program);
  tile_improve_mark_scalars(program, is_read);
  return NULL;
}
