// Shared by the printers of text and JSON.
#ifndef MINIPOD_SIM_CHIP_PRINT_CHIP_PRINT_IMPL_H_
#define MINIPOD_SIM_CHIP_PRINT_CHIP_PRINT_IMPL_H_

#include "sim/base/containers/hash_map.h"
#include "sim/chip/fuse/chip_fusion.h"
#include "sim/chip/print/chip_print.h"
#include "sim/ir/op_name.h"

typedef struct {
  uint64_t hash;  // mp_hash_pointer of the hero
  const mp_chip_fusion_t *fusion;
} mp_chip_print_entry_t;

#define MP_CHIP_PRINT_MIB (1024.0 * 1024)

// The fusions of a chip program, recomputed: the chip program keeps only what replays need.
typedef struct {
  mp_arena_t *arena;
  mp_chip_fusions_t fusions;
  MP_HASH_MAP(mp_chip_print_entry_t) by_hero;
} mp_chip_print_fusions_t;

MP_NODISCARD mp_status_t mp_chip_print_find(const mp_chip_print_request_t *request,
                                            mp_chip_print_fusions_t *out);
void mp_chip_print_forget(mp_chip_print_fusions_t *fusions);

// The fusion of a kernel; NULL for copies and scalar ops.
const mp_chip_fusion_t *mp_chip_print_fusion(const mp_chip_print_fusions_t *fusions,
                                             const mp_chip_kernel_t *kernel);
// Where a value is while the kernel runs: "HBM", "VMEM" ... (a constant).
const char *mp_chip_print_space(const mp_chip_print_request_t *request,
                                const mp_chip_fusion_access_t *access);
// Appends the number of a value: "%12".
void mp_chip_print_value(const mp_value_t *value, mp_strbuf_t *out);

// ---- chip_print_kernels.c: parts of the text ----

// The state of printing a program as text.
typedef struct {
  const mp_chip_print_request_t *request;
  const mp_chip_program_t *chip_program;  // after the stage
  mp_chip_print_fusions_t fusions;
  mp_strbuf_t *out;
} mp_chip_print_t;

// Appends the ops of a fusion, and the arrays that it reads and writes.
void mp_chip_print_members(const mp_chip_print_t *p, const mp_chip_fusion_t *fusion);
// Appends the layout copies of the program, one per line.
void mp_chip_print_layout_copies(const mp_chip_print_t *p);
// Appends how much of its memory a device needs.
void mp_chip_print_memory(const mp_chip_print_t *p);

// ---- chip_print_stages.c ----

// Appends fusions, collectives, host copies and control flow in the order of the program.
void mp_chip_print_blocks(const mp_chip_print_t *p);

#endif  // MINIPOD_SIM_CHIP_PRINT_CHIP_PRINT_IMPL_H_
