#include "sim/numeric/float.h"

#include <math.h>
#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/vector.h"

// What the codes with the largest exponent stand for (dtype.h).
typedef enum {
  STYLE_NONE,  // no float
  STYLE_IEEE,
  STYLE_FN,
  STYLE_FNUZ,
  STYLE_FINITE,
  STYLE_SCALE,
} style_t;

typedef struct {
  int exponent_bits;
  int fraction_bits;
  int bias;
  style_t style;
} format_t;

static const format_t g_formats[MP_DTYPE_COUNT] = {
#define FORMAT_ROW(name, text, class, bits, storage, style, exponent, fraction, bias, ...) \
  [MP_DTYPE_##name] = {exponent, fraction, bias, STYLE_##style},
    MP_DTYPES(FORMAT_ROW)
#undef FORMAT_ROW
};

static inline uint32_t float_bits_of_f32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static inline float float_f32_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static inline uint32_t float_sign_bit(format_t f) {
  return 1u << (f.exponent_bits + f.fraction_bits);
}

// The largest code that stands for a number, without the sign bit.
static inline uint32_t float_largest_code(format_t f) {
  uint32_t all = float_sign_bit(f) - 1;
  if (f.style == STYLE_IEEE) return all - (1u << f.fraction_bits);
  return f.style == STYLE_FN ? all - 1 : all;
}

static inline uint32_t float_nan_code(format_t f, uint32_t sign) {
  switch (f.style) {
    case STYLE_IEEE:
      return sign | (float_sign_bit(f) - (1u << (f.fraction_bits - 1)));
    case STYLE_FN:
      return sign | (float_sign_bit(f) - 1);
    case STYLE_FNUZ:
      return float_sign_bit(f);
    case STYLE_FINITE:
      return sign ^ float_sign_bit(f);
    case STYLE_SCALE:
    case STYLE_NONE:
      break;
  }
  return 0xff;
}

static inline uint32_t float_overflow_code(format_t f, uint32_t sign) {
  if (f.style == STYLE_IEEE) return sign | (float_largest_code(f) + 1);
  return f.style == STYLE_FINITE ? sign | float_largest_code(f) : float_nan_code(f, sign);
}

// Encodes f8E8M0FNU, whose numbers are the powers of two from 2^-127 to 2^127.
static inline uint32_t float_encode_scale(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  if (!(value > 0)) return 0xff;  // zero, negative numbers and NaN become NaN
  // Adding half a unit to the fraction carries into the exponent if the fraction is 1.5 or more.
  int64_t exponent = (int64_t)((bits + (UINT64_C(1) << 51)) >> 52) - 1023;
  if (exponent > 127) return 0xff;
  return exponent < -127 ? 0 : (uint32_t)(exponent + 127);
}

static inline uint32_t float_encode(format_t f, double value) {
  if (f.style == STYLE_SCALE) return float_encode_scale(value);
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  uint32_t sign = bits >> 63 ? float_sign_bit(f) : 0;
  int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
  uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
  if (exponent == 1024)
    return fraction != 0 ? float_nan_code(f, sign) : float_overflow_code(f, sign);
  int least = 1 - f.bias;  // the exponent of the smallest normal number
  int shift = 52 - f.fraction_bits + (exponent < least ? least - exponent : 0);
  uint32_t code = 0;
  if (shift < 54) {  // otherwise the value is less than half of the smallest number
    uint64_t significand = fraction | UINT64_C(1) << 52;
    uint64_t kept = significand >> shift, lost = significand & ((UINT64_C(1) << shift) - 1);
    uint64_t half = UINT64_C(1) << (shift - 1);
    kept += lost > half || (lost == half && (kept & 1) != 0);
    // `kept` includes the leading bit, which adds one to the exponent, and so does a carry.
    code = (uint32_t)kept;
    if (exponent >= least) code += (uint32_t)(exponent - least) << f.fraction_bits;
  }
  if (code > float_largest_code(f)) return float_overflow_code(f, sign);
  return code == 0 && f.style == STYLE_FNUZ ? 0 : sign | code;
}

// Puts exponent and fraction where f32 has them and multiplies by a power of two for the difference
// of the biases. This is exact, also for subnormal numbers.
static inline float float_decode(format_t f, uint32_t code) {
  if (f.style == STYLE_SCALE) {
    return code == 0xff ? NAN : code == 0 ? 0x1p-127f : float_f32_of_bits(code << 23);
  }
  uint32_t magnitude = code & (float_sign_bit(f) - 1);
  uint32_t sign = (code & float_sign_bit(f)) != 0 ? 0x80000000u : 0;
  float scale = float_f32_of_bits((uint32_t)(254 - f.bias) << 23);
  uint32_t bits = float_bits_of_f32(float_f32_of_bits(magnitude << (23 - f.fraction_bits)) * scale);
  if (f.style == STYLE_IEEE && magnitude > float_largest_code(f)) {
    bits = 0x7f800000u | (magnitude << (23 - f.fraction_bits));
  }
  if (f.style == STYLE_FN && magnitude > float_largest_code(f)) bits = 0x7fc00000u;
  if (f.style == STYLE_FNUZ && code == float_sign_bit(f)) bits = 0x7fc00000u;
  return float_f32_of_bits(bits | sign);
}

static inline float float_decode_f16(uint16_t code) {
  return float_decode(g_formats[MP_DTYPE_F16], code);
}

static inline float float_decode_bf16(uint16_t code) {
  return float_f32_of_bits((uint32_t)code << 16);
}

static inline uint16_t float_encode_bf16(float value) {
  uint32_t bits = float_bits_of_f32(value);
  uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  uint32_t quiet = bits | 0x400000;
  return (uint16_t)((value != value ? quiet : rounded) >> 16);
}

// The branches here are such that compilers turn them into selects and loops into vector code.
static inline uint16_t float_encode_f16(float value) {
  uint32_t bits = float_bits_of_f32(value), sign = bits & 0x80000000u, magnitude = bits ^ sign;
  // For normal numbers, the exponent is adjusted and what is cut off is rounded.
  uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  // For subnormal numbers, adding 0.5 leaves the code, which the addition has rounded, in the last
  // bits.
  uint32_t small = float_bits_of_f32(float_f32_of_bits(magnitude) + 0.5f) - (126u << 23);
  uint32_t large = magnitude > 0x7f800000u ? 0x7e00u | (magnitude >> 13 & 0x3ff) : 0x7c00u;
  uint32_t code = magnitude < (113u << 23) ? small : normal;
  code = magnitude >= (143u << 23) ? large : code;
  return (uint16_t)(code | sign >> 16);
}

// ---- in bulk ----

// A loop over independent elements.
#define LOOP(name, in_t, out_t, expr)                                          \
  MP_VECTOR static void float_##name(int64_t n, const in_t *src, out_t *dst) { \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                           \
      in_t x = src[i];                                                         \
      dst[i] = (expr);                                                         \
    }                                                                          \
  }
LOOP(widen_f16, uint16_t, float, float_decode_f16(x))
LOOP(widen_bf16, uint16_t, float, float_decode_bf16(x))
LOOP(narrow_f16, float, uint16_t, float_encode_f16(x))
LOOP(narrow_bf16, float, uint16_t, float_encode_bf16(x))
LOOP(round_f16, float, float, float_decode_f16(float_encode_f16(x)))
LOOP(round_bf16, float, float, float_decode_bf16(float_encode_bf16(x)))

void mp_float_widen(mp_dtype_t from, int64_t n, const void *src, float *dst) {
  const uint8_t *bytes = src;
  switch (from) {
#define WIDEN(name, text, class, bits, storage, style, exponent, fraction, bias, ...)  \
  case MP_DTYPE_##name: {                                                              \
    const format_t f = {exponent, fraction, bias, STYLE_##style};                      \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) dst[i] = float_decode(f, bytes[i]); \
    break;                                                                             \
  }
    MP_DTYPES_BYTE_FLOATS(WIDEN)
#undef WIDEN
    case MP_DTYPE_F16:
      float_widen_f16(n, src, dst);
      break;
    case MP_DTYPE_BF16:
      float_widen_bf16(n, src, dst);
      break;
    default:
      MP_ASSERT_NOT_REACHED();  // the type is not narrow
  }
}

void mp_float_narrow(mp_dtype_t to, int64_t n, const float *src, void *dst) {
  uint8_t *restrict bytes = dst;
  switch (to) {
#define NARROW(name, text, class, bits, storage, style, exponent, fraction, bias, ...) \
  case MP_DTYPE_##name: {                                                              \
    const format_t f = {exponent, fraction, bias, STYLE_##style};                      \
    for (int64_t i = 0; i < n; ++i) bytes[i] = (uint8_t)float_encode(f, src[i]);       \
    break;                                                                             \
  }
    MP_DTYPES_BYTE_FLOATS(NARROW)
#undef NARROW
    case MP_DTYPE_F16:
      float_narrow_f16(n, src, dst);
      break;
    case MP_DTYPE_BF16:
      float_narrow_bf16(n, src, dst);
      break;
    default:
      MP_ASSERT_NOT_REACHED();  // the type is not narrow
  }
}

void mp_float_round(mp_dtype_t to, int64_t n, const float *src, float *dst) {
  enum { BLOCK = 512 };
  uint8_t narrow[BLOCK];
  switch (to) {
    case MP_DTYPE_F16:
      float_round_f16(n, src, dst);
      break;
    case MP_DTYPE_BF16:
      float_round_bf16(n, src, dst);
      break;
    default:
      for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t some = n - i < BLOCK ? n - i : BLOCK;
        mp_float_narrow(to, some, src + i, narrow);
        mp_float_widen(to, some, narrow, dst + i);
      }
  }
}

float mp_float_from_f64_to_odd(double value) {
  float near = (float)value;
  if (near == value || value != value || isinf(value)) return near;
  uint32_t bits = float_bits_of_f32(near);
  if (fabs((double)near) > fabs(value)) --bits;  // one step towards zero, also from infinity
  return float_f32_of_bits(bits | 1);
}

double mp_float_decode(mp_dtype_t dtype, const void *element) {
  double f64;
  float f32;
  switch (dtype) {
    case MP_DTYPE_F64:
      memcpy(&f64, element, sizeof(f64));
      return f64;
    case MP_DTYPE_F32:
    case MP_DTYPE_TF32:
      memcpy(&f32, element, sizeof(f32));
      return f32;
    default:
      mp_float_widen(dtype, 1, element, &f32);
      return f32;
  }
}

void mp_float_encode(mp_dtype_t dtype, double value, void *out_element) {
  MP_ASSERT(mp_dtype_is_float(dtype));
  format_t f = g_formats[dtype];
  if (dtype == MP_DTYPE_F64) {
    memcpy(out_element, &value, sizeof(value));
  } else if (dtype == MP_DTYPE_F32) {
    float f32 = (float)value;
    memcpy(out_element, &f32, sizeof(f32));
  } else if (dtype == MP_DTYPE_TF32) {
    uint32_t bits = float_encode(f, value) << 13;  // tf32 is f32 without the last thirteen bits
    memcpy(out_element, &bits, sizeof(bits));
  } else if (mp_dtype_size(dtype) == 2) {
    uint16_t word = (uint16_t)float_encode(f, value);
    memcpy(out_element, &word, sizeof(word));
  } else {
    *(uint8_t *)out_element = (uint8_t)float_encode(f, value);
  }
}
