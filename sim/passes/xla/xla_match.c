// Matching and building for the rules.
#include "sim/passes/xla/xla_rules.h"

mp_op_t *mp_xla_operand(const mp_op_t *user, const mp_value_t *value, mp_opcode_t code) {
  mp_op_t *op = value->op;
  return op != NULL && op->code == code && op->parent == user->parent ? op : NULL;
}

// The constant op that provides all elements; NULL: there is none.
static const mp_op_t *xla_match_constant(const mp_value_t *value) {
  const mp_op_t *op = value->op;
  if (op == NULL) return NULL;
  if (op->code == MP_OP_BROADCAST_IN_DIM && op->operands[0]->type->rank == 0)
    op = op->operands[0]->op;
  return op != NULL && op->code == MP_OP_CONSTANT ? op : NULL;
}

bool mp_xla_is_constant(const mp_value_t *value) {
  return xla_match_constant(value) != NULL;
}

bool mp_xla_number(const mp_value_t *value, double *out_number) {
  const mp_op_t *op = xla_match_constant(value);
  const void *element = op == NULL ? NULL : mp_op_splat(op);
  if (element == NULL) return false;
  const mp_dtype_t dtype = op->results[0].type->dtype, part = mp_dtype_real_part(dtype);
  if (!mp_dtype_is_float(part)) return false;
  *out_number = mp_float_decode(part, element);
  if (!mp_dtype_is_complex(dtype)) return true;
  return mp_float_decode(part, (const char *)element + mp_dtype_size(part)) == 0;
}

mp_status_t mp_xla_insert(mp_xla_t *x, mp_op_t *position, const mp_op_one_t *op,
                          mp_value_t **out_value) {
  mp_value_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_rewrite_insert_op(x->module, position, op, &value));
  value->id = x->replaced.count;
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(x->module->arena, &x->replaced, NULL));
  *out_value = value;
  return NULL;
}

mp_status_t mp_xla_compute(mp_xla_t *x, mp_op_t *position, mp_opcode_t code, mp_value_t *a,
                           mp_value_t *b, mp_value_t **out_value) {
  mp_value_t *const operands[] = {a, b};
  const mp_op_one_t op = {
      .code = code, .type = a->type, .operands = operands, .num_operands = b == NULL ? 1 : 2};
  return mp_xla_insert(x, position, &op, out_value);
}

mp_status_t mp_xla_insert_number(mp_xla_t *x, mp_op_t *position, const mp_type_t *type,
                                 double number, mp_value_t **out_value) {
  char element[16] = {0};  // the imaginary part is zero
  const mp_attr_t *value = NULL;
  mp_float_encode(mp_dtype_real_part(type->dtype), number, element);
  MP_RETURN_IF_ERROR(mp_attr_make_dense(x->module->arena, type, element, mp_dtype_size(type->dtype),
                                        true, &value));
  const mp_named_attr_t attr = mp_rewrite_attr(MP_ATTR_VALUE, value);
  const mp_op_one_t op = {.code = MP_OP_CONSTANT, .type = type, .attrs = &attr, .num_attrs = 1};
  return mp_xla_insert(x, position, &op, out_value);
}

mp_status_t mp_xla_become(mp_xla_t *x, mp_op_t *op, mp_opcode_t code, mp_value_t *a, mp_value_t *b,
                          mp_xla_outcome_t *out) {
  mp_value_t *const operands[] = {a, b};
  out->is_changed = true;
  MP_RETURN_IF_ERROR(mp_rewrite_set_operands(x->module, op, operands, b == NULL ? 1 : 2));
  return code == op->code ? NULL : mp_rewrite_become(x->module, op, code, NULL, 0);
}
