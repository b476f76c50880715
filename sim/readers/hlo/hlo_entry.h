// The entry computation becomes the function main.
#ifndef MINIPOD_SIM_READERS_HLO_HLO_ENTRY_H_
#define MINIPOD_SIM_READERS_HLO_HLO_ENTRY_H_

#include "sim/readers/hlo/message/hlo_graph.h"

// Builds main and everything that it calls. Tuples among its parameters and results are split;
// layouts, shardings, aliases and donations become their attributes.
MP_NODISCARD mp_status_t mp_hlo_build_entry(mp_hlo_t *h);

#endif  // MINIPOD_SIM_READERS_HLO_HLO_ENTRY_H_
