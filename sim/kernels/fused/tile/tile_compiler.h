// The state of making a tile program, which tile_compile.c and tile_reading.c share. Private to
// this folder.
#ifndef MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_COMPILER_H_
#define MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_COMPILER_H_

#include "sim/base/containers/array.h"
#include "sim/kernels/fused/tile/tile.h"

// Which slot holds a value of the region, or a scalar that is repeated for all elements of an array
// or of a column.
typedef struct {
  const mp_value_t *value;
  uint32_t slot;
} mp_tile_binding_t;

typedef struct {
  mp_arena_t *arena;
  const mp_block_t *block;
  int64_t count, row;  // as the program's
  MP_ARRAY(mp_tile_binding_t) bindings;
  MP_ARRAY(mp_tile_slot_t) slots;
  MP_ARRAY(mp_tile_step_t) first, steps;
  uint32_t weight;
} mp_tile_compiler_t;

// Adds a slot of a kind of place, with elements of `size` bytes.
MP_NODISCARD mp_status_t mp_tile_add_slot(mp_tile_compiler_t *c, mp_tile_place_t place,
                                          uint32_t index, size_t size, bool is_column,
                                          uint32_t *out_slot);

// Adds a step that writes a register with elements of `size` bytes. If the step only depends on
// single elements of operands, it runs before the first tile.
MP_NODISCARD mp_status_t mp_tile_add_step(mp_tile_compiler_t *c, mp_tile_step_t step, size_t size,
                                          bool is_column, uint32_t *out_slot);

// Notes that the slot holds the value.
MP_NODISCARD mp_status_t mp_tile_bind(mp_tile_compiler_t *c, const mp_value_t *value,
                                      uint32_t slot);

// The slot of a value that `user` reads, as an array or a column; makes the steps for it if it is
// the first to do so. UNIMPLEMENTED, by mp_op_error, if steps cannot read it.
MP_NODISCARD mp_status_t mp_tile_read(mp_tile_compiler_t *c, const mp_op_t *user,
                                      const mp_value_t *value, bool is_column, uint32_t *out_slot);

#endif  // MINIPOD_SIM_KERNELS_FUSED_TILE_TILE_COMPILER_H_
