#include "sim/mosaic/price/price_units.h"

#include <math.h>

// Final bundles of libtpu 0.0.52; README.md has the kernels that show each number.
static const mp_price_core_t g_narrow = {
    .cycles = {[MP_PRICE_ARITHMETIC] = 1.0 / 4,
               [MP_PRICE_LOAD] = 1.0 / 3,
               [MP_PRICE_STORE] = 1,
               [MP_PRICE_MEMORY] = 1.0 / 3,
               [MP_PRICE_FUNCTION] = 1,
               [MP_PRICE_LANES] = 8.0 / 3,
               [MP_PRICE_MATRIX] = 1,
               [MP_PRICE_SCALAR] = 1.0 / 2},
    .arithmetic = 2,
    .function = 7,
    .lanes = 92,
    .transpose = 44,
    .matrix = 170,
    .tile = 128,
    .rows_per_cycle = 4,
    .least_rows = 32,
    .step = 26,
    .window = 9,
    .held = 25,
    .condition = 9,
    .iteration = 5,
};

static const mp_price_core_t g_wide = {
    .cycles = {[MP_PRICE_ARITHMETIC] = 1.0 / 4,
               [MP_PRICE_LOAD] = 1.0 / 3,
               [MP_PRICE_STORE] = 1.0 / 2,
               [MP_PRICE_MEMORY] = 1.0 / 4,
               [MP_PRICE_FUNCTION] = 1,
               [MP_PRICE_LANES] = 2,
               [MP_PRICE_MATRIX] = 1,
               [MP_PRICE_SCALAR] = 1.0 / 2},
    .arithmetic = 2,
    .function = 14,
    .lanes = 123,
    .transpose = 64,
    .matrix = 250,
    .tile = 256,
    .rows_per_cycle = 4,
    .least_rows = 128,
    .step = 30,
    .window = 14,
    .held = 30,
    .condition = 9,
    .iteration = 5,
};

const mp_price_core_t *mp_price_core(const mp_price_chip_t *chip) {
  return chip->is_wide ? &g_wide : &g_narrow;
}

const char *mp_price_unit_name(mp_price_unit_t unit) {
  static const char *const names[MP_PRICE_UNIT_COUNT] = {
      [MP_PRICE_ARITHMETIC] = "vector unit", [MP_PRICE_LOAD] = "loads from VMEM",
      [MP_PRICE_STORE] = "stores to VMEM",   [MP_PRICE_MEMORY] = "loads and stores in VMEM",
      [MP_PRICE_FUNCTION] = "functions",     [MP_PRICE_LANES] = "moves across lanes",
      [MP_PRICE_MATRIX] = "matrix unit",     [MP_PRICE_SCALAR] = "scalar unit"};
  return names[unit];
}

int64_t mp_price_dim(const mp_mosaic_type_t *type, uint32_t from_last) {
  return from_last < type->rank ? type->dims[type->rank - 1 - from_last] : 1;
}

static double price_units_registers(const mp_mosaic_type_t *type, double packed) {
  if (type->kind == MP_MOSAIC_SCALAR) return 0;
  const double rows = (double)mp_price_dim(type, 1), lanes = (double)mp_price_dim(type, 0);
  double count =
      ceil(rows / (MP_PRICE_SUBLANES * packed)) * ceil(lanes / MP_PRICE_LANES_OF_REGISTER);
  for (uint32_t d = 0; d + 2 < type->rank; ++d) count *= (double)type->dims[d];
  return fmax(count, 0);
}

double mp_price_registers(const mp_mosaic_type_t *type) {
  const double bits = fmin(fmax(mp_dtype_bits(type->dtype), 4), 32);
  const bool is_mask = type->dtype == MP_DTYPE_BOOL;
  return price_units_registers(type, is_mask ? 1 : 32 / bits);
}

double mp_price_wide_registers(const mp_mosaic_type_t *type) {
  return price_units_registers(type, 1);
}
