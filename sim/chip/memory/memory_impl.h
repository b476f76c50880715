// What the files that plan the memory of a chip program share.
#ifndef MINIPOD_SIM_CHIP_MEMORY_MEMORY_IMPL_H_
#define MINIPOD_SIM_CHIP_MEMORY_MEMORY_IMPL_H_

#include "sim/base/containers/array.h"
#include "sim/chip/memory/chip_memory.h"

typedef MP_ARRAY(mp_memory_place_t) mp_memory_places_t;

// ---- memory_bytes.c ----

// Bytes rounded up to the granule of the chip's allocations.
uint64_t mp_memory_round(const mp_chip_figures_t *figures, double bytes);

// ---- memory_values.c ----

// Finds the places of all temporaries, in `arena`, those in the host's memory apart; offsets are
// not set. `out_num_positions`: all positions are below it.
MP_NODISCARD mp_status_t mp_memory_find_places(
    const mp_chip_figures_t *figures, const mp_chip_fusions_t *fusions, const mp_program_t *program,
    const mp_memory_extras_t *extras, mp_arena_t *arena, mp_memory_places_t *out_places,
    mp_memory_places_t *out_host_places, uint32_t *out_num_positions);

// ---- memory_pack.c ----

// Places that get offsets: smaller ones fill holes, so only their sum at the peak counts.
enum { MP_MEMORY_MOST_PACKED = 4096 };

// Sorts the places, the largest first.
void mp_memory_sort(mp_memory_places_t *places);
// Sorts the places, gives them offsets and returns the bytes that they take
// together. Working memory lies in `arena`.
MP_NODISCARD mp_status_t mp_memory_pack(mp_memory_places_t *places, mp_arena_t *arena,
                                        uint64_t *out_bytes);
// The position at which most bytes live, and how many do.
MP_NODISCARD mp_status_t mp_memory_find_peak(const mp_memory_places_t *places,
                                             uint32_t num_positions, mp_arena_t *arena,
                                             uint32_t *out_position, uint64_t *out_bytes);

#endif  // MINIPOD_SIM_CHIP_MEMORY_MEMORY_IMPL_H_
