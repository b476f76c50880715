// From a partitioned program to its chip program: the list of passes.
#include "sim/chip/chip_compile.h"

#include "sim/base/assert.h"
#include "sim/chip/chip_impl.h"
#include "sim/chip/spaces/spaces.h"

mp_status_t mp_chip_make_fusions(mp_module_t *module, const mp_chip_figures_t *figures,
                                 mp_arena_t *arena, mp_chip_fusions_t *out_fusions) {
  *out_fusions = (mp_chip_fusions_t){.num_values = mp_module_number_values(module)};
  if (figures->compiler == MP_CHIP_COMPILER_TPU) {
    MP_RETURN_IF_ERROR(
        mp_layouts_assign(module, out_fusions->num_values, arena, &out_fusions->layouts));
  }
  MP_RETURN_IF_ERROR(mp_chip_fusions_find(module, figures, arena, out_fusions));
  return mp_spaces_assign(module, figures, arena, out_fusions);
}

// Allocates the tables of the steps: layout copies that have a kernel, communication. Finds uses.
static mp_status_t chip_compile_make_tables(mp_chip_builder_t *b) {
  const uint32_t num_copies = b->fusions.layouts.copies.count;
  MP_RETURN_IF_ERROR(mp_chip_order_find_uses(b));
  b->copied = MP_ARENA_ARRAY(b->scratch, uint32_t, (size_t)num_copies + 1);
  MP_RETURN_IF_NULL(b->copied);
  for (uint32_t i = 0; i < num_copies; ++i) b->copied[i] = UINT32_MAX;
  return mp_communication_start(&b->communication, b->position);
}

// Prices kernels, orders them and the collectives of each block, and makes control flow jumps.
static mp_status_t chip_compile_steps(mp_chip_builder_t *b) {
  MP_RETURN_IF_ERROR(chip_compile_make_tables(b));
  MP_RETURN_IF_ERROR(mp_chip_add_block(b, b->program->partitioned->main->body));
  MP_RETURN_IF_ERROR(mp_chip_copy_results(b));
  return mp_chip_add_step(b, &(mp_chip_step_t){.kind = MP_CHIP_STEP_END, .rounds = -1});
}

static mp_status_t chip_compile_memory(mp_chip_builder_t *b) {
  const mp_memory_extras_t extras = {b->communication.rings.count, b->held.count,
                                     b->communication.rings.items, b->held.items};
  return mp_chip_memory_plan(&b->chip->figures, &b->fusions, b->program, &extras, b->arena,
                             &b->memory);
}

static mp_status_t chip_compile(mp_chip_builder_t *b) {
  MP_RETURN_IF_ERROR(
      mp_chip_make_fusions(b->program->partitioned, &b->chip->figures, b->scratch, &b->fusions));
  MP_RETURN_IF_ERROR(chip_compile_steps(b));
  return chip_compile_memory(b);
}

// Checks that jumps lead to steps, and that every started collective is waited for.
static void chip_compile_check(const mp_chip_builder_t *b) {
  MP_ASSERT(b->num_started == 0);
  for (uint32_t i = 0; i < b->steps.count; ++i) {
    const mp_chip_step_t *step = &b->steps.items[i];
    for (uint32_t t = 0; t < step->num_targets; ++t) MP_ASSERT(step->targets[t] < b->steps.count);
    MP_ASSERT(step->first <= step->end && step->end <= b->kernels.count);
  }
}

mp_status_t mp_chip_program_create_linked(const mp_chip_t *chip, const mp_program_t *program,
                                          const mp_chip_links_t *links, mp_arena_t *arena,
                                          const mp_chip_program_t **out_program) {
  MP_ASSERT(program->partitioned != NULL);
  mp_chip_builder_t b = {
      .chip = chip,
      .program = program,
      .arena = arena,
      .communication = {
          .chip = chip, .links = links, .program = program, .fusions = &b.fusions, .arena = arena}};
  mp_chip_program_t *chip_program = MP_ARENA_NEW(arena, mp_chip_program_t);
  MP_RETURN_IF_NULL(chip_program);
  MP_RETURN_IF_ERROR(mp_arena_create(&b.scratch));
  b.communication.scratch = b.scratch;
  const mp_status_t status = chip_compile(&b);
  mp_arena_release(b.scratch);
  if (status != NULL) return status;
  chip_compile_check(&b);
  *chip_program = (mp_chip_program_t){.program = program,
                                      .num_kernels = b.kernels.count,
                                      .kernels = b.kernels.items,
                                      .num_steps = b.steps.count,
                                      .steps = b.steps.items,
                                      .num_collectives = b.communication.collectives.count,
                                      .collectives = b.communication.collectives.items,
                                      .num_copies = b.communication.copies.count,
                                      .copies = b.communication.copies.items,
                                      .num_copy_slots = b.slots.count,
                                      .num_tracks = mp_communication_num_tracks(chip),
                                      .most_started = b.most_started,
                                      .num_controls = b.num_controls,
                                      .has_choices = b.has_choices,
                                      .memory = b.memory};
  *out_program = chip_program;
  return NULL;
}

mp_status_t mp_chip_program_create(const mp_chip_t *chip, const mp_program_t *program,
                                   mp_arena_t *arena, const mp_chip_program_t **out_program) {
  return mp_chip_program_create_linked(chip, program, NULL, arena, out_program);
}
