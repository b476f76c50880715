// Batches of very small matrix products: rotations of vectors, products of Jacobians with three
// columns. Setting up a blocked product for each of them would take a hundred times as long as
// computing it.
//
// The bits are the blocked product's: each element is summed up in the same order, one k after the
// other, with fused multiply-adds on the same machines.
#ifndef MINIPOD_SIM_KERNELS_CONTRACTION_GEMM_SMALL_H_
#define MINIPOD_SIM_KERNELS_CONTRACTION_GEMM_SMALL_H_

#include "sim/kernels/contraction/gemm.h"

// The loop for a planned product; NULL if the product is not small enough.
mp_gemm_small_run_t mp_gemm_small(const mp_gemm_t *gemm);

#endif  // MINIPOD_SIM_KERNELS_CONTRACTION_GEMM_SMALL_H_
