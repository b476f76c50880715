// Matrix products: the blocked core of dot_general and convolution.
//
// C[m, n] = sum over k of A[m, k] * B[n, k], for a batch of such products. The core knows neither
// element types nor memory layouts. It reads a side in place if the caller gives its address and
// reading in place pays; otherwise the caller packs blocks of the side, in the accumulation type.
// The caller takes finished blocks of C. The order of the sum over k depends on the shape alone.
// The machine's vector width decides how many elements of C are computed at once, but not the order
// in which an element is summed up.
//
// A panel holds `width` rows of a matrix, interleaved: element k of row r is panel[k * width + r].
// Rows that the matrix does not have are zero. Panels are mp_gemm_panel_bytes apart.
#ifndef MINIPOD_SIM_KERNELS_CONTRACTION_GEMM_H_
#define MINIPOD_SIM_KERNELS_CONTRACTION_GEMM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/kernels/contraction/gemm_micro.h"
#include "sim/kernels/kernel.h"

// The widest panels, the longest depth that is packed at once, and the most columns of a block.
enum {
  MP_GEMM_MAX_MR = MP_MICRO_MAX_ROWS,
  MP_GEMM_MAX_NR = MP_MICRO_MAX_COLUMNS,
  MP_GEMM_BLOCK_K = 256,
  MP_GEMM_BLOCK_N = 512
};

// The bytes from one panel to the next: a panel, and one k more if the number of k is even. Panels
// at distances that are large powers of two would share few places in the cache.
static inline size_t mp_gemm_panel_bytes(uint32_t width, int64_t depth, size_t acc_bytes) {
  return width * (size_t)(depth | 1) * acc_bytes;
}

typedef struct mp_gemm_s mp_gemm_t;

// Rows [row, row + rows) and k-range [k, k + depth) of A or B of product `batch`.
typedef struct {
  int64_t batch, row, rows, k, depth;
} mp_gemm_range_t;

// A finished block of C of product `batch`, from row m and column n on; rows are `ldc` elements
// apart.
typedef struct {
  int64_t batch, m, rows, n, columns;
  const char *c;
  int64_t ldc;
} mp_gemm_block_t;

// Packs a range into ceil(rows / width) panels.
typedef void (*mp_gemm_pack_t)(const void *context, const mp_kernel_call_t *call,
                               const mp_gemm_range_t *range, uint32_t width, void *panels);
// Writes the rows of a range of A one after the other, each contiguous; they begin `step` bytes
// apart.
typedef void (*mp_gemm_lines_t)(const void *context, const mp_kernel_call_t *call,
                                const mp_gemm_range_t *range, int64_t step, void *lines);
// The address of the first element of a side of product `batch`.
typedef const char *(*mp_gemm_locate_t)(const void *context, const mp_kernel_call_t *call,
                                        int64_t batch);
// Takes a finished block of C.
typedef void (*mp_gemm_store_t)(const void *context, const mp_kernel_call_t *call,
                                const mp_gemm_block_t *block);

// How a side is read.
typedef struct {
  mp_gemm_pack_t pack;
  // For A only; NULL: use `pack`. The caller knows which of the two is faster.
  mp_gemm_lines_t lines;
  // NULL: the side must be packed. Otherwise elements have the accumulation type, and both steps,
  // in bytes, are the same everywhere.
  mp_gemm_locate_t locate;
  int64_t row_step, k_step;
  bool is_read;  // set by mp_gemm_plan: the side is read in place
} mp_gemm_side_t;

// What the product of one batch reads if it is very small (gemm_small.h), in bytes.
typedef struct {
  int64_t m, n;
  int64_t a_row, a_k, b_row, b_k;
} mp_gemm_small_t;

// Writes the product of a and b, [m, n].
typedef void (*mp_gemm_small_run_t)(const mp_gemm_small_t *sizes, const char *a, const char *b,
                                    void *out);

struct mp_gemm_s {
  // Set by the caller:
  mp_acc_t acc;
  int64_t batch, m, n, k;
  const void *context;
  mp_gemm_side_t a, b;
  // NULL: C is result 0 itself, [batch, m, n] of the accumulation type.
  mp_gemm_store_t store;
  // Set by mp_gemm_plan:
  const mp_micro_t *micro;
  int64_t block_m, block_n, block_k;
  int64_t tiles_m, tiles_n;
  int64_t line_step;  // bytes between packed lines of A
  size_t pack_a_bytes, pack_b_bytes, c_bytes;
  mp_gemm_small_run_t small;  // NULL: products are cut into blocks
};

// Columns of C, and the block of B for them.
typedef struct {
  const mp_micro_t *micro;
  size_t acc_bytes;
  int64_t columns;
  // B's address and the bytes between two k if B is read in place; otherwise NULL.
  const char *read;
  int64_t read_k;
  // Panels of twice `lanes` columns, or of `lanes` if the last one has no more. If B is read in
  // place, the only panel has the columns that do not fill a vector.
  const char *packed;
  size_t panel_bytes;
} mp_gemm_columns_t;

// Computes `rows` rows of C, at `c`. The tile describes A, k and the rows of C; `form` is A's
// (MP_MICRO_BY_K, MP_MICRO_BY_ROW).
void mp_gemm_run_rows(const mp_gemm_columns_t *columns, mp_micro_tile_t *tile, int form,
                      int64_t rows, char *c);

// Chooses the blocks, and sets num_parts and scratch_bytes of `kernel`.
void mp_gemm_plan(mp_gemm_t *gemm, mp_kernel_t *kernel);

// Runs the part `call->part` of a product that mp_gemm_plan has planned.
void mp_gemm_run_part(const mp_gemm_t *gemm, const mp_kernel_t *kernel,
                      const mp_kernel_call_t *call);

#endif  // MINIPOD_SIM_KERNELS_CONTRACTION_GEMM_H_
