// One-dimensional discrete Fourier transforms of any length, many lines at a time, in doubles.
//
// Lengths with small prime factors run as a Stockham transform with radices 4, 2, 3, 5 and a
// general one; a length with a prime factor above 31 becomes a convolution of a smooth length
// (Bluestein). A plan is immutable.
#ifndef MINIPOD_SIM_KERNELS_FFT_PLAN_H_
#define MINIPOD_SIM_KERNELS_FFT_PLAN_H_

#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"

typedef struct mp_fft_plan_s mp_fft_plan_t;

// `n` >= 1.
MP_NODISCARD mp_status_t mp_fft_plan_create(mp_arena_t *arena, int64_t n,
                                            const mp_fft_plan_t **out_plan);

// Doubles of scratch that one line needs; `lines` lines need that many times as much.
int64_t mp_fft_plan_scratch(const mp_fft_plan_t *plan);

// Transforms `lines` lines in place: element i of line l is re[i * lines + l] + im[i * lines + l]i.
// Forward, without scaling. Give `re` and `im` the other way round for the inverse.
void mp_fft_run(const mp_fft_plan_t *plan, int64_t lines, double *re, double *im, double *scratch);

#endif  // MINIPOD_SIM_KERNELS_FFT_PLAN_H_
