#include "sim/kernels/contraction/gemm.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/shape.h"

// With these block sizes a panel of A stays in the first-level cache and the block of B in the
// second-level cache.
enum { BLOCK_M_BYTES = 1024, BLOCK_N_BYTES = MP_GEMM_BLOCK_N * 4 };
// The number of multiplications that is worth a part.
#define GRAIN ((int64_t)2 << 20)

static int64_t gemm_round_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The size of tiles that have at most `most` rows, are all of nearly the same size, and are a
// multiple of the panels' width.
static int64_t gemm_block_size(int64_t total, int64_t most, int64_t width) {
  int64_t tiles = mp_max_i64((total + most - 1) / most, 1);
  return mp_max_i64(gemm_round_up((total + tiles - 1) / tiles, width), width);
}

void mp_gemm_plan(mp_gemm_t *gemm, mp_kernel_t *kernel) {
  const mp_micro_t *micro = gemm->micro = mp_gemm_micro(gemm->acc);
  MP_ASSERT(micro->mr <= MP_GEMM_MAX_MR && micro->nr <= MP_GEMM_MAX_NR);
  MP_ASSERT(gemm->batch >= 0 && gemm->m >= 0 && gemm->n >= 0 && gemm->k >= 0);
  int64_t size = (int64_t)mp_acc_size(gemm->acc);
  gemm->block_m = gemm_block_size(gemm->m, BLOCK_M_BYTES / size, micro->mr);
  gemm->block_n = gemm_block_size(gemm->n, BLOCK_N_BYTES / size, micro->nr);
  gemm->block_k = gemm_block_size(gemm->k, MP_GEMM_BLOCK_K, 1);
  MP_ASSERT(gemm->block_k <= MP_GEMM_BLOCK_K && gemm->block_n <= MP_GEMM_BLOCK_N);
  gemm->tiles_m = (gemm->m + gemm->block_m - 1) / gemm->block_m;
  gemm->tiles_n = (gemm->n + gemm->block_n - 1) / gemm->block_n;
  gemm->pack_a_bytes = (size_t)gemm_round_up(gemm->block_m * gemm->block_k * size, 64);
  gemm->pack_b_bytes = (size_t)gemm_round_up(gemm->block_n * gemm->block_k * size, 64);
  gemm->c_bytes =
      gemm->store == NULL ? 0 : (size_t)gemm_round_up(gemm->block_m * gemm->block_n * size, 64);
  kernel->scratch_bytes = gemm->pack_a_bytes + gemm->pack_b_bytes + gemm->c_bytes;
  int64_t tiles = MP_WORK(gemm->batch, gemm->tiles_m, gemm->tiles_n);
  int64_t each = mp_max_i64(MP_WORK(gemm->block_m, gemm->block_n, gemm->k), 1);
  int64_t parts = mp_part_count(tiles, mp_max_i64(GRAIN / each, 1));
  kernel->num_parts = (uint32_t)mp_clamp_i64(parts, 1, mp_max_i64(tiles, 1));
}

// Computes a tile at the edge of C, through a buffer of full size.
static void gemm_run_edge(const mp_gemm_t *gemm, int64_t depth, const void *a, const void *b,
                          char *c, int64_t ldc, int64_t rows, int64_t columns, bool accumulate) {
  const mp_micro_t *micro = gemm->micro;
  MP_ASSERT(rows > 0 && rows <= micro->mr && columns > 0 && columns <= micro->nr);
  _Alignas(64) char tile[MP_GEMM_MAX_MR * MP_GEMM_MAX_NR * 8];
  size_t size = mp_acc_size(gemm->acc);
  for (int64_t i = 0; accumulate && i < rows; ++i) {
    memcpy(tile + (size_t)i * micro->nr * size, c + (size_t)(i * ldc) * size,
           (size_t)columns * size);
  }
  micro->run(depth, a, b, tile, micro->nr, accumulate);
  for (int64_t i = 0; i < rows; ++i) {
    memcpy(c + (size_t)(i * ldc) * size, tile + (size_t)i * micro->nr * size,
           (size_t)columns * size);
  }
}

// Computes one block of C from packed blocks of A and B.
static void gemm_run_block(const mp_gemm_t *gemm, int64_t depth, const char *a, const char *b,
                           char *c, int64_t ldc, int64_t rows, int64_t columns, bool accumulate) {
  const mp_micro_t *micro = gemm->micro;
  int64_t size = (int64_t)mp_acc_size(gemm->acc), mr = micro->mr, nr = micro->nr;
  for (int64_t i = 0; i < rows; i += mr) {
    for (int64_t j = 0; j < columns; j += nr) {
      const char *panel_a = a + i * depth * size, *panel_b = b + j * depth * size;
      char *at = c + (i * ldc + j) * size;
      if (rows - i >= mr && columns - j >= nr) {
        micro->run(depth, panel_a, panel_b, at, ldc, accumulate);
      } else {
        gemm_run_edge(gemm, depth, panel_a, panel_b, at, ldc, mp_min_i64(mr, rows - i),
                      mp_min_i64(nr, columns - j), accumulate);
      }
    }
  }
}

typedef struct {
  int64_t batch, n, k;  // the block of B that is in the scratch memory; -1: none
} packed_t;

static void gemm_run_tile(const mp_gemm_t *gemm, const mp_kernel_call_t *call, int64_t batch,
                          int64_t m, int64_t n, packed_t *packed) {
  char *a = call->scratch, *b = a + gemm->pack_a_bytes, *c = b + gemm->pack_b_bytes;
  int64_t rows = mp_min_i64(gemm->block_m, gemm->m - m);
  int64_t columns = mp_min_i64(gemm->block_n, gemm->n - n);
  MP_ASSERT(rows > 0 && columns > 0 && batch < gemm->batch);
  int64_t ldc = gemm->block_n;
  int64_t size = (int64_t)mp_acc_size(gemm->acc);
  if (gemm->store == NULL) {
    c = (char *)call->results[0] + ((batch * gemm->m + m) * gemm->n + n) * size;
    ldc = gemm->n;
  }
  if (gemm->k == 0) {
    for (int64_t i = 0; i < rows; ++i) memset(c + i * ldc * size, 0, (size_t)(columns * size));
  }
  for (int64_t k = 0; k < gemm->k; k += gemm->block_k) {
    int64_t depth = mp_min_i64(gemm->block_k, gemm->k - k);
    gemm->pack_a(gemm->context, call, batch, m, rows, k, depth, gemm->micro->mr, a);
    if (packed->batch != batch || packed->n != n || packed->k != k) {
      gemm->pack_b(gemm->context, call, batch, n, columns, k, depth, gemm->micro->nr, b);
      *packed = (packed_t){batch, n, k};
    }
    gemm_run_block(gemm, depth, a, b, c, ldc, rows, columns, k > 0);
  }
  if (gemm->store != NULL) {
    gemm->store(gemm->context, call, batch, m, rows, n, columns, c, ldc);
  }
}

void mp_gemm_run_part(const mp_gemm_t *gemm, const mp_kernel_t *kernel,
                      const mp_kernel_call_t *call) {
  int64_t per_batch = gemm->tiles_m * gemm->tiles_n;
  int64_t begin = 0, end = 0;
  mp_part_range(gemm->batch * per_batch, kernel->num_parts, call->part, &begin, &end);
  packed_t packed = {-1, -1, -1};
  for (int64_t tile = begin; tile < end; ++tile) {
    int64_t batch = tile / per_batch, rest = tile % per_batch;
    gemm_run_tile(gemm, call, batch, rest % gemm->tiles_m * gemm->block_m,
                  rest / gemm->tiles_m * gemm->block_n, &packed);
  }
}
