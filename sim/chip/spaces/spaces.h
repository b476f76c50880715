// Memory space assignment: which values are in the VMEM of a TPU while a kernel runs. One pass
// after fusion, for all values of a program.
#ifndef MINIPOD_SIM_CHIP_SPACES_SPACES_H_
#define MINIPOD_SIM_CHIP_SPACES_SPACES_H_

#include "sim/chip/fuse/chip_fusion.h"

// Sets the space of each access of `fusions`, that of layout copies, and the bytes of each fusion
// in HBM and in VMEM. Chips without VMEM have everything in HBM. The module is the one of which the
// fusions were found. The only error is that memory is short.
MP_NODISCARD mp_status_t mp_spaces_assign(const mp_module_t *module,
                                          const mp_chip_figures_t *figures, mp_arena_t *arena,
                                          mp_chip_fusions_t *fusions);

#endif  // MINIPOD_SIM_CHIP_SPACES_SPACES_H_
