// The chip program: what the described chip would run.
//
// Two compilers read a partitioned program. sim/plan makes what this machine runs. The chip program
// is what the compiler of the described chip would make of the same program, before any fusion:
// kernels, collectives and control flow, as steps with times. The run on this machine adds only the
// path of control flow (sim/model/clock/replay/path.h). So virtual times do not depend on this
// machine's threads, fusions, machine code or buffers.
//
// A chip program lives in an arena, refers to its program, and may be read by any thread.
#ifndef MINIPOD_SIM_CHIP_CHIP_PROGRAM_H_
#define MINIPOD_SIM_CHIP_CHIP_PROGRAM_H_

#include "sim/chip/steps/chip_steps.h"

// Compiles a program that has kept its partitioned module (mp_program_t.partitioned) for the chip,
// in `arena`. `links` NULL: no collective overlaps with compute, and everything runs in the order
// of the program. Errors: memory is short; those of mp_plan_lower_collective and of `links`.
MP_NODISCARD mp_status_t mp_chip_program_create(const mp_chip_t *chip, const mp_program_t *program,
                                                const mp_chip_links_t *links, mp_arena_t *arena,
                                                const mp_chip_program_t **out_program);

#endif  // MINIPOD_SIM_CHIP_CHIP_PROGRAM_H_
