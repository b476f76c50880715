// Matrix products: the blocked core of dot_general and convolution.
//
// C[m, n] = sum over k of A[m, k] * B[n, k], for a batch of such products. The core knows neither
// element types nor memory layouts: the caller packs blocks of A and B into panels of the
// accumulation type, and takes finished blocks of C. The order of the sum over k depends on the
// shape alone. The machine's vector width decides how many elements of C are computed at once, but
// not in which order one of them is summed up.
//
// A panel holds `width` rows of a matrix, interleaved: element k of row r is panel[k * width + r].
// Rows that the matrix does not have are zero.
#ifndef MINIPOD_SIM_KERNELS_CONTRACTION_GEMM_H_
#define MINIPOD_SIM_KERNELS_CONTRACTION_GEMM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/kernels/kernel.h"

// Accumulation types. Integers wrap, so that signed ones are the same as unsigned ones.
typedef enum { MP_ACC_F32, MP_ACC_F64, MP_ACC_U32, MP_ACC_U64, MP_ACC_COUNT } mp_acc_t;

// The bytes of an accumulator.
static inline size_t mp_acc_size(mp_acc_t acc) {
  return acc == MP_ACC_F32 || acc == MP_ACC_U32 ? 4 : 8;
}

// The innermost kernel for one accumulation type on this machine: a tile of mr x nr elements,
// c[i * ldc + j] = (accumulate ? c[...] : 0) + sum over k of a[k * mr + i] * b[k * nr + j].
// `b` is 64-byte aligned.
typedef struct {
  uint32_t mr, nr;
  void (*run)(int64_t k, const void *a, const void *b, void *c, int64_t ldc, bool accumulate);
} mp_micro_t;

// The best innermost kernel for this machine's processor; static.
const mp_micro_t *mp_gemm_micro(mp_acc_t acc);

// The widest panels, the longest depth that is packed at once, and the most columns of a block.
enum { MP_GEMM_MAX_MR = 16, MP_GEMM_MAX_NR = 32, MP_GEMM_BLOCK_K = 256, MP_GEMM_BLOCK_N = 512 };

typedef struct mp_gemm_s mp_gemm_t;

// Packs rows [row, row + rows) and k-range [k, k + depth) of A or B of product `batch` into
// ceil(rows / width) panels.
typedef void (*mp_gemm_pack_t)(const void *context, const mp_kernel_call_t *call, int64_t batch,
                               int64_t row, int64_t rows, int64_t k, int64_t depth, uint32_t width,
                               void *panels);
// Takes a finished block of C; rows lie `ldc` elements apart.
typedef void (*mp_gemm_store_t)(const void *context, const mp_kernel_call_t *call, int64_t batch,
                                int64_t m, int64_t rows, int64_t n, int64_t columns, const void *c,
                                int64_t ldc);

struct mp_gemm_s {
  // The caller's:
  mp_acc_t acc;
  int64_t batch, m, n, k;
  const void *context;
  mp_gemm_pack_t pack_a, pack_b;
  // NULL: C is result 0 itself, [batch, m, n] of the accumulation type.
  mp_gemm_store_t store;
  // Set by mp_gemm_plan:
  const mp_micro_t *micro;
  int64_t block_m, block_n, block_k;
  int64_t tiles_m, tiles_n;
  size_t pack_a_bytes, pack_b_bytes, c_bytes;
};

// Chooses the blocks, and sets num_parts and scratch_bytes of `kernel`.
void mp_gemm_plan(mp_gemm_t *gemm, mp_kernel_t *kernel);

// Runs the part `call->part` of a product that mp_gemm_plan has planned.
void mp_gemm_run_part(const mp_gemm_t *gemm, const mp_kernel_t *kernel,
                      const mp_kernel_call_t *call);

#endif  // MINIPOD_SIM_KERNELS_CONTRACTION_GEMM_H_
