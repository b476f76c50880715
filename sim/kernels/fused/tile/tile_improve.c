#include "sim/kernels/fused/tile/tile_improve.h"

#include <string.h>

#include "sim/kernels/fused/tile/tile_registers.h"

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

// Drops the rounding of a value that is only read to be narrowed, because narrowing rounds.
// `is_read` is by slot.
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

// ---- Narrow rows ----

// Rows that are only widened to be folded are read unwidened if there is a loop for that.
static void tile_improve_fold_narrow(mp_tile_program_t *program) {
  for (uint32_t s = program->num_first; s < program->num_steps; ++s) {
    mp_tile_step_t *step = &program->steps[s];
    if (step->kind != MP_TILE_REDUCE) continue;
    for (uint32_t w = program->num_first; w < s; ++w) {
      const mp_tile_step_t *widen = &program->steps[w];
      if (widen->kind != MP_TILE_WIDEN || widen->out != step->in[0]) continue;
      const mp_fold_row_loop_t loop =
          mp_fold_row_loop(step->fold->kind, widen->dtype, MP_DTYPE_F32);
      if (loop == NULL) continue;
      step->in[0] = widen->in[0];
      step->fold_row = loop;
    }
  }
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

// Whether each input has one element, repeated, in a tile: a constant or, if a tile is one row, an
// element that is repeated for the row. `is_spread` is by slot.
static bool tile_improve_are_equal(const mp_tile_program_t *program, const mp_tile_step_t *step,
                                   uint32_t inputs, const bool *is_spread) {
  for (uint32_t k = 0; k < MP_EW_MAX_INPUTS; ++k) {
    const uint32_t slot = step->in[k];
    const bool is_equal = program->slots[slot].is_constant || is_spread[slot];
    if ((inputs >> k & 1) != 0 && !is_equal) return false;
  }
  return true;
}

// Marks the slots that have one element, repeated, in a tile.
static void tile_improve_find_spread(const mp_tile_program_t *program, bool *is_spread) {
  memset(is_spread, 0, program->num_slots * sizeof(*is_spread));
  for (uint32_t s = 0; s < program->num_steps; ++s) {
    const mp_tile_step_t *step = &program->steps[s];
    const bool is_one = step->kind == MP_TILE_SPREAD && mp_tile_has_one_row(program);
    is_spread[step->out] = is_one && program->slots[step->out].place == MP_TILE_REGISTER;
  }
}

// Lets loops read one element where all are the same.
static void tile_improve_use_scalars(mp_tile_program_t *program, const bool *is_spread) {
  for (uint32_t s = program->num_first; s < program->num_steps; ++s) {
    mp_tile_step_t *step = &program->steps[s];
    if (step->kind == MP_TILE_REDUCE) step->scalars = 1 << 1;
    if (step->kind != MP_TILE_COMPUTE || step->scalars != 0) continue;
    for (uint32_t k = 0; k < MP_TILE_NUM_SCALARS && step->scalars == 0; ++k) {
      if (step->with_scalars[k] == NULL) continue;
      if (!tile_improve_are_equal(program, step, mp_tile_scalars[k], is_spread)) continue;
      step->ew.loop = step->with_scalars[k];
      step->scalars = mp_tile_scalars[k];
    }
  }
}

// ---- Products ----

// The product that is operand `k` of the sum or difference at `s`, and has no other reader; NULL if
// there is none. `writers` and `num_reads` are by slot.
static const mp_tile_step_t *tile_improve_product(const mp_tile_program_t *program, uint32_t s,
                                                  uint32_t k, const uint32_t *writers,
                                                  const uint32_t *num_reads) {
  const mp_tile_step_t *step = &program->steps[s];
  const uint32_t slot = step->in[k];
  const uint32_t writer = writers[slot];
  const mp_tile_step_t *product = &program->steps[writer];
  if (num_reads[slot] != 1 || writer >= s || writer < program->num_first) return NULL;
  if (program->slots[slot].place != MP_TILE_REGISTER || (step->scalars >> k & 1) != 0) return NULL;
  if (product->out != slot || product->kind != MP_TILE_COMPUTE || product->code != MP_OP_MULTIPLY ||
      product->dtype != step->dtype) {
    return NULL;
  }
  return product;
}

// Makes one step of a product and the sum or difference that reads it.
static void tile_improve_join_products(mp_tile_program_t *program, uint32_t *writers,
                                       uint32_t *num_reads) {
  memset(num_reads, 0, program->num_slots * sizeof(*num_reads));
  for (uint32_t s = 0; s < program->num_steps; ++s) {
    const mp_tile_step_t *step = &program->steps[s];
    const uint32_t num_inputs = mp_tile_num_inputs(step);
    for (uint32_t k = 0; k < num_inputs; ++k) ++num_reads[step->in[k]];
    // A slot that is rounded in place has two writers, and the second is no product.
    writers[step->out] = s;
  }
  for (uint32_t s = program->num_first; s < program->num_steps; ++s) {
    mp_tile_step_t *step = &program->steps[s];
    if (step->kind != MP_TILE_COMPUTE || step->ew.num_inputs != 2) continue;
    for (uint32_t k = 0; k < 2; ++k) {
      const mp_tile_step_t *product = tile_improve_product(program, s, k, writers, num_reads);
      if (product == NULL) continue;
      const uint32_t other = (step->scalars >> (1 - k) & 1) << 2;
      const mp_ew_loop_t loop =
          mp_ew_product_loop(step->code, step->dtype, k == 0, product->scalars | other);
      if (loop == NULL) continue;
      mp_native_op_t native = {step->code, step->dtype, step->dtype, 0, false};
      if (!mp_native_knows(&native)) native.code = MP_OP_COUNT;
      *step = (mp_tile_step_t){.kind = MP_TILE_COMPUTE,
                               .native = native,
                               .product = k + 1,
                               .in = {product->in[0], product->in[1], step->in[1 - k]},
                               .out = step->out,
                               .code = MP_OP_COUNT,
                               .ew = {.loop = loop, .num_inputs = 3},
                               .scalars = product->scalars | other};
      break;
    }
  }
}

// If steps read only one element of a slot, it need not be repeated. `is_read`: a step reads more
// than one.
static void tile_improve_mark_scalars(mp_tile_program_t *program, bool *is_read,
                                      const bool *is_spread) {
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
    slot->is_scalar = (slot->is_constant || is_spread[i]) && !is_read[i];
  }
}

mp_status_t mp_tile_improve(mp_arena_t *arena, mp_tile_program_t *program) {
  bool *is_read = MP_ARENA_ARRAY(arena, bool, program->num_slots + 1);
  bool *is_kept = MP_ARENA_ARRAY(arena, bool, program->num_steps + 1);
  bool *is_spread = MP_ARENA_ARRAY(arena, bool, program->num_slots + 1);
  uint32_t *writers = MP_ARENA_ARRAY(arena, uint32_t, program->num_slots + 1);
  uint32_t *num_reads = MP_ARENA_ARRAY(arena, uint32_t, program->num_slots + 1);
  if (is_read == NULL || is_kept == NULL || is_spread == NULL || writers == NULL ||
      num_reads == NULL) {
    return mp_status_out_of_memory();
  }
  tile_improve_drop_roundings(program, is_read, is_kept);
  tile_improve_fold_narrow(program);
  tile_improve_drop_dead(program, is_read, is_kept);
  tile_improve_find_spread(program, is_spread);
  tile_improve_use_scalars(program, is_spread);
  tile_improve_join_products(program, writers, num_reads);
  tile_improve_drop_dead(program, is_read, is_kept);
  tile_improve_mark_scalars(program, is_read, is_spread);
  return NULL;
}
