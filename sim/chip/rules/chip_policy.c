#include "sim/chip/rules/chip_policy.h"

const mp_chip_policy_t mp_chip_policies[MP_CHIP_COMPILER_COUNT] = {
    // No compiler is described: kernels and collectives one after the other, in the program's
    // order.
    [MP_CHIP_COMPILER_PLAIN] = {.allocation = 256, .combines_gathers = true},
    // libtpu 0.0.52.
    [MP_CHIP_COMPILER_TPU] = {.has_tiles = true,
                              .expands_linalg = true,
                              .sorts_scatters = true,
                              .reaches_rates = true,
                              .allocation = 512,
                              .sums_in_place = true,
                              .keeps_results_apart = true,
                              .decomposes_collectives = true,
                              .starts_host_copies = true,
                              .fetches_early = true,
                              .counts_rounds = true,
                              .splits_complex = true,
                              .copies_carried = true},
    // XLA for GPUs, with cuBLAS, cuDNN, cuSOLVER and NCCL.
    [MP_CHIP_COMPILER_GPU] = {.calls_libraries = true,
                              .expands_ops = true,
                              .reaches_rates = true,
                              .allocation = 256,
                              .sums_in_place = true,
                              .starts_collectives = true,
                              .combines_gathers = true,
                              .starts_host_copies = true,
                              .counts_rounds = true,
                              .copies_carried = true,
                              .copies_moved = true},
};
