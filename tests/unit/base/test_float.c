// The narrow float formats against their definitions, written independently of the conversions.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/table.h"
#include "sim/numeric/float.h"
#include "tests/unit/support/unit.h"

typedef struct {
  mp_dtype_t dtype;
  int bits, exponent_bits, fraction_bits, bias;
  enum { IEEE, ONE_NAN, NAN_IS_MINUS_ZERO, NUMBERS_ONLY } style;
} format_t;

// What the names say: "f8E4M3B11FNUZ" has eight bits, four of them of the exponent and three of the
// fraction, the bias 11, and no infinity.
static format_t format_of_name(mp_dtype_t dtype) {
  format_t f = {.dtype = dtype};
  char behind[16] = "";
  assert_true(sscanf(mp_dtype_name(dtype), "f%dE%dM%d%15s", &f.bits, &f.exponent_bits,
                     &f.fraction_bits, behind) >= 3);
  const bool is_fnuz = strstr(behind, "FNUZ") != NULL, is_fn = strcmp(behind, "FN") == 0;
  assert_true(is_fnuz || is_fn || *behind == '\0');
  f.style = is_fnuz ? NAN_IS_MINUS_ZERO : !is_fn ? IEEE : f.bits < 8 ? NUMBERS_ONLY : ONE_NAN;
  f.bias = (1 << (f.exponent_bits - 1)) - 1 + is_fnuz;
  (void)sscanf(behind, "B%d", &f.bias);
  return f;
}

enum { NUM_FORMATS = MP_ROWS(MP_DTYPES_BYTE_FLOATS) - 1 + 2 };  // no scales; f16 and bf16
static format_t g_formats[NUM_FORMATS];

static int find_formats(void **state) {
  (void)state;
  int count = 0;
  for (int d = MP_DTYPE_INVALID; d < MP_DTYPE_COUNT; ++d) {
    const mp_dtype_t dtype = (mp_dtype_t)d;
    if (!mp_dtype_is_float(dtype) || mp_dtype_size(dtype) != 1) continue;
    if (dtype != MP_DTYPE_F8E8M0FNU) g_formats[count++] = format_of_name(dtype);
  }
  g_formats[count++] = (format_t){MP_DTYPE_F16, 16, 5, 10, 15, IEEE};
  g_formats[count++] = (format_t){MP_DTYPE_BF16, 16, 8, 7, 127, IEEE};
  assert_int_equal(count, NUM_FORMATS);
  return 0;
}

// The value of a code, by the formula of the format.
static double value_of(const format_t *f, uint32_t code) {
  uint32_t top = 1u << (f->bits - 1), magnitude = code & (top - 1);
  double sign = (code & top) != 0 ? -1 : 1;
  int exponent = (int)(magnitude >> f->fraction_bits);
  double fraction =
      (double)(magnitude & ((1u << f->fraction_bits) - 1)) / (double)(1u << f->fraction_bits);
  if (f->style == IEEE && exponent == (1 << f->exponent_bits) - 1) {
    return fraction == 0 ? sign * INFINITY : NAN;
  }
  if (f->style == ONE_NAN && magnitude == top - 1) return NAN;
  if (f->style == NAN_IS_MINUS_ZERO && code == top) return NAN;
  if (exponent == 0) return sign * ldexp(fraction, 1 - f->bias);
  return sign * ldexp(1 + fraction, exponent - f->bias);
}

static uint32_t encode(mp_dtype_t dtype, double value) {
  uint32_t code = 0;
  mp_float_encode(dtype, value, &code);
  return code;
}

static uint32_t narrow(mp_dtype_t dtype, float value) {
  uint32_t code = 0;
  mp_float_narrow(dtype, 1, &value, &code);
  return code;
}

static void test_every_code_decodes_and_comes_back(void **state) {
  (void)state;
  for (int i = 0; i < NUM_FORMATS; ++i) {
    const format_t *f = &g_formats[i];
    for (uint32_t code = 0; code < 1u << f->bits; ++code) {
      double want = value_of(f, code), got = mp_float_decode(f->dtype, &code);
      if (isnan(want)) {
        assert_true(isnan(got));
        // Some NaN of the format again.
        if (f->style != NUMBERS_ONLY) assert_true(isnan(value_of(f, encode(f->dtype, got))));
        continue;
      }
      assert_true(got == want && signbit(got) == signbit(want));
      assert_int_equal(encode(f->dtype, want), code);
      assert_int_equal(narrow(f->dtype, (float)want), code);
    }
  }
}

// Between neighbours the nearer one wins, half-way the even code.
static void test_rounding_to_nearest_even(void **state) {
  (void)state;
  for (int i = 0; i < NUM_FORMATS; ++i) {
    const format_t *f = &g_formats[i];
    for (uint32_t code = 0; code + 1 < 1u << (f->bits - 1); ++code) {
      double low = value_of(f, code), high = value_of(f, code + 1), middle = (low + high) / 2;
      if (!isfinite(low) || !isfinite(high)) break;
      uint32_t even = (code & 1) == 0 ? code : code + 1;
      assert_int_equal(encode(f->dtype, middle), even);
      assert_int_equal(encode(f->dtype, nextafter(middle, low)), code);
      assert_int_equal(encode(f->dtype, nextafter(middle, high)), code + 1);
      // Through f32: half-way values are numbers of it, except below bf16's smallest.
      if ((float)middle != middle) continue;
      assert_int_equal(narrow(f->dtype, (float)middle), even);
      assert_int_equal(narrow(f->dtype, nextafterf((float)middle, (float)low)), code);
      assert_int_equal(narrow(f->dtype, nextafterf((float)middle, (float)high)), code + 1);
    }
  }
}

static void test_what_is_too_large(void **state) {
  (void)state;
  for (int i = 0; i < NUM_FORMATS; ++i) {
    const format_t *f = &g_formats[i];
    uint32_t plus = encode(f->dtype, INFINITY), minus = encode(f->dtype, -1e300);
    double up = value_of(f, plus), down = value_of(f, minus);
    if (f->style == IEEE) {
      assert_true(up == INFINITY && down == -INFINITY);
    } else if (f->style == NUMBERS_ONLY) {
      assert_true(isfinite(up) && up == -down);
      assert_int_equal(plus, (1u << (f->bits - 1)) - 1);
      assert_true(value_of(f, encode(f->dtype, NAN)) == 0);
    } else {
      assert_true(isnan(up) && isnan(down));
    }
    assert_int_equal(narrow(f->dtype, INFINITY), plus);
  }
  // f8E4M3FN: 448 is the largest; 464 is half-way to what would be the next and has 448 as even.
  assert_int_equal(encode(MP_DTYPE_F8E4M3FN, 464), 0x7e);
  assert_int_equal(encode(MP_DTYPE_F8E4M3FN, 465), 0x7f);
  assert_int_equal(encode(MP_DTYPE_F8E4M3FNUZ, -0.0), 0);
}

static void test_scale_format(void **state) {
  (void)state;
  for (uint32_t code = 0; code < 255; ++code) {
    double value = ldexp(1, (int)code - 127);
    assert_true(mp_float_decode(MP_DTYPE_F8E8M0FNU, &code) == value);
    assert_int_equal(encode(MP_DTYPE_F8E8M0FNU, value), code);
    assert_int_equal(encode(MP_DTYPE_F8E8M0FNU, value * 1.499), code);
    assert_int_equal(encode(MP_DTYPE_F8E8M0FNU, value * 1.5), code == 254 ? 255 : code + 1);
  }
  uint32_t nan = 255;
  assert_true(isnan(mp_float_decode(MP_DTYPE_F8E8M0FNU, &nan)));
  assert_int_equal(encode(MP_DTYPE_F8E8M0FNU, 0), 255);
  assert_int_equal(encode(MP_DTYPE_F8E8M0FNU, -1), 255);
  assert_int_equal(encode(MP_DTYPE_F8E8M0FNU, NAN), 255);
}

// From double by way of f32: rounded once.
static void test_rounding_to_odd(void **state) {
  (void)state;
  const double values[] = {1.00390625 + 1e-12,
                           1.00390625 - 1e-12,
                           65519.999999999,
                           1e300,
                           -1e-300,
                           3.4028235e38,
                           0.1,
                           -0.0,
                           5e-324};
  for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i) {
    float odd = mp_float_from_f64_to_odd(values[i]);
    for (int k = 0; k < NUM_FORMATS; ++k) {
      assert_int_equal(narrow(g_formats[k].dtype, odd), encode(g_formats[k].dtype, values[i]));
    }
  }
  assert_true(isnan(mp_float_from_f64_to_odd(NAN)));
  assert_true(mp_float_from_f64_to_odd(-INFINITY) == -INFINITY);
}

// Rounding in place gives the bits of narrowing and widening, one element alone also.
static void test_rounding_where_it_is(void **state) {
  (void)state;
  enum { N = 1571 };
  float x[N], want[N];
  uint16_t narrowed[N];
  uint32_t bits = 1;
  for (int k = 0; k < NUM_FORMATS; ++k) {
    const mp_dtype_t dtype = g_formats[k].dtype;
    for (int i = 0; i < N; ++i, bits = bits * 1664525 + 1013904223) {
      const uint32_t kept = (bits & 64) == 0 ? bits : (bits & 0x80ffffffu) + 0x3b800000u;
      memcpy(&x[i], &kept, sizeof(kept));
    }
    x[0] = INFINITY, x[1] = NAN, x[2] = -0.0f;
    mp_float_narrow(dtype, N, x, narrowed);
    mp_float_widen(dtype, N, narrowed, want);
    for (int i = 0; i < N; i += 97) {
      float alone;
      mp_float_round(dtype, 1, &x[i], &alone);
      assert_memory_equal(&alone, &want[i], sizeof(alone));
    }
    mp_float_round(dtype, N, x, x);
    assert_memory_equal(x, want, sizeof(want));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_code_decodes_and_comes_back),
      cmocka_unit_test(test_rounding_to_nearest_even),
      cmocka_unit_test(test_what_is_too_large),
      cmocka_unit_test(test_scale_format),
      cmocka_unit_test(test_rounding_to_odd),
      cmocka_unit_test(test_rounding_where_it_is),
  };
  return cmocka_run_group_tests(tests, find_formats, NULL);
}
