// A program's memory on the described chip, as XProf's memory viewer reads it.
#ifndef MINIPOD_SIM_MODEL_REPORT_PROFILE_MEMORY_PLAN_H_
#define MINIPOD_SIM_MODEL_REPORT_PROFILE_MEMORY_PLAN_H_

#include "sim/chip/chip_program.h"

// Appends an HloProto (xla/service/hlo.proto) whose buffers are those of the chip program's plan
// for the device's own memory: arguments, results that take no argument's place, the largest
// temporaries that live when most bytes do, and all others as one. Its instructions are there to
// name these buffers; it is no program. `figures` are those of the chip program's chip. `out`
// remembers that memory was short.
void mp_memory_plan_print(const mp_chip_program_t *chip_program, const mp_chip_figures_t *figures,
                          mp_str_t name, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_MODEL_REPORT_PROFILE_MEMORY_PLAN_H_
