// Placements: which part of a tensor each partition holds, for any form of sharding.
//
// A placement is a box per partition (mp_boxes_t in sim/ir/attr.h); NULL stands for "whole": every
// partition holds all of it. A dimension of n elements that is cut into k parts has parts of
// ceil(n/k) elements, of which the last ones are shorter or empty, as in GSPMD; the array of every
// partition has the size of the largest part. Part i starts at i * ceil(n/k), even if it is empty
// and that is beyond the array's end.
//
// Boxes and groups come from the scope's pool (placement_pool.h): equal ones are one object.
//
// Inside of manual regions a tensor is local with respect to the manual axes: only partitions that
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

// The scope of an op: which axes are manual around it.
typedef struct mp_spmd_scope_s mp_spmd_scope_t;
struct mp_spmd_scope_s {
  const mp_spmd_scope_t *parent;  // NULL: the top, nothing is manual
  uint32_t num_partitions;
  mp_axis_list_t manual_axes;  // of this scope alone
  const int32_t *groups;       // [num_partitions]: the number of each partition's group
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

// The placement of a tensor of `type` in `scope` by a Shardy sharding. Axes that are manual in the
// scope do not count; if `only` is given, only its axes do. Unreduced axes make terms of sums, or
// of maxima or minima. INVALID_ARGUMENT for meshes and axes that do not fit and for axes used
// twice. Tensors whose dimensions are not all known are whole; later stages refuse them by name.
MP_NODISCARD mp_status_t mp_placement_from_sdy(const mp_spmd_scope_t *scope, const mp_type_t *type,
                                               const mp_sdy_sharding_t *sharding,
                                               const mp_axis_list_t *only,
                                               const mp_boxes_t **out_boxes);

// Makes the array that says which partitions hold terms of the same sum (mp_boxes_t.partials):
// those whose positions differ only in these digits get the same number. NULL when there are no
// digits. `positions` may be NULL: then a partition's position is its number.
MP_NODISCARD mp_status_t mp_placement_partials(const mp_spmd_scope_t *scope,
                                               const int64_t *positions,
                                               const mp_mesh_digit_t *digits, uint32_t num_digits,
                                               const int32_t **out_partials);

// For code that makes boxes: begins a set of boxes, whose numbers are all 0, in the pool's scratch
// memory. The caller fills them in through `out_starts` and `out_sizes`, and must then give them to
// mp_spmd_pool_boxes before the pool's scratch is used again. UNIMPLEMENTED for ranks above
// MP_MAX_RANK.
MP_NODISCARD mp_status_t mp_placement_start(const mp_spmd_scope_t *scope, const mp_type_t *type,
                                            mp_boxes_t *out_boxes, int64_t **out_starts,
                                            int64_t **out_sizes);

// The start and the size of part `index` when a dimension of `dim` elements is cut into `parts`.
void mp_placement_part(int64_t dim, int64_t parts, int64_t index, int64_t *out_start,
                       int64_t *out_size);

// Whether all partitions hold parts of the same size.
bool mp_placement_is_even(const mp_boxes_t *boxes);

// Whether both are the same placement; NULL is whole.
bool mp_placement_equal(const mp_boxes_t *a, const mp_boxes_t *b);

// Boxes for "whole", which the exchange needs instead of NULL.
MP_NODISCARD mp_status_t mp_placement_whole(const mp_spmd_scope_t *scope, const mp_type_t *type,
                                            const mp_boxes_t **out_boxes);

// The type of a partition's array: the largest part in each dimension.
MP_NODISCARD mp_status_t mp_placement_local_type(mp_arena_t *arena, const mp_type_t *type,
                                                 const mp_boxes_t *boxes,
                                                 const mp_type_t **out_type);

// A placement as a grid of tiles, which is how XLA's OpSharding describes it.
typedef struct {
  uint32_t rank;
  const int64_t *tiles;       // [rank]: the number of parts per dimension
  int64_t copies;             // the number of partitions that hold the same tile
  int64_t terms;              // number of these that hold terms of one sum; 1: the value is no sum
  const int64_t *partitions;  // [product of tiles * copies]; in a tile by term, then by copy
} mp_tiles_t;
// Converts boxes to tiles in `arena`; `*out_is_grid` is false when they are no such grid.
MP_NODISCARD mp_status_t mp_placement_to_tiles(mp_arena_t *arena, const mp_boxes_t *boxes,
                                               bool *out_is_grid, mp_tiles_t *out_tiles);

#endif  // MINIPOD_SIM_SPMD_SHARDING_PLACEMENT_H_
