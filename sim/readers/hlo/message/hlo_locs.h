// Metadata (OpMetadata) as source locations: the name of an operation and the place in a file.
#ifndef MINIPOD_SIM_READERS_HLO_MESSAGE_HLO_LOCS_H_
#define MINIPOD_SIM_READERS_HLO_MESSAGE_HLO_LOCS_H_

#include "sim/readers/hlo/message/hlo_graph.h"

// Splits the module's StackFrameIndexProto, to which metadata may refer, into its lists.
MP_NODISCARD mp_status_t mp_hlo_read_frames(mp_hlo_t *h);
// Sets inst->loc. Without metadata it is the instruction's name.
MP_NODISCARD mp_status_t mp_hlo_read_loc(mp_hlo_t *h, mp_hlo_inst_t *inst);

#endif  // MINIPOD_SIM_READERS_HLO_MESSAGE_HLO_LOCS_H_
