// How often a loop goes round, where the program says it: a counter that begins with a constant, is
// changed by a constant in each round, and is compared with a constant.
//
// Pure functions of verified ops, fused or not; thread-safe.
#ifndef MINIPOD_SIM_WORK_ROUNDS_H_
#define MINIPOD_SIM_WORK_ROUNDS_H_

#include "sim/ir/module.h"

enum { MP_ROUNDS_UNKNOWN = -1 };

// The rounds of a `while`; MP_ROUNDS_UNKNOWN where they depend on anything else.
int64_t mp_work_rounds(const mp_op_t *loop);

#endif  // MINIPOD_SIM_WORK_ROUNDS_H_
