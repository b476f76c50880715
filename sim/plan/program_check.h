// Checks of planned programs in debug and sanitizer builds (sim/base/assert.h); nothing in release
// builds.
#ifndef MINIPOD_SIM_PLAN_PROGRAM_CHECK_H_
#define MINIPOD_SIM_PLAN_PROGRAM_CHECK_H_

#include "sim/plan/program.h"

#ifdef MINIPOD_ASSERTS
// Every slot is there and every target is a command, the last command ends the program, donations
// are told on both sides, kernels and collectives are whole.
void mp_program_check(const mp_program_t *program);
#else
static inline void mp_program_check(const mp_program_t *program) {
  (void)program;
}
#endif

#endif  // MINIPOD_SIM_PLAN_PROGRAM_CHECK_H_
