// Matmuls: chooses the formula of the chip.
#include "sim/chip/cost/matmul_cost.h"
#include "sim/base/assert.h"

#include <math.h>

static double matmul_cost_round_up(double size, int32_t tile) {
  return tile <= 1 ? size : ceil(size / tile) * tile;
}

// The operations of a matmul with padding: tiles of [k, columns] are in the matrix unit, and rows
// of the other operand run through it, eight at a time.
static double matmul_cost_padded(const mp_chip_t *chip, const mp_work_matmul_t *matmul, double rows,
                                 double columns) {
  enum { ROWS_AT_ONCE = 8 };
  return 2 * matmul->batch * matmul_cost_round_up(rows, ROWS_AT_ONCE) *
         matmul_cost_round_up(columns, chip->matrix_columns) *
         matmul_cost_round_up(matmul->k, chip->matrix_rows);
}

// Whether the matrix unit multiplies elements of this type: not integers of more than 8 bits.
static bool matmul_cost_has_unit(mp_dtype_t dtype) {
  return mp_dtype_is_float(dtype) || (mp_dtype_is_integer(dtype) && mp_dtype_bits(dtype) <= 8);
}

// Of a chip with described rates only: on the matrix unit with the cheaper operand in it, or on the
// vector unit if that is faster; without the latency of the kernel.
static double matmul_cost_plain(const mp_chip_t *chip, const mp_work_matmul_t *matmul) {
  const double flops = 2 * matmul->batch * matmul->m * matmul->n * matmul->k;
  const double on_vector =
      flops * matmul->passes * mp_work_weight(matmul->dtype) / chip->vector_flops;
  if (!matmul_cost_has_unit(matmul->dtype)) return on_vector;
  const mp_flop_kind_t kind = mp_chip_flop_kind(matmul->dtype);
  double padded = flops;
  if (chip->matrix_rows > 0) {
    padded = fmin(matmul_cost_padded(chip, matmul, matmul->m, matmul->n),
                  matmul_cost_padded(chip, matmul, matmul->n, matmul->m));
  }
  const bool is_by_bf16 = kind == MP_FLOP_F32 && chip->f32_by_bf16;
  const double passes = matmul->passes * (is_by_bf16 ? matmul->bf16_passes : 1);
  return fmin(padded * passes / chip->flops[kind], on_vector);
}

double mp_matmul_seconds(const mp_chip_t *chip, const mp_matmul_kernel_t *kernel) {
  MP_ASSERT(kernel->efficiency > 0 && kernel->efficiency <= 1);
  const bool has_unit = matmul_cost_has_unit(kernel->matmul->dtype);
  if (has_unit && mp_matmul_has_windows(chip)) return mp_matmul_tpu_seconds(chip, kernel);
  if (has_unit && mp_matmul_has_waves(chip)) return mp_matmul_gpu_seconds(chip, kernel);
  const double seconds = matmul_cost_plain(chip, kernel->matmul);
  const double beside = fmax(kernel->vector_seconds, kernel->bytes / chip->memory_bandwidth);
  return fmax(seconds, beside) / kernel->efficiency + chip->op_latency;
}
