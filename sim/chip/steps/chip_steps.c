// The list of what makes steps.
#include "sim/chip/steps/chip_steps.h"

#include "sim/base/assert.h"
#include "sim/chip/steps/chip_builder.h"

// Allocates the tables of the steps: layout copies that have a kernel, communication. Finds uses.
static mp_status_t chip_steps_start(mp_chip_builder_t *b) {
  const uint32_t num_copies = b->c->fusions->layouts.copies.count;
  MP_RETURN_IF_ERROR(mp_chip_find_uses(b));
  b->copied = MP_ARENA_ARRAY(b->c->scratch, uint32_t, (size_t)num_copies + 1);
  MP_RETURN_IF_NULL(b->copied);
  for (uint32_t i = 0; i < num_copies; ++i) b->copied[i] = UINT32_MAX;
  return mp_communication_start(b->c, b->position);
}

// Checks that jumps lead to steps, and that every started collective is waited for.
static void chip_steps_check(const mp_chip_builder_t *b) {
  MP_ASSERT(b->num_started == 0);
  for (uint32_t i = 0; i < b->steps.count; ++i) {
    const mp_chip_step_t *step = &b->steps.items[i];
    for (uint32_t t = 0; t < step->num_targets; ++t) MP_ASSERT(step->targets[t] < b->steps.count);
    MP_ASSERT(step->first <= step->end && step->end <= b->kernels.count);
  }
}

mp_status_t mp_chip_steps_make(mp_communication_t *c, mp_chip_program_t *out_program,
                               mp_memory_extras_t *out_extras) {
  mp_chip_builder_t b = {.c = c};
  MP_RETURN_IF_ERROR(chip_steps_start(&b));
  MP_RETURN_IF_ERROR(mp_chip_add_block(&b, c->program->partitioned->main->body));
  MP_RETURN_IF_ERROR(mp_chip_copy_results(&b));
  MP_RETURN_IF_ERROR(
      mp_chip_add_step(&b, &(mp_chip_step_t){.kind = MP_CHIP_STEP_END, .rounds = -1}));
  chip_steps_check(&b);
  *out_program = (mp_chip_program_t){.program = c->program,
                                     .num_kernels = b.kernels.count,
                                     .kernels = b.kernels.items,
                                     .num_steps = b.steps.count,
                                     .steps = b.steps.items,
                                     .num_collectives = c->collectives.count,
                                     .collectives = c->collectives.items,
                                     .num_copies = c->copies.count,
                                     .copies = c->copies.items,
                                     .num_copy_slots = b.slots.count,
                                     .num_tracks = mp_communication_num_tracks(c->chip),
                                     .most_started = b.most_started,
                                     .num_controls = b.num_controls,
                                     .has_choices = b.has_choices};
  *out_extras = (mp_memory_extras_t){c->rings.count, b.held.count, c->rings.items, b.held.items};
  return NULL;
}
