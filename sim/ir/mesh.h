// Arithmetic with meshes: positions of devices, and axes and sub-axes as digits of a position.
//
// The positions of a mesh are numbered in row-major order over its axes, the last axis fastest;
// `device_ids` says which device is at each position. The coordinate of a position along an axis
// is position / stride % size, a digit of it as in a number with mixed radices.
#ifndef MINIPOD_SIM_IR_MESH_H_
#define MINIPOD_SIM_IR_MESH_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/ir/attr.h"

typedef struct {
  int64_t stride, size;
} mp_mesh_digit_t;

// The coordinate of a position along the axis that `digit` stands for.
static inline int64_t mp_mesh_digit_of(mp_mesh_digit_t digit, int64_t position) {
  return position / digit.stride % digit.size;
}

// The number of positions: the product of the axes' sizes, saturated at INT64_MAX; 1 for a mesh
// without axes, and 0 when an axis has size 0 or less.
int64_t mp_mesh_size(const mp_mesh_t *mesh);

// Whether both have the same axes over the same devices, whatever the meshes are called.
bool mp_mesh_same_devices(const mp_mesh_t *a, const mp_mesh_t *b);

// The digit of an axis, or of a sub-axis "x":(m)k, which views x as [m, k, rest] and is the middle
// factor (Shardy, "AxisRefAttr"). INVALID_ARGUMENT when the mesh has no such axis or the factors do
// not divide it. The mesh's size must not be 0 or saturated.
MP_NODISCARD mp_status_t mp_mesh_find_digit(const mp_mesh_t *mesh, const mp_axis_ref_t *axis,
                                            mp_mesh_digit_t *out_digit);

// The position of each device 0 .. num_devices-1, in `arena`; NULL when the position of every
// device is its own number. INVALID_ARGUMENT unless the mesh has `num_devices` devices and its
// device_ids, if any, are a permutation of them.
MP_NODISCARD mp_status_t mp_mesh_positions(mp_arena_t *arena, const mp_mesh_t *mesh,
                                           int64_t num_devices, const int64_t **out_positions);

#endif  // MINIPOD_SIM_IR_MESH_H_
