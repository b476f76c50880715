// Instructions for the ops of a segment's StableHLO function.
#include <string.h>

#include "sim/kernels/table/kernel_table.h"
#include "sim/mosaic/compile/mosaic_compiler.h"

typedef struct {
  mp_mosaic_compiler_t *c;
  uint32_t *vectors;    // by value id; NONE: not made
  bool *is_read;        // by value id
  uint32_t *last_read;  // by value id: the position of the last op that reads the value's memory
} emitter_t;

static bool mosaic_segment_emit_is_alias(const mp_op_t *op) {
  int64_t from = 0, to = 0;
  return mp_op_has(op, MP_OP_TRAIT_ALIAS) && op->num_operands == 1 && op->num_results == 1 &&
         mp_type_num_bytes(op->operands[0]->type, &from) &&
         mp_type_num_bytes(op->results[0].type, &to) && from == to;
}

// The value whose memory a value has.
static const mp_value_t *mosaic_segment_emit_root(const mp_value_t *value) {
  while (value->op != NULL && mosaic_segment_emit_is_alias(value->op))
    value = value->op->operands[0];
  return value;
}

// ---- what is read ----

static void mosaic_segment_emit_read(emitter_t *e, const mp_value_t *value, uint32_t position) {
  const mp_value_t *root = mosaic_segment_emit_root(value);
  e->is_read[root->id] = true;
  if (e->last_read[root->id] < position) e->last_read[root->id] = position;
}

static mp_status_t mosaic_segment_emit_read_captures(emitter_t *e, const mp_op_t *op,
                                                     uint32_t position) {
  mp_value_t **captures = NULL;
  uint32_t count = 0;
  if (op->num_regions == 0) return NULL;
  MP_RETURN_IF_ERROR(mp_op_captures(op, e->c->scratch, &captures, &count));
  for (uint32_t i = 0; i < count; ++i) mosaic_segment_emit_read(e, captures[i], position);
  return NULL;
}

static bool mosaic_segment_emit_is_needed(const emitter_t *e, const mp_op_t *op) {
  for (uint32_t r = 0; r < op->num_results; ++r) {
    if (e->is_read[op->results[r].id]) return true;
  }
  return op->code == MP_OP_RETURN;
}

// From the last op to the first: those that nothing reads need no kernel.
static mp_status_t mosaic_segment_emit_find_reads(emitter_t *e, const mp_block_t *body,
                                                  uint32_t num_ops) {
  uint32_t position = num_ops;
  for (const mp_op_t *op = body->last; op != NULL; op = op->prev, --position) {
    if (!mosaic_segment_emit_is_needed(e, op) || mosaic_segment_emit_is_alias(op)) continue;
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      const bool is_end = op->code == MP_OP_RETURN;
      mosaic_segment_emit_read(e, is_end ? op->operands[i] : mp_kernel_operand(op, i),
                               is_end ? UINT32_MAX : position);
    }
    MP_RETURN_IF_ERROR(mosaic_segment_emit_read_captures(e, op, position));
  }
  return NULL;
}

// ---- constants ----

// The elements of a constant, aligned as kernels expect.
static mp_status_t mosaic_segment_emit_constant(emitter_t *e, const mp_op_t *op) {
  const mp_attr_t *value = mp_op_attr(op, MP_ATTR_VALUE);
  int64_t bytes = 0;
  uint32_t vector = 0;
  if (value == NULL || value->kind != MP_KIND_DENSE ||
      !mp_type_num_bytes(op->results[0].type, &bytes)) {
    return mp_status_make(MP_UNIMPLEMENTED, "a constant of this form is not supported");
  }
  char *memory = mp_arena_alloc(e->c->arena, (size_t)bytes + 128);
  MP_RETURN_IF_NULL(memory);
  memory += (64 - (uintptr_t)memory % 64) % 64;
  const size_t size = value->u.dense.size;
  for (int64_t at = 0; at < bytes; at += (int64_t)size) {
    memcpy(memory + at, value->u.dense.data, size);
  }
  MP_RETURN_IF_ERROR(mp_mosaic_new_vector(e->c, 0, &vector));
  e->c->vectors.items[vector].known = memory;
  e->c->vectors.items[vector].bytes = (uint64_t)bytes;
  e->vectors[op->results[0].id] = vector;
  return NULL;
}

// ---- kernels ----

static mp_status_t mosaic_segment_emit_operands(emitter_t *e, const mp_op_t *op,
                                                mp_mosaic_kernel_call_t *call) {
  mp_value_t **captures = NULL;
  uint32_t num_captures = 0;
  if (op->num_regions != 0) {
    MP_RETURN_IF_ERROR(mp_op_captures(op, e->c->scratch, &captures, &num_captures));
  }
  const uint32_t count = op->num_operands + num_captures;
  uint32_t *operands = MP_ARENA_ARRAY(e->c->arena, uint32_t, count);
  MP_RETURN_IF_NULL(operands);
  for (uint32_t i = 0; i < count; ++i) {
    const mp_value_t *value =
        i < op->num_operands ? mp_kernel_operand(op, i) : captures[i - op->num_operands];
    operands[i] = e->vectors[mosaic_segment_emit_root(value)->id];
    if (operands[i] == MP_MOSAIC_NONE) {
      return mp_status_make(MP_INTERNAL, "a tensor is read before it is made");
    }
    MP_RETURN_IF_ERROR(mp_mosaic_use_vector(e->c, operands[i]));
  }
  call->num_operands = count;
  call->operands = operands;
  return NULL;
}

// Whether a result can have the memory of an operand: a temporary that the op reads last.
static bool mosaic_segment_emit_can_overwrite(const emitter_t *e, const mp_op_t *op,
                                              const mp_kernel_t *kernel, uint32_t operand,
                                              uint32_t position) {
  const mp_value_t *root = mosaic_segment_emit_root(mp_kernel_operand(op, operand));
  int64_t from = 0, to = 0;
  if (root->op == NULL || root->op->code == MP_OP_CONSTANT || e->last_read[root->id] != position ||
      op->num_results != 1 || op->num_regions != 0 || !mp_type_num_bytes(root->type, &from) ||
      !mp_type_num_bytes(op->results[0].type, &to)) {
    return false;
  }
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const bool is_same =
        e->vectors[mosaic_segment_emit_root(mp_kernel_operand(op, i))->id] == e->vectors[root->id];
    if (is_same && (i >= 32 || (kernel->in_place >> i & 1) == 0)) return false;
  }
  return from == to;
}

static mp_status_t mosaic_segment_emit_result(emitter_t *e, const mp_op_t *op,
                                              const mp_kernel_t *kernel, uint32_t position,
                                              uint32_t index, uint32_t *out_vector) {
  int64_t bytes = 0;
  if (!mp_type_num_bytes(op->results[index].type, &bytes)) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < op->num_operands && i < 32; ++i) {
    if ((kernel->in_place >> i & 1) == 0) continue;
    if (!mosaic_segment_emit_can_overwrite(e, op, kernel, i, position)) continue;
    *out_vector = e->vectors[mosaic_segment_emit_root(mp_kernel_operand(op, i))->id];
    return NULL;
  }
  return mp_mosaic_new_vector(e->c, (uint64_t)bytes, out_vector);
}

static mp_status_t mosaic_segment_emit_kernel(emitter_t *e, const mp_op_t *op, uint32_t position) {
  mp_mosaic_kernel_call_t *call = MP_ARENA_NEW(e->c->arena, mp_mosaic_kernel_call_t);
  uint32_t *results = MP_ARENA_ARRAY(e->c->arena, uint32_t, op->num_results);
  if (call == NULL || results == NULL) return mp_status_out_of_memory();
  MP_RETURN_IF_ERROR(mp_kernel_create(e->c->arena, op, &call->kernel));
  MP_RETURN_IF_ERROR(mosaic_segment_emit_operands(e, op, call));
  for (uint32_t r = 0; r < op->num_results; ++r) {
    MP_RETURN_IF_ERROR(mosaic_segment_emit_result(e, op, call->kernel, position, r, &results[r]));
    MP_RETURN_IF_ERROR(mp_mosaic_use_vector(e->c, results[r]));
    e->vectors[op->results[r].id] = results[r];
  }
  call->num_results = op->num_results;
  call->results = results;
  if (call->num_operands > MP_MOSAIC_MOST_ARRAYS || call->num_results > MP_MOSAIC_MOST_ARRAYS) {
    return mp_status_make(MP_UNIMPLEMENTED, "an op of more than %d vectors", MP_MOSAIC_MOST_ARRAYS);
  }
  mp_mosaic_compiler_t *c = e->c;
  if (c->scratch_bytes < call->kernel->scratch_bytes) {
    c->scratch_bytes = call->kernel->scratch_bytes;
  }
  if (c->shared_bytes < call->kernel->shared_bytes) c->shared_bytes = call->kernel->shared_bytes;
  const mp_mosaic_instruction_t in = {.kind = MP_MOSAIC_DO_KERNEL, .u.call = call};
  return mp_mosaic_emit(c, &in);
}

static mp_status_t mosaic_segment_emit_op(emitter_t *e, const mp_op_t *op, uint32_t position) {
  if (op->code == MP_OP_RETURN || mosaic_segment_emit_is_alias(op) ||
      !mosaic_segment_emit_is_needed(e, op))
    return NULL;
  return op->code == MP_OP_CONSTANT ? mosaic_segment_emit_constant(e, op)
                                    : mosaic_segment_emit_kernel(e, op, position);
}

// ---- ----

static mp_status_t mosaic_segment_emit_new_emitter(mp_mosaic_compiler_t *c, mp_module_t *module,
                                                   emitter_t *out) {
  const uint32_t count = mp_module_number_values(module);
  *out = (emitter_t){.c = c,
                     .vectors = MP_ARENA_ARRAY(c->scratch, uint32_t, count),
                     .is_read = MP_ARENA_ARRAY(c->scratch, bool, count),
                     .last_read = MP_ARENA_ARRAY(c->scratch, uint32_t, count)};
  if (out->vectors == NULL || out->is_read == NULL || out->last_read == NULL) {
    return mp_status_out_of_memory();
  }
  for (uint32_t i = 0; i < count; ++i) out->vectors[i] = MP_MOSAIC_NONE;
  return NULL;
}

mp_status_t mp_mosaic_emit_segment(mp_mosaic_compiler_t *c, mp_module_t *module,
                                   const uint32_t *arg_vectors, uint32_t *out_result_vectors) {
  emitter_t e;
  const mp_block_t *body = module->main->body;
  MP_RETURN_IF_ERROR(mosaic_segment_emit_new_emitter(c, module, &e));
  for (uint32_t i = 0; i < body->num_args; ++i) e.vectors[body->args[i].id] = arg_vectors[i];
  uint32_t num_ops = 0, position = 0;
  for (const mp_op_t *op = body->first; op != NULL; op = op->next) ++num_ops;
  MP_RETURN_IF_ERROR(mosaic_segment_emit_find_reads(&e, body, num_ops));
  for (const mp_op_t *op = body->first; op != NULL; op = op->next) {
    mp_status_t status = mosaic_segment_emit_op(&e, op, ++position);
    if (status != NULL) return mp_op_error_at(op, status);
  }
  for (uint32_t i = 0; i < body->last->num_operands; ++i) {
    out_result_vectors[i] = e.vectors[mosaic_segment_emit_root(body->last->operands[i])->id];
    if (out_result_vectors[i] == MP_MOSAIC_NONE) {
      return mp_status_make(MP_INTERNAL, "a segment's result is not made");
    }
  }
  return NULL;
}
