// The maker of Fourier transforms (sim/kernels/kernel.h).
#ifndef MINIPOD_SIM_KERNELS_FFT_FFT_MAKERS_H_
#define MINIPOD_SIM_KERNELS_FFT_FFT_MAKERS_H_

#include "sim/kernels/kernel.h"

MP_KERNEL_MAKER(mp_kernel_make_fft);

#endif  // MINIPOD_SIM_KERNELS_FFT_FFT_MAKERS_H_
