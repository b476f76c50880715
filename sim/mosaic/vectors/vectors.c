#include "sim/mosaic/vectors/vectors.h"

#include "sim/mosaic/vectors/translate.h"

const mp_type_t *mp_mosaic_tensor_type(mp_shlo_t *hlo, const mp_mosaic_type_t *type) {
  const uint32_t rank = type->kind == MP_MOSAIC_VECTOR ? type->rank : 0;
  return mp_shlo_type(hlo, mp_mosaic_tensor_dtype(type->dtype), type->dims, rank);
}

// ---- which function translates an op ----

static mp_translate_fn_t vectors_find_elementwise(mp_mosaic_opcode_t code) {
  if (code == MP_MOSAIC_CMPF || code == MP_MOSAIC_CMPI) return mp_translate_compare;
  if (code >= MP_MOSAIC_EXTF && code <= MP_MOSAIC_STOCHASTIC_CONVERT_ELEMENTWISE) {
    return mp_translate_conversion;
  }
  return code == MP_MOSAIC_CONSTANT ? NULL : mp_translate_elementwise;
}

static mp_translate_fn_t vectors_find(mp_mosaic_opcode_t code) {
  if (mp_mosaic_op_info(code)->op_class == MP_MOSAIC_CLASS_SCALAR_OR_VECTOR) {
    return vectors_find_elementwise(code);
  }
  switch (code) {
    case MP_MOSAIC_MATMUL:
      return mp_translate_matmul;
    case MP_MOSAIC_MULTI_REDUCTION:
    case MP_MOSAIC_ALL_REDUCE:
    case MP_MOSAIC_REDUCE_INDEX:
      return mp_translate_reduction;
    case MP_MOSAIC_VECTOR_BITCAST:
    case MP_MOSAIC_TPU_BITCAST:
    case MP_MOSAIC_BITCAST_VREG:
    case MP_MOSAIC_PACK_ELEMENTWISE:
    case MP_MOSAIC_UNPACK_ELEMENTWISE:
      return mp_translate_bits;
    case MP_MOSAIC_PRNG_SET_SEED:
    case MP_MOSAIC_PRNG_RANDOM_BITS:
    case MP_MOSAIC_MATMUL_PUSH_RHS:
    case MP_MOSAIC_MATMUL_ACC_LHS:
    case MP_MOSAIC_MATMUL_POP:
      return NULL;  // they have an effect
    default:
      return mp_mosaic_op_info(code)->op_class == MP_MOSAIC_CLASS_VECTOR ? mp_translate_movement
                                                                         : NULL;
  }
}

bool mp_mosaic_translates(mp_mosaic_opcode_t code) {
  return code == MP_MOSAIC_CONSTANT || vectors_find(code) != NULL;
}

// ---- constants ----

static mp_status_t vectors_constant(mp_shlo_t *hlo, const mp_mosaic_op_t *op, mp_value_t **out) {
  const mp_type_t *type = mp_mosaic_tensor_type(hlo, op->results[0].type);
  const mp_mosaic_attr_t *value = mp_mosaic_op_attr(op, "value");
  if (value == NULL || type == NULL) {
    return mp_mosaic_op_error(op, MP_INVALID_ARGUMENT, "the constant has no value");
  }
  if (value->kind == MP_MOSAIC_FLOAT) {
    *out = mp_shlo_float(hlo, type, value->f64);
    return NULL;
  }
  if (value->kind == MP_MOSAIC_INT || value->kind == MP_MOSAIC_BOOL) {
    const bool is_bool = type->dtype == MP_DTYPE_BOOL;
    *out = mp_shlo_integer(hlo, type, is_bool ? value->i64 != 0 : value->i64);
    return NULL;
  }
  if (value->kind != MP_MOSAIC_DENSE) {
    return mp_mosaic_op_error(op, MP_UNIMPLEMENTED, "a constant of this form is not supported");
  }
  int64_t bytes = 0;
  const mp_attr_t *dense = NULL;
  if (!mp_type_num_bytes(type, &bytes)) return mp_status_out_of_memory();
  const size_t size = value->dense.splat ? mp_dtype_size(type->dtype) : (size_t)bytes;
  MP_RETURN_IF_ERROR(mp_attr_make_dense(hlo->module->arena, type, value->dense.data, size,
                                        value->dense.splat, &dense));
  const mp_named_attr_t attr = {MP_ATTR_VALUE, mp_str(mp_attr_name_text(MP_ATTR_VALUE)), dense};
  *out = mp_shlo_op(hlo, MP_OP_CONSTANT, NULL, 0, type, &attr, 1);
  return NULL;
}

mp_status_t mp_mosaic_translate(mp_shlo_t *hlo, const mp_mosaic_op_t *op,
                                mp_value_t *const *operands,
                                mp_value_t *out_results[MP_MOSAIC_MOST_RESULTS]) {
  if (op->code == MP_MOSAIC_CONSTANT) return vectors_constant(hlo, op, &out_results[0]);
  const mp_translate_fn_t translate = vectors_find(op->code);
  mp_translate_t t = {.hlo = hlo, .op = op, .in = operands, .out = out_results};
  if (translate == NULL || op->num_results == 0 || op->num_results > MP_MOSAIC_MOST_RESULTS) {
    return mp_translate_refuse(&t);
  }
  t.type = mp_mosaic_tensor_type(hlo, op->results[0].type);
  MP_RETURN_IF_ERROR(translate(&t));
  mp_status_t status = hlo->status;
  hlo->status = NULL;
  MP_RETURN_IF_ERROR(status);
  const mp_value_t *made = out_results[0];
  if (made == NULL || !mp_type_equal(made->type, t.type)) {
    return mp_mosaic_op_error(op, MP_INVALID_ARGUMENT,
                              "the types of the op's operands and result do not fit together");
  }
  return NULL;
}
