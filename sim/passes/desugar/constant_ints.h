// The values of small tensors of integers that a program computes from constants alone.
//
// Frontends compute shapes with ordinary ops: sizes are joined, multiplied, compared and chosen.
// What they come to is known at compile time, and dynamic ops need it there.
#ifndef MINIPOD_SIM_PASSES_DESUGAR_CONSTANT_INTS_H_
#define MINIPOD_SIM_PASSES_DESUGAR_CONSTANT_INTS_H_

#include "sim/ir/module.h"

// No shape operand of a dynamic op has more numbers: a padding has two for each dimension.
enum { MP_CONSTANT_INTS_MAX = 2 * MP_MAX_RANK };

// Evaluates `value` and writes its elements, in row-major order, to values[count]. Arithmetic wraps
// in the element types of the program, as it would at run time. False when the value depends on
// anything but constants, when an op on the way is not one of those that shapes are computed with,
// or when there are not exactly `count` elements. Time and stack are bounded for every program.
bool mp_constant_ints(const mp_value_t *value, int64_t *values, uint32_t count);

#endif  // MINIPOD_SIM_PASSES_DESUGAR_CONSTANT_INTS_H_
