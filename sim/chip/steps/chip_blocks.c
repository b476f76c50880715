// Steps of a block: its kernels, collectives, host copies and control flow, in order.
#include "sim/base/assert.h"
#include "sim/chip/steps/chip_builder.h"
#include "sim/plan/plan.h"

// ---- communication ----

static mp_status_t chip_blocks_add_meeting(mp_chip_builder_t *b, mp_chip_step_kind_t kind,
                                           const mp_op_t *op, uint32_t number) {
  return mp_chip_add_step(
      b, &(mp_chip_step_t){.kind = kind, .op = op, .collective = number, .rounds = -1});
}

static mp_status_t chip_blocks_meet(mp_chip_builder_t *b, const mp_op_t *op, uint32_t number) {
  mp_chip_step_kind_t kind = MP_CHIP_STEP_MEET;
  if (op->code == MP_OP_SEND) kind = MP_CHIP_STEP_SEND;
  if (op->code == MP_OP_RECV) kind = MP_CHIP_STEP_RECV;
  return chip_blocks_add_meeting(b, kind, op, number);
}

static mp_status_t chip_blocks_collective(mp_chip_builder_t *b, const mp_op_t *op) {
  uint32_t number;
  MP_RETURN_IF_ERROR(mp_communication_add(b->communication, op, &number));
  return chip_blocks_meet(b, op, number);
}

// ---- blocks ----

static mp_status_t chip_blocks_copy(mp_chip_builder_t *b, const mp_op_t *op) {
  uint32_t number;
  MP_RETURN_IF_ERROR(mp_communication_add_copy(b->communication, op, &number));
  MP_RETURN_IF_ERROR(mp_chip_begin_copy(b, number));
  return mp_chip_await_copy(b, number);
}

static mp_status_t chip_blocks_op(mp_chip_builder_t *b, const mp_op_t *op,
                                  const mp_ring_matmul_t *ring) {
  if (mp_op_info(op->code)->role != MP_OP_ROLE_KERNEL) {
    MP_RETURN_IF_ERROR(mp_chip_add_layout_copies(b, op, op));
  }
  if (mp_plan_is_collective(op)) return chip_blocks_collective(b, op);
  if (mp_op_crosses(op)) return chip_blocks_copy(b, op);
  switch (mp_op_info(op->code)->role) {
    case MP_OP_ROLE_KERNEL:
      if (mp_plan_is_sink(op)) return NULL;
      return mp_chip_add_kernel(b, op, ring);
    case MP_OP_ROLE_COMMAND:
      return mp_chip_add_scalar(b, op);
    case MP_OP_ROLE_CONTROL:
      return mp_chip_add_control(b, op);
    default:
      return NULL;
  }
}

static mp_status_t chip_blocks_slot(mp_chip_builder_t *b, const mp_chip_slot_t *slot) {
  const mp_chip_item_t *item = slot->item;
  if (item->copy != UINT32_MAX) {
    if (slot->part != MP_SCHEDULE_DONE) MP_RETURN_IF_ERROR(mp_chip_begin_copy(b, item->copy));
    return slot->part == MP_SCHEDULE_START ? NULL : mp_chip_await_copy(b, item->copy);
  }
  switch (slot->part) {
    case MP_SCHEDULE_START:
      if (++b->num_started > b->most_started) b->most_started = b->num_started;
      return chip_blocks_add_meeting(b, MP_CHIP_STEP_START, item->op, item->collective);
    case MP_SCHEDULE_DONE:
      b->num_started -= 1;
      return mp_chip_add_step(b, &(mp_chip_step_t){.kind = MP_CHIP_STEP_DONE,
                                                   .op = item->op,
                                                   .collective = item->collective,
                                                   .time = mp_moment_of(slot->lost),
                                                   .rounds = -1});
    case MP_SCHEDULE_ALL:
      break;
  }
  if (item->collective != UINT32_MAX) return chip_blocks_meet(b, item->op, item->collective);
  return chip_blocks_op(b, item->op, &item->ring);
}

static bool chip_blocks_communicates(const mp_block_t *block) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    if (mp_communication_is_in(op)) return true;
  }
  return false;
}

mp_status_t mp_chip_add_block(mp_chip_builder_t *b, const mp_block_t *block) {
  if (b->communication->links != NULL && chip_blocks_communicates(block)) {
    mp_chip_order_t order;
    MP_RETURN_IF_ERROR(mp_chip_order_block(b->communication, block, &order));
    for (uint32_t i = 0; i < order.num_slots; ++i) {
      MP_RETURN_IF_ERROR(chip_blocks_slot(b, &order.slots[i]));
    }
    return NULL;
  }
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    MP_RETURN_IF_ERROR(chip_blocks_op(b, op, &(mp_ring_matmul_t){0}));
  }
  return NULL;
}
