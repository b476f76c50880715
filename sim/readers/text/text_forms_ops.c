// Operations without regions whose pretty form is their own. The comments show the form.
#include "sim/readers/text/text_forms.h"

// dense<...> : T; or () {value = ...} : () -> T
mp_status_t mp_form_read_constant(mp_text_t *t, mp_text_op_t *op) {
  if (mp_text_accept(t, '(')) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
    return mp_text_op_types(t, op);
  }
  MP_RETURN_IF_ERROR(mp_text_op_dict(t, op));
  mp_token_t token = t->tok;
  const mp_attr_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_text_attr(t, &value));
  if (value->kind != MP_KIND_DENSE)
    return mp_text_error(t, &token, MP_INVALID_ARGUMENT, "expected a constant 'dense<...> : type'");
  MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, MP_ATTR_VALUE, value));
  return mp_form_set_result_type(t, op, value->u.dense.type);
}

// %x [0:4, 2:8:2] : FN
mp_status_t mp_form_read_slice(mp_text_t *t, mp_text_op_t *op) {
  mp_text_ints_t lists[3] = {{0}, {0}, {0}};
  MP_RETURN_IF_ERROR(mp_text_operand(t, op));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '['));
  while (!mp_text_is(t, ']')) {
    int64_t range[3] = {0, 0, 1};
    if (lists[0].count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(mp_text_i64(t, &range[0]));
    MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
    MP_RETURN_IF_ERROR(mp_text_i64(t, &range[1]));
    if (mp_text_accept(t, ':')) MP_RETURN_IF_ERROR(mp_text_i64(t, &range[2]));
    for (int i = 0; i < 3; ++i) MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &lists[i], range[i]));
  }
  mp_text_advance(t);
  static const mp_attr_name_t names[] = {MP_ATTR_START_INDICES, MP_ATTR_LIMIT_INDICES,
                                         MP_ATTR_STRIDES};
  for (int i = 0; i < 3; ++i)
    MP_RETURN_IF_ERROR(
        mp_text_op_ints(t, op, names[i], (mp_index_list_t){lists[i].count, lists[i].items}));
  return mp_text_op_types(t, op);
}

// LT, %a, %b, SIGNED : FN
mp_status_t mp_form_read_compare(mp_text_t *t, mp_text_op_t *op) {
  const mp_attr_t *direction, *type;
  MP_RETURN_IF_ERROR(mp_form_enum_word(t, MP_ENUM_COMPARISON_DIRECTION, &direction));
  MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, MP_ATTR_COMPARISON_DIRECTION, direction));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
  MP_RETURN_IF_ERROR(mp_text_operands(t, op));
  if (mp_text_accept(t, ',')) {
    MP_RETURN_IF_ERROR(mp_form_enum_word(t, MP_ENUM_COMPARISON_TYPE, &type));
    MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, MP_ATTR_COMPARE_TYPE, type));
  }
  return mp_text_op_types(t, op);
}

// e5m7
static bool text_forms_ops_scan_format(mp_str_t text, int64_t *out_exponent,
                                       int64_t *out_mantissa) {
  if (text.size < 4 || text.data[0] != 'e') return false;
  const char *m = memchr(text.data, 'm', text.size);
  if (m == NULL) return false;
  mp_str_t exponent = {text.data + 1, (size_t)(m - text.data) - 1};
  mp_str_t mantissa = {m + 1, text.size - exponent.size - 2};
  long long values[2];
  if (!mp_str_parse_i64(exponent, &values[0]) || !mp_str_parse_i64(mantissa, &values[1]) ||
      values[0] < 0 || values[0] > INT32_MAX || values[1] < 0 || values[1] > INT32_MAX)
    return false;
  *out_exponent = values[0];
  *out_mantissa = values[1];
  return true;
}

// %x, format = e5m7 : T
mp_status_t mp_form_read_reduce_precision(mp_text_t *t, mp_text_op_t *op) {
  int64_t exponent, mantissa;
  const mp_attr_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_text_operand(t, op));
  MP_RETURN_IF_ERROR(mp_form_expect_key(t, "format", true));
  if (t->tok.kind != MP_TOKEN_WORD ||
      !text_forms_ops_scan_format(t->tok.text, &exponent, &mantissa))
    return mp_text_expected(t, "a format such as e5m10");
  mp_text_advance(t);
  MP_RETURN_IF_ERROR(mp_attr_make_int(t->arena, MP_DTYPE_S32, exponent, &value));
  MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, MP_ATTR_EXPONENT_BITS, value));
  MP_RETURN_IF_ERROR(mp_attr_make_int(t->arena, MP_DTYPE_S32, mantissa, &value));
  MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, MP_ATTR_MANTISSA_BITS, value));
  return mp_form_types(t, op, MP_FORM_SAME);
}

// [0] x [1]
static mp_status_t text_forms_ops_read_dims_pair(mp_text_t *t, mp_text_op_t *op, mp_attr_name_t lhs,
                                                 mp_attr_name_t rhs) {
  mp_index_list_t dims;
  MP_RETURN_IF_ERROR(mp_text_index_list(t, &dims));
  MP_RETURN_IF_ERROR(mp_text_op_ints(t, op, lhs, dims));
  MP_RETURN_IF_ERROR(mp_text_expect_word(t, "x"));
  MP_RETURN_IF_ERROR(mp_text_index_list(t, &dims));
  return mp_text_op_ints(t, op, rhs, dims);
}

// The items of a struct of attributes.
static mp_status_t text_forms_ops_add_items(mp_text_t *t, mp_text_op_t *op, const mp_attr_t *dict) {
  for (size_t i = 0; i < dict->u.dict.count; ++i)
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &op->attrs, dict->u.dict.items[i]));
  return NULL;
}

static mp_status_t text_forms_ops_read_algorithm(mp_text_t *t, mp_text_op_t *op) {
  const mp_attr_t *algorithm = NULL;
  if (t->tok.kind == MP_TOKEN_HASH)
    MP_RETURN_IF_ERROR(mp_text_attr(t, &algorithm));
  else
    MP_RETURN_IF_ERROR(mp_text_dot_algorithm(t, &algorithm));
  if (algorithm->kind != MP_KIND_DICT) return mp_text_expected(t, "an algorithm");
  return text_forms_ops_add_items(t, op, algorithm);
}

mp_status_t mp_form_read_dot_general(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(mp_text_operands(t, op));
  if (mp_form_accept_key(t, "batching_dims", true)) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(text_forms_ops_read_dims_pair(t, op, MP_ATTR_LHS_BATCHING_DIMENSIONS,
                                                     MP_ATTR_RHS_BATCHING_DIMENSIONS));
  }
  if (mp_form_accept_key(t, "contracting_dims", true)) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(text_forms_ops_read_dims_pair(t, op, MP_ATTR_LHS_CONTRACTING_DIMENSIONS,
                                                     MP_ATTR_RHS_CONTRACTING_DIMENSIONS));
  }
  if (mp_form_accept_key(t, "precision", true)) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(mp_form_key_value(t, op, MP_ATTR_PRECISION_CONFIG));
  }
  if (mp_form_accept_key(t, "algorithm", true)) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(text_forms_ops_read_algorithm(t, op));
  }
  return mp_text_op_types(t, op);
}

// ---- a convolution's window ----
//
// {stride = [1, 2], pad = [[0, 1], [1, 1]], reverse = [true, false]}

static mp_status_t text_forms_ops_read_padding(mp_text_t *t, mp_text_op_t *op) {
  mp_text_ints_t values = {0};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '['));
  while (!mp_text_is(t, ']')) {
    mp_index_list_t pair;
    if (values.count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(mp_text_index_list(t, &pair));
    if (pair.count != 2)
      return mp_text_error(t, &t->last, MP_INVALID_ARGUMENT, "expected [low, high]");
    for (int i = 0; i < 2; ++i)
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &values, pair.values[i]));
  }
  mp_text_advance(t);
  const mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_table(t->arena, values.items, values.count / 2, 2, &attr));
  return mp_text_op_attr(t, op, MP_ATTR_PADDING, attr);
}

static mp_status_t text_forms_ops_read_reversal(mp_text_t *t, mp_text_op_t *op) {
  mp_text_ints_t values = {0};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '['));
  while (!mp_text_is(t, ']')) {
    bool flag;
    if (values.count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    if (t->tok.kind == MP_TOKEN_INTEGER) {
      flag = !mp_str_is(t->tok.text, "0");
      mp_text_advance(t);
    } else {
      MP_RETURN_IF_ERROR(mp_text_bool(t, &flag));
    }
    int64_t value = flag;
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &values, value));
  }
  mp_text_advance(t);
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_BOOLS, &attr));
  attr->u.ints.values = mp_arena_copy(t->arena, values.items, values.count * sizeof(int64_t));
  MP_RETURN_IF_NULL(attr->u.ints.values);
  attr->u.ints.count = values.count;
  attr->u.ints.rank = 1;
  attr->u.ints.dims[0] = values.count;
  return mp_text_op_attr(t, op, MP_ATTR_WINDOW_REVERSAL, attr);
}

static mp_status_t text_forms_ops_read_window_item(mp_text_t *t, mp_text_op_t *op) {
  static const struct {
    const char *key;
    mp_attr_name_t name;
  } items[] = {{"stride", MP_ATTR_WINDOW_STRIDES},
               {"lhs_dilate", MP_ATTR_LHS_DILATION},
               {"rhs_dilate", MP_ATTR_RHS_DILATION}};
  for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); ++i) {
    if (!mp_text_accept_word(t, items[i].key)) continue;
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    return mp_form_key_value(t, op, items[i].name);
  }
  bool pad = mp_text_accept_word(t, "pad");
  if (!pad && !mp_text_accept_word(t, "reverse"))
    return mp_text_expected(t, "stride, pad, lhs_dilate, rhs_dilate or reverse");
  MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
  return pad ? text_forms_ops_read_padding(t, op) : text_forms_ops_read_reversal(t, op);
}

mp_status_t mp_form_read_convolution(mp_text_t *t, mp_text_op_t *op) {
  const mp_attr_t *numbers = NULL;
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  MP_RETURN_IF_ERROR(mp_text_operands(t, op));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  MP_RETURN_IF_ERROR(mp_form_expect_key(t, "dim_numbers", false));
  MP_RETURN_IF_ERROR(mp_text_conv_numbers(t, &numbers));
  MP_RETURN_IF_ERROR(text_forms_ops_add_items(t, op, numbers));
  MP_RETURN_IF_ERROR(mp_form_expect_key(t, "window", true));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '{'));
  for (bool first = true; !mp_text_is(t, '}'); first = false) {
    if (!first) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(text_forms_ops_read_window_item(t, op));
  }
  mp_text_advance(t);
  return mp_text_op_types(t, op);
}

// ---- calls, tuples, barriers ----

// %t[1] : FN
mp_status_t mp_form_read_get_tuple_element(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(mp_text_operand(t, op));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '['));
  MP_RETURN_IF_ERROR(mp_form_key_value(t, op, MP_ATTR_INDEX));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ']'));
  return mp_text_op_types(t, op);
}

// %a, %b : T, T; or ()
mp_status_t mp_form_read_optimization_barrier(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(mp_text_op_dict(t, op));
  if (mp_text_accept(t, '(')) return mp_text_expect(t, ')');
  MP_RETURN_IF_ERROR(mp_text_operands(t, op));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  MP_RETURN_IF_ERROR(mp_form_operand_types(t, op));
  op->types.results = op->types.inputs;
  op->types.num_results = op->types.num_inputs;
  return NULL;
}

// @name(%a, %b) : FN
static mp_status_t text_forms_ops_read_named_call(mp_text_t *t, mp_text_op_t *op,
                                                  mp_attr_name_t name) {
  mp_str_t symbol;
  const mp_attr_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_text_symbol(t, &symbol));
  MP_RETURN_IF_ERROR(mp_attr_make_string(t->arena, symbol, &value));
  MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, name, value));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  MP_RETURN_IF_ERROR(mp_text_operands(t, op));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  return mp_text_op_types(t, op);
}

mp_status_t mp_form_read_custom_call(mp_text_t *t, mp_text_op_t *op) {
  return text_forms_ops_read_named_call(t, op, MP_ATTR_CALL_TARGET_NAME);
}

mp_status_t mp_form_read_call(mp_text_t *t, mp_text_op_t *op) {
  return text_forms_ops_read_named_call(t, op, MP_ATTR_CALLEE);
}

// "name" %a, %b ({...})? : FN
mp_status_t mp_form_read_composite(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(mp_form_key_value(t, op, MP_ATTR_NAME));
  MP_RETURN_IF_ERROR(mp_text_operands(t, op));
  if (mp_text_accept(t, '(')) {
    do {
      mp_block_t *block = NULL;
      MP_RETURN_IF_ERROR(mp_text_generic_region(t, false, &block));
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &op->regions, block));
    } while (mp_text_accept(t, ','));
    MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  }
  return mp_text_op_types(t, op);
}

mp_status_t mp_form_read_return(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(mp_text_op_dict(t, op));
  MP_RETURN_IF_ERROR(mp_text_operands(t, op));
  if (mp_form_num_operands(op) == 0) return NULL;
  MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  return mp_form_operand_types(t, op);
}
