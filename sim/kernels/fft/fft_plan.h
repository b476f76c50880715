// One-dimensional discrete Fourier transforms of any length, many lines at a time, in floats
// or doubles.
//
// Lengths with small prime factors run as a Stockham transform with radices 4, 2, 3, 5 and a
// general one; a length with a prime factor above 31 becomes a convolution of a smooth length
// (Bluestein). A plan is immutable.
#ifndef MINIPOD_SIM_KERNELS_FFT_FFT_PLAN_H_
#define MINIPOD_SIM_KERNELS_FFT_FFT_PLAN_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"

typedef struct mp_fft_plan_s mp_fft_plan_t;

// `n` >= 1; for mp_fft_run_d or for mp_fft_run_f.
MP_NODISCARD mp_status_t mp_fft_plan_create(mp_arena_t *arena, int64_t n, bool is_double,
                                            const mp_fft_plan_t **out_plan);

// Elements of scratch that one line needs; `lines` lines need that many times as much.
int64_t mp_fft_plan_scratch(const mp_fft_plan_t *plan);

// Transforms `lines` lines in place: element i of line l is re[i * lines + l] + im[i * lines + l]i.
// Forward, without scaling. Give `re` and `im` the other way round for the inverse.
void mp_fft_run_f(const mp_fft_plan_t *plan, int64_t lines, float *re, float *im, float *scratch);
void mp_fft_run_d(const mp_fft_plan_t *plan, int64_t lines, double *re, double *im,
                  double *scratch);

// exp(-2 pi i k / n) for k in [0, count), (re, im), as doubles or floats.
MP_NODISCARD mp_status_t mp_fft_roots(mp_arena_t *arena, int64_t n, int64_t count, bool is_double,
                                      const void **out_roots);

#endif  // MINIPOD_SIM_KERNELS_FFT_FFT_PLAN_H_
