// Pretty forms: what all of them share, and the regular ones by table (sim/ir/forms.h).
#include <inttypes.h>

#include "sim/ir/print/print_forms.h"

// ---- conditions ----

bool mp_form_same_types(const mp_op_t *op) {
  if (op->num_results == 0) return false;
  const mp_type_t *type = op->results[0].type;
  for (uint32_t i = 1; i < op->num_results; ++i)
    if (!mp_type_equal(op->results[i].type, type)) return false;
  for (uint32_t i = 0; i < op->num_operands; ++i)
    if (!mp_type_equal(op->operands[i]->type, type)) return false;
  return true;
}

bool mp_form_has_counts(const mp_op_t *op, uint32_t operands, uint32_t results) {
  return op->num_operands == operands && op->num_results == results;
}

const mp_attr_t *mp_form_own_attr(const mp_op_t *op, mp_attr_name_t name) {
  const mp_attr_t *attr = mp_op_attr(op, name);
  const mp_schema_attr_t *row = mp_schema_find(op->code, name);
  if (attr == NULL || row == NULL || (row->kinds >> attr->kind & 1) == 0) return NULL;
  bool list = attr->kind == MP_KIND_INTS || attr->kind == MP_KIND_BOOLS;
  return list && attr->u.ints.rank != 1 ? NULL : attr;
}

bool mp_form_are_precisions(const mp_attr_t *attr) {
  if (attr == NULL || attr->kind != MP_KIND_ARRAY) return false;
  for (size_t i = 0; i < attr->u.array.count; ++i)
    if (attr->u.array.items[i]->kind != MP_KIND_ENUM) return false;
  return true;
}

void mp_form_print_precisions(const mp_attr_t *attr, mp_strbuf_t *out) {
  mp_strbuf_putc(out, '[');
  for (size_t i = 0; i < attr->u.array.count; ++i) {
    const mp_attr_t *item = attr->u.array.items[i];
    const char *text = mp_enum_value_name(item->u.enumeration.kind, item->u.enumeration.value);
    mp_strbuf_printf(out, "%s%s", i > 0 ? ", " : "", text != NULL ? text : "?");
  }
  mp_strbuf_putc(out, ']');
}

void mp_form_print_short(const mp_attr_t *attr, mp_strbuf_t *out) {
  switch (attr->kind) {
    case MP_KIND_BOOL:
      mp_strbuf_puts(out, attr->u.boolean ? "true" : "false");
      break;
    case MP_KIND_INT:
      mp_strbuf_printf(out, "%" PRId64, attr->u.i64);
      break;
    case MP_KIND_STRING:
      mp_print_quoted(attr->u.str, out);
      break;
    case MP_KIND_ARRAY:
      mp_form_print_precisions(attr, out);
      break;
    case MP_KIND_ENUM: {
      const char *text = mp_enum_value_name(attr->u.enumeration.kind, attr->u.enumeration.value);
      mp_strbuf_puts(out, text != NULL ? text : "?");
      break;
    }
    default:
      mp_print_index_list(mp_print_ints_of(attr), out);
      break;
  }
}

void mp_form_print_name(mp_printer_t *p, const mp_op_t *op) {
  mp_strbuf_puts(p->out, mp_op_info(op->code)->name);
}

void mp_form_print_function_types(mp_printer_t *p, const mp_op_t *op, const mp_attr_name_t *said,
                                  uint32_t num_said) {
  mp_printer_attr_dict(p, op, said, num_said);
  mp_strbuf_puts(p->out, " : ");
  mp_printer_function_type(p, op);
}

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

static bool print_ops_is_real_part(const mp_type_t *type, const mp_type_t *of) {
  return mp_type_is_tensor(type) && mp_type_is_tensor(of) && mp_dtype_is_complex(of->dtype) &&
         type->dtype == mp_dtype_real_part(of->dtype) && mp_type_same_shape(type, of) &&
         type->bounds == NULL && of->bounds == NULL;
}

void mp_form_print_types(mp_printer_t *p, const mp_op_t *op, mp_form_types_t form) {
  const mp_type_t *result = op->results[0].type;
  bool use_short = false;
  switch (form) {
    case MP_FORM_RESULT:
      use_short = true;
      break;
    case MP_FORM_SAME:
      use_short = mp_form_same_types(op);
      break;
    case MP_FORM_SELECT:
      use_short = mp_type_equal(op->operands[1]->type, result) &&
                  mp_type_equal(op->operands[2]->type, result);
      break;
    case MP_FORM_COMPLEX:
      use_short = print_ops_is_real_part(op->operands[0]->type, result) &&
                  print_ops_is_real_part(op->operands[1]->type, result);
      break;
    default:
      break;
  }
  mp_strbuf_puts(p->out, " : ");
  if (!use_short) {
    mp_printer_function_type(p, op);
    return;
  }
  if (form == MP_FORM_SELECT) {
    mp_type_print(op->operands[0]->type, p->out);
    mp_strbuf_puts(p->out, ", ");
  }
  mp_type_print(result, p->out);
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
