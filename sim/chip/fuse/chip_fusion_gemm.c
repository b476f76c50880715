// Which matmuls XLA's compiler for GPUs gives to a library, and how it pads them.
#include <math.h>

#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/rules/chip_rules.h"

// XLA for GPUs turns a matmul of a vector by a matrix into a reduction if k times rows plus columns
// is less than this (IsMatrixMultiplicationTooSmallForRewriting), whatever the batch, and always a
// matmul of two vectors. The others are library calls.
#define CHIP_FUSION_GEMM_SUM_MOST 1e7

bool mp_chip_fusion_is_sum(const mp_chip_figures_t *figures, const mp_op_t *op) {
  if (figures->compiler != MP_CHIP_COMPILER_GPU || op->code != MP_OP_DOT_GENERAL) return false;
  mp_work_t work;
  mp_work_of_op(op, &work);
  const mp_work_matmul_t *matmul = &work.matmul;
  if (fmin(matmul->m, matmul->n) != 1 || !mp_chip_rule(figures, MP_CHIP_RULE_vector_dot))
    return false;
  return fmax(matmul->m, matmul->n) == 1 ||
         (matmul->m + matmul->n) * matmul->k < CHIP_FUSION_GEMM_SUM_MOST;
}

static double chip_fusion_gemm_growth(double size) {
  enum { MULTIPLE = 8 };
  return ceil(size / MULTIPLE) * MULTIPLE / size;
}

// CublasPadForGemms (xla/service/gpu/transforms).
bool mp_chip_fusion_pads(const mp_chip_figures_t *figures, const mp_op_t *op,
                         mp_matmul_padding_t *out_padding) {
  if (figures->compiler != MP_CHIP_COMPILER_GPU || op->code != MP_OP_DOT_GENERAL) return false;
  for (uint32_t i = 0; i < 2; ++i) {
    const mp_dtype_t dtype = op->operands[i]->type->dtype;
    if (!mp_dtype_is_float(dtype) || mp_dtype_bits(dtype) != 16) return false;
  }
  mp_work_t work;
  mp_work_of_op(op, &work);
  const mp_work_matmul_t *matmul = &work.matmul;
  if (fmin(matmul->m, matmul->n) <= 1 || matmul->k < 1) return false;
  *out_padding =
      (mp_matmul_padding_t){chip_fusion_gemm_growth(matmul->m), chip_fusion_gemm_growth(matmul->n),
                            chip_fusion_gemm_growth(matmul->k)};
  return out_padding->m * out_padding->n * out_padding->k > 1 &&
         mp_chip_rule(figures, MP_CHIP_RULE_gemm_padding);
}
