// Loops over bool and 8- to 64-bit integers.
#include <stddef.h>

#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/loops.h"

// x / y, rounded towards zero. Short integers are divided as floating-point numbers, because
// compilers make vector code of these divisions. These have enough additional bits: a quotient that
// is not whole is at least 1 / y away from the next whole number, so it is not rounded to one.
// clang-format off
#define WIDER(a) \
  _Generic((T)0, int32_t: (double)(a), uint32_t: (double)(a), int64_t: (a), uint64_t: (a), \
           default: (float)(a))
// clang-format on
#define QUOTIENT(a, b) ((T)(WIDER(a) / WIDER(b)))
#define REST(a, b)     SUB(a, MUL(QUOTIENT(a, b), b))
#define ONES(a)        _Generic((W)0, uint32_t : ones_32, uint64_t : ones_64)((U)(a))
#define LEADING(a) \
  ((U)(a) == 0 ? WIDTH : __builtin_clzll((unsigned long long)(U)(a)) - (64 - WIDTH))
#include "sim/numeric/words.h"

// The number of bits that are set, by adding neighbouring fields of 1, 2, 4, 8 ... bits. Compilers
// make vector code of loops of it. (The last steps are not a product: compilers would recognise the
// pattern, and use the processor's instruction for one number at a time.)
#define COUNT_ONES(W, bits)                                              \
  static inline W ones_##bits(W sum) {                                   \
    const W ones = (W)0x5555555555555555, pairs = (W)0x3333333333333333, \
            fours = (W)0x0f0f0f0f0f0f0f0f;                               \
    sum = (sum & ones) + (sum >> 1 & ones);                              \
    sum = (sum & pairs) + (sum >> 2 & pairs);                            \
    sum = (sum + (sum >> 4)) & fours;                                    \
    sum += sum >> 8;                                                     \
    sum += sum >> 16;                                                    \
    sum += bits == 64 ? sum >> (bits / 2) : 0;                           \
    return sum & (2 * bits - 1);                                         \
  }
COUNT_ONES(uint32_t, 32)
COUNT_ONES(uint64_t, 64)

#define POWER(name, T, W)                                     \
  static inline T power_##name(T base, uint64_t exponent) {   \
    W result = 1, square = (W)base;                           \
    for (; exponent != 0; exponent >>= 1, square *= square) { \
      if ((exponent & 1) != 0) result *= square;              \
    }                                                         \
    return (T)result;                                         \
  }

#define LOOP(kind, op, arity, name) \
  MP_LOOP##arity(op##_##name, MP_T(name), MP_T(name), MP_MEANING(name, MP_##kind##_##op))
#define SIGNED_LOOPS(name, ...)                     \
  MP_INT_OPS(LOOP, name)                            \
  MP_SIGNED_OPS(LOOP, name)                         \
  POWER(name, MP_T(name), MP_W(name))               \
  MP_LOOP2(POWER_##name, MP_T(name), MP_T(name),    \
           y >= 0    ? power_##name(x, (uint64_t)y) \
           : x == 1  ? 1                            \
           : x == -1 ? ((y & 1) != 0 ? -1 : 1)      \
                     : 0)
#define UNSIGNED_LOOPS(name, ...)     \
  MP_INT_OPS(LOOP, name)              \
  MP_UNSIGNED_OPS(LOOP, name)         \
  POWER(name, MP_T(name), MP_W(name)) \
  MP_LOOP2(POWER_##name, MP_T(name), MP_T(name), power_##name(x, (uint64_t)y))
MP_DTYPES_SIGNED(SIGNED_LOOPS)
MP_DTYPES_UNSIGNED(UNSIGNED_LOOPS)

// Booleans are 0 or 1 in a byte; addition is "or", and multiplication is "and".
MP_LOOP1(NOT_BOOL, uint8_t, uint8_t, MP_MEANING(BOOL, MP_BOOL_NOT))
MP_LOOP1(narrow_clz_2, uint8_t, uint8_t, x >= 2 ? 0 : x == 1 ? 1 : 2)
MP_LOOP1(narrow_clz_4, uint8_t, uint8_t, x >= 8 ? 0 : x >= 4 ? 1 : x >= 2 ? 2 : x == 1 ? 3 : 4)

static const mp_ew_loop_t g_loops[MP_OP_COUNT][MP_DTYPE_U64 + 1] = {
#define ROW(kind, op, arity, name) [MP_OP_##op][MP_DTYPE_##name] = op##_##name,
#define SIGNED_ROWS(name, ...)     MP_INT_OPS(ROW, name) MP_SIGNED_OPS(ROW, name)
#define UNSIGNED_ROWS(name, ...)   MP_INT_OPS(ROW, name) MP_UNSIGNED_OPS(ROW, name)
#define POWER_ROW(name, ...)       ROW(INT, POWER, 2, name)
    MP_DTYPES_SIGNED(SIGNED_ROWS) MP_DTYPES_UNSIGNED(UNSIGNED_ROWS) MP_DTYPES_SIGNED(POWER_ROW)
        MP_DTYPES_UNSIGNED(POWER_ROW)
#undef ROW
#define ROW(op, loop) [MP_OP_##op][MP_DTYPE_BOOL] = loop,
            ROW(ADD, OR_U8) ROW(MULTIPLY, AND_U8) ROW(AND, AND_U8) ROW(OR, OR_U8) ROW(XOR, XOR_U8)
                ROW(NOT, NOT_BOOL) ROW(MAXIMUM, OR_U8) ROW(MINIMUM, AND_U8) ROW(CLAMP, CLAMP_U8)
#undef ROW
};

mp_ew_loop_t mp_ew_integer_loop(mp_opcode_t code, mp_dtype_t dtype) {
  return dtype <= MP_DTYPE_U64 ? g_loops[code][dtype] : NULL;
}

mp_ew_loop_t mp_ew_narrow_clz_loop(int bits) {
  return bits == 2 ? narrow_clz_2 : narrow_clz_4;
}
