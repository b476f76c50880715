// Steps that would compute the same for every tile. Private to this folder.
#ifndef MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_CYCLES_H_
#define MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_CYCLES_H_

#include "sim/kernels/fused/tile/tile.h"

// Moves the steps whose elements come again and again, as the column numbers of a matrix or a bias
// for each row do, before all others that are done per tile, and sets num_cyclic and cycle. The
// program is improved already, and its registers have no places yet.
MP_NODISCARD mp_status_t mp_tile_find_cycles(mp_arena_t *arena, mp_tile_program_t *program);

#endif  // MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_CYCLES_H_
