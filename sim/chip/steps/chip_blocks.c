// Steps of a block: its kernels, collectives, host copies and control flow, in order.
#include "sim/base/assert.h"
#include "sim/chip/steps/chip_builder.h"
#include "sim/plan/plan.h"

// ---- communication ----

static mp_status_t chip_blocks_meet(mp_chip_builder_t *b, mp_chip_step_kind_t kind,
                                    const mp_op_t *op, uint32_t number, double lost) {
  if (op->code == MP_OP_SEND) kind = MP_CHIP_STEP_SEND;
  if (op->code == MP_OP_RECV) kind = MP_CHIP_STEP_RECV;
  return mp_chip_add_step(
      b,
      &(mp_chip_step_t){
          .kind = kind, .op = op, .collective = number, .time = mp_moment_of(lost), .rounds = -1});
}

// Adds the steps that start a host copy and wait for it, or one of them.
static mp_status_t chip_blocks_copy(mp_chip_builder_t *b, uint32_t number,
                                    mp_schedule_part_t part) {
  mp_chip_copy_t *copy = &b->c->copies.items[number];
  mp_chip_step_t step = {.kind = MP_CHIP_STEP_COPY, .op = copy->op, .copy = number, .rounds = -1};
  if (part != MP_SCHEDULE_DONE) {
    copy->slot = 0;
    while (copy->slot < b->slots.count && b->slots.items[copy->slot]) ++copy->slot;
    if (copy->slot == b->slots.count) {
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(b->c->scratch, &b->slots, false));
    }
    b->slots.items[copy->slot] = true;
    MP_RETURN_IF_ERROR(mp_chip_add_step(b, &step));
  }
  if (part == MP_SCHEDULE_START) return NULL;
  MP_ASSERT(copy->slot < b->slots.count && b->slots.items[copy->slot]);  // it is started
  b->slots.items[copy->slot] = false;
  step.kind = MP_CHIP_STEP_AWAIT;
  return mp_chip_add_step(b, &step);
}

// ---- blocks ----

static mp_status_t chip_blocks_op(mp_chip_builder_t *b, const mp_op_t *op,
                                  const mp_ring_matmul_t *ring) {
  uint32_t number;
  if (mp_op_info(op->code)->role != MP_OP_ROLE_KERNEL) {
    MP_RETURN_IF_ERROR(mp_chip_add_layout_copies(b, op, op));
  }
  if (mp_plan_is_collective(op)) {
    MP_RETURN_IF_ERROR(mp_communication_add(b->c, op, &number));
    return chip_blocks_meet(b, MP_CHIP_STEP_MEET, op, number, 0);
  }
  if (mp_op_crosses(op)) {
    MP_RETURN_IF_ERROR(mp_communication_add_copy(b->c, op, &number));
    return chip_blocks_copy(b, number, MP_SCHEDULE_ALL);
  }
  switch (mp_op_info(op->code)->role) {
    case MP_OP_ROLE_KERNEL:
      if (mp_plan_is_sink(op)) return NULL;
      MP_RETURN_IF_ERROR(mp_chip_add_kernel(b, op, ring));
      return mp_chip_add_by_values(b, op);
    case MP_OP_ROLE_COMMAND:
      return mp_chip_add_scalar(b, op);
    case MP_OP_ROLE_CONTROL:
      return mp_chip_add_control(b, op);
    default:
      return NULL;
  }
}

static mp_status_t chip_blocks_slot(mp_chip_builder_t *b, const mp_chip_slot_t *slot) {
  static const mp_chip_step_kind_t kinds[] = {[MP_SCHEDULE_ALL] = MP_CHIP_STEP_MEET,
                                              [MP_SCHEDULE_START] = MP_CHIP_STEP_START,
                                              [MP_SCHEDULE_DONE] = MP_CHIP_STEP_DONE};
  const mp_chip_item_t *item = slot->item;
  if (item->copy != UINT32_MAX) return chip_blocks_copy(b, item->copy, slot->part);
  if (item->collective == UINT32_MAX) return chip_blocks_op(b, item->op, &item->ring);
  if (slot->part == MP_SCHEDULE_DONE) b->num_started -= 1;
  if (slot->part == MP_SCHEDULE_START && ++b->num_started > b->most_started) {
    b->most_started = b->num_started;
  }
  return chip_blocks_meet(b, kinds[slot->part], item->op, item->collective, slot->lost);
}

static bool chip_blocks_communicates(const mp_block_t *block) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    if (mp_communication_is_in(op)) return true;
  }
  return false;
}

mp_status_t mp_chip_add_block(mp_chip_builder_t *b, const mp_block_t *block) {
  if (b->c->links != NULL && chip_blocks_communicates(block)) {
    mp_chip_order_t order;
    MP_RETURN_IF_ERROR(mp_chip_order_block(b->c, block, &order));
    for (uint32_t i = 0; i < order.num_slots; ++i) {
      MP_RETURN_IF_ERROR(chip_blocks_slot(b, &order.slots[i]));
    }
    return mp_chip_add_layout_copies(b, block->last, block->last);
  }
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    MP_RETURN_IF_ERROR(chip_blocks_op(b, op, &(mp_ring_matmul_t){0}));
  }
  return NULL;
}
