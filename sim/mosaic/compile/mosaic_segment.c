// Segments: ops that only make values of values become a StableHLO function.
#include <string.h>

#include "sim/fuse/fuse.h"
#include "sim/ir/loc.h"
#include "sim/mosaic/compile/mosaic_compiler.h"
#include "sim/mosaic/run/mosaic_scalar.h"
#include "sim/mosaic/vectors/vectors.h"
#include "sim/passes/desugar/desugar.h"
#include "sim/passes/passes.h"
#include "sim/passes/rewrite/rewrite.h"

typedef MP_ARRAY(const mp_mosaic_value_t *) values_t;

typedef struct {
  mp_mosaic_compiler_t *c;
  mp_shlo_t hlo;
  values_t inputs, outputs;
} segment_t;

bool mp_mosaic_is_made_again(const mp_mosaic_value_t *value) {
  return value->op != NULL &&
         (value->op->code == MP_MOSAIC_CONSTANT || value->op->code == MP_MOSAIC_IOTA);
}

mp_status_t mp_mosaic_add_to_segment(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  if (c->pending.count == 0) ++c->segment;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    c->frame->segments[op->results[i].id] = c->segment;
  }
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const uint32_t id = op->operands[i]->id;
    if (c->frame->segments[id] == c->segment) ++c->frame->inner_uses[id];
  }
  return MP_ARRAY_PUSH(c->scratch, &c->pending, op);
}

// ---- inputs ----

static bool mosaic_segment_has(const segment_t *segment, const mp_mosaic_value_t *value) {
  const mp_mosaic_frame_t *frame = segment->c->frame;
  return frame->tensor_segments[value->id] == segment->c->segment &&
         frame->tensors[value->id] != NULL;
}

static void mosaic_segment_set(const segment_t *segment, const mp_mosaic_value_t *value,
                               mp_value_t *tensor) {
  const mp_mosaic_frame_t *frame = segment->c->frame;
  frame->tensor_segments[value->id] = segment->c->segment;
  frame->tensors[value->id] = tensor;
}

static bool mosaic_segment_is_input(const segment_t *segment, const mp_mosaic_value_t *value) {
  const mp_mosaic_frame_t *frame = segment->c->frame;
  return frame->segments[value->id] != segment->c->segment && !mp_mosaic_is_made_again(value);
}

static mp_status_t mosaic_segment_find_inputs(segment_t *segment) {
  mp_mosaic_compiler_t *c = segment->c;
  for (uint32_t i = 0; i < c->pending.count; ++i) {
    const mp_mosaic_op_t *op = c->pending.items[i];
    for (uint32_t k = 0; k < op->num_operands; ++k) {
      const mp_mosaic_value_t *value = op->operands[k];
      const uint32_t id = value->id;
      if (!mosaic_segment_is_input(segment, value)) continue;
      if (c->frame->tensor_segments[id] == c->segment) continue;
      c->frame->tensor_segments[id] = c->segment;
      c->frame->tensors[id] = NULL;
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(c->scratch, &segment->inputs, value));
    }
  }
  return NULL;
}

// The vector of an input; scalars are copied into one.
static mp_status_t mosaic_segment_input_vector(segment_t *segment, const mp_mosaic_value_t *value,
                                               uint32_t *out_vector) {
  mp_mosaic_compiler_t *c = segment->c;
  const mp_mosaic_place_t place = c->frame->places[value->id];
  if (place.kind == MP_MOSAIC_IN_VECTOR) {
    *out_vector = place.index;
    return mp_mosaic_use_vector(c, place.index);
  }
  if (place.kind != MP_MOSAIC_IN_REGISTER) {
    return mp_status_make(MP_INTERNAL, "a Mosaic value is read before it is made");
  }
  const uint64_t bytes = mp_dtype_size(mp_mosaic_tensor_dtype(value->type->dtype));
  MP_RETURN_IF_ERROR(mp_mosaic_new_vector(c, bytes, out_vector));
  const mp_mosaic_instruction_t copy = {.kind = MP_MOSAIC_DO_TO_VECTOR,
                                        .out = *out_vector,
                                        .a = place.index,
                                        .value = (int64_t)bytes};
  return mp_mosaic_emit(c, &copy);
}

// ---- the function ----

// A module in the program's arena, with which it goes.
static mp_status_t mosaic_segment_new_module(segment_t *segment) {
  mp_arena_t *arena = segment->c->arena;
  mp_module_t *module = MP_ARENA_NEW(arena, mp_module_t);
  MP_RETURN_IF_NULL(module);
  *module = (mp_module_t){
      .arena = arena, .name = MP_STR("kernel"), .num_replicas = 1, .num_partitions = 1};
  segment->hlo = (mp_shlo_t){.module = module};
  const uint32_t count = segment->inputs.count;
  const mp_type_t **types = MP_ARENA_ARRAY(segment->c->scratch, const mp_type_t *, count);
  MP_RETURN_IF_NULL(types);
  for (uint32_t i = 0; i < count; ++i) {
    types[i] = mp_mosaic_tensor_type(&segment->hlo, segment->inputs.items[i]->type);
  }
  MP_RETURN_IF_ERROR(segment->hlo.status);
  MP_RETURN_IF_ERROR(mp_func_create(module, MP_STR("main"), count, types, 0, NULL, &module->main));
  for (uint32_t i = 0; i < count; ++i) {
    mosaic_segment_set(segment, segment->inputs.items[i], &module->main->body->args[i]);
  }
  return mp_rewrite_append_return(module, module->main->body, NULL, &segment->hlo.end);
}

static mp_status_t mosaic_segment_translate(segment_t *segment, const mp_mosaic_op_t *op);

// The tensor of a value that the segment knows, or makes again.
static mp_status_t mosaic_segment_tensor(segment_t *segment, const mp_mosaic_value_t *value,
                                         mp_value_t **out_tensor) {
  if (!mosaic_segment_has(segment, value)) {
    if (!mp_mosaic_is_made_again(value)) {
      return mp_status_make(MP_INTERNAL, "a Mosaic value is read before it is made");
    }
    MP_RETURN_IF_ERROR(mosaic_segment_translate(segment, value->op));
  }
  *out_tensor = segment->c->frame->tensors[value->id];
  return NULL;
}

static mp_status_t mosaic_segment_translate(segment_t *segment, const mp_mosaic_op_t *op) {
  mp_value_t **operands = MP_ARENA_ARRAY(segment->c->scratch, mp_value_t *, op->num_operands);
  mp_value_t *results[MP_MOSAIC_MOST_RESULTS] = {NULL};
  MP_RETURN_IF_NULL(operands);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mosaic_segment_tensor(segment, op->operands[i], &operands[i]));
  }
  segment->hlo.end->loc = op->loc;
  MP_RETURN_IF_ERROR(mp_mosaic_translate(&segment->hlo, op, operands, results));
  for (uint32_t i = 0; i < op->num_results; ++i)
    mosaic_segment_set(segment, &op->results[i], results[i]);
  return NULL;
}

// What is read outside of the segment.
static mp_status_t mosaic_segment_find_outputs(segment_t *segment) {
  mp_mosaic_compiler_t *c = segment->c;
  for (uint32_t i = 0; i < c->pending.count; ++i) {
    const mp_mosaic_op_t *op = c->pending.items[i];
    for (uint32_t r = 0; r < op->num_results; ++r) {
      const uint32_t id = op->results[r].id;
      if (c->frame->uses[id] == c->frame->inner_uses[id]) continue;
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(c->scratch, &segment->outputs, &op->results[r]));
    }
  }
  return NULL;
}

static mp_status_t mosaic_segment_return(segment_t *segment) {
  mp_module_t *module = segment->hlo.module;
  const uint32_t count = segment->outputs.count;
  mp_value_t **values = MP_ARENA_ARRAY(module->arena, mp_value_t *, count);
  const mp_type_t **types = MP_ARENA_ARRAY(module->arena, const mp_type_t *, count);
  if (values == NULL || types == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(mosaic_segment_tensor(segment, segment->outputs.items[i], &values[i]));
    types[i] = values[i]->type;
  }
  module->main->num_results = count;
  module->main->result_types = types;
  module->main->result_attrs = MP_ARENA_ARRAY(module->arena, const mp_attr_t *, count);
  MP_RETURN_IF_NULL(module->main->result_attrs);
  return mp_rewrite_set_operands(module, segment->hlo.end, values, count);
}

static mp_status_t mosaic_segment_improve(mp_module_t *module) {
  MP_RETURN_IF_ERROR(mp_pass_desugar(module));
  MP_RETURN_IF_ERROR(mp_passes_finish(module));
  MP_RETURN_IF_ERROR(mp_fuse(module));
  MP_RETURN_IF_ERROR(mp_pass_unit_broadcasts(module));
  return mp_pass_dead_code(module);
}

// The program does not keep the locations of the module's ops.
static mp_status_t mosaic_segment_forget_location(void *context, mp_op_t *op) {
  (void)context;
  op->loc = NULL;
  return NULL;
}

// The function becomes instructions: a vector for each input, and (set here) each output.
static mp_status_t mosaic_segment_emit(segment_t *segment, const uint32_t *inputs,
                                       uint32_t *outputs) {
  mp_module_t *module = segment->hlo.module;
  MP_RETURN_IF_ERROR(mosaic_segment_return(segment));
  MP_RETURN_IF_ERROR(mosaic_segment_improve(module));
  MP_RETURN_IF_ERROR(mp_mosaic_emit_segment(segment->c, module, inputs, outputs));
  return mp_block_walk(module->main->body, mosaic_segment_forget_location, NULL);
}

// ---- results ----

// Values that are scalars are moved to registers.
static mp_status_t mosaic_segment_place(segment_t *segment, const mp_mosaic_value_t *value,
                                        uint32_t vector) {
  mp_mosaic_compiler_t *c = segment->c;
  mp_mosaic_place_t place = {MP_MOSAIC_IN_VECTOR, vector, MP_MOSAIC_NONE};
  if (value->type->kind == MP_MOSAIC_SCALAR) {
    mp_mosaic_instruction_t copy = {.kind = MP_MOSAIC_DO_FROM_VECTOR,
                                    .dtype = (uint8_t)mp_mosaic_tensor_dtype(value->type->dtype),
                                    .a = vector};
    MP_RETURN_IF_ERROR(mp_mosaic_new_place(c, value->type, &place));
    copy.out = place.index;
    MP_RETURN_IF_ERROR(mp_mosaic_use_vector(c, vector));
    MP_RETURN_IF_ERROR(mp_mosaic_emit(c, &copy));
  }
  mp_mosaic_set_place(c, value, place);
  return NULL;
}

static mp_status_t mosaic_segment_make(segment_t *segment) {
  mp_mosaic_compiler_t *c = segment->c;
  MP_RETURN_IF_ERROR(mosaic_segment_find_inputs(segment));
  MP_RETURN_IF_ERROR(mosaic_segment_new_module(segment));
  for (uint32_t i = 0; i < c->pending.count; ++i) {
    MP_RETURN_IF_ERROR(mosaic_segment_translate(segment, c->pending.items[i]));
  }
  MP_RETURN_IF_ERROR(mosaic_segment_find_outputs(segment));
  uint32_t *inputs = MP_ARENA_ARRAY(c->scratch, uint32_t, segment->inputs.count);
  uint32_t *outputs = MP_ARENA_ARRAY(c->scratch, uint32_t, segment->outputs.count);
  if (inputs == NULL || outputs == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < segment->inputs.count; ++i) {
    MP_RETURN_IF_ERROR(mosaic_segment_input_vector(segment, segment->inputs.items[i], &inputs[i]));
  }
  MP_RETURN_IF_ERROR(mosaic_segment_emit(segment, inputs, outputs));
  for (uint32_t i = 0; i < segment->outputs.count; ++i) {
    MP_RETURN_IF_ERROR(mosaic_segment_place(segment, segment->outputs.items[i], outputs[i]));
  }
  return NULL;
}

mp_status_t mp_mosaic_end_segment(mp_mosaic_compiler_t *c) {
  if (c->pending.count == 0) return NULL;
  segment_t segment = {.c = c};
  const mp_mosaic_op_t *first = c->pending.items[0];
  mp_status_t status = mosaic_segment_make(&segment);
  c->pending.count = 0;
  return mp_mosaic_name_op(first, status);
}

// ---- constants ----

static mp_status_t mosaic_segment_scalar_constant(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op,
                                                  mp_mosaic_place_t *out_place) {
  const mp_mosaic_attr_t *value = mp_mosaic_op_attr(op, "value");
  const mp_dtype_t dtype = mp_mosaic_tensor_dtype(op->results[0].type->dtype);
  char element[16] = {0};
  if (value == NULL) return mp_mosaic_op_error(op, MP_INVALID_ARGUMENT, "it has no value");
  if (mp_dtype_is_float(dtype)) {
    mp_float_encode(dtype, value->f64, element);
  } else {
    memcpy(element, &value->i64, sizeof(value->i64));
  }
  mp_mosaic_place_t place = {MP_MOSAIC_IN_REGISTER, 0, MP_MOSAIC_NONE};
  MP_RETURN_IF_ERROR(
      mp_mosaic_new_register(c, mp_mosaic_scalar_load(dtype, element), &place.index));
  mp_mosaic_set_place(c, &op->results[0], place);
  *out_place = place;
  return NULL;
}

mp_status_t mp_mosaic_make_again(mp_mosaic_compiler_t *c, const mp_mosaic_value_t *value,
                                 mp_mosaic_place_t *out_place) {
  if (value->type->kind == MP_MOSAIC_SCALAR) {
    return mosaic_segment_scalar_constant(c, value->op, out_place);
  }
  MP_RETURN_IF_ERROR(mp_mosaic_end_segment(c));
  ++c->segment;
  segment_t segment = {.c = c};
  uint32_t vector = 0;
  MP_RETURN_IF_ERROR(mosaic_segment_new_module(&segment));
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(c->scratch, &segment.outputs, value));
  MP_RETURN_IF_ERROR(mosaic_segment_emit(&segment, NULL, &vector));
  // The value's place for this use alone: runs need not come here before they come to other uses.
  *out_place = (mp_mosaic_place_t){MP_MOSAIC_IN_VECTOR, vector, MP_MOSAIC_NONE};
  return NULL;
}
