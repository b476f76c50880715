// Makes the steps of a fused op's region, in the order of its ops. Each array of a step gets a slot
// of its own; registers are assigned at the end, when the last reader of each slot is known.
#include <string.h>

#include "sim/kernels/fused/tile/tile_compiler.h"
#include "sim/kernels/fused/tile/tile_cycles.h"
#include "sim/kernels/fused/tile/tile_improve.h"
#include "sim/kernels/fused/tile/tile_order.h"
#include "sim/kernels/fused/tile/tile_registers.h"
#include "sim/kernels/reduction/reduce.h"
#include "sim/kernels/shape.h"
#include "sim/numeric/float.h"

// The number of simple operations for which a COSTLY op counts.
enum { COSTLY_WEIGHT = 8 };

// ---- What can be fused ----

static bool tile_compile_holds(mp_dtype_t dtype) {
  if (mp_ew_computing_type(dtype) == MP_DTYPE_INVALID) return false;
  return mp_dtype_bits(dtype) >= 8 || !mp_dtype_is_integer(dtype);
}

// Whether the result has the operand's bytes, so that no step is needed.
static bool tile_compile_is_bitcast(const mp_op_t *op) {
  if (op->code != MP_OP_BITCAST_CONVERT) return false;
  const mp_dtype_t from = mp_op_operand_type(op, 0)->dtype, to = mp_op_result_type(op, 0)->dtype;
  return tile_compile_holds(from) && tile_compile_holds(to) && !mp_float_is_narrow(from) &&
         !mp_float_is_narrow(to) && mp_dtype_size(from) == mp_dtype_size(to) &&
         from != MP_DTYPE_BOOL && to != MP_DTYPE_BOOL;
}

bool mp_tile_looks_through(const mp_op_t *op) {
  return op->code == MP_OP_CONSTANT || op->code == MP_OP_IOTA || mp_view_looks_through(op);
}

bool mp_tile_computes(const mp_op_t *op) {
  if (tile_compile_is_bitcast(op)) return true;
  if (!mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE) || op->num_operands > MP_EW_MAX_INPUTS) return false;
  const mp_dtype_t dtype = mp_op_result_type(op, 0)->dtype;
  if (!tile_compile_holds(dtype)) return false;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (!tile_compile_holds(mp_op_operand_type(op, i)->dtype)) return false;
  }
  // It works on the bits as they are stored.
  return op->code != MP_OP_REDUCE_PRECISION || !mp_float_is_narrow(dtype);
}

// Rows of at most this many elements can stay in the cache.
enum { MAX_ROW = 8192 };

bool mp_tile_reduces(const mp_op_t *op, int64_t *out_row) {
  return mp_reduce_is_by_rows(op, out_row) && *out_row <= MAX_ROW &&
         tile_compile_holds(mp_op_result_type(op, 0)->dtype) &&
         mp_op_result_type(op, 0)->dtype == mp_op_operand_type(op, 0)->dtype;
}

// ---- Ops ----

// Whether a value with these elements is a column. Without rows there are none.
static mp_status_t tile_compile_extent(const mp_tile_compiler_t *c, const mp_op_t *op,
                                       const mp_type_t *type, bool *out_is_column) {
  const int64_t count = mp_shape_count(type);
  *out_is_column = c->row > 1 && count == c->count / c->row;
  if (*out_is_column || count == c->count) return NULL;
  return mp_op_error(op, MP_UNIMPLEMENTED, "arrays of different sizes cannot be fused");
}

// Whether rounding a result to its narrow type changes nothing, because the result is an operand
// with or without its sign changed.
static bool tile_compile_is_round(const mp_op_t *op, mp_dtype_t dtype) {
  if (op->code == MP_OP_SELECT) return true;
  if (dtype != MP_DTYPE_BF16 && dtype != MP_DTYPE_F16) return false;
  return op->code == MP_OP_ABS || op->code == MP_OP_NEGATE || op->code == MP_OP_MAXIMUM ||
         op->code == MP_OP_MINIMUM || op->code == MP_OP_CLAMP;
}

// The number that all elements of an integer array have; false if they differ.
static bool tile_compile_is_number(const mp_value_t *value, int64_t *out_number) {
  mp_view_t view;
  const mp_value_t *base;
  mp_view_of(value, MP_VIEW_MAX_OPS, &view, &base);
  if (base->op == NULL || base->op->code != MP_OP_CONSTANT) return false;
  const void *element = mp_op_splat(base->op);
  if (element == NULL) return false;
  *out_number = mp_load_index(base->type->dtype, element);
  return true;
}

// Whether the op is x << n | x >> width - n, a rotation of x to the left by n; `out_shift` gets the
// first of the two shifts.
static bool tile_compile_is_rotation(const mp_op_t *op, const mp_op_t **out_shift) {
  const mp_dtype_t dtype = mp_op_result_type(op, 0)->dtype;
  if (op->code != MP_OP_OR || mp_ew_rotate_loop(dtype) == NULL) return false;
  const mp_op_t *left = op->operands[0]->op, *right = op->operands[1]->op;
  if (left == NULL || right == NULL) return false;
  if (left->code == MP_OP_SHIFT_RIGHT_LOGICAL) {
    const mp_op_t *other = left;
    left = right;
    right = other;
  }
  int64_t n = 0, rest = 0;
  const int64_t width = mp_dtype_bits(dtype);
  *out_shift = left;
  return left->code == MP_OP_SHIFT_LEFT && right->code == MP_OP_SHIFT_RIGHT_LOGICAL &&
         left->operands[0] == right->operands[0] && tile_compile_is_number(left->operands[1], &n) &&
         tile_compile_is_number(right->operands[1], &rest) && n > 0 && n < width &&
         n + rest == width;
}

static mp_status_t tile_compile_rotation(mp_tile_compiler_t *c, const mp_op_t *op,
                                         const mp_op_t *shift) {
  const mp_dtype_t dtype = mp_op_result_type(op, 0)->dtype;
  mp_tile_step_t step = {.kind = MP_TILE_COMPUTE,
                         .code = MP_OP_COUNT,
                         .ew = {.loop = mp_ew_rotate_loop(dtype), .num_inputs = 2},
                         .native = {MP_OP_SHIFT_LEFT, dtype, dtype, 0, true},
                         .scalars = 1 << 1};
  bool is_column = false;
  MP_RETURN_IF_ERROR(tile_compile_extent(c, op, mp_op_result_type(op, 0), &is_column));
  for (uint32_t i = 0; i < 2; ++i) {
    MP_RETURN_IF_ERROR(mp_tile_read(c, op, shift->operands[i], is_column, &step.in[i]));
  }
  ++c->weight;
  uint32_t slot = 0;
  MP_RETURN_IF_ERROR(mp_tile_add_step(c, step, mp_dtype_size(dtype), is_column, &slot));
  return mp_tile_bind(c, &op->results[0], slot);
}

static mp_status_t tile_compile_arithmetic(mp_tile_compiler_t *c, const mp_op_t *op) {
  const mp_op_t *shift = NULL;
  if (tile_compile_is_rotation(op, &shift)) return tile_compile_rotation(c, op, shift);
  const mp_dtype_t dtype = mp_op_result_type(op, 0)->dtype;
  mp_tile_step_t step = {.kind = MP_TILE_COMPUTE,
                         .code = op->code,
                         .dtype = mp_ew_computing_type(dtype),
                         .native = mp_ew_native(op)};
  const bool is_narrow = mp_float_is_narrow(dtype);
  bool is_column = false;
  MP_RETURN_IF_ERROR(tile_compile_extent(c, op, mp_op_result_type(op, 0), &is_column));
  MP_RETURN_IF_ERROR(mp_ew_bind(op, &step.ew));
  for (uint32_t k = 0; k < MP_TILE_NUM_SCALARS; ++k) {
    step.with_scalars[k] = mp_ew_scalar_loop(op, mp_tile_scalars[k]);
  }
  if (op->code == MP_OP_SELECT && is_narrow) step.ew.loop = mp_ew_select_loop(sizeof(float));
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_tile_read(c, op, op->operands[i], is_column, &step.in[i]));
  }
  c->weight += mp_op_info(op->code)->cost == MP_OP_COST_COSTLY ? COSTLY_WEIGHT : 1;
  uint32_t slot = 0;
  MP_RETURN_IF_ERROR(mp_tile_add_step(c, step, is_narrow ? sizeof(float) : mp_dtype_size(dtype),
                                      is_column, &slot));
  if (is_narrow && !tile_compile_is_round(op, dtype)) {
    const mp_tile_step_t round = {.kind = MP_TILE_ROUND, .in = {slot}, .out = slot, .dtype = dtype};
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(c->arena, &c->steps, round));
  }
  return mp_tile_bind(c, &op->results[0], slot);
}

// The fold of a reduction, on elements in the form that registers hold.
static mp_status_t tile_compile_fold(mp_tile_compiler_t *c, const mp_op_t *op,
                                     const mp_fold_t **out_fold) {
  mp_fold_t *fold = MP_ARENA_NEW(c->arena, mp_fold_t);
  MP_RETURN_IF_NULL(fold);
  const mp_dtype_t held = mp_ew_computing_type(mp_op_operand_type(op, 0)->dtype);
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(c->arena, held, NULL, 0, &type));
  *out_fold = fold;
  const mp_fold_types_t types = {1, .in = &type, .init = &type, .out = &type};
  return mp_fold_create(c->arena, op, &types, fold);
}

static mp_status_t tile_compile_reduction(mp_tile_compiler_t *c, const mp_op_t *op) {
  mp_tile_step_t step = {.kind = MP_TILE_REDUCE};
  const mp_dtype_t dtype = mp_op_result_type(op, 0)->dtype;
  MP_RETURN_IF_ERROR(tile_compile_fold(c, op, &step.fold));
  step.fold_row = step.fold->row;
  MP_RETURN_IF_ERROR(mp_tile_read(c, op, op->operands[0], false, &step.in[0]));
  MP_RETURN_IF_ERROR(mp_tile_read(c, op, op->operands[1], false, &step.in[1]));
  uint32_t slot = 0;
  MP_RETURN_IF_ERROR(mp_tile_add_step(c, step, step.fold->operands[0].acc_size, true, &slot));
  ++c->weight;
  if (mp_float_is_narrow(dtype)) {
    const mp_tile_step_t round = {.kind = MP_TILE_ROUND, .in = {slot}, .out = slot, .dtype = dtype};
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(c->arena, &c->steps, round));
  }
  return mp_tile_bind(c, &op->results[0], slot);
}

static mp_status_t tile_compile_op(mp_tile_compiler_t *c, const mp_op_t *op) {
  if (mp_tile_looks_through(op)) return NULL;
  int64_t row = 0;
  if (mp_tile_reduces(op, &row)) return tile_compile_reduction(c, op);
  if (!mp_tile_computes(op)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "this operation cannot be fused");
  }
  const bool is_widening = op->code == MP_OP_CONVERT &&
                           mp_float_is_narrow(mp_op_operand_type(op, 0)->dtype) &&
                           mp_op_result_type(op, 0)->dtype == MP_DTYPE_F32;
  if (!is_widening && !tile_compile_is_bitcast(op)) return tile_compile_arithmetic(c, op);
  uint32_t slot = 0;
  bool is_column = false;
  MP_RETURN_IF_ERROR(tile_compile_extent(c, op, mp_op_result_type(op, 0), &is_column));
  MP_RETURN_IF_ERROR(mp_tile_read(c, op, op->operands[0], is_column, &slot));
  return mp_tile_bind(c, &op->results[0], slot);
}

// ---- Results ----

// Whether a COMPUTE or REDUCE step writes the slot; such a step can write to a result directly.
static bool tile_compile_is_computed(const mp_tile_compiler_t *c, uint32_t slot) {
  for (uint32_t i = 0; i < c->steps.count; ++i) {
    const mp_tile_step_t *step = &c->steps.items[i];
    const bool computes = step->kind == MP_TILE_COMPUTE || step->kind == MP_TILE_REDUCE;
    if (computes && step->out == slot) return true;
  }
  return false;
}

static mp_status_t tile_compile_result(mp_tile_compiler_t *c, const mp_op_t *terminator,
                                       const mp_value_t *value, uint32_t index) {
  const mp_dtype_t dtype = value->type->dtype;
  if (!tile_compile_holds(dtype)) {
    return mp_op_error(terminator, MP_UNIMPLEMENTED, "a result of this type cannot be fused");
  }
  bool is_column = false;
  MP_RETURN_IF_ERROR(tile_compile_extent(c, terminator, value->type, &is_column));
  const bool is_narrow = mp_float_is_narrow(dtype);
  mp_tile_step_t step = {.kind = is_narrow ? MP_TILE_NARROW : MP_TILE_COPY, .dtype = dtype};
  MP_RETURN_IF_ERROR(mp_tile_read(c, terminator, value, is_column, &step.in[0]));
  mp_tile_slot_t *slot = &c->slots.items[step.in[0]];
  if (!is_narrow && slot->place == MP_TILE_REGISTER && tile_compile_is_computed(c, step.in[0])) {
    slot->place = MP_TILE_RESULT;
    slot->index = index;
    return NULL;
  }
  MP_RETURN_IF_ERROR(
      mp_tile_add_slot(c, MP_TILE_RESULT, index, mp_dtype_size(dtype), is_column, &step.out));
  return MP_ARRAY_PUSH(c->arena, &c->steps, step);
}

// All arrays have as many elements as the first result or, if there is a reduction, as its operand.
static mp_status_t tile_compile_find_rows(mp_tile_compiler_t *c, const mp_op_t *end,
                                          uint32_t first) {
  c->count = mp_shape_count(end->operands[first]->type);
  for (const mp_op_t *op = c->block->first; op != end; op = op->next) {
    int64_t row = 0;
    if (!mp_tile_reduces(op, &row)) continue;
    const int64_t count = mp_shape_count(mp_op_operand_type(op, 0));
    if (c->row > 1 && (c->row != row || c->count != count)) {
      return mp_op_error(op, MP_UNIMPLEMENTED, "rows of different lengths cannot be fused");
    }
    c->row = row;
    c->count = count;
  }
  return NULL;
}

mp_status_t mp_tile_compile(mp_arena_t *arena, const mp_block_t *block, const mp_op_t *end,
                            uint32_t first, uint32_t num_results, mp_tile_program_t *out_program) {
  mp_tile_compiler_t c = {.arena = arena, .block = block, .row = 1};
  MP_RETURN_IF_ERROR(tile_compile_find_rows(&c, end, first));
  for (const mp_op_t *op = block->first; op != end; op = op->next) {
    MP_RETURN_IF_ERROR(tile_compile_op(&c, op));
  }
  for (uint32_t i = 0; i < num_results; ++i) {
    MP_RETURN_IF_ERROR(tile_compile_result(&c, end, end->operands[first + i], i));
  }
  const uint32_t num_steps = c.first.count + c.steps.count;
  mp_tile_step_t *steps = MP_ARENA_ARRAY(arena, mp_tile_step_t, num_steps + 1);
  MP_RETURN_IF_NULL(steps);
  if (c.first.count != 0) memcpy(steps, c.first.items, c.first.count * sizeof(*steps));
  if (c.steps.count != 0) {
    memcpy(steps + c.first.count, c.steps.items, c.steps.count * sizeof(*steps));
  }
  *out_program = (mp_tile_program_t){.count = c.count,
                                     .row = c.row,
                                     .num_slots = c.slots.count,
                                     .slots = c.slots.items,
                                     .num_steps = num_steps,
                                     .num_first = c.first.count,
                                     .steps = steps,
                                     .weight = c.weight};
  MP_RETURN_IF_ERROR(mp_tile_improve(arena, out_program));
  if (end == mp_block_terminator(block)) mp_tile_choose_order(out_program);
  out_program->cycle = out_program->row;
  if (out_program->blocks.row == 0) MP_RETURN_IF_ERROR(mp_tile_find_cycles(arena, out_program));
  mp_tile_native_t *native = MP_ARENA_NEW(arena, mp_tile_native_t);
  MP_RETURN_IF_NULL(native);
  *native = (mp_tile_native_t){.codes = MP_ARENA_ARRAY(arena, mp_tile_code_t, num_steps + 1)};
  MP_RETURN_IF_NULL(native->codes);
  out_program->native = native;
  mp_tile_choose_landing(out_program);
  return mp_tile_place_registers(arena, num_results, out_program);
}
