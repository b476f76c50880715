// Dumps: writes compiled programs into the folder that the option `dump` (MINIPOD_DUMP) names.
//
// Files are named by process and number of the compilation: the input program
// ("1234.0007.input.mlir", .mlirbc for bytecode, .hlo for HLO), the per-device program headed by
// the partitioner's report ("1234.0007.jit_step.partitioned.mlir"), and its commands
// ("1234.0007.jit_step.commands.txt"). At its end a client with a model of time adds a table. A
// file that cannot be written is a logged warning, never an error. Thread-safe.
#ifndef MINIPOD_PJRT_COMPILE_PJRT_DUMP_H_
#define MINIPOD_PJRT_COMPILE_PJRT_DUMP_H_

#include "pjrt/compile/pjrt_compile.h"

// Writes the input, and makes `folder` if it does not exist. Returns the compilation's number.
// `folder` NULL or "": writes nothing.
uint32_t mp_pjrt_dump_input(const char *folder, const mp_pjrt_source_t *source);
// Writes the partitioned program and its commands under the number that mp_pjrt_dump_input gave.
// `folder` NULL or "": writes nothing.
void mp_pjrt_dump_program(const char *folder, uint32_t number, const mp_program_t *program);

// Writes the table of a client's virtual times ("1234.time.txt"; of the process's second client
// "1234.time.2.txt"), and the same as JSON ("1234.time.json"). `folder` NULL or "": writes nothing.
void mp_pjrt_dump_time(const char *folder, const mp_strbuf_t *table, const mp_strbuf_t *json);

#endif  // MINIPOD_PJRT_COMPILE_PJRT_DUMP_H_
