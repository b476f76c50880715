// Windows sliding over an array: the geometry of reduce_window and select_and_scatter.
//
// Element w of window number o along a dimension is at o * stride + w * dilation - low in the
// dilated array, which has base_dilation - 1 holes between elements. An element in a hole or in the
// padding is outside and takes no part.
//
// Many windows (lanes) are processed together, one element of the window after the other.
#ifndef MINIPOD_SIM_KERNELS_WINDOWS_WINDOW_H_
#define MINIPOD_SIM_KERNELS_WINDOWS_WINDOW_H_

#include <stdint.h>

#include "sim/ir/module.h"
#include "sim/kernels/elementwise/region.h"

typedef struct {
  int64_t size;  // of the window
  int64_t stride, dilation, base_dilation, low;
  int64_t in, out;    // elements of the array, windows
  int64_t in_stride;  // elements from one to the next
  bool is_plain;      // windows of one element, number o at element o
} mp_window_dim_t;

typedef struct {
  uint32_t rank;
  mp_window_dim_t dims[MP_MAX_RANK];
  int64_t size;   // elements of a window
  int64_t count;  // windows
} mp_window_t;

// Reads the op's window attributes; one that it does not have counts as 1 (padding as 0).
// UNIMPLEMENTED for numbers so large that no array in memory can need them.
MP_NODISCARD mp_status_t mp_window_create(const mp_op_t *op, const mp_type_t *in,
                                          const mp_type_t *out, mp_window_t *out_window);

// The lanes of a block of windows.
typedef struct {
  const mp_window_t *window;
  int64_t lanes;
  int64_t index[MP_MAX_RANK];  // the element of the window
  int64_t *base;               // [lanes] offset in the array by the plain dimensions
  int64_t *origins;            // [rank][MP_REGION_MAX_LANES] of the others: o * stride - low
  // Of the present element:
  int64_t *offsets;  // [num_inside] in the array
  int64_t *where;    // [num_inside] the lanes that it is inside for, ascending
  int64_t num_inside;
} mp_window_lanes_t;

// The bytes of memory that mp_window_lanes_begin needs.
size_t mp_window_lanes_bytes(const mp_window_t *window);
// Begins with the windows first, first + 1, ... and their first element; `memory` is kept.
void mp_window_lanes_begin(const mp_window_t *window, int64_t first, int64_t lanes, void *memory,
                           mp_window_lanes_t *out_lanes);
// Goes to the windows' next element in row-major order; may be called window->size - 1 times.
void mp_window_lanes_next(mp_window_lanes_t *lanes);

#endif  // MINIPOD_SIM_KERNELS_WINDOWS_WINDOW_H_
