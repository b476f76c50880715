// Shared by the printers of text and JSON.
#ifndef MINIPOD_SIM_CHIP_PRINT_CHIP_PRINT_IMPL_H_
#define MINIPOD_SIM_CHIP_PRINT_CHIP_PRINT_IMPL_H_

#include "sim/chip/print/chip_print.h"
#include "sim/ir/op_name.h"

#define MP_CHIP_PRINT_MIB (1024.0 * 1024)

// The state of printing a program.
typedef struct {
  const mp_chip_print_request_t *request;
  const mp_chip_program_t *chip_program;  // of the request
  const mp_chip_fusions_t *fusions;       // of the request
  mp_strbuf_t *out;
} mp_chip_print_t;

// ---- chip_print_fusions.c ----

// Where a value is while the kernel runs: "HBM", "VMEM" ... (a constant).
const char *mp_chip_print_space(mp_space_t space);
// Appends the number of a value: "%12".
void mp_chip_print_value(const mp_value_t *value, mp_strbuf_t *out);
// Appends the layout of an array: "{1,0}".
void mp_chip_print_layout(mp_tile_layout_t layout, mp_strbuf_t *out);
// Appends as text the ops of a fusion, and the arrays that it reads and writes.
void mp_chip_print_members(const mp_chip_print_t *p, const mp_chip_fusion_t *fusion);

// ---- chip_print_stages.c ----

// Appends fusions, collectives, host copies and control flow in the order of
// the program.
void mp_chip_print_blocks(const mp_chip_print_t *p);
// Appends the layout copies of the program, one per line.
void mp_chip_print_layout_copies(const mp_chip_print_t *p);

#endif  // MINIPOD_SIM_CHIP_PRINT_CHIP_PRINT_IMPL_H_
