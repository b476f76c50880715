#include "pjrt/command/exec_values.h"

#include <math.h>
#include <string.h>

enum { FIRST = 8 };

// ---- integers ----

static uint64_t exec_values_bits(mp_dtype_t dtype, const void *element) {
  uint64_t bits = 0;
  memcpy(&bits, element, mp_dtype_size(dtype));  // little-endian, like all supported machines
  const int width = mp_dtype_bits(dtype);
  return width < 64 ? bits & ((UINT64_C(1) << width) - 1) : bits;
}

static int64_t exec_values_signed(mp_dtype_t dtype, const void *element) {
  const uint64_t sign = UINT64_C(1) << (mp_dtype_bits(dtype) - 1);
  return (int64_t)((exec_values_bits(dtype, element) ^ sign) - sign);
}

// ---- random elements ----

// splitmix64: results of neighbouring inputs are unrelated.
static uint64_t exec_values_mix(uint64_t x) {
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

static void exec_values_put_float(mp_dtype_t dtype, uint64_t random, void *out) {
  const double value = 2 * ((double)(random >> 11) * 0x1p-53) - 1;
  mp_float_encode(dtype, dtype == MP_DTYPE_F8E8M0FNU ? fabs(value) + 0.5 : value, out);
}

void mp_exec_values_random(uint64_t seed, uint32_t argument, int64_t index, mp_dtype_t dtype,
                           void *out_element) {
  const uint64_t stream = exec_values_mix(exec_values_mix(seed) ^ argument);
  const uint64_t random = exec_values_mix(stream ^ (uint64_t)index);
  const size_t size = mp_dtype_size(dtype);
  if (mp_dtype_is_float(dtype)) {
    exec_values_put_float(dtype, random, out_element);
  } else if (mp_dtype_is_complex(dtype)) {
    const mp_dtype_t real = mp_dtype_real_part(dtype);
    exec_values_put_float(real, random, out_element);
    exec_values_put_float(real, exec_values_mix(random), (char *)out_element + size / 2);
  } else {
    const int bits = mp_dtype_bits(dtype) - (mp_dtype_class(dtype) == MP_CLASS_SIGNED);
    const uint64_t range = bits >= 4 ? 10 : UINT64_C(1) << bits;
    const uint64_t value = (random >> 32) % range;
    memcpy(out_element, &value, size);
  }
}

// ---- summaries of arrays ----

static const void *exec_values_at(const mp_exec_array_t *array, int64_t index) {
  return array->data + (size_t)index * mp_dtype_size(array->dtype);
}

// An element as a number; for a complex element the real part, and the imaginary part in
// `out_imaginary`.
static double exec_values_number(mp_dtype_t dtype, const void *element, double *out_imaginary) {
  *out_imaginary = 0;
  if (mp_dtype_is_float(dtype)) return mp_float_decode(dtype, element);
  if (mp_dtype_is_complex(dtype)) {
    const mp_dtype_t real = mp_dtype_real_part(dtype);
    *out_imaginary = mp_float_decode(real, (const char *)element + mp_dtype_size(real));
    return mp_float_decode(real, element);
  }
  if (mp_dtype_class(dtype) == MP_CLASS_SIGNED) return (double)exec_values_signed(dtype, element);
  return (double)exec_values_bits(dtype, element);
}

void mp_exec_values_print_element(const mp_exec_array_t *array, int64_t index, mp_strbuf_t *out) {
  const mp_dtype_t dtype = array->dtype;
  const void *element = exec_values_at(array, index);
  const int digits = mp_dtype_real_part(dtype) == MP_DTYPE_F64 ? 15 : 6;
  double imaginary;
  switch (mp_dtype_class(dtype)) {
    case MP_CLASS_BOOL:
      mp_strbuf_puts(out, *(const char *)element != 0 ? "true" : "false");
      return;
    case MP_CLASS_SIGNED:
      mp_strbuf_printf(out, "%lld", (long long)exec_values_signed(dtype, element));
      return;
    case MP_CLASS_UNSIGNED:
      mp_strbuf_printf(out, "%llu", (unsigned long long)exec_values_bits(dtype, element));
      return;
    default:
      mp_strbuf_printf(out, "%.*g", digits, exec_values_number(dtype, element, &imaginary));
      if (mp_dtype_is_complex(dtype)) mp_strbuf_printf(out, "%+.*gi", digits, imaginary);
  }
}

typedef struct {
  double sum, imaginary_sum, min, max;  // minimum and maximum: by magnitude for complex numbers
  int64_t num_nans;
} exec_values_summary_t;

static exec_values_summary_t exec_values_summarize(const mp_exec_array_t *array) {
  exec_values_summary_t summary = {.min = INFINITY, .max = -INFINITY};
  const bool is_complex = mp_dtype_is_complex(array->dtype);
  for (int64_t i = 0; i < array->count; ++i) {
    double imaginary;
    const double real = exec_values_number(array->dtype, exec_values_at(array, i), &imaginary);
    const double size = is_complex ? hypot(real, imaginary) : real;
    summary.sum += real;
    summary.imaginary_sum += imaginary;
    summary.num_nans += isnan(size) != 0;
    if (size < summary.min) summary.min = size;
    if (size > summary.max) summary.max = size;
  }
  return summary;
}

void mp_exec_values_print(const mp_exec_array_t *array, const char *indent, mp_strbuf_t *out) {
  mp_strbuf_puts(out, indent);
  for (int64_t i = 0; i < array->count && i < FIRST; ++i) {
    if (i > 0) mp_strbuf_putc(out, ' ');
    mp_exec_values_print_element(array, i, out);
  }
  if (array->count > FIRST) mp_strbuf_puts(out, " ...");
  if (array->count == 0) mp_strbuf_puts(out, "no elements");
  mp_strbuf_putc(out, '\n');
  if (array->count == 0) return;
  const exec_values_summary_t summary = exec_values_summarize(array);
  const bool is_complex = mp_dtype_is_complex(array->dtype);
  mp_strbuf_printf(out, "%ssum %.9g", indent, summary.sum);
  if (is_complex) mp_strbuf_printf(out, "%+.9gi", summary.imaginary_sum);
  if (summary.num_nans < array->count) {
    mp_strbuf_printf(out, is_complex ? ", magnitudes %.9g to %.9g" : ", min %.9g, max %.9g",
                     summary.min, summary.max);
  }
  if (summary.num_nans > 0) mp_strbuf_printf(out, ", %lld NaN", (long long)summary.num_nans);
  mp_strbuf_putc(out, '\n');
}

// ---- differences of arrays ----

static double exec_values_distance(double a, double b) {
  if (a == b || (isnan(a) && isnan(b))) return 0;
  const double distance = fabs(a - b);
  return isnan(distance) ? INFINITY : distance;
}

// Exact for integers of any size.
static double exec_values_apart(mp_dtype_t dtype, const void *a, const void *b) {
  if (mp_dtype_class(dtype) == MP_CLASS_SIGNED) {
    const int64_t x = exec_values_signed(dtype, a), y = exec_values_signed(dtype, b);
    return (double)(x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x);
  }
  if (mp_dtype_class(dtype) == MP_CLASS_UNSIGNED) {
    const uint64_t x = exec_values_bits(dtype, a), y = exec_values_bits(dtype, b);
    return (double)(x > y ? x - y : y - x);
  }
  double ai, bi;
  const double ar = exec_values_number(dtype, a, &ai), br = exec_values_number(dtype, b, &bi);
  return hypot(exec_values_distance(ar, br), exec_values_distance(ai, bi));
}

mp_exec_difference_t mp_exec_values_compare(const mp_exec_array_t *a, const mp_exec_array_t *b) {
  mp_exec_difference_t difference = {0};
  for (int64_t i = 0; i < a->count; ++i) {
    const double apart = exec_values_apart(a->dtype, exec_values_at(a, i), exec_values_at(b, i));
    if (apart > difference.largest) difference = (mp_exec_difference_t){apart, i};
  }
  return difference;
}
