// The compiler of the described chip: its first passes, which the printed stages also need.
#ifndef MINIPOD_SIM_CHIP_CHIP_COMPILE_H_
#define MINIPOD_SIM_CHIP_CHIP_COMPILE_H_

#include "sim/chip/fuse/chip_fusion.h"

// Assigns layouts, fuses, and assigns memory spaces. `module` is the partitioned program
// (mp_program_t.partitioned); the call numbers its values. Allocates everything in `arena`. The
// only error is that memory is short.
MP_NODISCARD mp_status_t mp_chip_make_fusions(mp_module_t *module, const mp_chip_figures_t *figures,
                                              mp_arena_t *arena, mp_chip_fusions_t *out_fusions);

#endif  // MINIPOD_SIM_CHIP_CHIP_COMPILE_H_
