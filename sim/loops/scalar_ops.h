// The ops that a step computes itself, on single elements; private to sim/loops.
//
// The expressions are those of the loops in sim/kernels/elementwise. Ops that are not here are
// computed by calling these loops.
#ifndef MINIPOD_SIM_LOOPS_SCALAR_OPS_H_
#define MINIPOD_SIM_LOOPS_SCALAR_OPS_H_

#include <stdint.h>

// X(op, element type of the operands, C type of the operands, of the result, expression of x)
#define MP_SCALAR_UNARY(X)                                              \
  X(NEGATE, S32, uint32_t, uint32_t, 0 - x)                             \
  X(NEGATE, S64, uint64_t, uint64_t, 0 - x)                             \
  X(NEGATE, F32, float, float, -x)                                      \
  X(NEGATE, F64, double, double, -x)                                    \
  X(SQRT, F32, float, float, sqrtf(x))                                  \
  X(SQRT, F64, double, double, sqrt(x))                                 \
  X(ABS, F32, float, float, fabsf(x))                                   \
  X(ABS, F64, double, double, fabs(x))                                  \
  X(ABS, S32, int32_t, uint32_t, x < 0 ? 0 - (uint32_t)x : (uint32_t)x) \
  X(NOT, BOOL, uint8_t, uint8_t, x ^ 1)                                 \
  X(NOT, S32, uint32_t, uint32_t, ~x)                                   \
  X(NOT, U32, uint32_t, uint32_t, ~x)

// clang-format changes these macros anew each time it runs.
// clang-format off
#define MP_SCALAR_INTEGER(X, dtype, T, U, bits)                                 \
  X(ADD, dtype, U, U, x + y)                                                    \
  X(SUBTRACT, dtype, U, U, x - y)                                               \
  X(MULTIPLY, dtype, U, U, x * y)                                               \
  X(AND, dtype, U, U, x & y)                                                    \
  X(OR, dtype, U, U, x | y)                                                     \
  X(XOR, dtype, U, U, x ^ y)                                                    \
  X(MAXIMUM, dtype, T, T, x > y ? x : y)                                        \
  X(MINIMUM, dtype, T, T, x < y ? x : y)                                        \
  X(SHIFT_LEFT, dtype, U, U, y < bits ? x << (y & (bits - 1)) : 0)              \
  X(SHIFT_RIGHT_LOGICAL, dtype, U, U, y < bits ? x >> (y & (bits - 1)) : 0)
#define MP_SCALAR_SIGNED(X, dtype, T, U)                                        \
  X(DIVIDE, dtype, T, T, y == 0 ? (T)-1 : y == -1 ? (T)(0 - (U)x) : x / y)      \
  X(REMAINDER, dtype, T, T, y == 0 ? x : y == -1 ? 0 : x % y)
#define MP_SCALAR_UNSIGNED(X, dtype, U)                                         \
  X(DIVIDE, dtype, U, U, y == 0 ? (U)-1 : x / y)                                \
  X(REMAINDER, dtype, U, U, y == 0 ? x : x % y)
#define MP_SCALAR_FLOAT(X, dtype, T)                                            \
  X(ADD, dtype, T, T, x + y)                                                    \
  X(SUBTRACT, dtype, T, T, x - y)                                               \
  X(MULTIPLY, dtype, T, T, x * y)                                               \
  X(DIVIDE, dtype, T, T, x / y)
// clang-format on

// X(op, element type of the operands, C type of the operands, of the result, expression of x, y)
#define MP_SCALAR_BINARY(X)                         \
  MP_SCALAR_INTEGER(X, S32, int32_t, uint32_t, 32)  \
  MP_SCALAR_INTEGER(X, U32, uint32_t, uint32_t, 32) \
  MP_SCALAR_INTEGER(X, S64, int64_t, uint64_t, 64)  \
  MP_SCALAR_INTEGER(X, U64, uint64_t, uint64_t, 64) \
  MP_SCALAR_SIGNED(X, S32, int32_t, uint32_t)       \
  MP_SCALAR_SIGNED(X, S64, int64_t, uint64_t)       \
  MP_SCALAR_UNSIGNED(X, U32, uint32_t)              \
  MP_SCALAR_UNSIGNED(X, U64, uint64_t)              \
  MP_SCALAR_FLOAT(X, F32, float)                    \
  MP_SCALAR_FLOAT(X, F64, double)                   \
  X(AND, BOOL, uint8_t, uint8_t, (uint8_t)(x & y))  \
  X(OR, BOOL, uint8_t, uint8_t, (uint8_t)(x | y))   \
  X(XOR, BOOL, uint8_t, uint8_t, (uint8_t)(x ^ y))

// X(direction, element type, C type, operator)
#define MP_SCALAR_COMPARE_ALL(X, dtype, T) \
  X(EQ, dtype, T, ==)                      \
  X(NE, dtype, T, !=)                      \
  X(GE, dtype, T, >=)                      \
  X(GT, dtype, T, >)                       \
  X(LE, dtype, T, <=)                      \
  X(LT, dtype, T, <)
#define MP_SCALAR_COMPARE(X)              \
  MP_SCALAR_COMPARE_ALL(X, S32, int32_t)  \
  MP_SCALAR_COMPARE_ALL(X, U32, uint32_t) \
  MP_SCALAR_COMPARE_ALL(X, S64, int64_t)  \
  MP_SCALAR_COMPARE_ALL(X, U64, uint64_t) \
  MP_SCALAR_COMPARE_ALL(X, F32, float)    \
  MP_SCALAR_COMPARE_ALL(X, F64, double)   \
  X(EQ, BOOL, uint8_t, ==)                \
  X(NE, BOOL, uint8_t, !=)

// X(from, to, C types); all of these fit or wrap, so that nothing has to saturate.
#define MP_SCALAR_CONVERT(X)      \
  X(BOOL, S32, uint8_t, int32_t)  \
  X(BOOL, U32, uint8_t, uint32_t) \
  X(BOOL, F32, uint8_t, float)    \
  X(S32, F32, int32_t, float)     \
  X(S32, F64, int32_t, double)    \
  X(S32, S64, int32_t, int64_t)   \
  X(S32, U32, int32_t, uint32_t)  \
  X(U32, S32, uint32_t, int32_t)  \
  X(U32, F32, uint32_t, float)    \
  X(S64, S32, int64_t, int32_t)   \
  X(F32, F64, float, double)      \
  X(F64, F32, double, float)

// X(bytes, C type)
#define MP_SCALAR_SELECT(X) \
  X(1, uint8_t)             \
  X(4, uint32_t)            \
  X(8, uint64_t)

#endif  // MINIPOD_SIM_LOOPS_SCALAR_OPS_H_
