// Which vectors are computed element by element: short ones with elements that some instruction
// reads or writes alone. Moving an element into a vector and out again takes as long as an
// addition, and a loop over few numbers waits for each of its ops.
#include "sim/native/module/emit_loop.h"

enum { MOST_ELEMENTS = 4 };

static bool emit_single_is_short(const mp_native_instruction_t *i) {
  return i->kind == MP_NATIVE_COMPUTE && i->count > 1 && i->count <= MOST_ELEMENTS;
}

// Whether an access has cells of one element, or cells that will be split into elements.
static bool emit_single_meets(const loop_t *l, const access_t *access) {
  const mp_native_ref_t *ref = &l->loop->refs[access->ref];
  const uint64_t end = ref->offset + access->bytes, size = emit_bytes(access->dtype);
  for (uint32_t c = emit_first_cell(l, ref->memory, ref->offset);
       emit_cell_meets(l, c, ref->memory, ref->offset, end); ++c) {
    if (l->cells[c].is_single || l->cells[c].end - l->cells[c].begin == size) return true;
  }
  return false;
}

static void emit_single_mark(const loop_t *l, const access_t *access) {
  const mp_native_ref_t *ref = &l->loop->refs[access->ref];
  const uint64_t end = ref->offset + access->bytes;
  for (uint32_t c = emit_first_cell(l, ref->memory, ref->offset);
       emit_cell_meets(l, c, ref->memory, ref->offset, end); ++c) {
    l->cells[c].is_single = true;
  }
}

// Marks the instruction if its vectors are computed element by element; true if it was not marked
// before.
static bool emit_single_find(const loop_t *l, uint32_t number) {
  const mp_native_instruction_t *i = &l->loop->instructions[number];
  access_t access;
  bool is_single = false;
  if (l->is_single[number] || !emit_single_is_short(i)) return false;
  for (uint32_t k = 0; emit_access(l->loop, i, k, &access) && !is_single; ++k) {
    is_single = emit_single_meets(l, &access);
  }
  if (!is_single) return false;
  l->is_single[number] = true;
  for (uint32_t k = 0; emit_access(l->loop, i, k, &access); ++k) emit_single_mark(l, &access);
  return true;
}

bool emit_find_single(const loop_t *l) {
  const uint32_t count = l->loop->num_instructions;
  bool has_any = false, has_more = true;
  // A marked instruction may cause the ops before and after it to be marked.
  while (has_more) {
    has_more = false;
    for (uint32_t n = 0; n < count; ++n) has_more |= emit_single_find(l, n);
    for (uint32_t n = count; n-- > 0;) has_more |= emit_single_find(l, n);
    has_any |= has_more;
  }
  return has_any;
}
