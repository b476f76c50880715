// A program as the described chip runs it, as text and as JSON: kernels with their ops, what they
// read and write and where, their times, and collectives and control flow between them.
#ifndef MINIPOD_SIM_CHIP_PRINT_CHIP_PRINT_H_
#define MINIPOD_SIM_CHIP_PRINT_CHIP_PRINT_H_

#include "sim/chip/chip_program.h"

// The passes that make a chip program, in their order. A program is printed as it is after one.
typedef enum {
  MP_CHIP_STAGE_FUSE,      // ops by fusion, with what these read and write
  MP_CHIP_STAGE_LAYOUT,    // the same with layouts and layout copies
  MP_CHIP_STAGE_MEMORY,    // the same with bytes, spaces and the memory of a device
  MP_CHIP_STAGE_COST,      // kernels with times, in the order of the program
  MP_CHIP_STAGE_SCHEDULE,  // the same in the order of the schedule: all there is
  MP_CHIP_STAGE_COUNT,
} mp_chip_stage_t;

// "fuse" (a constant).
const char *mp_chip_stage_name(mp_chip_stage_t stage);
bool mp_chip_stage_from_name(mp_str_t name, mp_chip_stage_t *out_stage);

typedef struct {
  const mp_chip_t *chip;
  const mp_chip_program_t *chip_program;
  const char *file;  // the program's, and `target` is how the user names the pod; borrowed
  const char *target;
  uint32_t num_devices;  // of the program
  double seconds;        // per launch on an idle pod (mp_model_program_estimate)
  double work_seconds;   // of these without collectives
  mp_chip_stage_t stage;
  bool is_structure;  // leaves times out
} mp_chip_print_request_t;

// Appends the program after `stage` as text, one kernel or collective per line, with its values
// below. Values have their numbers in the partitioned module (mp_module_number_values): arguments
// first. Errors: those of making a chip program.
MP_NODISCARD mp_status_t mp_chip_print_text(const mp_chip_print_request_t *request,
                                            mp_strbuf_t *out);

// Appends one JSON object for the last stage, without a line break, with the program's sums:
// seconds, bytes, kernels, memory, collectives by kind. With `has_kernels` also the kernels. Units
// are seconds and bytes.
MP_NODISCARD mp_status_t mp_chip_print_json(const mp_chip_print_request_t *request,
                                            bool has_kernels, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_CHIP_PRINT_CHIP_PRINT_H_
