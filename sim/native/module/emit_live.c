// Which cells are live before an instruction: those whose values the loop may still read.
#include <stdlib.h>
#include <string.h>

#include "sim/native/module/emit_loop.h"

static uint64_t *emit_live_row(const loop_t *l, uint32_t instruction) {
  return l->live + (size_t)instruction * l->num_words;
}

bool emit_is_live(const loop_t *l, uint32_t instruction, uint32_t cell) {
  return (emit_live_row(l, instruction)[cell / 64] >> cell % 64 & 1) != 0;
}

static void emit_live_join(const loop_t *l, uint64_t *live, uint32_t instruction) {
  const uint64_t *other = emit_live_row(l, instruction);
  for (uint32_t w = 0; w < l->num_words; ++w) live[w] |= other[w];
}

// The cells that are live after the instruction.
static void emit_live_behind(const loop_t *l, uint32_t n, uint64_t *live) {
  const mp_native_instruction_t *i = &l->loop->instructions[n];
  memset(live, 0, l->num_words * sizeof(*live));
  switch (i->kind) {
    case MP_NATIVE_EXIT:
      for (uint32_t c = 0; c < l->num_cells; ++c) {
        const bool is_result = l->cells[c].is_written && !l->cells[c].is_temporary;
        live[c / 64] |= (uint64_t)is_result << c % 64;
      }
      return;
    case MP_NATIVE_JUMP:
      emit_live_join(l, live, i->target);
      return;
    case MP_NATIVE_BACK_IF:
      emit_live_join(l, live, i->other);
      emit_live_join(l, live, i->target);
      emit_live_join(l, live, i->stop);
      return;
    case MP_NATIVE_BACK:
      emit_live_join(l, live, i->target);
      emit_live_join(l, live, i->stop);
      return;
    case MP_NATIVE_SWITCH:
      for (int64_t t = 0; t < i->count; ++t) {
        emit_live_join(l, live, l->loop->targets[i->target + t]);
      }
      return;
    case MP_NATIVE_UNLESS:
      emit_live_join(l, live, i->target);
      break;
    default:
      break;
  }
  emit_live_join(l, live, n + 1);
}

// Removes the cells that the access writes, or adds those that it reads.
static void emit_live_access(const loop_t *l, const access_t *access, uint64_t *live) {
  const mp_native_ref_t *ref = &l->loop->refs[access->ref];
  const uint64_t end = ref->offset + access->bytes;
  if (access->bytes == 0 || (access->is_written && access->is_part)) return;
  for (uint32_t c = emit_first_cell(l, ref->memory, ref->offset);
       emit_cell_meets(l, c, ref->memory, ref->offset, end); ++c) {
    const bool is_whole = l->cells[c].begin >= ref->offset && l->cells[c].end <= end;
    if (!access->is_written) {
      live[c / 64] |= (uint64_t)1 << c % 64;
    } else if (is_whole) {
      live[c / 64] &= ~((uint64_t)1 << c % 64);
    }
  }
}

static void emit_live_through(const loop_t *l, uint32_t n, uint64_t *live) {
  const mp_native_instruction_t *i = &l->loop->instructions[n];
  access_t access;
  for (int written = 1; written >= 0; --written) {
    for (uint32_t k = 0; emit_access(l->loop, i, k, &access); ++k) {
      if (access.is_written == (written == 1)) emit_live_access(l, &access, live);
    }
  }
}

bool emit_find_live(loop_t *l) {
  const uint32_t count = l->loop->num_instructions;
  l->num_words = l->num_cells / 64 + 1;
  l->live = calloc((size_t)count * l->num_words, sizeof(*l->live));
  uint64_t *live = calloc(l->num_words, sizeof(*live));
  bool has_changed = l->live != NULL && live != NULL;
  const bool is_ok = has_changed;
  while (has_changed) {
    has_changed = false;
    for (uint32_t n = count; n-- > 0;) {
      emit_live_behind(l, n, live);
      emit_live_through(l, n, live);
      const size_t bytes = l->num_words * sizeof(*live);
      if (memcmp(emit_live_row(l, n), live, bytes) == 0) continue;
      memcpy(emit_live_row(l, n), live, bytes);
      has_changed = true;
    }
  }
  free(live);
  return is_ok;
}
