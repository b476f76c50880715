// Pretty forms: the regular ones by table (sim/ir/forms.h), the others by a function each.
#include "sim/ir/forms.h"
#include "sim/readers/text_parser.h"

// --- types ---

static uint32_t num_operands(const mp_text_op_t *op) {
  return op->operands.count;
}

static const mp_type_t *operand_type(const mp_text_op_t *op, uint32_t i) {
  return ((mp_value_t *const *)op->operands.items)[i]->type;
}

// Operands of type `type`, and so many results of it.
static mp_status_t set_types(mp_text_t *t, mp_text_op_t *op, const mp_type_t *type,
                             uint32_t num_results) {
  uint32_t count = num_operands(op) > num_results ? num_operands(op) : num_results;
  const mp_type_t **types = MP_ARENA_ARRAY(t->scratch, const mp_type_t *, count);
  MP_RETURN_IF_NULL(types);
  for (uint32_t i = 0; i < count; i++) types[i] = type;
  op->types = (mp_text_signature_t){types, num_operands(op), types, num_results};
  return NULL;
}

// Operands as they were defined.
static mp_status_t set_operand_types(mp_text_t *t, mp_text_op_t *op) {
  const mp_type_t **types = MP_ARENA_ARRAY(t->scratch, const mp_type_t *, num_operands(op));
  MP_RETURN_IF_NULL(types);
  for (uint32_t i = 0; i < num_operands(op); i++) types[i] = operand_type(op, i);
  op->types.inputs = types;
  op->types.num_inputs = num_operands(op);
  return NULL;
}

static mp_status_t set_result_type(mp_text_t *t, mp_text_op_t *op, const mp_type_t *type) {
  op->types.results = mp_arena_copy(t->scratch, &type, sizeof(const mp_type_t *));
  MP_RETURN_IF_NULL(op->types.results);
  op->types.num_results = 1;
  return NULL;
}

// T, T, ... one per operand
static mp_status_t read_operand_types(mp_text_t *t, mp_text_op_t *op) {
  mp_text_list_t types = {0};
  do {
    const mp_type_t *type = NULL;
    MP_RETURN_IF_ERROR(mp_text_type(t, &type));
    MP_RETURN_IF_ERROR(mp_text_list_add(t, &types, sizeof(type), &type));
  } while (mp_text_accept(t, ','));
  op->types.inputs = types.items;
  op->types.num_inputs = types.count;
  return NULL;
}

// predicate's type, value's type
static mp_status_t read_select_types(mp_text_t *t, mp_text_op_t *op) {
  if (num_operands(op) != 3) return mp_text_expected(t, "three operands");
  const mp_type_t *predicate, *value;
  MP_RETURN_IF_ERROR(mp_text_type(t, &predicate));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
  MP_RETURN_IF_ERROR(mp_text_type(t, &value));
  MP_RETURN_IF_ERROR(set_types(t, op, value, 1));
  const mp_type_t *inputs[] = {predicate, value, value};
  op->types.inputs = mp_arena_copy(t->scratch, inputs, sizeof(inputs));
  MP_RETURN_IF_NULL(op->types.inputs);
  return NULL;
}

static mp_status_t read_complex_types(mp_text_t *t, mp_text_op_t *op) {
  mp_token_t token = t->tok;
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_text_type(t, &type));
  if (!mp_type_is_tensor(type) || !mp_dtype_is_complex(type->dtype))
    return mp_text_error(t, &token, MP_INVALID_ARGUMENT, "expected a tensor of complex numbers");
  const mp_type_t *part = NULL;
  MP_RETURN_IF_ERROR(
      mp_type_tensor(t->arena, mp_dtype_real_part(type->dtype), type->dims, type->rank, &part));
  MP_RETURN_IF_ERROR(set_types(t, op, part, 0));
  return set_result_type(t, op, type);
}

// {...}? : types
static mp_status_t read_types(mp_text_t *t, mp_text_op_t *op, mp_form_types_t form) {
  MP_RETURN_IF_ERROR(mp_text_op_dict(t, op));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  if (mp_text_is(t, '(') || form == MP_FORM_FUNCTION) return mp_text_signature(t, &op->types);
  if (form == MP_FORM_SELECT) return read_select_types(t, op);
  if (form == MP_FORM_COMPLEX) return read_complex_types(t, op);
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_text_type(t, &type));
  if (form == MP_FORM_RESULT) {
    MP_RETURN_IF_ERROR(set_operand_types(t, op));
    return set_result_type(t, op, type);
  }
  uint32_t num_results = form == MP_FORM_OPERAND && mp_op_info(op->code)->num_results == 0 ? 0 : 1;
  return set_types(t, op, type, num_results);
}

// --- values behind keys ---

static mp_status_t read_enum_word(mp_text_t *t, mp_enum_kind_t kind, const mp_attr_t **out_attr) {
  int value = t->tok.kind == MP_TOKEN_WORD ? mp_enum_value_from_name(kind, t->tok.text) : -1;
  if (value < 0) return mp_text_expected(t, "an enumeration's value");
  mp_text_advance(t);
  return mp_attr_make_enum(t->arena, kind, (uint32_t)value, out_attr);
}

// [DEFAULT, HIGHEST]
static mp_status_t read_precisions(mp_text_t *t, const mp_attr_t **out_attr) {
  mp_text_list_t items = {0};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '['));
  while (!mp_text_is(t, ']')) {
    const mp_attr_t *item = NULL;
    if (items.count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(read_enum_word(t, MP_ENUM_PRECISION, &item));
    MP_RETURN_IF_ERROR(mp_text_list_add(t, &items, sizeof(item), &item));
  }
  mp_text_advance(t);
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_ARRAY, &attr));
  attr->u.array.items = mp_arena_copy(t->arena, items.items, items.count * sizeof(attr));
  MP_RETURN_IF_NULL(attr->u.array.items);
  attr->u.array.count = items.count;
  *out_attr = attr;
  return NULL;
}

static mp_status_t read_key_value(mp_text_t *t, mp_text_op_t *op, mp_attr_name_t name) {
  const mp_schema_attr_t *row = mp_schema_find(op->code, name);
  const mp_attr_t *value = NULL;
  switch ((mp_attr_kind_t)__builtin_ctz(row->kinds)) {
    case MP_KIND_INTS: {
      mp_index_list_t list;
      MP_RETURN_IF_ERROR(mp_text_index_list(t, &list));
      return mp_text_op_ints(t, op, name, list);
    }
    case MP_KIND_INT: {
      int64_t number;
      MP_RETURN_IF_ERROR(mp_text_i64(t, &number));
      MP_RETURN_IF_ERROR(mp_attr_make_int(t->arena, row->dtype, number, &value));
      break;
    }
    case MP_KIND_STRING: {
      // No ": type" may follow here: the colon is the op's.
      mp_str_t text;
      MP_RETURN_IF_ERROR(mp_text_string(t, &text));
      MP_RETURN_IF_ERROR(mp_attr_make_string(t->arena, text, &value));
      break;
    }
    case MP_KIND_ENUM:
      MP_RETURN_IF_ERROR(read_enum_word(t, row->enum_kind, &value));
      break;
    case MP_KIND_ARRAY:
      MP_RETURN_IF_ERROR(read_precisions(t, &value));
      break;
    default:
      MP_RETURN_IF_ERROR(mp_text_attr(t, &value));
      break;
  }
  return mp_text_op_attr(t, op, name, value);
}

// Takes `key =`, behind a comma unless it is the first; false when something else follows.
static bool accept_key(mp_text_t *t, const char *key, bool comma) {
  mp_token_t next = comma ? mp_text_peek(t) : t->tok;
  if (comma && !mp_text_is(t, ',')) return false;
  if (next.kind != MP_TOKEN_WORD || !mp_str_is(next.text, key)) return false;
  if (comma) mp_text_advance(t);
  mp_text_advance(t);
  return true;
}

static mp_status_t expect_key(mp_text_t *t, const char *key, bool comma) {
  if (!accept_key(t, key, comma)) {
    mp_strbuf_t text;
    mp_strbuf_init(&text);
    mp_strbuf_printf(&text, "%s%s =", comma ? ", " : "", key);
    mp_status_t status = mp_text_expected(t, mp_strbuf_text(&text));
    mp_strbuf_deinit(&text);
    return status;
  }
  return mp_text_expect(t, '=');
}

static mp_status_t read_regular(mp_text_t *t, mp_text_op_t *op, const mp_form_t *form) {
  MP_RETURN_IF_ERROR(mp_text_operands(t, op));
  for (int i = 0; i < MP_FORM_MAX_KEYS && form->keys[i].key != NULL; i++) {
    const mp_form_key_t *key = &form->keys[i];
    bool comma = num_operands(op) > 0 || i > 0;
    if (key->optional) {
      if (!accept_key(t, key->key, comma)) continue;
      MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    } else {
      MP_RETURN_IF_ERROR(expect_key(t, key->key, comma));
    }
    MP_RETURN_IF_ERROR(read_key_value(t, op, key->attr));
  }
  return read_types(t, op, form->types);
}

// --- the others ---

// dense<...> : T; or () {value = ...} : () -> T
static mp_status_t read_constant(mp_text_t *t, mp_text_op_t *op) {
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
  return set_result_type(t, op, value->u.dense.type);
}

// %x [0:4, 2:8:2] : FN
static mp_status_t read_slice(mp_text_t *t, mp_text_op_t *op) {
  mp_text_list_t lists[3] = {{0}, {0}, {0}};
  MP_RETURN_IF_ERROR(mp_text_operand(t, op));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '['));
  while (!mp_text_is(t, ']')) {
    int64_t range[3] = {0, 0, 1};
    if (lists[0].count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(mp_text_i64(t, &range[0]));
    MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
    MP_RETURN_IF_ERROR(mp_text_i64(t, &range[1]));
    if (mp_text_accept(t, ':')) MP_RETURN_IF_ERROR(mp_text_i64(t, &range[2]));
    for (int i = 0; i < 3; i++)
      MP_RETURN_IF_ERROR(mp_text_list_add(t, &lists[i], sizeof(range[i]), &range[i]));
  }
  mp_text_advance(t);
  static const mp_attr_name_t names[] = {MP_ATTR_START_INDICES, MP_ATTR_LIMIT_INDICES,
                                         MP_ATTR_STRIDES};
  for (int i = 0; i < 3; i++)
    MP_RETURN_IF_ERROR(
        mp_text_op_ints(t, op, names[i], (mp_index_list_t){lists[i].count, lists[i].items}));
  return mp_text_op_types(t, op);
}

// LT, %a, %b, SIGNED : FN
static mp_status_t read_compare(mp_text_t *t, mp_text_op_t *op) {
  const mp_attr_t *direction, *type;
  MP_RETURN_IF_ERROR(read_enum_word(t, MP_ENUM_COMPARISON_DIRECTION, &direction));
  MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, MP_ATTR_COMPARISON_DIRECTION, direction));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
  MP_RETURN_IF_ERROR(mp_text_operands(t, op));
  if (mp_text_accept(t, ',')) {
    MP_RETURN_IF_ERROR(read_enum_word(t, MP_ENUM_COMPARISON_TYPE, &type));
    MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, MP_ATTR_COMPARE_TYPE, type));
  }
  return mp_text_op_types(t, op);
}

// e5m7
static bool scan_format(mp_str_t text, int64_t *out_exponent, int64_t *out_mantissa) {
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
static mp_status_t read_reduce_precision(mp_text_t *t, mp_text_op_t *op) {
  int64_t exponent, mantissa;
  const mp_attr_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_text_operand(t, op));
  MP_RETURN_IF_ERROR(expect_key(t, "format", true));
  if (t->tok.kind != MP_TOKEN_WORD || !scan_format(t->tok.text, &exponent, &mantissa))
    return mp_text_expected(t, "a format such as e5m10");
  mp_text_advance(t);
  MP_RETURN_IF_ERROR(mp_attr_make_int(t->arena, MP_DTYPE_S32, exponent, &value));
  MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, MP_ATTR_EXPONENT_BITS, value));
  MP_RETURN_IF_ERROR(mp_attr_make_int(t->arena, MP_DTYPE_S32, mantissa, &value));
  MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, MP_ATTR_MANTISSA_BITS, value));
  return read_types(t, op, MP_FORM_SAME);
}

// [0] x [1]
static mp_status_t read_dims_pair(mp_text_t *t, mp_text_op_t *op, mp_attr_name_t lhs,
                                  mp_attr_name_t rhs) {
  mp_index_list_t dims;
  MP_RETURN_IF_ERROR(mp_text_index_list(t, &dims));
  MP_RETURN_IF_ERROR(mp_text_op_ints(t, op, lhs, dims));
  MP_RETURN_IF_ERROR(mp_text_expect_word(t, "x"));
  MP_RETURN_IF_ERROR(mp_text_index_list(t, &dims));
  return mp_text_op_ints(t, op, rhs, dims);
}

// The items of a struct of attributes.
static mp_status_t add_items(mp_text_t *t, mp_text_op_t *op, const mp_attr_t *dict) {
  for (size_t i = 0; i < dict->u.dict.count; i++)
    MP_RETURN_IF_ERROR(
        mp_text_list_add(t, &op->attrs, sizeof(mp_named_attr_t), &dict->u.dict.items[i]));
  return NULL;
}

static mp_status_t read_algorithm(mp_text_t *t, mp_text_op_t *op) {
  const mp_attr_t *algorithm = NULL;
  if (t->tok.kind == MP_TOKEN_HASH)
    MP_RETURN_IF_ERROR(mp_text_attr(t, &algorithm));
  else
    MP_RETURN_IF_ERROR(mp_text_dot_algorithm(t, &algorithm));
  if (algorithm->kind != MP_KIND_DICT) return mp_text_expected(t, "an algorithm");
  return add_items(t, op, algorithm);
}

static mp_status_t read_dot_general(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(mp_text_operands(t, op));
  if (accept_key(t, "batching_dims", true)) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(
        read_dims_pair(t, op, MP_ATTR_LHS_BATCHING_DIMENSIONS, MP_ATTR_RHS_BATCHING_DIMENSIONS));
  }
  if (accept_key(t, "contracting_dims", true)) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(read_dims_pair(t, op, MP_ATTR_LHS_CONTRACTING_DIMENSIONS,
                                      MP_ATTR_RHS_CONTRACTING_DIMENSIONS));
  }
  if (accept_key(t, "precision", true)) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(read_key_value(t, op, MP_ATTR_PRECISION_CONFIG));
  }
  if (accept_key(t, "algorithm", true)) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(read_algorithm(t, op));
  }
  return mp_text_op_types(t, op);
}

// --- convolution's window: {stride = [1, 2], pad = [[0, 1], [1, 1]], reverse = [true, false]} ---

static mp_status_t read_padding(mp_text_t *t, mp_text_op_t *op) {
  mp_text_list_t values = {0};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '['));
  while (!mp_text_is(t, ']')) {
    mp_index_list_t pair;
    if (values.count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(mp_text_index_list(t, &pair));
    if (pair.count != 2)
      return mp_text_error(t, &t->last, MP_INVALID_ARGUMENT, "expected [low, high]");
    for (int i = 0; i < 2; i++)
      MP_RETURN_IF_ERROR(mp_text_list_add(t, &values, sizeof(int64_t), &pair.values[i]));
  }
  mp_text_advance(t);
  const mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_table(t->arena, values.items, values.count / 2, 2, &attr));
  return mp_text_op_attr(t, op, MP_ATTR_PADDING, attr);
}

static mp_status_t read_reversal(mp_text_t *t, mp_text_op_t *op) {
  mp_text_list_t values = {0};
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
    MP_RETURN_IF_ERROR(mp_text_list_add(t, &values, sizeof(value), &value));
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

static mp_status_t read_window_item(mp_text_t *t, mp_text_op_t *op) {
  static const struct {
    const char *key;
    mp_attr_name_t name;
  } items[] = {{"stride", MP_ATTR_WINDOW_STRIDES},
               {"lhs_dilate", MP_ATTR_LHS_DILATION},
               {"rhs_dilate", MP_ATTR_RHS_DILATION}};
  for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
    if (!mp_text_accept_word(t, items[i].key)) continue;
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    return read_key_value(t, op, items[i].name);
  }
  bool pad = mp_text_accept_word(t, "pad");
  if (!pad && !mp_text_accept_word(t, "reverse"))
    return mp_text_expected(t, "stride, pad, lhs_dilate, rhs_dilate or reverse");
  MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
  return pad ? read_padding(t, op) : read_reversal(t, op);
}

static mp_status_t read_convolution(mp_text_t *t, mp_text_op_t *op) {
  const mp_attr_t *numbers = NULL;
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  MP_RETURN_IF_ERROR(mp_text_operands(t, op));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  MP_RETURN_IF_ERROR(expect_key(t, "dim_numbers", false));
  MP_RETURN_IF_ERROR(mp_text_conv_numbers(t, &numbers));
  MP_RETURN_IF_ERROR(add_items(t, op, numbers));
  MP_RETURN_IF_ERROR(expect_key(t, "window", true));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '{'));
  for (bool first = true; !mp_text_is(t, '}'); first = false) {
    if (!first) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(read_window_item(t, op));
  }
  mp_text_advance(t);
  return mp_text_op_types(t, op);
}

// --- calls, tuples, barriers ---

// %t[1] : FN
static mp_status_t read_get_tuple_element(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(mp_text_operand(t, op));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '['));
  MP_RETURN_IF_ERROR(read_key_value(t, op, MP_ATTR_INDEX));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ']'));
  return mp_text_op_types(t, op);
}

// %a, %b : T, T; or ()
static mp_status_t read_optimization_barrier(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(mp_text_op_dict(t, op));
  if (mp_text_accept(t, '(')) return mp_text_expect(t, ')');
  MP_RETURN_IF_ERROR(mp_text_operands(t, op));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  MP_RETURN_IF_ERROR(read_operand_types(t, op));
  op->types.results = op->types.inputs;
  op->types.num_results = op->types.num_inputs;
  return NULL;
}

// @name(%a, %b) : FN
static mp_status_t read_named_call(mp_text_t *t, mp_text_op_t *op, mp_attr_name_t name) {
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

static mp_status_t read_custom_call(mp_text_t *t, mp_text_op_t *op) {
  return read_named_call(t, op, MP_ATTR_CALL_TARGET_NAME);
}

static mp_status_t read_call(mp_text_t *t, mp_text_op_t *op) {
  return read_named_call(t, op, MP_ATTR_CALLEE);
}

// "name" %a, %b ({...})? : FN
static mp_status_t read_composite(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(read_key_value(t, op, MP_ATTR_NAME));
  MP_RETURN_IF_ERROR(mp_text_operands(t, op));
  if (mp_text_accept(t, '(')) {
    do {
      mp_block_t *block = NULL;
      MP_RETURN_IF_ERROR(mp_text_generic_region(t, false, &block));
      MP_RETURN_IF_ERROR(mp_text_list_add(t, &op->regions, sizeof(block), &block));
    } while (mp_text_accept(t, ','));
    MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  }
  return mp_text_op_types(t, op);
}

static mp_status_t read_return(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(mp_text_op_dict(t, op));
  MP_RETURN_IF_ERROR(mp_text_operands(t, op));
  if (num_operands(op) == 0) return NULL;
  MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  return read_operand_types(t, op);
}

// --- with regions ---

// A region whose arguments are known; it ends the names' scope.
static mp_status_t read_region(mp_text_t *t, mp_text_op_t *op, bool isolated,
                               const mp_text_list_t *names, const mp_text_list_t *types) {
  mp_block_t *block = NULL;
  mp_text_scope_t scope = mp_text_open_scope(t, isolated);
  MP_RETURN_IF_ERROR(mp_text_make_block(t, names, types, &block));
  MP_RETURN_IF_ERROR(mp_text_region_of(t, block));
  mp_text_close_scope(t, scope);
  return mp_text_list_add(t, &op->regions, sizeof(block), &block);
}

// (%arg = %init, ...) : T, ... attributes {...} cond {...} do {...}
static mp_status_t read_while(mp_text_t *t, mp_text_op_t *op) {
  mp_text_list_t names = {0};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  while (!mp_text_is(t, ')')) {
    if (names.count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    if (t->tok.kind != MP_TOKEN_VALUE) return mp_text_expected(t, "an argument '%name'");
    MP_RETURN_IF_ERROR(mp_text_list_add(t, &names, sizeof(t->tok), &t->tok));
    mp_text_advance(t);
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(mp_text_operand(t, op));
  }
  mp_text_advance(t);
  if (names.count > 0) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
    MP_RETURN_IF_ERROR(read_operand_types(t, op));
    if (op->types.num_inputs != names.count) return mp_text_expected(t, "a type per argument");
  }
  op->types.results = op->types.inputs;
  op->types.num_results = op->types.num_inputs;
  if (mp_text_accept_word(t, "attributes")) MP_RETURN_IF_ERROR(mp_text_op_dict(t, op));
  mp_text_list_t types = {op->types.inputs, op->types.num_inputs, 0};
  MP_RETURN_IF_ERROR(mp_text_expect_word(t, "cond"));
  MP_RETURN_IF_ERROR(read_region(t, op, false, &names, &types));
  MP_RETURN_IF_ERROR(mp_text_expect_word(t, "do"));
  return read_region(t, op, false, &names, &types);
}

// --- reduce ---

// (%x init: %a), (%y init: %b)
static mp_status_t read_reduce_inputs(mp_text_t *t, mp_text_op_t *op) {
  mp_text_op_t inits = {0};
  do {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
    MP_RETURN_IF_ERROR(mp_text_operand(t, op));
    MP_RETURN_IF_ERROR(mp_text_expect_word(t, "init"));
    MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
    MP_RETURN_IF_ERROR(mp_text_operand(t, &inits));
    MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  } while (mp_text_accept(t, ','));
  mp_value_t *const *values = inits.operands.items;
  for (uint32_t i = 0; i < inits.operands.count; i++)
    MP_RETURN_IF_ERROR(mp_text_list_add(t, &op->operands, sizeof(values[i]), &values[i]));
  return NULL;
}

// `applies stablehlo.add`: the body is that op on two scalars of the input's element type.
static mp_status_t make_reducer(mp_text_t *t, mp_text_op_t *op, const mp_token_t *token,
                                mp_opcode_t code) {
  const mp_type_t *input = operand_type(op, 0), *scalar;
  if (!mp_type_is_tensor(input) || num_operands(op) != 2)
    return mp_text_error(t, token, MP_INVALID_ARGUMENT, "'applies' is for one tensor");
  MP_RETURN_IF_ERROR(mp_type_tensor(t->arena, input->dtype, NULL, 0, &scalar));
  const mp_type_t *types[] = {scalar, scalar};
  mp_block_t *block = NULL;
  MP_RETURN_IF_ERROR(mp_block_create(t->module, 2, types, &block));
  mp_value_t *args[] = {&block->args[0], &block->args[1]};
  mp_op_spec_t spec = {
      .code = code, .num_operands = 2, .operands = args, .num_results = 1, .result_types = types};
  mp_op_t *inner, *end;
  MP_RETURN_IF_ERROR(mp_op_create(t->module, &spec, &inner));
  mp_block_append(block, inner);
  mp_value_t *result = &inner->results[0];
  mp_op_spec_t end_spec = {.code = MP_OP_RETURN, .num_operands = 1, .operands = &result};
  MP_RETURN_IF_ERROR(mp_op_create(t->module, &end_spec, &end));
  mp_block_append(block, end);
  return mp_text_list_add(t, &op->regions, sizeof(block), &block);
}

static mp_status_t read_applied(mp_text_t *t, mp_text_op_t *op) {
  mp_token_t token = t->tok;
  mp_opcode_t code;
  if (token.kind != MP_TOKEN_WORD || !mp_opcode_from_name(token.text, &code) ||
      (mp_op_info(code)->traits & MP_OP_TRAIT_BINARY) == 0 ||
      mp_form_of(code)->types != MP_FORM_SAME)
    return mp_text_expected(t, "a binary operation");
  mp_text_advance(t);
  return make_reducer(t, op, &token, code);
}

// (%a: T, %b: T): a pair of the reducer's arguments, kept apart by side.
static mp_status_t read_reducer_pair(mp_text_t *t, mp_text_list_t names[2],
                                     mp_text_list_t types[2]) {
  mp_text_list_t pair_names = {0}, pair_types = {0};
  MP_RETURN_IF_ERROR(mp_text_block_args(t, &pair_names, &pair_types));
  if (pair_names.count != 2)
    return mp_text_error(t, &t->last, MP_INVALID_ARGUMENT, "expected two arguments per input");
  for (int side = 0; side < 2; side++) {
    MP_RETURN_IF_ERROR(mp_text_list_add(t, &names[side], sizeof(mp_token_t),
                                        (mp_token_t *)pair_names.items + side));
    MP_RETURN_IF_ERROR(mp_text_list_add(t, &types[side], sizeof(const mp_type_t *),
                                        (const mp_type_t **)pair_types.items + side));
  }
  return NULL;
}

// reducer(%a: T, %b: T) (%c: T, %d: T) {...}
static mp_status_t read_reducer(mp_text_t *t, mp_text_op_t *op) {
  mp_text_list_t names[2] = {{0}, {0}}, types[2] = {{0}, {0}};
  MP_RETURN_IF_ERROR(mp_text_expect_word(t, "reducer"));
  do MP_RETURN_IF_ERROR(read_reducer_pair(t, names, types));
  while (mp_text_is(t, '('));
  // In the block all left sides come before all right sides.
  const mp_token_t *right_names = names[1].items;
  const mp_type_t *const *right_types = types[1].items;
  for (uint32_t i = 0; i < names[1].count; i++) {
    MP_RETURN_IF_ERROR(mp_text_list_add(t, &names[0], sizeof(right_names[i]), &right_names[i]));
    MP_RETURN_IF_ERROR(mp_text_list_add(t, &types[0], sizeof(right_types[i]), &right_types[i]));
  }
  return read_region(t, op, false, &names[0], &types[0]);
}

static mp_status_t read_reduce(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(read_reduce_inputs(t, op));
  bool compact = mp_text_accept_word(t, "applies");
  if (compact) MP_RETURN_IF_ERROR(read_applied(t, op));
  MP_RETURN_IF_ERROR(mp_text_expect_word(t, "across"));
  MP_RETURN_IF_ERROR(expect_key(t, "dimensions", false));
  MP_RETURN_IF_ERROR(read_key_value(t, op, MP_ATTR_DIMENSIONS));
  MP_RETURN_IF_ERROR(mp_text_op_types(t, op));
  return compact ? NULL : read_reducer(t, op);
}

// --- Shardy ---

static mp_status_t read_attr_sharding(mp_text_t *t, mp_text_op_t *op, mp_attr_name_t name) {
  const mp_attr_t *sharding = NULL;
  MP_RETURN_IF_ERROR(mp_text_sharding(t, &sharding));
  return mp_text_op_attr(t, op, name, sharding);
}

// %x <@mesh, [...]> : T
static mp_status_t read_sharding_constraint(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(mp_text_operand(t, op));
  MP_RETURN_IF_ERROR(read_attr_sharding(t, op, MP_ATTR_SHARDING));
  return read_types(t, op, MP_FORM_OPERAND);
}

static mp_status_t read_data_flow_edge(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(mp_text_operand(t, op));
  if (mp_text_accept_word(t, "sharding")) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(read_attr_sharding(t, op, MP_ATTR_SHARDING));
  }
  return read_types(t, op, MP_FORM_OPERAND);
}

static mp_status_t read_sharding_group(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(mp_text_operand(t, op));
  MP_RETURN_IF_ERROR(expect_key(t, "group_id", false));
  MP_RETURN_IF_ERROR(read_key_value(t, op, MP_ATTR_GROUP_ID));
  return read_types(t, op, MP_FORM_OPERAND);
}

static mp_status_t read_propagation_barrier(mp_text_t *t, mp_text_op_t *op) {
  static const char *const directions[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"};
  MP_RETURN_IF_ERROR(mp_text_operand(t, op));
  MP_RETURN_IF_ERROR(expect_key(t, "allowed_direction", false));
  int direction = 0;
  while (direction < 4 && !mp_text_is_word(t, directions[direction])) direction++;
  if (direction == 4) return mp_text_expected(t, "NONE, FORWARD, BACKWARD or BOTH");
  mp_text_advance(t);
  const mp_attr_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_int(t->arena, MP_DTYPE_S32, direction, &value));
  MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, MP_ATTR_ALLOWED_DIRECTION, value));
  return read_types(t, op, MP_FORM_OPERAND);
}

// axes? %x out_sharding=<...> : T
static mp_status_t read_sdy_collective(mp_text_t *t, mp_text_op_t *op) {
  mp_schema_t schema = mp_schema_of(op->code);
  for (uint32_t i = 0; i < schema.count; i++) {
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
  MP_RETURN_IF_ERROR(expect_key(t, "out_sharding", false));
  MP_RETURN_IF_ERROR(read_attr_sharding(t, op, MP_ATTR_OUT_SHARDING));
  return read_types(t, op, MP_FORM_OPERAND);
}

// in_shardings=[...], out_shardings=[...], manual_axes={...}, each if there
static mp_status_t read_computation_attrs(mp_text_t *t, mp_text_op_t *op) {
  const mp_attr_t *value = NULL;
  if (accept_key(t, "in_shardings", false)) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(mp_text_shardings(t, &value));
    MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, MP_ATTR_IN_SHARDINGS, value));
  }
  if (accept_key(t, "out_shardings", false)) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(mp_text_shardings(t, &value));
    MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, MP_ATTR_OUT_SHARDINGS, value));
  }
  if (accept_key(t, "manual_axes", false)) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(mp_text_axes_attr(t, &value));
    MP_RETURN_IF_ERROR(mp_text_op_attr(t, op, MP_ATTR_MANUAL_AXES, value));
  }
  return NULL;
}

// (%x) in_shardings=[...] ... (%arg: T) {...} : FN; a named one has <"name"> in front.
static mp_status_t read_computation(mp_text_t *t, mp_text_op_t *op) {
  bool manual = op->code == MP_OP_SDY_MANUAL_COMPUTATION;
  if (!manual) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
    MP_RETURN_IF_ERROR(read_key_value(t, op, MP_ATTR_NAME));
    MP_RETURN_IF_ERROR(mp_text_expect(t, '>'));
  }
  mp_text_list_t names = {0}, types = {0};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  MP_RETURN_IF_ERROR(mp_text_operands(t, op));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  MP_RETURN_IF_ERROR(read_computation_attrs(t, op));
  MP_RETURN_IF_ERROR(mp_text_block_args(t, &names, &types));
  MP_RETURN_IF_ERROR(read_region(t, op, manual, &names, &types));
  return mp_text_op_types(t, op);
}

// --- choice ---

typedef mp_status_t (*special_reader_t)(mp_text_t *t, mp_text_op_t *op);

static const special_reader_t specials[MP_OP_COUNT] = {
    [MP_OP_CONSTANT] = read_constant,
    [MP_OP_SLICE] = read_slice,
    [MP_OP_COMPARE] = read_compare,
    [MP_OP_REDUCE_PRECISION] = read_reduce_precision,
    [MP_OP_DOT_GENERAL] = read_dot_general,
    [MP_OP_CONVOLUTION] = read_convolution,
    [MP_OP_GET_TUPLE_ELEMENT] = read_get_tuple_element,
    [MP_OP_OPTIMIZATION_BARRIER] = read_optimization_barrier,
    [MP_OP_CUSTOM_CALL] = read_custom_call,
    [MP_OP_CALL] = read_call,
    [MP_OP_COMPOSITE] = read_composite,
    [MP_OP_RETURN] = read_return,
    [MP_OP_WHILE] = read_while,
    [MP_OP_REDUCE] = read_reduce,
    [MP_OP_SDY_CONSTANT] = read_constant,
    [MP_OP_SDY_SHARDING_CONSTRAINT] = read_sharding_constraint,
    [MP_OP_SDY_RESHARD] = read_sharding_constraint,
    [MP_OP_SDY_DATA_FLOW_EDGE] = read_data_flow_edge,
    [MP_OP_SDY_SHARDING_GROUP] = read_sharding_group,
    [MP_OP_SDY_PROPAGATION_BARRIER] = read_propagation_barrier,
    [MP_OP_SDY_ALL_GATHER] = read_sdy_collective,
    [MP_OP_SDY_ALL_REDUCE] = read_sdy_collective,
    [MP_OP_SDY_ALL_SLICE] = read_sdy_collective,
    [MP_OP_SDY_ALL_TO_ALL] = read_sdy_collective,
    [MP_OP_SDY_COLLECTIVE_PERMUTE] = read_sdy_collective,
    [MP_OP_SDY_REDUCE_SCATTER] = read_sdy_collective,
    [MP_OP_SDY_REPLICATED_TO_UNREDUCED] = read_sdy_collective,
    [MP_OP_SDY_SHARDED_TO_UNREDUCED] = read_sdy_collective,
    [MP_OP_SDY_MANUAL_COMPUTATION] = read_computation,
    [MP_OP_SDY_NAMED_COMPUTATION] = read_computation,
};

mp_status_t mp_text_pretty(mp_text_t *t, mp_text_op_t *op) {
  // The identity reads like a unary operation.
  static const mp_form_t identity = {.types = MP_FORM_SAME};
  if (op->code == MP_OP_COUNT) return read_regular(t, op, &identity);
  const mp_form_t *form = mp_form_of(op->code);
  if (form->types == MP_FORM_GENERIC)
    return mp_text_error(t, &op->token, MP_INVALID_ARGUMENT,
                         "'%.*s' has the generic form only: write \"%.*s\"(...)",
                         MP_STR_ARG(op->token.text), MP_STR_ARG(op->token.text));
  if (form->types != MP_FORM_SPECIAL) return read_regular(t, op, form);
  return specials[op->code](t, op);
}
