// What the files of this room share.
#ifndef MINIPOD_SIM_CHIP_SPACES_SPACES_IMPL_H_
#define MINIPOD_SIM_CHIP_SPACES_SPACES_IMPL_H_

#include "sim/chip/spaces/spaces.h"

typedef struct {
  uint32_t last_reader;  // the fusion that reads the value last; MP_CHIP_FUSION_NONE: none
  bool is_in_vmem;       // from its kernel to its last reader
  bool is_table;         // SparseCores look something up in it, in HBM
} mp_spaces_value_t;

// Fusions were found from the end to the beginning of a program: a later one has a smaller number.
typedef struct {
  const mp_chip_figures_t *figures;
  const mp_func_t *main;
  mp_chip_fusions_t *fusions;
  double vmem;                // bytes of VMEM for values of several kernels
  double prefetched_most;     // bytes of VMEM for these and prefetched operands
  mp_spaces_value_t *values;  // by value id
  // Of the kernel at hand:
  double kept, prefetched;                // live bytes
  double *freed_kept, *freed_prefetched;  // [fusions]: of them, by their last reader
  double argument;                        // bytes that are prefetched across programs
  uint32_t last_matmul;  // of main, if there is such an argument; else MP_CHIP_FUSION_NONE
  uint32_t previous;     // the kernel before; MP_CHIP_FUSION_NONE: none
} mp_spaces_t;

static inline mp_chip_fusion_access_t *mp_spaces_accesses(const mp_spaces_t *s,
                                                          const mp_chip_fusion_t *fusion) {
  return s->fusions->accesses.items + fusion->first_access;
}

// ---- spaces_loops.c ----

// Values that a loop carries, and those that all its iterations read.
void mp_spaces_keep_rounds(mp_spaces_t *s, const mp_block_t *body);

// ---- spaces_prefetch.c ----

// The matmul operand among the arguments that is prefetched across programs.
void mp_spaces_prefetch_argument(mp_spaces_t *s);
// An operand of the kernel's matmul that is prefetched while the kernel before runs.
void mp_spaces_prefetch_operand(mp_spaces_t *s, uint32_t number);

#endif  // MINIPOD_SIM_CHIP_SPACES_SPACES_IMPL_H_
