// Rules of collectives in manual regions, for the axes that are not manual there. Dimensions that a
// collective does not change are PASS; the others are whole in operand and result.
#include "sim/spmd/rules/rule_builder.h"

// The collective changes the dimensions `first` and `second`, which may be the same.
static mp_status_t rules_collective_put_collective(mp_rule_builder_t *builder, int64_t first,
                                                   int64_t second) {
  const mp_op_t *op = builder->op;
  const uint32_t rank = mp_rule_rank(builder, 0);
  for (uint32_t t = 0; t < builder->num_tensors; ++t) {
    const mp_type_t *first_type =
        mp_rule_type(builder, t < op->num_operands ? 0 : op->num_operands);
    builder->has_no_rule |= !mp_type_same_shape(mp_rule_type(builder, t), first_type);
  }
  if (builder->has_no_rule) return NULL;
  for (uint32_t d = 0; d < rank; ++d) {
    const int64_t size = mp_rule_type(builder, 0)->dims[d];
    if ((int64_t)d != first && (int64_t)d != second) {
      MP_RETURN_IF_ERROR(mp_rule_add_all(builder, size, MP_FACTOR_PASS, false, d));
      continue;
    }
    const int64_t result_size = mp_rule_type(builder, op->num_operands)->dims[d];
    MP_RETURN_IF_ERROR(
        mp_rule_add_range(builder, size, MP_FACTOR_REPLICATE, false, 0, op->num_operands, d));
    MP_RETURN_IF_ERROR(mp_rule_add_range(builder, result_size, MP_FACTOR_REPLICATE, false,
                                         op->num_operands, builder->num_tensors, d));
  }
  return NULL;
}

mp_status_t mp_rule_make_all_gather(mp_rule_builder_t *builder) {
  const int64_t dim = mp_op_int(builder->op, MP_ATTR_ALL_GATHER_DIM, 0);
  return rules_collective_put_collective(builder, dim, dim);
}

mp_status_t mp_rule_make_all_to_all(mp_rule_builder_t *builder) {
  return rules_collective_put_collective(builder,
                                         mp_op_int(builder->op, MP_ATTR_SPLIT_DIMENSION, 0),
                                         mp_op_int(builder->op, MP_ATTR_CONCAT_DIMENSION, 0));
}

mp_status_t mp_rule_make_reduce_scatter(mp_rule_builder_t *builder) {
  const int64_t dim = mp_op_int(builder->op, MP_ATTR_SCATTER_DIMENSION, 0);
  return rules_collective_put_collective(builder, dim, dim);
}
