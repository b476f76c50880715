// What the compilers of chips do differently. No other code outside of fuse/, which has policies of
// its own, asks which compiler it is.
#ifndef MINIPOD_SIM_CHIP_RULES_CHIP_POLICY_H_
#define MINIPOD_SIM_CHIP_RULES_CHIP_POLICY_H_

#include "topology/figures/figures.h"

// X(what it does, no compiler described, libtpu 0.0.52, XLA for GPUs, what that means and why)
// clang-format off
#define MP_CHIP_POLICY(X) \
  X(has_tiles, 0, 1, 0, "arrays are in tiles of 8 x 128, like registers; in these layouts a transpose alone moves nothing") \
  X(calls_libraries, 0, 0, 1, "cuBLAS and cuDNN have rates of their own, and read each matrix as contiguous memory") \
  X(expands_ops, 0, 0, 1, "random bits and select_and_scatter are several kernels, with arrays in HBM between them") \
  X(expands_linalg, 0, 1, 0, "Cholesky and LU: a matrix at a time, with matmuls between blocks of columns; libraries take several") \
  X(sorts_scatters, 0, 1, 0, "indices of sums are sorted first, because a core adds updates one by one") \
  X(reaches_rates, 0, 1, 1, "kernels reach the rates of the chip's file, which were found with this compiler") \
  X(sums_in_place, 0, 1, 1, "a reduction may write its result over what it has added up") \
  X(keeps_results_apart, 0, 1, 0, "of main's results only updates are written over operands") \
  X(starts_collectives, 0, 0, 1, "each collective has a start and an end, on a stream of its own") \
  X(decomposes_collectives, 0, 1, 0, "gathers and scatters of matmuls are rings that these hide; of the others only permutes are async") \
  X(combines_gathers, 1, 0, 1, "gathers and scatters are combined, too, and not only all_reduces") \
  X(starts_host_copies, 0, 1, 1, "each host copy has a start and an end") \
  X(fetches_early, 0, 1, 0, "with several devices, loops fetch from the host one iteration early, to overlap the copy") \
  X(counts_rounds, 0, 1, 1, "a known trip count needs no kernels for the loop's condition") \
  X(splits_complex, 0, 1, 0, "two kernels extract the real and imaginary parts of complex arguments") \
  X(copies_carried, 0, 1, 1, "a carried value is copied if it is a matmul operand of the kernel that writes the next one over it") \
  X(copies_moved, 0, 0, 1, "also if it is read at other places than written, as threads have no order; else beside updates in place")
// clang-format on

typedef struct {
#define MP_CHIP_POLICY_MEMBER(name, ...) bool name;
  MP_CHIP_POLICY(MP_CHIP_POLICY_MEMBER)
#undef MP_CHIP_POLICY_MEMBER
  uint32_t allocation;  // allocations begin at multiples of so many bytes
} mp_chip_policy_t;

extern const mp_chip_policy_t mp_chip_policies[MP_CHIP_COMPILER_COUNT];

// The policy of the chip's compiler.
static inline const mp_chip_policy_t *mp_chip_policy(const mp_chip_figures_t *figures) {
  return &mp_chip_policies[figures->compiler];
}

#endif  // MINIPOD_SIM_CHIP_RULES_CHIP_POLICY_H_
