// Where the compiler of a GPU has to turn the factor of a matmul: a library takes the matrices of
// a batch one after the other.
#include "sim/base/hash.h"
#include "sim/chip/chip_impl.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/fuse/factor.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/plan/plan.h"

// Whether a kernel of the compiler makes the value, which writes it in any order.
static bool chip_turns_is_made(const mp_chip_builder_t *b, const mp_value_t *root) {
  mp_work_t work;
  if (root->op == NULL || mp_op_info(root->op->code)->role != MP_OP_ROLE_KERNEL) return false;
  return mp_chip_fusion_kind(&b->chip->figures, root->op, &work) == MP_CHIP_FUSION_LOOP;
}

// The same for one that writes it with others beside it, or with zeros behind its rows: no kernel
// that keeps rows does.
static bool chip_turns_is_placed(const mp_chip_builder_t *b, const mp_value_t *root) {
  if (!chip_turns_is_made(b, root)) return false;
  const mp_chip_fusion_t *fusion = mp_chip_fusion_at(&b->fusions, root->op);
  return fusion == NULL || !fusion->is_rows;
}

mp_status_t mp_chip_turn_factors(mp_chip_builder_t *b, const mp_op_t *op) {
  const mp_chip_figures_t *figures = &b->chip->figures;
  if (figures->compiler != MP_CHIP_COMPILER_GPU || op->code != MP_OP_DOT_GENERAL) return NULL;
  // A kernel of the compiler's own reads arrays as they lie.
  if (mp_chip_fusion_is_sum(figures, op)) return NULL;
  for (uint32_t i = 0; i < 2; ++i) {
    const mp_matmul_factor_t factor = mp_matmul_factor(op, i);
    const mp_value_t *root = mp_chip_fusion_root(factor.value);
    if (mp_matmul_is_whole(&factor) || chip_turns_is_made(b, root)) continue;
    mp_chip_order_use_t *use;
    MP_HASH_MAP_GET(&b->uses, mp_hash_pointer(root), use);
    // Those that read it later find it turned.
    if (use != NULL && use->turned_in == op->parent) continue;
    if (!mp_chip_rule(&b->chip->figures, MP_CHIP_RULE_gemm_operand_copy)) continue;
    if (use != NULL) use->turned_in = op->parent;
    MP_RETURN_IF_ERROR(mp_chip_add_copy(b, op, 2 * mp_work_bytes_of(root->type)));
  }
  return NULL;
}

mp_status_t mp_chip_pad_factors(mp_chip_builder_t *b, const mp_op_t *op) {
  mp_matmul_padding_t padding;
  if (!mp_chip_fusion_pads(&b->chip->figures, op, &padding)) return NULL;
  const double growth[2] = {padding.m * padding.k, padding.n * padding.k};
  for (uint32_t i = 0; i < 2; ++i) {
    const mp_value_t *root = mp_chip_fusion_root(mp_matmul_factor(op, i).value);
    if (growth[i] == 1 || chip_turns_is_placed(b, root)) continue;
    MP_RETURN_IF_ERROR(mp_chip_add_copy(b, op, (1 + growth[i]) * mp_work_bytes_of(root->type)));
  }
  return NULL;
}
