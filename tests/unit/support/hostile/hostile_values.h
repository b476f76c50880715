// Operands that kernels find hard: extremes, zeros, NaN, numbers far outside of every index range.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_HOSTILE_VALUES_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_HOSTILE_VALUES_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "sim/numeric/dtype.h"
#include "sim/numeric/float.h"

// xorshift64*; the state is never 0.
static inline uint64_t hostile_random(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * UINT64_C(2685821657736338717);
}

// Integers by their bits: each type takes as many of the low ones as it has.
static inline uint64_t hostile_integer(uint64_t *state, int bits) {
  const uint64_t sign = UINT64_C(1) << (bits - 1);
  switch (hostile_random(state) % 10) {
    case 0:
      return sign;  // the smallest signed one
    case 1:
      return sign - 1;  // the largest signed one
    case 2:
      return UINT64_MAX;  // -1, or the largest unsigned one
    case 3:
      return 0;
    case 4:
      return (uint64_t)bits;  // a shift by the width
    case 5:
      return hostile_random(state);
    case 6:
      return -(hostile_random(state) % 8);
    default:
      return hostile_random(state) % 8;
  }
}

static inline double hostile_real(uint64_t *state) {
  static const double values[] = {0.0,      -0.0,      1.0,       -1.0,   0.5,  NAN,
                                  INFINITY, -INFINITY, 1e300,     -1e300, 3e38, -3e38,
                                  1e-310,   -1e-310,   1e-40,     2.5,    -3.5, 4294967296.0,
                                  9.3e18,   -9.223e18, 1.8446e19, 6.5e4,  1e-8, 100000.0};
  const size_t count = sizeof(values) / sizeof(values[0]);
  uint64_t draw = hostile_random(state);
  if (draw % 4 == 0) return (double)(int64_t)hostile_random(state) * 0x1p-60;
  return values[(draw >> 8) % count];
}

static inline void hostile_element(mp_dtype_t dtype, uint64_t *state, char *out) {
  const size_t size = mp_dtype_size(dtype);
  if (mp_dtype_is_complex(dtype)) {
    const mp_dtype_t real = mp_dtype_real_part(dtype);
    mp_float_encode(real, hostile_real(state), out);
    mp_float_encode(real, hostile_real(state), out + size / 2);
  } else if (mp_dtype_is_float(dtype)) {
    mp_float_encode(dtype, hostile_real(state), out);
  } else if (dtype == MP_DTYPE_BOOL) {
    *out = (char)(hostile_random(state) & 1);
  } else {
    const int bits = mp_dtype_bits(dtype);
    uint64_t value = hostile_integer(state, bits);
    if (bits < 64) value &= (UINT64_C(1) << bits) - 1;
    memcpy(out, &value, size);
  }
}

// Arrays are mixed, all of one kind (matrices stay finite, indices small), or small numbers.
static inline void hostile_fill(mp_dtype_t dtype, uint64_t count, uint64_t *state, char *out) {
  const size_t size = mp_dtype_size(dtype);
  const uint64_t way = hostile_random(state) % 4;
  const bool is_number = mp_dtype_is_float(dtype) || mp_dtype_is_complex(dtype);
  for (uint64_t i = 0; i < count; ++i, out += size) {
    if (way == 0 && i > 0) {
      memcpy(out, out - size, size);
    } else if (way == 1 && is_number) {
      memset(out, 0, size);
      mp_float_encode(mp_dtype_real_part(dtype), (double)(int64_t)(hostile_random(state) % 17) - 8,
                      out);
    } else {
      hostile_element(dtype, state, out);
    }
  }
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_HOSTILE_VALUES_H_
