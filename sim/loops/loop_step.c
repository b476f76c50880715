// The steps of a loop under construction, with their operands and results.
#include "sim/loops/loop_impl.h"

// ---- refs ----

mp_loop_ref_t mp_loop_address_ref(const mp_loop_builder_t *b, const void *address) {
  return (mp_loop_ref_t){b->num_slots + 1, (uintptr_t)address};
}

mp_status_t mp_loop_own_ref(mp_loop_builder_t *b, size_t bytes, mp_loop_ref_t *out_ref) {
  const mp_loop_piece_t piece = {.first = b->num_taken, .is_fixed = true};
  *out_ref = (mp_loop_ref_t){b->num_slots, (uintptr_t)piece.first * 64};
  for (size_t i = 0; i < bytes; i += 64) {
    if (b->num_taken == b->pieces.count) {
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(b->arena, &b->pieces, piece));
    }
    b->pieces.items[b->num_taken++] = piece;
  }
  return NULL;
}

// The piece of a place in the loop's own memory.
static mp_loop_piece_t *loop_step_own(const mp_loop_builder_t *b, mp_loop_ref_t ref) {
  return &b->pieces.items[b->pieces.items[ref.offset / 64].first];
}

const void *mp_loop_constant(const mp_loop_builder_t *b, mp_loop_ref_t ref) {
  if (ref.base == b->num_slots + 1) return (const void *)ref.offset;
  return ref.base == b->num_slots && ref.offset % 64 == 0 ? loop_step_own(b, ref)->known : NULL;
}

static bool loop_step_is_fixed(const mp_loop_builder_t *b, mp_loop_ref_t ref) {
  if (ref.base < b->num_slots) return !b->slots[ref.base].is_written;
  return ref.base != b->num_slots || loop_step_own(b, ref)->is_fixed;
}

// ---- steps ----

// Computes a scalar whose operands are known.
static mp_status_t loop_step_evaluate(mp_loop_builder_t *b, const mp_loop_step_t *step) {
  if (!mp_loop_is_scalar(step->what)) return NULL;
  const void *in[MP_EW_MAX_INPUTS + 1] = {NULL};
  for (uint32_t i = 0; i < step->num_refs; ++i) {
    in[i] = mp_loop_constant(b, step->in[i]);
    if (in[i] == NULL) return NULL;
  }
  void *out = mp_arena_alloc(b->arena, sizeof(uint64_t));
  MP_RETURN_IF_NULL(out);
  mp_loop_evaluate(step, in, out);
  loop_step_own(b, step->out)->known = out;
  return NULL;
}

mp_status_t mp_loop_add_step(mp_loop_builder_t *b, const mp_loop_step_t *step) {
  bool is_fixed = step->out.base == b->num_slots && !b->is_straight;
  for (uint32_t i = 0; i < step->num_refs && is_fixed; ++i) {
    is_fixed = loop_step_is_fixed(b, step->in[i]);
  }
  if (is_fixed) {
    MP_RETURN_IF_ERROR(loop_step_evaluate(b, step));
    return MP_ARRAY_PUSH(b->arena, &b->before, *step);
  }
  if (step->out.base == b->num_slots) loop_step_own(b, step->out)->is_fixed = false;
  b->seconds += MP_LOOP_STEP_SECONDS;
  return MP_ARRAY_PUSH(b->arena, &b->steps, *step);
}

mp_status_t mp_loop_add_copy_step(mp_loop_builder_t *b, mp_loop_ref_t from, mp_loop_ref_t to,
                                  uint64_t bytes) {
  if (bytes == 0 || mp_loop_same_ref(from, to)) return NULL;
  const mp_loop_step_t step = {.what = bytes == 1   ? MP_DO_COPY_1
                                       : bytes == 4 ? MP_DO_COPY_4
                                       : bytes == 8 ? MP_DO_COPY_8
                                                    : MP_DO_COPY,
                               .num_refs = 1,
                               .in = {from},
                               .out = to,
                               .count = (int64_t)bytes};
  b->seconds += (double)bytes * MP_LOOP_BYTE_SECONDS;
  return mp_loop_add_step(b, &step);
}
