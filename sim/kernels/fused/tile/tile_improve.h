// Removes unneeded steps, and replaces arrays of copies by scalars. Private to this folder.
#ifndef MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_IMPROVE_H_
#define MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_IMPROVE_H_

#include "sim/kernels/fused/tile/tile.h"

// Improves a program whose registers have no places yet. The results keep their bits.
MP_NODISCARD mp_status_t mp_tile_improve(mp_arena_t *arena, mp_tile_program_t *program);

#endif  // MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_IMPROVE_H_
