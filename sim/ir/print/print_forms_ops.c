// Operations without regions whose pretty form is their own.
#include <inttypes.h>

#include "sim/ir/print/print_forms.h"

bool mp_form_print_constant(mp_printer_t *p, const mp_op_t *op) {
  const mp_attr_t *value = mp_form_own_attr(op, MP_ATTR_VALUE);
  if (value == NULL || value->kind != MP_KIND_DENSE || !mp_form_has_counts(op, 0, 1) ||
      !mp_type_equal(value->u.dense.type, op->results[0].type))
    return false;
  mp_form_print_name(p, op);
  mp_printer_attr_dict(p, op, (mp_attr_name_t[]){MP_ATTR_VALUE}, 1);
  mp_strbuf_putc(p->out, ' ');
  mp_print_dense(value, p->options.elide_elements, p->out);
  return true;
}

bool mp_form_print_slice(mp_printer_t *p, const mp_op_t *op) {
  mp_attr_name_t said[] = {MP_ATTR_START_INDICES, MP_ATTR_LIMIT_INDICES, MP_ATTR_STRIDES};
  mp_index_list_t lists[3];
  for (int i = 0; i < 3; ++i) {
    if (mp_form_own_attr(op, said[i]) == NULL) return false;
    lists[i] = mp_op_ints(op, said[i]);
    if (lists[i].count != lists[0].count) return false;
  }
  if (!mp_form_has_counts(op, 1, 1)) return false;
  mp_form_print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_printer_value(p, op->operands[0]);
  mp_strbuf_puts(p->out, " [");
  for (uint32_t i = 0; i < lists[0].count; ++i) {
    mp_strbuf_printf(p->out, "%s%" PRId64 ":%" PRId64, i > 0 ? ", " : "", lists[0].values[i],
                     lists[1].values[i]);
    if (lists[2].values[i] != 1) mp_strbuf_printf(p->out, ":%" PRId64, lists[2].values[i]);
  }
  mp_strbuf_putc(p->out, ']');
  mp_form_print_function_types(p, op, said, 3);
  return true;
}

bool mp_form_print_compare(mp_printer_t *p, const mp_op_t *op) {
  const mp_attr_t *direction = mp_form_own_attr(op, MP_ATTR_COMPARISON_DIRECTION);
  const mp_attr_t *type = mp_form_own_attr(op, MP_ATTR_COMPARE_TYPE);
  if (direction == NULL || type == NULL || !mp_form_has_counts(op, 2, 1)) return false;
  mp_form_print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_form_print_short(direction, p->out);
  mp_strbuf_puts(p->out, ", ");
  mp_printer_operands(p, op, 0, 2);
  if (type->u.enumeration.value != MP_CMP_NOTYPE) {
    mp_strbuf_puts(p->out, ", ");
    mp_form_print_short(type, p->out);
  }
  mp_attr_name_t said[] = {MP_ATTR_COMPARISON_DIRECTION, MP_ATTR_COMPARE_TYPE};
  mp_form_print_function_types(p, op, said, 2);
  return true;
}

bool mp_form_print_reduce_precision(mp_printer_t *p, const mp_op_t *op) {
  int64_t exponent = mp_op_int(op, MP_ATTR_EXPONENT_BITS, -1);
  int64_t mantissa = mp_op_int(op, MP_ATTR_MANTISSA_BITS, -1);
  if (exponent < 0 || mantissa < 0 || !mp_form_has_counts(op, 1, 1)) return false;
  mp_form_print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_printer_value(p, op->operands[0]);
  mp_strbuf_printf(p->out, ", format = e%" PRId64 "m%" PRId64, exponent, mantissa);
  mp_attr_name_t said[] = {MP_ATTR_EXPONENT_BITS, MP_ATTR_MANTISSA_BITS};
  mp_printer_attr_dict(p, op, said, 2);
  mp_form_print_types(p, op, MP_FORM_SAME);
  return true;
}

static void print_forms_ops_dims_pair(mp_printer_t *p, const mp_op_t *op, const char *key,
                                      mp_attr_name_t lhs, mp_attr_name_t rhs) {
  mp_strbuf_printf(p->out, ", %s = ", key);
  mp_print_index_list(mp_op_ints(op, lhs), p->out);
  mp_strbuf_puts(p->out, " x ");
  mp_print_index_list(mp_op_ints(op, rhs), p->out);
}

bool mp_form_print_dot_general(mp_printer_t *p, const mp_op_t *op) {
  static const mp_attr_name_t said[] = {
      MP_ATTR_LHS_BATCHING_DIMENSIONS,    MP_ATTR_RHS_BATCHING_DIMENSIONS,
      MP_ATTR_LHS_CONTRACTING_DIMENSIONS, MP_ATTR_RHS_CONTRACTING_DIMENSIONS,
      MP_ATTR_PRECISION_CONFIG,           MP_ATTR_ACCUMULATION_TYPE,
      MP_ATTR_LHS_PRECISION_TYPE,         MP_ATTR_RHS_PRECISION_TYPE,
      MP_ATTR_LHS_COMPONENT_COUNT,        MP_ATTR_RHS_COMPONENT_COUNT,
      MP_ATTR_NUM_PRIMITIVE_OPERATIONS,   MP_ATTR_ALLOW_IMPRECISE_ACCUMULATION};
  const mp_attr_t *precision = mp_form_own_attr(op, MP_ATTR_PRECISION_CONFIG);
  if (!mp_form_are_precisions(precision) || !mp_form_has_counts(op, 2, 1)) return false;
  mp_form_print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_printer_operands(p, op, 0, 2);
  if (mp_op_ints(op, said[0]).count > 0 || mp_op_ints(op, said[1]).count > 0)
    print_forms_ops_dims_pair(p, op, "batching_dims", said[0], said[1]);
  print_forms_ops_dims_pair(p, op, "contracting_dims", said[2], said[3]);
  if (!mp_schema_is_default(op, mp_schema_find(op->code, MP_ATTR_PRECISION_CONFIG), precision)) {
    mp_strbuf_puts(p->out, ", precision = ");
    mp_form_print_precisions(precision, p->out);
  }
  if (mp_op_attr(op, MP_ATTR_ACCUMULATION_TYPE) != NULL) {
    mp_strbuf_puts(p->out, ", algorithm = ");
    mp_print_dot_algorithm(op, p->out);
  }
  mp_form_print_function_types(p, op, said, sizeof(said) / sizeof(said[0]));
  return true;
}

// Prints one item of a convolution's window, unless it has its default value.
static void print_forms_ops_window_item(mp_printer_t *p, const mp_op_t *op, const char *key,
                                        mp_attr_name_t name, bool *first) {
  const mp_attr_t *value = mp_op_attr(op, name);
  if (mp_schema_is_default(op, mp_schema_find(op->code, name), value)) return;
  mp_strbuf_printf(p->out, "%s%s = [", *first ? "" : ", ", key);
  *first = false;
  mp_index_list_t list = mp_print_ints_of(value);
  bool pairs = name == MP_ATTR_PADDING;
  for (uint32_t i = 0; i < list.count; ++i) {
    if (i > 0) mp_strbuf_puts(p->out, ", ");
    if (value->kind == MP_KIND_BOOLS)
      mp_strbuf_puts(p->out, list.values[i] != 0 ? "true" : "false");
    else if (pairs)
      mp_print_index_list((mp_index_list_t){2, &list.values[i++]}, p->out);
    else
      mp_strbuf_printf(p->out, "%" PRId64, list.values[i]);
  }
  mp_strbuf_putc(p->out, ']');
}

bool mp_form_print_convolution(mp_printer_t *p, const mp_op_t *op) {
  static const mp_attr_name_t said[] = {MP_ATTR_INPUT_BATCH_DIMENSION,
                                        MP_ATTR_INPUT_FEATURE_DIMENSION,
                                        MP_ATTR_INPUT_SPATIAL_DIMENSIONS,
                                        MP_ATTR_KERNEL_INPUT_FEATURE_DIMENSION,
                                        MP_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION,
                                        MP_ATTR_KERNEL_SPATIAL_DIMENSIONS,
                                        MP_ATTR_OUTPUT_BATCH_DIMENSION,
                                        MP_ATTR_OUTPUT_FEATURE_DIMENSION,
                                        MP_ATTR_OUTPUT_SPATIAL_DIMENSIONS,
                                        MP_ATTR_WINDOW_STRIDES,
                                        MP_ATTR_PADDING,
                                        MP_ATTR_LHS_DILATION,
                                        MP_ATTR_RHS_DILATION,
                                        MP_ATTR_WINDOW_REVERSAL};
  const mp_attr_t *padding = mp_op_attr(op, MP_ATTR_PADDING);
  if (!mp_form_has_counts(op, 2, 1) || padding == NULL || padding->kind != MP_KIND_INTS ||
      padding->u.ints.rank != 2 || padding->u.ints.dims[1] != 2)
    return false;
  for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); ++i)
    if (said[i] != MP_ATTR_PADDING && mp_form_own_attr(op, said[i]) == NULL) return false;
  mp_form_print_name(p, op);
  mp_strbuf_putc(p->out, '(');
  mp_printer_operands(p, op, 0, 2);
  mp_strbuf_puts(p->out, ") dim_numbers = ");
  mp_print_conv_numbers(op, p->out);
  mp_strbuf_puts(p->out, ", window = {");
  bool first = true;
  print_forms_ops_window_item(p, op, "stride", MP_ATTR_WINDOW_STRIDES, &first);
  print_forms_ops_window_item(p, op, "pad", MP_ATTR_PADDING, &first);
  print_forms_ops_window_item(p, op, "lhs_dilate", MP_ATTR_LHS_DILATION, &first);
  print_forms_ops_window_item(p, op, "rhs_dilate", MP_ATTR_RHS_DILATION, &first);
  print_forms_ops_window_item(p, op, "reverse", MP_ATTR_WINDOW_REVERSAL, &first);
  mp_strbuf_putc(p->out, '}');
  mp_form_print_function_types(p, op, said, sizeof(said) / sizeof(said[0]));
  return true;
}

bool mp_form_print_get_tuple_element(mp_printer_t *p, const mp_op_t *op) {
  if (mp_form_own_attr(op, MP_ATTR_INDEX) == NULL || !mp_form_has_counts(op, 1, 1)) return false;
  mp_form_print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_printer_value(p, op->operands[0]);
  mp_strbuf_printf(p->out, "[%" PRId64 "]", mp_op_int(op, MP_ATTR_INDEX, 0));
  mp_form_print_function_types(p, op, (mp_attr_name_t[]){MP_ATTR_INDEX}, 1);
  return true;
}

bool mp_form_print_optimization_barrier(mp_printer_t *p, const mp_op_t *op) {
  if (op->num_operands != op->num_results) return false;
  for (uint32_t i = 0; i < op->num_operands; ++i)
    if (!mp_type_equal(op->operands[i]->type, op->results[i].type)) return false;
  mp_form_print_name(p, op);
  mp_printer_attr_dict(p, op, NULL, 0);
  mp_strbuf_putc(p->out, ' ');
  if (op->num_operands == 0) {
    mp_strbuf_puts(p->out, "()");
    return true;
  }
  mp_printer_operands(p, op, 0, op->num_operands);
  mp_strbuf_puts(p->out, " : ");
  mp_printer_operand_types(p, op);
  return true;
}

static mp_str_t print_forms_ops_target(const mp_printer_t *p, const mp_op_t *op) {
  const mp_str_t target = mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
  const char *const *renamed = p->options.renamed;
  return renamed[0] != NULL && mp_str_is(target, renamed[0]) ? mp_str(renamed[1]) : target;
}

bool mp_form_print_custom_call(mp_printer_t *p, const mp_op_t *op) {
  if (mp_form_own_attr(op, MP_ATTR_CALL_TARGET_NAME) == NULL || op->num_regions > 0) return false;
  mp_form_print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_print_symbol(print_forms_ops_target(p, op), p->out);
  mp_strbuf_putc(p->out, '(');
  mp_printer_operands(p, op, 0, op->num_operands);
  mp_strbuf_putc(p->out, ')');
  mp_form_print_function_types(p, op, (mp_attr_name_t[]){MP_ATTR_CALL_TARGET_NAME}, 1);
  return true;
}

bool mp_form_print_call(mp_printer_t *p, const mp_op_t *op) {
  if (mp_form_own_attr(op, MP_ATTR_CALLEE) == NULL) return false;
  bool in_function = op->parent != NULL && op->parent->parent_func != NULL;
  mp_strbuf_puts(p->out, in_function ? "call " : "func.call ");
  mp_print_symbol(mp_op_str(op, MP_ATTR_CALLEE), p->out);
  mp_strbuf_putc(p->out, '(');
  mp_printer_operands(p, op, 0, op->num_operands);
  mp_strbuf_putc(p->out, ')');
  mp_form_print_function_types(p, op, (mp_attr_name_t[]){MP_ATTR_CALLEE}, 1);
  return true;
}

bool mp_form_print_composite(mp_printer_t *p, const mp_op_t *op) {
  if (mp_form_own_attr(op, MP_ATTR_NAME) == NULL || op->num_regions > 0) return false;
  mp_form_print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_print_quoted(mp_op_str(op, MP_ATTR_NAME), p->out);
  if (op->num_operands > 0) mp_strbuf_putc(p->out, ' ');
  mp_printer_operands(p, op, 0, op->num_operands);
  mp_form_print_function_types(p, op, (mp_attr_name_t[]){MP_ATTR_NAME}, 1);
  return true;
}

bool mp_form_print_return(mp_printer_t *p, const mp_op_t *op) {
  if (op->num_results > 0 || op->num_regions > 0 || op->parent == NULL) return false;
  const mp_op_t *outer = op->parent->parent_op;
  const char *name = "stablehlo.return";
  if (outer == NULL) name = "return";
  if (outer != NULL && mp_op_is_sdy(outer)) name = "sdy.return";
  mp_strbuf_puts(p->out, name);
  mp_printer_attr_dict(p, op, NULL, 0);
  if (op->num_operands == 0) return true;
  mp_strbuf_putc(p->out, ' ');
  mp_printer_operands(p, op, 0, op->num_operands);
  mp_strbuf_puts(p->out, " : ");
  mp_printer_operand_types(p, op);
  return true;
}
