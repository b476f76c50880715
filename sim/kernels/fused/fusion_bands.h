// Fused ops of two batched matmuls and the ops between them.
#ifndef MINIPOD_SIM_KERNELS_FUSED_FUSION_BANDS_H_
#define MINIPOD_SIM_KERNELS_FUSED_FUSION_BANDS_H_

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/ir/module.h"
#include "sim/kernels/fused/band.h"
#include "sim/kernels/kernel.h"

// Makes the kernel of a minipod.fusion with these bands; `make` makes the kernels of its ops.
MP_NODISCARD mp_status_t mp_fusion_make_bands(mp_arena_t *arena, const mp_op_t *op,
                                              const mp_bands_t *bands, mp_kernel_maker_t make,
                                              const mp_kernel_t **out_kernel);

#endif  // MINIPOD_SIM_KERNELS_FUSED_FUSION_BANDS_H_
