// Matmuls, convolutions, windows, factorisations and transforms.
#include "sim/readers/hlo/hlo_ops.h"
#include "sim/readers/hlo/hlo_window.h"

// Makes one operation with the instruction's shape; its operands must be arrays.
static mp_status_t hlo_ops_linear_emit(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                       mp_block_t *const *regions, uint32_t num_regions,
                                       const mp_hlo_attrs_t *attrs, mp_hlo_leaves_t *out) {
  mp_hlo_leaves_t operands = {0};
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, inst->operand_ids.count, &operands));
  for (uint32_t i = 0; i < operands.count; ++i) {
    MP_RETURN_IF_ERROR(mp_hlo_array(b, inst, i, &operands.items[i]));
  }
  return mp_hlo_emit_whole(b, inst, inst->row->code, operands, regions, num_regions, attrs, out);
}

// ---- precision ----

typedef struct {
  mp_hlo_ints_t precisions;
  int64_t algorithm;
} precision_t;

MP_HLO_MESSAGE(g_precision, "PrecisionConfig", MP_HLO_FIELD(1, INTS, precision_t, precisions),
               MP_HLO_FIELD(2, INT, precision_t, algorithm));

// PrecisionConfig.Algorithm; INVALID is the operand's own type.
static const struct {
  mp_dtype_t operands, accumulation;
  int64_t products;
  bool is_imprecise;
} g_algorithms[] = {
    {MP_DTYPE_INVALID, MP_DTYPE_INVALID, 0, false},  // unset
    {MP_DTYPE_INVALID, MP_DTYPE_F32, 1, false},      // any f8
    {MP_DTYPE_INVALID, MP_DTYPE_F32, 1, true},       // any f8, fast
    {MP_DTYPE_F16, MP_DTYPE_F16, 1, false},         {MP_DTYPE_F16, MP_DTYPE_F32, 1, false},
    {MP_DTYPE_BF16, MP_DTYPE_BF16, 1, false},       {MP_DTYPE_BF16, MP_DTYPE_F32, 1, false},
    {MP_DTYPE_BF16, MP_DTYPE_F32, 3, false},        {MP_DTYPE_BF16, MP_DTYPE_F32, 6, false},
    {MP_DTYPE_TF32, MP_DTYPE_F32, 1, false},        {MP_DTYPE_TF32, MP_DTYPE_F32, 3, false},
    {MP_DTYPE_F32, MP_DTYPE_F32, 1, false},         {MP_DTYPE_F64, MP_DTYPE_F64, 1, false},
    {MP_DTYPE_BF16, MP_DTYPE_F32, 9, false},
};

static mp_status_t hlo_ops_linear_put_type(mp_hlo_build_t *b, mp_hlo_attrs_t *attrs,
                                           mp_attr_name_t name, mp_dtype_t dtype) {
  // As in StableHLO, an element type is represented by a tensor without dimensions.
  const mp_type_t *type = NULL;
  const mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_hlo_tensor(b, dtype, NULL, 0, &type));
  MP_RETURN_IF_ERROR(mp_attr_make_type(attrs->arena, type, &attr));
  mp_hlo_put(attrs, name, attr);
  return NULL;
}

static mp_status_t hlo_ops_linear_put_algorithm(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                                int64_t number, mp_hlo_attrs_t *attrs) {
  if (number == 0) return NULL;
  if (number < 0 || number >= (int64_t)(sizeof(g_algorithms) / sizeof(g_algorithms[0]))) {
    return mp_hlo_error(inst, MP_UNIMPLEMENTED, "precision_config.algorithm: %lld is not supported",
                        (long long)number);
  }
  mp_dtype_t operands[2];
  for (uint32_t i = 0; i < 2; ++i) {
    mp_value_t *value = NULL;
    MP_RETURN_IF_ERROR(mp_hlo_array(b, inst, i, &value));
    operands[i] = g_algorithms[number].operands;
    if (operands[i] == MP_DTYPE_INVALID) operands[i] = value->type->dtype;
  }
  MP_RETURN_IF_ERROR(hlo_ops_linear_put_type(b, attrs, MP_ATTR_ACCUMULATION_TYPE,
                                             g_algorithms[number].accumulation));
  mp_hlo_put_bool(attrs, MP_ATTR_ALLOW_IMPRECISE_ACCUMULATION, g_algorithms[number].is_imprecise);
  mp_hlo_put_int(attrs, MP_ATTR_LHS_COMPONENT_COUNT, MP_DTYPE_S64, 1);
  MP_RETURN_IF_ERROR(hlo_ops_linear_put_type(b, attrs, MP_ATTR_LHS_PRECISION_TYPE, operands[0]));
  mp_hlo_put_int(attrs, MP_ATTR_NUM_PRIMITIVE_OPERATIONS, MP_DTYPE_S64,
                 g_algorithms[number].products);
  mp_hlo_put_int(attrs, MP_ATTR_RHS_COMPONENT_COUNT, MP_DTYPE_S64, 1);
  return hlo_ops_linear_put_type(b, attrs, MP_ATTR_RHS_PRECISION_TYPE, operands[1]);
}

static mp_status_t hlo_ops_linear_put_precision(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                                bool has_algorithm, mp_hlo_attrs_t *attrs) {
  precision_t precision = {0};
  MP_RETURN_IF_ERROR(mp_hlo_error_at(
      inst, mp_status_annotate(
                mp_hlo_decode(&b->h->source, &g_precision, inst->precision_bytes, &precision),
                "precision_config")));
  const mp_attr_t *items[2] = {NULL, NULL};
  for (uint32_t i = 0; i < 2 && precision.precisions.count == 2; ++i) {
    const int64_t value = precision.precisions.items[i];
    if (value < MP_PRECISION_DEFAULT || value > MP_PRECISION_HIGHEST) {
      return mp_hlo_error(inst, MP_UNIMPLEMENTED,
                          "precision_config.operand_precision[%u]: %lld is not supported", i,
                          (long long)value);
    }
    MP_RETURN_IF_ERROR(
        mp_attr_make_enum(attrs->arena, MP_ENUM_PRECISION, (uint32_t)value, &items[i]));
  }
  if (items[0] != NULL) mp_hlo_put_array(attrs, MP_ATTR_PRECISION_CONFIG, items, 2);
  if (has_algorithm) return hlo_ops_linear_put_algorithm(b, inst, precision.algorithm, attrs);
  if (precision.algorithm == 0) return NULL;
  return mp_hlo_error(inst, MP_UNIMPLEMENTED, "precision_config.algorithm is not supported here");
}

// ---- dot ----

typedef struct {
  mp_hlo_ints_t lhs_contracting, rhs_contracting, lhs_batch, rhs_batch;
} dot_t;

MP_HLO_MESSAGE(g_dot, "DotDimensionNumbers", MP_HLO_FIELD(1, INTS, dot_t, lhs_contracting),
               MP_HLO_FIELD(2, INTS, dot_t, rhs_contracting),
               MP_HLO_FIELD(3, INTS, dot_t, lhs_batch), MP_HLO_FIELD(4, INTS, dot_t, rhs_batch));

// Without dimension numbers, as in old programs, the last dimension of the left side is contracted
// with the last but one of the right side, or with the only one of a vector.
static mp_status_t hlo_ops_linear_default_dot(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                              dot_t *dot) {
  mp_value_t *lhs = NULL, *rhs = NULL;
  MP_RETURN_IF_ERROR(mp_hlo_array(b, inst, 0, &lhs));
  MP_RETURN_IF_ERROR(mp_hlo_array(b, inst, 1, &rhs));
  const uint32_t left = lhs->type->rank, right = rhs->type->rank;
  if (inst->dot_bytes.data != NULL || left == 0 || right == 0 || inst->shape->type == NULL ||
      inst->shape->type->rank + 2 != left + right) {
    return NULL;
  }
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(b->h->source.arena, &dot->lhs_contracting, (int64_t)left - 1));
  return MP_ARRAY_PUSH(b->h->source.arena, &dot->rhs_contracting,
                       right < 2 ? 0 : (int64_t)right - 2);
}

// The operands of a dot. Operands of two types, which StableHLO does not have, are converted to the
// result's type.
static mp_status_t hlo_ops_linear_factors(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                          mp_hlo_leaves_t *out) {
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, 2, out));
  for (uint32_t i = 0; i < 2; ++i) MP_RETURN_IF_ERROR(mp_hlo_array(b, inst, i, &out->items[i]));
  if (inst->shape->type == NULL || out->items[0]->type->dtype == out->items[1]->type->dtype) {
    return NULL;
  }
  const mp_dtype_t dtype = inst->shape->type->dtype;
  for (uint32_t i = 0; i < 2; ++i) {
    mp_value_t *factor = out->items[i];
    const mp_type_t *type = NULL;
    if (factor->type->dtype == dtype) continue;
    MP_RETURN_IF_ERROR(mp_hlo_tensor(b, dtype, factor->type->dims, factor->type->rank, &type));
    MP_RETURN_IF_ERROR(
        mp_hlo_emit_one(b, inst, MP_OP_CONVERT, &factor, 1, type, NULL, &out->items[i]));
  }
  return NULL;
}

mp_status_t mp_hlo_build_dot(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_hlo_leaves_t factors = {0};
  dot_t dot = {0};
  MP_RETURN_IF_ERROR(mp_hlo_error_at(
      inst, mp_status_annotate(mp_hlo_decode(&b->h->source, &g_dot, inst->dot_bytes, &dot),
                               "dot_dimension_numbers")));
  MP_RETURN_IF_ERROR(hlo_ops_linear_default_dot(b, inst, &dot));
  mp_hlo_put_list(&attrs, MP_ATTR_LHS_BATCHING_DIMENSIONS, &dot.lhs_batch);
  mp_hlo_put_list(&attrs, MP_ATTR_LHS_CONTRACTING_DIMENSIONS, &dot.lhs_contracting);
  mp_hlo_put_list(&attrs, MP_ATTR_RHS_BATCHING_DIMENSIONS, &dot.rhs_batch);
  mp_hlo_put_list(&attrs, MP_ATTR_RHS_CONTRACTING_DIMENSIONS, &dot.rhs_contracting);
  MP_RETURN_IF_ERROR(hlo_ops_linear_put_precision(b, inst, true, &attrs));
  MP_RETURN_IF_ERROR(hlo_ops_linear_factors(b, inst, &factors));
  return mp_hlo_emit_whole(b, inst, inst->row->code, factors, NULL, 0, &attrs, out);
}

// ---- convolution ----

typedef struct {
  int64_t kernel_input, kernel_output, input_batch, input_feature, output_batch, output_feature;
  mp_hlo_ints_t kernel_spatial, input_spatial, output_spatial;
} convolution_t;

MP_HLO_MESSAGE(g_convolution, "ConvolutionDimensionNumbers",
               MP_HLO_FIELD(3, INT, convolution_t, kernel_input),
               MP_HLO_FIELD(4, INT, convolution_t, kernel_output),
               MP_HLO_FIELD(6, INTS, convolution_t, kernel_spatial),
               MP_HLO_FIELD(7, INT, convolution_t, input_batch),
               MP_HLO_FIELD(8, INT, convolution_t, input_feature),
               MP_HLO_FIELD(9, INT, convolution_t, output_batch),
               MP_HLO_FIELD(10, INT, convolution_t, output_feature),
               MP_HLO_FIELD(11, INTS, convolution_t, input_spatial),
               MP_HLO_FIELD(12, INTS, convolution_t, output_spatial));

static void hlo_ops_linear_put_numbers(mp_hlo_attrs_t *attrs, const convolution_t *c) {
  mp_hlo_put_int(attrs, MP_ATTR_INPUT_BATCH_DIMENSION, MP_DTYPE_S64, c->input_batch);
  mp_hlo_put_int(attrs, MP_ATTR_INPUT_FEATURE_DIMENSION, MP_DTYPE_S64, c->input_feature);
  mp_hlo_put_list(attrs, MP_ATTR_INPUT_SPATIAL_DIMENSIONS, &c->input_spatial);
  mp_hlo_put_int(attrs, MP_ATTR_KERNEL_INPUT_FEATURE_DIMENSION, MP_DTYPE_S64, c->kernel_input);
  mp_hlo_put_int(attrs, MP_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION, MP_DTYPE_S64, c->kernel_output);
  mp_hlo_put_list(attrs, MP_ATTR_KERNEL_SPATIAL_DIMENSIONS, &c->kernel_spatial);
  mp_hlo_put_int(attrs, MP_ATTR_OUTPUT_BATCH_DIMENSION, MP_DTYPE_S64, c->output_batch);
  mp_hlo_put_int(attrs, MP_ATTR_OUTPUT_FEATURE_DIMENSION, MP_DTYPE_S64, c->output_feature);
  mp_hlo_put_list(attrs, MP_ATTR_OUTPUT_SPATIAL_DIMENSIONS, &c->output_spatial);
}

static void hlo_ops_linear_put_flags(mp_hlo_attrs_t *attrs, mp_attr_name_t name,
                                     const mp_hlo_ints_t *list) {
  mp_attr_t *attr = mp_hlo_new_attr(attrs, MP_KIND_BOOLS);
  const int64_t *values =
      mp_arena_copy(attrs->arena, list->items, list->count * sizeof(*list->items));
  if (attr == NULL || values == NULL) {
    attrs->failed = true;
    return;
  }
  attr->u.ints.values = values;
  attr->u.ints.count = list->count;
  attr->u.ints.rank = 1;
  attr->u.ints.dims[0] = list->count;
  mp_hlo_put(attrs, name, attr);
}

mp_status_t mp_hlo_build_convolution(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                     mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  convolution_t numbers = {0};
  mp_hlo_window_t window;
  MP_RETURN_IF_ERROR(mp_hlo_error_at(
      inst, mp_status_annotate(
                mp_hlo_decode(&b->h->source, &g_convolution, inst->convolution_bytes, &numbers),
                "convolution_dimension_numbers")));
  MP_RETURN_IF_ERROR(mp_hlo_read_window(b->h, inst, &window));
  mp_hlo_put_int(&attrs, MP_ATTR_BATCH_GROUP_COUNT, MP_DTYPE_S64,
                 inst->batch_group_count == 0 ? 1 : inst->batch_group_count);
  mp_hlo_put_int(&attrs, MP_ATTR_FEATURE_GROUP_COUNT, MP_DTYPE_S64,
                 inst->feature_group_count == 0 ? 1 : inst->feature_group_count);
  hlo_ops_linear_put_numbers(&attrs, &numbers);
  mp_hlo_put_list(&attrs, MP_ATTR_LHS_DILATION, &window.base_dilations);
  mp_hlo_put_pairs(&attrs, MP_ATTR_PADDING, window.padding.items, window.rank);
  mp_hlo_put_list(&attrs, MP_ATTR_RHS_DILATION, &window.window_dilations);
  hlo_ops_linear_put_flags(&attrs, MP_ATTR_WINDOW_REVERSAL, &window.reversal);
  mp_hlo_put_list(&attrs, MP_ATTR_WINDOW_STRIDES, &window.strides);
  MP_RETURN_IF_ERROR(hlo_ops_linear_put_precision(b, inst, false, &attrs));
  return hlo_ops_linear_emit(b, inst, NULL, 0, &attrs, out);
}

// ---- windows ----

mp_status_t mp_hlo_build_reduce_window(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                       mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_hlo_window_t window;
  mp_block_t *region = NULL;
  MP_RETURN_IF_ERROR(mp_hlo_read_window(b->h, inst, &window));
  if (window.is_reversed) {
    return mp_hlo_error(inst, MP_UNIMPLEMENTED, "window: a reversed window is not supported");
  }
  MP_RETURN_IF_ERROR(mp_hlo_build_region(b, inst, 0, &region));
  mp_hlo_put_list(&attrs, MP_ATTR_BASE_DILATIONS, &window.base_dilations);
  mp_hlo_put_pairs(&attrs, MP_ATTR_PADDING, window.padding.items, window.rank);
  mp_hlo_put_list(&attrs, MP_ATTR_WINDOW_DILATIONS, &window.window_dilations);
  mp_hlo_put_list(&attrs, MP_ATTR_WINDOW_DIMENSIONS, &window.sizes);
  mp_hlo_put_list(&attrs, MP_ATTR_WINDOW_STRIDES, &window.strides);
  return hlo_ops_linear_emit(b, inst, &region, 1, &attrs, out);
}

mp_status_t mp_hlo_build_select_and_scatter(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                            mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_hlo_window_t window;
  mp_block_t *regions[2] = {NULL, NULL};
  MP_RETURN_IF_ERROR(mp_hlo_read_window(b->h, inst, &window));
  if (window.is_reversed || window.is_dilated) {
    return mp_hlo_error(inst, MP_UNIMPLEMENTED,
                        "window: a reversed or dilated window is not supported");
  }
  for (uint32_t i = 0; i < 2; ++i) {
    MP_RETURN_IF_ERROR(mp_hlo_build_region(b, inst, i, &regions[i]));
  }
  mp_hlo_put_pairs(&attrs, MP_ATTR_PADDING, window.padding.items, window.rank);
  mp_hlo_put_list(&attrs, MP_ATTR_WINDOW_DIMENSIONS, &window.sizes);
  mp_hlo_put_list(&attrs, MP_ATTR_WINDOW_STRIDES, &window.strides);
  return hlo_ops_linear_emit(b, inst, regions, 2, &attrs, out);
}

// ---- factorisations and transforms ----

typedef struct {
  bool lower;
} cholesky_t;

MP_HLO_MESSAGE(g_cholesky, "CholeskyOptions", MP_HLO_FIELD(1, FLAG, cholesky_t, lower));

mp_status_t mp_hlo_build_cholesky(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                  mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  cholesky_t options = {0};
  MP_RETURN_IF_ERROR(mp_hlo_error_at(
      inst,
      mp_status_annotate(mp_hlo_decode(&b->h->source, &g_cholesky, inst->cholesky_bytes, &options),
                         "cholesky_options")));
  mp_hlo_put_bool(&attrs, MP_ATTR_LOWER, options.lower);
  return hlo_ops_linear_emit(b, inst, NULL, 0, &attrs, out);
}

typedef struct {
  bool left_side, lower, unit_diagonal;
  int64_t transpose;
} triangular_t;

MP_HLO_MESSAGE(g_triangular, "TriangularSolveOptions",
               MP_HLO_FIELD(1, FLAG, triangular_t, left_side),
               MP_HLO_FIELD(2, FLAG, triangular_t, lower),
               MP_HLO_FIELD(3, FLAG, triangular_t, unit_diagonal),
               MP_HLO_FIELD(4, INT, triangular_t, transpose));

mp_status_t mp_hlo_build_triangular_solve(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                          mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  triangular_t options = {0};
  MP_RETURN_IF_ERROR(mp_hlo_error_at(
      inst, mp_status_annotate(
                mp_hlo_decode(&b->h->source, &g_triangular, inst->triangular_bytes, &options),
                "triangular_solve_options")));
  if (options.transpose < MP_TRANSPOSE_NO || options.transpose > MP_TRANSPOSE_ADJOINT) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT,
                        "triangular_solve_options.transpose_a: %lld is none",
                        (long long)options.transpose);
  }
  mp_hlo_put_bool(&attrs, MP_ATTR_LEFT_SIDE, options.left_side);
  mp_hlo_put_bool(&attrs, MP_ATTR_LOWER, options.lower);
  mp_hlo_put_enum(&attrs, MP_ATTR_TRANSPOSE_A, MP_ENUM_TRANSPOSE, (uint32_t)options.transpose);
  mp_hlo_put_bool(&attrs, MP_ATTR_UNIT_DIAGONAL, options.unit_diagonal);
  return hlo_ops_linear_emit(b, inst, NULL, 0, &attrs, out);
}

mp_status_t mp_hlo_build_fft(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  if (inst->fft_type < MP_FFT_FFT || inst->fft_type > MP_FFT_IRFFT) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "fft_type: %lld is none",
                        (long long)inst->fft_type);
  }
  mp_hlo_put_list(&attrs, MP_ATTR_FFT_LENGTH, &inst->fft_length);
  mp_hlo_put_enum(&attrs, MP_ATTR_FFT_TYPE, MP_ENUM_FFT_TYPE, (uint32_t)inst->fft_type);
  return hlo_ops_linear_emit(b, inst, NULL, 0, &attrs, out);
}
