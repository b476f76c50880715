// Pretty forms: types and keys.
#include "sim/readers/text/text_forms.h"

// ---- types ----

uint32_t mp_form_num_operands(const mp_text_op_t *op) {
  return op->operands.count;
}

const mp_type_t *mp_form_operand_type(const mp_text_op_t *op, uint32_t i) {
  return op->operands.items[i]->type;
}

// Gives all operands and `num_results` results the type `type`.
static mp_status_t text_forms_set_types(mp_text_t *t, mp_text_op_t *op, const mp_type_t *type,
                                        uint32_t num_results) {
  uint32_t count = mp_form_num_operands(op) > num_results ? mp_form_num_operands(op) : num_results;
  const mp_type_t **types = MP_ARENA_ARRAY(t->scratch, const mp_type_t *, count);
  MP_RETURN_IF_NULL(types);
  for (uint32_t i = 0; i < count; ++i) types[i] = type;
  op->types = (mp_text_signature_t){types, mp_form_num_operands(op), types, num_results};
  return NULL;
}

// Gives the operands the types that they have where they were defined.
static mp_status_t text_forms_set_operand_types(mp_text_t *t, mp_text_op_t *op) {
  const mp_type_t **types = MP_ARENA_ARRAY(t->scratch, const mp_type_t *, mp_form_num_operands(op));
  MP_RETURN_IF_NULL(types);
  for (uint32_t i = 0; i < mp_form_num_operands(op); ++i) types[i] = mp_form_operand_type(op, i);
  op->types.inputs = types;
  op->types.num_inputs = mp_form_num_operands(op);
  return NULL;
}

mp_status_t mp_form_set_result_type(mp_text_t *t, mp_text_op_t *op, const mp_type_t *type) {
  op->types.results = mp_arena_copy(t->scratch, &type, sizeof(const mp_type_t *));
  MP_RETURN_IF_NULL(op->types.results);
  op->types.num_results = 1;
  return NULL;
}

mp_status_t mp_form_operand_types(mp_text_t *t, mp_text_op_t *op) {
  mp_text_types_t types = {0};
  do {
    const mp_type_t *type = NULL;
    MP_RETURN_IF_ERROR(mp_text_type(t, &type));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &types, type));
  } while (mp_text_accept(t, ','));
  op->types.inputs = types.items;
  op->types.num_inputs = types.count;
  return NULL;
}

// T, T: the type of the predicate and that of both values.
static mp_status_t text_forms_read_select_types(mp_text_t *t, mp_text_op_t *op) {
  if (mp_form_num_operands(op) != 3) return mp_text_expected(t, "three operands");
  const mp_type_t *predicate, *value;
  MP_RETURN_IF_ERROR(mp_text_type(t, &predicate));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
  MP_RETURN_IF_ERROR(mp_text_type(t, &value));
  MP_RETURN_IF_ERROR(text_forms_set_types(t, op, value, 1));
  const mp_type_t *inputs[] = {predicate, value, value};
  op->types.inputs = mp_arena_copy(t->scratch, inputs, sizeof(inputs));
  MP_RETURN_IF_NULL(op->types.inputs);
  return NULL;
}

static mp_status_t text_forms_read_complex_types(mp_text_t *t, mp_text_op_t *op) {
  mp_token_t token = t->tok;
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_text_type(t, &type));
  if (!mp_type_is_tensor(type) || !mp_dtype_is_complex(type->dtype))
    return mp_text_error(t, &token, MP_INVALID_ARGUMENT, "expected a tensor of complex numbers");
  const mp_type_t *part = NULL;
  MP_RETURN_IF_ERROR(
      mp_type_tensor(t->arena, mp_dtype_real_part(type->dtype), type->dims, type->rank, &part));
  MP_RETURN_IF_ERROR(text_forms_set_types(t, op, part, 0));
  return mp_form_set_result_type(t, op, type);
}

mp_status_t mp_form_types(mp_text_t *t, mp_text_op_t *op, mp_form_types_t form) {
  MP_RETURN_IF_ERROR(mp_text_op_dict(t, op));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  if (mp_text_is(t, '(') || form == MP_FORM_FUNCTION) return mp_text_signature(t, &op->types);
  if (form == MP_FORM_SELECT) return text_forms_read_select_types(t, op);
  if (form == MP_FORM_COMPLEX) return text_forms_read_complex_types(t, op);
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_text_type(t, &type));
  if (form == MP_FORM_RESULT) {
    MP_RETURN_IF_ERROR(text_forms_set_operand_types(t, op));
    return mp_form_set_result_type(t, op, type);
  }
  uint32_t num_results = form == MP_FORM_OPERAND && mp_op_info(op->code)->num_results == 0 ? 0 : 1;
  return text_forms_set_types(t, op, type, num_results);
}

// ---- values behind keys ----

mp_status_t mp_form_enum_word(mp_text_t *t, mp_enum_kind_t kind, const mp_attr_t **out_attr) {
  int value = t->tok.kind == MP_TOKEN_WORD ? mp_enum_value_from_name(kind, t->tok.text) : -1;
  if (value < 0) return mp_text_expected(t, "an enumeration's value");
  mp_text_advance(t);
  return mp_attr_make_enum(t->arena, kind, (uint32_t)value, out_attr);
}

static mp_status_t text_forms_read_precision(mp_text_t *t, const mp_attr_t **out_attr) {
  return mp_form_enum_word(t, MP_ENUM_PRECISION, out_attr);
}

// [DEFAULT, HIGHEST]
static mp_status_t text_forms_read_precisions(mp_text_t *t, const mp_attr_t **out_attr) {
  return mp_text_array(t, text_forms_read_precision, out_attr);
}

mp_status_t mp_form_key_value(mp_text_t *t, mp_text_op_t *op, mp_attr_name_t name) {
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
      // mp_text_attr would take a colon behind the string as the beginning of the string's type,
      // but here the colon belongs to the op.
      mp_str_t text;
      MP_RETURN_IF_ERROR(mp_text_string(t, &text));
      MP_RETURN_IF_ERROR(mp_attr_make_string(t->arena, text, &value));
      break;
    }
    case MP_KIND_ENUM:
      MP_RETURN_IF_ERROR(mp_form_enum_word(t, row->enum_kind, &value));
      break;
    case MP_KIND_ARRAY:
      MP_RETURN_IF_ERROR(text_forms_read_precisions(t, &value));
      break;
    default:
      MP_RETURN_IF_ERROR(mp_text_attr(t, &value));
      break;
  }
  return mp_text_op_attr(t, op, name, value);
}

bool mp_form_accept_key(mp_text_t *t, const char *key, bool comma) {
  mp_token_t next = comma ? mp_text_peek(t) : t->tok;
  if (comma && !mp_text_is(t, ',')) return false;
  if (next.kind != MP_TOKEN_WORD || !mp_str_is(next.text, key)) return false;
  if (comma) mp_text_advance(t);
  mp_text_advance(t);
  return true;
}

mp_status_t mp_form_expect_key(mp_text_t *t, const char *key, bool comma) {
  if (!mp_form_accept_key(t, key, comma)) {
    mp_strbuf_t text;
    mp_strbuf_init(&text);
    mp_strbuf_printf(&text, "%s%s =", comma ? ", " : "", key);
    mp_status_t status = mp_text_expected(t, mp_strbuf_text(&text));
    mp_strbuf_deinit(&text);
    return status;
  }
  return mp_text_expect(t, '=');
}
