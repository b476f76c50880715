// The order of a program's tiles. Private to this folder.
#ifndef MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_ORDER_H_
#define MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_ORDER_H_

#include "sim/kernels/fused/tile/tile.h"

// Decides whether a program without rows takes its tiles in blocks, and which loads read blocks.
// Call it before mp_tile_find_cycles: tiles in blocks have no cycles.
void mp_tile_choose_order(mp_tile_program_t *program);

// Chooses the load that puts its elements into a result's memory: no step needs them any more when
// the result is written. Call it after cycles are found.
void mp_tile_choose_landing(mp_tile_program_t *program);

#endif  // MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_ORDER_H_
