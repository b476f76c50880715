// The grid of a kernel: its steps, and the copies of blocks that overlap with them.
// Private to this folder.
#ifndef MINIPOD_SIM_MOSAIC_PRICE_PRICE_GRID_H_
#define MINIPOD_SIM_MOSAIC_PRICE_PRICE_GRID_H_

#include "sim/mosaic/price/price_walk.h"

// An argument that is a block of an array.
typedef struct {
  uint32_t arg;  // of the function
  bool is_result;
  uint32_t buffers;             // in VMEM
  double bytes;                 // of a block, in whole tiles
  const mp_mosaic_attr_t *map;  // an affine map; NULL: a function, or no index
  mp_price_func_t *func;        // gives the index
  bool is_constant;             // the index is the same in all steps
  bool is_held;                 // it is the same in some steps one after the other
  bool has_index;               // `index` is known
  int64_t index[MP_PRICE_MAX_RANK];
  double fetched;  // when the block of the next step is there
  double written;  // when the last block that was written back is in HBM
} mp_price_window_t;

typedef struct {
  mp_price_walk_t *walk;
  mp_price_func_t *main;
  uint32_t rank, num_windows, num_prefetched;
  int64_t bounds[MP_PRICE_MAX_GRID], step[MP_PRICE_MAX_GRID];
  mp_price_window_t *windows;
  double fill, steps;
  double overhead;         // cycles of all steps
  mp_price_shape_t block;  // the largest one
} mp_price_grid_t;

// Runs all steps.
MP_NODISCARD mp_status_t mp_price_grid_run(mp_price_grid_t *grid);

// price_window.c: the index of a window's block at a step; false in `out_known`: it depends on
// values that are not known.
MP_NODISCARD mp_status_t mp_price_window_index(mp_price_grid_t *grid,
                                               const mp_price_window_t *window, const int64_t *step,
                                               int64_t *out_index, bool *out_known);
// Makes the windows of the function's arguments that are no operands of their own.
MP_NODISCARD mp_status_t mp_price_make_windows(mp_price_grid_t *grid, uint32_t num_inputs,
                                               double *out_vmem);

#endif  // MINIPOD_SIM_MOSAIC_PRICE_PRICE_GRID_H_
