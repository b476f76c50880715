// Copies of matmul operands on GPUs. The library reads each matrix of a batch as contiguous memory,
// and 16-bit matrices with sizes that are multiples of eight.
#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/fuse/matmul_operand.h"
#include "sim/chip/rules/chip_policy.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/chip/steps/chip_builder.h"
#include "sim/plan/plan.h"

// Whether an elementwise kernel of the compiler makes the value: it can write any layout.
static bool chip_gemm_operands_is_made(const mp_chip_builder_t *b, const mp_value_t *root) {
  mp_work_t work;
  if (root->op == NULL || mp_op_info(root->op->code)->role != MP_OP_ROLE_KERNEL) return false;
  return mp_chip_fusion_kind(&b->c->chip->figures, root->op, &work) == MP_CHIP_FUSION_LOOP;
}

// Whether that kernel can also write padding after the rows. Kernels that keep rows on chip cannot.
static bool chip_gemm_operands_is_padded_free(const mp_chip_builder_t *b, const mp_value_t *root) {
  if (!chip_gemm_operands_is_made(b, root)) return false;
  const mp_chip_fusion_t *fusion = mp_chip_fusion_at(b->c->fusions, root->op);
  return fusion == NULL || !fusion->is_rows;
}

mp_status_t mp_chip_copy_gemm_operands(mp_chip_builder_t *b, const mp_op_t *op) {
  const mp_chip_figures_t *figures = &b->c->chip->figures;
  if (!mp_chip_policy(figures)->calls_libraries || op->code != MP_OP_DOT_GENERAL) return NULL;
  // The compiler's own kernel for this matmul reads any layout.
  if (mp_chip_fusion_is_sum(figures, op)) return NULL;
  for (uint32_t i = 0; i < 2; ++i) {
    const mp_matmul_operand_t operand = mp_matmul_operand(op, i);
    const mp_value_t *root = mp_chip_fusion_root(operand.value);
    if (mp_matmul_is_contiguous(&operand) || chip_gemm_operands_is_made(b, root)) continue;
    mp_chip_uses_t *use;
    MP_HASH_MAP_GET(&b->uses, mp_hash_pointer(root), use);
    const double bytes = mp_work_bytes_of(root->type);
    // Later matmuls of the block read the same copy.
    const bool is_copied = use != NULL && use->copied_in == op->parent;
    if (!is_copied && !mp_chip_rule(figures, MP_CHIP_RULE_gemm_operand_copy)) continue;
    uint32_t number = is_copied ? use->held : UINT32_MAX;
    MP_RETURN_IF_ERROR(mp_chip_hold_copy(b, root, bytes, op, &number));
    if (is_copied) continue;
    if (use != NULL) {
      use->copied_in = op->parent;
      use->held = number;
    }
    MP_RETURN_IF_ERROR(mp_chip_add_copy(b, op, 2 * bytes));
  }
  return NULL;
}

mp_status_t mp_chip_pad_gemm_operands(mp_chip_builder_t *b, const mp_op_t *op) {
  mp_matmul_padding_t padding;
  if (!mp_chip_fusion_pads(&b->c->chip->figures, op, &padding)) return NULL;
  const double growth[2] = {padding.m * padding.k, padding.n * padding.k};
  MP_ASSERT(growth[0] >= 1 && growth[1] >= 1);
  for (uint32_t i = 0; i < 2; ++i) {
    const mp_value_t *root = mp_chip_fusion_root(mp_matmul_operand(op, i).value);
    if (growth[i] == 1 || chip_gemm_operands_is_padded_free(b, root)) continue;
    const double bytes = mp_work_bytes_of(root->type);
    uint32_t number = UINT32_MAX;
    MP_RETURN_IF_ERROR(mp_chip_hold_copy(b, root, growth[i] * bytes, op, &number));
    MP_RETURN_IF_ERROR(mp_chip_add_copy(b, op, (1 + growth[i]) * bytes));
  }
  return NULL;
}
