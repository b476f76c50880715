// Control flow becomes jumps.
#include "sim/mosaic/compile/mosaic_compiler.h"

static mp_status_t mosaic_compile_flow_jump(mp_mosaic_compiler_t *c, uint32_t target,
                                            uint32_t *out_at) {
  const mp_mosaic_instruction_t jump = {.kind = MP_MOSAIC_DO_JUMP, .target = target};
  *out_at = mp_mosaic_here(c);
  return mp_mosaic_emit(c, &jump);
}

static mp_status_t mosaic_compile_flow_unless(mp_mosaic_compiler_t *c, uint32_t condition,
                                              uint32_t *out_at) {
  const mp_mosaic_instruction_t jump = {.kind = MP_MOSAIC_DO_UNLESS, .a = condition};
  *out_at = mp_mosaic_here(c);
  return mp_mosaic_emit(c, &jump);
}

static void mosaic_compile_flow_land(mp_mosaic_compiler_t *c, uint32_t jump) {
  c->code.items[jump].target = mp_mosaic_here(c);
}

// New places for an op's results, or for a block's arguments.
static mp_status_t mosaic_compile_flow_new_places(mp_mosaic_compiler_t *c,
                                                  mp_mosaic_value_t *values, uint32_t count,
                                                  mp_mosaic_place_t **out_places) {
  mp_mosaic_place_t *places = MP_ARENA_ARRAY(c->scratch, mp_mosaic_place_t, count);
  MP_RETURN_IF_NULL(places);
  for (uint32_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(mp_mosaic_new_place(c, values[i].type, &places[i]));
  }
  *out_places = places;
  return NULL;
}

static void mosaic_compile_flow_set_places(mp_mosaic_compiler_t *c, mp_mosaic_value_t *values,
                                           uint32_t count, const mp_mosaic_place_t *places) {
  for (uint32_t i = 0; i < count; ++i) mp_mosaic_set_place(c, &values[i], places[i]);
}

// A region whose results go to places; one without ops has none.
static mp_status_t mosaic_compile_flow_region(mp_mosaic_compiler_t *c,
                                              const mp_mosaic_block_t *block,
                                              const mp_mosaic_place_t *places) {
  const mp_mosaic_op_t *end = NULL;
  if (block == NULL || block->first == NULL) return NULL;
  MP_RETURN_IF_ERROR(c->compile_block(c, block, &end));
  return mp_mosaic_emit_moves(c, end->operands, end->num_operands, places);
}

// ---- if, index_switch ----

static mp_status_t mosaic_compile_flow_if(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  mp_mosaic_place_t *places = NULL;
  uint32_t condition = 0, otherwise = 0, end = 0;
  MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, op->operands[0], &condition));
  MP_RETURN_IF_ERROR(mosaic_compile_flow_new_places(c, op->results, op->num_results, &places));
  MP_RETURN_IF_ERROR(mosaic_compile_flow_unless(c, condition, &otherwise));
  MP_RETURN_IF_ERROR(mosaic_compile_flow_region(c, op->regions[0], places));
  const mp_mosaic_block_t *other = op->num_regions > 1 ? op->regions[1] : NULL;
  if (other == NULL || other->first == NULL) {
    mosaic_compile_flow_land(c, otherwise);
  } else {
    MP_RETURN_IF_ERROR(mosaic_compile_flow_jump(c, 0, &end));
    mosaic_compile_flow_land(c, otherwise);
    MP_RETURN_IF_ERROR(mosaic_compile_flow_region(c, other, places));
    mosaic_compile_flow_land(c, end);
  }
  mosaic_compile_flow_set_places(c, op->results, op->num_results, places);
  return NULL;
}

// The first region is for all values that have no other.
static mp_status_t mosaic_compile_flow_switch(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  const mp_mosaic_attr_t *attr = mp_mosaic_op_attr(op, "cases");
  const uint32_t count = op->num_regions - 1;
  if (op->num_regions == 0 || attr == NULL || attr->kind != MP_MOSAIC_INTS ||
      attr->ints.count != count) {
    return mp_mosaic_op_error(op, MP_INVALID_ARGUMENT, "it has not one case for each region");
  }
  mp_mosaic_cases_t *cases = MP_ARENA_NEW(c->arena, mp_mosaic_cases_t);
  uint32_t *targets = MP_ARENA_ARRAY(c->arena, uint32_t, count + 1);
  uint32_t *ends = MP_ARENA_ARRAY(c->scratch, uint32_t, count + 1);
  mp_mosaic_place_t *places = NULL;
  if (cases == NULL || targets == NULL || ends == NULL) return mp_status_out_of_memory();
  *cases = (mp_mosaic_cases_t){
      count, mp_arena_copy(c->arena, attr->ints.values, count * sizeof(int64_t)), targets};
  MP_RETURN_IF_NULL(cases->cases);
  mp_mosaic_instruction_t jump = {.kind = MP_MOSAIC_DO_SWITCH, .u.cases = cases};
  MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, op->operands[0], &jump.a));
  MP_RETURN_IF_ERROR(mosaic_compile_flow_new_places(c, op->results, op->num_results, &places));
  MP_RETURN_IF_ERROR(mp_mosaic_emit(c, &jump));
  for (uint32_t i = 0; i <= count; ++i) {
    targets[i] = mp_mosaic_here(c);
    MP_RETURN_IF_ERROR(mosaic_compile_flow_region(c, op->regions[i < count ? i + 1 : 0], places));
    MP_RETURN_IF_ERROR(mosaic_compile_flow_jump(c, 0, &ends[i]));
  }
  for (uint32_t i = 0; i <= count; ++i) mosaic_compile_flow_land(c, ends[i]);
  mosaic_compile_flow_set_places(c, op->results, op->num_results, places);
  return NULL;
}

// ---- loops ----

// The arguments of the body after the counter are carried from one iteration to the next.
static mp_status_t mosaic_compile_flow_for(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  mp_mosaic_block_t *body = op->regions[0];
  const uint32_t num_carried = op->num_results;
  const uint8_t bits = (uint8_t)mp_dtype_bits(op->operands[0]->type->dtype);
  mp_mosaic_place_t *places = NULL;
  uint32_t bounds[3], exit = 0, back = 0;
  for (int i = 0; i < 3; ++i) {
    MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, op->operands[i], &bounds[i]));
  }
  MP_RETURN_IF_ERROR(mosaic_compile_flow_new_places(c, body->args, num_carried + 1, &places));
  MP_RETURN_IF_ERROR(mp_mosaic_emit_moves(c, op->operands, 1, places));
  MP_RETURN_IF_ERROR(mp_mosaic_emit_moves(c, op->operands + 3, num_carried, places + 1));
  mosaic_compile_flow_set_places(c, body->args, num_carried + 1, places);
  mp_mosaic_instruction_t is_before = {.kind = MP_MOSAIC_DO_COMPARE,
                                       .predicate = 2,
                                       .bits = bits,
                                       .a = places[0].index,
                                       .b = bounds[1]};
  MP_RETURN_IF_ERROR(mp_mosaic_new_register(c, 0, &is_before.out));
  const mp_mosaic_instruction_t step = {.kind = MP_MOSAIC_DO_INTEGER,
                                        .code = MP_MOSAIC_ADDI,
                                        .bits = bits,
                                        .out = places[0].index,
                                        .a = places[0].index,
                                        .b = bounds[2]};
  MP_RETURN_IF_ERROR(mp_mosaic_begin_loop(c));
  const uint32_t head = mp_mosaic_here(c);
  MP_RETURN_IF_ERROR(mp_mosaic_emit(c, &is_before));
  MP_RETURN_IF_ERROR(mosaic_compile_flow_unless(c, is_before.out, &exit));
  MP_RETURN_IF_ERROR(mosaic_compile_flow_region(c, body, places + 1));
  MP_RETURN_IF_ERROR(mp_mosaic_emit(c, &step));
  MP_RETURN_IF_ERROR(mosaic_compile_flow_jump(c, head, &back));
  MP_RETURN_IF_ERROR(mp_mosaic_end_loop(c));
  mosaic_compile_flow_land(c, exit);
  mosaic_compile_flow_set_places(c, op->results, num_carried, places + 1);
  return NULL;
}

// What the condition passes on are the arguments of the body and the results.
static mp_status_t mosaic_compile_flow_while(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  mp_mosaic_block_t *before = op->regions[0], *after = op->regions[1];
  mp_mosaic_place_t *start = NULL, *passed = NULL;
  const mp_mosaic_op_t *end = NULL;
  uint32_t condition = 0, exit = 0, back = 0;
  MP_RETURN_IF_ERROR(mosaic_compile_flow_new_places(c, before->args, before->num_args, &start));
  MP_RETURN_IF_ERROR(mosaic_compile_flow_new_places(c, after->args, after->num_args, &passed));
  MP_RETURN_IF_ERROR(mp_mosaic_emit_moves(c, op->operands, op->num_operands, start));
  mosaic_compile_flow_set_places(c, before->args, before->num_args, start);
  mosaic_compile_flow_set_places(c, after->args, after->num_args, passed);
  MP_RETURN_IF_ERROR(mp_mosaic_begin_loop(c));
  const uint32_t head = mp_mosaic_here(c);
  MP_RETURN_IF_ERROR(c->compile_block(c, before, &end));
  MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, end->operands[0], &condition));
  MP_RETURN_IF_ERROR(mp_mosaic_emit_moves(c, end->operands + 1, end->num_operands - 1, passed));
  MP_RETURN_IF_ERROR(mosaic_compile_flow_unless(c, condition, &exit));
  MP_RETURN_IF_ERROR(mosaic_compile_flow_region(c, after, start));
  MP_RETURN_IF_ERROR(mosaic_compile_flow_jump(c, head, &back));
  MP_RETURN_IF_ERROR(mp_mosaic_end_loop(c));
  mosaic_compile_flow_land(c, exit);
  mosaic_compile_flow_set_places(c, op->results, op->num_results, passed);
  return NULL;
}

// ---- regions that run once, calls ----

static mp_status_t mosaic_compile_flow_take_results(mp_mosaic_compiler_t *c,
                                                    const mp_mosaic_op_t *op,
                                                    const mp_mosaic_op_t *end) {
  for (uint32_t i = 0; i < op->num_results; ++i) {
    mp_mosaic_place_t place;
    MP_RETURN_IF_ERROR(mp_mosaic_need(c, end->operands[i], &place));
    mp_mosaic_set_place(c, &op->results[i], place);
  }
  return NULL;
}

static mp_status_t mosaic_compile_flow_once(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  const mp_mosaic_op_t *end = NULL;
  if (op->regions[0]->first == NULL) return NULL;
  MP_RETURN_IF_ERROR(c->compile_block(c, op->regions[0], &end));
  return mosaic_compile_flow_take_results(c, op, end);
}

static mp_status_t mosaic_compile_flow_call(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  const mp_mosaic_attr_t *name = mp_mosaic_op_attr(op, "callee");
  const mp_mosaic_func_t *func = name == NULL ? NULL : mp_mosaic_find_func(c->module, name->str);
  if (func == NULL || func->body->num_args != op->num_operands) {
    return mp_mosaic_op_error(op, MP_INVALID_ARGUMENT, "the module has no such function");
  }
  mp_mosaic_place_t *places = MP_ARENA_ARRAY(c->scratch, mp_mosaic_place_t, op->num_operands);
  MP_RETURN_IF_NULL(places);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_mosaic_need(c, op->operands[i], &places[i]));
  }
  MP_RETURN_IF_ERROR(mp_mosaic_end_segment(c));
  return c->inline_func(c, func, places, op->results, op->num_results);
}

static mp_status_t mosaic_compile_flow_assert(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  const mp_mosaic_attr_t *text = mp_mosaic_op_attr(op, "msg");
  const mp_str_t message = text == NULL ? MP_STR("") : text->str;
  mp_mosaic_instruction_t in = {.kind = MP_MOSAIC_DO_ASSERT};
  in.u.text = mp_arena_strndup(c->arena, message.data, message.size);
  MP_RETURN_IF_NULL(in.u.text);
  MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, op->operands[0], &in.a));
  MP_RETURN_IF_ERROR(mp_mosaic_where(c, op, &in.where));
  return mp_mosaic_emit(c, &in);
}

mp_status_t mp_mosaic_compile_flow(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  MP_RETURN_IF_ERROR(mp_mosaic_end_segment(c));
  switch (op->code) {
    case MP_MOSAIC_IF:
      return mosaic_compile_flow_if(c, op);
    case MP_MOSAIC_INDEX_SWITCH:
      return mosaic_compile_flow_switch(c, op);
    case MP_MOSAIC_FOR:
      return mosaic_compile_flow_for(c, op);
    case MP_MOSAIC_WHILE:
      return mosaic_compile_flow_while(c, op);
    case MP_MOSAIC_REGION:
    case MP_MOSAIC_TRACE:
      return mosaic_compile_flow_once(c, op);
    case MP_MOSAIC_CALL:
      return mosaic_compile_flow_call(c, op);
    case MP_MOSAIC_ASSERT:
      return mosaic_compile_flow_assert(c, op);
    default:
      return mp_mosaic_op_error(op, MP_UNIMPLEMENTED, "this op is not supported");
  }
}
