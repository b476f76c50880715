// Machine code for tiles: each run of steps that compute elements becomes one map, so that
// intermediate values stay in the machine's registers.
#include <stdatomic.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/kernels/fused/tile/tile.h"
#include "sim/kernels/fused/tile/tile_registers.h"

// A run of fewer steps is not worth a map. A longer one would have too many live values for the
// registers, and take too long to compile.
enum { MIN_STEPS = 2, MAX_STEPS = 100 };

// A map that is being made. A slot's value is the one that it holds at the current step.
typedef struct {
  const mp_tile_program_t *program;
  uint32_t *current;  // [num_slots]: values; NONE before it is read or written
  uint32_t *ones;     // the same for slots of one element
  uint32_t num_values, num_steps;
  mp_native_value_t *values;  // room for MAX_VALUES for each step
  mp_native_step_t *steps;
  uint32_t num_computed;  // steps of the program
} making_t;

enum { MAX_VALUES = 8 };
#define NONE UINT32_MAX

// ---- which steps ----

static bool tile_native_can_compute(const mp_tile_program_t *program, const mp_tile_step_t *step) {
  const mp_tile_slot_t *out = &program->slots[step->out];
  if (out->is_scalar || out->is_column) return false;
  switch (step->kind) {
    case MP_TILE_COMPUTE:
      return step->native.code != MP_OP_COUNT;
    case MP_TILE_WIDEN:
    case MP_TILE_ROUND:
    case MP_TILE_NARROW:
      return step->dtype == MP_DTYPE_BF16 || step->dtype == MP_DTYPE_F16;
    case MP_TILE_COPY:
      return mp_native_moved_type(out->size) != MP_DTYPE_INVALID;
    default:
      return false;
  }
}

// Whether the code of the steps from `first` on may run step `load` first: none of the steps before
// it reads its register.
static bool tile_native_can_load(const mp_tile_program_t *program, uint32_t first, uint32_t load) {
  const mp_tile_slot_t *out = &program->slots[program->steps[load].out];
  if (out->is_scalar || out->is_column) return false;
  for (uint32_t s = first; s < load; ++s) {
    const mp_tile_step_t *step = &program->steps[s];
    const uint32_t num_inputs = mp_tile_num_inputs(step);
    for (uint32_t k = 0; k < num_inputs; ++k) {
      const mp_tile_slot_t *in = &program->slots[step->in[k]];
      const bool is_apart = in->offset + in->size <= out->offset ||
                            out->offset + out->size <= in->offset || in->is_scalar;
      if (in->place == MP_TILE_REGISTER && !is_apart) return false;
    }
  }
  return true;
}

// The end of the steps from `first` on that can be one piece of code.
static uint32_t tile_native_end(const mp_tile_program_t *program, uint32_t first) {
  uint32_t end = first;
  for (; end < program->num_steps && end - first < MAX_STEPS; ++end) {
    const mp_tile_step_t *step = &program->steps[end];
    const bool can = step->kind == MP_TILE_LOAD ? tile_native_can_load(program, first, end)
                                                : tile_native_can_compute(program, step);
    if (!can) break;
  }
  return end;
}

// ---- values ----

static uint32_t tile_native_add_value(making_t *m, mp_native_value_t value) {
  m->values[m->num_values] = value;
  return m->num_values++;
}

static uint32_t tile_native_add_step(making_t *m, mp_native_op_t op, const uint32_t *in) {
  mp_native_step_t *step = &m->steps[m->num_steps++];
  *step = (mp_native_step_t){.op = op};
  memcpy(step->in, in, sizeof(step->in));
  step->out = tile_native_add_value(
      m, (mp_native_value_t){.dtype = op.to, .argument = MP_NATIVE_NO_ARGUMENT});
  return step->out;
}

static uint32_t tile_native_add_unary(making_t *m, mp_opcode_t code, mp_dtype_t from, mp_dtype_t to,
                                      uint32_t value) {
  const uint32_t in[MP_NATIVE_MAX_INPUTS] = {value, value, value};
  return tile_native_add_step(m, (mp_native_op_t){code, from, to, 0, false}, in);
}

// The bytes of a slot's element, if it is a constant of the region and so known now.
static bool tile_native_is_known(const mp_tile_program_t *program, uint32_t slot,
                                 uint64_t *out_known) {
  for (uint32_t s = 0; s < program->num_first; ++s) {
    const mp_tile_step_t *step = &program->steps[s];
    if (step->out != slot) continue;
    const bool is_known = step->kind == MP_TILE_FILL && step->element != NULL &&
                          program->slots[slot].size <= sizeof(*out_known);
    if (is_known) memcpy(out_known, step->element, program->slots[slot].size);
    return is_known;
  }
  return false;
}

// The value of a slot as one of a type.
static uint32_t tile_native_read(making_t *m, uint32_t slot, mp_dtype_t dtype, bool is_one) {
  uint32_t *known = is_one ? &m->ones[slot] : &m->current[slot];
  if (*known == NONE) {
    mp_native_value_t value = {.dtype = dtype, .argument = slot, .is_read = true, .is_one = is_one};
    value.is_known = is_one && tile_native_is_known(m->program, slot, &value.known);
    *known = tile_native_add_value(m, value);
  }
  const mp_dtype_t has = m->values[*known].dtype;
  if (has == dtype) return *known;
  return tile_native_add_unary(m, MP_OP_BITCAST_CONVERT, has, dtype, *known);
}

// ---- steps ----

static uint32_t tile_native_compute(making_t *m, const mp_tile_step_t *step) {
  const mp_native_op_t *op = &step->native;
  uint32_t in[MP_NATIVE_MAX_INPUTS] = {0};
  for (uint32_t k = 0; k < step->ew.num_inputs; ++k) {
    // All elements of a constant slot are the same.
    const bool is_one = (step->scalars >> k & 1) != 0 || m->program->slots[step->in[k]].is_constant;
    in[k] = tile_native_read(m, step->in[k], mp_native_input_type(op, k), is_one);
  }
  if (step->product == 0) return tile_native_add_step(m, *op, in);
  const mp_native_op_t times = {MP_OP_MULTIPLY, op->from, op->from, 0, false};
  const uint32_t product = tile_native_add_step(m, times, in);
  const uint32_t terms[MP_NATIVE_MAX_INPUTS] = {step->product == 1 ? product : in[2],
                                                step->product == 1 ? in[2] : product};
  return tile_native_add_step(m, *op, terms);
}

static void tile_native_step(making_t *m, const mp_tile_step_t *step) {
  uint32_t value = 0;
  switch (step->kind) {
    case MP_TILE_COMPUTE:
      value = tile_native_compute(m, step);
      break;
    case MP_TILE_WIDEN:
      value = tile_native_read(m, step->in[0], step->dtype, false);
      value = tile_native_add_unary(m, MP_OP_CONVERT, step->dtype, MP_DTYPE_F32, value);
      break;
    case MP_TILE_ROUND:
    case MP_TILE_NARROW:
      value = tile_native_read(m, step->in[0], MP_DTYPE_F32, false);
      value = tile_native_add_unary(m, MP_OP_CONVERT, MP_DTYPE_F32, step->dtype, value);
      if (step->kind == MP_TILE_NARROW) break;
      value = tile_native_add_unary(m, MP_OP_CONVERT, step->dtype, MP_DTYPE_F32, value);
      break;
    default: {  // COPY
      const uint32_t slot = step->in[0], current = m->current[slot];
      const mp_dtype_t dtype = current != NONE ? m->values[current].dtype
                                               : mp_native_moved_type(m->program->slots[slot].size);
      value = tile_native_read(m, slot, dtype, false);
      value = tile_native_add_unary(m, MP_OP_CONVERT, dtype, dtype, value);
      break;
    }
  }
  m->current[step->out] = value;
  ++m->num_computed;
}

// Whether a later step, or the reader of a result, reads the elements of a slot.
static bool tile_native_is_wanted(const mp_tile_program_t *program, uint32_t slot, uint32_t end) {
  if (program->slots[slot].place == MP_TILE_RESULT) return true;
  for (uint32_t s = end; s < program->num_steps; ++s) {
    const mp_tile_step_t *step = &program->steps[s];
    const uint32_t num_inputs = mp_tile_num_inputs(step);
    for (uint32_t k = 0; k < num_inputs; ++k) {
      if (step->in[k] == slot) return true;
    }
  }
  return false;
}

// The map of the steps [first, end); NULL if there is none.
static mp_native_map_fn_t tile_native_make(making_t *m, uint32_t first, uint32_t end) {
  const mp_tile_program_t *program = m->program;
  m->num_values = m->num_steps = m->num_computed = 0;
  for (uint32_t i = 0; i < program->num_slots; ++i) m->current[i] = m->ones[i] = NONE;
  for (uint32_t s = first; s < end; ++s) {
    if (program->steps[s].kind != MP_TILE_LOAD) tile_native_step(m, &program->steps[s]);
  }
  if (m->num_computed < MIN_STEPS) return NULL;
  for (uint32_t s = first; s < end; ++s) {
    const mp_tile_step_t *step = &program->steps[s];
    if (step->kind == MP_TILE_LOAD || !tile_native_is_wanted(program, step->out, end)) continue;
    mp_native_value_t *value = &m->values[m->current[step->out]];
    value->argument = step->out;
    value->is_stored = true;
  }
  const mp_native_map_t map = {m->num_values, m->num_steps, m->values, m->steps};
  return mp_native_compile_map(&map);
}

void mp_tile_make_native(const mp_tile_program_t *program) {
  const size_t num_slots = (size_t)program->num_slots + 1;
  const size_t num_values = ((size_t)program->num_steps + 1) * MAX_VALUES;
  making_t m = {.program = program,
                .current = mp_malloc(2 * num_slots * sizeof(uint32_t)),
                .values = mp_malloc(num_values * sizeof(mp_native_value_t)),
                .steps = mp_malloc(num_values * sizeof(mp_native_step_t))};
  bool is_any = false;
  if (m.current != NULL && m.values != NULL && m.steps != NULL) {
    m.ones = m.current + num_slots;
    const uint32_t first = program->num_first + program->num_cyclic;
    for (uint32_t s = first, end = 0; s < program->num_steps; s = end) {
      end = tile_native_end(program, s);
      mp_tile_code_t *code = &program->native->codes[s];
      *code = (mp_tile_code_t){.end = end};
      for (uint32_t i = s; i < end; ++i) {
        code->has_loads |= program->steps[i].kind == MP_TILE_LOAD;
      }
      if (end > s) code->map = tile_native_make(&m, s, end);
      is_any |= code->map != NULL;
      if (end == s) ++end;
    }
  }
  mp_free(m.current);
  mp_free(m.values);
  mp_free(m.steps);
  // Release: threads that compute tiles meanwhile see the codes above once they see the flag.
  atomic_store_explicit(&program->native->is_ready, is_any, memory_order_release);
}
