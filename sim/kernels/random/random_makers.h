// The makers of kernels that draw random numbers (sim/kernels/kernel.h).
#ifndef MINIPOD_SIM_KERNELS_RANDOM_RANDOM_MAKERS_H_
#define MINIPOD_SIM_KERNELS_RANDOM_RANDOM_MAKERS_H_

#include "sim/kernels/kernel.h"

MP_KERNEL_MAKER(mp_kernel_make_rng);
MP_KERNEL_MAKER(mp_kernel_make_rng_bit_generator);

#endif  // MINIPOD_SIM_KERNELS_RANDOM_RANDOM_MAKERS_H_
