// The accesses of a loop's instructions.
#include "sim/native/module/emit_loop.h"

static access_t emit_access_of(uint32_t ref, mp_dtype_t dtype, int64_t count, bool is_written) {
  return (access_t){.ref = ref,
                    .bytes = (uint64_t)count * emit_bytes(dtype),
                    .dtype = dtype,
                    .is_written = is_written};
}

static access_t emit_access_moved(uint32_t ref, uint64_t bytes, bool is_written) {
  return (access_t){
      .ref = ref, .bytes = bytes, .dtype = MP_DTYPE_INVALID, .is_written = is_written};
}

// The bytes of an array that an instruction may access to take or place a row: up to the end of the
// last possible row.
static access_t emit_access_rows(const mp_native_instruction_t *i, uint32_t ref, bool is_written) {
  access_t access = emit_access_moved(ref, (uint64_t)i->count, is_written);
  for (uint32_t k = 0; k < i->num_indices; ++k) {
    access.bytes += (uint64_t)(i->most[k] * i->stride[k]);
  }
  access.is_part = true;
  return access;
}

static bool emit_access_compute(const mp_native_instruction_t *i, uint32_t k, access_t *out) {
  if (k > i->num_inputs) return false;
  *out = k == i->num_inputs
             ? emit_access_of(i->out, i->op.to, i->count, true)
             : emit_access_of(i->in[k], mp_native_input_type(&i->op, k), i->count, false);
  return true;
}

static bool emit_access_row(const mp_native_instruction_t *i, uint32_t k, access_t *out) {
  const bool is_take = i->kind == MP_NATIVE_TAKE;
  if (k < i->num_indices) {
    *out = emit_access_of(i->in[1 + k], i->index_dtype, 1, false);
  } else if (k == i->num_indices) {
    *out = is_take ? emit_access_rows(i, i->in[0], false)
                   : emit_access_moved(i->in[0], (uint64_t)i->count, false);
  } else if (k == i->num_indices + 1) {
    *out = is_take ? emit_access_moved(i->out, (uint64_t)i->count, true)
                   : emit_access_rows(i, i->out, true);
  } else {
    return false;
  }
  return true;
}

static bool emit_access_call(const mp_native_loop_t *loop, const mp_native_instruction_t *i,
                             uint32_t k, access_t *out) {
  // Reads come first, so the uses are visited twice.
  const uint32_t count = (uint32_t)i->count;
  if (k >= 2 * count) return false;
  const mp_native_use_t *use = &loop->uses[i->target + k % count];
  *out = emit_access_moved(use->ref, use->bytes, use->is_written);
  out->is_call = true;
  out->is_part = use->is_part;
  if (use->is_written != (k >= count)) out->bytes = 0;
  return true;
}

static uint64_t emit_access_picked(const mp_native_loop_t *loop, const mp_native_instruction_t *i) {
  int64_t most = 0;
  for (int64_t k = 0; k < i->count; ++k) {
    if (loop->places[i->target + k] > most) most = loop->places[i->target + k];
  }
  return (uint64_t)(most + 1) * emit_bytes(i->op.from);
}

bool emit_access(const mp_native_loop_t *loop, const mp_native_instruction_t *i, uint32_t k,
                 access_t *out_access) {
  switch (i->kind) {
    case MP_NATIVE_COMPUTE:
    case MP_NATIVE_BACK_IF:
      return emit_access_compute(i, k, out_access);
    case MP_NATIVE_UNLESS:
      *out_access = emit_access_of(i->in[0], MP_DTYPE_BOOL, 1, false);
      return k == 0;
    case MP_NATIVE_SWITCH:
      *out_access = emit_access_of(i->in[0], MP_DTYPE_S32, 1, false);
      return k == 0;
    case MP_NATIVE_FILL:
    case MP_NATIVE_PICK: {
      const uint64_t size = emit_bytes(i->op.from);
      const uint64_t read = i->kind == MP_NATIVE_FILL ? size : emit_access_picked(loop, i);
      *out_access = k == 0 ? emit_access_moved(i->in[0], read, false)
                           : emit_access_moved(i->out, (uint64_t)i->count * size, true);
      return k < 2;
    }
    case MP_NATIVE_COPY:
      *out_access = emit_access_moved(k == 0 ? i->in[0] : i->out, (uint64_t)i->count, k == 1);
      return k < 2;
    case MP_NATIVE_TAKE:
    case MP_NATIVE_PLACE:
      return emit_access_row(i, k, out_access);
    case MP_NATIVE_CALL:
      return emit_access_call(loop, i, k, out_access);
    default:
      return false;
  }
}
