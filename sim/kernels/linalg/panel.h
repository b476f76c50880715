// Triangular systems with many right-hand sides, and Cholesky factorizations, on row-major matrices
// of doubles (_d) and of complex doubles (_z). Nothing is allocated.
//
// A panel holds MP_PANEL vectors side by side: row k has element k of each, of complex numbers
// first the real parts of all and then the imaginary ones.
#ifndef MINIPOD_SIM_KERNELS_LINALG_PANEL_H_
#define MINIPOD_SIM_KERNELS_LINALG_PANEL_H_

#include "sim/kernels/linalg/linalg.h"

enum { MP_PANEL = 8 };

// Solves L x = b for the vectors of panels of n rows, one panel after the other; `x` holds b before
// and x afterwards. `l` (n x n) is lower triangular, with rows `step` elements apart; the upper
// triangle is not read. With `unit` its diagonal is taken as 1.
void mp_panel_solve_d(int64_t n, int64_t step, const double *l, bool unit, int64_t panels,
                      double *x);
void mp_panel_solve_z(int64_t n, int64_t step, const mp_complex_t *l, bool unit, int64_t panels,
                      double *x);

// Factors a = L * L^H, where `a` is n x n and only its lower triangle is read. L replaces `a`, with
// zeros above the diagonal. `panel` is memory for a panel of n rows. False when `a` is not positive
// definite; its contents are then undefined.
bool mp_cholesky_d(int64_t n, double *a, double *panel);
bool mp_cholesky_z(int64_t n, mp_complex_t *a, double *panel);

#endif  // MINIPOD_SIM_KERNELS_LINALG_PANEL_H_
