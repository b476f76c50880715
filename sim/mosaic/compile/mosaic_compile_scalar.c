// Integers that are not vectors.
#include "sim/mosaic/compile/mosaic_compiler.h"
#include "sim/mosaic/run/mosaic_scalar.h"

static bool mosaic_compile_scalar_is_integer(const mp_mosaic_value_t *value) {
  return value->type->kind == MP_MOSAIC_SCALAR && !mp_dtype_is_float(value->type->dtype);
}

static uint8_t mosaic_compile_scalar_bits(const mp_mosaic_value_t *value) {
  return (uint8_t)mp_dtype_bits(value->type->dtype);
}

static bool mosaic_compile_scalar_is_conversion(mp_mosaic_opcode_t code) {
  return code == MP_MOSAIC_EXTSI || code == MP_MOSAIC_EXTUI || code == MP_MOSAIC_TRUNCI ||
         code == MP_MOSAIC_INDEX_CAST || code == MP_MOSAIC_INDEX_CASTUI ||
         code == MP_MOSAIC_ASSUME_MULTIPLE;
}

bool mp_mosaic_is_scalar_op(const mp_mosaic_op_t *op) {
  if (!mp_mosaic_is_integer(op->code) && !mosaic_compile_scalar_is_conversion(op->code) &&
      op->code != MP_MOSAIC_CMPI && op->code != MP_MOSAIC_SELECT) {
    return false;
  }
  if (op->num_results != 1 || !mosaic_compile_scalar_is_integer(&op->results[0])) return false;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (!mosaic_compile_scalar_is_integer(op->operands[i])) return false;
  }
  return true;
}

static mp_status_t mosaic_compile_scalar_result(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op,
                                                mp_mosaic_instruction_t *instruction) {
  MP_RETURN_IF_ERROR(mp_mosaic_new_result(c, &op->results[0], &instruction->out));
  return mp_mosaic_emit(c, instruction);
}

// ---- conversions ----

// i1 becomes 0 or -1.
static mp_status_t mosaic_compile_scalar_spread(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op,
                                                uint32_t a) {
  mp_mosaic_instruction_t select = {.kind = MP_MOSAIC_DO_SELECT, .a = a};
  MP_RETURN_IF_ERROR(mp_mosaic_new_register(c, -1, &select.b));
  MP_RETURN_IF_ERROR(mp_mosaic_new_register(c, 0, &select.c));
  return mosaic_compile_scalar_result(c, op, &select);
}

static mp_status_t mosaic_compile_scalar_convert(mp_mosaic_compiler_t *c,
                                                 const mp_mosaic_op_t *op) {
  const uint8_t from = mosaic_compile_scalar_bits(op->operands[0]),
                to = mosaic_compile_scalar_bits(&op->results[0]);
  const bool is_unsigned = op->code == MP_MOSAIC_EXTUI || op->code == MP_MOSAIC_INDEX_CASTUI;
  mp_mosaic_place_t place;
  MP_RETURN_IF_ERROR(mp_mosaic_need(c, op->operands[0], &place));
  if (op->code == MP_MOSAIC_EXTSI && from == 1)
    return mosaic_compile_scalar_spread(c, op, place.index);
  if (to >= from && (!is_unsigned || from == 1)) {
    mp_mosaic_set_place(c, &op->results[0], place);
    return NULL;
  }
  mp_mosaic_instruction_t extend = {.kind = MP_MOSAIC_DO_EXTEND,
                                    .bits = to < from ? to : from,
                                    .flag = to > from,
                                    .a = place.index};
  return mosaic_compile_scalar_result(c, op, &extend);
}

// ---- ops ----

// The scalar that was chosen must not be one from outside of its memory.
static mp_status_t mosaic_compile_scalar_check(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  for (uint32_t i = 1; i < op->num_operands; ++i) {
    const mp_mosaic_value_t *value = op->operands[i];
    if (!mp_mosaic_may_be_outside(c, value)) continue;
    mp_mosaic_instruction_t in = {.kind = MP_MOSAIC_DO_NOT_OUTSIDE};
    MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, &op->results[0], &in.a));
    MP_RETURN_IF_ERROR(mp_mosaic_where(c, value->op, &in.where));
    return mp_mosaic_emit(c, &in);
  }
  return NULL;
}

mp_status_t mp_mosaic_compile_scalar(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  mp_mosaic_instruction_t in = {.kind = MP_MOSAIC_DO_INTEGER,
                                .bits = mosaic_compile_scalar_bits(op->operands[0]),
                                .code = (uint16_t)op->code};
  if (mosaic_compile_scalar_is_conversion(op->code)) return mosaic_compile_scalar_convert(c, op);
  MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, op->operands[0], &in.a));
  MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, op->operands[1], &in.b));
  if (op->code == MP_MOSAIC_SELECT) {
    in.kind = MP_MOSAIC_DO_SELECT;
    MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, op->operands[2], &in.c));
    MP_RETURN_IF_ERROR(mosaic_compile_scalar_result(c, op, &in));
    return mosaic_compile_scalar_check(c, op);
  } else if (op->code == MP_MOSAIC_CMPI) {
    const int64_t predicate = mp_mosaic_op_int(op, "predicate", -1);
    if (predicate < 0 || predicate > 9) {
      return mp_mosaic_op_error(op, MP_INVALID_ARGUMENT, "it has no predicate %lld",
                                (long long)predicate);
    }
    in.kind = MP_MOSAIC_DO_COMPARE;
    in.predicate = (uint8_t)predicate;
  } else {
    in.flag =
        mp_mosaic_only_chosen(c->frame, op) && (mp_mosaic_may_be_outside(c, op->operands[0]) ||
                                                mp_mosaic_may_be_outside(c, op->operands[1]));
  }
  return mosaic_compile_scalar_result(c, op, &in);
}

// ---- affine maps ----

static mp_status_t mosaic_compile_scalar_affine_op(mp_mosaic_compiler_t *c, mp_mosaic_opcode_t code,
                                                   uint32_t a, uint32_t b, uint32_t *out_register) {
  mp_mosaic_instruction_t in = {
      .kind = MP_MOSAIC_DO_INTEGER, .bits = 64, .code = (uint16_t)code, .a = a, .b = b};
  MP_RETURN_IF_ERROR(mp_mosaic_new_register(c, 0, &in.out));
  *out_register = in.out;
  return mp_mosaic_emit(c, &in);
}

// a mod b = a - floordiv(a, b) * b
static mp_status_t mosaic_compile_scalar_affine_mod(mp_mosaic_compiler_t *c, uint32_t a, uint32_t b,
                                                    uint32_t *out_register) {
  uint32_t quotient = 0, product = 0;
  MP_RETURN_IF_ERROR(mosaic_compile_scalar_affine_op(c, MP_MOSAIC_FLOORDIVSI, a, b, &quotient));
  MP_RETURN_IF_ERROR(mosaic_compile_scalar_affine_op(c, MP_MOSAIC_MULI, quotient, b, &product));
  return mosaic_compile_scalar_affine_op(c, MP_MOSAIC_SUBI, a, product, out_register);
}

mp_status_t mp_mosaic_compile_affine(mp_mosaic_compiler_t *c, const mp_mosaic_affine_t *expression,
                                     const uint32_t *dims, uint32_t num_dims,
                                     uint32_t *out_register) {
  static const mp_mosaic_opcode_t codes[] = {[MP_MOSAIC_AFFINE_ADD] = MP_MOSAIC_ADDI,
                                             [MP_MOSAIC_AFFINE_MUL] = MP_MOSAIC_MULI,
                                             [MP_MOSAIC_AFFINE_FLOORDIV] = MP_MOSAIC_FLOORDIVSI,
                                             [MP_MOSAIC_AFFINE_CEILDIV] = MP_MOSAIC_CEILDIVSI};
  uint32_t a = 0, b = 0;
  if (expression->kind == MP_MOSAIC_AFFINE_CONSTANT) {
    return mp_mosaic_new_register(c, expression->value, out_register);
  }
  if (expression->kind == MP_MOSAIC_AFFINE_DIM && expression->value >= 0 &&
      expression->value < (int64_t)num_dims) {
    *out_register = dims[expression->value];
    return NULL;
  }
  if (expression->lhs == NULL || expression->rhs == NULL) {
    return mp_status_make(MP_UNIMPLEMENTED, "symbols in affine maps are not supported");
  }
  MP_RETURN_IF_ERROR(mp_mosaic_compile_affine(c, expression->lhs, dims, num_dims, &a));
  MP_RETURN_IF_ERROR(mp_mosaic_compile_affine(c, expression->rhs, dims, num_dims, &b));
  if (expression->kind == MP_MOSAIC_AFFINE_MOD)
    return mosaic_compile_scalar_affine_mod(c, a, b, out_register);
  return mosaic_compile_scalar_affine_op(c, codes[expression->kind], a, b, out_register);
}
