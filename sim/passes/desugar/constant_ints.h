// Evaluates small integer tensors that a program computes only from constants.
//
// Frontends compute shapes with ordinary ops: they concatenate, multiply, compare and select sizes.
// The results are known at compile time, and dynamic ops need them then.
#ifndef MINIPOD_SIM_PASSES_DESUGAR_CONSTANT_INTS_H_
#define MINIPOD_SIM_PASSES_DESUGAR_CONSTANT_INTS_H_

#include "sim/ir/module.h"

// No shape operand of a dynamic op has more numbers: a padding has two for each dimension.
enum { MP_CONSTANT_INTS_MAX = 2 * MP_MAX_RANK };

// Evaluates `value` and writes its elements, in row-major order, to values[count]. Arithmetic wraps
// in the element types of the program, as it would at run time. False when the value depends on
// anything but constants, when it needs another op than those that compute shapes, or when there
// are not exactly `count` elements. Time and stack are bounded for every program.
bool mp_constant_ints(const mp_value_t *value, int64_t *values, uint32_t count);

#endif  // MINIPOD_SIM_PASSES_DESUGAR_CONSTANT_INTS_H_
