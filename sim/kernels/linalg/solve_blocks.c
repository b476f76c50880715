#include "sim/kernels/linalg/solve_blocks.h"

#include "sim/base/vector.h"
#include "sim/kernels/contraction/gemm_micro.h"

enum {
  WIDTH = MP_SOLVE_WIDTH,
  // Rows that are solved for together, after the contribution of all rows before them. The number
  // suits the micro-kernels of every machine, so it is the same on all.
  ROWS = 12,
};

typedef double vector_t __attribute__((vector_size(64), aligned(8), may_alias));
enum { VECTORS = WIDTH * sizeof(double) / sizeof(vector_t) };

// sums[r, v] = the sum over k < count of l[r, k] * x[k, v], for `rows` rows of L.
static void solve_blocks_products(const mp_micro_t *micro, int64_t count, int64_t rows,
                                  int64_t step, const double *l, const double *x, double *sums) {
  const int64_t width = 2 * (int64_t)micro->lanes, most = micro->rows < ROWS ? micro->rows : ROWS;
  for (int64_t r = 0; r < rows; r += most) {
    const int64_t num = rows - r < most ? rows - r : most;
    for (int64_t v = 0; v < WIDTH; v += width) {
      const mp_micro_tile_t tile = {.k = count,
                                    .segments = 1,
                                    .a = l + r * step,
                                    .a_row = step * (int64_t)sizeof(double),
                                    .a_k = sizeof(double),
                                    .b = x + v,
                                    .b_k = WIDTH * sizeof(double),
                                    .b_ahead = 8 * WIDTH * sizeof(double),
                                    .c = sums + r * WIDTH + v,
                                    .c_row = WIDTH * sizeof(double)};
      micro->run[MP_MICRO_BY_K][num - 1][1](&tile);
    }
  }
}

// Subtracts `sums` from `rows` rows of x and solves for them; `l` is their part of the diagonal.
MP_VECTOR static void solve_blocks_triangle(int64_t rows, int64_t step, const double *l, bool unit,
                                            const double *sums, double *x) {
  vector_t rest[ROWS][VECTORS];
  for (int64_t r = 0; r < rows; ++r) {
    for (int v = 0; v < (int)VECTORS; ++v) {
      rest[r][v] = ((const vector_t *)(const void *)(x + r * WIDTH))[v] -
                   ((const vector_t *)(const void *)(sums + r * WIDTH))[v];
    }
  }
  for (int64_t k = 0; k < rows; ++k) {
    const double diagonal = unit ? 1 : l[k * step + k];
    for (int v = 0; v < (int)VECTORS; ++v) {
      vector_t solved = rest[k][v];
      if (!unit) solved /= diagonal;
      ((vector_t *)(void *)(x + k * WIDTH))[v] = solved;
      for (int64_t r = k + 1; r < rows; ++r) rest[r][v] -= l[r * step + k] * solved;
    }
  }
}

void mp_solve_blocks_d(int64_t n, int64_t step, const double *l, bool unit, int64_t panels,
                       double *x) {
  const mp_micro_t *micro = mp_gemm_micro(MP_ACC_F64);
  for (int64_t i = 0; i < n; i += ROWS) {
    const int64_t rows = n - i < ROWS ? n - i : ROWS;
    const double *row = l + i * step;
    for (int64_t p = 0; p < panels; ++p) {
      _Alignas(64) double sums[ROWS * WIDTH];
      double *panel = x + p * n * WIDTH;
      solve_blocks_products(micro, i, rows, step, row, panel, sums);
      solve_blocks_triangle(rows, step, row + i, unit, sums, panel + i * WIDTH);
    }
  }
}
