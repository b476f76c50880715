// What the text and the JSON share.
#ifndef MINIPOD_SIM_CHIP_PRINT_CHIP_PRINT_IMPL_H_
#define MINIPOD_SIM_CHIP_PRINT_CHIP_PRINT_IMPL_H_

#include "sim/base/containers/hash_map.h"
#include "sim/chip/fuse/chip_fusion.h"
#include "sim/chip/print/chip_print.h"

typedef struct {
  uint64_t hash;  // mp_hash_pointer of the op that gives a kernel its name
  const mp_chip_fusion_t *fusion;
} mp_chip_print_entry_t;

// The fusions of a chip program, found again: the chip program keeps only what replays need.
typedef struct {
  mp_arena_t *arena;
  mp_chip_fusions_t fusions;
  MP_HASH_MAP(mp_chip_print_entry_t) by_hero;
} mp_chip_print_fusions_t;

MP_NODISCARD mp_status_t mp_chip_print_find(const mp_chip_print_request_t *request,
                                            mp_chip_print_fusions_t *out);
void mp_chip_print_forget(mp_chip_print_fusions_t *fusions);

// The fusion that a kernel is; NULL if it is none, but a copy or a scalar op.
const mp_chip_fusion_t *mp_chip_print_fusion(const mp_chip_print_fusions_t *fusions,
                                             const mp_chip_kernel_t *kernel);
// Where a value is while the kernel runs: "HBM", "VMEM" ... (a constant).
const char *mp_chip_print_space(const mp_chip_print_request_t *request,
                                const mp_chip_fusion_access_t *access);
// The op without its dialect: "dot_general" (a constant).
const char *mp_chip_print_op(const mp_op_t *op);
// Appends the name of a value, as the printed program has it: "%12".
void mp_chip_print_value(const mp_value_t *value, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_CHIP_PRINT_CHIP_PRINT_IMPL_H_
