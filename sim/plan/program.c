#include "sim/plan/program.h"

void mp_program_release(mp_program_t *program) {
  if (program == NULL) return;
  // The program itself lives in its arena.
  for (uint32_t i = 0; i < program->num_calls; ++i) mp_foreign_call_release(program->calls[i]);
  mp_module_t *module = program->module;
  mp_arena_release(program->arena);
  mp_module_release(module);
}
