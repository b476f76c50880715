// Pretty forms of Shardy's operations.
#include "sim/readers/text/text_forms.h"

static mp_status_t text_forms_sdy_read_attr_sharding(mp_text_t *t, mp_text_op_t *op,
                                                     mp_attr_name_t name) {
  const mp_attr_t *sharding = NULL;
  MP_RETURN_IF_ERROR(mp_text_sharding(t, &sharding));
  return mp_text_op_attr(t, op, name, sharding);
}

// %x <@mesh, [...]> : T
mp_status_t mp_form_read_sharding_constraint(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(mp_text_operand(t, op));
  MP_RETURN_IF_ERROR(text_forms_sdy_read_attr_sharding(t, op, MP_ATTR_SHARDING));
  return mp_form_types(t, op, MP_FORM_OPERAND);
}

mp_status_t mp_form_read_data_flow_edge(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(mp_text_operand(t, op));
  if (mp_text_accept_word(t, "sharding")) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(text_forms_sdy_read_attr_sharding(t, op, MP_ATTR_SHARDING));
  }
  return mp_form_types(t, op, MP_FORM_OPERAND);
}

mp_status_t mp_form_read_sharding_group(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(mp_text_operand(t, op));
  MP_RETURN_IF_ERROR(mp_form_expect_key(t, "group_id", false));
  MP_RETURN_IF_ERROR(mp_form_key_value(t, op, MP_ATTR_GROUP_ID));
  return mp_form_types(t, op, MP_FORM_OPERAND);
}

mp_status_t mp_form_read_propagation_barrier(mp_text_t *t, mp_text_op_t *op) {
  static const char *const directions[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"};
  MP_RETURN_IF_ERROR(mp_text_operand(t, op));
  MP_RETURN_IF_ERROR(mp_form_expect_key(t, "allowed_direction", false));
  int direction = 0;
  while (direction < 4 && !mp_text_is_word(t, directions[direction])) ++direction;
  if (direction == 4) return mp_text_expected(t, "NONE, FORWARD, BACKWARD or BOTH");
  mp_text_advance(t);
  const mp_attr_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_int(t->arena, MP_DTYPE_S32, direction, &value));
  MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, MP_ATTR_ALLOWED_DIRECTION, value));
  return mp_form_types(t, op, MP_FORM_OPERAND);
}

// axes? %x out_sharding=<...> : T
mp_status_t mp_form_read_sdy_collective(mp_text_t *t, mp_text_op_t *op) {
  mp_schema_t schema = mp_schema_of(op->code);
  for (uint32_t i = 0; i < schema.count; ++i) {
    const mp_schema_attr_t *row = &schema.attrs[i];
    const mp_attr_t *axes = NULL;
    if (row->name == MP_ATTR_OUT_SHARDING) continue;
    if (row->kinds == 1u << MP_KIND_AXES)
      MP_RETURN_IF_ERROR(mp_text_axes_attr(t, &axes));
    else if (row->kinds == 1u << MP_KIND_AXES_LISTS)
      MP_RETURN_IF_ERROR(mp_text_axes_lists(t, &axes));
    else
      MP_RETURN_IF_ERROR(mp_text_all_to_all(t, &axes));
    MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, row->name, axes));
  }
  MP_RETURN_IF_ERROR(mp_text_operand(t, op));
  MP_RETURN_IF_ERROR(mp_form_expect_key(t, "out_sharding", false));
  MP_RETURN_IF_ERROR(text_forms_sdy_read_attr_sharding(t, op, MP_ATTR_OUT_SHARDING));
  return mp_form_types(t, op, MP_FORM_OPERAND);
}

// in_shardings=[...], out_shardings=[...], manual_axes={...}, each if there
static mp_status_t text_forms_sdy_read_computation_attrs(mp_text_t *t, mp_text_op_t *op) {
  const mp_attr_t *value = NULL;
  if (mp_form_accept_key(t, "in_shardings", false)) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(mp_text_shardings(t, &value));
    MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, MP_ATTR_IN_SHARDINGS, value));
  }
  if (mp_form_accept_key(t, "out_shardings", false)) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(mp_text_shardings(t, &value));
    MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, MP_ATTR_OUT_SHARDINGS, value));
  }
  if (mp_form_accept_key(t, "manual_axes", false)) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(mp_text_axes_attr(t, &value));
    MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, MP_ATTR_MANUAL_AXES, value));
  }
  return NULL;
}

// (%x) in_shardings=[...] ... (%arg: T) {...} : FN; a named one has <"name"> in front.
mp_status_t mp_form_read_computation(mp_text_t *t, mp_text_op_t *op) {
  bool manual = op->code == MP_OP_SDY_MANUAL_COMPUTATION;
  if (!manual) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
    MP_RETURN_IF_ERROR(mp_form_key_value(t, op, MP_ATTR_NAME));
    MP_RETURN_IF_ERROR(mp_text_expect(t, '>'));
  }
  mp_text_tokens_t names = {0};
  mp_text_types_t types = {0};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  MP_RETURN_IF_ERROR(mp_text_operands(t, op));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  MP_RETURN_IF_ERROR(text_forms_sdy_read_computation_attrs(t, op));
  MP_RETURN_IF_ERROR(mp_text_block_args(t, &names, &types));
  MP_RETURN_IF_ERROR(mp_form_region(t, op, manual, &names, &types));
  return mp_text_op_types(t, op);
}
