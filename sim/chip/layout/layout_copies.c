// Layout copies: which ops read which, and how large they are.
#include "sim/base/assert.h"
#include "sim/chip/layout/layout_assign_impl.h"
#include "sim/work/work.h"

// Copies an argument rather than what a transpose makes of it, which moves nothing.
static void layout_copies_move_up(const layout_assign_t *a, mp_layout_copy_t *copy) {
  mp_layout_copy_t at = *copy;
  while (at.value->op != NULL && at.value->op->code == MP_OP_TRANSPOSE && !at.is_reshape) {
    const mp_op_t *op = at.value->op;
    if (!mp_tile_layout_backward(op, 0, at.to, &at.to)) return;
    at.value = op->operands[0];
    at.from = *layout_assign_of(a, at.value);
  }
  if (at.value->op == NULL) *copy = at;
}

// The copy of a value in this layout that an earlier op of the block reads; else a new one.
static mp_status_t layout_copies_find_or_add(layout_assign_t *a, const mp_layout_copy_t *copy,
                                             uint32_t *out_number) {
  const mp_layouts_t *out = a->out;
  for (uint32_t at = out->first[copy->value->id]; at != MP_LAYOUT_NONE;
       at = out->reads.items[at].next) {
    const mp_layout_copy_t *other = &out->copies.items[out->reads.items[at].copy];
    const bool is_same =
        mp_tile_layout_equal(other->to, copy->to) && !copy->is_reshape && !other->is_reshape;
    if (!is_same || other->op->parent != copy->op->parent) continue;
    *out_number = out->reads.items[at].copy;
    return NULL;
  }
  *out_number = out->copies.count;
  return MP_ARRAY_PUSH(a->arena, &a->out->copies, *copy);
}

mp_status_t mp_layout_add_copy(layout_assign_t *a, const mp_layout_copy_t *copy) {
  MP_ASSERT(copy->is_reshape || !mp_tile_layout_equal(copy->from, copy->to));
  mp_layout_copy_t added = *copy;
  layout_copies_move_up(a, &added);
  uint32_t *first = &a->out->first[added.value->id];
  mp_layout_read_t read = {.op = added.op, .next = *first};
  MP_RETURN_IF_ERROR(layout_copies_find_or_add(a, &added, &read.copy));
  *first = a->out->reads.count;
  return MP_ARRAY_PUSH(a->arena, &a->out->reads, read);
}

static uint32_t layout_copies_find(const mp_layouts_t *layouts, const mp_value_t *value,
                                   const mp_op_t *op, bool is_reshape) {
  uint32_t at = layouts->first[value->id];
  for (; at != MP_LAYOUT_NONE; at = layouts->reads.items[at].next) {
    const mp_layout_read_t *read = &layouts->reads.items[at];
    if (read->op == op && layouts->copies.items[read->copy].is_reshape == is_reshape) {
      return read->copy;
    }
  }
  return MP_LAYOUT_NONE;
}

uint32_t mp_layouts_copy_for(const mp_layouts_t *layouts, const mp_value_t *operand,
                             const mp_op_t *op) {
  if (layouts->num_values == 0) return MP_LAYOUT_NONE;
  uint32_t copy = layout_copies_find(layouts, operand, op, false);
  while (copy == MP_LAYOUT_NONE && operand->op != NULL) {
    const mp_op_t *of = operand->op;
    if (of->code != MP_OP_RESHAPE && of->code != MP_OP_TRANSPOSE) break;
    operand = of->operands[0];
    copy = of->code == MP_OP_RESHAPE ? layout_copies_find(layouts, operand, of, true)
                                     : layout_copies_find(layouts, operand, op, false);
  }
  return copy;
}

double mp_layouts_copy_bytes(const mp_layout_copy_t *copy) {
  const mp_type_t *type = copy->is_reshape ? copy->op->results[0].type : copy->value->type;
  return mp_work_bytes_of(type) * mp_tile_padding(type, copy->to);
}

double mp_layouts_bytes(const mp_layouts_t *layouts, const mp_value_t *value) {
  const double bytes = mp_work_bytes_of(value->type);
  if (layouts->num_values == 0 || !mp_type_is_tensor(value->type) || bytes == 0) return bytes;
  return bytes * mp_tile_padding(value->type, layouts->values[value->id]);
}
