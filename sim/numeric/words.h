// The words of meaning.h as operators of C: MP_MEANING(S32, MP_INT_ADD) is an expression of x, y
// and z, which are elements of s32.
//
// The words are short and have no prefix. Only files that expand meanings include this.
#ifndef MINIPOD_SIM_NUMERIC_WORDS_H_
#define MINIPOD_SIM_NUMERIC_WORDS_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "sim/numeric/meaning.h"

// By element type: that of C, its bits, and that in which is computed, so that nothing is promoted
// to a signed type and overflows.
#define MP_TYPE_BOOL uint8_t, 8, uint32_t
#define MP_TYPE_S8   int8_t, 8, uint32_t
#define MP_TYPE_S16  int16_t, 16, uint32_t
#define MP_TYPE_S32  int32_t, 32, uint32_t
#define MP_TYPE_S64  int64_t, 64, uint64_t
#define MP_TYPE_U8   uint8_t, 8, uint32_t
#define MP_TYPE_U16  uint16_t, 16, uint32_t
#define MP_TYPE_U32  uint32_t, 32, uint32_t
#define MP_TYPE_U64  uint64_t, 64, uint64_t
#define MP_TYPE_F32  float, 32, float
#define MP_TYPE_F64  double, 64, double

#define MP_FIRST(first, ...)           first
#define MP_THIRD(first, second, third) third
#define MP_APPLY(macro, ...)           macro(__VA_ARGS__)
#define MP_T(name)                     MP_APPLY(MP_FIRST, MP_TYPE_##name)
#define MP_W(name)                     MP_APPLY(MP_THIRD, MP_TYPE_##name)

// What words say of the elements' type: T; the unsigned and the signed type of its size; W, in
// which is computed.
#define MP_WORDS_OF(type, bits, wide)               \
  typedef type T __attribute__((unused));           \
  typedef uint##bits##_t U __attribute__((unused)); \
  typedef int##bits##_t S __attribute__((unused));  \
  typedef wide W __attribute__((unused));           \
  enum { WIDTH = bits }
#define IN_TYPE(name) MP_APPLY(MP_WORDS_OF, MP_TYPE_##name)

#define MP_MEANING(name, expr) \
  __extension__({              \
    IN_TYPE(name);             \
    (T)(expr);                 \
  })

#define INT(n)    ((T)(n))
#define NUM(n)    ((T)(n))
#define ADD(a, b) ((T)((W)(a) + (W)(b)))
#define SUB(a, b) ((T)((W)(a) - (W)(b)))
#define MUL(a, b) ((T)((W)(a) * (W)(b)))
#define NEG(a)    ((T)(-(W)(a)))

#define SELECT(c, a, b) ((c) ? (a) : (b))
#define CHOOSE(c, a, b)             \
  __extension__({                   \
    const T one = (a), other = (b); \
    (c) ? one : other;              \
  })
#define FLAG(c)        ((T)(c))
#define EITHER(c, d)   ((c) | (d))
#define EQUAL(a, b)    ((a) == (b))
#define LESS(a, b)     ((a) < (b))
#define GREATER(a, b)  ((a) > (b))
#define AT_LEAST(a, b) ((a) >= (b))
#define BELOW(a, b)    ((U)(a) < (U)(b))

#define AND(a, b) ((T)((a) & (b)))
#define OR(a, b)  ((T)((a) | (b)))
#define XOR(a, b) ((T)((a) ^ (b)))
#define NOT(a)    ((T) ~(a))
#define SHL(a, b) ((T)((W)(a) << (U)(b)))
#define SHR(a, b) ((T)((U)(a) >> (U)(b)))
#define SAR(a, b) ((T)((S)(a) >> (U)(b)))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
// Those of loops are written so that they become vector code.
#ifndef QUOTIENT
#define QUOTIENT(a, b) ((T)((a) / (b)))
#define REST(a, b)     ((T)((a) % (b)))
#endif

#define MP_REAL_OF(function) _Generic((T)0, float : function##f, default : function)
#define DIV(a, b)            ((a) / (b))
#define SQRT(a)              MP_REAL_OF(sqrt)(a)
#define ABS(a)               MP_REAL_OF(fabs)(a)
#define CEIL(a)              MP_REAL_OF(ceil)(a)
#define FLOOR(a)             MP_REAL_OF(floor)(a)
#define TRUNC(a)             MP_REAL_OF(trunc)(a)
#define ROUND_EVEN(a)        MP_REAL_OF(rint)(a)
#define COPYSIGN(a, b)       MP_REAL_OF(copysign)(a, b)
#define IS_NAN(a)            ((a) != (a))
#define LARGER(a, b)         _Generic((T)0, float : mp_max_f32, default : mp_max_f64)(a, b)
#define SMALLER(a, b)        _Generic((T)0, float : mp_min_f32, default : mp_min_f64)(a, b)
#define IAND(a, b)           ((a) & (b))
#define IOR(a, b)            ((a) | (b))
#define I_OF(a)              _Generic((T)0, float : mp_f32_bits, default : mp_f64_bits)(a)
#define OF_I(a)              _Generic((T)0, float : mp_f32_of_bits, default : mp_f64_of_bits)(a)

// The bits of a number as an integer, and the number with these bits.
static inline uint32_t mp_f32_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}
static inline float mp_f32_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}
static inline uint64_t mp_f64_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}
static inline double mp_f64_of_bits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

// The larger and the smaller one of two numbers, without branches.
static inline float mp_max_f32(float x, float y) {
  return MP_MEANING(F32, MP_LARGER);
}
static inline float mp_min_f32(float x, float y) {
  return MP_MEANING(F32, MP_SMALLER);
}
static inline double mp_max_f64(double x, double y) {
  return MP_MEANING(F64, MP_LARGER);
}
static inline double mp_min_f64(double x, double y) {
  return MP_MEANING(F64, MP_SMALLER);
}

#endif  // MINIPOD_SIM_NUMERIC_WORDS_H_
