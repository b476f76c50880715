// A loop's steps as code for sim/native: an instruction for each step, with the same number. Steps
// that code cannot express are called.
#include <stdatomic.h>

#include "sim/base/alloc.h"
#include "sim/kernels/shape.h"
#include "sim/loops/loop_impl.h"

typedef struct {
  const mp_loop_t *loop;
  mp_native_ref_t *refs;  // [loop->native->num_refs]
  mp_native_instruction_t *instructions;
  int64_t *places;        // MP_NATIVE_MAX_LANES for each VIEW
  mp_native_use_t *uses;  // [mp_loop_most_refs]
  uint32_t num_places, num_uses;
} making_t;

// ---- refs ----

// Memory of three kinds: the loop's own, that of slots, and constants. No step writes constants, so
// their addresses do not matter; and equal loops of different programs are equal code.
enum { OWN_MEMORY = 1, SLOT_MEMORY = 2 };

static mp_native_ref_t loop_native_describe(const mp_loop_t *loop, mp_loop_ref_t ref,
                                            uint32_t number) {
  if (ref.base > loop->num_slots) {
    return (mp_native_ref_t){.memory = SLOT_MEMORY + loop->num_slots + number,
                             .is_temporary = true};
  }
  // Loop-carried values are in slots.
  if (ref.base == loop->num_slots) {
    return (mp_native_ref_t){.memory = OWN_MEMORY, .offset = ref.offset, .is_temporary = true};
  }
  const mp_loop_slot_t *slot = &loop->slots[ref.base];
  // Slots of one memory get the number of the first of them.
  uint32_t first = 0;
  while (loop->slots[first].memory != slot->memory) ++first;
  return (mp_native_ref_t){.memory = SLOT_MEMORY + first,
                           .offset = slot->offset + ref.offset,
                           .is_temporary = slot->is_temporary};
}

// The number of a ref of which `bytes` bytes are used.
static uint32_t loop_native_ref(making_t *m, mp_loop_ref_t ref, uint64_t bytes) {
  mp_loop_native_t *native = m->loop->native;
  uint32_t i = 0;
  while (i < native->num_refs && !mp_loop_same_ref(native->refs[i], ref)) ++i;
  if (i == native->num_refs) {
    native->refs[native->num_refs++] = ref;
    m->refs[i] = loop_native_describe(m->loop, ref, i);
  }
  if (bytes > m->refs[i].bytes) m->refs[i].bytes = bytes;
  return i;
}

// Numbers that are known are part of the code.
static void loop_native_find_known(const making_t *m) {
  enum { MOST_BYTES = MP_NATIVE_MAX_LANES * sizeof(uint64_t) };
  const mp_loop_t *loop = m->loop;
  for (uint32_t i = 0; i < loop->native->num_refs; ++i) {
    const mp_loop_ref_t ref = loop->native->refs[i];
    if (m->refs[i].bytes > MOST_BYTES) continue;
    if (ref.base > loop->num_slots) m->refs[i].known = (const void *)ref.offset;
  }
}

// ---- instructions ----

static void loop_native_compute(making_t *m, const mp_loop_step_t *step,
                                mp_native_instruction_t *i) {
  const mp_native_op_t *op = &step->detail->op;
  // Single elements have no count.
  i->count = step->what == MP_DO_LOOP ? step->count : 1;
  i->op = *op;
  i->num_inputs = step->num_refs;
  for (uint32_t k = 0; k < step->num_refs; ++k) {
    const mp_dtype_t dtype = mp_native_input_type(op, k);
    i->in[k] = loop_native_ref(m, step->in[k], (uint64_t)i->count * mp_dtype_size(dtype));
  }
  i->out = loop_native_ref(m, step->out, (uint64_t)i->count * mp_dtype_size(op->to));
}

static void loop_native_row(making_t *m, const mp_loop_step_t *step, bool is_take,
                            mp_native_instruction_t *i) {
  const mp_loop_row_t *row = step->u.row;
  uint64_t bytes = (uint64_t)step->count;
  i->num_indices = row->count;
  i->index_dtype = row->dtype;
  for (uint32_t k = 0; k < row->count; ++k) {
    i->in[1 + k] = loop_native_ref(m, step->in[1 + k], mp_dtype_size(row->dtype));
    i->most[k] = row->indices[k].most;
    i->stride[k] = row->indices[k].stride;
    bytes += (uint64_t)(row->indices[k].most * row->indices[k].stride);
  }
  i->in[0] = loop_native_ref(m, step->in[0], is_take ? bytes : (uint64_t)step->count);
  i->out = loop_native_ref(m, step->out, is_take ? (uint64_t)step->count : bytes);
}

static void loop_native_fill(making_t *m, const mp_loop_step_t *step, mp_native_instruction_t *i) {
  i->op.from = mp_native_moved_type(step->size);
  i->in[0] = loop_native_ref(m, step->in[0], step->size);
  i->out = loop_native_ref(m, step->out, (uint64_t)step->count * step->size);
}

static void loop_native_pick(making_t *m, const mp_loop_step_t *step, mp_native_instruction_t *i) {
  i->op.from = mp_native_moved_type(step->size);
  i->target = m->num_places;
  int64_t *places = m->places + m->num_places, most = 0;
  mp_view_count(step->u.view, MP_DTYPE_S64, 0, step->count, places);
  for (int64_t k = 0; k < step->count; ++k) most = mp_max_i64(most, places[k]);
  m->num_places += (uint32_t)step->count;
  i->in[0] = loop_native_ref(m, step->in[0], (uint64_t)(most + 1) * step->size);
  i->out = loop_native_ref(m, step->out, (uint64_t)step->count * step->size);
}

static void loop_native_copy(making_t *m, const mp_loop_step_t *step, mp_native_instruction_t *i) {
  i->in[0] = loop_native_ref(m, step->in[0], (uint64_t)step->count);
  i->out = loop_native_ref(m, step->out, (uint64_t)step->count);
}

// ---- calls ----

// For unknown sizes: more than any ref has.
#define ALL_BYTES ((uint64_t)1 << 48)

static void loop_native_use(making_t *m, mp_loop_ref_t ref, uint64_t bytes, bool is_written) {
  mp_native_use_t *use = &m->uses[m->num_uses++];
  *use = (mp_native_use_t){.bytes = bytes == 0 ? ALL_BYTES : bytes,
                           .is_written = is_written,
                           .is_part = is_written && bytes == 0};
  use->ref = loop_native_ref(m, ref, bytes);
}

// The bytes of a kernel's operand or result; 0 if that is not known.
static uint64_t loop_native_kernel_bytes(const mp_op_t *op, uint32_t k, uint32_t num_operands) {
  if (op == NULL) return 0;
  if (k < num_operands ? num_operands != op->num_operands : k - num_operands >= op->num_results) {
    return 0;
  }
  const mp_type_t *type =
      k < num_operands ? op->operands[k]->type : op->results[k - num_operands].type;
  int64_t bytes = 0;
  return mp_type_is_tensor(type) && mp_type_num_bytes(type, &bytes) ? (uint64_t)bytes : 0;
}

static void loop_native_use_kernel(making_t *m, const mp_loop_call_t *call) {
  for (uint32_t k = 0; k < call->num_operands + call->num_results; ++k) {
    loop_native_use(m, m->loop->refs[call->first_ref + k],
                    loop_native_kernel_bytes(call->kernel->op, k, call->num_operands),
                    k >= call->num_operands);
  }
}

// The elements of the base that a view reads, up to the last one.
static uint64_t loop_native_view_bytes(const mp_loop_step_t *step) {
  int64_t places[MP_NATIVE_MAX_LANES], most = 0;
  for (int64_t at = 0; at < step->count; at += MP_NATIVE_MAX_LANES) {
    const int64_t count = mp_min_i64(MP_NATIVE_MAX_LANES, step->count - at);
    mp_view_count(step->u.view, MP_DTYPE_S64, at, count, places);
    for (int64_t k = 0; k < count; ++k) most = mp_max_i64(most, places[k]);
  }
  return (uint64_t)(most + 1) * step->size;
}

static void loop_native_call(making_t *m, const mp_loop_step_t *step, mp_native_instruction_t *i) {
  i->target = m->num_uses;
  switch (step->what) {
    case MP_DO_KERNEL:
      loop_native_use_kernel(m, &m->loop->calls[step->u.call]);
      break;
    case MP_DO_FILL:
    case MP_DO_VIEW:
      loop_native_use(m, step->in[0],
                      step->what == MP_DO_FILL ? step->size : loop_native_view_bytes(step), false);
      loop_native_use(m, step->out, (uint64_t)step->count * step->size, true);
      break;
    default:
      for (uint32_t k = 0; k < step->num_refs; ++k) {
        if (step->detail->in_bytes[k] != 0)
          loop_native_use(m, step->in[k], step->detail->in_bytes[k], false);
      }
      loop_native_use(m, step->out, step->detail->out_bytes, true);
      break;
  }
  i->count = m->num_uses - i->target;
}

// ---- steps ----

// Whether code can move this many elements of this size at once.
static bool loop_native_moves(const mp_loop_step_t *step) {
  return step->count <= MP_NATIVE_MAX_LANES && mp_native_moved_type(step->size) != MP_DTYPE_INVALID;
}

// Steps that code cannot express are called, including those on longer vectors.
static mp_native_kind_t loop_native_kind(const mp_loop_step_t *step) {
  switch (step->what) {
    case MP_DO_EXIT:
      return MP_NATIVE_EXIT;
    case MP_DO_JUMP:
      return MP_NATIVE_JUMP;
    case MP_DO_BACK:
      return MP_NATIVE_BACK;
    case MP_DO_UNLESS:
      return MP_NATIVE_UNLESS;
    case MP_DO_SWITCH:
      return MP_NATIVE_SWITCH;
    case MP_DO_COPY_1:
    case MP_DO_COPY_4:
    case MP_DO_COPY_8:
    case MP_DO_COPY:
      return MP_NATIVE_COPY;
    case MP_DO_FILL:
      return loop_native_moves(step) ? MP_NATIVE_FILL : MP_NATIVE_CALL;
    case MP_DO_TAKE_ROW:
    case MP_DO_TAKE_4:
      return MP_NATIVE_TAKE;
    case MP_DO_PLACE_ROW:
    case MP_DO_PLACE_4:
      return MP_NATIVE_PLACE;
    case MP_DO_VIEW:
      return loop_native_moves(step) ? MP_NATIVE_PICK : MP_NATIVE_CALL;
    case MP_DO_KERNEL:
      return MP_NATIVE_CALL;
    case MP_DO_LOOP:
      return step->detail->op.code != MP_OP_COUNT && step->count <= MP_NATIVE_MAX_LANES
                 ? MP_NATIVE_COMPUTE
                 : MP_NATIVE_CALL;
    default:
      return mp_loop_is_back_if(step->what)         ? MP_NATIVE_BACK_IF
             : step->detail->op.code != MP_OP_COUNT ? MP_NATIVE_COMPUTE
                                                    : MP_NATIVE_CALL;
  }
}

static void loop_native_instruction(making_t *m, const mp_loop_step_t *step,
                                    mp_native_instruction_t *i) {
  i->kind = loop_native_kind(step);
  i->target = i->stop = step->target;
  i->count = step->count;
  switch (i->kind) {
    case MP_NATIVE_BACK_IF:
      // Like the interpreter: a stopped loop continues with the comparison before the target.
      i->stop = step->target - 2;
      i->other = step->size;
      loop_native_compute(m, step, i);
      break;
    case MP_NATIVE_COMPUTE:
      loop_native_compute(m, step, i);
      break;
    case MP_NATIVE_UNLESS:
      i->in[0] = loop_native_ref(m, step->in[0], 1);
      break;
    case MP_NATIVE_SWITCH:
      i->in[0] = loop_native_ref(m, step->in[0], sizeof(int32_t));
      break;
    case MP_NATIVE_COPY:
      loop_native_copy(m, step, i);
      break;
    case MP_NATIVE_FILL:
      loop_native_fill(m, step, i);
      break;
    case MP_NATIVE_PICK:
      loop_native_pick(m, step, i);
      break;
    case MP_NATIVE_TAKE:
    case MP_NATIVE_PLACE:
      loop_native_row(m, step, i->kind == MP_NATIVE_TAKE, i);
      break;
    case MP_NATIVE_CALL:
      loop_native_call(m, step, i);
      break;
    default:
      break;
  }
}

// ---- the whole ----

// Longer loops take too long to compile. Called steps cost the same in machine code, and each call
// stores and loads values: with many calls the gain is small, and compiling takes longer.
enum { MAX_STEPS = 1500, MAX_AROUND_CALLS = 10000 };

static bool loop_native_pays(const making_t *m) {
  const mp_loop_t *loop = m->loop;
  uint32_t num_calls = 0;
  for (uint32_t s = 0; s < loop->num_steps; ++s) {
    num_calls += m->instructions[s].kind == MP_NATIVE_CALL;
  }
  loop->native->has_calls = num_calls != 0;
  return 4 * num_calls <= loop->num_steps &&
         (uint64_t)num_calls * loop->native->num_refs <= MAX_AROUND_CALLS;
}

// Whether the indices of all rows are integers of whole bytes.
static bool loop_native_can_index(const making_t *m) {
  for (uint32_t s = 0; s < m->loop->num_steps; ++s) {
    const mp_native_instruction_t *i = &m->instructions[s];
    if (i->num_indices != 0 && mp_dtype_bits(i->index_dtype) < 8) return false;
  }
  return true;
}

static mp_native_loop_fn_t loop_native_make(making_t *m) {
  const mp_loop_t *loop = m->loop;
  loop->native->num_refs = 0;
  if (loop->num_steps > MAX_STEPS) return NULL;
  for (uint32_t s = 0; s < loop->num_steps; ++s) {
    loop_native_instruction(m, &loop->steps[s], &m->instructions[s]);
  }
  if (!loop_native_can_index(m) || !loop_native_pays(m)) return NULL;
  loop_native_find_known(m);
  const mp_native_loop_t code = {.num_refs = loop->native->num_refs,
                                 .num_instructions = loop->num_steps,
                                 .refs = m->refs,
                                 .instructions = m->instructions,
                                 .targets = loop->targets,
                                 .num_targets = loop->num_targets,
                                 .places = m->places,
                                 .num_places = m->num_places,
                                 .uses = m->uses,
                                 .num_uses = m->num_uses,
                                 .edges_per_look = loop->edges_per_look};
  return mp_native_compile_loop(&code);
}

static size_t loop_native_num_views(const mp_loop_t *loop) {
  size_t count = 0;
  for (uint32_t s = 0; s < loop->num_steps; ++s) count += loop->steps[s].what == MP_DO_VIEW;
  return count;
}

void mp_loop_make_native(const mp_loop_t *loop) {
  making_t m = {
      .loop = loop,
      .refs = mp_calloc(mp_loop_most_refs(loop), sizeof(mp_native_ref_t)),
      .instructions = mp_calloc(loop->num_steps, sizeof(mp_native_instruction_t)),
      .places = mp_calloc(loop_native_num_views(loop) * MP_NATIVE_MAX_LANES + 1, sizeof(int64_t)),
      .uses = mp_calloc(mp_loop_most_refs(loop), sizeof(mp_native_use_t)),
  };
  if (m.refs != NULL && m.instructions != NULL && m.places != NULL && m.uses != NULL) {
    // Release: other threads run the loop meanwhile, and one that finds the function finds its
    // code.
    atomic_store_explicit(&loop->native->run, loop_native_make(&m), memory_order_release);
  }
  mp_free(m.refs);
  mp_free(m.instructions);
  mp_free(m.places);
  mp_free(m.uses);
}
