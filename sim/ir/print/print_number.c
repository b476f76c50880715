// Prints numbers and constants as MLIR does.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/ir/print/print_parts.h"

// Constants of more elements are written as hexadecimal bytes. For booleans these are an eighth of
// a byte each in older versions of MLIR (PyTorch/XLA 2.9 has one), and a byte in newer ones, which
// refuse each other's: a list is the same in all.
enum { MAX_LISTED_ELEMENTS = 100, MAX_LISTED_BOOLEANS = 1 << 22 };
enum { MAX_DIGITS = 17 };
// The bytes that a number takes as text, at most.
enum { MAX_NUMBER = 64 };

// The significant decimal digits of a finite number, and its exponent: d.ddd * 10^exponent.
typedef struct {
  bool negative;
  char digits[MAX_DIGITS + 1];
  int count;
  int exponent;
} decimal_t;

static decimal_t print_number_to_decimal(double value, int precision) {
  decimal_t d = {.negative = __builtin_signbit(value)};
  char text[48];
  snprintf(text, sizeof(text), "%.*e", precision - 1, value);
  // The locale decides what the decimal point is, so only digits and the exponent are looked at.
  const char *c = text;
  for (; *c != 'e'; ++c)
    if (*c >= '0' && *c <= '9') d.digits[d.count++] = *c;
  bool negative_exponent = c[1] == '-';
  for (c += 2; *c >= '0' && *c <= '9'; ++c) d.exponent = d.exponent * 10 + (*c - '0');
  if (negative_exponent) d.exponent = -d.exponent;
  return d;
}

// Writes six significant digits, rounded, and a zero behind them: 1.000000e+00.
static void print_number_short_form(double value, char out[MAX_NUMBER]) {
  decimal_t d = print_number_to_decimal(value, 6);
  (void)snprintf(out, MAX_NUMBER, "%s%c.%s0e%c%02d", d.negative ? "-" : "", d.digits[0],
                 d.digits + 1, d.exponent < 0 ? '-' : '+',
                 d.exponent < 0 ? -d.exponent : d.exponent);
}

// Writes all digits that the format needs. False when the result would be an integer without a
// decimal point, which would be read as something else.
static bool print_number_long_form(mp_dtype_t dtype, double value, char out[MAX_NUMBER]) {
  static const struct {
    mp_dtype_t dtype;
    int digits;
  } needed[] = {{MP_DTYPE_F64, 17}, {MP_DTYPE_F32, 9}, {MP_DTYPE_TF32, 5}, {MP_DTYPE_F16, 5}};
  int digits = 4;
  for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); ++i)
    if (needed[i].dtype == dtype) digits = needed[i].digits;
  decimal_t d = print_number_to_decimal(value, digits);
  while (d.count > 1 && d.digits[d.count - 1] == '0') d.digits[--d.count] = '\0';
  const char *sign = d.negative ? "-" : "";
  int tail = d.exponent - (d.count - 1);  // power of ten of the last digit
  if (tail >= 0 && tail <= 3) return false;
  if (tail > 3 || d.exponent < -3) {
    (void)snprintf(out, MAX_NUMBER, "%s%c.%sE%c%d", sign, d.digits[0],
                   d.count > 1 ? d.digits + 1 : "0", d.exponent < 0 ? '-' : '+',
                   d.exponent < 0 ? -d.exponent : d.exponent);
  } else if (d.exponent >= 0) {
    (void)snprintf(out, MAX_NUMBER, "%s%.*s.%s", sign, d.exponent + 1, d.digits,
                   d.digits + d.exponent + 1);
  } else {
    (void)snprintf(out, MAX_NUMBER, "%s0.%.*s%s", sign, -d.exponent - 1, "000", d.digits);
  }
  return true;
}

static bool print_number_reads_back(mp_dtype_t dtype, const char *text, const void *element) {
  double value;
  unsigned char bytes[8] = {0};
  if (mp_str_scan_double(mp_str(text), &value) == 0) return false;
  mp_float_encode(dtype, value, bytes);
  return memcmp(bytes, element, mp_dtype_size(dtype)) == 0;
}

static void print_number_float_element(mp_dtype_t dtype, const void *element, mp_strbuf_t *out) {
  double value = mp_float_decode(dtype, element);
  char text[MAX_NUMBER];
  bool finite = value - value == 0;
  bool done = false;
  if (finite) {
    print_number_short_form(value, text);
    done = print_number_reads_back(dtype, text, element);
  }
  if (finite && !done) {
    done =
        print_number_long_form(dtype, value, text) && print_number_reads_back(dtype, text, element);
  }
  if (done) {
    mp_strbuf_puts(out, text);
  } else {
    uint64_t bits = 0;
    memcpy(&bits, element, mp_dtype_size(dtype));
    mp_strbuf_printf(out, "0x%0*" PRIX64, (mp_dtype_bits(dtype) + 3) / 4, bits);
  }
}

void mp_print_float(mp_dtype_t dtype, double value, mp_strbuf_t *out) {
  unsigned char element[8] = {0};
  mp_float_encode(dtype, value, element);
  print_number_float_element(dtype, element, out);
}

static void print_number_integer_element(mp_dtype_t dtype, const void *element, mp_strbuf_t *out) {
  uint64_t bits = 0;
  memcpy(&bits, element, mp_dtype_size(dtype));
  int unused = 64 - mp_dtype_bits(dtype);
  if (mp_dtype_class(dtype) == MP_CLASS_UNSIGNED)
    mp_strbuf_printf(out, "%" PRIu64, bits << unused >> unused);
  else
    mp_strbuf_printf(out, "%" PRId64, (int64_t)(bits << unused) >> unused);
}

// Prints one stored element as MLIR writes it: 7, true, 1.000000e+00, 0x7FC00000, (1.0,2.0).
static void print_number_element(mp_dtype_t dtype, const void *element, mp_strbuf_t *out) {
  switch (mp_dtype_class(dtype)) {
    case MP_CLASS_BOOL:
      mp_strbuf_puts(out, *(const unsigned char *)element != 0 ? "true" : "false");
      break;
    case MP_CLASS_SIGNED:
    case MP_CLASS_UNSIGNED:
      print_number_integer_element(dtype, element, out);
      break;
    case MP_CLASS_FLOAT:
      print_number_float_element(dtype, element, out);
      break;
    case MP_CLASS_COMPLEX: {
      mp_dtype_t part = mp_dtype_real_part(dtype);
      mp_strbuf_putc(out, '(');
      print_number_float_element(part, element, out);
      mp_strbuf_putc(out, ',');
      print_number_float_element(part, (const char *)element + mp_dtype_size(part), out);
      mp_strbuf_putc(out, ')');
      break;
    }
    case MP_CLASS_NONE:
      break;
  }
}

static void print_number_hex(const void *data, size_t size, mp_strbuf_t *out) {
  static const char digits[] = "0123456789ABCDEF";
  const unsigned char *bytes = data;
  mp_strbuf_puts(out, "\"0x");
  for (size_t i = 0; i < size; ++i) {
    mp_strbuf_putc(out, digits[bytes[i] >> 4]);
    mp_strbuf_putc(out, digits[bytes[i] & 15]);
  }
  mp_strbuf_putc(out, '"');
}

// Prints the elements in nested brackets, one pair of brackets per dimension.
static void print_number_list(const mp_type_t *type, const char *data, size_t count,
                              mp_strbuf_t *out) {
  size_t element_size = mp_dtype_size(type->dtype);
  for (size_t i = 0; i < count; ++i) {
    // A bracket closes and opens where the index is a multiple of the product of the inner
    // dimensions.
    if (i > 0) mp_strbuf_puts(out, ", ");
    size_t span = count;
    for (uint32_t d = 0; d < type->rank; span /= (size_t)type->dims[d], d++)
      if (i % span == 0) mp_strbuf_putc(out, '[');
    print_number_element(type->dtype, data + i * element_size, out);
    span = count;
    for (uint32_t d = 0; d < type->rank; span /= (size_t)type->dims[d], d++)
      if ((i + 1) % span == 0) mp_strbuf_putc(out, ']');
  }
}

void mp_print_elements(const mp_attr_t *attr, uint32_t elide_elements, mp_strbuf_t *out) {
  const mp_type_t *type = attr->u.dense.type;
  size_t element_size = mp_dtype_size(type->dtype);
  size_t count = element_size == 0 ? 0 : attr->u.dense.size / element_size;
  const size_t most_listed =
      type->dtype == MP_DTYPE_BOOL ? MAX_LISTED_BOOLEANS : MAX_LISTED_ELEMENTS;
  mp_strbuf_puts(out, "dense<");
  if (count == 1)
    print_number_element(type->dtype, attr->u.dense.data, out);
  else if (elide_elements > 0 && count > elide_elements)
    mp_strbuf_puts(out, "...");
  else if (count > most_listed)
    print_number_hex(attr->u.dense.data, attr->u.dense.size, out);
  else
    print_number_list(type, attr->u.dense.data, count, out);
  mp_strbuf_putc(out, '>');
}

void mp_print_dense(const mp_attr_t *attr, uint32_t elide_elements, mp_strbuf_t *out) {
  mp_print_elements(attr, elide_elements, out);
  mp_strbuf_puts(out, " : ");
  mp_type_print(attr->u.dense.type, out);
}
