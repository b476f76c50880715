// Convolution (StableHLO specification, "convolution").
#include "sim/ir/verify/verify_rules.h"

typedef struct {
  int64_t batch, feature;  // of the kernel: input feature, output feature
  mp_index_list_t spatial;
} conv_dims_t;

// Reads which dimension of a tensor is which: two single ones and a list of spatial ones, which
// together must be all dimensions.
static mp_status_t verify_convolution_layout(const mp_op_t *op, mp_attr_name_t batch,
                                             mp_attr_name_t feature, mp_attr_name_t spatial,
                                             uint32_t rank, conv_dims_t *out_dims) {
  uint64_t used = 0;
  MP_RETURN_IF_ERROR(mp_verify_dim(op, batch, rank, &out_dims->batch));
  MP_RETURN_IF_ERROR(mp_verify_dim(op, feature, rank, &out_dims->feature));
  MP_CHECK(op, out_dims->batch != out_dims->feature, "%s and %s are the same",
           mp_attr_name_text(batch), mp_attr_name_text(feature));
  used = UINT64_C(1) << out_dims->batch | UINT64_C(1) << out_dims->feature;
  MP_RETURN_IF_ERROR(mp_verify_dims(op, spatial, rank, 0, &used, &out_dims->spatial));
  MP_CHECK(op, out_dims->spatial.count == rank - 2, "%s has %u entries for %u dimensions",
           mp_attr_name_text(spatial), out_dims->spatial.count, rank);
  return NULL;
}

// The group counts must divide the batch and the features.
static mp_status_t verify_convolution_groups(const mp_op_t *op, const conv_dims_t *input,
                                             const conv_dims_t *kernel) {
  const mp_type_t *lhs = mp_operand_type(op, 0), *rhs = mp_operand_type(op, 1);
  int64_t features = mp_op_int(op, MP_ATTR_FEATURE_GROUP_COUNT, 1);
  int64_t batches = mp_op_int(op, MP_ATTR_BATCH_GROUP_COUNT, 1);
  int64_t in = lhs->dims[input->feature], out = rhs->dims[kernel->feature];
  MP_CHECK(op, features >= 1 && batches >= 1 && (features == 1 || batches == 1),
           "feature_group_count is %lld, batch_group_count %lld", (long long)features,
           (long long)batches);
  MP_CHECK(op, in % features == 0 && out % features == 0,
           "%lld input and %lld output features are not divided by %lld groups", (long long)in,
           (long long)out, (long long)features);
  MP_CHECK(op, lhs->dims[input->batch] % batches == 0 && out % batches == 0,
           "a batch of %lld and %lld output features are not divided by %lld groups",
           (long long)lhs->dims[input->batch], (long long)out, (long long)batches);
  MP_CHECK(op, rhs->dims[kernel->batch] == in / features,
           "the kernel has %lld input features, not %lld", (long long)rhs->dims[kernel->batch],
           (long long)(in / features));
  return NULL;
}

static mp_status_t verify_convolution_conv_window(const mp_op_t *op, const conv_dims_t *input,
                                                  const conv_dims_t *kernel, int64_t *out_spatial) {
  const mp_type_t *lhs = mp_operand_type(op, 0), *rhs = mp_operand_type(op, 1);
  uint32_t rank = input->spatial.count;
  mp_index_list_t strides = {0, NULL}, padding = {0, NULL}, lhs_dilation = {0, NULL};
  mp_index_list_t rhs_dilation = {0, NULL};
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_WINDOW_STRIDES, rank, 1, &strides));
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_LHS_DILATION, rank, 1, &lhs_dilation));
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_RHS_DILATION, rank, 1, &rhs_dilation));
  MP_RETURN_IF_ERROR(mp_verify_pairs(op, MP_ATTR_PADDING, rank, &padding));
  const mp_attr_t *reversal = mp_op_attr(op, MP_ATTR_WINDOW_REVERSAL);
  MP_CHECK(op, reversal->u.ints.count == rank, "window_reversal has %zu entries, not %u",
           reversal->u.ints.count, rank);
  int64_t dims[MP_MAX_RANK], sizes[MP_MAX_RANK];
  for (uint32_t i = 0; i < rank; ++i) {
    dims[i] = lhs->dims[input->spatial.values[i]];
    sizes[i] = rhs->dims[kernel->spatial.values[i]];
  }
  const mp_verify_window_t window = {
      rank, sizes, strides.values, lhs_dilation.values, rhs_dilation.values, padding.values};
  return mp_verify_window(op, &window, dims, out_spatial);
}

mp_status_t mp_verify_convolution(const mp_op_t *op) {
  const mp_type_t *lhs = mp_operand_type(op, 0), *rhs = mp_operand_type(op, 1);
  uint32_t rank = lhs->rank;
  MP_RETURN_IF_ERROR(mp_verify_product_types(op));
  MP_CHECK(op, rank >= 2 && rhs->rank == rank, "operands of rank %u and %u", rank, rhs->rank);
  conv_dims_t input = {0}, kernel = {0}, output = {0};
  MP_RETURN_IF_ERROR(verify_convolution_layout(op, MP_ATTR_INPUT_BATCH_DIMENSION,
                                               MP_ATTR_INPUT_FEATURE_DIMENSION,
                                               MP_ATTR_INPUT_SPATIAL_DIMENSIONS, rank, &input));
  MP_RETURN_IF_ERROR(verify_convolution_layout(op, MP_ATTR_KERNEL_INPUT_FEATURE_DIMENSION,
                                               MP_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION,
                                               MP_ATTR_KERNEL_SPATIAL_DIMENSIONS, rank, &kernel));
  MP_RETURN_IF_ERROR(verify_convolution_layout(op, MP_ATTR_OUTPUT_BATCH_DIMENSION,
                                               MP_ATTR_OUTPUT_FEATURE_DIMENSION,
                                               MP_ATTR_OUTPUT_SPATIAL_DIMENSIONS, rank, &output));
  MP_RETURN_IF_ERROR(verify_convolution_groups(op, &input, &kernel));
  int64_t dims[MP_MAX_RANK], spatial[MP_MAX_RANK];
  MP_RETURN_IF_ERROR(verify_convolution_conv_window(op, &input, &kernel, spatial));
  dims[output.batch] = lhs->dims[input.batch] / mp_op_int(op, MP_ATTR_BATCH_GROUP_COUNT, 1);
  dims[output.feature] = rhs->dims[kernel.feature];
  for (uint32_t i = 0; i < rank - 2; ++i) dims[output.spatial.values[i]] = spatial[i];
  return mp_verify_result(op, 0, mp_result_type(op, 0)->dtype, dims, rank);
}
