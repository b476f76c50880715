// The pretty forms of Shardy's operations.
#include <inttypes.h>

#include "sim/ir/print/print_forms.h"

static const mp_attr_t *print_forms_sdy_sharding_of(const mp_op_t *op, mp_attr_name_t name) {
  const mp_attr_t *attr = mp_form_own_attr(op, name);
  return attr != NULL && attr->kind == MP_KIND_SHARDING ? attr : NULL;
}

static void print_forms_sdy_operand_type(mp_printer_t *p, const mp_op_t *op,
                                         const mp_attr_name_t *said, uint32_t num_said) {
  mp_printer_attr_dict(p, op, said, num_said);
  mp_strbuf_puts(p->out, " : ");
  mp_type_print(op->operands[0]->type, p->out);
}

static bool print_forms_sdy_is_unary(const mp_op_t *op) {
  return mp_form_has_counts(op, 1, 1) && mp_type_equal(op->operands[0]->type, op->results[0].type);
}

bool mp_form_print_sharding_constraint(mp_printer_t *p, const mp_op_t *op) {
  const mp_attr_t *sharding = print_forms_sdy_sharding_of(op, MP_ATTR_SHARDING);
  bool edge = op->code == MP_OP_SDY_DATA_FLOW_EDGE;
  if (!print_forms_sdy_is_unary(op) || (sharding == NULL && !edge)) return false;
  mp_form_print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_printer_value(p, op->operands[0]);
  if (sharding != NULL) {
    mp_strbuf_puts(p->out, edge ? " sharding=" : " ");
    mp_print_sharding_body(sharding->u.sharding, p->out);
  }
  print_forms_sdy_operand_type(p, op, (mp_attr_name_t[]){MP_ATTR_SHARDING}, 1);
  return true;
}

bool mp_form_print_sharding_group(mp_printer_t *p, const mp_op_t *op) {
  if (!mp_form_has_counts(op, 1, 0) || mp_form_own_attr(op, MP_ATTR_GROUP_ID) == NULL) return false;
  mp_form_print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_printer_value(p, op->operands[0]);
  mp_strbuf_printf(p->out, " group_id=%" PRId64, mp_op_int(op, MP_ATTR_GROUP_ID, 0));
  print_forms_sdy_operand_type(p, op, (mp_attr_name_t[]){MP_ATTR_GROUP_ID}, 1);
  return true;
}

bool mp_form_print_propagation_barrier(mp_printer_t *p, const mp_op_t *op) {
  static const char *const directions[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"};
  int64_t direction = mp_op_int(op, MP_ATTR_ALLOWED_DIRECTION, -1);
  if (!print_forms_sdy_is_unary(op) || direction < 0 || direction > 3) return false;
  mp_form_print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_printer_value(p, op->operands[0]);
  mp_strbuf_printf(p->out, " allowed_direction=%s", directions[direction]);
  print_forms_sdy_operand_type(p, op, (mp_attr_name_t[]){MP_ATTR_ALLOWED_DIRECTION}, 1);
  return true;
}

// Prints sdy.all_gather [{"x"}, {}] %0 out_sharding=<...> : T and the like.
bool mp_form_print_sdy_collective(mp_printer_t *p, const mp_op_t *op) {
  const mp_attr_t *sharding = print_forms_sdy_sharding_of(op, MP_ATTR_OUT_SHARDING);
  if (!print_forms_sdy_is_unary(op) || sharding == NULL) return false;
  mp_attr_name_t said[2] = {MP_ATTR_OUT_SHARDING, MP_ATTR_OTHER};
  const mp_attr_t *axes = NULL;
  mp_schema_t schema = mp_schema_of(op->code);
  for (uint32_t i = 0; i < schema.count; ++i) {
    if (schema.attrs[i].name == MP_ATTR_OUT_SHARDING) continue;
    said[1] = schema.attrs[i].name;
    axes = mp_form_own_attr(op, said[1]);
    if (axes == NULL) return false;
  }
  mp_form_print_name(p, op);
  if (axes != NULL) {
    mp_strbuf_putc(p->out, ' ');
    if (axes->kind == MP_KIND_AXES) mp_print_axes(axes->u.axes, p->out);
    if (axes->kind == MP_KIND_AXES_LISTS) mp_print_axes_lists(axes, p->out);
    if (axes->kind == MP_KIND_ALL_TO_ALL_PARAMS) mp_print_all_to_all(axes, p->out);
  }
  mp_strbuf_putc(p->out, ' ');
  mp_printer_value(p, op->operands[0]);
  mp_strbuf_puts(p->out, " out_sharding=");
  mp_print_sharding_body(sharding->u.sharding, p->out);
  print_forms_sdy_operand_type(p, op, said, axes != NULL ? 2 : 1);
  return true;
}

// Prints sdy.manual_computation(%0) in_shardings=[...] out_shardings=[...] manual_axes={...} (args)
// {...} and the like.
bool mp_form_print_computation(mp_printer_t *p, const mp_op_t *op) {
  bool manual = op->code == MP_OP_SDY_MANUAL_COMPUTATION;
  const mp_attr_t *in = mp_form_own_attr(op, MP_ATTR_IN_SHARDINGS);
  const mp_attr_t *out = mp_form_own_attr(op, MP_ATTR_OUT_SHARDINGS);
  const mp_attr_t *axes = mp_form_own_attr(op, MP_ATTR_MANUAL_AXES);
  if (op->num_regions != 1) return false;
  if (manual && (in == NULL || out == NULL || axes == NULL)) return false;
  if (!manual && mp_form_own_attr(op, MP_ATTR_NAME) == NULL) return false;
  mp_form_print_name(p, op);
  if (!manual) {
    mp_strbuf_putc(p->out, '<');
    mp_print_quoted(mp_op_str(op, MP_ATTR_NAME), p->out);
    mp_strbuf_putc(p->out, '>');
  }
  mp_strbuf_putc(p->out, '(');
  mp_printer_operands(p, op, 0, op->num_operands);
  mp_strbuf_putc(p->out, ')');
  if (in != NULL) {
    mp_strbuf_puts(p->out, " in_shardings=");
    mp_print_shardings_body(in->u.shardings, p->out);
  }
  if (out != NULL) {
    mp_strbuf_puts(p->out, " out_shardings=");
    mp_print_shardings_body(out->u.shardings, p->out);
  }
  if (axes != NULL) {
    mp_strbuf_puts(p->out, " manual_axes=");
    mp_print_axes(axes->u.axes, p->out);
  }
  mp_strbuf_putc(p->out, ' ');
  mp_printer_name_args(p, op->regions[0]);
  mp_printer_block_args(p, op->regions[0]);
  mp_strbuf_putc(p->out, ' ');
  mp_printer_region(p, op->regions[0]);
  mp_attr_name_t said[] = {MP_ATTR_IN_SHARDINGS, MP_ATTR_OUT_SHARDINGS, MP_ATTR_MANUAL_AXES,
                           MP_ATTR_NAME};
  mp_form_print_function_types(p, op, said, 4);
  return true;
}
