// Affine views: where the elements of one array are in another.
//
// broadcast_in_dim, transpose, slice, reverse and reshape move elements by rules that are linear in
// the indices. A chain of them is one view of the array at its beginning, the *base*: a stride for
// each dimension, and where the first element lies. If a kernel reads its operand through a view,
// the intermediate array is never made.
//
// The elements of an iota are indices, so its view gives the elements themselves.
#ifndef MINIPOD_SIM_KERNELS_FUSED_TILE_VIEW_H_
#define MINIPOD_SIM_KERNELS_FUSED_TILE_VIEW_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/ir/module.h"
#include "sim/kernels/transpose.h"

typedef struct mp_view_shuffle_s mp_view_shuffle_t;  // view_shuffle.h

typedef struct {
  uint32_t rank;
  int64_t offset;                    // of the first element
  const mp_view_shuffle_t *shuffle;  // how vectors read it, of a view that was kept; else NULL
  struct {
    int64_t extent, stride;  // in elements of the base; 0 repeats, less than 0 reverses
  } dims[MP_MAX_RANK];       // major to minor; a view that was kept has no more than `rank`
} mp_view_t;

// Copies a collapsed view into memory that is as small as its dimensions allow, because kernels
// read many views. `size` is the bytes of an element if elements are read often, and prepares
// faster reads; otherwise 0.
MP_NODISCARD mp_status_t mp_view_keep(mp_arena_t *arena, const mp_view_t *view, size_t size,
                                      const mp_view_t **out_view);

// The most ops of a chain that a view looks through.
enum { MP_VIEW_MAX_OPS = 16 };

// Whether the op only moves elements, so that its result may be a view of its operand.
bool mp_view_looks_through(const mp_op_t *op);

// The view of a base that `value` is, found by looking through at most `max_ops` ops. Without such
// an op, the base is the value itself and the view is whole. `value` must have a static shape with
// at least one element. The view is collapsed: it has no dimensions of one element, and one
// dimension for neighbours that have a common stride. If the base is an iota, the view gives its
// numbers (mp_view_count), and not where its elements are in memory.
void mp_view_of(const mp_value_t *value, uint32_t max_ops, mp_view_t *out_view,
                const mp_value_t **out_base);

// Whether a collapsed view gives all `count` elements of its base in their order.
bool mp_view_is_whole(const mp_view_t *view, int64_t count);

// Whether all elements are one element of the base.
bool mp_view_is_one(const mp_view_t *view);

// Whether the view repeats each element of a column for a row of `row` elements, of `count`
// elements in all.
bool mp_view_is_spread(const mp_view_t *view, int64_t count, int64_t row);

// The elements [begin, begin + count) of a collapsed view, in row-major order. Where they are
// neighbours in the base, `out_first` gets the place of the first of them there, in elements;
// otherwise the result is false.
bool mp_view_find_run(const mp_view_t *view, int64_t begin, int64_t count, int64_t *out_first);

// Copies them, of `size` bytes each, to `out`.
void mp_view_load(const mp_view_t *view, size_t size, const void *base, int64_t begin,
                  int64_t count, void *out);

// Whether a collapsed view transposes: in the base, the elements of a column are neighbours, and
// those of a row are not. A row has the innermost dimension, a column the one around it.
bool mp_view_transposes(const mp_view_t *view);

// Copies a block of a view that transposes, from element `begin` on, to rows at `out`. The block is
// in the two innermost dimensions; the view knows its `src_step`.
void mp_view_load_block(const mp_view_t *view, size_t size, const void *base, int64_t begin,
                        mp_matrix_t block, void *out);

// Writes their places in the base, offset included, as elements of `dtype`: the view of an iota.
void mp_view_count(const mp_view_t *view, mp_dtype_t dtype, int64_t begin, int64_t count,
                   void *out);

#endif  // MINIPOD_SIM_KERNELS_FUSED_TILE_VIEW_H_
