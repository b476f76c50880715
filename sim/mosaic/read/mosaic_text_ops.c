// Ops, blocks and regions, in the generic form.
#include "sim/mosaic/read/mosaic_text.h"

// An op while it is read; the lists are in scratch.
typedef struct {
  mp_token_t token;  // its name
  mp_text_result_names_t results;
  MP_ARRAY(mp_mosaic_value_t *) operands;
  MP_ARRAY(mp_mosaic_block_t *) regions;
  mp_mosaic_items_t attrs;
  const mp_mosaic_type_t *type;  // (operands) -> results
  const mp_loc_t *loc;
} op_t;

// ---- parts ----

static mp_status_t mosaic_text_ops_read_operands(mp_text_t *t, op_t *op) {
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  while (!mp_text_accept(t, ')')) {
    mp_mosaic_value_t *value = NULL;
    if (op->operands.count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(mp_text_use(t, &value));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &op->operands, value));
  }
  return NULL;
}

static mp_status_t mosaic_text_ops_read_regions(mp_text_t *t, op_t *op) {
  if (!mp_text_accept(t, '(')) return NULL;
  do {
    mp_mosaic_block_t *block = NULL;
    MP_RETURN_IF_ERROR(mp_mosaic_text_region(t, false, &block));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &op->regions, block));
  } while (mp_text_accept(t, ','));
  return mp_text_expect(t, ')');
}

// "name"(%a) <{...}> ({...}) {...} : (T) -> T loc(...), from behind the name.
static mp_status_t mosaic_text_ops_read_parts(mp_text_t *t, op_t *op) {
  MP_RETURN_IF_ERROR(mosaic_text_ops_read_operands(t, op));
  if (mp_text_is(t, '['))
    return mp_text_error(t, &t->tok, MP_UNIMPLEMENTED, "branches between blocks are not supported");
  if (mp_text_accept(t, '<')) {
    MP_RETURN_IF_ERROR(mp_mosaic_text_dict(t, &op->attrs));
    MP_RETURN_IF_ERROR(mp_text_expect(t, '>'));
  }
  MP_RETURN_IF_ERROR(mosaic_text_ops_read_regions(t, op));
  if (mp_text_is(t, '{')) MP_RETURN_IF_ERROR(mp_mosaic_text_dict(t, &op->attrs));
  MP_RETURN_IF_ERROR(mp_mosaic_text_sort(t, &op->token, &op->attrs));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  MP_RETURN_IF_ERROR(mp_mosaic_text_function(t, &op->type));
  return mp_text_loc_or_place(t, &op->token, MP_STR("<mosaic>"), &op->loc);
}

// ---- making the op ----

static mp_status_t mosaic_text_ops_check_types(mp_text_t *t, const op_t *op) {
  if (op->type->num_inputs != op->operands.count)
    return mp_text_error(t, &op->token, MP_INVALID_ARGUMENT,
                         "%.*s has %u operands, but %u types for them", MP_STR_ARG(op->token.text),
                         op->operands.count, op->type->num_inputs);
  for (uint32_t i = 0; i < op->operands.count; ++i) {
    if (mp_mosaic_type_equal(op->operands.items[i]->type, op->type->elements[i])) continue;
    mp_strbuf_t text;
    mp_strbuf_init(&text);
    mp_mosaic_type_print(op->operands.items[i]->type, &text);
    mp_strbuf_puts(&text, ", here ");
    mp_mosaic_type_print(op->type->elements[i], &text);
    mp_status_t status =
        mp_text_error(t, &op->token, MP_INVALID_ARGUMENT, "operand %u of %.*s was defined as %s", i,
                      MP_STR_ARG(op->token.text), mp_strbuf_text(&text));
    mp_strbuf_deinit(&text);
    return status;
  }
  return NULL;
}

static mp_status_t mosaic_text_ops_define(mp_text_t *t, const op_t *op, mp_mosaic_op_t *made) {
  mp_mosaic_value_t **values = MP_ARENA_ARRAY(t->scratch, mp_mosaic_value_t *, made->num_results);
  MP_RETURN_IF_NULL(values);
  for (uint32_t i = 0; i < made->num_results; ++i) values[i] = &made->results[i];
  return mp_text_define_results(t, op->token.text, &op->results, values, made->num_results);
}

static mp_status_t mosaic_text_ops_read_op(mp_text_t *t, mp_mosaic_block_t *block) {
  op_t op = {0};
  mp_mosaic_op_t *made = NULL;
  MP_RETURN_IF_ERROR(mp_text_result_names(t, &op.results));
  op.token = t->tok;
  if (t->tok.kind != MP_TOKEN_STRING) return mp_text_expected(t, "an op in the generic form");
  mp_mosaic_op_spec_t spec = {0};
  // The name is quoted. Names of ops have no escapes.
  const mp_str_t name = {t->tok.text.data + 1, t->tok.text.size - 2};
  op.token.text = name;
  if (!mp_mosaic_opcode_from_name(name, &spec.code))
    return mp_text_error(t, &op.token, MP_UNIMPLEMENTED, "the op '%.*s' is not supported",
                         MP_STR_SHOWN(name, 100));
  mp_text_advance(t);
  MP_RETURN_IF_ERROR(mosaic_text_ops_read_parts(t, &op));
  MP_RETURN_IF_ERROR(mosaic_text_ops_check_types(t, &op));
  spec.loc = op.loc;
  spec.operands = op.operands.items;
  spec.num_operands = op.operands.count;
  spec.result_types = op.type->elements + op.type->num_inputs;
  spec.num_results = op.type->num_elements - op.type->num_inputs;
  spec.regions = op.regions.items;
  spec.num_regions = op.regions.count;
  spec.attrs = op.attrs.items;
  spec.num_attrs = op.attrs.count;
  MP_RETURN_IF_ERROR(mp_mosaic_op_create(t->arena, &spec, block, &made));
  return mosaic_text_ops_define(t, &op, made);
}

// ---- blocks ----

// ^bb0(%a: T, ...):
static mp_status_t mosaic_text_ops_read_label(mp_text_t *t, mp_text_tokens_t *names,
                                              mp_mosaic_types_t *types) {
  if (t->tok.kind != MP_TOKEN_CARET) return NULL;
  mp_text_advance(t);
  if (mp_text_accept(t, '(')) {
    while (!mp_text_accept(t, ')')) {
      const mp_mosaic_type_t *type = NULL;
      const mp_loc_t *loc = NULL;
      if (names->count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
      if (t->tok.kind != MP_TOKEN_VALUE) return mp_text_expected(t, "an argument '%name'");
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, names, t->tok));
      mp_text_advance(t);
      MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
      MP_RETURN_IF_ERROR(mp_mosaic_text_type(t, &type));
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, types, type));
      MP_RETURN_IF_ERROR(mp_text_optional_loc(t, &loc));
    }
  }
  return mp_text_expect(t, ':');
}

static mp_status_t mosaic_text_ops_read_block(mp_text_t *t, mp_mosaic_block_t **out_block) {
  mp_text_tokens_t names = {0};
  mp_mosaic_types_t types = {0};
  mp_mosaic_block_t *block = NULL;
  MP_RETURN_IF_ERROR(mosaic_text_ops_read_label(t, &names, &types));
  MP_RETURN_IF_ERROR(mp_mosaic_block_create(t->arena, types.items, types.count, &block));
  mp_mosaic_value_t **values = MP_ARENA_ARRAY(t->scratch, mp_mosaic_value_t *, block->num_args);
  MP_RETURN_IF_NULL(values);
  for (uint32_t i = 0; i < names.count; ++i) {
    values[i] = &block->args[i];
    MP_RETURN_IF_ERROR(mp_text_define(t, &names.items[i], &values[i], 1));
  }
  while (!mp_text_is(t, '}')) {
    if (t->tok.kind == MP_TOKEN_CARET)
      return mp_text_error(t, &t->tok, MP_UNIMPLEMENTED, "a region has more than one block");
    MP_RETURN_IF_ERROR(mosaic_text_ops_read_op(t, block));
  }
  *out_block = block;
  return NULL;
}

mp_status_t mp_mosaic_text_region(mp_text_t *t, bool isolated, mp_mosaic_block_t **out_block) {
  MP_RETURN_IF_ERROR(mp_text_enter(t));
  mp_text_scope_t scope = mp_text_open_scope(t, isolated);
  MP_RETURN_IF_ERROR(mp_text_expect(t, '{'));
  MP_RETURN_IF_ERROR(mosaic_text_ops_read_block(t, out_block));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '}'));
  mp_text_close_scope(t, scope);
  mp_text_leave(t);
  return NULL;
}
