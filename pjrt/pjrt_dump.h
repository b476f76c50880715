// Writing down what is compiled: the option `dump` (MINIPOD_DUMP) names a folder.
//
// Files are named by process and number of the compilation: the program as it came
// ("1234.0007.input.mlir", or .mlirbc for bytecode), what each device runs with the partitioner's
// report at its head ("1234.0007.jit_step.partitioned.mlir"), and its commands
// ("1234.0007.jit_step.commands.txt"). What cannot be written is a logged warning, never an error.
// Thread-safe.
#ifndef MINIPOD_PJRT_PJRT_DUMP_H_
#define MINIPOD_PJRT_PJRT_DUMP_H_

#include "pjrt/pjrt_compile.h"

// Writes the input; returns the compilation's number. `folder` is made if need be; NULL or ""
// writes nothing.
uint32_t mp_pjrt_dump_input(const char *folder, const mp_pjrt_source_t *source);
void mp_pjrt_dump_program(const char *folder, uint32_t number, const mp_program_t *program);

#endif  // MINIPOD_PJRT_PJRT_DUMP_H_
