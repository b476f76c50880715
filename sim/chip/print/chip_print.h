// Prints a program as the described chip runs it, as text or JSON: kernels with
// their ops, the arrays that they read and write and where these are, times,
// collectives and control flow.
#ifndef MINIPOD_SIM_CHIP_PRINT_CHIP_PRINT_H_
#define MINIPOD_SIM_CHIP_PRINT_CHIP_PRINT_H_

#include "sim/chip/chip_program.h"

// The passes that make a chip program, in their order. `--stage` prints the
// program after one.
typedef enum {
  MP_CHIP_STAGE_FUSE,      // fusions with their ops, reads and writes
  MP_CHIP_STAGE_LAYOUT,    // the same with layouts and layout copies
  MP_CHIP_STAGE_MEMORY,    // the same with bytes, spaces and the memory of a
                           // device
  MP_CHIP_STAGE_COST,      // kernels with times, in the order of the program
  MP_CHIP_STAGE_SCHEDULE,  // the same in the order of the schedule: the complete
                           // program
  MP_CHIP_STAGE_COUNT,
} mp_chip_stage_t;

// The stage of a name, "fuse"; false: no stage has this name.
bool mp_chip_stage_from_name(mp_str_t name, mp_chip_stage_t *out_stage);

typedef struct {
  const mp_chip_t *chip;
  const mp_chip_program_t *chip_program;  // after `stage`
  const mp_chip_fusions_t *fusions;       // of it (mp_chip_make_fusions); NULL: no kernels in JSON
  const char *file;                       // of the program; borrowed
  const char *target;                     // the pod as the user names it; borrowed
  uint32_t num_devices;                   // of the program
  double seconds;                         // per launch on an idle pod (mp_model_program_estimate)
  double work_seconds;                    // `seconds` without collectives
  const double *by_figure;                // of these, by the parameter that decides each kernel
  mp_chip_stage_t stage;
  bool is_structure;  // leaves times out
} mp_chip_print_request_t;

// Appends the program after `stage` as text: a line per kernel or collective,
// then a line per array that the kernel reads or writes. Values have their
// numbers in the partitioned module (mp_module_number_values), arguments first.
void mp_chip_print_text(const mp_chip_print_request_t *request, mp_strbuf_t *out);

// Appends a JSON object for the complete program, on one line: its totals of
// seconds, kernels and memory, and its collectives by kind. With fusions also
// each kernel. Units are seconds and bytes.
void mp_chip_print_json(const mp_chip_print_request_t *request, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_CHIP_PRINT_CHIP_PRINT_H_
