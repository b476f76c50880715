// Fusion: elementwise ops become one op, minipod.fusion, whose kernel takes a few hundred elements
// through all of them before it continues with the next ones.
#ifndef MINIPOD_SIM_FUSE_FUSE_H_
#define MINIPOD_SIM_FUSE_FUSE_H_

#include <stdbool.h>

#include "sim/base/status.h"
#include "sim/ir/module.h"

// Fuses ops in `main` and in the regions of its control flow where that pays off. The module is
// per-device (after mp_passes_finish); it is verifiable afterwards, and computes the same bits. Ops
// that only fed fused ops are left without users. Two matmuls and the ops between them become one
// op only if `bands` is set.
MP_NODISCARD mp_status_t mp_fuse(mp_module_t *module);

#endif  // MINIPOD_SIM_FUSE_FUSE_H_
