// What XLA's compiler for GPUs makes of single ops: kinds, and the padding of matmuls.
#include <math.h>

#include "sim/chip/fuse/chip_fusion_ops.h"
#include "sim/chip/rules/chip_rules.h"

// XLA for GPUs turns a matmul of a vector by a matrix into a reduction if k times rows plus columns
// is less than this (IsMatrixMultiplicationTooSmallForRewriting), whatever the batch, and always a
// matmul of two vectors. The others are library calls.
#define CHIP_FUSION_GPU_OPS_SUM_MOST 1e7

static bool chip_fusion_gpu_ops_is_sum(const mp_chip_figures_t *figures, const mp_op_t *op) {
  if (op->code != MP_OP_DOT_GENERAL) return false;
  mp_work_t work;
  mp_work_of_op(op, &work);
  const mp_work_matmul_t *matmul = &work.matmul;
  if (fmin(matmul->m, matmul->n) != 1 || !mp_chip_rule(figures, MP_CHIP_RULE_vector_dot))
    return false;
  return fmax(matmul->m, matmul->n) == 1 ||
         (matmul->m + matmul->n) * matmul->k < CHIP_FUSION_GPU_OPS_SUM_MOST;
}

// Whether a GPU's threads reduce a few elements each: rows of less than a warp, unless a warp has
// several (IsUnnestedReductionFasterThanElemental), and few of the dimension before the last.
static bool chip_fusion_gpu_ops_is_by_threads(const mp_op_t *op) {
  enum { WARP = 32 };
  if (op->code != MP_OP_REDUCE) return false;
  const double results = mp_chip_fusion_op_count(op);
  const double reduced = mp_chip_fusion_value_count(op->operands[0]) / fmax(results, 1);
  const bool shares_warp = mp_chip_fusion_row(op) > 0 && fmod(WARP, reduced) == 0;
  return reduced < WARP && !shares_warp;
}

static mp_chip_fusion_kind_t chip_fusion_gpu_ops_kind(const mp_chip_figures_t *figures,
                                                      const mp_op_t *op,
                                                      mp_chip_fusion_kind_t kind) {
  switch (kind) {
    case MP_CHIP_FUSION_MATMUL:
      return chip_fusion_gpu_ops_is_sum(figures, op) ? MP_CHIP_FUSION_REDUCTION : kind;
    case MP_CHIP_FUSION_REDUCTION:
      return chip_fusion_gpu_ops_is_by_threads(op) ? MP_CHIP_FUSION_LOOP : kind;
    case MP_CHIP_FUSION_WINDOW:
      // XLA emits a reduce_window as a loop over its results, unless it is cumulative.
      return op->code == MP_OP_REDUCE_WINDOW && !mp_chip_fusion_is_cumulative(op)
                 ? MP_CHIP_FUSION_LOOP
                 : kind;
    default:
      return kind;
  }
}

static bool chip_fusion_gpu_ops_takes(const mp_chip_figures_t *figures, const mp_op_t *op,
                                      mp_chip_fusion_kind_t kind, uint32_t operand) {
  (void)figures, (void)op, (void)operand;
  return kind != MP_CHIP_FUSION_MATMUL;  // a library reads arrays
}

// ---- padding ----

static double chip_fusion_gpu_ops_growth(double size) {
  enum { MULTIPLE = 8 };
  return ceil(size / MULTIPLE) * MULTIPLE / size;
}

// CublasPadForGemms (xla/service/gpu/transforms).
static bool chip_fusion_gpu_ops_pads(const mp_chip_figures_t *figures, const mp_op_t *op,
                                     mp_matmul_padding_t *out_padding) {
  for (uint32_t i = 0; i < 2; ++i) {
    const mp_dtype_t dtype = op->operands[i]->type->dtype;
    if (!mp_dtype_is_float(dtype) || mp_dtype_bits(dtype) != 16) return false;
  }
  mp_work_t work;
  mp_work_of_op(op, &work);
  const mp_work_matmul_t *matmul = &work.matmul;
  if (fmin(matmul->m, matmul->n) <= 1 || matmul->k < 1) return false;
  *out_padding = (mp_matmul_padding_t){chip_fusion_gpu_ops_growth(matmul->m),
                                       chip_fusion_gpu_ops_growth(matmul->n),
                                       chip_fusion_gpu_ops_growth(matmul->k)};
  return out_padding->m * out_padding->n * out_padding->k > 1 &&
         mp_chip_rule(figures, MP_CHIP_RULE_gemm_padding);
}

const mp_chip_fusion_ops_t mp_chip_fusion_gpu_ops = {.kind = chip_fusion_gpu_ops_kind,
                                                     .takes = chip_fusion_gpu_ops_takes,
                                                     .pads = chip_fusion_gpu_ops_pads};
