// Pretty forms: the table of each op's form; regular forms by sim/ir/forms.h.
#include "sim/readers/text/text_forms.h"

static mp_status_t text_pretty_read_regular(mp_text_t *t, mp_text_op_t *op, const mp_form_t *form) {
  MP_RETURN_IF_ERROR(mp_text_operands(t, op));
  for (int i = 0; i < MP_FORM_MAX_KEYS && form->keys[i].key != NULL; ++i) {
    const mp_form_key_t *key = &form->keys[i];
    bool comma = mp_form_num_operands(op) > 0 || i > 0;
    if (key->optional) {
      if (!mp_form_accept_key(t, key->key, comma)) continue;
      MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    } else {
      MP_RETURN_IF_ERROR(mp_form_expect_key(t, key->key, comma));
    }
    MP_RETURN_IF_ERROR(mp_form_key_value(t, op, key->attr));
  }
  return mp_form_types(t, op, form->types);
}

// ---- choice ----

typedef mp_status_t (*special_reader_t)(mp_text_t *t, mp_text_op_t *op);

static const special_reader_t specials[MP_OP_COUNT] = {
    [MP_OP_CONSTANT] = mp_form_read_constant,
    [MP_OP_SLICE] = mp_form_read_slice,
    [MP_OP_COMPARE] = mp_form_read_compare,
    [MP_OP_REDUCE_PRECISION] = mp_form_read_reduce_precision,
    [MP_OP_DOT_GENERAL] = mp_form_read_dot_general,
    [MP_OP_CONVOLUTION] = mp_form_read_convolution,
    [MP_OP_GET_TUPLE_ELEMENT] = mp_form_read_get_tuple_element,
    [MP_OP_OPTIMIZATION_BARRIER] = mp_form_read_optimization_barrier,
    [MP_OP_CUSTOM_CALL] = mp_form_read_custom_call,
    [MP_OP_CALL] = mp_form_read_call,
    [MP_OP_COMPOSITE] = mp_form_read_composite,
    [MP_OP_RETURN] = mp_form_read_return,
    [MP_OP_WHILE] = mp_form_read_while,
    [MP_OP_REDUCE] = mp_form_read_reduce,
    [MP_OP_SDY_CONSTANT] = mp_form_read_constant,
    [MP_OP_SDY_SHARDING_CONSTRAINT] = mp_form_read_sharding_constraint,
    [MP_OP_SDY_RESHARD] = mp_form_read_sharding_constraint,
    [MP_OP_SDY_DATA_FLOW_EDGE] = mp_form_read_data_flow_edge,
    [MP_OP_SDY_SHARDING_GROUP] = mp_form_read_sharding_group,
    [MP_OP_SDY_PROPAGATION_BARRIER] = mp_form_read_propagation_barrier,
    [MP_OP_SDY_ALL_GATHER] = mp_form_read_sdy_collective,
    [MP_OP_SDY_ALL_REDUCE] = mp_form_read_sdy_collective,
    [MP_OP_SDY_ALL_SLICE] = mp_form_read_sdy_collective,
    [MP_OP_SDY_ALL_TO_ALL] = mp_form_read_sdy_collective,
    [MP_OP_SDY_COLLECTIVE_PERMUTE] = mp_form_read_sdy_collective,
    [MP_OP_SDY_REDUCE_SCATTER] = mp_form_read_sdy_collective,
    [MP_OP_SDY_REPLICATED_TO_UNREDUCED] = mp_form_read_sdy_collective,
    [MP_OP_SDY_SHARDED_TO_UNREDUCED] = mp_form_read_sdy_collective,
    [MP_OP_SDY_MANUAL_COMPUTATION] = mp_form_read_computation,
    [MP_OP_SDY_NAMED_COMPUTATION] = mp_form_read_computation,
};

mp_status_t mp_text_pretty(mp_text_t *t, mp_text_op_t *op) {
  // A cast is written like a unary operation.
  static const mp_form_t identity = {.types = MP_FORM_SAME};
  if (op->code == MP_OP_COUNT) return text_pretty_read_regular(t, op, &identity);
  const mp_form_t *form = mp_form_of(op->code);
  if (form->types == MP_FORM_GENERIC)
    return mp_text_error(t, &op->token, MP_INVALID_ARGUMENT,
                         "'%.*s' has the generic form only: write \"%.*s\"(...)",
                         MP_STR_ARG(op->token.text), MP_STR_ARG(op->token.text));
  if (form->types != MP_FORM_SPECIAL) return text_pretty_read_regular(t, op, form);
  return specials[op->code](t, op);
}
