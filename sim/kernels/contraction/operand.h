// One side of a contraction: a tensor seen as a batch of matrices [row, k].
//
// Rows, k and the batch each go over several dimensions of the tensor, in a given order. Packing
// reads elements at offsets in that order, so that no side is ever transposed as a whole.
#ifndef MINIPOD_SIM_KERNELS_CONTRACTION_OPERAND_H_
#define MINIPOD_SIM_KERNELS_CONTRACTION_OPERAND_H_

#include <stdint.h>

#include "sim/kernels/contraction/gemm.h"
#include "sim/kernels/elementwise/convert.h"

// Dimensions, outermost first; strides in bytes.
typedef struct {
  uint32_t rank;
  int64_t count;  // the product of the extents
  int64_t *extents;
  int64_t *strides;
} mp_axes_t;

// Makes an empty list with room for `max_rank` dimensions in `arena`.
MP_NODISCARD mp_status_t mp_axes_init(mp_arena_t *arena, uint32_t max_rank, mp_axes_t *axes);
// Adds a dimension within the others; `stride` is in bytes.
void mp_axes_add(mp_axes_t *axes, int64_t extent, int64_t stride);
// The byte offsets of positions [first, first + count), the innermost dimension fastest.
void mp_axes_offsets(const mp_axes_t *axes, int64_t first, int64_t count, int64_t *out_offsets);
// The bytes from each position to the next, if they are the same everywhere; otherwise false.
bool mp_axes_step(const mp_axes_t *axes, int64_t *out_step);

typedef struct {
  mp_axes_t batch, rows, k;
  mp_convert_t convert;  // from the stored type to the accumulation type
  uint32_t element;      // stored bytes (of the real part, for complex numbers)
  uint32_t acc_bytes;
  // Complex products are computed as real ones of twice the length: a row (re, im) of the left side
  // times the rows (re, -im) and (im, re) of the right side. For this the left side only gets an
  // inner dimension of 2. The right side is `crossed`: the inner indices of row and k select the
  // part and the sign.
  bool crossed;
  bool has_offset;  // of quads: 128 is added to each value, as kernels require for the left side
} mp_operand_t;

// The accumulation type for sums of products of these element types.
mp_acc_t mp_acc_for(const mp_dtype_t *dtypes, uint32_t count);

// The element type of an accumulator.
mp_dtype_t mp_acc_dtype(mp_acc_t acc);

// Packs panels as mp_gemm_pack_t says; `base` is the tensor's first element.
void mp_operand_pack(const mp_operand_t *side, const void *base, const mp_gemm_range_t *range,
                     uint32_t width, void *panels);

// Writes lines as mp_gemm_lines_t says; not for crossed sides.
void mp_operand_lines(const mp_operand_t *side, const void *base, const mp_gemm_range_t *range,
                      int64_t step, void *lines);

// Whether all values of a type are 16-bit integers, so that products of two of them can be computed
// in pairs (MP_ACC_PAIRS); or are signed 8-bit ones, for quads (MP_ACC_QUADS).
bool mp_operand_is_short(mp_dtype_t dtype);
bool mp_operand_is_byte(mp_dtype_t dtype);
// How many neighbouring k are one element of A or B.
int64_t mp_acc_k_per_element(mp_acc_t acc);
// The same as above for pairs and quads. The side is converted to MP_DTYPE_S16 or MP_DTYPE_S8, and
// its k axes have elements; `k` and `depth` count pairs or quads, of which the last one is filled
// up with zeros.
void mp_operand_words_pack(const mp_operand_t *side, const void *base, const mp_gemm_range_t *range,
                           uint32_t width, void *panels);
void mp_operand_words_lines(const mp_operand_t *side, const void *base,
                            const mp_gemm_range_t *range, int64_t step, void *lines);

typedef struct {
  void *values;
  uint32_t width, acc_bytes;
} mp_panel_t;

// Writes `num_lines` lines of `count` values into the rows [lane, lane + num_lines) of a panel.
void mp_panel_set_lanes(const mp_panel_t *panel, uint32_t lane, const void *const *lines,
                        uint32_t num_lines, int64_t count);

// Writing this many lines together is faster than one by one.
enum { MP_PANEL_LINES = 4 };

#endif  // MINIPOD_SIM_KERNELS_CONTRACTION_OPERAND_H_
