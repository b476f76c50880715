// Pretty forms: the regular ones by table, the others by a function each.
#include <inttypes.h>

#include "sim/ir/forms.h"
#include "sim/ir/print_parts.h"

// --- conditions ---

static bool same_types(const mp_op_t *op) {
  if (op->num_results == 0) return false;
  const mp_type_t *type = op->results[0].type;
  for (uint32_t i = 1; i < op->num_results; i++)
    if (!mp_type_equal(op->results[i].type, type)) return false;
  for (uint32_t i = 0; i < op->num_operands; i++)
    if (!mp_type_equal(op->operands[i]->type, type)) return false;
  return true;
}

static bool has_counts(const mp_op_t *op, uint32_t operands, uint32_t results) {
  return op->num_operands == operands && op->num_results == results;
}

// The attribute, if it has a kind that its schema allows and the short form can show.
static const mp_attr_t *own_attr(const mp_op_t *op, mp_attr_name_t name) {
  const mp_attr_t *attr = mp_op_attr(op, name);
  const mp_schema_attr_t *row = mp_schema_find(op->code, name);
  if (attr == NULL || row == NULL || (row->kinds >> attr->kind & 1) == 0) return NULL;
  bool list = attr->kind == MP_KIND_INTS || attr->kind == MP_KIND_BOOLS;
  return list && attr->u.ints.rank != 1 ? NULL : attr;
}

static bool are_precisions(const mp_attr_t *attr) {
  if (attr == NULL || attr->kind != MP_KIND_ARRAY) return false;
  for (size_t i = 0; i < attr->u.array.count; i++)
    if (attr->u.array.items[i]->kind != MP_KIND_ENUM) return false;
  return true;
}

static void print_precisions(const mp_attr_t *attr, mp_strbuf_t *out) {
  mp_strbuf_putc(out, '[');
  for (size_t i = 0; i < attr->u.array.count; i++) {
    const mp_attr_t *item = attr->u.array.items[i];
    const char *text = mp_enum_value_name(item->u.enumeration.kind, item->u.enumeration.value);
    mp_strbuf_printf(out, "%s%s", i > 0 ? ", " : "", text != NULL ? text : "?");
  }
  mp_strbuf_putc(out, ']');
}

// The bare spelling of an attribute behind its key.
static void print_short(const mp_attr_t *attr, mp_strbuf_t *out) {
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
      print_precisions(attr, out);
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

// --- regular forms ---

static bool fits(const mp_op_t *op, const mp_form_t *form) {
  if (op->num_regions > 0) return false;
  for (int i = 0; i < MP_FORM_MAX_KEYS && form->keys[i].key != NULL; i++)
    if (own_attr(op, form->keys[i].attr) == NULL) return false;
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

static bool is_real_part(const mp_type_t *type, const mp_type_t *of) {
  return mp_type_is_tensor(type) && mp_type_is_tensor(of) && mp_dtype_is_complex(of->dtype) &&
         type->dtype == mp_dtype_real_part(of->dtype) && mp_type_same_shape(type, of) &&
         type->bounds == NULL && of->bounds == NULL;
}

static void print_types(mp_printer_t *p, const mp_op_t *op, mp_form_types_t form) {
  const mp_type_t *result = op->results[0].type;
  bool use_short = false;
  switch (form) {
    case MP_FORM_RESULT:
      use_short = true;
      break;
    case MP_FORM_SAME:
      use_short = same_types(op);
      break;
    case MP_FORM_SELECT:
      use_short = mp_type_equal(op->operands[1]->type, result) &&
                  mp_type_equal(op->operands[2]->type, result);
      break;
    case MP_FORM_COMPLEX:
      use_short = is_real_part(op->operands[0]->type, result) &&
                  is_real_part(op->operands[1]->type, result);
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

static bool print_regular(mp_printer_t *p, const mp_op_t *op, const mp_form_t *form) {
  if (!fits(op, form)) return false;
  mp_attr_name_t said[MP_FORM_MAX_KEYS];
  uint32_t num_said = 0;
  mp_strbuf_puts(p->out, mp_op_info(op->code)->name);
  if (op->num_operands > 0) mp_strbuf_putc(p->out, ' ');
  mp_printer_operands(p, op, 0, op->num_operands);
  for (int i = 0; i < MP_FORM_MAX_KEYS && form->keys[i].key != NULL; i++) {
    const mp_form_key_t *key = &form->keys[i];
    const mp_attr_t *value = mp_op_attr(op, key->attr);
    said[num_said++] = key->attr;
    if (key->optional && mp_schema_is_default(op, mp_schema_find(op->code, key->attr), value))
      continue;
    bool first = op->num_operands == 0 && i == 0;
    mp_strbuf_printf(p->out, "%s%s = ", first ? " " : ", ", key->key);
    print_short(value, p->out);
  }
  mp_printer_attr_dict(p, op, said, num_said);
  print_types(p, op, form->types);
  return true;
}

// --- the others ---

static void print_name(mp_printer_t *p, const mp_op_t *op) {
  mp_strbuf_puts(p->out, mp_op_info(op->code)->name);
}

static void print_function_types(mp_printer_t *p, const mp_op_t *op, const mp_attr_name_t *said,
                                 uint32_t num_said) {
  mp_printer_attr_dict(p, op, said, num_said);
  mp_strbuf_puts(p->out, " : ");
  mp_printer_function_type(p, op);
}

static bool print_constant(mp_printer_t *p, const mp_op_t *op) {
  const mp_attr_t *value = own_attr(op, MP_ATTR_VALUE);
  if (value == NULL || value->kind != MP_KIND_DENSE || !has_counts(op, 0, 1) ||
      !mp_type_equal(value->u.dense.type, op->results[0].type))
    return false;
  print_name(p, op);
  mp_printer_attr_dict(p, op, (mp_attr_name_t[]){MP_ATTR_VALUE}, 1);
  mp_strbuf_putc(p->out, ' ');
  mp_print_dense(value, p->options.elide_elements, p->out);
  return true;
}

static bool print_slice(mp_printer_t *p, const mp_op_t *op) {
  mp_attr_name_t said[] = {MP_ATTR_START_INDICES, MP_ATTR_LIMIT_INDICES, MP_ATTR_STRIDES};
  mp_index_list_t lists[3];
  for (int i = 0; i < 3; i++) {
    if (own_attr(op, said[i]) == NULL) return false;
    lists[i] = mp_op_ints(op, said[i]);
    if (lists[i].count != lists[0].count) return false;
  }
  if (!has_counts(op, 1, 1)) return false;
  print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_printer_value(p, op->operands[0]);
  mp_strbuf_puts(p->out, " [");
  for (uint32_t i = 0; i < lists[0].count; i++) {
    mp_strbuf_printf(p->out, "%s%" PRId64 ":%" PRId64, i > 0 ? ", " : "", lists[0].values[i],
                     lists[1].values[i]);
    if (lists[2].values[i] != 1) mp_strbuf_printf(p->out, ":%" PRId64, lists[2].values[i]);
  }
  mp_strbuf_putc(p->out, ']');
  print_function_types(p, op, said, 3);
  return true;
}

static bool print_compare(mp_printer_t *p, const mp_op_t *op) {
  const mp_attr_t *direction = own_attr(op, MP_ATTR_COMPARISON_DIRECTION);
  const mp_attr_t *type = own_attr(op, MP_ATTR_COMPARE_TYPE);
  if (direction == NULL || type == NULL || !has_counts(op, 2, 1)) return false;
  print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  print_short(direction, p->out);
  mp_strbuf_puts(p->out, ", ");
  mp_printer_operands(p, op, 0, 2);
  if (type->u.enumeration.value != MP_CMP_NOTYPE) {
    mp_strbuf_puts(p->out, ", ");
    print_short(type, p->out);
  }
  mp_attr_name_t said[] = {MP_ATTR_COMPARISON_DIRECTION, MP_ATTR_COMPARE_TYPE};
  print_function_types(p, op, said, 2);
  return true;
}

static bool print_reduce_precision(mp_printer_t *p, const mp_op_t *op) {
  int64_t exponent = mp_op_int(op, MP_ATTR_EXPONENT_BITS, -1);
  int64_t mantissa = mp_op_int(op, MP_ATTR_MANTISSA_BITS, -1);
  if (exponent < 0 || mantissa < 0 || !has_counts(op, 1, 1)) return false;
  print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_printer_value(p, op->operands[0]);
  mp_strbuf_printf(p->out, ", format = e%" PRId64 "m%" PRId64, exponent, mantissa);
  mp_attr_name_t said[] = {MP_ATTR_EXPONENT_BITS, MP_ATTR_MANTISSA_BITS};
  mp_printer_attr_dict(p, op, said, 2);
  print_types(p, op, MP_FORM_SAME);
  return true;
}

static void print_dims_pair(mp_printer_t *p, const mp_op_t *op, const char *key, mp_attr_name_t lhs,
                            mp_attr_name_t rhs) {
  mp_strbuf_printf(p->out, ", %s = ", key);
  mp_print_index_list(mp_op_ints(op, lhs), p->out);
  mp_strbuf_puts(p->out, " x ");
  mp_print_index_list(mp_op_ints(op, rhs), p->out);
}

static bool print_dot_general(mp_printer_t *p, const mp_op_t *op) {
  static const mp_attr_name_t said[] = {
      MP_ATTR_LHS_BATCHING_DIMENSIONS,    MP_ATTR_RHS_BATCHING_DIMENSIONS,
      MP_ATTR_LHS_CONTRACTING_DIMENSIONS, MP_ATTR_RHS_CONTRACTING_DIMENSIONS,
      MP_ATTR_PRECISION_CONFIG,           MP_ATTR_ACCUMULATION_TYPE,
      MP_ATTR_LHS_PRECISION_TYPE,         MP_ATTR_RHS_PRECISION_TYPE,
      MP_ATTR_LHS_COMPONENT_COUNT,        MP_ATTR_RHS_COMPONENT_COUNT,
      MP_ATTR_NUM_PRIMITIVE_OPERATIONS,   MP_ATTR_ALLOW_IMPRECISE_ACCUMULATION};
  const mp_attr_t *precision = own_attr(op, MP_ATTR_PRECISION_CONFIG);
  if (!are_precisions(precision) || !has_counts(op, 2, 1)) return false;
  print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_printer_operands(p, op, 0, 2);
  if (mp_op_ints(op, said[0]).count > 0 || mp_op_ints(op, said[1]).count > 0)
    print_dims_pair(p, op, "batching_dims", said[0], said[1]);
  print_dims_pair(p, op, "contracting_dims", said[2], said[3]);
  if (!mp_schema_is_default(op, mp_schema_find(op->code, MP_ATTR_PRECISION_CONFIG), precision)) {
    mp_strbuf_puts(p->out, ", precision = ");
    print_precisions(precision, p->out);
  }
  if (mp_op_attr(op, MP_ATTR_ACCUMULATION_TYPE) != NULL) {
    mp_strbuf_puts(p->out, ", algorithm = ");
    mp_print_dot_algorithm(op, p->out);
  }
  print_function_types(p, op, said, sizeof(said) / sizeof(said[0]));
  return true;
}

// One item of a convolution's window, unless it is the default.
static void print_window_item(mp_printer_t *p, const mp_op_t *op, const char *key,
                              mp_attr_name_t name, bool *first) {
  const mp_attr_t *value = mp_op_attr(op, name);
  if (mp_schema_is_default(op, mp_schema_find(op->code, name), value)) return;
  mp_strbuf_printf(p->out, "%s%s = [", *first ? "" : ", ", key);
  *first = false;
  mp_index_list_t list = mp_print_ints_of(value);
  bool pairs = name == MP_ATTR_PADDING;
  for (uint32_t i = 0; i < list.count; i++) {
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

static bool print_convolution(mp_printer_t *p, const mp_op_t *op) {
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
  if (!has_counts(op, 2, 1) || padding == NULL || padding->kind != MP_KIND_INTS ||
      padding->u.ints.rank != 2 || padding->u.ints.dims[1] != 2)
    return false;
  for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
    if (said[i] != MP_ATTR_PADDING && own_attr(op, said[i]) == NULL) return false;
  print_name(p, op);
  mp_strbuf_putc(p->out, '(');
  mp_printer_operands(p, op, 0, 2);
  mp_strbuf_puts(p->out, ") dim_numbers = ");
  mp_print_conv_numbers(op, p->out);
  mp_strbuf_puts(p->out, ", window = {");
  bool first = true;
  print_window_item(p, op, "stride", MP_ATTR_WINDOW_STRIDES, &first);
  print_window_item(p, op, "pad", MP_ATTR_PADDING, &first);
  print_window_item(p, op, "lhs_dilate", MP_ATTR_LHS_DILATION, &first);
  print_window_item(p, op, "rhs_dilate", MP_ATTR_RHS_DILATION, &first);
  print_window_item(p, op, "reverse", MP_ATTR_WINDOW_REVERSAL, &first);
  mp_strbuf_putc(p->out, '}');
  print_function_types(p, op, said, sizeof(said) / sizeof(said[0]));
  return true;
}

static bool print_get_tuple_element(mp_printer_t *p, const mp_op_t *op) {
  if (own_attr(op, MP_ATTR_INDEX) == NULL || !has_counts(op, 1, 1)) return false;
  print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_printer_value(p, op->operands[0]);
  mp_strbuf_printf(p->out, "[%" PRId64 "]", mp_op_int(op, MP_ATTR_INDEX, 0));
  print_function_types(p, op, (mp_attr_name_t[]){MP_ATTR_INDEX}, 1);
  return true;
}

static bool print_optimization_barrier(mp_printer_t *p, const mp_op_t *op) {
  if (op->num_operands != op->num_results) return false;
  for (uint32_t i = 0; i < op->num_operands; i++)
    if (!mp_type_equal(op->operands[i]->type, op->results[i].type)) return false;
  print_name(p, op);
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

static bool print_custom_call(mp_printer_t *p, const mp_op_t *op) {
  if (own_attr(op, MP_ATTR_CALL_TARGET_NAME) == NULL) return false;
  print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_print_symbol(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME), p->out);
  mp_strbuf_putc(p->out, '(');
  mp_printer_operands(p, op, 0, op->num_operands);
  mp_strbuf_putc(p->out, ')');
  print_function_types(p, op, (mp_attr_name_t[]){MP_ATTR_CALL_TARGET_NAME}, 1);
  return true;
}

static bool print_call(mp_printer_t *p, const mp_op_t *op) {
  if (own_attr(op, MP_ATTR_CALLEE) == NULL) return false;
  bool in_function = op->parent != NULL && op->parent->parent_func != NULL;
  mp_strbuf_puts(p->out, in_function ? "call " : "func.call ");
  mp_print_symbol(mp_op_str(op, MP_ATTR_CALLEE), p->out);
  mp_strbuf_putc(p->out, '(');
  mp_printer_operands(p, op, 0, op->num_operands);
  mp_strbuf_putc(p->out, ')');
  print_function_types(p, op, (mp_attr_name_t[]){MP_ATTR_CALLEE}, 1);
  return true;
}

static bool print_composite(mp_printer_t *p, const mp_op_t *op) {
  if (own_attr(op, MP_ATTR_NAME) == NULL || op->num_regions > 0) return false;
  print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_print_quoted(mp_op_str(op, MP_ATTR_NAME), p->out);
  if (op->num_operands > 0) mp_strbuf_putc(p->out, ' ');
  mp_printer_operands(p, op, 0, op->num_operands);
  print_function_types(p, op, (mp_attr_name_t[]){MP_ATTR_NAME}, 1);
  return true;
}

static bool print_return(mp_printer_t *p, const mp_op_t *op) {
  if (op->num_results > 0 || op->num_regions > 0 || op->parent == NULL) return false;
  const mp_op_t *outer = op->parent->parent_op;
  const char *name = "stablehlo.return";
  if (outer == NULL) name = "return";
  if (outer != NULL &&
      (outer->code == MP_OP_SDY_MANUAL_COMPUTATION || outer->code == MP_OP_SDY_NAMED_COMPUTATION))
    name = "sdy.return";
  mp_strbuf_puts(p->out, name);
  mp_printer_attr_dict(p, op, NULL, 0);
  if (op->num_operands == 0) return true;
  mp_strbuf_putc(p->out, ' ');
  mp_printer_operands(p, op, 0, op->num_operands);
  mp_strbuf_puts(p->out, " : ");
  mp_printer_operand_types(p, op);
  return true;
}

// --- with regions ---

static bool has_args_like_operands(const mp_op_t *op, const mp_block_t *block) {
  if (block->num_args != op->num_operands) return false;
  for (uint32_t i = 0; i < block->num_args; i++)
    if (!mp_type_equal(block->args[i].type, op->operands[i]->type)) return false;
  return true;
}

static bool print_while(mp_printer_t *p, const mp_op_t *op) {
  if (op->num_regions != 2 || op->num_results != op->num_operands) return false;
  for (int i = 0; i < 2; i++)
    if (!has_args_like_operands(op, op->regions[i])) return false;
  for (uint32_t i = 0; i < op->num_results; i++)
    if (!mp_type_equal(op->results[i].type, op->operands[i]->type)) return false;
  print_name(p, op);
  mp_strbuf_putc(p->out, '(');
  // Both regions call their arguments the same.
  uint64_t first_arg = p->next_arg;
  mp_printer_name_args(p, op->regions[0]);
  p->next_arg = first_arg;
  mp_printer_name_args(p, op->regions[1]);
  for (uint32_t i = 0; i < op->num_operands; i++) {
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

// A body that is one binary op on its two arguments and nothing else, on the input's element type.
static bool is_compact(const mp_op_t *op) {
  const mp_block_t *body = op->regions[0];
  const mp_op_t *inner = body->first;
  if (op->num_operands != 2 || op->num_results != 1 || body->num_args != 2 || inner == NULL)
    return false;
  if (inner->next == NULL || inner->next != body->last || inner->num_attrs != 0) return false;
  if ((mp_op_info(inner->code)->traits & MP_OP_TRAIT_BINARY) == 0 || inner->num_operands != 2 ||
      inner->num_results != 1 || mp_form_of(inner->code)->types != MP_FORM_SAME)
    return false;
  if (inner->operands[0] != &body->args[0] || inner->operands[1] != &body->args[1]) return false;
  const mp_op_t *end = body->last;
  if (end->code != MP_OP_RETURN || end->num_operands != 1 || end->num_attrs != 0 ||
      end->operands[0] != &inner->results[0])
    return false;
  const mp_type_t *type = inner->results[0].type;
  const mp_type_t *input = op->operands[0]->type;
  return same_types(inner) && mp_type_is_tensor(type) && type->rank == 0 && type->quant == NULL &&
         type->bounds == NULL && mp_type_is_tensor(input) && input->quant == NULL &&
         input->dtype == type->dtype;
}

// (%a init: %x), (%b init: %y)
static void print_reduce_inputs(mp_printer_t *p, const mp_op_t *op) {
  uint32_t n = op->num_operands / 2;
  for (uint32_t i = 0; i < n; i++) {
    mp_strbuf_puts(p->out, i > 0 ? ", (" : "(");
    mp_printer_value(p, op->operands[i]);
    mp_strbuf_puts(p->out, " init: ");
    mp_printer_value(p, op->operands[n + i]);
    mp_strbuf_putc(p->out, ')');
  }
}

// reducer(%a: T, %b: T) (%c: T, %d: T) {...}: a pair per input, the block has all left sides first.
static void print_reducer(mp_printer_t *p, const mp_block_t *body) {
  uint32_t n = body->num_args / 2;
  mp_printer_name_args(p, body);
  mp_printer_newline(p);
  mp_strbuf_puts(p->out, " reducer");
  for (uint32_t i = 0; i < n; i++) {
    if (i > 0) mp_strbuf_putc(p->out, ' ');
    for (uint32_t side = 0; side < 2; side++) {
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

static bool print_reduce(mp_printer_t *p, const mp_op_t *op) {
  const mp_attr_t *dims = own_attr(op, MP_ATTR_DIMENSIONS);
  if (op->num_regions != 1 || op->num_operands == 0 || op->num_operands % 2 != 0 || dims == NULL ||
      op->regions[0]->num_args != op->num_operands)
    return false;
  print_name(p, op);
  print_reduce_inputs(p, op);
  bool compact = is_compact(op);
  if (compact)
    mp_strbuf_printf(p->out, " applies %s", mp_op_info(op->regions[0]->first->code)->name);
  mp_strbuf_puts(p->out, " across dimensions = ");
  mp_print_index_list(mp_print_ints_of(dims), p->out);
  print_function_types(p, op, (mp_attr_name_t[]){MP_ATTR_DIMENSIONS}, 1);
  if (!compact) print_reducer(p, op->regions[0]);
  return true;
}

// --- Shardy ---

static const mp_attr_t *sharding_of(const mp_op_t *op, mp_attr_name_t name) {
  const mp_attr_t *attr = own_attr(op, name);
  return attr != NULL && attr->kind == MP_KIND_SHARDING ? attr : NULL;
}

static void print_operand_type(mp_printer_t *p, const mp_op_t *op, const mp_attr_name_t *said,
                               uint32_t num_said) {
  mp_printer_attr_dict(p, op, said, num_said);
  mp_strbuf_puts(p->out, " : ");
  mp_type_print(op->operands[0]->type, p->out);
}

static bool is_unary(const mp_op_t *op) {
  return has_counts(op, 1, 1) && mp_type_equal(op->operands[0]->type, op->results[0].type);
}

static bool print_sharding_constraint(mp_printer_t *p, const mp_op_t *op) {
  const mp_attr_t *sharding = sharding_of(op, MP_ATTR_SHARDING);
  bool edge = op->code == MP_OP_SDY_DATA_FLOW_EDGE;
  if (!is_unary(op) || (sharding == NULL && !edge)) return false;
  print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_printer_value(p, op->operands[0]);
  if (sharding != NULL) {
    mp_strbuf_puts(p->out, edge ? " sharding=" : " ");
    mp_print_sharding_body(sharding->u.sharding, p->out);
  }
  print_operand_type(p, op, (mp_attr_name_t[]){MP_ATTR_SHARDING}, 1);
  return true;
}

static bool print_sharding_group(mp_printer_t *p, const mp_op_t *op) {
  if (!has_counts(op, 1, 0) || own_attr(op, MP_ATTR_GROUP_ID) == NULL) return false;
  print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_printer_value(p, op->operands[0]);
  mp_strbuf_printf(p->out, " group_id=%" PRId64, mp_op_int(op, MP_ATTR_GROUP_ID, 0));
  print_operand_type(p, op, (mp_attr_name_t[]){MP_ATTR_GROUP_ID}, 1);
  return true;
}

static bool print_propagation_barrier(mp_printer_t *p, const mp_op_t *op) {
  static const char *const directions[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"};
  int64_t direction = mp_op_int(op, MP_ATTR_ALLOWED_DIRECTION, -1);
  if (!is_unary(op) || direction < 0 || direction > 3) return false;
  print_name(p, op);
  mp_strbuf_putc(p->out, ' ');
  mp_printer_value(p, op->operands[0]);
  mp_strbuf_printf(p->out, " allowed_direction=%s", directions[direction]);
  print_operand_type(p, op, (mp_attr_name_t[]){MP_ATTR_ALLOWED_DIRECTION}, 1);
  return true;
}

// sdy.all_gather [{"x"}, {}] %0 out_sharding=<...> : T and the like.
static bool print_sdy_collective(mp_printer_t *p, const mp_op_t *op) {
  const mp_attr_t *sharding = sharding_of(op, MP_ATTR_OUT_SHARDING);
  if (!is_unary(op) || sharding == NULL) return false;
  mp_attr_name_t said[2] = {MP_ATTR_OUT_SHARDING, MP_ATTR_OTHER};
  const mp_attr_t *axes = NULL;
  mp_schema_t schema = mp_schema_of(op->code);
  for (uint32_t i = 0; i < schema.count; i++) {
    if (schema.attrs[i].name == MP_ATTR_OUT_SHARDING) continue;
    said[1] = schema.attrs[i].name;
    axes = own_attr(op, said[1]);
    if (axes == NULL) return false;
  }
  print_name(p, op);
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
  print_operand_type(p, op, said, axes != NULL ? 2 : 1);
  return true;
}

// sdy.manual_computation(%0) in_shardings=[...] out_shardings=[...] manual_axes={...} (args) {...}
static bool print_computation(mp_printer_t *p, const mp_op_t *op) {
  bool manual = op->code == MP_OP_SDY_MANUAL_COMPUTATION;
  const mp_attr_t *in = own_attr(op, MP_ATTR_IN_SHARDINGS);
  const mp_attr_t *out = own_attr(op, MP_ATTR_OUT_SHARDINGS);
  const mp_attr_t *axes = own_attr(op, MP_ATTR_MANUAL_AXES);
  if (op->num_regions != 1) return false;
  if (manual && (in == NULL || out == NULL || axes == NULL)) return false;
  if (!manual && own_attr(op, MP_ATTR_NAME) == NULL) return false;
  print_name(p, op);
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
  print_function_types(p, op, said, 4);
  return true;
}

// --- choice ---

typedef bool (*special_printer_t)(mp_printer_t *p, const mp_op_t *op);

static const special_printer_t specials[MP_OP_COUNT] = {
    [MP_OP_CONSTANT] = print_constant,
    [MP_OP_SLICE] = print_slice,
    [MP_OP_COMPARE] = print_compare,
    [MP_OP_REDUCE_PRECISION] = print_reduce_precision,
    [MP_OP_DOT_GENERAL] = print_dot_general,
    [MP_OP_CONVOLUTION] = print_convolution,
    [MP_OP_GET_TUPLE_ELEMENT] = print_get_tuple_element,
    [MP_OP_OPTIMIZATION_BARRIER] = print_optimization_barrier,
    [MP_OP_CUSTOM_CALL] = print_custom_call,
    [MP_OP_CALL] = print_call,
    [MP_OP_COMPOSITE] = print_composite,
    [MP_OP_RETURN] = print_return,
    [MP_OP_WHILE] = print_while,
    [MP_OP_REDUCE] = print_reduce,
    [MP_OP_SDY_CONSTANT] = print_constant,
    [MP_OP_SDY_SHARDING_CONSTRAINT] = print_sharding_constraint,
    [MP_OP_SDY_RESHARD] = print_sharding_constraint,
    [MP_OP_SDY_DATA_FLOW_EDGE] = print_sharding_constraint,
    [MP_OP_SDY_SHARDING_GROUP] = print_sharding_group,
    [MP_OP_SDY_PROPAGATION_BARRIER] = print_propagation_barrier,
    [MP_OP_SDY_ALL_GATHER] = print_sdy_collective,
    [MP_OP_SDY_ALL_REDUCE] = print_sdy_collective,
    [MP_OP_SDY_ALL_SLICE] = print_sdy_collective,
    [MP_OP_SDY_ALL_TO_ALL] = print_sdy_collective,
    [MP_OP_SDY_COLLECTIVE_PERMUTE] = print_sdy_collective,
    [MP_OP_SDY_REDUCE_SCATTER] = print_sdy_collective,
    [MP_OP_SDY_REPLICATED_TO_UNREDUCED] = print_sdy_collective,
    [MP_OP_SDY_SHARDED_TO_UNREDUCED] = print_sdy_collective,
    [MP_OP_SDY_MANUAL_COMPUTATION] = print_computation,
    [MP_OP_SDY_NAMED_COMPUTATION] = print_computation,
};

bool mp_printer_pretty(mp_printer_t *p, const mp_op_t *op) {
  const mp_form_t *form = mp_form_of(op->code);
  if (form->types == MP_FORM_GENERIC) return false;
  if (form->types != MP_FORM_SPECIAL) return print_regular(p, op, form);
  return specials[op->code](p, op);
}
