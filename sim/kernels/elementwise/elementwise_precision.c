// reduce_precision: rounds to a format with fewer exponent and fraction bits, by arithmetic on the
// bits of the element's own format.
#include <stddef.h>
#include <string.h>

#include "sim/kernels/elementwise/elementwise.h"

// First the fraction is rounded to nearest even, and a carry goes into the exponent. Then numbers
// for which the smaller exponent does not suffice become infinity or zero: formats that are made
// this way have no subnormal numbers. An exponent that is not smaller changes nothing, not even for
// subnormal numbers. NaN stays NaN.
static inline uint64_t elementwise_precision_reduce(uint64_t bits, int fraction_bits,
                                                    int exponent_bits, int exponent, int fraction) {
  const uint64_t sign_mask = UINT64_C(1) << (fraction_bits + exponent_bits);
  const uint64_t infinity = ((UINT64_C(1) << exponent_bits) - 1) << fraction_bits;
  if ((bits & ~sign_mask) > infinity) return bits;
  if (fraction < fraction_bits) {
    int cut = fraction_bits - fraction;
    uint64_t odd = bits >> cut & 1;
    bits = (bits + odd + ((UINT64_C(1) << (cut - 1)) - 1)) & ~((UINT64_C(1) << cut) - 1);
  }
  if (exponent < exponent_bits) {
    const uint64_t bias = (UINT64_C(1) << (exponent_bits - 1)) - 1;
    uint64_t reduced = (UINT64_C(1) << (exponent - 1)) - 1, field = bits & infinity;
    if (field > (bias + reduced) << fraction_bits) {
      bits = (bits & sign_mask) | infinity;
    } else if (field <= (bias - reduced) << fraction_bits) {
      bits &= sign_mask;
    }
  }
  return bits;
}

// Formats that are like IEEE's have loops of their own: those of one byte and all wider ones.
#define FORMATS(X)                   \
  MP_DTYPES_BYTE_FLOATS(X##_OF_BYTE) \
  MP_DTYPES_HALF_FLOATS(X)           \
  MP_DTYPES_FLOATS(X)
#define LOOP_OF_BYTE(name, text, class, bits, storage, style, ...) \
  STYLE_##style(LOOP, name, text, class, bits, storage, style, __VA_ARGS__)
#define ROW_OF_BYTE(name, text, class, bits, storage, style, ...) STYLE_##style(ROW, name, text)
#define STYLE_IEEE(X, ...)                                        X(__VA_ARGS__)
#define STYLE_FN(X, ...)
#define STYLE_FNUZ(X, ...)
#define STYLE_FINITE(X, ...)
#define STYLE_SCALE(X, ...)

#define LOOP(name, text, class, bits, storage, style, exponent_bits, fraction_bits, ...)      \
  static void reduce_##name(int64_t n, const void *const *in, void *out) {                    \
    const uint##bits##_t *a = in[0];                                                          \
    const int32_t *params = in[1];                                                            \
    uint##bits##_t *r = out;                                                                  \
    int exponent = params[0], fraction = params[1];                                           \
    for (int64_t i = 0; i < n; ++i) {                                                         \
      r[i] = (uint##bits##_t)elementwise_precision_reduce(a[i], fraction_bits, exponent_bits, \
                                                          exponent, fraction);                \
    }                                                                                         \
  }
FORMATS(LOOP)

static const mp_ew_loop_t g_loops[MP_DTYPE_COUNT] = {
#define ROW(name, ...) [MP_DTYPE_##name] = reduce_##name,
    FORMATS(ROW)
#undef ROW
};

mp_ew_loop_t mp_ew_precision_loop(mp_dtype_t dtype) {
  return g_loops[dtype];
}
