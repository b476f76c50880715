// In which order the tiles of a program are taken. Private to this folder.
#ifndef MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_ORDER_H_
#define MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_ORDER_H_

#include "sim/kernels/fused/tile/tile.h"

// Decides whether the tiles of a program of arrays alone are taken in blocks, and which loads read
// blocks. Before cycles are looked for: tiles in blocks have none.
void mp_tile_choose_order(mp_tile_program_t *program);

// Chooses the load that puts its elements into the place of a result, because no step needs them
// when the result is written. After cycles are found.
void mp_tile_choose_landing(mp_tile_program_t *program);

#endif  // MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_ORDER_H_
