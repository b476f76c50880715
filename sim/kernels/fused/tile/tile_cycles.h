// Steps that would compute the same for every tile. Private to this folder.
#ifndef MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_CYCLES_H_
#define MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_CYCLES_H_

#include "sim/kernels/fused/tile/tile.h"

// Finds the steps whose elements repeat, such as the column numbers of a matrix or a bias for each
// row. Moves them before the other steps of a tile, and sets num_cyclic and cycle. Call it after
// mp_tile_improve and before registers get their places.
MP_NODISCARD mp_status_t mp_tile_find_cycles(mp_arena_t *arena, mp_tile_program_t *program);

#endif  // MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_CYCLES_H_
