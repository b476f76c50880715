// Layout assignment: a layout for each array of a program, and the copies between ops that need
// different ones.
#ifndef MINIPOD_SIM_CHIP_LAYOUT_LAYOUT_ASSIGN_H_
#define MINIPOD_SIM_CHIP_LAYOUT_LAYOUT_ASSIGN_H_

#include "sim/base/containers/array.h"
#include "sim/chip/layout/tile_layout.h"

#define MP_LAYOUT_NONE UINT32_MAX

// A copy of `value` into another layout, before `op` reads it. Later readers in the block that need
// the same layout read the same copy.
typedef struct {
  const mp_value_t *value;
  const mp_op_t *op;
  mp_tile_layout_t from, to;
  bool is_reshape;  // the copy also makes `op`, a reshape: its result has the layout `to`
  bool reads_vmem, writes_vmem;  // set where VMEM is assigned
  bool is_placed;                // that is done
} mp_layout_copy_t;

// An op that reads a copy of a value.
typedef struct {
  const mp_op_t *op;
  uint32_t copy;
  uint32_t next;  // another reader of copies of the value; MP_LAYOUT_NONE: none
} mp_layout_read_t;

typedef struct {
  uint32_t num_values;
  mp_tile_layout_t *values;  // by value id
  MP_ARRAY(mp_layout_copy_t) copies;
  MP_ARRAY(mp_layout_read_t) reads;
  uint32_t *first;  // by value id: the latest read of a copy; MP_LAYOUT_NONE: none
} mp_layouts_t;

// Assigns layouts to all values of main and its control flow, which have ids
// (mp_module_number_values). Everything is allocated in `arena`. The only error is that memory is
// short.
MP_NODISCARD mp_status_t mp_layouts_assign(const mp_module_t *module, uint32_t num_values,
                                           mp_arena_t *arena, mp_layouts_t *out_layouts);

// The copy that an op reads in place of its operand, or of the array whose bytes that operand has;
// MP_LAYOUT_NONE: it reads the array itself.
uint32_t mp_layouts_copy_for(const mp_layouts_t *layouts, const mp_value_t *operand,
                             const mp_op_t *op);

// The bytes of a copy, and of a value in its layout; on GPUs, without layouts, of its elements.
double mp_layouts_copy_bytes(const mp_layout_copy_t *copy);
double mp_layouts_bytes(const mp_layouts_t *layouts, const mp_value_t *value);

#endif  // MINIPOD_SIM_CHIP_LAYOUT_LAYOUT_ASSIGN_H_
