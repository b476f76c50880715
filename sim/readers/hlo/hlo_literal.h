// Literals (LiteralProto) become constants.
#ifndef MINIPOD_SIM_READERS_HLO_HLO_LITERAL_H_
#define MINIPOD_SIM_READERS_HLO_HLO_LITERAL_H_

#include "sim/readers/hlo/hlo_build.h"

// Makes a constant of each leaf of the instruction's literal.
MP_NODISCARD mp_status_t mp_hlo_build_literal(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                              mp_hlo_leaves_t *out);

#endif  // MINIPOD_SIM_READERS_HLO_HLO_LITERAL_H_
