// The targets of custom_call for which minipod has kernels. Their makers are in the rooms of
// kernels.
#ifndef MINIPOD_SIM_KERNELS_TABLE_CUSTOM_CALL_H_
#define MINIPOD_SIM_KERNELS_TABLE_CUSTOM_CALL_H_

#include <stdbool.h>
#include <stddef.h>

#include "sim/kernels/kernel.h"

// Whether minipod has a kernel for custom_calls of this target.
bool mp_call_has_kernel(mp_str_t target);
// For tests: target number `index` of those, from 0 on; NULL after the last one.
const char *mp_call_target(size_t index);

// Makes the kernel of any of them (mp_kernel_maker_t).
MP_KERNEL_MAKER(mp_kernel_make_custom_call);

#endif  // MINIPOD_SIM_KERNELS_TABLE_CUSTOM_CALL_H_
