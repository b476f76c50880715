// Cholesky factorizations of many small matrices, MP_PANEL of them side by side.
#ifndef MINIPOD_SIM_KERNELS_LINALG_CHOLESKY_MANY_H_
#define MINIPOD_SIM_KERNELS_LINALG_CHOLESKY_MANY_H_

#include "sim/kernels/linalg/panel.h"

// Matrices of up to so many rows are factored like this. Nothing else decides, so a matrix has the
// same factor at any place of any batch.
enum { MP_CHOLESKY_MANY_ROWS = 16 };

// Factors the `count` <= MP_PANEL matrices, n x n and row-major, that follow each other at `a`,
// where there is memory for MP_PANEL of them. Only the lower triangle is read and L of a = L * L^H
// replaces the matrix; if `upper`, the upper one and U of a = U^H * U. The other triangle becomes
// zero. If a matrix is not positive definite, all of its elements become NaN. `panel` is memory for
// as many numbers as are at `a`.
void mp_cholesky_many_d(int64_t n, int64_t count, bool upper, double *a, double *panel);
void mp_cholesky_many_z(int64_t n, int64_t count, bool upper, mp_complex_t *a, double *panel);

#endif  // MINIPOD_SIM_KERNELS_LINALG_CHOLESKY_MANY_H_
