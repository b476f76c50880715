// The line of the user's program that needed the memory of an out-of-memory error.
#ifndef MINIPOD_SIM_PLAN_PROGRAM_BLAME_H_
#define MINIPOD_SIM_PLAN_PROGRAM_BLAME_H_

#include "sim/plan/program.h"

// Consumes an out-of-memory error about result `result` of a program and returns it with a last
// line that names the op that computes the result, and its place in the user's program. OK and
// other errors are returned unchanged, and so is any error when memory is short.
MP_NODISCARD mp_status_t mp_program_blame_result(const mp_program_t *program, uint32_t result,
                                                 mp_status_t status);
// The same for the temporaries of a program: the op whose value is the largest.
MP_NODISCARD mp_status_t mp_program_blame_temporaries(const mp_program_t *program,
                                                      mp_status_t status);

// Appends the op that computes result `result`, and its place in the user's program: `add at
// f.py:3:9`. Appends nothing if that is not known, or the result is an argument.
void mp_program_describe_result(const mp_program_t *program, uint32_t result, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_PLAN_PROGRAM_BLAME_H_
