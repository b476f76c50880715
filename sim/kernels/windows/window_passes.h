// Reductions over windows, one dimension after the other: the reduction of a window is the
// reduction of the reductions of its rows. Each pass works on long runs of neighbours.
//
// This is for one operand whose fold is of a known kind; all others go element by element
// (reduce_window.c). The order in which a sum is taken depends on the shapes only.
#ifndef MINIPOD_SIM_KERNELS_WINDOWS_WINDOW_PASSES_H_
#define MINIPOD_SIM_KERNELS_WINDOWS_WINDOW_PASSES_H_

#include "sim/kernels/reduction/fold.h"
#include "sim/kernels/windows/window.h"

// A pass reduces along one dimension of an array [outer][dim.in][inner] to [outer][dim.out][inner].
typedef struct {
  mp_window_dim_t dim;
  int64_t outer, inner;
} mp_window_pass_t;

typedef struct {
  const mp_fold_t *fold;
  uint32_t num_passes;
  mp_window_pass_t passes[MP_MAX_RANK];
  // Leading dimensions without windows number independent slices.
  int64_t num_slices, slice_in, slice_out;
  int64_t buffer_elements;        // of each of two buffers
  _Alignas(16) char neutral[16];  // the accumulator that the reduction combines without effect
  size_t scratch_bytes;
} mp_window_passes_t;

// Plans the passes; false when the window or the fold cannot be done this way. `dtype` is the type
// of the region's arguments.
bool mp_window_passes_create(const mp_window_t *window, const mp_fold_t *fold, mp_dtype_t dtype,
                             mp_window_passes_t *out_passes);

// Reduces all windows of one slice; `scratch` has passes->scratch_bytes.
void mp_window_passes_run(const mp_window_passes_t *passes, int64_t slice, const void *operand,
                          const void *init, void *result, void *scratch);

#endif  // MINIPOD_SIM_KERNELS_WINDOWS_WINDOW_PASSES_H_
