// Fusion: ops that compute element by element become one op, minipod.fusion, whose kernel takes a
// few hundred elements through all of them before it goes on to the next ones.
#ifndef MINIPOD_SIM_FUSE_FUSE_H_
#define MINIPOD_SIM_FUSE_FUSE_H_

#include <stdbool.h>

#include "sim/base/status.h"
#include "sim/ir/module.h"

// Fuses what it pays to fuse in `main` and in the regions of its control flow. The module is one of
// a device (after mp_passes_finish); it is verifiable afterwards, and computes the same bits. Ops
// that only fed what was fused are left without a use. Products become one op with what is between
// them only if `bands` says so.
MP_NODISCARD mp_status_t mp_fuse(mp_module_t *module);

#endif  // MINIPOD_SIM_FUSE_FUSE_H_
