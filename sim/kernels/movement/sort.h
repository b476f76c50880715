// The two ways of stablehlo.sort, private to sim/kernels. Both sort row numbers of a group of
// slices and are stable; the kernel (sort.c) then moves the operands' elements.
//
//   keys: the comparator is "f(left) < f(right)" (or >) with one f: f is computed once for every
//     element, turned into an unsigned number with the same order, and these are sorted by digits;
//   merge: any comparator, called for many pairs at once: all merges of a level advance together,
//     and long ones are cut so that there always are many.
#ifndef MINIPOD_SIM_KERNELS_MOVEMENT_SORT_H_
#define MINIPOD_SIM_KERNELS_MOVEMENT_SORT_H_

#include <stdint.h>

#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/elementwise/region.h"

// The slices being sorted: `num_slices` of `length` rows each, behind each other; row numbers run
// through all of them.
typedef struct {
  int64_t num_slices;
  int64_t length;
  uint32_t num_operands;
  const void *const *data;  // [num_operands] [num_slices * length] elements
  const size_t *sizes;      // [num_operands] of an element
  const void *const *captures;
} mp_sort_rows_t;

typedef struct {
  const mp_region_fn_t *fn;  // f: arguments are the comparator's, those of the right side unused
  mp_dtype_t dtype;          // f's result
  bool descending;
  bool total;  // floats in total order; otherwise NaN has no place in the order
} mp_sort_key_t;

// Looks whether the comparator has that form. OK also if not: then *out_found is false.
MP_NODISCARD mp_status_t mp_sort_key_create(mp_arena_t *arena, const mp_block_t *comparator,
                                            mp_sort_key_t *out_key, bool *out_found);
size_t mp_sort_key_scratch(const mp_sort_key_t *key, uint32_t num_operands, int64_t rows);
// order[i] = number of the row that comes at place i. False when the data has no order by keys (a
// NaN under a comparison that knows no order for it): then merge.
bool mp_sort_by_key(const mp_sort_key_t *key, const mp_sort_rows_t *rows, uint32_t *order,
                    void *scratch);

size_t mp_sort_merge_scratch(const mp_region_fn_t *comparator, uint32_t num_operands, int64_t rows);
void mp_sort_by_merging(const mp_region_fn_t *comparator, const mp_sort_rows_t *rows,
                        uint32_t *order, void *scratch);

#endif  // MINIPOD_SIM_KERNELS_MOVEMENT_SORT_H_
