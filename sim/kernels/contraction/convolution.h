// A convolution as convolution.c has prepared it, and what its loops and those of conv_depthwise.c
// share. Private to this folder.
#ifndef MINIPOD_SIM_KERNELS_CONTRACTION_CONVOLUTION_H_
#define MINIPOD_SIM_KERNELS_CONTRACTION_CONVOLUTION_H_

#include <stdint.h>

#include "sim/kernels/contraction/gemm.h"
#include "sim/kernels/contraction/operand.h"

typedef struct mp_conv_phase_s mp_conv_phase_t;  // conv_phases.h

// One spatial dimension of the window.
typedef struct {
  int64_t input;   // extent of the input
  int64_t stride;  // bytes from one element of the input to the next
  int64_t window;  // extent of the kernel
  int64_t step;    // from one window to the next (window_strides)
  int64_t pad;     // low padding
  int64_t lhs_dilation, rhs_dilation;
  int64_t kernel_stride;  // bytes from one element of the kernel to the next
} mp_conv_dim_t;

// One dimension by which the result's positions are numbered: the batch or a spatial dimension.
typedef struct {
  int64_t extent;
  int64_t out_stride;  // bytes in the result
  int spatial;         // which spatial dimension; -1: the batch
} mp_position_dim_t;

typedef struct {
  mp_kernel_t base;
  mp_gemm_t gemm;
  bool complex;
  bool swapped;  // C is [feature, position]
  bool fused;    // (last spatial dimension, features) of a window are contiguous in the input
  uint32_t num_spatial;
  mp_conv_dim_t window[MP_MAX_RANK];
  uint32_t num_positions;
  mp_position_dim_t positions[MP_MAX_RANK];
  int64_t batch_stride;         // bytes in the input
  int64_t input_group_stride;   // bytes in the input from one group to the next
  int64_t output_group_stride;  // bytes in the result
  mp_axes_t features;           // input features of a group
  mp_convert_t convert, store;
  uint32_t element, acc_bytes;
  mp_operand_t kernel;
  int64_t kernel_offset;     // bytes: where a reversed window starts
  int64_t kernel_in_stride;  // bytes in the kernel from one input feature to the next
  mp_axes_t out_positions, out_features;
  struct {            // set by mp_conv_narrow_plan
    int64_t taps;     // window positions in all spatial dimensions but the last
    int64_t segment;  // k of one tap: those of the last spatial dimension and the features
    int64_t block;    // taps that are summed up at once
    int64_t row_bytes,
        block_bytes;  // of a copied row of the input; of a packed block of the kernel
    size_t rows_bytes, kernel_bytes;
  } narrow;
} mp_conv_kernel_t;

// The place of a position's window in the input.
typedef struct {
  int64_t offset;               // bytes to the element of the batch
  int64_t origin[MP_MAX_RANK];  // the window's corner in the dilated input; may be negative
} mp_patch_row_t;

// Writes the windows of positions [first, first + count) to `out_rows`.
void mp_conv_rows(const mp_conv_kernel_t *self, int64_t first, int64_t count,
                  mp_patch_row_t *out_rows);

// The byte offset of the input element under position `at` of a window, looking at the first
// `num_dims` spatial dimensions; -1 in padding and in holes of the dilated input.
int64_t mp_conv_offset(const mp_conv_kernel_t *self, const mp_patch_row_t *row, const int64_t *at,
                       uint32_t num_dims);

// Pack windows as mp_gemm_pack_t and mp_gemm_lines_t say; `context` is the kernel. Lines are good
// when features are contiguous in memory.
void mp_conv_pack_patches(const void *context, const mp_kernel_call_t *call,
                          const mp_gemm_range_t *range, uint32_t width, void *panels);
void mp_conv_pack_lines(const void *context, const mp_kernel_call_t *call,
                        const mp_gemm_range_t *range, int64_t step, void *lines);

// Whether the windows of neighbouring positions are so close together that copying whole rows of
// the input, with padding, is faster than copying window by window. Positions must be the rows of
// C.
bool mp_conv_is_narrow(const mp_conv_kernel_t *self);
// Sets the functions that run such a convolution, its number of parts and its scratch memory. Its
// gemm must have been set up.
void mp_conv_narrow_plan(mp_conv_kernel_t *self);

// Whether the result is the gradient of a kernel, and reading both sides in place is faster.
// Decided after mp_conv_is_narrow.
bool mp_conv_is_gradient(const mp_conv_kernel_t *self);
// Sets the functions that run such a convolution, and its number of parts. Its gemm must have been
// set up.
void mp_conv_gradient_plan(mp_conv_kernel_t *self);

// Whether this is a depthwise convolution (each feature by itself) whose features are contiguous in
// memory.
bool mp_conv_is_depthwise(const mp_conv_kernel_t *self, int64_t groups);
// Sets the number of parts of such a convolution.
void mp_conv_depthwise_plan(mp_conv_kernel_t *self);

#endif  // MINIPOD_SIM_KERNELS_CONTRACTION_CONVOLUTION_H_
