// The ops that a step computes itself, on single elements; private to sim/loops.
//
// sim/numeric/meaning.h defines them. Other ops are computed by calling the loops of
// sim/kernels/elementwise.
#ifndef MINIPOD_SIM_LOOPS_SCALAR_OPS_H_
#define MINIPOD_SIM_LOOPS_SCALAR_OPS_H_

#include "sim/numeric/meaning.h"

// clang-format changes these macros again each time it runs.
// clang-format off
// X(kind of meaning, op, element type)
#define MP_SCALAR_UNARY(X)                                                      \
  X(INT, NEGATE, S32) X(INT, NEGATE, S64) X(SIGNED, ABS, S32)                   \
  X(REAL, NEGATE, F32) X(REAL, ABS, F32) X(REAL, SQRT, F32)                     \
  X(REAL, NEGATE, F64) X(REAL, ABS, F64) X(REAL, SQRT, F64)                     \
  X(BOOL, NOT, BOOL) X(INT, NOT, S32) X(INT, NOT, U32)
#define MP_SCALAR_INTEGER(X, sign, type)                                        \
  X(INT, ADD, type) X(INT, SUBTRACT, type) X(INT, MULTIPLY, type)               \
  X(INT, AND, type) X(INT, OR, type) X(INT, XOR, type)                          \
  X(INT, MAXIMUM, type) X(INT, MINIMUM, type)                                   \
  X(INT, SHIFT_LEFT, type) X(INT, SHIFT_RIGHT_LOGICAL, type)                    \
  X(sign, DIVIDE, type) X(sign, REMAINDER, type)
#define MP_SCALAR_REAL(X, type)                                                 \
  X(REAL, ADD, type) X(REAL, SUBTRACT, type) X(REAL, MULTIPLY, type) X(REAL, DIVIDE, type)
#define MP_SCALAR_BINARY(X)                                                     \
  MP_SCALAR_INTEGER(X, SIGNED, S32) MP_SCALAR_INTEGER(X, UNSIGNED, U32)         \
  MP_SCALAR_INTEGER(X, SIGNED, S64) MP_SCALAR_INTEGER(X, UNSIGNED, U64)         \
  MP_SCALAR_REAL(X, F32) MP_SCALAR_REAL(X, F64)                                 \
  X(BOOL, AND, BOOL) X(BOOL, OR, BOOL) X(BOOL, XOR, BOOL)

// X(direction, operator, element type)
#define MP_SCALAR_COMPARE(X)                                                    \
  MP_DIRECTIONS(X, S32) MP_DIRECTIONS(X, U32) MP_DIRECTIONS(X, S64)             \
  MP_DIRECTIONS(X, U64) MP_DIRECTIONS(X, F32) MP_DIRECTIONS(X, F64)             \
  X(EQ, ==, BOOL) X(NE, !=, BOOL)

// X(from, to); all of these fit or wrap, so that nothing has to saturate.
#define MP_SCALAR_CONVERT(X)                                                    \
  X(BOOL, S32) X(BOOL, U32) X(BOOL, F32) X(S32, F32) X(S32, F64) X(S32, S64)    \
  X(S32, U32) X(U32, S32) X(U32, F32) X(S64, S32) X(F32, F64) X(F64, F32)

// X(bytes, element type)
#define MP_SCALAR_SELECT(X) X(1, U8) X(4, U32) X(8, U64)
// clang-format on

#endif  // MINIPOD_SIM_LOOPS_SCALAR_OPS_H_
