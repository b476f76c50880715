// From a partitioned program to its chip program: the list of passes.
#include "sim/chip/chip_compile.h"

#include "sim/base/assert.h"
#include "sim/chip/chip_program.h"
#include "sim/chip/rules/chip_policy.h"
#include "sim/chip/spaces/spaces.h"

mp_status_t mp_chip_make_fusions(mp_module_t *module, const mp_chip_figures_t *figures,
                                 mp_arena_t *arena, mp_chip_fusions_t *out_fusions) {
  *out_fusions = (mp_chip_fusions_t){.num_values = mp_module_number_values(module)};
  if (mp_chip_policy(figures)->has_tiles) {
    MP_RETURN_IF_ERROR(
        mp_layouts_assign(module, out_fusions->num_values, arena, &out_fusions->layouts));
  }
  MP_RETURN_IF_ERROR(mp_chip_fusions_find(module, figures, arena, out_fusions));
  return mp_spaces_assign(module, figures, arena, out_fusions);
}

static mp_status_t chip_compile(mp_communication_t *c, mp_chip_fusions_t *fusions,
                                mp_chip_program_t *out) {
  const mp_chip_figures_t *figures = &c->chip->figures;
  mp_memory_extras_t extras;
  MP_RETURN_IF_ERROR(mp_chip_make_fusions(c->program->partitioned, figures, c->scratch, fusions));
  MP_RETURN_IF_ERROR(mp_chip_steps_make(c, out, &extras));
  return mp_chip_memory_plan(figures, fusions, c->program, &extras, c->arena, &out->memory);
}

mp_status_t mp_chip_program_create(const mp_chip_t *chip, const mp_program_t *program,
                                   const mp_chip_links_t *links, mp_arena_t *arena,
                                   const mp_chip_program_t **out_program) {
  MP_ASSERT(program->partitioned != NULL);
  mp_chip_fusions_t fusions;
  mp_communication_t c = {
      .chip = chip, .links = links, .program = program, .fusions = &fusions, .arena = arena};
  mp_chip_program_t *chip_program = MP_ARENA_NEW(arena, mp_chip_program_t);
  MP_RETURN_IF_NULL(chip_program);
  MP_RETURN_IF_ERROR(mp_arena_create(&c.scratch));
  const mp_status_t status = chip_compile(&c, &fusions, chip_program);
  mp_arena_release(c.scratch);
  if (status == NULL) *out_program = chip_program;
  return status;
}
