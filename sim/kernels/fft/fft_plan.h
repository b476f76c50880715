// One-dimensional discrete Fourier transforms of any length, many lines at a time, in floats or
// doubles.
//
// Lengths with small prime factors are done by a Stockham transform with radices 8, 4, 2, 3, 5 and
// a general one. A length with a prime factor above 31 becomes a convolution whose length has only
// small prime factors (Bluestein). Transforms of floats with a prime factor above 13 are computed
// in doubles and rounded at the end. A plan is immutable.
#ifndef MINIPOD_SIM_KERNELS_FFT_FFT_PLAN_H_
#define MINIPOD_SIM_KERNELS_FFT_FFT_PLAN_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"

typedef struct mp_fft_plan_s mp_fft_plan_t;

// Makes a plan for length `n` >= 1 in `arena`, for mp_fft_run_d if `is_double`, else for
// mp_fft_run_f.
MP_NODISCARD mp_status_t mp_fft_plan_create(mp_arena_t *arena, int64_t n, bool is_double,
                                            const mp_fft_plan_t **out_plan);

// The number of elements of scratch that one line needs; n lines need n times as many.
int64_t mp_fft_plan_scratch(const mp_fft_plan_t *plan);

// Transforms `lines` lines in place, forward and without scaling. Element i of line l has its real
// part in re[i * lines + l] and its imaginary part in im[i * lines + l]. For the inverse transform
// exchange `re` and `im`.
void mp_fft_run_f(const mp_fft_plan_t *plan, int64_t lines, float *re, float *im, float *scratch);
void mp_fft_run_d(const mp_fft_plan_t *plan, int64_t lines, double *re, double *im,
                  double *scratch);

// Makes the table of exp(-2 pi i k / n) for k in [0, count), as pairs (re, im) of doubles or
// floats.
MP_NODISCARD mp_status_t mp_fft_roots(mp_arena_t *arena, int64_t n, int64_t count, bool is_double,
                                      const void **out_roots);

#endif  // MINIPOD_SIM_KERNELS_FFT_FFT_PLAN_H_
