// Which line of the user's program memory was wanted for.
#ifndef MINIPOD_SIM_PLAN_PROGRAM_BLAME_H_
#define MINIPOD_SIM_PLAN_PROGRAM_BLAME_H_

#include "sim/plan/program.h"

// Consumes the error of memory that was wanted for result `result` of a program and returns it with
// a last line that says which op makes that result, and where it stands in the user's program. An
// OK, and an error of another kind, stays what it is; so does any when memory is short.
MP_NODISCARD mp_status_t mp_program_blame_result(const mp_program_t *program, uint32_t result,
                                                 mp_status_t status);
// The same for the temporaries of a program: the op whose value is the largest.
MP_NODISCARD mp_status_t mp_program_blame_temporaries(const mp_program_t *program,
                                                      mp_status_t status);

// Appends what makes result `result`, and where it stands in the user's program: `add at f.py:3:9`.
// Nothing where that is not known, or the result is an argument.
void mp_program_describe_result(const mp_program_t *program, uint32_t result, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_PLAN_PROGRAM_BLAME_H_
