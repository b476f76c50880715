// XLA's algebraic rewrites: they change the result where intermediate numbers are infinite, NaN,
// too large or too small. XLA's simplifier makes them on every back end, and users' programs rely
// on them. For example, a mask times infinity is zero.
#ifndef MINIPOD_SIM_PASSES_XLA_XLA_VALUES_H_
#define MINIPOD_SIM_PASSES_XLA_XLA_VALUES_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// The rules: name, the opcodes that it handles (the same one twice: only one), the rewrite, the
// reason why users need it. p is a boolean, a and b are any values, c and d constants. An op may
// have several rules: the first that matches is applied, and then all are tried again.
#define MP_XLA_RULES(X)                                                                        \
  X(mask, MULTIPLY, MULTIPLY, "convert(p) * a => select(p, a, 0)",                             \
    "a mask removes infinities and NaNs, where 0 * inf would be NaN")                          \
  X(mask_dot, DOT_GENERAL, DOT_GENERAL, "sum(convert(p) * a) => sum(select(p, a, 0))",         \
    "the same, for the sum in a vdot or einsum")                                               \
  X(log_exp, LOG, LOG, "log(exp(a)) => a", "exp(a) is infinite from 89 on, in f32")            \
  X(log_power, LOG, LOG, "log(a ** b) => log(abs(a)) * b",                                     \
    "likelihoods are logarithms of powers, which would underflow to zero")                     \
  X(exp_times_exp, MULTIPLY, MULTIPLY, "exp(a) * exp(b) => exp(a + b)",                        \
    "infinity times zero would be NaN")                                                        \
  X(exp_over_exp, DIVIDE, DIVIDE, "exp(a) / exp(b) => exp(a - b)",                             \
    "ratios of weights; infinity divided by infinity would be NaN")                            \
  X(power_exp, POWER, POWER, "exp(a) ** b => exp(a * b)", "weights at another temperature")    \
  X(sqrt_square, SQRT, SQRT, "sqrt(a * a) => abs(a)", "lengths, whose squares would overflow") \
  X(plus_constants, ADD, SUBTRACT, "(a + c) + d => a + (c + d), also with minus",              \
    "adding and subtracting a large constant would round small numbers away")                  \
  X(times_constants, MULTIPLY, DIVIDE, "(a * c) * d => a * (c * d), also with division",       \
    "changes of units, where the first product would overflow")                                \
  X(plus_zero, ADD, SUBTRACT, "a + 0 => a, a - 0 => a",                                        \
    "constants that are combined often leave a zero")                                          \
  X(times_one, MULTIPLY, DIVIDE, "a * 1 => a, a / 1 => a",                                     \
    "constants that are combined often leave a one; a complex infinity stays infinite")

// Applies the rules to main and the bodies of its loops and branches,
// not to the regions of reductions and of the user's kernels. Before partitioning, and after it.
// Not thread-safe on one module.
MP_NODISCARD mp_status_t mp_pass_xla_values(mp_module_t *module);

#endif  // MINIPOD_SIM_PASSES_XLA_XLA_VALUES_H_
