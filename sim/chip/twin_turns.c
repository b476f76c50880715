// Where the compiler of a GPU has to turn the factor of a product: a library takes the matrices of
// a batch one after the other.
#include "sim/base/hash.h"
#include "sim/chip/clusters/cluster_kinds.h"
#include "sim/chip/clusters/factor.h"
#include "sim/chip/rules/rules.h"
#include "sim/chip/twin_impl.h"
#include "sim/plan/plan.h"

// Whether a library that takes 8-bit floats only with what is summed up last finds a factor so
// (cuBLASLt on Hopper).
static bool twin_turns_ends_summed(const mp_twin_builder_t *b, const mp_product_factor_t *factor) {
  const mp_type_t *type = factor->value->type;
  const bool is_asked = mp_figure_or(b->chip->figures.product_f8_last, 0) > 0;
  if (!is_asked || mp_chip_flop_kind(type->dtype) != MP_FLOP_F8) return true;
  uint32_t last = type->rank;
  while (last > 0 && type->dims[last - 1] == 1) --last;
  return last == 0 || (factor->summed >> ((last - 1) & 63) & 1) != 0 ||
         !mp_chip_rule(&b->chip->figures, MP_CHIP_RULE_f8_operands);
}

// A part of a cache is written where the whole is turned already: then that is copied before, and
// turned back afterwards. A loop whose rounds take a slice of a stack of caches and put it back has
// the stack turned before it and turned back behind it, and copies nothing else.
static uint32_t twin_turns_of_cache(const mp_value_t *root) {
  if (root->op == NULL || root->op->code != MP_OP_DYNAMIC_UPDATE_SLICE) return 0;
  const mp_op_t *made = mp_cluster_root(root->op->operands[0])->op;
  const mp_op_t *loop = root->op->parent->parent_op;
  const bool is_slice = made != NULL && made->code == MP_OP_DYNAMIC_SLICE;
  return is_slice && loop != NULL && loop->code == MP_OP_WHILE ? 1 : 2;
}

// Whether a kernel of the compiler makes the value, which writes it in any order.
static bool twin_turns_is_made(const mp_twin_builder_t *b, const mp_value_t *root) {
  mp_work_t work;
  if (root->op == NULL || mp_op_info(root->op->code)->role != MP_OP_ROLE_KERNEL) return false;
  return mp_cluster_kind(&b->chip->figures, root->op, &work) == MP_CLUSTER_LOOP;
}

// The same for one that writes it with others beside it, or with zeros behind its rows: no kernel
// that keeps rows does.
static bool twin_turns_is_placed(const mp_twin_builder_t *b, const mp_value_t *root) {
  if (!twin_turns_is_made(b, root)) return false;
  const mp_cluster_t *cluster = mp_cluster_at(&b->clusters, root->op);
  return cluster == NULL || !cluster->is_rows;
}

mp_status_t mp_twin_turn_factors(mp_twin_builder_t *b, const mp_op_t *op) {
  const mp_chip_figures_t *figures = &b->chip->figures;
  if (figures->compiler != MP_CHIP_COMPILER_GPU || op->code != MP_OP_DOT_GENERAL) return NULL;
  // A kernel of the compiler's own reads arrays as they lie.
  if (mp_cluster_is_sum(figures, op)) return NULL;
  for (uint32_t i = 0; i < 2; ++i) {
    const mp_product_factor_t factor = mp_product_factor(op, i);
    const mp_value_t *root = mp_cluster_root(factor.value);
    const bool is_fit = mp_product_is_whole(&factor) && twin_turns_ends_summed(b, &factor);
    if (is_fit || twin_turns_is_made(b, root)) continue;
    mp_twin_use_t *use;
    MP_HASH_MAP_GET(&b->uses, mp_hash_pointer(root), use);
    // Those that read it later find it turned.
    if (use != NULL && use->turned_in == op->parent) continue;
    if (!mp_chip_rule(&b->chip->figures, MP_CHIP_RULE_gemm_operand_copy)) continue;
    if (use != NULL) use->turned_in = op->parent;
    MP_RETURN_IF_ERROR(mp_twin_add_copy(b, op, 2 * mp_work_bytes_of(root->type)));
    const uint32_t more = mp_chip_rule(&b->chip->figures, MP_CHIP_RULE_cache_transposed)
                              ? twin_turns_of_cache(root)
                              : 0;
    for (uint32_t j = 0; j < more; ++j) {
      MP_RETURN_IF_ERROR(mp_twin_add_copy(b, op, 2 * mp_work_bytes_of(root->type)));
    }
  }
  return NULL;
}

// Whether others than one product want a value in memory as it is.
static bool twin_turns_is_shared(const mp_twin_builder_t *b, const mp_value_t *root) {
  const mp_twin_use_t *use = mp_twin_use_of(b, root);
  return use != NULL && (use->num_products > 1 || use->is_kept);
}

// Factors of products that become one are put side by side: those that no kernel of the compiler
// writes so in the first place, since nobody else wants them.
mp_status_t mp_twin_join_factors(mp_twin_builder_t *b, const mp_op_t *op) {
  const mp_cluster_merged_t *merged = mp_cluster_merged(&b->clusters, op);
  if (merged == NULL || !merged->is_first) return NULL;
  double bytes = 0;
  for (const mp_op_t *one = op; one != NULL; one = merged->next) {
    merged = mp_cluster_merged(&b->clusters, one);
    const mp_product_factor_t factor = mp_product_factor(one, 1 - merged->shared);
    const mp_value_t *root = mp_cluster_root(factor.value);
    // What is turned is put there as it is.
    const bool is_placed = !mp_product_is_whole(&factor) || twin_turns_is_placed(b, root);
    if (is_placed && !twin_turns_is_shared(b, root)) continue;
    if (!mp_chip_rule(&b->chip->figures, MP_CHIP_RULE_merged_operands)) continue;
    bytes += 2 * mp_work_bytes_of(root->type);
  }
  return mp_twin_add_copy(b, op, bytes);
}

// What is cut out of such a product is copied where somebody wants it in memory: a loop reads it
// where it lies.
mp_status_t mp_twin_cut_result(mp_twin_builder_t *b, const mp_op_t *op) {
  if (mp_cluster_merged(&b->clusters, op) == NULL) return NULL;
  const mp_value_t *result = &op->results[0];
  const mp_twin_use_t *use = mp_twin_use_of(b, result);
  if (use == NULL || !use->is_kept || !mp_chip_rule(&b->chip->figures, MP_CHIP_RULE_merged_result))
    return NULL;
  return mp_twin_add_copy(b, op, 2 * mp_work_bytes_of(result->type));
}

mp_status_t mp_twin_pad_factors(mp_twin_builder_t *b, const mp_op_t *op) {
  mp_product_padding_t padding;
  if (!mp_cluster_pads(&b->chip->figures, op, &padding)) return NULL;
  const double growth[2] = {padding.m * padding.k, padding.n * padding.k};
  for (uint32_t i = 0; i < 2; ++i) {
    const mp_value_t *root = mp_cluster_root(mp_product_factor(op, i).value);
    if (growth[i] == 1 || twin_turns_is_placed(b, root)) continue;
    MP_RETURN_IF_ERROR(mp_twin_add_copy(b, op, (1 + growth[i]) * mp_work_bytes_of(root->type)));
  }
  return NULL;
}
