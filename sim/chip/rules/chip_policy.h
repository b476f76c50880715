// What the compilers of chips do differently: a row for each. No other code outside of fuse/, which
// has policies of its own, asks which compiler it is.
#ifndef MINIPOD_SIM_CHIP_RULES_CHIP_POLICY_H_
#define MINIPOD_SIM_CHIP_RULES_CHIP_POLICY_H_

#include "topology/figures/figures.h"

typedef struct {
  // ---- layout, spaces, cost ----
  // Arrays are in tiles of 8 x 128, the shape of a register. Layouts say which dimensions are in
  // them, so a transpose alone moves nothing.
  bool has_tiles;
  // Matmuls and attention are calls of libraries, which have their own rates, and which read each
  // matrix as contiguous memory.
  bool calls_libraries;
  // Random bits and select_and_scatter become several kernels, with arrays between them.
  bool expands_ops;
  // Cholesky and LU become kernels that take one matrix of a batch after the other, with matmuls
  // between blocks of columns. Libraries take several matrices at a time.
  bool expands_linalg;
  // Indices of sums are sorted first, because a core adds updates one by one.
  bool sorts_scatters;
  // Kernels reach the rates of the chip's file, which were found with this compiler.
  bool reaches_rates;

  // ---- memory ----
  uint32_t allocation;       // allocations begin at multiples of so many bytes
  bool sums_in_place;        // a reduction may write its result over what it has added up
  bool keeps_results_apart;  // of main's results only updates are written over operands

  // ---- schedule ----
  bool starts_collectives;      // each collective has a start and an end
  bool decomposes_collectives;  // gathers and scatters of matmuls are rings; only permutes start
  bool combines_gathers;        // combines gathers and scatters, and not only all_reduces
  bool starts_host_copies;      // each host copy has a start and an end
  // With several devices, a loop fetches from the host one iteration early, to hide the copy.
  bool fetches_early;

  // ---- steps ----
  bool counts_rounds;   // a known trip count needs no kernels for the loop's condition
  bool splits_complex;  // two kernels extract real and imaginary parts of complex arguments
  // The next value that a loop carries is written over this one, which is copied first if its
  // kernel still reads it: as a matmul operand, or beside an array that it updates in place.
  bool copies_carried;
  // The same, but beside any read at another place than the one that is written: threads of a GPU
  // have no order.
  bool copies_moved;
} mp_chip_policy_t;

extern const mp_chip_policy_t mp_chip_policies[MP_CHIP_COMPILER_COUNT];

// The policy of the chip's compiler.
static inline const mp_chip_policy_t *mp_chip_policy(const mp_chip_figures_t *figures) {
  return &mp_chip_policies[figures->compiler];
}

#endif  // MINIPOD_SIM_CHIP_RULES_CHIP_POLICY_H_
