// The makers of kernels that contract (sim/kernels/kernel.h).
#ifndef MINIPOD_SIM_KERNELS_CONTRACTION_CONTRACTION_MAKERS_H_
#define MINIPOD_SIM_KERNELS_CONTRACTION_CONTRACTION_MAKERS_H_

#include "sim/kernels/kernel.h"

MP_KERNEL_MAKER(mp_kernel_make_convolution);
MP_KERNEL_MAKER(mp_kernel_make_dot_general);

#endif  // MINIPOD_SIM_KERNELS_CONTRACTION_CONTRACTION_MAKERS_H_
