// Reading short rows through a view by shuffles of vectors, for machines with AVX-512.
//
// A shuffle reads *lanes* of 4 bytes. For each block of 16 lanes of the result, it stores the few
// vectors of the base that have these lanes, and their places there. view_keep.c finds them once,
// when the view is kept. If all indices of the outermost dimension have the same pattern, a shuffle
// stores it once per period.
#ifndef MINIPOD_SIM_KERNELS_FUSED_TILE_VIEW_SHUFFLE_H_
#define MINIPOD_SIM_KERNELS_FUSED_TILE_VIEW_SHUFFLE_H_

#include "sim/kernels/fused/tile/view.h"

enum {
  MP_SHUFFLE_LANE = 4,    // bytes
  MP_SHUFFLE_LANES = 16,  // of a block, and of a vector
  // With more vectors per block, moving elements one by one takes as long.
  MP_SHUFFLE_MAX_WINDOWS = 6,
};

// A vector of the base.
typedef struct {
  int32_t place;      // of its first lane
  uint16_t from, to;  // the lanes that are read, and the block's lanes that receive them
} mp_view_window_t;

struct mp_view_shuffle_s {
  int64_t period;        // blocks after which the pattern repeats,
  int64_t step;          // so many lanes later in the base
  bool is_alike;         // a period is a block; only the last block may reach the end of the base
  bool is_cut;           // the last period is not complete: the base may end there
  bool has_whole;        // all of each window is in the base
  uint32_t num_windows;  // of each block
  const mp_view_window_t *windows;
  const uint8_t (
      *picks)[MP_SHUFFLE_LANES];  // [period]: a lane of a window for each one of the block
};

// Like mp_view_load. Does nothing and returns false if `begin` is inside of a block.
bool mp_view_shuffle_load(const mp_view_shuffle_t *shuffle, size_t size, const void *base,
                          int64_t begin, int64_t count, void *out);

#endif  // MINIPOD_SIM_KERNELS_FUSED_TILE_VIEW_SHUFFLE_H_
