// Pretty forms: what all of them share.
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

static bool print_forms_is_real_part(const mp_type_t *type, const mp_type_t *of) {
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
      use_short = print_forms_is_real_part(op->operands[0]->type, result) &&
                  print_forms_is_real_part(op->operands[1]->type, result);
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
