// A boolean that is converted to a number and multiplied is a mask: it selects.
#include "sim/passes/rewrite/rewrite.h"
#include "sim/passes/xla/xla_rules.h"

// The boolean that `value` converts; NULL: it is no conversion of a boolean.
static mp_value_t *xla_masks_predicate(const mp_op_t *user, const mp_value_t *value) {
  const mp_op_t *convert = mp_xla_operand(user, value, MP_OP_CONVERT);
  if (convert == NULL || convert->operands[0]->type->dtype != MP_DTYPE_BOOL) return NULL;
  return convert->operands[0];
}

static bool xla_masks_can_be_nan(const mp_type_t *type) {
  return mp_dtype_is_float(type->dtype) || mp_dtype_is_complex(type->dtype);
}

// convert(p) * a => select(p, a, 0)
mp_status_t mp_xla_mask(mp_xla_t *x, mp_op_t *op, mp_xla_outcome_t *out) {
  const mp_type_t *type = op->results[0].type;
  if (!xla_masks_can_be_nan(type) || !mp_type_is_static(type)) return NULL;
  for (uint32_t i = 2; i-- > 0;) {  // if both are masks, XLA takes the right one
    mp_value_t *predicate = xla_masks_predicate(op, op->operands[i]), *zero = NULL;
    if (predicate == NULL) continue;
    MP_RETURN_IF_ERROR(mp_xla_insert_number(x, op, type, 0, &zero));
    mp_value_t *const operands[] = {predicate, op->operands[1 - i], zero};
    out->is_changed = true;
    MP_RETURN_IF_ERROR(mp_rewrite_set_operands(x->module, op, operands, 3));
    return mp_rewrite_become(x->module, op, MP_OP_SELECT, NULL, 0);
  }
  return NULL;
}

// Whether a dot_general sums the elementwise products of two arrays with the same dimensions in the
// same order over some of them: XLA replaces it by a multiply and a reduce.
static bool xla_masks_is_elementwise(const mp_op_t *dot) {
  const mp_index_list_t contracting = mp_op_ints(dot, MP_ATTR_LHS_CONTRACTING_DIMENSIONS);
  const mp_index_list_t others = mp_op_ints(dot, MP_ATTR_RHS_CONTRACTING_DIMENSIONS);
  const mp_index_list_t batch = mp_op_ints(dot, MP_ATTR_LHS_BATCHING_DIMENSIONS);
  const mp_index_list_t other_batch = mp_op_ints(dot, MP_ATTR_RHS_BATCHING_DIMENSIONS);
  const mp_type_t *lhs = dot->operands[0]->type, *rhs = dot->operands[1]->type;
  if (!mp_type_is_static(lhs) || !mp_type_same_shape(lhs, rhs)) return false;
  if (contracting.count + batch.count != lhs->rank) return false;
  for (uint32_t i = 0; i < contracting.count; ++i)
    if (contracting.values[i] != others.values[i]) return false;
  for (uint32_t i = 0; i < batch.count; ++i)
    if (batch.values[i] != other_batch.values[i]) return false;
  return true;
}

// sum(convert(p) * a) as a product => the same of select(p, a, 0)
mp_status_t mp_xla_mask_dot(mp_xla_t *x, mp_op_t *op, mp_xla_outcome_t *out) {
  if (!xla_masks_is_elementwise(op)) return NULL;
  for (uint32_t i = 0; i < 2; ++i) {
    mp_value_t *predicate = xla_masks_predicate(op, op->operands[i]), *zero = NULL;
    mp_value_t *other = op->operands[1 - i];
    const mp_op_t *select = mp_xla_operand(op, other, MP_OP_SELECT);
    if (predicate == NULL || !xla_masks_can_be_nan(other->type)) continue;
    if (select != NULL && select->operands[0] == predicate) continue;  // done
    MP_RETURN_IF_ERROR(mp_xla_insert_number(x, op, other->type, 0, &zero));
    mp_value_t *const operands[] = {predicate, other, zero};
    out->is_changed = true;
    const mp_op_one_t made = {
        .code = MP_OP_SELECT, .type = other->type, .operands = operands, .num_operands = 3};
    return mp_xla_insert(x, op, &made, &op->operands[1 - i]);
  }
  return NULL;
}
