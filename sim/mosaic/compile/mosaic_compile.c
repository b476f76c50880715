#include "sim/mosaic/compile/mosaic_compiler.h"
#include "sim/mosaic/vectors/vectors.h"

// ---- frames ----

static void mosaic_compile_count_uses(mp_mosaic_frame_t *frame, const mp_mosaic_block_t *block) {
  for (const mp_mosaic_op_t *op = block->first; op != NULL; op = op->next) {
    for (uint32_t i = 0; i < op->num_operands; ++i) ++frame->uses[op->operands[i]->id];
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      if (op->regions[r] != NULL) mosaic_compile_count_uses(frame, op->regions[r]);
    }
  }
}

static mp_status_t mosaic_compile_new_frame(mp_mosaic_compiler_t *c, const mp_mosaic_func_t *func,
                                            mp_mosaic_frame_t **out_frame) {
  mp_mosaic_frame_t *frame = MP_ARENA_NEW(c->scratch, mp_mosaic_frame_t);
  MP_RETURN_IF_NULL(frame);
  *frame =
      (mp_mosaic_frame_t){.func = func,
                          .places = MP_ARENA_ARRAY(c->scratch, mp_mosaic_place_t, func->num_values),
                          .uses = MP_ARENA_ARRAY(c->scratch, uint32_t, func->num_values),
                          .choices = MP_ARENA_ARRAY(c->scratch, uint32_t, func->num_values),
                          .inner_uses = MP_ARENA_ARRAY(c->scratch, uint32_t, func->num_values),
                          .segments = MP_ARENA_ARRAY(c->scratch, uint32_t, func->num_values),
                          .tensors = MP_ARENA_ARRAY(c->scratch, mp_value_t *, func->num_values),
                          .tensor_segments = MP_ARENA_ARRAY(c->scratch, uint32_t, func->num_values),
                          .caller = c->frame,
                          .depth = c->frame == NULL ? 0 : c->frame->depth + 1};
  if (frame->places == NULL || frame->uses == NULL || frame->choices == NULL ||
      frame->inner_uses == NULL || frame->segments == NULL || frame->tensors == NULL ||
      frame->tensor_segments == NULL) {
    return mp_status_out_of_memory();
  }
  if (frame->depth > MP_MOSAIC_MOST_DEPTH) {
    return mp_status_make(MP_UNIMPLEMENTED, "the function '%.*s' calls too deeply",
                          MP_STR_ARG(func->name));
  }
  mosaic_compile_count_uses(frame, func->body);
  MP_RETURN_IF_ERROR(mp_mosaic_count_choices(frame, c->scratch));
  *out_frame = frame;
  return NULL;
}

static mp_status_t mosaic_compile_block(mp_mosaic_compiler_t *c, const mp_mosaic_block_t *block,
                                        const mp_mosaic_op_t **out_terminator);

static mp_status_t mosaic_compile_inline(mp_mosaic_compiler_t *c, const mp_mosaic_func_t *func,
                                         const mp_mosaic_place_t *args,
                                         const mp_mosaic_value_t *results, uint32_t num_results) {
  mp_mosaic_frame_t *frame = NULL;
  const mp_mosaic_op_t *end = NULL;
  mp_mosaic_place_t *places = MP_ARENA_ARRAY(c->scratch, mp_mosaic_place_t, num_results);
  MP_RETURN_IF_NULL(places);
  MP_RETURN_IF_ERROR(mosaic_compile_new_frame(c, func, &frame));
  c->frame = frame;
  for (uint32_t i = 0; i < func->body->num_args; ++i) {
    mp_mosaic_set_place(c, &func->body->args[i], args[i]);
  }
  MP_RETURN_IF_ERROR(mosaic_compile_block(c, func->body, &end));
  for (uint32_t i = 0; i < num_results && i < end->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_mosaic_need(c, end->operands[i], &places[i]));
  }
  MP_RETURN_IF_ERROR(mp_mosaic_end_segment(c));
  c->frame = frame->caller;
  for (uint32_t i = 0; i < num_results; ++i) mp_mosaic_set_place(c, &results[i], places[i]);
  return NULL;
}

// ---- ops ----

static bool mosaic_compile_has_state(const mp_mosaic_op_t *op) {
  return mp_mosaic_op_info(op->code)->op_class == MP_MOSAIC_CLASS_ASYNC ||
         op->code == MP_MOSAIC_DEVICE_ID || op->code == MP_MOSAIC_PRNG_SET_SEED ||
         op->code == MP_MOSAIC_PRNG_RANDOM_BITS;
}

static mp_status_t mosaic_compile_op(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  c->has_state |= mosaic_compile_has_state(op);
  if (op->code == MP_MOSAIC_CONSTANT || op->code == MP_MOSAIC_IOTA) return NULL;  // when needed
  if (mp_mosaic_is_scalar_op(op)) return mp_mosaic_compile_scalar(c, op);
  if (mp_mosaic_translates(op->code)) return mp_mosaic_add_to_segment(c, op);
  switch (mp_mosaic_op_info(op->code)->op_class) {
    case MP_MOSAIC_CLASS_NOTE:
      if (op->code != MP_MOSAIC_LOG_VALUES && op->code != MP_MOSAIC_LOG_BUFFER) return NULL;
      return mp_mosaic_compile_log(c, op);
    case MP_MOSAIC_CLASS_FLOW:
      return mp_mosaic_compile_flow(c, op);
    case MP_MOSAIC_CLASS_READ:
    case MP_MOSAIC_CLASS_VIEW:
    case MP_MOSAIC_CLASS_WRITE:
      return mp_mosaic_compile_memory(c, op);
    default:
      return mp_mosaic_compile_async(c, op);
  }
}

static mp_status_t mosaic_compile_block(mp_mosaic_compiler_t *c, const mp_mosaic_block_t *block,
                                        const mp_mosaic_op_t **out_terminator) {
  for (const mp_mosaic_op_t *op = block->first; op != NULL; op = op->next) {
    if (op == block->last) {
      *out_terminator = op;
      return mp_mosaic_end_segment(c);
    }
    mp_status_t status = mosaic_compile_op(c, op);
    if (mp_status_code(status) == MP_RESOURCE_EXHAUSTED) return status;
    MP_RETURN_IF_ERROR(mp_mosaic_name_op(op, status));
  }
  return mp_status_make(MP_INVALID_ARGUMENT, "a block of the Mosaic module has no ops");
}

// ---- functions ----

static mp_status_t mosaic_compile_entry_args(mp_mosaic_compiler_t *c, const mp_mosaic_func_t *func,
                                             uint32_t *args) {
  for (uint32_t i = 0; i < func->body->num_args; ++i) {
    mp_mosaic_value_t *arg = &func->body->args[i];
    mp_mosaic_place_t place;
    MP_RETURN_IF_ERROR(mp_mosaic_new_place(c, arg->type, &place));
    if (place.kind == MP_MOSAIC_IN_VECTOR) {
      return mp_status_make(MP_UNIMPLEMENTED,
                            "the function '%.*s' has an argument that is a vector",
                            MP_STR_ARG(func->name));
    }
    place.root = i;
    mp_mosaic_set_place(c, arg, place);
    args[i] = place.index;
  }
  return NULL;
}

static mp_status_t mosaic_compile_entry_results(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *end,
                                                mp_mosaic_entry_t *out_entry) {
  uint32_t *results = MP_ARENA_ARRAY(c->arena, uint32_t, end->num_operands);
  MP_RETURN_IF_NULL(results);
  for (uint32_t i = 0; i < end->num_operands; ++i) {
    mp_mosaic_place_t place;
    MP_RETURN_IF_ERROR(mp_mosaic_need(c, end->operands[i], &place));
    if (place.kind != MP_MOSAIC_IN_REGISTER) {
      return mp_mosaic_op_error(end, MP_UNIMPLEMENTED,
                                "a function returns something other than scalars");
    }
    results[i] = place.index;
  }
  out_entry->num_results = end->num_operands;
  out_entry->results = results;
  const mp_mosaic_instruction_t instruction = {.kind = MP_MOSAIC_DO_RETURN};
  return mp_mosaic_emit(c, &instruction);
}

mp_status_t mp_mosaic_compile_func(mp_mosaic_compiler_t *c, const mp_mosaic_func_t *func,
                                   mp_mosaic_entry_t *out_entry) {
  uint32_t *args = MP_ARENA_ARRAY(c->arena, uint32_t, func->body->num_args);
  const mp_mosaic_op_t *end = NULL;
  MP_RETURN_IF_NULL(args);
  c->compile_block = mosaic_compile_block;
  c->inline_func = mosaic_compile_inline;
  MP_RETURN_IF_ERROR(mosaic_compile_new_frame(c, func, &c->frame));
  *out_entry = (mp_mosaic_entry_t){
      .begin = mp_mosaic_here(c), .num_args = func->body->num_args, .args = args};
  MP_RETURN_IF_ERROR(mosaic_compile_entry_args(c, func, args));
  MP_RETURN_IF_ERROR(mosaic_compile_block(c, func->body, &end));
  MP_RETURN_IF_ERROR(mosaic_compile_entry_results(c, end, out_entry));
  c->frame = NULL;
  return NULL;
}
