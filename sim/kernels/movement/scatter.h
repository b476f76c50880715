// What the kernels of scatter are, private to this room: in general (scatter.c), for single
// elements (scatter_elements.c), and for rows that are added (scatter_adding.c).
#ifndef MINIPOD_SIM_KERNELS_MOVEMENT_SCATTER_H_
#define MINIPOD_SIM_KERNELS_MOVEMENT_SCATTER_H_

#include <string.h>

#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/elementwise/region.h"
#include "sim/kernels/kernel.h"
#include "sim/numeric/dims.h"

// A component of the index vectors.
typedef struct {
  int64_t stride;  // of the operand's dimension that it indexes
  int64_t limit;   // the largest start at which the window still fits
} mp_scatter_component_t;

// A dimension by which positions are numbered.
typedef struct {
  int64_t dim;
  int64_t index_stride;   // the stride in the indices,
  int64_t update_stride;  // in the updates,
  int64_t batch_stride;   // and, of batching dimensions, in the operand
} mp_scatter_position_t;

// A dimension of the window.
typedef struct {
  int64_t dim;
  int64_t operand_stride;
  int64_t update_stride;
} mp_scatter_window_t;

typedef struct {
  mp_kernel_t base;
  uint32_t num_operands;
  const mp_region_fn_t *fn;
  bool sets;       // the region returns the update
  bool is_binary;  // there is one operand and the region is one op: `binary`
  mp_ew_t binary;
  size_t *sizes;    // [num_operands]: the bytes of an element
  int64_t *counts;  // [num_operands]: the bytes of an operand
  mp_dtype_t index_dtype;
  uint32_t num_components;
  mp_scatter_component_t components[MP_MAX_RANK];
  int64_t component_stride;  // from one component to the next in the indices
  uint32_t num_position_dims;
  mp_scatter_position_t position_dims[MP_MAX_RANK];
  int64_t num_positions;
  uint32_t num_window_dims;  // without `run`
  mp_scatter_window_t window_dims[MP_MAX_RANK];
  int64_t num_runs;         // per window
  mp_scatter_window_t run;  // the innermost dimension of the window, after merging
  // The indices and, `update_step` elements apart, the updates are in the order of the positions.
  bool is_list;
  int64_t update_step;
  // And there is one operand, windows are lines, and the step is 1. Then elements of the window are
  // processed one after the other, each for all positions.
  bool is_elements;
  mp_dtype_t adds;  // there is one operand, and it is added as this type; INVALID: all others
  bool adds_rows;   // and windows are rows of neighbours, at equal distances
  // The run is whole rows of the operands, so that parts can be ranges of columns.
  bool splits_columns;
  // Otherwise parts are ranges of the operands' first dimension of more than one element, along
  // which windows have one: each part takes the positions within its range (`is_list`).
  int64_t num_slices, slice;  // how many there are of that dimension, of how many elements each
} mp_scatter_t;

typedef struct {
  const mp_scatter_t *kernel;
  const mp_kernel_call_t *call;
  int64_t begin, end;   // the columns of a run that this part does
  int64_t low, high;    // and the elements of the operands
  char **acc, **x;      // [num_operands]: room for MP_REGION_MAX_LANES elements of 16 bytes
  const void **inputs;  // [2 * num_operands]
  void **outputs;       // [num_operands]
  void *registers;
  int64_t *offsets;  // [MP_REGION_MAX_LANES] of mp_scatter_choose
  uint32_t *chosen;
} mp_scatter_part_t;

// Copies an element of `size` bytes.
static inline void mp_scatter_copy_element(size_t size, char *to, const char *from) {
  switch (size) {
    case 1:
      *to = *from;
      break;
    case 4:
      memcpy(to, from, 4);
      break;
    case 8:
      memcpy(to, from, 8);
      break;
    default:
      memcpy(to, from, size);
  }
}

// Finds the elements of the operand to which positions [first, first + n) point (part->offsets; n
// is at most MP_REGION_MAX_LANES), and lists those that the part takes, in their order
// (part->chosen). Returns the number of listed elements.
int64_t mp_scatter_choose(const mp_scatter_part_t *part, int64_t first, int64_t n);
// Sets `is_list` and `is_elements` of a kernel that is set up otherwise.
void mp_scatter_recognize_elements(mp_scatter_t *kernel);
// Runs a part of a kernel with `is_elements`.
void mp_scatter_do_elements(const mp_scatter_part_t *part);

// Sets `adds` and `adds_rows` of a kernel that is set up otherwise.
void mp_scatter_recognize_adding(mp_scatter_t *kernel, const mp_op_t *op);
// Adds a window, of a kernel with `adds_rows`; offsets are in elements.
void mp_scatter_add_rows(const mp_scatter_part_t *part, int64_t operand_offset,
                         int64_t update_offset);

#endif  // MINIPOD_SIM_KERNELS_MOVEMENT_SCATTER_H_
