// Rules of ops that combine elements (reductions, windows, sorting) and of random numbers.
#include "sim/spmd/rules/rule_builder.h"

// The operands are inputs and then as many scalar initial values.
mp_status_t mp_rule_make_reduce(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const uint32_t num_inputs = op->num_results;
  const mp_index_list_t reduced = mp_op_ints(op, MP_ATTR_DIMENSIONS);
  const mp_type_t *in = op->operands[0]->type;
  uint32_t out = 0;
  for (uint32_t d = 0; d < in->rank; ++d) {
    const bool is_reduced = mp_index_list_has(reduced, d);
    uint16_t factor = 0;
    MP_RETURN_IF_ERROR(mp_rule_add_factor(
        builder, in->dims[d], is_reduced ? MP_FACTOR_REDUCTION : MP_FACTOR_PASS, false, &factor));
    for (uint32_t i = 0; i < num_inputs; ++i) {
      MP_RETURN_IF_ERROR(mp_rule_put(builder, i, d, factor));
      if (is_reduced) continue;
      MP_RETURN_IF_ERROR(mp_rule_put(builder, mp_rule_result(builder, i), out, factor));
    }
    out += !is_reduced;
  }
  return NULL;
}

// Whether windows have one element, follow each other and have no padding, so that they change
// nothing.
static bool rules_reduce_is_trivial_window(const mp_op_t *op, uint32_t dim) {
  const mp_index_list_t sizes = mp_op_ints(op, MP_ATTR_WINDOW_DIMENSIONS);
  const mp_index_list_t strides = mp_op_ints(op, MP_ATTR_WINDOW_STRIDES);
  const mp_attr_t *padding = mp_op_attr(op, MP_ATTR_PADDING);
  if (dim < sizes.count && sizes.values[dim] != 1) return false;
  if (dim < strides.count && strides.values[dim] != 1) return false;
  if (padding == NULL || padding->u.ints.count < 2 * (size_t)dim + 2) return true;
  return padding->u.ints.values[2 * dim] == 0 && padding->u.ints.values[2 * dim + 1] == 0;
}

mp_status_t mp_rule_make_reduce_window(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_type_t *out = op->results[0].type;
  for (uint32_t d = 0; d < out->rank; ++d) {
    MP_RETURN_IF_ERROR(mp_rule_add_all(
        builder, out->dims[d],
        rules_reduce_is_trivial_window(op, d) ? MP_FACTOR_PASS : MP_FACTOR_PERMUTE, false, d));
  }
  return NULL;
}

// The operands are an array, the source and an initial value; the result has the array's shape.
mp_status_t mp_rule_make_select_and_scatter(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_type_t *source = op->operands[1]->type;
  const mp_type_t *out = op->results[0].type;
  const uint32_t result = mp_rule_result(builder, 0);
  for (uint32_t d = 0; d < out->rank; ++d) {
    if (rules_reduce_is_trivial_window(op, d)) {
      MP_RETURN_IF_ERROR(mp_rule_add_all(builder, out->dims[d], MP_FACTOR_PASS, false, d));
      continue;
    }
    MP_RETURN_IF_ERROR(
        mp_rule_add(builder, source->dims[d], MP_FACTOR_REPLICATE, (mp_rule_place_t[]){{1, d}}, 1));
    MP_RETURN_IF_ERROR(mp_rule_add(builder, out->dims[d], MP_FACTOR_PERMUTE,
                                   (mp_rule_place_t[]){{0, d}, {result, d}}, 2));
  }
  return NULL;
}

mp_status_t mp_rule_make_sort(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_type_t *shape = op->results[0].type;
  if (mp_op_attr(op, MP_ATTR_FIRST) != NULL) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "minipod.first is not for programs to state");
  }
  int64_t along = mp_op_int(op, MP_ATTR_DIMENSION, -1);
  if (along < 0) along += shape->rank;
  bool is_alone = true;
  for (uint32_t d = 0; d < shape->rank; ++d) is_alone &= (int64_t)d == along || shape->dims[d] == 1;
  for (uint32_t d = 0; d < shape->rank; ++d) {
    const bool is_sorted = (int64_t)d == along;
    MP_RETURN_IF_ERROR(mp_rule_add_all(builder, shape->dims[d],
                                       is_sorted ? MP_FACTOR_REPLICATE : MP_FACTOR_PASS,
                                       is_sorted && is_alone, d));
  }
  return NULL;
}

// The operands are an array and, per feature, scale, offset, mean and variance.
mp_status_t mp_rule_make_batch_norm_inference(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_type_t *in = op->operands[0]->type;
  const int64_t feature = mp_op_int(op, MP_ATTR_FEATURE_INDEX, 0);
  for (uint32_t d = 0; d < in->rank; ++d) {
    const int64_t own = (int64_t)d == feature ? 0 : -1;
    MP_RETURN_IF_ERROR(mp_rule_add(
        builder, in->dims[d], MP_FACTOR_PASS,
        (mp_rule_place_t[]){{0, d}, {1, own}, {2, own}, {3, own}, {4, own}, {5, d}}, 6));
  }
  return NULL;
}

// The states are whole; every dimension of the random numbers can be sharded by itself.
mp_status_t mp_rule_make_rng_bit_generator(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_type_t *state = op->operands[0]->type;
  const mp_type_t *out = op->results[1].type;
  for (uint32_t d = 0; d < state->rank; ++d) {
    MP_RETURN_IF_ERROR(
        mp_rule_add_range(builder, state->dims[d], MP_FACTOR_REPLICATE, true, 0, 2, d));
  }
  for (uint32_t d = 0; d < out->rank; ++d) {
    MP_RETURN_IF_ERROR(mp_rule_add_range(builder, out->dims[d], MP_FACTOR_PASS, false, 2, 3, d));
  }
  return NULL;
}
