// How many operands only choose a value or not.
//
// Ops are seen after the uses of their results. A loop's body is seen before the uses of its
// arguments are known, so vectors that a loop carries are first taken for chosen ones. Where the
// count then says otherwise, the vector is `used`, and all is counted again.
#include <string.h>

#include "sim/mosaic/compile/mosaic_compiler.h"

typedef struct {
  mp_mosaic_frame_t *frame;
  mp_arena_t *arena;
  bool *used;  // by the id of a loop's argument
} choices_t;

// The argument of the loop's body that the op's result `i` comes from; NULL: not a carried vector.
static const mp_mosaic_value_t *mosaic_choices_carried(const mp_mosaic_op_t *loop, uint32_t i) {
  if (loop == NULL || loop->code != MP_MOSAIC_FOR || i >= loop->num_results) return NULL;
  const mp_mosaic_value_t *value = &loop->regions[0]->args[i + 1];
  return value->type->kind == MP_MOSAIC_VECTOR ? value : NULL;
}

static void mosaic_choices_count_carried(const choices_t *choices, const mp_mosaic_op_t *loop,
                                         mp_mosaic_value_t *const *values) {
  for (uint32_t i = 0; loop != NULL && i < loop->num_results; ++i) {
    const mp_mosaic_value_t *carried = mosaic_choices_carried(loop, i);
    if (carried == NULL || choices->used[carried->id]) continue;
    ++choices->frame->choices[values[i]->id];
  }
}

static void mosaic_choices_count_op(const choices_t *choices, const mp_mosaic_block_t *block,
                                    const mp_mosaic_op_t *op) {
  if (op->code == MP_MOSAIC_SCF_YIELD) {
    mosaic_choices_count_carried(choices, block->parent_op, op->operands);
  } else if (op->code == MP_MOSAIC_FOR) {
    mosaic_choices_count_carried(choices, op, op->operands + 3);
  }
  const bool selects = op->code == MP_MOSAIC_SELECT;
  if (!selects && !mp_mosaic_only_chosen(choices->frame, op)) return;
  for (uint32_t k = selects ? 1 : 0; k < op->num_operands; ++k) {
    const mp_mosaic_value_t *value = op->operands[k];
    if (!selects && value->type->kind != op->results[0].type->kind) continue;
    ++choices->frame->choices[value->id];
  }
}

static mp_status_t mosaic_choices_count(const choices_t *choices, const mp_mosaic_block_t *block) {
  uint32_t i = 0;
  const mp_mosaic_op_t **ops = mp_mosaic_block_ops(block, choices->arena, &i);
  MP_RETURN_IF_NULL(ops);
  while (i-- > 0) {
    for (uint32_t r = 0; r < ops[i]->num_regions; ++r) {
      if (ops[i]->regions[r] == NULL) continue;
      MP_RETURN_IF_ERROR(mosaic_choices_count(choices, ops[i]->regions[r]));
    }
    mosaic_choices_count_op(choices, block, ops[i]);
  }
  return NULL;
}

// Whether something else than choices uses what the loop carries; then it is marked.
static bool mosaic_choices_mark(const choices_t *choices, const mp_mosaic_op_t *loop) {
  const mp_mosaic_frame_t *frame = choices->frame;
  bool marks = false;
  for (uint32_t i = 0; i < loop->num_results; ++i) {
    const mp_mosaic_value_t *carried = mosaic_choices_carried(loop, i);
    if (carried == NULL || choices->used[carried->id]) continue;
    const uint32_t inside = carried->id, after = loop->results[i].id;
    if (frame->uses[inside] == frame->choices[inside] &&
        frame->uses[after] == frame->choices[after]) {
      continue;
    }
    choices->used[inside] = true;
    marks = true;
  }
  return marks;
}

static bool mosaic_choices_mark_all(const choices_t *choices, const mp_mosaic_block_t *block) {
  bool marks = false;
  for (const mp_mosaic_op_t *op = block->first; op != NULL; op = op->next) {
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      if (op->regions[r] != NULL) marks |= mosaic_choices_mark_all(choices, op->regions[r]);
    }
    if (op->code == MP_MOSAIC_FOR) marks |= mosaic_choices_mark(choices, op);
  }
  return marks;
}

mp_status_t mp_mosaic_count_choices(mp_mosaic_frame_t *frame, mp_arena_t *arena) {
  const uint32_t count = frame->func->num_values;
  const choices_t choices = {
      .frame = frame, .arena = arena, .used = MP_ARENA_ARRAY(arena, bool, count)};
  MP_RETURN_IF_NULL(choices.used);
  do {
    memset(frame->choices, 0, count * sizeof(*frame->choices));
    MP_RETURN_IF_ERROR(mosaic_choices_count(&choices, frame->func->body));
  } while (mosaic_choices_mark_all(&choices, frame->func->body));
  return NULL;
}
