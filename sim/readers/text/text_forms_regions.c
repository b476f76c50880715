// Pretty forms of while and reduce.
#include "sim/readers/text/text_forms.h"

mp_status_t mp_form_region(mp_text_t *t, mp_text_op_t *op, bool isolated,
                           const mp_text_tokens_t *names, const mp_text_types_t *types) {
  mp_block_t *block = NULL;
  mp_text_scope_t scope = mp_text_open_scope(t, isolated);
  MP_RETURN_IF_ERROR(mp_text_make_block(t, names, types, &block));
  MP_RETURN_IF_ERROR(mp_text_region_of(t, block));
  mp_text_close_scope(t, scope);
  return MP_ARRAY_PUSH(t->scratch, &op->regions, block);
}

// (%arg = %init, ...) : T, ... attributes {...} cond {...} do {...}
mp_status_t mp_form_read_while(mp_text_t *t, mp_text_op_t *op) {
  mp_text_tokens_t names = {0};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  while (!mp_text_is(t, ')')) {
    if (names.count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    if (t->tok.kind != MP_TOKEN_VALUE) return mp_text_expected(t, "an argument '%name'");
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &names, t->tok));
    mp_text_advance(t);
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(mp_text_operand(t, op));
  }
  mp_text_advance(t);
  if (names.count > 0) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
    MP_RETURN_IF_ERROR(mp_form_operand_types(t, op));
    if (op->types.num_inputs != names.count) return mp_text_expected(t, "a type per argument");
  }
  op->types.results = op->types.inputs;
  op->types.num_results = op->types.num_inputs;
  if (mp_text_accept_word(t, "attributes")) MP_RETURN_IF_ERROR(mp_text_op_dict(t, op));
  const mp_text_types_t types = {op->types.inputs, op->types.num_inputs, op->types.num_inputs};
  MP_RETURN_IF_ERROR(mp_text_expect_word(t, "cond"));
  MP_RETURN_IF_ERROR(mp_form_region(t, op, false, &names, &types));
  MP_RETURN_IF_ERROR(mp_text_expect_word(t, "do"));
  return mp_form_region(t, op, false, &names, &types);
}

// ---- reduce ----

// (%x init: %a), (%y init: %b)
static mp_status_t text_forms_regions_read_reduce_inputs(mp_text_t *t, mp_text_op_t *op) {
  mp_text_op_t inits = {0};
  do {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
    MP_RETURN_IF_ERROR(mp_text_operand(t, op));
    MP_RETURN_IF_ERROR(mp_text_expect_word(t, "init"));
    MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
    MP_RETURN_IF_ERROR(mp_text_operand(t, &inits));
    MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  } while (mp_text_accept(t, ','));
  for (uint32_t i = 0; i < inits.operands.count; ++i)
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &op->operands, inits.operands.items[i]));
  return NULL;
}

// `applies stablehlo.add`: the body is that op on two scalars of the input's element type.
static mp_status_t text_forms_regions_make_reducer(mp_text_t *t, mp_text_op_t *op,
                                                   const mp_token_t *token, mp_opcode_t code) {
  const mp_type_t *input = mp_form_operand_type(op, 0), *scalar;
  if (!mp_type_is_tensor(input) || mp_form_num_operands(op) != 2)
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
  return MP_ARRAY_PUSH(t->scratch, &op->regions, block);
}

static mp_status_t text_forms_regions_read_applied(mp_text_t *t, mp_text_op_t *op) {
  mp_token_t token = t->tok;
  mp_opcode_t code;
  if (token.kind != MP_TOKEN_WORD || !mp_opcode_from_name(token.text, &code) ||
      !mp_opcode_has(code, MP_OP_TRAIT_ELEMENTWISE) || mp_op_info(code)->num_operands != 2 ||
      mp_form_of(code)->types != MP_FORM_SAME)
    return mp_text_expected(t, "a binary operation");
  mp_text_advance(t);
  return text_forms_regions_make_reducer(t, op, &token, code);
}

// (%a: T, %b: T): a pair of the reducer's arguments, kept apart by side.
static mp_status_t text_forms_regions_read_reducer_pair(mp_text_t *t, mp_text_tokens_t names[2],
                                                        mp_text_types_t types[2]) {
  mp_text_tokens_t pair_names = {0};
  mp_text_types_t pair_types = {0};
  MP_RETURN_IF_ERROR(mp_text_block_args(t, &pair_names, &pair_types));
  if (pair_names.count != 2)
    return mp_text_error(t, &t->last, MP_INVALID_ARGUMENT, "expected two arguments per input");
  for (int side = 0; side < 2; ++side) {
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &names[side], pair_names.items[side]));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &types[side], pair_types.items[side]));
  }
  return NULL;
}

// reducer(%a: T, %b: T) (%c: T, %d: T) {...}
static mp_status_t text_forms_regions_read_reducer(mp_text_t *t, mp_text_op_t *op) {
  mp_text_tokens_t names[2] = {{0}, {0}};
  mp_text_types_t types[2] = {{0}, {0}};
  MP_RETURN_IF_ERROR(mp_text_expect_word(t, "reducer"));
  do MP_RETURN_IF_ERROR(text_forms_regions_read_reducer_pair(t, names, types));
  while (mp_text_is(t, '('));
  // In the block all left sides come before all right sides.
  for (uint32_t i = 0; i < names[1].count; ++i) {
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &names[0], names[1].items[i]));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &types[0], types[1].items[i]));
  }
  return mp_form_region(t, op, false, &names[0], &types[0]);
}

mp_status_t mp_form_read_reduce(mp_text_t *t, mp_text_op_t *op) {
  MP_RETURN_IF_ERROR(text_forms_regions_read_reduce_inputs(t, op));
  bool compact = mp_text_accept_word(t, "applies");
  if (compact) MP_RETURN_IF_ERROR(text_forms_regions_read_applied(t, op));
  MP_RETURN_IF_ERROR(mp_text_expect_word(t, "across"));
  MP_RETURN_IF_ERROR(mp_form_expect_key(t, "dimensions", false));
  MP_RETURN_IF_ERROR(mp_form_key_value(t, op, MP_ATTR_DIMENSIONS));
  MP_RETURN_IF_ERROR(mp_text_op_types(t, op));
  return compact ? NULL : text_forms_regions_read_reducer(t, op);
}
