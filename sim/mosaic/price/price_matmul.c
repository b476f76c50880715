// Matmuls: tiles of weights that the matrix units hold, by rows that stream through them.
#include <math.h>

#include "sim/mosaic/price/price_units.h"

// m, k and n of each matrix, and how many matrices.
typedef struct {
  double batch, rows, summed, columns;
  bool lhs_transposed;
} sizes_t;

static double price_matmul_product(const mp_mosaic_type_t *type, const mp_mosaic_attr_t *dims) {
  double product = 1;
  if (dims->kind == MP_MOSAIC_INTS) {
    for (uint32_t i = 0; i < dims->ints.count; ++i) {
      const int64_t d = dims->ints.values[i];
      if (d >= 0 && d < (int64_t)type->rank) product *= (double)type->dims[d];
    }
  } else if (dims->kind == MP_MOSAIC_ARRAY) {
    for (uint32_t i = 0; i < dims->list.count; ++i) {
      const int64_t d = dims->list.items[i].value->i64;
      if (d >= 0 && d < (int64_t)type->rank) product *= (double)type->dims[d];
    }
  }
  return product;
}

static double price_matmul_elements(const mp_mosaic_type_t *type) {
  double count = 1;
  for (uint32_t d = 0; d < type->rank; ++d) count *= (double)type->dims[d];
  return count;
}

// #tpu.dot_dimension_numbers<lhs summed, rhs summed, lhs free, rhs free, order, lhs batch, ...>
static sizes_t price_matmul_sizes(const mp_mosaic_op_t *op) {
  enum { LHS_SUMMED, LHS_BATCH = 5, WITHOUT_BATCH = 4 };
  const mp_mosaic_type_t *lhs = op->operands[0]->type, *rhs = op->operands[1]->type;
  const mp_mosaic_attr_t *numbers = mp_mosaic_op_attr(op, "dimension_numbers");
  sizes_t sizes = {.batch = 1, .lhs_transposed = mp_mosaic_op_int(op, "transpose_lhs", 0) != 0};
  const double elements = price_matmul_elements(lhs);
  if (numbers != NULL && numbers->kind == MP_MOSAIC_DIALECT &&
      numbers->list.count > WITHOUT_BATCH) {
    const mp_mosaic_attr_t *summed = numbers->list.items[LHS_SUMMED].value;
    sizes.summed = price_matmul_product(lhs, summed);
    if (numbers->list.count > LHS_BATCH)
      sizes.batch = price_matmul_product(lhs, numbers->list.items[LHS_BATCH].value);
    sizes.lhs_transposed |= sizes.summed != (double)mp_price_dim(lhs, 0);
  } else {
    sizes.summed = (double)mp_price_dim(lhs, sizes.lhs_transposed ? 1 : 0);
  }
  sizes.rows = elements / fmax(sizes.summed * sizes.batch, 1);
  sizes.columns = price_matmul_elements(rhs) / fmax(sizes.summed * sizes.batch, 1);
  return sizes;
}

// f32 operands are several products of bf16, if the op asks for their precision.
static double price_matmul_passes(const mp_mosaic_op_t *op) {
  const mp_mosaic_attr_t *precision = mp_mosaic_op_attr(op, "precision");
  const bool is_f32 = mp_dtype_bits(op->operands[0]->type->dtype) == 32 &&
                      mp_dtype_is_float(op->operands[0]->type->dtype);
  if (precision == NULL || !is_f32) return 1;
  const mp_mosaic_attr_t *word = precision->kind == MP_MOSAIC_DIALECT && precision->list.count == 1
                                     ? precision->list.items[0].value
                                     : precision;
  return word->kind == MP_MOSAIC_STRING && mp_str_is(word->str, "fp32") ? 6 : 1;
}

static int price_matmul_bits(const mp_mosaic_op_t *op) {
  const int lhs = mp_dtype_bits(op->operands[0]->type->dtype);
  const int rhs = mp_dtype_bits(op->operands[1]->type->dtype);
  return lhs > rhs ? lhs : rhs;
}

void mp_price_matmul(const mp_price_chip_t *chip, const mp_mosaic_op_t *op, mp_price_need_t *out) {
  const mp_price_core_t *core = mp_price_core(chip);
  const sizes_t sizes = price_matmul_sizes(op);
  const int bits = price_matmul_bits(op);
  // Integers of 8 bits at twice the rate: tiles are twice as long.
  const bool is_double =
      chip->has_s8 && bits <= 8 && !mp_dtype_is_float(op->operands[0]->type->dtype);
  const double along = ceil(sizes.summed / (core->tile * (is_double ? 2 : 1)));
  const double tiles = along * ceil(sizes.columns / core->tile) * price_matmul_passes(op);
  const double least = chip->rules.rows ? core->least_rows : 8;
  const double rows = fmax(ceil(sizes.rows / MP_PRICE_SUBLANES) * MP_PRICE_SUBLANES, least);
  const double registers = mp_price_wide_registers(op->results[0].type);
  out->work[MP_PRICE_MATRIX] = sizes.batch * tiles * rows / core->rows_per_cycle;
  // The sums over parts of k are added up outside of the matrix unit.
  out->work[MP_PRICE_ARITHMETIC] = registers * (along - 1);
  if (sizes.lhs_transposed) out->work[MP_PRICE_LANES] = mp_price_registers(op->operands[0]->type);
  out->latency = core->matrix + (sizes.lhs_transposed ? core->transpose : 0);
  out->flops = 2 * sizes.batch * sizes.rows * sizes.summed * sizes.columns;
}
