#include "sim/kernels/linalg/cholesky_many.h"

#include <math.h>
#include <string.h>

#include "sim/base/vector.h"

// One element of each matrix, aligned like a double.
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

// Makes the pivots their roots; `ok` becomes 0 for matrices whose pivot is not positive.
static inline void cholesky_many_roots(many_t *pivots, double *ok) {
  double values[MP_PANEL];
  memcpy(values, pivots, sizeof(values));
  for (int c = 0; c < MP_PANEL; ++c) {
    ok[c] = values[c] > 0 ? ok[c] : 0;
    values[c] = sqrt(values[c]);
  }
  memcpy(pivots, values, sizeof(values));
}

// Factors all matrices. Element (i, j) of each is a[i * row + j * column]; those with j <= i are
// used. If a pivot is not positive, its matrix is undefined afterwards.
MP_VECTOR static void cholesky_many_factor_d(int64_t n, int64_t row, int64_t column, many_t *a,
                                             double *ok) {
  for (int64_t k = 0; k < n; ++k) {
    cholesky_many_roots(&a[k * (row + column)], ok);
    const many_t pivot = a[k * (row + column)];
    for (int64_t i = k + 1; i < n; ++i) a[i * row + k * column] /= pivot;
    for (int64_t i = k + 1; i < n; ++i) {
      const many_t factor = a[i * row + k * column];
      for (int64_t j = k + 1; j <= i; ++j) {
        a[i * row + j * column] -= factor * a[j * row + k * column];
      }
    }
  }
}

// The same for complex numbers, with the parts of an element one after the other. Of an upper
// triangle the conjugates are factored, by the same steps.
MP_VECTOR static void cholesky_many_factor_z(int64_t n, int64_t row, int64_t column, many_t *a,
                                             double *ok) {
  row *= 2, column *= 2;
  for (int64_t k = 0; k < n; ++k) {
    cholesky_many_roots(&a[k * (row + column)], ok);
    const many_t pivot = a[k * (row + column)];
    a[k * (row + column) + 1] = (many_t){0};
    for (int64_t i = k + 1; i < n; ++i) {
      a[i * row + k * column] /= pivot;
      a[i * row + k * column + 1] /= pivot;
    }
    for (int64_t i = k + 1; i < n; ++i) {
      const many_t re = a[i * row + k * column], im = a[i * row + k * column + 1];
      for (int64_t j = k + 1; j <= i; ++j) {
        many_t *to = a + i * row + j * column;
        const many_t other_re = a[j * row + k * column], other_im = a[j * row + k * column + 1];
        to[0] -= re * other_re + im * other_im;
        to[1] -= im * other_re - re * other_im;
      }
    }
  }
}

// Shared by real and complex matrices; an element has `parts` numbers.
static void cholesky_many(int64_t n, int64_t count, bool upper, int parts, double *a,
                          double *panel) {
  const int64_t row = upper ? 1 : n, column = upper ? n : 1, size = n * n * parts;
  // Places without a matrix get a copy of the last one.
  for (int64_t c = count; c < MP_PANEL; ++c) {
    memcpy(a + c * size, a + (count - 1) * size, (size_t)size * sizeof(*a));
  }
  cholesky_many_gather(size, a, panel);
  double ok[MP_PANEL];
  for (int c = 0; c < MP_PANEL; ++c) ok[c] = 1;
  many_t *elements = (many_t *)panel;
  if (parts == 1) {
    cholesky_many_factor_d(n, row, column, elements, ok);
  } else {
    cholesky_many_factor_z(n, row, column, elements, ok);
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) {
      memset(elements + (i * row + j * column) * parts, 0, (size_t)parts * sizeof(*elements));
    }
  }
  cholesky_many_spread(size, panel, a);
  for (int64_t c = 0; c < count; ++c) {
    for (int64_t i = 0; ok[c] == 0 && i < size; ++i) a[c * size + i] = (double)NAN;
  }
}

void mp_cholesky_many_d(int64_t n, int64_t count, bool upper, double *a, double *panel) {
  cholesky_many(n, count, upper, 1, a, panel);
}

void mp_cholesky_many_z(int64_t n, int64_t count, bool upper, mp_complex_t *a, double *panel) {
  cholesky_many(n, count, upper, 2, (double *)a, panel);
}
