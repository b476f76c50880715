// The pretty forms of while and reduce.
#include "sim/ir/print/print_forms.h"

static bool print_forms_regions_has_args_like_operands(const mp_op_t *op, const mp_block_t *block) {
  if (block->num_args != op->num_operands) return false;
  for (uint32_t i = 0; i < block->num_args; ++i)
    if (!mp_type_equal(block->args[i].type, op->operands[i]->type)) return false;
  return true;
}

bool mp_form_print_while(mp_printer_t *p, const mp_op_t *op) {
  if (op->num_regions != 2 || op->num_results != op->num_operands) return false;
  for (int i = 0; i < 2; ++i)
    if (!print_forms_regions_has_args_like_operands(op, op->regions[i])) return false;
  for (uint32_t i = 0; i < op->num_results; ++i)
    if (!mp_type_equal(op->results[i].type, op->operands[i]->type)) return false;
  mp_form_print_name(p, op);
  mp_strbuf_putc(p->out, '(');
  // The text names the arguments once for both regions.
  uint64_t first_arg = p->next_arg;
  mp_printer_name_args(p, op->regions[0]);
  p->next_arg = first_arg;
  mp_printer_name_args(p, op->regions[1]);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (i > 0) mp_strbuf_puts(p->out, ", ");
    mp_printer_value(p, &op->regions[0]->args[i]);
    mp_strbuf_puts(p->out, " = ");
    mp_printer_value(p, op->operands[i]);
  }
  mp_strbuf_putc(p->out, ')');
  if (op->num_operands > 0) mp_strbuf_puts(p->out, " : ");
  mp_printer_operand_types(p, op);
  if (op->num_attrs > 0) mp_strbuf_puts(p->out, " attributes");
  mp_printer_attr_dict(p, op, NULL, 0);
  mp_printer_newline(p);
  mp_strbuf_puts(p->out, "cond ");
  mp_printer_region(p, op->regions[0]);
  mp_strbuf_puts(p->out, " do ");
  mp_printer_region(p, op->regions[1]);
  return true;
}

// Whether the body is one binary op on its two arguments and nothing else, with the element type of
// the input; it can then be printed as `applies stablehlo.add`.
static bool print_forms_regions_is_compact(const mp_op_t *op) {
  const mp_block_t *body = op->regions[0];
  const mp_op_t *inner = body->first;
  if (op->num_operands != 2 || op->num_results != 1 || body->num_args != 2 || inner == NULL)
    return false;
  if (inner->next == NULL || inner->next != body->last || inner->num_attrs != 0) return false;
  if (!mp_op_has(inner, MP_OP_TRAIT_ELEMENTWISE) || inner->num_operands != 2 ||
      inner->num_results != 1 || mp_form_of(inner->code)->types != MP_FORM_SAME)
    return false;
  if (inner->operands[0] != &body->args[0] || inner->operands[1] != &body->args[1]) return false;
  const mp_op_t *end = body->last;
  if (!mp_op_has(end, MP_OP_TRAIT_TERMINATOR) || end->num_operands != 1 || end->num_attrs != 0 ||
      end->operands[0] != &inner->results[0])
    return false;
  const mp_type_t *type = inner->results[0].type;
  const mp_type_t *input = op->operands[0]->type;
  return mp_form_same_types(inner) && mp_type_is_tensor(type) && type->rank == 0 &&
         type->quant == NULL && type->bounds == NULL && mp_type_is_tensor(input) &&
         input->quant == NULL && input->dtype == type->dtype;
}

// Prints (%a init: %x), (%b init: %y).
static void print_forms_regions_reduce_inputs(mp_printer_t *p, const mp_op_t *op) {
  uint32_t n = op->num_operands / 2;
  for (uint32_t i = 0; i < n; ++i) {
    mp_strbuf_puts(p->out, i > 0 ? ", (" : "(");
    mp_printer_value(p, op->operands[i]);
    mp_strbuf_puts(p->out, " init: ");
    mp_printer_value(p, op->operands[n + i]);
    mp_strbuf_putc(p->out, ')');
  }
}

// Prints reducer(%a: T, %b: T) (%c: T, %d: T) {...}, with a pair of arguments per input. In the
// block the left sides of all pairs come before the right sides.
static void print_forms_regions_reducer(mp_printer_t *p, const mp_block_t *body) {
  uint32_t n = body->num_args / 2;
  mp_printer_name_args(p, body);
  mp_printer_newline(p);
  mp_strbuf_puts(p->out, " reducer");
  for (uint32_t i = 0; i < n; ++i) {
    if (i > 0) mp_strbuf_putc(p->out, ' ');
    for (uint32_t side = 0; side < 2; ++side) {
      const mp_value_t *arg = &body->args[side * n + i];
      mp_strbuf_puts(p->out, side == 0 ? "(" : ", ");
      mp_printer_value(p, arg);
      mp_strbuf_puts(p->out, ": ");
      mp_type_print(arg->type, p->out);
    }
    mp_strbuf_putc(p->out, ')');
  }
  mp_strbuf_puts(p->out, "  ");
  mp_printer_region(p, body);
}

bool mp_form_print_reduce(mp_printer_t *p, const mp_op_t *op) {
  const mp_attr_t *dims = mp_form_own_attr(op, MP_ATTR_DIMENSIONS);
  if (op->num_regions != 1 || op->num_operands == 0 || op->num_operands % 2 != 0 || dims == NULL ||
      op->regions[0]->num_args != op->num_operands)
    return false;
  mp_form_print_name(p, op);
  print_forms_regions_reduce_inputs(p, op);
  bool compact = print_forms_regions_is_compact(op);
  if (compact)
    mp_strbuf_printf(p->out, " applies %s", mp_op_info(op->regions[0]->first->code)->name);
  mp_strbuf_puts(p->out, " across dimensions = ");
  mp_print_index_list(mp_print_ints_of(dims), p->out);
  mp_form_print_function_types(p, op, (mp_attr_name_t[]){MP_ATTR_DIMENSIONS}, 1);
  if (!compact) print_forms_regions_reducer(p, op->regions[0]);
  return true;
}
