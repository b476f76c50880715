// Products of matrices on the unit for them, or on the vector unit.
#include "sim/chip/cost/product_cost.h"

#include <math.h>

static double product_cost_round_up(double size, int32_t tile) {
  return tile <= 1 ? size : ceil(size / tile) * tile;
}

// The operations of a product whose one factor, [k, columns], lies in the matrix unit tile by tile,
// while the other's rows run through it, some at a time.
static double product_cost_padded(const mp_chip_t *chip, const mp_work_product_t *product,
                                  double rows, double columns) {
  enum { ROWS_AT_ONCE = 8 };
  return 2 * product->batch * product_cost_round_up(rows, ROWS_AT_ONCE) *
         product_cost_round_up(columns, chip->matrix_columns) *
         product_cost_round_up(product->k, chip->matrix_rows);
}

// Whether the matrix unit multiplies such elements: not wider integers.
static bool product_cost_has_unit(mp_dtype_t dtype) {
  return mp_dtype_is_float(dtype) || (mp_dtype_is_integer(dtype) && mp_dtype_bits(dtype) <= 8);
}

// On the matrix unit with the better one of both factors in it, or on the vector unit, where small
// products and those of many small groups are sooner done.
double mp_product_plain_seconds(const mp_chip_t *chip, const mp_work_product_t *product) {
  const double flops = 2 * product->batch * product->m * product->n * product->k;
  const double on_vector =
      flops * product->passes * mp_work_weight(product->dtype) / chip->vector_flops;
  if (!product_cost_has_unit(product->dtype)) return on_vector;
  const mp_flop_kind_t kind = mp_chip_flop_kind(product->dtype);
  double padded = flops;
  if (chip->matrix_rows > 0) {
    padded = fmin(product_cost_padded(chip, product, product->m, product->n),
                  product_cost_padded(chip, product, product->n, product->m));
  }
  const bool is_by_bf16 = kind == MP_FLOP_F32 && chip->f32_by_bf16;
  const double passes = product->passes * (is_by_bf16 ? product->bf16_passes : 1);
  return fmin(padded * passes / chip->flops[kind], on_vector);
}

double mp_product_seconds(const mp_chip_t *chip, const mp_product_kernel_t *kernel) {
  const bool has_unit = product_cost_has_unit(kernel->product->dtype);
  if (has_unit && mp_product_is_tpu(chip)) return mp_product_tpu_seconds(chip, kernel);
  if (has_unit && mp_product_is_gpu(chip)) return mp_product_gpu_seconds(chip, kernel);
  const double seconds = mp_product_plain_seconds(chip, kernel->product);
  const double beside = fmax(kernel->vector_seconds, kernel->bytes / chip->memory_bandwidth);
  return fmax(seconds, beside) / kernel->efficiency + chip->op_latency;
}
