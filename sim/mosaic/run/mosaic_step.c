#include "sim/mosaic/run/mosaic_step.h"

#include <string.h>

#include "sim/mosaic/run/mosaic_scalar.h"
#include "sim/mosaic/run/mosaic_unset.h"
#include "sim/mosaic/run/mosaic_view.h"

// ---- parts of views ----

static void mosaic_step_sizes(const mp_mosaic_part_t *part, const mp_mosaic_state_t *state,
                              uint32_t rank, int64_t *out_sizes) {
  uint32_t dynamic = 0;
  for (uint32_t d = 0; d < rank; ++d) {
    // A vector of lower rank is one element wide in the outer dimensions.
    const uint32_t outer = rank - part->rank;
    out_sizes[d] = d < outer ? 1 : part->sizes[d - outer];
    if (out_sizes[d] == MP_MOSAIC_DYNAMIC) {
      out_sizes[d] = state->registers[part->dynamic[dynamic++]];
    }
  }
}

mp_status_t mp_mosaic_step_part(const mp_mosaic_part_t *part, const mp_mosaic_state_t *state,
                                const mp_mosaic_view_t *view, mp_mosaic_view_t *out_view) {
  int64_t starts[MP_MOSAIC_MAX_RANK], sizes[MP_MOSAIC_MAX_RANK];
  mosaic_step_sizes(part, state, view->rank, sizes);
  for (uint32_t d = 0; d < view->rank; ++d) {
    starts[d] = d < part->num_indices ? state->registers[part->indices[d]] : 0;
  }
  return (part->is_slice ? mp_mosaic_view_slice : mp_mosaic_view_part)(view, starts, sizes,
                                                                       part->steps, out_view);
}

// Arguments are named in messages, since a kernel may access many in one line.
static mp_status_t mosaic_step_name_root(const mp_mosaic_view_t *view, mp_status_t status) {
  if (status == NULL || view->root == MP_MOSAIC_NONE) return status;
  return mp_status_annotate(status, "argument %u of the kernel", view->root);
}

static bool mosaic_step_is_unset(const mp_mosaic_state_t *state, const mp_mosaic_view_t *view) {
  return view->root < 64 && (state->unset >> view->root & 1) != 0;
}

// A store sets an argument's memory if it is one to all of it.
static void mosaic_step_set(mp_mosaic_state_t *state, const mp_mosaic_view_t *whole,
                            const mp_mosaic_view_t *part) {
  if (!mosaic_step_is_unset(state, whole)) return;
  const mp_mosaic_view_t *root = &state->views[state->kernel_args[whole->root]];
  if (mp_mosaic_view_bytes(part) == mp_mosaic_view_bytes(root)) {
    state->unset &= ~(UINT64_C(1) << whole->root);
  }
}

static char *mosaic_step_element(const mp_mosaic_view_t *view) {
  return view->base + (view->split != 1 ? view->phase * view->split_step : 0);
}

// ---- loads and stores ----

static mp_status_t mosaic_step_access(const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state,
                                      mp_mosaic_view_t *out_view, bool is_read) {
  const mp_mosaic_view_t *view = &state->views[in->a];
  if (is_read && mosaic_step_is_unset(state, view)) state->reads_unset = true;
  return mosaic_step_name_root(view, mp_mosaic_step_part(in->u.part, state, view, out_view));
}

// A vector may be the memory itself if it lies there as kernels expect (flag: nothing changes it
// as long as the vector is needed).
static mp_status_t mosaic_step_load(const mp_mosaic_program_t *program,
                                    const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state) {
  mp_mosaic_view_t view;
  mp_status_t status = mosaic_step_access(in, state, &view, true);
  if (in->value != 0 && mp_status_code(status) == MP_OUT_OF_RANGE) {
    mp_status_ignore(status);
    state->vectors[in->out] = state->memory + program->offsets[in->out];
    const mp_mosaic_type_t type = {.kind = MP_MOSAIC_VECTOR, .dtype = (mp_dtype_t)in->dtype};
    mp_mosaic_unset(&type, state->vectors[in->out], program->sizes[in->out]);
    return NULL;
  }
  if (status != NULL) return status;
  if (in->flag && (uintptr_t)view.base % 64 == 0 && mp_mosaic_view_is_dense(&view)) {
    state->vectors[in->out] = view.base;
    return NULL;
  }
  state->vectors[in->out] = state->memory + program->offsets[in->out];
  return mp_mosaic_view_read(&view, state->vectors[in->out]);
}

char *mp_mosaic_step_direct(const mp_mosaic_program_t *program, const mp_mosaic_kernel_call_t *call,
                            const mp_mosaic_direct_t *direct, const mp_mosaic_state_t *state) {
  const mp_mosaic_instruction_t *store = &program->instructions[direct->store];
  const uint32_t vector = call->results[direct->result];
  char *own = state->memory + program->offsets[vector];
  mp_mosaic_view_t view;
  mp_status_t status = mp_mosaic_step_part(store->u.part, state, &state->views[store->a], &view);
  if (status != NULL) {  // the store will say so
    mp_status_ignore(status);
    return own;
  }
  if ((uintptr_t)view.base % 64 != 0 || !mp_mosaic_view_is_dense(&view)) return own;
  const char *end = view.base + program->sizes[vector];
  for (uint32_t i = 0; i < direct->num_others; ++i) {
    const char *other = state->vectors[direct->others[i]];
    if (other < end && other + program->sizes[direct->others[i]] > view.base) return own;
  }
  for (uint32_t i = 0; i < call->num_operands; ++i) {
    const char *operand = state->vectors[call->operands[i]];
    const bool is_same = operand == view.base && i < 32 && (direct->operands >> i & 1) != 0;
    if (is_same || operand >= end) continue;
    if (operand + program->sizes[call->operands[i]] > view.base) return own;
  }
  return view.base;
}

static mp_status_t mosaic_step_store(const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state) {
  mp_mosaic_view_t view;
  MP_RETURN_IF_ERROR(mosaic_step_access(in, state, &view, false));
  const char *vector = state->vectors[in->b];
  if (in->c != MP_MOSAIC_NONE) {
    return mp_mosaic_view_write_masked(&view, vector, (const uint8_t *)state->vectors[in->c]);
  }
  mosaic_step_set(state, &state->views[in->a], &view);
  if (vector == view.base && mp_mosaic_view_is_dense(&view)) return NULL;  // computed there
  return mp_mosaic_view_write(&view, vector);
}

static mp_status_t mosaic_step_scalar(const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state) {
  mp_mosaic_view_t view;
  mp_status_t status = mosaic_step_access(in, state, &view, in->kind == MP_MOSAIC_DO_LOAD_SCALAR);
  if (in->flag && mp_status_code(status) == MP_OUT_OF_RANGE) {
    mp_status_ignore(status);
    state->registers[in->out] = MP_MOSAIC_OUTSIDE;
    return NULL;
  }
  if (status != NULL) return status;
  if (view.pack != 1) return mp_status_make(MP_UNIMPLEMENTED, "a scalar of a packed memref");
  char *element = mosaic_step_element(&view);
  if (in->kind == MP_MOSAIC_DO_LOAD_SCALAR) {
    state->registers[in->out] = mp_mosaic_scalar_load((mp_dtype_t)in->dtype, element);
    return NULL;
  }
  int64_t value = state->registers[in->b];
  const int bits = mp_dtype_bits((mp_dtype_t)in->dtype);
  if (bits < 8) value &= (INT64_C(1) << bits) - 1;
  memcpy(element, &value, mp_dtype_size((mp_dtype_t)in->dtype));
  return NULL;
}

// ---- views ----

// A part that is only waited for (flag) has a size, and no place.
static mp_status_t mosaic_step_slice(const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state) {
  const mp_mosaic_view_t *view = &state->views[in->a];
  mp_mosaic_view_t *out = &state->views[in->out];
  if (!in->flag) {
    return mosaic_step_name_root(view, mp_mosaic_step_part(in->u.part, state, view, out));
  }
  *out = *view;
  memset(out->beyond, 0, sizeof(out->beyond));
  mosaic_step_sizes(in->u.part, state, view->rank, out->dims);
  int64_t bytes = out->element;
  for (uint32_t d = 0; d < out->rank; ++d) {
    if (out->dims[d] >= 0 && !__builtin_mul_overflow(bytes, out->dims[d], &bytes)) continue;
    return mp_status_make(MP_OUT_OF_RANGE, "a part of %lld elements in dimension %u",
                          (long long)out->dims[d], d);
  }
  return NULL;
}

static void mosaic_step_allocate(const mp_mosaic_program_t *program,
                                 const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state) {
  const mp_mosaic_type_t *type = in->u.type;
  mp_mosaic_view_t *view = &state->views[in->out];
  mp_mosaic_view_dense(type, state->memory + program->offsets[in->a], MP_MOSAIC_NONE, view);
  // Other devices may have written it before this one comes here: it is unset when the run begins.
  if (program->communicates) return;
  mp_mosaic_unset(type, view->base, (size_t)mp_mosaic_view_count(view) * view->element);
}

void mp_mosaic_step_unset_allocations(const mp_mosaic_program_t *program,
                                      const mp_mosaic_state_t *state) {
  for (uint32_t i = 0; i < program->num_instructions; ++i) {
    const mp_mosaic_instruction_t *in = &program->instructions[i];
    if (in->kind != MP_MOSAIC_DO_ALLOCATE) continue;
    mp_mosaic_unset(in->u.type, state->memory + program->offsets[in->a], program->sizes[in->a]);
  }
}

mp_status_t mp_mosaic_step_memory(const mp_mosaic_program_t *program,
                                  const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state) {
  mp_mosaic_view_t *views = state->views;
  switch (in->kind) {
    case MP_MOSAIC_DO_LOAD:
      return mosaic_step_load(program, in, state);
    case MP_MOSAIC_DO_STORE:
      return mosaic_step_store(in, state);
    case MP_MOSAIC_DO_LOAD_SCALAR:
    case MP_MOSAIC_DO_STORE_SCALAR:
      return mosaic_step_scalar(in, state);
    case MP_MOSAIC_DO_SLICE:
      return mosaic_step_slice(in, state);
    case MP_MOSAIC_DO_SQUEEZE:
      return mp_mosaic_view_squeeze(&views[in->a], in->u.type, &views[in->out]);
    case MP_MOSAIC_DO_RESHAPE:
      return mp_mosaic_view_reshape(&views[in->a], in->u.type, &views[in->out]);
    case MP_MOSAIC_DO_BITCAST:
      return mp_mosaic_view_bitcast(&views[in->a], mp_dtype_bits((mp_dtype_t)in->dtype), in->u.type,
                                    &views[in->out]);
    case MP_MOSAIC_DO_ALLOCATE:
      mosaic_step_allocate(program, in, state);
      return NULL;
    case MP_MOSAIC_DO_MOVE_VIEW:
      views[in->out] = views[in->a];
      return NULL;
    case MP_MOSAIC_DO_SIZE:
      state->registers[in->out] = views[in->a].dims[in->value];
      return NULL;
    default:
      return mp_status_make(MP_INTERNAL, "instruction %d is not known", in->kind);
  }
}

// ---- random numbers ----

// The finalizer of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators", 2014).
static uint64_t mosaic_step_mix(uint64_t x) {
  x += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

void mp_mosaic_step_random(const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state) {
  if (in->kind == MP_MOSAIC_DO_SEED) {
    state->seed = state->draws = 0;
    for (uint32_t i = 0; i < in->u.part->num_indices; ++i) {
      state->seed =
          mosaic_step_mix(state->seed ^ (uint64_t)state->registers[in->u.part->indices[i]]);
    }
    return;
  }
  char *out = state->vectors[in->out];
  for (int64_t at = 0; at < in->value; at += 8) {
    const uint64_t word = mosaic_step_mix(state->seed + mosaic_step_mix(state->draws++));
    memcpy(out + at, &word, in->value - at < 8 ? (size_t)(in->value - at) : 8);
  }
}
