// The makers of kernels over windows (sim/kernels/kernel.h).
#ifndef MINIPOD_SIM_KERNELS_WINDOWS_WINDOWS_MAKERS_H_
#define MINIPOD_SIM_KERNELS_WINDOWS_WINDOWS_MAKERS_H_

#include "sim/kernels/kernel.h"

MP_KERNEL_MAKER(mp_kernel_make_reduce_window);
MP_KERNEL_MAKER(mp_kernel_make_select_and_scatter);

#endif  // MINIPOD_SIM_KERNELS_WINDOWS_WINDOWS_MAKERS_H_
