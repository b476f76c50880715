// Slots, and how steps read values of the region: operands, constants, and results of other steps.
#include "sim/kernels/fused/tile/tile_compiler.h"
#include "sim/kernels/shape.h"
#include "sim/numeric/float.h"

// ---- Slots and steps ----

mp_status_t mp_tile_add_slot(mp_tile_compiler_t *c, mp_tile_place_t place, uint32_t index,
                             size_t size, bool is_column, uint32_t *out_slot) {
  const mp_tile_slot_t slot = {
      .place = place, .index = index, .size = (uint32_t)size, .is_column = is_column};
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(c->arena, &c->slots, slot));
  *out_slot = c->slots.count - 1;
  return NULL;
}

mp_status_t mp_tile_bind(mp_tile_compiler_t *c, const mp_value_t *value, uint32_t slot) {
  const mp_tile_binding_t binding = {value, slot};
  return MP_ARRAY_PUSH(c->arena, &c->bindings, binding);
}

mp_status_t mp_tile_add_step(mp_tile_compiler_t *c, mp_tile_step_t step, size_t size,
                             bool is_column, uint32_t *out_slot) {
  MP_RETURN_IF_ERROR(mp_tile_add_slot(c, MP_TILE_REGISTER, 0, size, is_column, &step.out));
  const bool is_first = step.kind == MP_TILE_FILL ||
                        (step.kind == MP_TILE_WIDEN && c->slots.items[step.in[0]].is_constant);
  c->slots.items[step.out].is_constant = is_first;
  *out_slot = step.out;
  return is_first ? MP_ARRAY_PUSH(c->arena, &c->first, step)
                  : MP_ARRAY_PUSH(c->arena, &c->steps, step);
}

// Widens the slot's stored elements of `dtype` to f32 if ops compute with them in f32.
static mp_status_t tile_reading_widen(mp_tile_compiler_t *c, mp_dtype_t dtype, uint32_t *slot) {
  if (!mp_float_is_narrow(dtype)) return NULL;
  const mp_tile_step_t step = {.kind = MP_TILE_WIDEN, .in = {*slot}, .dtype = dtype};
  return mp_tile_add_step(c, step, sizeof(float), c->slots.items[*slot].is_column, slot);
}

// ---- Values that are read ----

static const mp_tile_binding_t *tile_reading_find(const mp_tile_compiler_t *c,
                                                  const mp_value_t *value, bool is_column) {
  for (uint32_t i = c->bindings.count; i-- > 0;) {
    const mp_tile_binding_t *binding = &c->bindings.items[i];
    if (binding->value == value && c->slots.items[binding->slot].is_column == is_column) {
      return binding;
    }
  }
  return NULL;
}

// A value that a step reads as an array or a column: `view` of `base`.
typedef struct {
  const mp_op_t *user;  // for messages
  bool is_column;
  int64_t count;  // elements of an array, or a column
  mp_view_t view;
  const mp_value_t *base;
} reading_t;

static mp_status_t tile_reading_read_operand(mp_tile_compiler_t *c, const reading_t *reading,
                                             uint32_t *out_slot) {
  const mp_value_t *argument = reading->base;
  const size_t size = mp_dtype_size(argument->type->dtype);
  if (mp_view_is_whole(&reading->view, reading->count)) {
    MP_RETURN_IF_ERROR(
        mp_tile_add_slot(c, MP_TILE_OPERAND, argument->index, size, reading->is_column, out_slot));
  } else {
    mp_tile_step_t step = {.kind = mp_view_is_one(&reading->view) ? MP_TILE_FILL : MP_TILE_LOAD,
                           .operand = argument->index};
    MP_RETURN_IF_ERROR(mp_view_keep(c->arena, &reading->view, size, &step.view));
    MP_RETURN_IF_ERROR(mp_tile_add_step(c, step, size, reading->is_column, out_slot));
  }
  return tile_reading_widen(c, argument->type->dtype, out_slot);
}

static mp_status_t tile_reading_read_constant(mp_tile_compiler_t *c, const reading_t *reading,
                                              uint32_t *out_slot) {
  const mp_op_t *op = reading->base->op;
  const mp_dtype_t dtype = mp_op_result_type(op, 0)->dtype;
  const mp_tile_step_t step = {.kind = MP_TILE_FILL, .element = mp_op_splat(op)};
  if (step.element == NULL) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "a constant of different elements cannot be fused");
  }
  MP_RETURN_IF_ERROR(mp_tile_add_step(c, step, mp_dtype_size(dtype), reading->is_column, out_slot));
  return tile_reading_widen(c, dtype, out_slot);
}

static mp_status_t tile_reading_read_iota(mp_tile_compiler_t *c, const reading_t *reading,
                                          uint32_t *out_slot) {
  mp_tile_step_t step = {.kind = MP_TILE_COUNT, .dtype = reading->base->type->dtype};
  if (mp_view_is_one(&reading->view)) {  // one number for all: a coefficient of arange(8.0), say
    void *element = mp_arena_alloc(c->arena, mp_dtype_size(step.dtype));
    MP_RETURN_IF_NULL(element);
    mp_view_count(&reading->view, step.dtype, 0, 1, element);
    step.kind = MP_TILE_FILL;
    step.element = element;
  }
  MP_RETURN_IF_ERROR(mp_view_keep(c->arena, &reading->view, 0, &step.view));
  MP_RETURN_IF_ERROR(
      mp_tile_add_step(c, step, mp_dtype_size(step.dtype), reading->is_column, out_slot));
  return tile_reading_widen(c, step.dtype, out_slot);
}

// Reads the result of a step: unchanged, or a column repeated for its rows.
static mp_status_t tile_reading_read_computed(mp_tile_compiler_t *c, const reading_t *reading,
                                              uint32_t *out_slot) {
  const mp_tile_binding_t *same = tile_reading_find(c, reading->base, reading->is_column);
  if (same != NULL && mp_view_is_whole(&reading->view, reading->count)) {
    *out_slot = same->slot;
    return NULL;
  }
  const mp_tile_binding_t *column = tile_reading_find(c, reading->base, true);
  if (column == NULL || reading->is_column ||
      !mp_view_is_spread(&reading->view, c->count, c->row)) {
    return mp_op_error(reading->user, MP_UNIMPLEMENTED, "an operand of this form cannot be fused");
  }
  const mp_tile_step_t step = {.kind = MP_TILE_SPREAD, .in = {column->slot}};
  return mp_tile_add_step(c, step, c->slots.items[column->slot].size, false, out_slot);
}

mp_status_t mp_tile_read(mp_tile_compiler_t *c, const mp_op_t *user, const mp_value_t *value,
                         bool is_column, uint32_t *out_slot) {
  const mp_tile_binding_t *binding = tile_reading_find(c, value, is_column);
  if (binding != NULL) {
    *out_slot = binding->slot;
    return NULL;
  }
  reading_t reading = {
      .user = user, .is_column = is_column, .count = is_column ? c->count / c->row : c->count};
  const int64_t count = mp_shape_count(value->type);
  if (count != reading.count && count != 1) {
    return mp_op_error(user, MP_UNIMPLEMENTED, "arrays of different sizes cannot be fused");
  }
  mp_view_of(value, MP_VIEW_MAX_OPS, &reading.view, &reading.base);
  const mp_op_t *op = reading.base->op;
  if (op == NULL) {
    MP_RETURN_IF_ERROR(tile_reading_read_operand(c, &reading, out_slot));
  } else if (op->code == MP_OP_CONSTANT) {
    MP_RETURN_IF_ERROR(tile_reading_read_constant(c, &reading, out_slot));
  } else if (op->code == MP_OP_IOTA) {
    MP_RETURN_IF_ERROR(tile_reading_read_iota(c, &reading, out_slot));
  } else {
    MP_RETURN_IF_ERROR(tile_reading_read_computed(c, &reading, out_slot));
  }
  return mp_tile_bind(c, value, *out_slot);
}
