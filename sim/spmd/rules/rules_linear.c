// Rules of products, convolutions, transforms and matrix decompositions.
#include "sim/spmd/rules/rule_builder.h"

// Adds the factors of the dimensions of one side of a dot_general that are neither batching nor
// contracted.
static mp_status_t rules_linear_put_free_dims(mp_rule_builder_t *builder, uint32_t side,
                                              mp_index_list_t batching, mp_index_list_t contracting,
                                              uint32_t *out_dim) {
  const mp_type_t *type = mp_rule_type(builder, side);
  for (uint32_t d = 0; d < type->rank; ++d) {
    if (mp_index_list_has(batching, d) || mp_index_list_has(contracting, d)) continue;
    MP_RETURN_IF_ERROR(mp_rule_add(builder, type->dims[d], MP_FACTOR_PASS,
                                   (mp_rule_place_t[]){{side, d}, {2, (*out_dim)++}}, 2));
  }
  return NULL;
}

mp_status_t mp_rule_make_dot_general(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_type_t *lhs = op->operands[0]->type;
  const mp_index_list_t lb = mp_op_ints(op, MP_ATTR_LHS_BATCHING_DIMENSIONS);
  const mp_index_list_t rb = mp_op_ints(op, MP_ATTR_RHS_BATCHING_DIMENSIONS);
  const mp_index_list_t lc = mp_op_ints(op, MP_ATTR_LHS_CONTRACTING_DIMENSIONS);
  const mp_index_list_t rc = mp_op_ints(op, MP_ATTR_RHS_CONTRACTING_DIMENSIONS);
  uint32_t out = 0;
  for (uint32_t i = 0; i < lb.count; ++i) {
    MP_RETURN_IF_ERROR(
        mp_rule_add(builder, lhs->dims[lb.values[i]], MP_FACTOR_PASS,
                    (mp_rule_place_t[]){{0, lb.values[i]}, {1, rb.values[i]}, {2, out++}}, 3));
  }
  MP_RETURN_IF_ERROR(rules_linear_put_free_dims(builder, 0, lb, lc, &out));
  MP_RETURN_IF_ERROR(rules_linear_put_free_dims(builder, 1, rb, rc, &out));
  for (uint32_t i = 0; i < lc.count; ++i) {
    MP_RETURN_IF_ERROR(mp_rule_add(builder, lhs->dims[lc.values[i]], MP_FACTOR_REDUCTION,
                                   (mp_rule_place_t[]){{0, lc.values[i]}, {1, rc.values[i]}}, 2));
  }
  return NULL;
}

// ---- convolution ----

// The dimension numbers of a convolution.
typedef struct {
  int64_t lhs_batch, lhs_feature, rhs_in, rhs_out, out_batch, out_feature;
  mp_index_list_t lhs_spatial, rhs_spatial, out_spatial;
  int64_t batch_groups, feature_groups;
} conv_dims_t;

static conv_dims_t rules_linear_conv_dims(const mp_op_t *op) {
  return (conv_dims_t){
      .lhs_batch = mp_op_int(op, MP_ATTR_INPUT_BATCH_DIMENSION, 0),
      .lhs_feature = mp_op_int(op, MP_ATTR_INPUT_FEATURE_DIMENSION, 0),
      .rhs_in = mp_op_int(op, MP_ATTR_KERNEL_INPUT_FEATURE_DIMENSION, 0),
      .rhs_out = mp_op_int(op, MP_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION, 0),
      .out_batch = mp_op_int(op, MP_ATTR_OUTPUT_BATCH_DIMENSION, 0),
      .out_feature = mp_op_int(op, MP_ATTR_OUTPUT_FEATURE_DIMENSION, 0),
      .lhs_spatial = mp_op_ints(op, MP_ATTR_INPUT_SPATIAL_DIMENSIONS),
      .rhs_spatial = mp_op_ints(op, MP_ATTR_KERNEL_SPATIAL_DIMENSIONS),
      .out_spatial = mp_op_ints(op, MP_ATTR_OUTPUT_SPATIAL_DIMENSIONS),
      .batch_groups = mp_op_int(op, MP_ATTR_BATCH_GROUP_COUNT, 1),
      .feature_groups = mp_op_int(op, MP_ATTR_FEATURE_GROUP_COUNT, 1),
  };
}

// A spatial dimension of the input can be sharded along the windows, as the output is, or within
// the window, as the kernel is. It gets a factor for each, the larger one first; the second one
// gets what remains of the size.
static mp_status_t rules_linear_put_spatial(mp_rule_builder_t *builder, const conv_dims_t *dims,
                                            uint32_t i) {
  const int64_t in = dims->lhs_spatial.values[i];
  const int64_t window = dims->rhs_spatial.values[i];
  const int64_t out = dims->out_spatial.values[i];
  const int64_t num_windows = mp_rule_type(builder, 2)->dims[out];
  const int64_t window_size = mp_rule_type(builder, 1)->dims[window];
  int64_t left = mp_rule_type(builder, 0)->dims[in];
  for (uint32_t pass = 0; pass < 2; ++pass) {
    const bool is_window = (num_windows >= window_size) == (pass == 1);
    int64_t size = is_window ? window_size : num_windows;
    if (size > left) size = left;
    if (size <= 1) continue;
    const mp_rule_place_t other =
        is_window ? (mp_rule_place_t){1, window} : (mp_rule_place_t){2, out};
    MP_RETURN_IF_ERROR(mp_rule_add(builder, size,
                                   is_window ? MP_FACTOR_REDUCTION : MP_FACTOR_PERMUTE,
                                   (mp_rule_place_t[]){{0, in}, other}, 2));
    left /= size;
  }
  return NULL;
}

mp_status_t mp_rule_make_convolution(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const conv_dims_t dims = rules_linear_conv_dims(op);
  const mp_type_t *rhs = op->operands[1]->type;
  const mp_type_t *out = op->results[0].type;
  if (dims.batch_groups > 1) {
    MP_RETURN_IF_ERROR(mp_rule_add(
        builder, dims.batch_groups, MP_FACTOR_PASS,
        (mp_rule_place_t[]){{0, dims.lhs_batch}, {1, dims.rhs_out}, {2, dims.out_feature}}, 3));
  }
  MP_RETURN_IF_ERROR(mp_rule_add(builder, out->dims[dims.out_batch], MP_FACTOR_PASS,
                                 (mp_rule_place_t[]){{0, dims.lhs_batch}, {2, dims.out_batch}}, 2));
  for (uint32_t i = 0; i < dims.lhs_spatial.count; ++i) {
    MP_RETURN_IF_ERROR(rules_linear_put_spatial(builder, &dims, i));
  }
  if (dims.feature_groups > 1) {
    MP_RETURN_IF_ERROR(mp_rule_add(
        builder, dims.feature_groups, MP_FACTOR_PASS,
        (mp_rule_place_t[]){{0, dims.lhs_feature}, {1, dims.rhs_out}, {2, dims.out_feature}}, 3));
  }
  MP_RETURN_IF_ERROR(mp_rule_add(builder, rhs->dims[dims.rhs_in], MP_FACTOR_REDUCTION,
                                 (mp_rule_place_t[]){{0, dims.lhs_feature}, {1, dims.rhs_in}}, 2));
  const int64_t features = out->dims[dims.out_feature] / (dims.batch_groups * dims.feature_groups);
  if (features <= 1) return NULL;
  return mp_rule_add(builder, features, MP_FACTOR_PASS,
                     (mp_rule_place_t[]){{1, dims.rhs_out}, {2, dims.out_feature}}, 2);
}

// ---- matrices and transforms ----

// Adds the factors of the batch: all dimensions before the last `matrix` ones number independent
// problems.
static mp_status_t rules_linear_put_batch(mp_rule_builder_t *builder, uint32_t matrix) {
  const mp_type_t *type = builder->op->operands[0]->type;
  for (uint32_t d = 0; d + matrix < type->rank; ++d) {
    MP_RETURN_IF_ERROR(mp_rule_add_all(builder, type->dims[d], MP_FACTOR_PASS, false, d));
  }
  return NULL;
}

mp_status_t mp_rule_make_cholesky(mp_rule_builder_t *builder) {
  const mp_type_t *type = builder->op->operands[0]->type;
  MP_RETURN_IF_ERROR(rules_linear_put_batch(builder, 2));
  for (uint32_t d = type->rank - 2; d < type->rank; ++d) {
    MP_RETURN_IF_ERROR(mp_rule_add_all(builder, type->dims[d], MP_FACTOR_REPLICATE, false, d));
  }
  return NULL;
}

// The op solves op(a) x = b or x op(a) = b: one dimension of a is that of b, the other one is that
// of the result.
mp_status_t mp_rule_make_triangular_solve(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_type_t *a = op->operands[0]->type;
  const mp_type_t *b = op->operands[1]->type;
  const int64_t row = a->rank - 2;
  const int64_t column = a->rank - 1;
  const uint32_t transpose = mp_op_enum(op, MP_ATTR_TRANSPOSE_A, MP_TRANSPOSE_NO);
  const bool is_left = mp_op_bool(op, MP_ATTR_LEFT_SIDE, true);
  const bool is_transposed = transpose == MP_TRANSPOSE_YES || transpose == MP_TRANSPOSE_ADJOINT;
  const int64_t of_b = is_left == is_transposed ? column : row;  // the dimension of a
  const int64_t of_x = is_left == is_transposed ? row : column;
  const int64_t solved = is_left ? row : column;  // the dimension of b and of x
  const int64_t kept = is_left ? column : row;
  MP_RETURN_IF_ERROR(rules_linear_put_batch(builder, 2));
  MP_RETURN_IF_ERROR(mp_rule_add(builder, a->dims[of_b], MP_FACTOR_REPLICATE,
                                 (mp_rule_place_t[]){{0, of_b}, {1, solved}}, 2));
  MP_RETURN_IF_ERROR(mp_rule_add(builder, b->dims[kept], MP_FACTOR_REPLICATE,
                                 (mp_rule_place_t[]){{1, kept}, {2, kept}}, 2));
  return mp_rule_add(builder, a->dims[of_x], MP_FACTOR_REPLICATE,
                     (mp_rule_place_t[]){{0, of_x}, {2, solved}}, 2);
}

mp_status_t mp_rule_make_fft(mp_rule_builder_t *builder) {
  const mp_type_t *in = builder->op->operands[0]->type;
  const mp_type_t *out = builder->op->results[0].type;
  const uint32_t length = mp_op_ints(builder->op, MP_ATTR_FFT_LENGTH).count;
  if (mp_op_attr(builder->op, MP_ATTR_KEPT) != NULL) {
    return mp_op_error(builder->op, MP_INVALID_ARGUMENT,
                       "minipod.kept is not for programs to state");
  }
  MP_RETURN_IF_ERROR(rules_linear_put_batch(builder, length));
  for (uint32_t d = in->rank - length; d < in->rank; ++d) {
    MP_RETURN_IF_ERROR(
        mp_rule_add_all(builder, in->dims[d], MP_FACTOR_REPLICATE, in->dims[d] != out->dims[d], d));
  }
  return NULL;
}
