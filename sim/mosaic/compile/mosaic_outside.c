// Scalars and vectors that are loaded in vain.
//
// JAX evaluates both sides of a `where`. A TPU loads scalars and vectors beyond the end of their
// memory without harm: libtpu 0.0.52 checks the bounds of DMAs only. So this is an error only if
// such a scalar, or what is computed of it, is chosen. Such a vector is like memory that nothing
// has written.
#include "sim/mosaic/compile/mosaic_compiler.h"

static bool mosaic_outside_is_integer(const mp_mosaic_value_t *value) {
  return value->type->kind == MP_MOSAIC_SCALAR && !mp_dtype_is_float(value->type->dtype) &&
         mp_dtype_bits(value->type->dtype) <= 32;
}

static bool mosaic_outside_is_chosen(const mp_mosaic_frame_t *frame,
                                     const mp_mosaic_value_t *value) {
  return mosaic_outside_is_integer(value) && frame->uses[value->id] != 0 &&
         frame->uses[value->id] == frame->choices[value->id];
}

static bool mosaic_outside_is_chosen_vector(const mp_mosaic_frame_t *frame,
                                            const mp_mosaic_value_t *value) {
  return value->type->kind == MP_MOSAIC_VECTOR && frame->uses[value->id] != 0 &&
         frame->uses[value->id] == frame->choices[value->id];
}

// Ops that move the bits of a vector, as kernels do that shift rows of packed elements.
static bool mosaic_outside_moves(const mp_mosaic_op_t *op) {
  switch (op->code) {
    case MP_MOSAIC_SHAPE_CAST:
    case MP_MOSAIC_TPU_BITCAST:
    case MP_MOSAIC_DYNAMIC_ROTATE:
    case MP_MOSAIC_SHLI:
    case MP_MOSAIC_SHRUI:
    case MP_MOSAIC_ORI:
      return op->results[0].type->kind == MP_MOSAIC_VECTOR;
    default:
      return false;
  }
}

bool mp_mosaic_only_chosen(const mp_mosaic_frame_t *frame, const mp_mosaic_op_t *op) {
  if (mosaic_outside_moves(op)) {
    return mosaic_outside_is_chosen_vector(frame, &op->results[0]);
  }
  const bool computes =
      op->code == MP_MOSAIC_ADDI || op->code == MP_MOSAIC_SUBI || op->code == MP_MOSAIC_MULI;
  return computes && mosaic_outside_is_chosen(frame, &op->results[0]);
}

bool mp_mosaic_may_be_outside(const mp_mosaic_compiler_t *c, const mp_mosaic_value_t *value) {
  enum { MOST = 8 };  // sums of sums
  if (value->type->kind == MP_MOSAIC_VECTOR)
    return mosaic_outside_is_chosen_vector(c->frame, value);
  const mp_mosaic_value_t *left[MOST] = {value};
  uint32_t count = 1;
  while (count > 0) {
    const mp_mosaic_value_t *next = left[--count];
    const mp_mosaic_op_t *op = next->op;
    if (op == NULL || !mosaic_outside_is_chosen(c->frame, next)) continue;
    if (op->code == MP_MOSAIC_MEMREF_LOAD) return true;
    if (!mp_mosaic_only_chosen(c->frame, op)) continue;
    if (count + op->num_operands > MOST) return true;
    for (uint32_t i = 0; i < op->num_operands; ++i) left[count++] = op->operands[i];
  }
  return false;
}
