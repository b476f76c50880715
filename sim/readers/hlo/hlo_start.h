// Shared by instructions whose opcodes end in "-start".
#ifndef MINIPOD_SIM_READERS_HLO_HLO_START_H_
#define MINIPOD_SIM_READERS_HLO_HLO_START_H_

#include "sim/readers/hlo/hlo_build.h"

// The leaves of such an instruction: its operands, its results, and zeros for the rest of its
// shape, which no program reads.
MP_NODISCARD mp_status_t mp_hlo_finish_start(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                             mp_hlo_leaves_t operands, mp_hlo_leaves_t results,
                                             mp_hlo_leaves_t *out);

#endif  // MINIPOD_SIM_READERS_HLO_HLO_START_H_
