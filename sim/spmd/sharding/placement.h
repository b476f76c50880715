// Placements: which part of a tensor each partition holds, from any form of sharding.
//
// The concrete form is a box per partition (mp_boxes_t in sim/ir/attr.h); NULL stands for "whole":
// every partition holds all of it. Dimension d split k ways has parts of ceil(n/k) elements, the
// last ones shorter or empty, as GSPMD does; every partition's array has the same local dimensions.
// An empty part keeps its place: it starts at index * ceil(n/k), beyond the array's end.
//
// Boxes and groups come from the scope's pool (pool.h): equal ones are one object.
//
// Inside manual regions a tensor is local with respect to the manual axes: only partitions that
// agree on those axes (one *group*) hold parts of the same tensor.
#ifndef MINIPOD_SIM_SPMD_SHARDING_PLACEMENT_H_
#define MINIPOD_SIM_SPMD_SHARDING_PLACEMENT_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/ir/mesh.h"
#include "sim/ir/module.h"
#include "sim/spmd/sharding/placement_pool.h"

// Where an op stands: what is manual around it.
typedef struct mp_spmd_scope_s mp_spmd_scope_t;
struct mp_spmd_scope_s {
  const mp_spmd_scope_t *parent;  // NULL: the top, nothing is manual
  uint32_t num_partitions;
  mp_axis_list_t manual_axes;  // of this scope alone
  const int32_t *groups;       // [num_partitions]: partitions that share their tensors
  mp_spmd_pool_t *pool;        // of the program
};

// The scope of the whole program.
MP_NODISCARD mp_status_t mp_spmd_scope_top(mp_arena_t *arena, uint32_t num_partitions,
                                           const mp_spmd_scope_t **out_scope);
// The scope inside a sdy.manual_computation; `mesh` may be NULL when the op has neither operands
// nor results.
MP_NODISCARD mp_status_t mp_spmd_scope_enter(mp_arena_t *arena, const mp_spmd_scope_t *parent,
                                             const mp_mesh_t *mesh, mp_axis_list_t manual_axes,
                                             const mp_spmd_scope_t **out_scope);
bool mp_spmd_scope_is_manual(const mp_spmd_scope_t *scope, mp_str_t axis);

// The placement of a tensor of `type` in `scope` by a Shardy sharding. Axes that are manual in the
// scope do not count; when `only` is given, only its axes do. Unreduced axes give partial sums
// (UNIMPLEMENTED for maximum and minimum); INVALID_ARGUMENT for meshes and axes that do not fit and
// for axes used twice. Tensors whose dimensions are not all known are whole: what follows refuses
// them by name.
MP_NODISCARD mp_status_t mp_placement_from_sdy(const mp_spmd_scope_t *scope, const mp_type_t *type,
                                               const mp_sdy_sharding_t *sharding,
                                               const mp_axis_list_t *only,
                                               const mp_boxes_t **out_boxes);

// By a GSPMD string ("{devices=[2,2]<=[4]}", grammar in gspmd.h).
MP_NODISCARD mp_status_t mp_placement_from_gspmd(const mp_spmd_scope_t *scope,
                                                 const mp_type_t *type, mp_str_t sharding,
                                                 const mp_boxes_t **out_boxes);

// Which partitions hold terms of the same sum: those whose positions differ in these digits only,
// numbered alike. NULL when there are no digits. `positions` may be NULL (a partition's own
// number).
MP_NODISCARD mp_status_t mp_placement_partials(const mp_spmd_scope_t *scope,
                                               const int64_t *positions,
                                               const mp_mesh_digit_t *digits, uint32_t num_digits,
                                               const int32_t **out_partials);

// For makers of boxes: an unfinished set of them in the pool's scratch, all numbers 0, to be filled
// through `out_starts` and `out_sizes` and handed to mp_spmd_pool_boxes at once. UNIMPLEMENTED for
// ranks above MP_MAX_RANK.
MP_NODISCARD mp_status_t mp_placement_start(const mp_spmd_scope_t *scope, const mp_type_t *type,
                                            mp_boxes_t *out_boxes, int64_t **out_starts,
                                            int64_t **out_sizes);

// Part `index` of `parts` of a dimension of `dim` elements.
void mp_placement_part(int64_t dim, int64_t parts, int64_t index, int64_t *out_start,
                       int64_t *out_size);

// Whether all partitions hold parts of the same size.
bool mp_placement_is_even(const mp_boxes_t *boxes);

bool mp_placement_equal(const mp_boxes_t *a, const mp_boxes_t *b);

// Boxes that say "whole" explicitly, which the exchange needs.
MP_NODISCARD mp_status_t mp_placement_whole(const mp_spmd_scope_t *scope, const mp_type_t *type,
                                            const mp_boxes_t **out_boxes);

// The type of a partition's array: the largest part in each dimension.
MP_NODISCARD mp_status_t mp_placement_local_type(mp_arena_t *arena, const mp_type_t *type,
                                                 const mp_boxes_t *boxes,
                                                 const mp_type_t **out_type);

// As tiles, the way OpSharding puts it: tiles[d] parts per dimension, then for each tile in
// row-major order the `copies` partitions that hold it, ascending. False when the boxes are no such
// grid.
typedef struct {
  uint32_t rank;
  const int64_t *tiles;  // [rank]
  int64_t copies;
  int64_t terms;              // of the copies are partial sums of each other: 1, or unreduced
  const int64_t *partitions;  // [product of tiles * copies]; in a tile by term, then by copy
} mp_tiles_t;
MP_NODISCARD mp_status_t mp_placement_to_tiles(mp_arena_t *arena, const mp_boxes_t *boxes,
                                               bool *out_is_grid, mp_tiles_t *out_tiles);

#endif  // MINIPOD_SIM_SPMD_SHARDING_PLACEMENT_H_
