// Operations, blocks and regions: reads an op's results and its generic form, and makes the op of
// the IR.
#include "sim/readers/text/text_parser.h"

// ---- parts that forms share ----

mp_status_t mp_text_operand(mp_text_t *t, mp_text_op_t *op) {
  mp_value_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_text_use(t, &value));
  return MP_ARRAY_PUSH(t->scratch, &op->operands, value);
}

mp_status_t mp_text_operands(mp_text_t *t, mp_text_op_t *op) {
  if (t->tok.kind != MP_TOKEN_VALUE) return NULL;
  while (true) {
    MP_RETURN_IF_ERROR(mp_text_operand(t, op));
    if (!mp_text_is(t, ',') || mp_text_peek(t).kind != MP_TOKEN_VALUE) return NULL;
    mp_text_advance(t);
  }
}

mp_status_t mp_text_op_dict(mp_text_t *t, mp_text_op_t *op) {
  if (!mp_text_is(t, '{')) return NULL;
  return mp_text_dict_items(t, &op->attrs);
}

mp_status_t mp_text_op_attr(mp_text_t *t, mp_text_op_t *op, mp_attr_name_t name,
                            const mp_attr_t *value) {
  mp_named_attr_t attr = {name, mp_str(mp_attr_name_text(name)), value};
  return MP_ARRAY_PUSH(t->scratch, &op->attrs, attr);
}

mp_status_t mp_text_op_ints(mp_text_t *t, mp_text_op_t *op, mp_attr_name_t name,
                            mp_index_list_t values) {
  const mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_ints(t->arena, values.values, values.count, &attr));
  return mp_text_op_attr(t, op, name, attr);
}

mp_status_t mp_text_op_types(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(mp_text_op_dict(t, op));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  return mp_text_signature(t, &op->types);
}

// ---- blocks ----

mp_status_t mp_text_block_args(mp_text_t *t, mp_text_tokens_t *names, mp_text_types_t *types) {
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  for (bool first = true; !mp_text_is(t, ')'); first = false) {
    const mp_type_t *type = NULL;
    const mp_loc_t *loc = NULL;
    if (!first) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    if (t->tok.kind != MP_TOKEN_VALUE) return mp_text_expected(t, "an argument '%name'");
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, names, t->tok));
    mp_text_advance(t);
    MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
    MP_RETURN_IF_ERROR(mp_text_type(t, &type));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, types, type));
    MP_RETURN_IF_ERROR(mp_text_optional_loc(t, &loc));
  }
  mp_text_advance(t);
  return NULL;
}

mp_status_t mp_text_define_args(mp_text_t *t, const mp_text_tokens_t *names, mp_block_t *block) {
  mp_value_t **values = MP_ARENA_ARRAY(t->scratch, mp_value_t *, block->num_args);
  MP_RETURN_IF_NULL(values);
  for (uint32_t i = 0; i < names->count; ++i) {
    values[i] = &block->args[i];
    MP_RETURN_IF_ERROR(mp_text_define(t, &names->items[i], &values[i], 1));
  }
  return NULL;
}

mp_status_t mp_text_make_block(mp_text_t *t, const mp_text_tokens_t *names,
                               const mp_text_types_t *types, mp_block_t **out_block) {
  mp_block_t *block = NULL;
  MP_RETURN_IF_ERROR(mp_block_create(t->module, types->count, types->items, &block));
  MP_RETURN_IF_ERROR(mp_text_define_args(t, names, block));
  *out_block = block;
  return NULL;
}

static mp_status_t text_ops_read_all(mp_text_t *t, mp_block_t *block);

mp_status_t mp_text_region_of(mp_text_t *t, mp_block_t *block) {
  MP_RETURN_IF_ERROR(mp_text_expect(t, '{'));
  MP_RETURN_IF_ERROR(text_ops_read_all(t, block));
  return mp_text_expect(t, '}');
}

mp_status_t mp_text_generic_region(mp_text_t *t, bool isolated, mp_block_t **out_block) {
  mp_text_tokens_t names = {0};
  mp_text_types_t types = {0};
  mp_text_scope_t scope = mp_text_open_scope(t, isolated);
  MP_RETURN_IF_ERROR(mp_text_expect(t, '{'));
  if (t->tok.kind == MP_TOKEN_CARET) {
    mp_text_advance(t);
    if (mp_text_is(t, '(')) MP_RETURN_IF_ERROR(mp_text_block_args(t, &names, &types));
    MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  }
  MP_RETURN_IF_ERROR(mp_text_make_block(t, &names, &types, out_block));
  MP_RETURN_IF_ERROR(text_ops_read_all(t, *out_block));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '}'));
  mp_text_close_scope(t, scope);
  return NULL;
}

// ---- the generic form ----

static mp_status_t text_ops_read_generic(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  MP_RETURN_IF_ERROR(mp_text_operands(t, op));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  if (mp_text_is(t, '['))
    return mp_text_error(t, &t->tok, MP_UNIMPLEMENTED, "branches between blocks are not supported");
  if (mp_text_accept(t, '<')) {
    MP_RETURN_IF_ERROR(mp_text_dict_items(t, &op->attrs));
    MP_RETURN_IF_ERROR(mp_text_expect(t, '>'));
  }
  if (mp_text_accept(t, '(')) {
    do {
      mp_block_t *block = NULL;
      bool isolated = op->code != MP_OP_COUNT && mp_opcode_has(op->code, MP_OP_TRAIT_ISOLATED);
      MP_RETURN_IF_ERROR(mp_text_generic_region(t, isolated, &block));
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &op->regions, block));
    } while (mp_text_accept(t, ','));
    MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  }
  return mp_text_op_types(t, op);
}

// ---- names ----

// Ops with other names in the text than in the IR. MP_OP_COUNT marks casts, which become nothing:
// their results are their operands.
static const struct {
  const char *text;
  mp_opcode_t code;
} aliases[] = {
    {"return", MP_OP_RETURN},     {"func.return", MP_OP_RETURN},
    {"sdy.return", MP_OP_RETURN}, {"call", MP_OP_CALL},
    {"mhlo.copy", MP_OP_COUNT},   {"builtin.unrealized_conversion_cast", MP_OP_COUNT},
};

static mp_status_t text_ops_find_op(mp_text_t *t, const mp_token_t *token, mp_str_t name,
                                    mp_opcode_t *out_code) {
  for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); ++i) {
    if (!mp_str_is(name, aliases[i].text)) continue;
    *out_code = aliases[i].code;
    return NULL;
  }
  if (mp_opcode_from_name(name, out_code)) return NULL;
  return mp_text_error(t, token, MP_UNIMPLEMENTED, "the operation '%.*s' is not known",
                       MP_STR_ARG(name));
}

// ---- making the op ----

static mp_status_t text_ops_check_operands(mp_text_t *t, const mp_text_op_t *op) {
  if (op->types.num_inputs != op->operands.count)
    return mp_text_error(t, &op->token, MP_INVALID_ARGUMENT,
                         "%.*s has %u operands, but %u types for them", MP_STR_ARG(op->token.text),
                         op->operands.count, op->types.num_inputs);
  mp_value_t *const *values = op->operands.items;
  for (uint32_t i = 0; i < op->operands.count; ++i) {
    if (mp_type_equal(values[i]->type, op->types.inputs[i])) continue;
    mp_strbuf_t text;
    mp_strbuf_init(&text);
    mp_type_print(values[i]->type, &text);
    mp_strbuf_puts(&text, ", here ");
    mp_type_print(op->types.inputs[i], &text);
    mp_status_t status =
        mp_text_error(t, &op->token, MP_INVALID_ARGUMENT, "operand %u of %.*s was defined as %s", i,
                      MP_STR_ARG(op->token.text), mp_strbuf_text(&text));
    mp_strbuf_deinit(&text);
    return status;
  }
  return NULL;
}

static mp_status_t text_ops_finish_identity(mp_text_t *t, const mp_text_op_t *op,
                                            const mp_text_result_names_t *names) {
  const mp_loc_t *loc = NULL;
  bool same = op->types.num_results == op->operands.count && op->regions.count == 0;
  for (uint32_t i = 0; same && i < op->types.num_results; ++i)
    same = mp_type_equal(op->types.inputs[i], op->types.results[i]);
  if (!same)
    return mp_text_error(t, &op->token, MP_UNIMPLEMENTED, "%.*s changes the type of a value",
                         MP_STR_ARG(op->token.text));
  MP_RETURN_IF_ERROR(mp_text_optional_loc(t, &loc));
  return mp_text_define_results(t, op->token.text, names, op->operands.items, op->operands.count);
}

static mp_status_t text_ops_finish_op(mp_text_t *t, const mp_text_op_t *op,
                                      const mp_text_result_names_t *names, mp_block_t *block) {
  mp_op_spec_t spec = {.code = op->code,
                       .num_operands = op->operands.count,
                       .operands = op->operands.items,
                       .num_results = op->types.num_results,
                       .result_types = op->types.results,
                       .num_regions = op->regions.count,
                       .regions = op->regions.items};
  mp_named_attr_t *attrs;
  MP_RETURN_IF_ERROR(mp_text_normalize(t, op, &attrs, &spec.num_attrs));
  spec.attrs = attrs;
  MP_RETURN_IF_ERROR(mp_text_loc_or_place(t, &op->token, MP_STR("<text>"), &spec.loc));
  mp_op_t *made = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(t->module, &spec, &made));
  mp_block_append(block, made);
  mp_value_t **values = MP_ARENA_ARRAY(t->scratch, mp_value_t *, made->num_results);
  MP_RETURN_IF_NULL(values);
  for (uint32_t i = 0; i < made->num_results; ++i) values[i] = &made->results[i];
  return mp_text_define_results(t, op->token.text, names, values, made->num_results);
}

static mp_status_t text_ops_read_op(mp_text_t *t, mp_block_t *block) {
  mp_text_result_names_t names = {0};
  MP_RETURN_IF_ERROR(mp_text_result_names(t, &names));
  mp_text_op_t op = {.token = t->tok};
  bool generic = t->tok.kind == MP_TOKEN_STRING;
  mp_str_t name = t->tok.text;
  if (generic) {
    // The name is quoted. Names of ops have no escapes.
    name = (mp_str_t){name.data + 1, name.size - 2};
    op.token.text = name;
  } else if (t->tok.kind != MP_TOKEN_WORD) {
    return mp_text_expected(t, "an operation");
  }
  MP_RETURN_IF_ERROR(text_ops_find_op(t, &op.token, name, &op.code));
  mp_text_advance(t);
  if (generic || (op.code == MP_OP_COUNT && mp_text_is(t, '(')))
    MP_RETURN_IF_ERROR(text_ops_read_generic(t, &op));
  else
    MP_RETURN_IF_ERROR(t->pretty(t, &op));
  MP_RETURN_IF_ERROR(text_ops_check_operands(t, &op));
  if (op.code == MP_OP_COUNT) return text_ops_finish_identity(t, &op, &names);
  return text_ops_finish_op(t, &op, &names, block);
}

// The ops of a block up to its '}', which is not taken.
static mp_status_t text_ops_read_all(mp_text_t *t, mp_block_t *block) {
  MP_RETURN_IF_ERROR(mp_text_enter(t));
  while (!mp_text_is(t, '}') && t->tok.kind != MP_TOKEN_END) {
    if (t->tok.kind == MP_TOKEN_CARET)
      return mp_text_error(t, &t->tok, MP_UNIMPLEMENTED, "a region has more than one block");
    MP_RETURN_IF_ERROR(text_ops_read_op(t, block));
  }
  mp_text_leave(t);
  return NULL;
}
