#include "sim/kernels/linalg/cholesky_many.h"

#include <math.h>
#include <string.h>

#include "sim/base/vector.h"

// One element of each matrix. It may lie anywhere doubles may.
typedef double many_t
    __attribute__((vector_size(MP_PANEL * sizeof(double)), aligned(8), may_alias));
// Two elements of one matrix, or one of two.
typedef double pair_t __attribute__((vector_size(16), aligned(8), may_alias));

// Moves element i of matrix c between matrices[c * size + i] and panel[i * MP_PANEL + c]: squares
// of two by two numbers are transposed in registers.
static void cholesky_many_gather(int64_t size, const double *matrices, double *panel) {
  for (int64_t c = 0; c < MP_PANEL; c += 2) {
    const double *first = matrices + c * size, *second = first + size;
    double *to = panel + c;
    int64_t i = 0;
    for (; i + 2 <= size; i += 2) {
      const pair_t a = *(const pair_t *)(first + i), b = *(const pair_t *)(second + i);
      *(pair_t *)(to + i * MP_PANEL) = __builtin_shufflevector(a, b, 0, 2);
      *(pair_t *)(to + (i + 1) * MP_PANEL) = __builtin_shufflevector(a, b, 1, 3);
    }
    if (i < size) *(pair_t *)(to + i * MP_PANEL) = (pair_t){first[i], second[i]};
  }
}

static void cholesky_many_spread(int64_t size, const double *panel, double *matrices) {
  for (int64_t c = 0; c < MP_PANEL; c += 2) {
    double *first = matrices + c * size, *second = first + size;
    const double *from = panel + c;
    int64_t i = 0;
    for (; i + 2 <= size; i += 2) {
      const pair_t a = *(const pair_t *)(from + i * MP_PANEL);
      const pair_t b = *(const pair_t *)(from + (i + 1) * MP_PANEL);
      *(pair_t *)(first + i) = __builtin_shufflevector(a, b, 0, 2);
      *(pair_t *)(second + i) = __builtin_shufflevector(a, b, 1, 3);
    }
    if (i < size) first[i] = from[i * MP_PANEL], second[i] = from[i * MP_PANEL + 1];
  }
}

// Factors all matrices, of which element (i, j) is a[i * row + j * column], and of which those with
// j <= i are used. What a pivot that is not positive leaves in its matrix is undefined; `ok` is
// then no longer 1 there.
MP_VECTOR static void cholesky_many_factor(int64_t n, int64_t row, int64_t column, many_t *a,
                                           double *ok) {
  for (int64_t k = 0; k < n; ++k) {
    double pivots[MP_PANEL];
    memcpy(pivots, a + k * (row + column), sizeof(pivots));
    for (int c = 0; c < MP_PANEL; ++c) {
      ok[c] = pivots[c] > 0 ? ok[c] : 0;
      pivots[c] = sqrt(pivots[c]);
    }
    many_t pivot;
    memcpy(&pivot, pivots, sizeof(pivot));
    a[k * (row + column)] = pivot;
    for (int64_t i = k + 1; i < n; ++i) a[i * row + k * column] /= pivot;
    for (int64_t i = k + 1; i < n; ++i) {
      const many_t factor = a[i * row + k * column];
      for (int64_t j = k + 1; j <= i; ++j) {
        a[i * row + j * column] -= factor * a[j * row + k * column];
      }
    }
  }
}

void mp_cholesky_many_d(int64_t n, int64_t count, bool upper, double *a, double *panel) {
  const int64_t row = upper ? 1 : n, column = upper ? n : 1, size = n * n;
  // A place without a matrix of its own has a copy of the last one.
  for (int64_t c = count; c < MP_PANEL; ++c) {
    memcpy(a + c * size, a + (count - 1) * size, (size_t)size * sizeof(*a));
  }
  cholesky_many_gather(size, a, panel);
  double ok[MP_PANEL];
  for (int c = 0; c < MP_PANEL; ++c) ok[c] = 1;
  cholesky_many_factor(n, row, column, (many_t *)panel, ok);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) ((many_t *)panel)[i * row + j * column] = (many_t){0};
  }
  cholesky_many_spread(size, panel, a);
  for (int64_t c = 0; c < count; ++c) {
    for (int64_t i = 0; ok[c] == 0 && i < size; ++i) a[c * size + i] = (double)NAN;
  }
}
