// Large triangular systems with many right-hand sides, by the micro-kernels of matrix products.
#ifndef MINIPOD_SIM_KERNELS_LINALG_SOLVE_BLOCKS_H_
#define MINIPOD_SIM_KERNELS_LINALG_SOLVE_BLOCKS_H_

#include <stdbool.h>
#include <stdint.h>

// The vectors of a panel, and from how many unknowns on this is faster than mp_panel_solve_d.
enum { MP_SOLVE_WIDTH = 16, MP_SOLVE_LEAST = 48 };

// Does what mp_panel_solve_d (panel.h) does, for panels of MP_SOLVE_WIDTH vectors. The steps that
// compute an element depend on its row alone.
void mp_solve_blocks_d(int64_t n, int64_t step, const double *l, bool unit, int64_t panels,
                       double *x);

#endif  // MINIPOD_SIM_KERNELS_LINALG_SOLVE_BLOCKS_H_
