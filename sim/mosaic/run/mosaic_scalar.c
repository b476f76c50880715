#include "sim/mosaic/run/mosaic_scalar.h"

bool mp_mosaic_is_integer(mp_mosaic_opcode_t code) {
  return code >= MP_MOSAIC_ADDI && code <= MP_MOSAIC_SHRUI;
}

static int64_t mosaic_scalar_divide(int64_t a, int64_t b) {
  if (b == 0) return -1;
  return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t mosaic_scalar_rest(int64_t a, int64_t b) {
  if (b == 0) return a;
  return b == -1 ? 0 : a % b;
}

// The quotient rounded up (by = 1) or down (by = -1).
static int64_t mosaic_scalar_round(int64_t a, int64_t b, int64_t by) {
  const int64_t quotient = mosaic_scalar_divide(a, b), rest = mosaic_scalar_rest(a, b);
  const bool is_positive = (a < 0) == (b < 0);
  return rest != 0 && is_positive == (by > 0) ? quotient + by : quotient;
}

static uint64_t mosaic_scalar_divide_unsigned(uint64_t a, uint64_t b) {
  return b == 0 ? UINT64_MAX : a / b;
}

static int64_t mosaic_scalar_shift(mp_mosaic_opcode_t code, uint8_t bits, int64_t a, uint64_t by) {
  if (by >= bits) return code == MP_MOSAIC_SHRSI && a < 0 ? -1 : 0;
  if (code == MP_MOSAIC_SHLI) return (int64_t)((uint64_t)a << by);
  return code == MP_MOSAIC_SHRSI ? a >> by : (int64_t)(mp_mosaic_unsigned(bits, a) >> by);
}

static int64_t mosaic_scalar_op(mp_mosaic_opcode_t code, uint8_t bits, int64_t a, int64_t b) {
  const uint64_t ua = mp_mosaic_unsigned(bits, a), ub = mp_mosaic_unsigned(bits, b);
  switch (code) {
    case MP_MOSAIC_ADDI:
      return (int64_t)((uint64_t)a + (uint64_t)b);
    case MP_MOSAIC_SUBI:
      return (int64_t)((uint64_t)a - (uint64_t)b);
    case MP_MOSAIC_MULI:
      return (int64_t)((uint64_t)a * (uint64_t)b);
    case MP_MOSAIC_DIVSI:
      return mosaic_scalar_divide(a, b);
    case MP_MOSAIC_DIVUI:
      return (int64_t)mosaic_scalar_divide_unsigned(ua, ub);
    case MP_MOSAIC_CEILDIVSI:
      return mosaic_scalar_round(a, b, 1);
    case MP_MOSAIC_CEILDIVUI:
      return (int64_t)(mosaic_scalar_divide_unsigned(ua, ub) + (ub != 0 && ua % ub != 0));
    case MP_MOSAIC_FLOORDIVSI:
      return mosaic_scalar_round(a, b, -1);
    case MP_MOSAIC_REMSI:
      return mosaic_scalar_rest(a, b);
    case MP_MOSAIC_REMUI:
      return ub == 0 ? a : (int64_t)(ua % ub);
    case MP_MOSAIC_MAXSI:
      return a > b ? a : b;
    case MP_MOSAIC_MINSI:
      return a < b ? a : b;
    case MP_MOSAIC_MAXUI:
      return ua > ub ? a : b;
    case MP_MOSAIC_MINUI:
      return ua < ub ? a : b;
    case MP_MOSAIC_ANDI:
      return a & b;
    case MP_MOSAIC_ORI:
      return a | b;
    case MP_MOSAIC_XORI:
      return a ^ b;
    default:
      return mosaic_scalar_shift(code, bits, a, ub);
  }
}

int64_t mp_mosaic_integer(mp_mosaic_opcode_t code, uint8_t bits, int64_t a, int64_t b) {
  return mp_mosaic_signed(bits, mosaic_scalar_op(code, bits, a, b));
}

int64_t mp_mosaic_compare(uint8_t predicate, uint8_t bits, int64_t a, int64_t b) {
  const uint64_t ua = mp_mosaic_unsigned(bits, a), ub = mp_mosaic_unsigned(bits, b);
  switch (predicate) {
    case 0:
      return a == b;
    case 1:
      return a != b;
    case 2:
      return a < b;
    case 3:
      return a <= b;
    case 4:
      return a > b;
    case 5:
      return a >= b;
    case 6:
      return ua < ub;
    case 7:
      return ua <= ub;
    case 8:
      return ua > ub;
    default:
      return ua >= ub;
  }
}

int64_t mp_mosaic_scalar_load(mp_dtype_t dtype, const void *element) {
  int64_t value = 0;  // the lowest bytes come first
  memcpy(&value, element, mp_dtype_size(dtype));
  if (dtype == MP_DTYPE_BOOL) return value != 0;
  if (!mp_dtype_is_integer(dtype)) return value;
  return mp_mosaic_signed((uint8_t)mp_dtype_bits(dtype), value);
}
