// Meshes as arithmetic: positions of devices, and (sub-)axes as digits of a position.
//
// The devices of a mesh stand in row-major order over its axes, the last axis fastest; `device_ids`
// renames them. A position's coordinate along an axis is a digit of it: position / stride % size.
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

static inline int64_t mp_mesh_digit_of(mp_mesh_digit_t digit, int64_t position) {
  return position / digit.stride % digit.size;
}

// Product of the axes' sizes, saturated at INT64_MAX; 1 for a mesh without axes. Axes of size 0 or
// less make it 0.
int64_t mp_mesh_size(const mp_mesh_t *mesh);

// The same axes over the same devices, whatever the meshes are called.
bool mp_mesh_same_devices(const mp_mesh_t *a, const mp_mesh_t *b);

// The digit of an axis or of a sub-axis "x":(m)k, which views x as [m, k, rest] and is the middle
// factor. INVALID_ARGUMENT when the mesh has no such axis or the factors do not divide it. The
// mesh's size must not be 0 or saturated.
MP_NODISCARD mp_status_t mp_mesh_find_digit(const mp_mesh_t *mesh, const mp_axis_ref_t *axis,
                                            mp_mesh_digit_t *out_digit);

// The position of each device 0 .. num_devices-1; NULL when it is the device's own number.
// INVALID_ARGUMENT unless the mesh has `num_devices` devices and its device_ids, if any, are a
// permutation of them.
MP_NODISCARD mp_status_t mp_mesh_positions(mp_arena_t *arena, const mp_mesh_t *mesh,
                                           int64_t num_devices, const int64_t **out_positions);

#endif  // MINIPOD_SIM_IR_MESH_H_
