// Pretty forms: the table of each op's form; regular forms by sim/ir/forms.h.
#include "sim/ir/print/print_forms.h"

// ---- regular forms ----

static bool print_ops_fits(const mp_op_t *op, const mp_form_t *form) {
  if (op->num_regions > 0) return false;
  for (int i = 0; i < MP_FORM_MAX_KEYS && form->keys[i].key != NULL; ++i)
    if (mp_form_own_attr(op, form->keys[i].attr) == NULL) return false;
  int operands = mp_op_info(op->code)->num_operands;
  if (operands >= 0 && op->num_operands != (uint32_t)operands) return false;
  switch (form->types) {
    case MP_FORM_RESULT:
    case MP_FORM_SELECT:
    case MP_FORM_COMPLEX:
      return op->num_results == 1;
    default:
      return op->num_results >= 1;
  }
}

static bool print_ops_regular(mp_printer_t *p, const mp_op_t *op, const mp_form_t *form) {
  if (!print_ops_fits(op, form)) return false;
  mp_attr_name_t said[MP_FORM_MAX_KEYS];
  uint32_t num_said = 0;
  mp_strbuf_puts(p->out, mp_op_info(op->code)->name);
  if (op->num_operands > 0) mp_strbuf_putc(p->out, ' ');
  mp_printer_operands(p, op, 0, op->num_operands);
  for (int i = 0; i < MP_FORM_MAX_KEYS && form->keys[i].key != NULL; ++i) {
    const mp_form_key_t *key = &form->keys[i];
    const mp_attr_t *value = mp_op_attr(op, key->attr);
    said[num_said++] = key->attr;
    if (key->optional && mp_schema_is_default(op, mp_schema_find(op->code, key->attr), value))
      continue;
    bool first = op->num_operands == 0 && i == 0;
    mp_strbuf_printf(p->out, "%s%s = ", first ? " " : ", ", key->key);
    mp_form_print_short(value, p->out);
  }
  mp_printer_attr_dict(p, op, said, num_said);
  mp_form_print_types(p, op, form->types);
  return true;
}

// ---- choice ----

typedef bool (*special_printer_t)(mp_printer_t *p, const mp_op_t *op);

static const special_printer_t specials[MP_OP_COUNT] = {
    [MP_OP_CONSTANT] = mp_form_print_constant,
    [MP_OP_SLICE] = mp_form_print_slice,
    [MP_OP_COMPARE] = mp_form_print_compare,
    [MP_OP_REDUCE_PRECISION] = mp_form_print_reduce_precision,
    [MP_OP_DOT_GENERAL] = mp_form_print_dot_general,
    [MP_OP_CONVOLUTION] = mp_form_print_convolution,
    [MP_OP_GET_TUPLE_ELEMENT] = mp_form_print_get_tuple_element,
    [MP_OP_OPTIMIZATION_BARRIER] = mp_form_print_optimization_barrier,
    [MP_OP_CUSTOM_CALL] = mp_form_print_custom_call,
    [MP_OP_CALL] = mp_form_print_call,
    [MP_OP_COMPOSITE] = mp_form_print_composite,
    [MP_OP_RETURN] = mp_form_print_return,
    [MP_OP_WHILE] = mp_form_print_while,
    [MP_OP_REDUCE] = mp_form_print_reduce,
    [MP_OP_SDY_CONSTANT] = mp_form_print_constant,
    [MP_OP_SDY_SHARDING_CONSTRAINT] = mp_form_print_sharding_constraint,
    [MP_OP_SDY_RESHARD] = mp_form_print_sharding_constraint,
    [MP_OP_SDY_DATA_FLOW_EDGE] = mp_form_print_sharding_constraint,
    [MP_OP_SDY_SHARDING_GROUP] = mp_form_print_sharding_group,
    [MP_OP_SDY_PROPAGATION_BARRIER] = mp_form_print_propagation_barrier,
    [MP_OP_SDY_ALL_GATHER] = mp_form_print_sdy_collective,
    [MP_OP_SDY_ALL_REDUCE] = mp_form_print_sdy_collective,
    [MP_OP_SDY_ALL_SLICE] = mp_form_print_sdy_collective,
    [MP_OP_SDY_ALL_TO_ALL] = mp_form_print_sdy_collective,
    [MP_OP_SDY_COLLECTIVE_PERMUTE] = mp_form_print_sdy_collective,
    [MP_OP_SDY_REDUCE_SCATTER] = mp_form_print_sdy_collective,
    [MP_OP_SDY_REPLICATED_TO_UNREDUCED] = mp_form_print_sdy_collective,
    [MP_OP_SDY_SHARDED_TO_UNREDUCED] = mp_form_print_sdy_collective,
    [MP_OP_SDY_MANUAL_COMPUTATION] = mp_form_print_computation,
    [MP_OP_SDY_NAMED_COMPUTATION] = mp_form_print_computation,
};

bool mp_printer_pretty(mp_printer_t *p, const mp_op_t *op) {
  const mp_form_t *form = mp_form_of(op->code);
  if (form->types == MP_FORM_GENERIC) return false;
  if (form->types != MP_FORM_SPECIAL) return print_ops_regular(p, op, form);
  return specials[op->code](p, op);
}
