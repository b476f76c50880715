// The backward pass: matmuls prefer layouts strongly, reshapes and main's results less.
#include "sim/chip/layout/layout_assign_impl.h"

// Whether a value gets one element at a time along the lanes: a stack of what the iterations of a
// loop compute does not have them there.
static bool layout_wants_is_stack(const mp_value_t *value, int32_t lane) {
  const mp_op_t *op = value->op;
  if (op == NULL || op->code != MP_OP_DYNAMIC_UPDATE_SLICE || lane < 0) return false;
  return op->operands[1]->type->dims[lane] == 1 && value->type->dims[lane] > 1;
}

static void layout_wants_note(const layout_assign_t *a, const mp_value_t *value, layout_want_t want,
                              mp_tile_layout_t layout) {
  layout_state_t *state = layout_assign_state(a, value);
  if (want < state->want || layout_wants_is_stack(value, layout.lane)) return;
  state->want = want;
  state->wanted = layout;
}

static void layout_wants_note_same(const layout_assign_t *a, const mp_value_t *value,
                                   const mp_value_t *as) {
  const layout_state_t *state = layout_assign_state(a, as);
  if (state->want != LAYOUT_FREE) layout_wants_note(a, value, state->want, state->wanted);
}

// A stack that no reader wants in a layout has a dimension of what iterations write in its lanes.
static void layout_wants_note_stack(const layout_assign_t *a, const mp_value_t *value) {
  layout_state_t *state = layout_assign_state(a, value);
  if (!layout_wants_is_stack(value, mp_tile_layout_compact(value->type).lane)) return;
  mp_tile_layout_t layout = mp_tile_layout_compact(value->op->operands[1]->type);
  if (state->want != LAYOUT_FREE || layout.lane < 0) return;
  if (layout.sublane < 0) layout.sublane = mp_tile_layout_other(value->type, layout.lane);
  *state = (layout_state_t){.want = LAYOUT_WEAK, .wanted = layout};
}

static void layout_wants_block(const layout_assign_t *a, const mp_block_t *block);

static void layout_wants_loop(const layout_assign_t *a, const mp_op_t *loop) {
  const mp_block_t *body = loop->regions[1];
  const mp_op_t *end = mp_block_terminator(body);
  for (uint32_t i = 0; i < end->num_operands; ++i) {
    layout_wants_note_same(a, end->operands[i], &loop->results[i]);
    layout_wants_note_stack(a, end->operands[i]);
  }
  layout_wants_block(a, body);
  for (uint32_t i = 0; i < loop->num_operands; ++i) {
    layout_wants_note_same(a, loop->operands[i], &body->args[i]);
  }
}

static void layout_wants_branches(const layout_assign_t *a, const mp_op_t *op) {
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    const mp_op_t *end = mp_block_terminator(op->regions[r]);
    for (uint32_t i = 0; i < op->num_results && i < end->num_operands; ++i) {
      layout_wants_note_same(a, end->operands[i], &op->results[i]);
    }
    layout_wants_block(a, op->regions[r]);
  }
}

// Whether two dimensions have all elements, so that only their tiles differ.
static bool layout_wants_is_flat(const mp_type_t *type) {
  uint32_t num_dims = 0;
  for (uint32_t i = 0; i < type->rank; ++i) num_dims += type->dims[i] != 1;
  return num_dims == 2;
}

// What an op's reader wants of its result. A reshape to two dimensions moves nothing if they are in
// the operand's tiles. It is cheaper to copy what a reduction leaves than its operand.
static layout_state_t layout_wants_wish(const layout_assign_t *a, const mp_op_t *op,
                                        const mp_value_t *result) {
  layout_state_t wish = *layout_assign_state(a, result);
  if (op->code == MP_OP_RESHAPE && wish.want < LAYOUT_RESHAPED &&
      layout_wants_is_flat(result->type)) {
    wish.want = LAYOUT_RESHAPED;
    wish.wanted = mp_tile_layout_compact(result->type);
  }
  if (op->code == MP_OP_REDUCE && wish.want == LAYOUT_RESHAPED) wish.want = LAYOUT_FREE;
  return wish;
}

static void layout_wants_plain(const layout_assign_t *a, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (mp_tile_layout_is_matmul(op)) {
      layout_wants_note(a, op->operands[i], LAYOUT_STRONG, mp_tile_layout_read(op, i));
      continue;
    }
    mp_tile_layout_t layout;
    if (op->num_results == 0) continue;
    const layout_state_t wish = layout_wants_wish(a, op, &op->results[i < op->num_results ? i : 0]);
    if (wish.want == LAYOUT_FREE) continue;
    if (mp_tile_layout_backward(op, i, wish.wanted, &layout)) {
      layout_wants_note(a, op->operands[i], wish.want, layout);
    }
  }
}

static void layout_wants_block(const layout_assign_t *a, const mp_block_t *block) {
  for (const mp_op_t *op = block->last; op != NULL; op = op->prev) {
    if (op->code == MP_OP_WHILE) {
      layout_wants_loop(a, op);
    } else if (mp_op_info(op->code)->role == MP_OP_ROLE_CONTROL) {
      layout_wants_branches(a, op);
    } else {
      layout_wants_plain(a, op);
    }
  }
}

void mp_layout_find_wants(const layout_assign_t *a, const mp_block_t *main) {
  const mp_op_t *end = mp_block_terminator(main);
  for (uint32_t i = 0; i < end->num_operands; ++i) {
    layout_wants_note(a, end->operands[i], LAYOUT_WEAK,
                      mp_tile_layout_compact(end->operands[i]->type));
  }
  layout_wants_block(a, main);
}
