// Turns control flow into jumps.
//
//   while:  carried = start values        case:   SWITCH b0 b1 ...
//     cond: ...                             b0:   ...; results = ...; JUMP end
//           BRANCH_UNLESS pred end          b1:   ...; results = ...
//           body; carried = its values      end:
//           JUMP cond
//     end:
//
// A value that a loop carries has one place for all rounds, which is also the place of the loop's
// result. Where possible, the body computes the value for the next round directly into this place.
// Likewise, if a branch of a case returns a value unchanged, the result has the place of that
// value.
#include "sim/plan/emitter.h"
#include "sim/work/rounds.h"

// The slot of carried value `i`: the one to which the result is bound, that of the start value if
// it is not used after the loop, or a new place.
static mp_status_t emit_control_carried_slot(mp_emitter_t *emitter, mp_op_t *op, uint32_t i,
                                             uint32_t end, mp_slot_t *out_slot) {
  mp_value_t *result = &op->results[i];
  if (emitter->has_slot[result->id]) {
    *out_slot = mp_emit_slot(emitter, result);
    return NULL;
  }
  const uint32_t last = mp_emit_live(emitter, result)->last_use;
  const uint32_t until = last > end ? last : end;
  const mp_slot_t start = mp_emit_slot(emitter, op->operands[i]);
  bool is_free = start.kind == MP_SLOT_ARENA && emitter->places.items[start.index].end == op->id;
  for (uint32_t j = 0; j < op->num_operands && is_free; ++j) {
    is_free = j == i || !mp_emit_same_slot(start, mp_emit_slot(emitter, op->operands[j]));
  }
  if (is_free) {
    emitter->places.items[start.index].end = until;
    *out_slot = start;
    return NULL;
  }
  return mp_emit_new_place(emitter, op->id, until, result->type, out_slot);
}

static mp_status_t emit_control_start_loop(mp_emitter_t *emitter, mp_op_t *op, uint32_t end) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    mp_slot_t slot;
    MP_RETURN_IF_ERROR(emit_control_carried_slot(emitter, op, i, end, &slot));
    mp_emit_set_slot(emitter, &op->results[i], slot);
    mp_emit_set_slot(emitter, &op->regions[0]->args[i], slot);
    mp_emit_set_slot(emitter, &op->regions[1]->args[i], slot);
    MP_RETURN_IF_ERROR(mp_emit_copy(emitter, op, mp_emit_slot(emitter, op->operands[i]), slot,
                                    op->operands[i]->type));
  }
  return NULL;
}

static mp_status_t emit_control_bind_body(mp_emitter_t *emitter, mp_block_t *body) {
  const mp_op_t *terminator = mp_block_terminator(body);
  for (uint32_t i = 0; i < terminator->num_operands; ++i) {
    const mp_value_t *arg = &body->args[i];
    MP_RETURN_IF_ERROR(mp_emit_bind(emitter, terminator->operands[i], body,
                                    mp_emit_slot(emitter, arg),
                                    mp_emit_live(emitter, arg)->last_use, arg));
  }
  return NULL;
}

// Moves a terminator's operands to the slots of `targets`, which are results or arguments.
static mp_status_t emit_control_move_values(mp_emitter_t *emitter, const mp_op_t *terminator,
                                            const mp_value_t *targets, uint32_t start,
                                            uint32_t end) {
  mp_emit_move_t *moves =
      MP_ARENA_ARRAY(emitter->scratch, mp_emit_move_t, terminator->num_operands);
  MP_RETURN_IF_NULL(moves);
  for (uint32_t i = 0; i < terminator->num_operands; ++i) {
    moves[i] = (mp_emit_move_t){mp_emit_slot(emitter, terminator->operands[i]),
                                mp_emit_slot(emitter, &targets[i]), targets[i].type};
  }
  return mp_emit_moves(emitter, terminator, moves, terminator->num_operands, start, end);
}

static mp_status_t emit_control_jump(mp_emitter_t *emitter, const mp_op_t *op, mp_cmd_kind_t kind,
                                     mp_slot_t *condition, uint32_t num_targets,
                                     uint32_t **out_targets) {
  uint32_t *targets = MP_ARENA_ARRAY(emitter->arena, uint32_t, num_targets);
  MP_RETURN_IF_NULL(targets);
  *out_targets = targets;
  const mp_cmd_t command = {.kind = kind,
                            .loc = op->loc,
                            .name = mp_op_info(op->code)->name,
                            .num_operands = condition == NULL ? 0 : 1,
                            .operands = condition,
                            .num_targets = num_targets,
                            .targets = targets,
                            .control = op->control};
  return mp_emit_command(emitter, &command, NULL);
}

static mp_status_t emit_control_copy_slot(mp_emitter_t *emitter, const mp_value_t *value,
                                          mp_slot_t **out_slot) {
  *out_slot = MP_ARENA_NEW(emitter->arena, mp_slot_t);
  MP_RETURN_IF_NULL(*out_slot);
  **out_slot = mp_emit_slot(emitter, value);
  return NULL;
}

static mp_status_t emit_control_while(mp_emitter_t *emitter, mp_op_t *op) {
  const uint32_t end = emitter->live.ends[op->id];
  MP_RETURN_IF_ERROR(emit_control_start_loop(emitter, op, end));
  MP_RETURN_IF_ERROR(emit_control_bind_body(emitter, op->regions[1]));
  const uint32_t condition = emitter->commands.count;
  mp_op_t *terminator = NULL;
  MP_RETURN_IF_ERROR(mp_emit_block(emitter, op->regions[0], &terminator));
  mp_slot_t *predicate = NULL;
  MP_RETURN_IF_ERROR(emit_control_copy_slot(emitter, terminator->operands[0], &predicate));
  uint32_t *exit = NULL;
  MP_RETURN_IF_ERROR(emit_control_jump(emitter, op, MP_CMD_BRANCH_UNLESS, predicate, 1, &exit));
  emitter->commands.items[emitter->commands.count - 1].rounds = mp_work_rounds(op);
  MP_RETURN_IF_ERROR(mp_emit_block(emitter, op->regions[1], &terminator));
  MP_RETURN_IF_ERROR(
      emit_control_move_values(emitter, terminator, op->regions[1]->args, terminator->id, end));
  uint32_t *back = NULL;
  MP_RETURN_IF_ERROR(emit_control_jump(emitter, op, MP_CMD_JUMP, NULL, 1, &back));
  *back = condition;
  *exit = emitter->commands.count;
  return NULL;
}

// Whether result `i` may have the place of `given`, which a branch returns unchanged: no op reads
// it after this op, and no other result has its place.
static bool emit_control_may_have(const mp_emitter_t *emitter, const mp_op_t *op, uint32_t i,
                                  const mp_value_t *given, mp_slot_t slot) {
  if (slot.kind != MP_SLOT_ARENA || !mp_emit_passes_on(emitter, &op->results[i], given)) {
    return false;
  }
  const mp_place_t *place = &emitter->places.items[slot.index];
  if (place->end > emitter->live.ends[op->id]) return false;
  for (uint32_t j = 0; j < op->num_results; ++j) {
    const mp_value_t *other = &op->results[j];
    if (!emitter->has_slot[other->id]) continue;
    if (mp_emit_same_slot(slot, mp_emit_slot(emitter, other))) return false;
  }
  return true;
}

// A value from outside that a branch returns as result `i`, and that is dead after the op; NULL if
// there is none. With `is_there`, the value already has the result's place; without it, the result
// may take the value's place.
static const mp_value_t *emit_control_passed_on(const mp_emitter_t *emitter, const mp_op_t *op,
                                                uint32_t i, bool is_there) {
  const mp_value_t *result = &op->results[i];
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    const mp_value_t *given =
        mp_emit_root(emitter, mp_block_terminator(op->regions[r])->operands[i]);
    // Values from outside are those that were defined before the op.
    if (!emitter->has_slot[given->id]) continue;
    if (mp_emit_live(emitter, given)->defined >= op->id) continue;
    const mp_slot_t slot = mp_emit_slot(emitter, given);
    if (is_there ? mp_emit_same_slot(slot, mp_emit_slot(emitter, result))
                 : emit_control_may_have(emitter, op, i, given, slot)) {
      return given;
    }
  }
  return NULL;
}

static mp_status_t emit_control_branch(mp_emitter_t *emitter, mp_op_t *op, mp_block_t *branch) {
  const mp_op_t *terminator = mp_block_terminator(branch);
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const mp_value_t *holder = emit_control_passed_on(emitter, op, i, true);
    const uint32_t busy = holder == NULL ? 0 : mp_emit_live(emitter, holder)->last_use;
    MP_RETURN_IF_ERROR(mp_emit_bind(emitter, terminator->operands[i], branch,
                                    mp_emit_slot(emitter, &op->results[i]), busy, holder));
  }
  mp_op_t *last = NULL;
  MP_RETURN_IF_ERROR(mp_emit_block(emitter, branch, &last));
  return emit_control_move_values(emitter, last, op->results, last->id, last->id);
}

static mp_status_t emit_control_case(mp_emitter_t *emitter, mp_op_t *op) {
  const uint32_t end = emitter->live.ends[op->id];
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (emitter->has_slot[op->results[i].id]) continue;
    const uint32_t last = mp_emit_live(emitter, &op->results[i])->last_use;
    const mp_value_t *given = emit_control_passed_on(emitter, op, i, false);
    mp_slot_t slot;
    if (given != NULL) {
      slot = mp_emit_slot(emitter, given);
      emitter->places.items[slot.index].end = last > end ? last : end;
    } else {
      MP_RETURN_IF_ERROR(
          mp_emit_new_place(emitter, op->id, last > end ? last : end, op->results[i].type, &slot));
    }
    mp_emit_set_slot(emitter, &op->results[i], slot);
  }
  mp_slot_t *index = NULL;
  MP_RETURN_IF_ERROR(emit_control_copy_slot(emitter, op->operands[0], &index));
  uint32_t *targets = NULL;
  MP_RETURN_IF_ERROR(
      emit_control_jump(emitter, op, MP_CMD_SWITCH, index, op->num_regions, &targets));
  uint32_t **exits = MP_ARENA_ARRAY(emitter->scratch, uint32_t *, op->num_regions);
  MP_RETURN_IF_NULL(exits);
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    targets[r] = emitter->commands.count;
    MP_RETURN_IF_ERROR(emit_control_branch(emitter, op, op->regions[r]));
    MP_RETURN_IF_ERROR(emit_control_jump(emitter, op, MP_CMD_JUMP, NULL, 1, &exits[r]));
  }
  for (uint32_t r = 0; r < op->num_regions; ++r) *exits[r] = emitter->commands.count;
  return NULL;
}

mp_status_t mp_emit_block(mp_emitter_t *emitter, mp_block_t *block, mp_op_t **out_terminator) {
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    if (mp_op_has(op, MP_OP_TRAIT_TERMINATOR)) {
      *out_terminator = op;
      return NULL;
    }
    if (op->code == MP_OP_WHILE) {
      MP_RETURN_IF_ERROR(emit_control_while(emitter, op));
    } else if (op->code == MP_OP_CASE) {
      MP_RETURN_IF_ERROR(emit_control_case(emitter, op));
    } else {
      MP_RETURN_IF_ERROR(mp_emit_simple_op(emitter, op));
    }
  }
  return mp_status_make(MP_INTERNAL, "a block without a terminator");
}
