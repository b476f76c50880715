// Batches of very small matrix products: rotations of vectors, products of Jacobians with three
// columns. The blocked product would take a hundred times as long to set up each of them as to
// compute it.
//
// Each element is summed up as the blocked product sums it up: one k after the other, fused where
// the machine fuses there. So the bits are the same.
#ifndef MINIPOD_SIM_KERNELS_CONTRACTION_GEMM_SMALL_H_
#define MINIPOD_SIM_KERNELS_CONTRACTION_GEMM_SMALL_H_

#include "sim/kernels/contraction/gemm.h"

// The loop for a planned product; NULL if it is not one of these.
mp_gemm_small_run_t mp_gemm_small(const mp_gemm_t *gemm);

#endif  // MINIPOD_SIM_KERNELS_CONTRACTION_GEMM_SMALL_H_
