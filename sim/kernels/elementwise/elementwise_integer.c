// Loops over bool and 8- to 64-bit integers.
#include <stddef.h>

#include "sim/base/table.h"
#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/loops.h"

// Name, element type, the unsigned type of its size, an unsigned type of at least 32 bits in which
// is computed (so that nothing is promoted to a signed type and overflows), bits.
#define SIGNED_TYPES(X)                   \
  X(S8, int8_t, uint8_t, uint32_t, 8)     \
  X(S16, int16_t, uint16_t, uint32_t, 16) \
  X(S32, int32_t, uint32_t, uint32_t, 32) \
  X(S64, int64_t, uint64_t, uint64_t, 64)
#define UNSIGNED_TYPES(X)                  \
  X(U8, uint8_t, uint8_t, uint32_t, 8)     \
  X(U16, uint16_t, uint16_t, uint32_t, 16) \
  X(U32, uint32_t, uint32_t, uint32_t, 32) \
  X(U64, uint64_t, uint64_t, uint64_t, 64)
_Static_assert(MP_ROWS(SIGNED_TYPES) == MP_ROWS(MP_DTYPES_SIGNED) &&
                   MP_ROWS(UNSIGNED_TYPES) == MP_ROWS(MP_DTYPES_UNSIGNED),
               "loops for all integers");

#define POWER(name, T, W)                                     \
  static inline T power_##name(T base, uint64_t exponent) {   \
    W result = 1, square = (W)base;                           \
    for (; exponent != 0; exponent >>= 1, square *= square) { \
      if ((exponent & 1) != 0) result *= square;              \
    }                                                         \
    return (T)result;                                         \
  }

// The number of bits that are set, by adding neighbouring fields of 1, 2, 4, 8 ... bits. Loops of
// it become vector code. (The last steps are not a product, by which compilers would recognise the
// whole and take the processor's instruction for one number at a time.)
#define POPCNT(name, T, U, W, bits)                                      \
  static inline T popcnt_of_##name(T x) {                                \
    const W ones = (W)0x5555555555555555, pairs = (W)0x3333333333333333, \
            fours = (W)0x0f0f0f0f0f0f0f0f;                               \
    W sum = (U)x;                                                        \
    sum = (sum & ones) + (sum >> 1 & ones);                              \
    sum = (sum & pairs) + (sum >> 2 & pairs);                            \
    sum = (sum + (sum >> 4)) & fours;                                    \
    sum += sum >> 8;                                                     \
    sum += sum >> 16;                                                    \
    sum += sizeof(W) == 8 ? sum >> (4 * sizeof(W)) : 0;                  \
    return (T)(sum & (2 * bits - 1));                                    \
  }

// x / y, rounded towards zero, for a y that is neither 0 nor -1. Short integers are divided as
// floating-point numbers with so many more bits that the quotient, which is at least 1 / y away
// from the next whole number if it is none, is not rounded to one: of these divisions compilers
// make vector code.
#define QUOTIENT(name, T, F)                  \
  static inline T quotient_##name(T x, T y) { \
    return (T)((F)x / (F)y);                  \
  }
QUOTIENT(S8, int8_t, float)
QUOTIENT(U8, uint8_t, float)
QUOTIENT(S16, int16_t, float)
QUOTIENT(U16, uint16_t, float)
QUOTIENT(S32, int32_t, double)
QUOTIENT(U32, uint32_t, double)
static inline int64_t quotient_S64(int64_t x, int64_t y) {
  return x / y;
}
static inline uint64_t quotient_U64(uint64_t x, uint64_t y) {
  return x / y;
}
#define SIGNED_QUOTIENT(name, T) quotient_##name(x, (T)(((y == 0) | (y == -1)) != 0 ? 1 : y))
#define UNSIGNED_QUOTIENT(name)  quotient_##name(x, y == 0 ? 1 : y)

// The loops that are the same for signed and unsigned types.
#define COMMON_LOOPS(name, T, U, W, bits)                                                   \
  POWER(name, T, W)                                                                         \
  POPCNT(name, T, U, W, bits)                                                               \
  MP_LOOP2(add_##name, T, T, (W)x + (W)y)                                                   \
  MP_LOOP2(subtract_##name, T, T, (W)x - (W)y)                                              \
  MP_LOOP2(multiply_##name, T, T, (W)x *(W)y)                                               \
  MP_LOOP1(negate_##name, T, T, 0 - (W)x)                                                   \
  MP_LOOP2(and_##name, T, T, x &y)                                                          \
  MP_LOOP2(or_##name, T, T, x | y)                                                          \
  MP_LOOP2(xor_##name, T, T, x ^ y)                                                         \
  MP_LOOP1(not_##name, T, T, ~x)                                                            \
  MP_LOOP2(maximum_##name, T, T, x > y ? x : y)                                             \
  MP_LOOP2(minimum_##name, T, T, x < y ? x : y)                                             \
  MP_LOOP3(clamp_##name, T, T, (y > x ? y : x) < z ? (y > x ? y : x) : z)                   \
  MP_LOOP2(shift_left_##name, T, T, (U)y < bits ? (W)x << ((U)y & (bits - 1)) : 0)          \
  MP_LOOP2(shift_right_logical_##name, T, T, (U)y < bits ? (U)x >> ((U)y & (bits - 1)) : 0) \
  MP_LOOP1(popcnt_##name, T, T, popcnt_of_##name(x))                                        \
  MP_LOOP1(clz_##name, T, T,                                                                \
           (U)x == 0 ? bits : __builtin_clzll((unsigned long long)(U)x) - (64 - bits))

#define SIGNED_LOOPS(name, T, U, W, bits)                                                          \
  COMMON_LOOPS(name, T, U, W, bits)                                                                \
  MP_LOOP1(abs_##name, T, T, x < 0 ? 0 - (W)x : (W)x)                                              \
  MP_LOOP1(sign_##name, T, T, (x > 0) - (x < 0))                                                   \
  MP_LOOP2(divide_##name, T, T, y == 0 ? (W)-1 : y == -1 ? 0 - (W)x : (W)SIGNED_QUOTIENT(name, T)) \
  MP_LOOP2(remainder_##name, T, T,                                                                 \
           y == 0    ? (W)x                                                                        \
           : y == -1 ? (W)0                                                                        \
                     : (W)x - (W)SIGNED_QUOTIENT(name, T) * (W)y)                                  \
  MP_LOOP2(shift_right_arithmetic_##name, T, T, x >> ((U)y < bits ? (U)y : bits - 1))              \
  MP_LOOP2(power_loop_##name, T, T,                                                                \
           y >= 0    ? power_##name(x, (uint64_t)y)                                                \
           : x == 1  ? 1                                                                           \
           : x == -1 ? ((y & 1) != 0 ? -1 : 1)                                                     \
                     : 0)

// The arithmetic shift of an unsigned type copies the highest bit too.
#define UNSIGNED_LOOPS(name, T, U, W, bits)                                                   \
  COMMON_LOOPS(name, T, U, W, bits)                                                           \
  MP_LOOP1(abs_##name, T, T, x)                                                               \
  MP_LOOP1(sign_##name, T, T, x != 0)                                                         \
  MP_LOOP2(divide_##name, T, T, y == 0 ? (T)-1 : UNSIGNED_QUOTIENT(name))                     \
  MP_LOOP2(remainder_##name, T, T, y == 0 ? (W)x : (W)x - (W)UNSIGNED_QUOTIENT(name) * (W)y)  \
  MP_LOOP2(shift_right_arithmetic_##name, T, T,                                               \
           (int64_t)((uint64_t)x << (64 - bits)) >> (64 - bits) >> (y < bits ? y : bits - 1)) \
  MP_LOOP2(power_loop_##name, T, T, power_##name(x, (uint64_t)y))

SIGNED_TYPES(SIGNED_LOOPS)
UNSIGNED_TYPES(UNSIGNED_LOOPS)

// Booleans are 0 or 1 in a byte; addition is "or", and multiplication is "and".
MP_LOOP1(not_bool, uint8_t, uint8_t, x ^ 1)
MP_LOOP1(narrow_clz_2, uint8_t, uint8_t, x >= 2 ? 0 : x == 1 ? 1 : 2)
MP_LOOP1(narrow_clz_4, uint8_t, uint8_t, x >= 8 ? 0 : x >= 4 ? 1 : x >= 2 ? 2 : x == 1 ? 3 : 4)

static const mp_ew_loop_t g_loops[MP_OP_COUNT][MP_DTYPE_U64 + 1] = {
#define ROW(op, loop, name) [MP_OP_##op][MP_DTYPE_##name] = loop##_##name,
#define ROWS(name, T, U, W, bits)                           \
  ROW(ABS, abs, name)                                       \
  ROW(ADD, add, name)                                       \
  ROW(AND, and, name)                                       \
  ROW(CLAMP, clamp, name)                                   \
  ROW(COUNT_LEADING_ZEROS, clz, name)                       \
  ROW(DIVIDE, divide, name)                                 \
  ROW(MAXIMUM, maximum, name)                               \
  ROW(MINIMUM, minimum, name)                               \
  ROW(MULTIPLY, multiply, name)                             \
  ROW(NEGATE, negate, name)                                 \
  ROW(NOT, not, name)                                       \
  ROW(OR, or, name)                                         \
  ROW(POPCNT, popcnt, name)                                 \
  ROW(POWER, power_loop, name)                              \
  ROW(REMAINDER, remainder, name)                           \
  ROW(SHIFT_LEFT, shift_left, name)                         \
  ROW(SHIFT_RIGHT_ARITHMETIC, shift_right_arithmetic, name) \
  ROW(SHIFT_RIGHT_LOGICAL, shift_right_logical, name)       \
  ROW(SIGN, sign, name)                                     \
  ROW(SUBTRACT, subtract, name)                             \
  ROW(XOR, xor, name)
    SIGNED_TYPES(ROWS) UNSIGNED_TYPES(ROWS)
#undef ROWS
#undef ROW
        [MP_OP_ADD][MP_DTYPE_BOOL] = or_U8,
    [MP_OP_MULTIPLY][MP_DTYPE_BOOL] = and_U8,
    [MP_OP_AND][MP_DTYPE_BOOL] = and_U8,
    [MP_OP_OR][MP_DTYPE_BOOL] = or_U8,
    [MP_OP_XOR][MP_DTYPE_BOOL] = xor_U8,
    [MP_OP_NOT][MP_DTYPE_BOOL] = not_bool,
    [MP_OP_MAXIMUM][MP_DTYPE_BOOL] = or_U8,
    [MP_OP_MINIMUM][MP_DTYPE_BOOL] = and_U8,
    [MP_OP_CLAMP][MP_DTYPE_BOOL] = clamp_U8,
};

mp_ew_loop_t mp_ew_integer_loop(mp_opcode_t code, mp_dtype_t dtype) {
  return dtype <= MP_DTYPE_U64 ? g_loops[code][dtype] : NULL;
}

mp_ew_loop_t mp_ew_narrow_clz_loop(int bits) {
  return bits == 2 ? narrow_clz_2 : narrow_clz_4;
}
