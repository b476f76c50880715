// Assigns places to the registers of a tile program. Private to this folder.
#ifndef MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_REGISTERS_H_
#define MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_REGISTERS_H_

#include "sim/kernels/fused/tile/tile.h"

// The number of a step's inputs.
uint32_t mp_tile_num_inputs(const mp_tile_step_t *step);

// Gives the registers of a program their places, and reuses the place of a register after its last
// reader. Sets lanes, scratch_bytes, in_place and moving.
MP_NODISCARD mp_status_t mp_tile_place_registers(mp_arena_t *arena, uint32_t num_results,
                                                 mp_tile_program_t *program);

#endif  // MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_REGISTERS_H_
