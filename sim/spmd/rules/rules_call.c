// Rules of custom calls: the one that the call states itself (sdy.sharding_rule), or else that of
// its target.
#include "sim/spmd/rules/custom_call_dims.h"

#include "sim/spmd/rules/rule_builder.h"

// ---- what a target's dimensions mean ----

static mp_status_t rules_call_make_pointwise(mp_rule_builder_t *builder) {
  return mp_rule_make_pointwise(builder);
}

// Shardings propagate through moves between memories at the first level, as through elementwise
// ops.
static mp_status_t rules_call_make_move(mp_rule_builder_t *builder) {
  MP_RETURN_IF_ERROR(mp_rule_make_pointwise(builder));
  builder->priority = MP_RULE_PASS_THROUGH;
  return NULL;
}

// The first `batch` dimensions are common to all tensors. All others belong to one tensor each and
// must be whole.
static mp_status_t rules_call_put_batched(mp_rule_builder_t *builder, uint32_t batch) {
  for (uint32_t t = 0; t < builder->num_tensors; ++t) {
    builder->has_no_rule |= mp_rule_rank(builder, t) < batch;
    for (uint32_t d = 0; d < batch && !builder->has_no_rule; ++d) {
      builder->has_no_rule = mp_rule_type(builder, t)->dims[d] != mp_rule_type(builder, 0)->dims[d];
    }
  }
  if (builder->has_no_rule) return NULL;
  for (uint32_t d = 0; d < batch; ++d) {
    MP_RETURN_IF_ERROR(
        mp_rule_add_all(builder, mp_rule_type(builder, 0)->dims[d], MP_FACTOR_PASS, false, d));
  }
  for (uint32_t t = 0; t < builder->num_tensors; ++t) {
    for (uint32_t d = batch; d < mp_rule_rank(builder, t); ++d) {
      MP_RETURN_IF_ERROR(mp_rule_add(builder, mp_rule_type(builder, t)->dims[d],
                                     MP_FACTOR_REPLICATE, (mp_rule_place_t[]){{t, d}}, 1));
    }
  }
  return NULL;
}

static mp_status_t rules_call_make_batched(mp_rule_builder_t *builder) {
  return rules_call_put_batched(builder, mp_call_batch_dims(builder->op));
}

// The operand is a matrix, and the results are the eigenvectors and the eigenvalues.
static mp_status_t rules_call_make_eigh(mp_rule_builder_t *builder) {
  const mp_type_t *in = mp_rule_type(builder, 0);
  if (builder->num_tensors != 3 || in->rank < 2) return rules_call_put_batched(builder, 0);
  for (uint32_t d = 0; d + 2 < in->rank; ++d) {
    MP_RETURN_IF_ERROR(mp_rule_add_all(builder, in->dims[d], MP_FACTOR_PASS, false, d));
  }
  const int64_t row = in->rank - 2;
  MP_RETURN_IF_ERROR(mp_rule_add(builder, in->dims[row], MP_FACTOR_PASS,
                                 (mp_rule_place_t[]){{0, row}, {1, row}}, 2));
  return mp_rule_add(builder, in->dims[row + 1], MP_FACTOR_PASS,
                     (mp_rule_place_t[]){{0, row + 1}, {1, row + 1}, {2, row}}, 3);
}

// Two tensors share the dimensions of a matrix. The third one (a triangle, or the taus) has a last
// dimension of its own.
static mp_status_t rules_call_put_matrix_pair(mp_rule_builder_t *builder, uint32_t first,
                                              uint32_t second, uint32_t own) {
  const mp_type_t *matrix = mp_rule_type(builder, first);
  const mp_type_t *other = mp_rule_type(builder, own);
  if (matrix->rank < 2 || other->rank + 1 < matrix->rank) return rules_call_put_batched(builder, 0);
  for (uint32_t d = 0; d + 2 < matrix->rank; ++d) {
    MP_RETURN_IF_ERROR(mp_rule_add_all(builder, matrix->dims[d], MP_FACTOR_PASS, false, d));
  }
  for (int64_t d = matrix->rank - 2; d < (int64_t)matrix->rank; ++d) {
    MP_RETURN_IF_ERROR(mp_rule_add(builder, matrix->dims[d], MP_FACTOR_REPLICATE,
                                   (mp_rule_place_t[]){{first, d}, {second, d}}, 2));
  }
  const int64_t last = matrix->rank - 2;
  return mp_rule_add(builder, other->dims[last], MP_FACTOR_REPLICATE,
                     (mp_rule_place_t[]){{own, last}}, 1);
}

static mp_status_t rules_call_make_qr(mp_rule_builder_t *builder) {
  if (builder->num_tensors != 3) return rules_call_put_batched(builder, 0);
  return rules_call_put_matrix_pair(builder, 0, 1, 2);
}

static mp_status_t rules_call_make_householder_product(mp_rule_builder_t *builder) {
  if (builder->num_tensors != 3) return rules_call_put_batched(builder, 0);
  return rules_call_put_matrix_pair(builder, 0, 2, 1);
}

// The results are the largest values along the last dimension, and their indices.
static mp_status_t rules_call_make_top_k(mp_rule_builder_t *builder) {
  const mp_type_t *in = mp_rule_type(builder, 0);
  const mp_type_t *out = mp_rule_type(builder, builder->op->num_operands);
  if (in->rank != out->rank) return rules_call_put_batched(builder, 0);
  for (uint32_t d = 0; d < in->rank; ++d) {
    const bool is_same = in->dims[d] == out->dims[d];
    MP_RETURN_IF_ERROR(mp_rule_add_all(
        builder, in->dims[d], is_same ? MP_FACTOR_PASS : MP_FACTOR_REPLICATE, !is_same, d));
  }
  return NULL;
}

// The operands are the values, an iota and two scalars. The dimension that gets smaller is
// searched.
static mp_status_t rules_call_make_approx_top_k(mp_rule_builder_t *builder) {
  const mp_type_t *in = mp_rule_type(builder, 0);
  const uint32_t num_operands = builder->op->num_operands;
  const mp_type_t *out = mp_rule_type(builder, num_operands);
  if (in->rank != out->rank) return rules_call_put_batched(builder, 0);
  for (uint32_t d = 0; d < in->rank; ++d) {
    if (in->dims[d] == out->dims[d]) {
      MP_RETURN_IF_ERROR(mp_rule_add_all(builder, in->dims[d], MP_FACTOR_PASS, false, d));
      continue;
    }
    MP_RETURN_IF_ERROR(
        mp_rule_add_range(builder, in->dims[d], MP_FACTOR_PASS, false, 0, num_operands, d));
    MP_RETURN_IF_ERROR(mp_rule_add_range(builder, out->dims[d], MP_FACTOR_REPLICATE, true,
                                         num_operands, builder->num_tensors, d));
  }
  return NULL;
}

// ---- the targets ----

typedef struct {
  const char *target;
  mp_rule_maker_t make;
  // For targets that minipod computes: the number of operand 0's dimensions after the batch. 0:
  // unknown, so no dimension may be sharded.
  uint32_t inner;
} call_target_t;

static const call_target_t g_targets[] = {
    {"ApproxTopK", rules_call_make_approx_top_k, 0},
    {"Cholesky", rules_call_make_pointwise, 0},
    {"CompactWyHelper", rules_call_make_pointwise, 0},
    {"Eigh", rules_call_make_eigh, 2},
    {"InspectSharding", rules_call_make_pointwise, 0},
    {"InvertDiagBlocksLowerTriangular", rules_call_make_pointwise, 0},
    {"InvertDiagBlocksUpperTriangular", rules_call_make_pointwise, 0},
    {"LayoutConstraint", rules_call_make_pointwise, 0},
    {"LuDecomposition", rules_call_make_batched, 2},
    {"MoveToDevice", rules_call_make_move, 0},
    {"MoveToHost", rules_call_make_move, 0},
    {"PartialReduce", rules_call_make_approx_top_k, 0},
    {"ProductOfElementaryHouseholderReflectors", rules_call_make_householder_product, 2},
    {"Qr", rules_call_make_qr, 2},
    {"QrDecompositionBlock", rules_call_make_qr, 0},
    {"Sharding", rules_call_make_pointwise, 0},
    {"TopK", rules_call_make_top_k, 1},
    {"X64Combine", rules_call_make_pointwise, 0},
    {"X64SplitHigh", rules_call_make_pointwise, 0},
    {"X64SplitLow", rules_call_make_pointwise, 0},
    {"annotate_device_placement", rules_call_make_pointwise, 0},
    {"mhlo.topk", rules_call_make_top_k, 1},
    {"minipod.eigh.lower", rules_call_make_batched, 2},
    {"minipod.eigh.upper", rules_call_make_batched, 2},
    {"minipod.pivots_to_permutation", rules_call_make_batched, 1},
    {"minipod.svd", rules_call_make_batched, 2},
    {"minipod.tridiagonal_solve", rules_call_make_batched, 1},
    {"minipod.tridiagonal_solve.perturbed", rules_call_make_batched, 1},
    {"xla.sdy.FuncResultSharding", rules_call_make_move, 0},
    {"xla.sdy.PropagationBarrier", rules_call_make_move, 0},
};

static const call_target_t *rules_call_find_target(const mp_op_t *op) {
  const mp_str_t target = mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
  for (size_t i = 0; i < sizeof(g_targets) / sizeof(g_targets[0]); ++i) {
    if (mp_str_is(target, g_targets[i].target)) return &g_targets[i];
  }
  return NULL;
}

// The number that the frontend states for its call: mhlo.frontend_attributes = {num_batch_dims =
// "1"}.
static uint32_t rules_call_stated_batch_dims(const mp_op_t *op) {
  const mp_attr_t *stated =
      mp_attr_dict_get_text(mp_op_attr(op, MP_ATTR_MHLO_FRONTEND_ATTRIBUTES), "num_batch_dims");
  if (stated == NULL || stated->kind != MP_KIND_STRING || stated->u.str.size != 1) return 0;
  const char digit = stated->u.str.data[0];
  return digit >= '0' && digit <= '9' ? (uint32_t)(digit - '0') : 0;
}

uint32_t mp_call_batch_dims(const mp_op_t *op) {
  if (op->code != MP_OP_CUSTOM_CALL || op->num_operands == 0) return 0;
  const call_target_t *target = rules_call_find_target(op);
  const uint32_t rank = op->operands[0]->type->rank;
  if (target != NULL && target->inner != 0) return rank < target->inner ? 0 : rank - target->inner;
  return rules_call_stated_batch_dims(op);
}

// ---- what a call says itself ----

static bool rules_call_has(mp_index_list_t list, uint32_t factor) {
  return mp_index_list_has(list, factor);
}

// Adds the stated factors of one tensor. A factor may be in one dimension of a tensor only.
static mp_status_t rules_call_put_stated_tensor(mp_rule_builder_t *builder, uint32_t tensor,
                                                const mp_tensor_mapping_t *mapping) {
  bool *used = MP_ARENA_ARRAY(builder->arena, bool, builder->factors.count);
  MP_RETURN_IF_NULL(used);
  if (mapping->rank != mp_rule_rank(builder, tensor)) builder->has_no_rule = true;
  for (uint32_t d = 0; d < mapping->rank && !builder->has_no_rule; ++d) {
    for (uint32_t i = 0; i < mapping->dims[d].count; ++i) {
      const int64_t factor = mapping->dims[d].values[i];
      builder->has_no_rule |=
          factor < 0 || factor >= (int64_t)builder->factors.count || used[factor];
      if (builder->has_no_rule) return NULL;
      used[factor] = true;
      MP_RETURN_IF_ERROR(mp_rule_put(builder, tensor, d, (uint16_t)factor));
    }
  }
  return NULL;
}

mp_status_t mp_rule_make_stated(mp_rule_builder_t *builder, const mp_sharding_rule_t *stated) {
  const uint32_t num_operands = builder->op->num_operands;
  for (uint32_t f = 0; f < stated->factor_sizes.count; ++f) {
    const mp_factor_kind_t kind = rules_call_has(stated->reduction, f) ? MP_FACTOR_REDUCTION
                                  : rules_call_has(stated->need_replication, f)
                                      ? MP_FACTOR_REPLICATE
                                  : rules_call_has(stated->permutation, f) ? MP_FACTOR_PERMUTE
                                                                           : MP_FACTOR_PASS;
    uint16_t factor = 0;
    MP_RETURN_IF_ERROR(mp_rule_add_factor(builder, stated->factor_sizes.values[f], kind,
                                          rules_call_has(stated->blocked_propagation, f), &factor));
  }
  if (stated->num_operands != num_operands || stated->num_results != builder->op->num_results) {
    builder->has_no_rule = true;
    return NULL;
  }
  for (uint32_t t = 0; t < num_operands; ++t) {
    MP_RETURN_IF_ERROR(rules_call_put_stated_tensor(builder, t, &stated->operands[t]));
  }
  for (uint32_t i = 0; i < stated->num_results; ++i) {
    MP_RETURN_IF_ERROR(
        rules_call_put_stated_tensor(builder, num_operands + i, &stated->results[i]));
  }
  return NULL;
}

mp_status_t mp_rule_make_custom_call(mp_rule_builder_t *builder) {
  const call_target_t *target = rules_call_find_target(builder->op);
  if (target != NULL && builder->op->num_operands != 0) return target->make(builder);
  const uint32_t batch = mp_call_batch_dims(builder->op);
  if (batch != 0) return rules_call_put_batched(builder, batch);
  builder->has_no_rule = true;
  return NULL;
}
