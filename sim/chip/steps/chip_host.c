// Copies between the device and its host's memory, for values that a program places on the host.
#include "sim/base/assert.h"
#include "sim/chip/steps/chip_builder.h"

static mp_status_t chip_host_add_step(mp_chip_builder_t *b, mp_chip_step_kind_t kind,
                                      uint32_t number) {
  const mp_chip_step_t step = {
      .kind = kind, .op = b->communication->copies.items[number].op, .copy = number, .rounds = -1};
  b->must_begin = false;
  return MP_ARRAY_PUSH(b->arena, &b->steps, step);
}

mp_status_t mp_chip_begin_copy(mp_chip_builder_t *b, uint32_t number) {
  uint32_t slot = 0;
  while (slot < b->slots.count && b->slots.items[slot]) ++slot;
  if (slot == b->slots.count) MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(b->scratch, &b->slots, false));
  b->slots.items[slot] = true;
  b->communication->copies.items[number].slot = slot;
  return chip_host_add_step(b, MP_CHIP_STEP_COPY, number);
}

mp_status_t mp_chip_await_copy(mp_chip_builder_t *b, uint32_t number) {
  const uint32_t slot = b->communication->copies.items[number].slot;
  MP_ASSERT(slot < b->slots.count && b->slots.items[slot]);  // started, not yet waited for
  b->slots.items[slot] = false;
  return chip_host_add_step(b, MP_CHIP_STEP_AWAIT, number);
}
