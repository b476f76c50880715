// A program as the described chip runs it, as text and as JSON: kernels with their ops, what they
// read and write and where, their times, and collectives and control flow between them.
#ifndef MINIPOD_SIM_CHIP_PRINT_CHIP_PRINT_H_
#define MINIPOD_SIM_CHIP_PRINT_CHIP_PRINT_H_

#include "sim/chip/chip_program.h"

typedef struct {
  const mp_chip_t *chip;
  const mp_chip_program_t *chip_program;
  const char *file;  // the program's, and `target` is how the user names the pod; borrowed
  const char *target;
  uint32_t num_devices;  // of the program
  double seconds;        // per launch on an idle pod (mp_model_program_estimate)
  double work_seconds;   // of these without collectives
} mp_chip_print_request_t;

// Appends the program as text, one kernel or collective per line, with its values below. Values
// have the names that `minipod partition` prints. The only error is that memory is short.
MP_NODISCARD mp_status_t mp_chip_print_text(const mp_chip_print_request_t *request,
                                            mp_strbuf_t *out);

// Appends one JSON object, without a line break, with the program's sums: seconds, bytes, kernels,
// memory, collectives by kind. With `has_kernels` also the kernels. Units are seconds and bytes.
MP_NODISCARD mp_status_t mp_chip_print_json(const mp_chip_print_request_t *request,
                                            bool has_kernels, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_CHIP_PRINT_CHIP_PRINT_H_
