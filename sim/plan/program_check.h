// Checks of planned programs in debug and sanitizer builds (sim/base/assert.h); nothing in release
// builds.
#ifndef MINIPOD_SIM_PLAN_PROGRAM_CHECK_H_
#define MINIPOD_SIM_PLAN_PROGRAM_CHECK_H_

#include "sim/plan/program.h"

#ifdef MINIPOD_ASSERTS
// Checks that every slot exists and every target is a command, that the last command ends the
// program, that parameter and result of a donation name each other, and that kernels and
// collectives are complete. Aborts otherwise.
void mp_program_check(const mp_program_t *program);
#else
static inline void mp_program_check(const mp_program_t *program) {
  (void)program;
}
#endif

#endif  // MINIPOD_SIM_PLAN_PROGRAM_CHECK_H_
