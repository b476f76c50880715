// The two methods of stablehlo.sort; private to sim/kernels. Both sort the row numbers of a group
// of slices and are stable; the kernel (sort.c) then moves the operands' elements. If the program
// only uses the first rows of each slice (sim/passes/sort_first.c), keys do not sort the others.
//
//   keys: for a comparator "f(left) < f(right)" (or >) with the same f on both sides. f is
//     computed once for every element and turned into an unsigned number with the same order; these
//     numbers are sorted by digits.
//   merge: for any comparator, which is called for many pairs at once. All merges of a level
//     advance together, and long ones are cut so that there are always many.
#ifndef MINIPOD_SIM_KERNELS_MOVEMENT_SORT_H_
#define MINIPOD_SIM_KERNELS_MOVEMENT_SORT_H_

#include <stdint.h>

#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/elementwise/region.h"

// The slices that are sorted: `num_slices` of `length` rows each, one after the other. Rows are
// numbered through all of them.
typedef struct {
  int64_t num_slices;
  int64_t length;
  int64_t kept;  // how many rows of each sorted slice to keep, the first ones; >= 1
  uint32_t num_operands;
  // [num_operands] [num_slices * length] elements; NULL where the comparator reads none.
  const void *const *data;
  const size_t *sizes;  // [num_operands] of an element
  const void *const *captures;
} mp_sort_rows_t;

// A comparator of that form.
typedef struct {
  const mp_region_fn_t *fn;  // f; it has the comparator's arguments and ignores the right side's
  mp_dtype_t dtype;          // f's result
  bool descending;
  bool total;  // floating-point numbers in total order; otherwise NaN has no place in the order
} mp_sort_key_t;

// Reads the comparator as one of that form; *out_found is false when it is not.
MP_NODISCARD mp_status_t mp_sort_key_create(mp_arena_t *arena, const mp_block_t *comparator,
                                            mp_sort_key_t *out_key, bool *out_found);
// Whether keys give all data an order, so that mp_sort_by_key never fails.
bool mp_sort_key_is_total(const mp_sort_key_t *key);
// The bytes of scratch that mp_sort_by_key needs to keep `kept` rows of slices of `length` rows.
size_t mp_sort_key_scratch(const mp_sort_key_t *key, uint32_t num_operands, int64_t length,
                           int64_t kept);
// Sets order[s * kept + i] to the number of the row that belongs at place i of slice s. False when
// keys give the data no order, because of a NaN under a comparison that has no place for it; it
// must then be merged.
bool mp_sort_by_key(const mp_sort_key_t *key, const mp_sort_rows_t *rows, uint32_t *order,
                    void *scratch);

// The bytes of scratch that mp_sort_by_merging needs for `rows` rows in all.
size_t mp_sort_merge_scratch(const mp_region_fn_t *comparator, uint32_t num_operands, int64_t rows);
// Sets order[s * length + i] to the number of the row that belongs at place i of slice s, for all
// rows, however many are kept.
void mp_sort_by_merging(const mp_region_fn_t *comparator, const mp_sort_rows_t *rows,
                        uint32_t *order, void *scratch);

#endif  // MINIPOD_SIM_KERNELS_MOVEMENT_SORT_H_
