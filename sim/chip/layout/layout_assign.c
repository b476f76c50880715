// Layout assignment: the forward pass, which gives each value a layout and inserts copies.
#include "sim/base/assert.h"
#include "sim/chip/layout/layout_assign_impl.h"
#include "sim/work/work.h"

// Whether readers that want one layout take the other one as it is: those that do not want it much
// take any, and matmuls read what has one of their dimensions in the lanes.
static bool layout_assign_serves(mp_tile_layout_t layout, const layout_state_t *state) {
  if (state->want != LAYOUT_STRONG) return true;
  return layout.lane == state->wanted.lane || layout.lane == state->wanted.sublane;
}

// Arrays of two dimensions at least have layouts that differ.
static bool layout_assign_has_tiles(const mp_value_t *value) {
  return mp_type_is_tensor(value->type) && mp_tile_layout_compact(value->type).sublane >= 0;
}

// The value in this layout at an op: copied, if it has another one.
static mp_status_t layout_assign_need(layout_assign_t *a, const mp_value_t *value,
                                      const mp_op_t *op, mp_tile_layout_t layout) {
  const mp_tile_layout_t from = *layout_assign_of(a, value);
  if (layout_assign_state(a, value)->is_any || !layout_assign_has_tiles(value)) return NULL;
  if (mp_tile_layout_equal(from, layout)) return NULL;
  const mp_layout_copy_t copy = {.value = value, .op = op, .from = from, .to = layout};
  return mp_layout_add_copy(a, &copy);
}

// The layout of a result that could have any.
static mp_tile_layout_t layout_assign_wanted(const layout_assign_t *a, const mp_value_t *value) {
  const layout_state_t *state = layout_assign_state(a, value);
  return state->want != LAYOUT_FREE ? state->wanted : mp_tile_layout_compact(value->type);
}

static mp_status_t layout_assign_matmul(layout_assign_t *a, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_tile_layout_t has = *layout_assign_of(a, op->operands[i]);
    if (mp_tile_layout_reads(op, i, has)) continue;
    MP_RETURN_IF_ERROR(layout_assign_need(a, op->operands[i], op, mp_tile_layout_read(op, i)));
  }
  const layout_state_t *state = layout_assign_state(a, &op->results[0]);
  const bool is_wanted = state->want != LAYOUT_FREE && mp_tile_layout_writes(op, state->wanted);
  *layout_assign_of(a, &op->results[0]) = is_wanted ? state->wanted : mp_tile_layout_written(op);
  return NULL;
}

// The layout of what an op computes in any layout from its operands: that of the largest operand,
// of equals the one that readers want; what they want if they cannot read that.
static bool layout_assign_choose(const layout_assign_t *a, const mp_op_t *op,
                                 mp_tile_layout_t *out) {
  const layout_state_t *state = layout_assign_state(a, &op->results[0]);
  double most = 0;
  bool is_found = false;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    mp_tile_layout_t layout;
    if (layout_assign_state(a, op->operands[i])->is_any) continue;
    if (!mp_tile_layout_forward(op, i, *layout_assign_of(a, op->operands[i]), &layout)) continue;
    const double bytes = mp_work_bytes_of(op->operands[i]->type);
    const bool is_wanted =
        state->want != LAYOUT_FREE && mp_tile_layout_equal(layout, state->wanted);
    if (is_found && (is_wanted ? bytes < most : bytes <= most)) continue;
    *out = layout;
    most = bytes;
    is_found = true;
  }
  if (is_found && !layout_assign_serves(*out, state)) *out = state->wanted;
  return is_found;
}

static mp_status_t layout_assign_by_lanes(layout_assign_t *a, const mp_op_t *op) {
  mp_tile_layout_t first = {-1, -1, false};
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_tile_layout_t has = *layout_assign_of(a, op->operands[i]);
    const mp_tile_layout_t read = mp_tile_layout_lanes(op, i, has);
    MP_RETURN_IF_ERROR(layout_assign_need(a, op->operands[i], op, read));
    if (i == 0) first = read;
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    *layout_assign_of(a, &op->results[i]) = mp_tile_layout_by_lanes(op, first);
  }
  return NULL;
}

static mp_status_t layout_assign_reshape(layout_assign_t *a, const mp_op_t *op) {
  const mp_value_t *from = op->operands[0], *to = &op->results[0];
  mp_tile_layout_t layout;
  if (mp_tile_layout_forward(op, 0, *layout_assign_of(a, from), &layout)) {
    *layout_assign_of(a, to) = layout;
    return NULL;
  }
  layout = *layout_assign_of(a, to) = layout_assign_wanted(a, to);
  if (!layout_assign_has_tiles(from) && !layout_assign_has_tiles(to)) return NULL;
  const mp_layout_copy_t copy = {.value = from,
                                 .op = op,
                                 .from = *layout_assign_of(a, from),
                                 .to = layout,
                                 .is_reshape = true};
  return mp_layout_add_copy(a, &copy);
}

// Each operand goes through as it is.
static mp_status_t layout_assign_barrier(const layout_assign_t *a, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    *layout_assign_of(a, &op->results[i]) = *layout_assign_of(a, op->operands[i]);
    layout_assign_state(a, &op->results[i])->is_any =
        layout_assign_state(a, op->operands[i])->is_any;
  }
  return NULL;
}

static bool layout_assign_is_generated(const layout_assign_t *a, const mp_op_t *op) {
  if (op->code == MP_OP_CONSTANT || op->code == MP_OP_IOTA) return true;
  if (op->code == MP_OP_BROADCAST_IN_DIM) return true;
  if (op->num_operands == 0 || !mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return false;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (!layout_assign_state(a, op->operands[i])->is_any) return false;
  }
  return true;
}

static mp_status_t layout_assign_plain(layout_assign_t *a, const mp_op_t *op) {
  mp_tile_layout_t chosen = {-1, -1, false};
  const bool is_any = layout_assign_is_generated(a, op);
  const bool is_chosen = !is_any && op->num_results > 0 && layout_assign_choose(a, op, &chosen);
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const mp_value_t *result = &op->results[i];
    layout_assign_state(a, result)->is_any = is_any;
    *layout_assign_of(a, result) = is_chosen && result->type->rank == op->results[0].type->rank
                                       ? chosen
                                       : layout_assign_wanted(a, result);
  }
  if (op->code == MP_OP_TRANSPOSE && !is_chosen) {
    mp_tile_layout_t layout;
    const bool is_known =
        mp_tile_layout_backward(op, 0, *layout_assign_of(a, &op->results[0]), &layout);
    return is_known ? layout_assign_need(a, op->operands[0], op, layout) : NULL;
  }
  // A reduction takes its operands as they are.
  for (uint32_t i = 0; is_chosen && op->code != MP_OP_REDUCE && i < op->num_operands; ++i) {
    mp_tile_layout_t layout;
    if (!mp_tile_layout_backward(op, i, chosen, &layout)) continue;
    MP_RETURN_IF_ERROR(layout_assign_need(a, op->operands[i], op, layout));
  }
  return NULL;
}

static mp_status_t layout_assign_block(layout_assign_t *a, const mp_block_t *block);

static mp_status_t layout_assign_loop(layout_assign_t *a, const mp_op_t *loop) {
  const mp_block_t *body = loop->regions[1];
  const mp_op_t *end = mp_block_terminator(body);
  for (uint32_t i = 0; i < loop->num_operands; ++i) {
    const layout_state_t *state = layout_assign_state(a, &body->args[i]);
    const mp_tile_layout_t has = *layout_assign_of(a, loop->operands[i]);
    // A copy before the loop takes the place of one per iteration.
    const bool is_free = layout_assign_state(a, loop->operands[i])->is_any ||
                         state->want == LAYOUT_RESHAPED || !layout_assign_serves(has, state);
    const mp_tile_layout_t layout = is_free ? layout_assign_wanted(a, &body->args[i]) : has;
    MP_RETURN_IF_ERROR(layout_assign_need(a, loop->operands[i], loop, layout));
    *layout_assign_of(a, &body->args[i]) = layout;
    *layout_assign_of(a, &loop->regions[0]->args[i]) = layout;
    *layout_assign_of(a, &loop->results[i]) = layout;
  }
  MP_RETURN_IF_ERROR(layout_assign_block(a, loop->regions[0]));
  MP_RETURN_IF_ERROR(layout_assign_block(a, body));
  for (uint32_t i = 0; i < end->num_operands; ++i) {
    MP_RETURN_IF_ERROR(
        layout_assign_need(a, end->operands[i], end, *layout_assign_of(a, &body->args[i])));
  }
  return NULL;
}

static mp_status_t layout_assign_branches(layout_assign_t *a, const mp_op_t *op) {
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    MP_RETURN_IF_ERROR(layout_assign_block(a, op->regions[r]));
    const mp_op_t *end = mp_block_terminator(op->regions[r]);
    for (uint32_t i = 0; i < op->num_results && i < end->num_operands; ++i) {
      mp_tile_layout_t *result = layout_assign_of(a, &op->results[i]);
      if (r == 0) *result = *layout_assign_of(a, end->operands[i]);
      MP_RETURN_IF_ERROR(layout_assign_need(a, end->operands[i], end, *result));
    }
  }
  return NULL;
}

static mp_status_t layout_assign_op(layout_assign_t *a, const mp_op_t *op) {
  if (mp_tile_layout_is_matmul(op)) return layout_assign_matmul(a, op);
  if (mp_tile_layout_is_by_lanes(op)) return layout_assign_by_lanes(a, op);
  if (op->code == MP_OP_RESHAPE && !layout_assign_state(a, op->operands[0])->is_any) {
    return layout_assign_reshape(a, op);
  }
  if (op->code == MP_OP_OPTIMIZATION_BARRIER) return layout_assign_barrier(a, op);
  if (op->code == MP_OP_WHILE) return layout_assign_loop(a, op);
  if (mp_op_info(op->code)->role == MP_OP_ROLE_CONTROL) return layout_assign_branches(a, op);
  return layout_assign_plain(a, op);
}

static mp_status_t layout_assign_block(layout_assign_t *a, const mp_block_t *block) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    MP_RETURN_IF_ERROR(layout_assign_op(a, op));
  }
  return NULL;
}

mp_status_t mp_layouts_assign(const mp_module_t *module, uint32_t num_values, mp_arena_t *arena,
                              mp_layouts_t *out_layouts) {
  const mp_block_t *main = module->main->body;
  const mp_op_t *end = mp_block_terminator(main);
  layout_assign_t a = {.arena = arena, .out = out_layouts};
  *out_layouts = (mp_layouts_t){.num_values = num_values};
  out_layouts->values = MP_ARENA_ARRAY(arena, mp_tile_layout_t, (size_t)num_values + 1);
  a.states = MP_ARENA_ARRAY(arena, layout_state_t, (size_t)num_values + 1);
  out_layouts->first = MP_ARENA_ARRAY(arena, uint32_t, (size_t)num_values + 1);
  MP_RETURN_IF_NULL(out_layouts->values);
  MP_RETURN_IF_NULL(out_layouts->first);
  MP_RETURN_IF_NULL(a.states);
  for (uint32_t i = 0; i < num_values; ++i) {
    a.states[i] = (layout_state_t){.want = LAYOUT_FREE};
    out_layouts->values[i] = (mp_tile_layout_t){-1, -1, false};
    out_layouts->first[i] = MP_LAYOUT_NONE;
  }
  mp_layout_find_wants(&a, main);
  for (uint32_t i = 0; i < main->num_args; ++i) {
    *layout_assign_of(&a, &main->args[i]) = mp_tile_layout_compact(main->args[i].type);
  }
  MP_RETURN_IF_ERROR(layout_assign_block(&a, main));
  for (uint32_t i = 0; i < end->num_operands; ++i) {
    const mp_tile_layout_t compact = mp_tile_layout_compact(end->operands[i]->type);
    MP_RETURN_IF_ERROR(layout_assign_need(&a, end->operands[i], end, compact));
    // Main has compact results: those of another layout are copied.
    MP_ASSERT(mp_tile_layout_equal(*layout_assign_of(&a, end->operands[i]), compact) ||
              !layout_assign_has_tiles(end->operands[i]) ||
              layout_assign_state(&a, end->operands[i])->is_any ||
              mp_layouts_copy_for(out_layouts, end->operands[i], end) != MP_LAYOUT_NONE);
  }
  return NULL;
}
