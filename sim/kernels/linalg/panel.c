// Triangular systems with many right-hand sides, and Cholesky factorizations, by panels.
//
// A panel is MP_PANEL vectors side by side: row k has element k of each. So all loops run over the
// vectors of a panel, and a row of the matrix is read once for all of them. Four rows are done
// together, because sums of one row would wait for each other.
#include "sim/kernels/linalg/panel.h"

#include <complex.h>
#include <math.h>
#include <string.h>

#include "sim/base/vector.h"

enum { ROWS = 4 };

// A row of a panel, aligned like a double.
typedef double panel_row_t
    __attribute__((vector_size(MP_PANEL * sizeof(double)), aligned(8), may_alias));

// Row `first` + `number` of the matrix, or the last row if the matrix has no such row.
static inline int64_t panel_row(int64_t n, int64_t first, int64_t number) {
  return first + number < n ? first + number : n - 1;
}

// ---- real numbers ----

// Solves for ROWS elements of the vectors of a panel, from element `i` on.
MP_VECTOR static void panel_solve_rows_d(int64_t n, int64_t step, const double *l, bool unit,
                                         int64_t i, panel_row_t *rows) {
  const double *l0 = l + i * step, *l1 = l + panel_row(n, i, 1) * step;
  const double *l2 = l + panel_row(n, i, 2) * step, *l3 = l + panel_row(n, i, 3) * step;
  panel_row_t s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
  for (int64_t k = 0; k < i; ++k) {
    const panel_row_t row = rows[k];
    s0 += l0[k] * row;
    s1 += l1[k] * row;
    s2 += l2[k] * row;
    s3 += l3[k] * row;
  }
  const panel_row_t sums[ROWS] = {s0, s1, s2, s3};
  for (int64_t r = i; r < n && r < i + ROWS; ++r) {
    panel_row_t rest = rows[r] - sums[r - i];
    for (int64_t k = i; k < r; ++k) rest -= l[r * step + k] * rows[k];
    if (!unit) rest /= l[r * step + r];
    rows[r] = rest;
  }
}

void mp_panel_solve_d(int64_t n, int64_t step, const double *l, bool unit, int64_t panels,
                      double *x) {
  for (int64_t i = 0; i < n; i += ROWS) {
    for (int64_t p = 0; p < panels; ++p) {
      panel_solve_rows_d(n, step, l, unit, i, (panel_row_t *)x + p * n);
    }
  }
}

// products[r] = the sum over k of element r of row k, times row k.
MP_VECTOR static void panel_products_d(int64_t n, const double *x, panel_row_t *products) {
  const panel_row_t *rows = (const panel_row_t *)x;
  panel_row_t sums[MP_PANEL] = {{0}};
  for (int64_t k = 0; k < n; ++k) {
    const panel_row_t row = rows[k];
    for (int r = 0; r < MP_PANEL; ++r) sums[r] += x[k * MP_PANEL + r] * row;
  }
  memcpy(products, sums, sizeof(sums));
}

// Factors the block of `count` rows from `first` on; `products` is the contribution of the columns
// before it.
static bool panel_factor_block_d(int64_t n, int64_t first, int64_t count,
                                 const panel_row_t *products, double *a) {
  for (int64_t i = 0; i < count; ++i) {
    double *row = a + (first + i) * n + first;
    for (int64_t j = 0; j <= i; ++j) {
      const double *other = a + (first + j) * n + first;
      double rest = row[j] - products[i][j];
      for (int64_t k = 0; k < j; ++k) rest -= row[k] * other[k];
      if (j < i) {
        row[j] = rest / other[j];
      } else if (rest > 0) {
        row[j] = sqrt(rest);
      } else {
        return false;
      }
    }
    memset(row + i + 1, 0, (size_t)(n - first - i - 1) * sizeof(*row));
  }
  return true;
}

bool mp_cholesky_d(int64_t n, double *a, double *panel) {
  for (int64_t i = 0; i < n; i += MP_PANEL) {
    const int64_t count = n - i < MP_PANEL ? n - i : MP_PANEL;
    memset(panel, 0, (size_t)(i * MP_PANEL) * sizeof(*panel));
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t k = 0; k < i; ++k) panel[k * MP_PANEL + r] = a[(i + r) * n + k];
    }
    mp_panel_solve_d(i, n, a, false, 1, panel);
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t k = 0; k < i; ++k) a[(i + r) * n + k] = panel[k * MP_PANEL + r];
    }
    panel_row_t products[MP_PANEL];
    panel_products_d(i, panel, products);
    if (!panel_factor_block_d(n, i, count, products, a)) return false;
  }
  return true;
}

// ---- complex numbers ----

// A row of a panel of complex numbers.
typedef struct {
  panel_row_t re, im;
} panel_row_z_t;

// sum += a * row
static inline void panel_add_z(panel_row_z_t *sum, mp_complex_t a, const panel_row_z_t *row) {
  const double re = creal(a), im = cimag(a);
  sum->re += re * row->re - im * row->im;
  sum->im += re * row->im + im * row->re;
}

// Divides by a number whose larger part is finite and not zero, after Smith ("Algorithm 116:
// Complex division"): numbers are scaled by the quotient of the parts, so that no square can
// overflow. All other numbers take C's own division, which handles infinities and is much slower.
static inline void panel_divide_z(panel_row_z_t *row, mp_complex_t by) {
  const double re = creal(by), im = cimag(by);
  const bool is_wide = fabs(re) >= fabs(im);
  const double ratio = is_wide ? im / re : re / im;
  const double sum = is_wide ? re + im * ratio : im + re * ratio;
  if (isfinite(sum) && sum != 0) {
    const panel_row_z_t from = *row;
    row->re = (is_wide ? from.re + from.im * ratio : from.re * ratio + from.im) / sum;
    row->im = (is_wide ? from.im - from.re * ratio : from.im * ratio - from.re) / sum;
    return;
  }
  for (int c = 0; c < MP_PANEL; ++c) {
    const mp_complex_t quotient = __builtin_complex((double)row->re[c], (double)row->im[c]) / by;
    row->re[c] = creal(quotient);
    row->im[c] = cimag(quotient);
  }
}

// sums[r] = the sum over k < count of element k of row first + r of `l`, times row k.
MP_VECTOR static void panel_sums_z(int64_t n, int64_t step, const mp_complex_t *l, int64_t first,
                                   const panel_row_z_t *rows, panel_row_z_t *sums) {
  const mp_complex_t *l0 = l + first * step, *l1 = l + panel_row(n, first, 1) * step;
  const mp_complex_t *l2 = l + panel_row(n, first, 2) * step;
  const mp_complex_t *l3 = l + panel_row(n, first, 3) * step;
  panel_row_z_t s0 = {{0}, {0}}, s1 = {{0}, {0}}, s2 = {{0}, {0}}, s3 = {{0}, {0}};
  for (int64_t k = 0; k < first; ++k) {
    const panel_row_z_t row = rows[k];
    panel_add_z(&s0, l0[k], &row);
    panel_add_z(&s1, l1[k], &row);
    panel_add_z(&s2, l2[k], &row);
    panel_add_z(&s3, l3[k], &row);
  }
  sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}

MP_VECTOR static void panel_solve_rows_z(int64_t n, int64_t step, const mp_complex_t *l, bool unit,
                                         int64_t i, panel_row_z_t *rows) {
  panel_row_z_t sums[ROWS];
  panel_sums_z(n, step, l, i, rows, sums);
  for (int64_t r = i; r < n && r < i + ROWS; ++r) {
    panel_row_z_t *sum = &sums[r - i];
    for (int64_t k = i; k < r; ++k) panel_add_z(sum, l[r * step + k], &rows[k]);
    panel_row_z_t rest = {rows[r].re - sum->re, rows[r].im - sum->im};
    if (!unit) panel_divide_z(&rest, l[r * step + r]);
    rows[r] = rest;
  }
}

void mp_panel_solve_z(int64_t n, int64_t step, const mp_complex_t *l, bool unit, int64_t panels,
                      double *x) {
  for (int64_t i = 0; i < n; i += ROWS) {
    for (int64_t p = 0; p < panels; ++p) {
      panel_solve_rows_z(n, step, l, unit, i, (panel_row_z_t *)x + p * n);
    }
  }
}

// products[r] = the sum over k of the conjugate of element r of row k, times row k.
MP_VECTOR static void panel_products_z(int64_t n, const panel_row_z_t *rows,
                                       panel_row_z_t *products) {
  for (int r = 0; r < MP_PANEL; ++r) {
    panel_row_z_t sum = {{0}, {0}};
    for (int64_t k = 0; k < n; ++k) {
      panel_add_z(&sum, __builtin_complex((double)rows[k].re[r], -(double)rows[k].im[r]), &rows[k]);
    }
    products[r] = sum;
  }
}

// See panel_factor_block_d.
static bool panel_factor_block_z(int64_t n, int64_t first, int64_t count,
                                 const panel_row_z_t *products, mp_complex_t *a) {
  for (int64_t i = 0; i < count; ++i) {
    mp_complex_t *row = a + (first + i) * n + first;
    for (int64_t j = 0; j <= i; ++j) {
      const mp_complex_t *other = a + (first + j) * n + first;
      mp_complex_t rest =
          row[j] - __builtin_complex((double)products[i].re[j], (double)products[i].im[j]);
      for (int64_t k = 0; k < j; ++k) {
        const double re = creal(row[k]), im = cimag(row[k]);
        const double other_re = creal(other[k]), other_im = cimag(other[k]);
        rest -= __builtin_complex(re * other_re + im * other_im, im * other_re - re * other_im);
      }
      if (j < i) {
        const double pivot = creal(other[j]);
        row[j] = __builtin_complex(creal(rest) / pivot, cimag(rest) / pivot);
      } else if (creal(rest) > 0) {
        row[j] = __builtin_complex(sqrt(creal(rest)), 0.0);
      } else {
        return false;
      }
    }
    memset(row + i + 1, 0, (size_t)(n - first - i - 1) * sizeof(*row));
  }
  return true;
}

bool mp_cholesky_z(int64_t n, mp_complex_t *a, double *panel) {
  panel_row_z_t *rows = (panel_row_z_t *)panel;
  for (int64_t i = 0; i < n; i += MP_PANEL) {
    const int64_t count = n - i < MP_PANEL ? n - i : MP_PANEL;
    memset(panel, 0, (size_t)i * sizeof(*rows));
    // Rows of L solve the system conjugated.
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t k = 0; k < i; ++k) {
        rows[k].re[r] = creal(a[(i + r) * n + k]);
        rows[k].im[r] = -cimag(a[(i + r) * n + k]);
      }
    }
    mp_panel_solve_z(i, n, a, false, 1, panel);
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t k = 0; k < i; ++k) {
        a[(i + r) * n + k] = __builtin_complex((double)rows[k].re[r], -(double)rows[k].im[r]);
      }
    }
    panel_row_z_t products[MP_PANEL];
    panel_products_z(i, rows, products);
    // The sum for rows r and c is over conjugates of L's rows, so element (r, c) of `products` is
    // L's contribution.
    if (!panel_factor_block_z(n, i, count, products, a)) return false;
  }
  return true;
}
