// What users call the ops of a program, and where these come from.
#ifndef MINIPOD_SIM_MODEL_REPORT_OP_NAME_H_
#define MINIPOD_SIM_MODEL_REPORT_OP_NAME_H_

#include "sim/ir/module.h"

// The whole name that the user's framework has given to the op: "jit(f)/layer/dot_general". Empty
// when there is none. Borrowed from the program.
mp_str_t mp_op_path(const mp_loc_t *loc);
// The place in the user's program: a file and a line. False when it is not known.
bool mp_op_source(const mp_loc_t *loc, mp_str_t *out_file, uint32_t *out_line);

#endif  // MINIPOD_SIM_MODEL_REPORT_OP_NAME_H_
