// The maker of minipod.fusion.
#ifndef MINIPOD_SIM_KERNELS_FUSED_FUSION_H_
#define MINIPOD_SIM_KERNELS_FUSED_FUSION_H_

#include "sim/kernels/kernel.h"

// Has the contract of mp_kernel_maker_t; kernels of ops in the region are made by `make`.
MP_NODISCARD mp_status_t mp_kernel_make_fusion(mp_arena_t *arena, const mp_op_t *op,
                                               mp_kernel_maker_t make,
                                               const mp_kernel_t **out_kernel);

#endif  // MINIPOD_SIM_KERNELS_FUSED_FUSION_H_
