// convolution (StableHLO specification, "convolution"): a matrix product of patches and kernel.
//
// For every group, C[position, feature] = sum over k = (window position, input feature) of
// patch[position, k] * kernel[feature, k]. Patches are never stored as a whole: packing a panel
// reads them from the input, with zeros for padding and for the holes of lhs_dilation. Whatever the
// dimension numbers are, positions are in the order of the result's memory, and the side whose rows
// are contiguous there becomes the columns of C.

#include "sim/kernels/contraction/contraction_makers.h"
#include "sim/kernels/contraction/conv_phases.h"
#include "sim/kernels/shape.h"

static void convolution_pack_kernel(const void *context, const mp_kernel_call_t *call,
                                    const mp_gemm_range_t *range, uint32_t width, void *panels) {
  const mp_conv_kernel_t *self = context;
  const char *src = (const char *)call->operands[1] + self->kernel_offset;
  mp_operand_pack(&self->kernel, src, range, width, panels);
}

// ---- Results ----

static void convolution_store_block(const void *context, const mp_kernel_call_t *call,
                                    const mp_gemm_block_t *block) {
  const mp_conv_kernel_t *self = context;
  const mp_axes_t *row_axes = self->swapped ? &self->out_features : &self->out_positions;
  const mp_axes_t *column_axes = self->swapped ? &self->out_positions : &self->out_features;
  char *out = (char *)call->results[0] + block->batch * self->output_group_stride;
  int64_t size = (int64_t)mp_dtype_size(self->store.to);
  int64_t column_offsets[MP_GEMM_BLOCK_N];
  const int64_t columns = block->columns;
  mp_axes_offsets(column_axes, block->n, columns, column_offsets);
  for (int64_t i = 0; i < block->rows; ++i) {
    const char *from = block->c + i * block->ldc * self->acc_bytes;
    int64_t row_offset = 0;
    mp_axes_offsets(row_axes, block->m + i, 1, &row_offset);
    for (int64_t j = 0; j < columns;) {
      int64_t run = 1;  // the number of columns that are contiguous in the result
      while (j + run < columns && column_offsets[j + run] == column_offsets[j] + run * size) ++run;
      mp_convert_run(&self->store, run, from + j * self->acc_bytes,
                     out + row_offset + column_offsets[j]);
      j += run;
    }
  }
}

static mp_status_t convolution_conv_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  mp_gemm_run_part(&((const mp_conv_kernel_t *)kernel)->gemm, kernel, call);
  return NULL;
}

// ---- Making ----

// The dimension numbers and shapes of one op, for the steps below.
typedef struct {
  const mp_op_t *op;
  const mp_type_t *in, *kernel, *out;
  int64_t in_strides[MP_MAX_RANK], kernel_strides[MP_MAX_RANK], out_strides[MP_MAX_RANK];
  int64_t in_batch, in_feature, kernel_in, kernel_out, out_batch, out_feature;
  mp_index_list_t in_spatial, kernel_spatial, out_spatial;
  int64_t feature_groups, batch_groups;
  mp_conv_phase_t phase[MP_MAX_RANK];  // of the spatial dimensions
} conv_dims_t;

static void convolution_conv_dims(const mp_op_t *op, conv_dims_t *dims) {
  dims->op = op;
  dims->in = mp_op_operand_type(op, 0);
  dims->kernel = mp_op_operand_type(op, 1);
  dims->out = mp_op_result_type(op, 0);
  mp_dims_strides(dims->in->dims, dims->in->rank, (int64_t)mp_dtype_size(dims->in->dtype),
                  dims->in_strides);
  mp_dims_strides(dims->kernel->dims, dims->kernel->rank,
                  (int64_t)mp_dtype_size(dims->kernel->dtype), dims->kernel_strides);
  mp_dims_strides(dims->out->dims, dims->out->rank, (int64_t)mp_dtype_size(dims->out->dtype),
                  dims->out_strides);
  dims->in_batch = mp_op_int(op, MP_ATTR_INPUT_BATCH_DIMENSION, 0);
  dims->in_feature = mp_op_int(op, MP_ATTR_INPUT_FEATURE_DIMENSION, 0);
  dims->kernel_in = mp_op_int(op, MP_ATTR_KERNEL_INPUT_FEATURE_DIMENSION, 0);
  dims->kernel_out = mp_op_int(op, MP_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION, 0);
  dims->out_batch = mp_op_int(op, MP_ATTR_OUTPUT_BATCH_DIMENSION, 0);
  dims->out_feature = mp_op_int(op, MP_ATTR_OUTPUT_FEATURE_DIMENSION, 0);
  dims->in_spatial = mp_op_ints(op, MP_ATTR_INPUT_SPATIAL_DIMENSIONS);
  dims->kernel_spatial = mp_op_ints(op, MP_ATTR_KERNEL_SPATIAL_DIMENSIONS);
  dims->out_spatial = mp_op_ints(op, MP_ATTR_OUTPUT_SPATIAL_DIMENSIONS);
  dims->feature_groups = mp_op_int(op, MP_ATTR_FEATURE_GROUP_COUNT, 1);
  dims->batch_groups = mp_op_int(op, MP_ATTR_BATCH_GROUP_COUNT, 1);
  for (uint32_t d = 0; d < MP_MAX_RANK; ++d) dims->phase[d] = (mp_conv_phase_t){.by = 1};
}

static int64_t convolution_value_or(mp_index_list_t list, uint32_t i, int64_t otherwise) {
  return i < list.count ? list.values[i] : otherwise;
}

static bool convolution_conv_is_sane(const mp_conv_dim_t *dim) {
  const int64_t most = MP_WINDOW_MOST;
  return dim->window <= most && dim->step <= most && dim->lhs_dilation <= most &&
         dim->rhs_dilation <= most && dim->pad <= most && dim->pad >= -most;
}

static mp_status_t convolution_conv_window(mp_conv_kernel_t *self, const conv_dims_t *dims) {
  mp_index_list_t steps = mp_op_ints(dims->op, MP_ATTR_WINDOW_STRIDES);
  mp_index_list_t padding = mp_op_ints(dims->op, MP_ATTR_PADDING);
  mp_index_list_t lhs_dilation = mp_op_ints(dims->op, MP_ATTR_LHS_DILATION);
  mp_index_list_t rhs_dilation = mp_op_ints(dims->op, MP_ATTR_RHS_DILATION);
  self->num_spatial = dims->in_spatial.count;
  for (uint32_t d = 0; d < self->num_spatial; ++d) {
    int64_t in_dim = dims->in_spatial.values[d];
    self->window[d] = (mp_conv_dim_t){
        .input = dims->in->dims[in_dim],
        .stride = dims->in_strides[in_dim],
        .window = dims->kernel->dims[dims->kernel_spatial.values[d]],
        .step = convolution_value_or(steps, d, 1),
        .pad = convolution_value_or(padding, 2 * d, 0),
        .lhs_dilation = convolution_value_or(lhs_dilation, d, 1),
        .rhs_dilation = convolution_value_or(rhs_dilation, d, 1),
    };
    if (!convolution_conv_is_sane(&self->window[d])) {
      return mp_op_error(dims->op, MP_UNIMPLEMENTED,
                         "the window of spatial dimension %u is too large", d);
    }
    mp_conv_take_phase(&self->window[d], dims->phase[d]);
  }
  return NULL;
}

// Lists the dimensions of the positions in the order of the result's memory.
static mp_status_t convolution_conv_positions(mp_arena_t *arena, mp_conv_kernel_t *self,
                                              const conv_dims_t *dims) {
  uint32_t rank = dims->out->rank;
  MP_RETURN_IF_ERROR(mp_axes_init(arena, rank, &self->out_positions));
  for (uint32_t i = 0; i < rank; ++i) {
    if (i == dims->out_feature) continue;
    mp_position_dim_t *position = &self->positions[self->num_positions++];
    *position = (mp_position_dim_t){dims->out->dims[i], dims->out_strides[i], -1};
    for (uint32_t d = 0; d < dims->out_spatial.count; ++d) {
      if (dims->out_spatial.values[d] != i) continue;
      const mp_conv_phase_t phase = dims->phase[d];
      position->spatial = (int)d;
      position->extent = mp_conv_phase_count(position->extent, phase.start, phase.by);
      position->out_stride *= phase.by;
    }
    mp_axes_add(&self->out_positions, position->extent, position->out_stride);
  }
  return NULL;
}

static mp_status_t convolution_conv_features(mp_arena_t *arena, mp_conv_kernel_t *self,
                                             const conv_dims_t *dims, int64_t groups) {
  int64_t part = self->complex ? self->element : 0;
  int64_t out_part = self->complex ? (int64_t)mp_dtype_size(self->store.to) : 0;
  MP_RETURN_IF_ERROR(mp_axes_init(arena, 2, &self->features));
  mp_axes_add(&self->features, dims->kernel->dims[dims->kernel_in],
              dims->in_strides[dims->in_feature]);
  MP_RETURN_IF_ERROR(mp_axes_init(arena, 2, &self->out_features));
  int64_t out_features = dims->out->dims[dims->out_feature] / groups;
  mp_axes_add(&self->out_features, out_features, dims->out_strides[dims->out_feature]);
  if (self->complex) {
    mp_axes_add(&self->features, 2, part);
    mp_axes_add(&self->out_features, 2, out_part);
  }
  self->output_group_stride = out_features * dims->out_strides[dims->out_feature];
  self->batch_stride = dims->in_strides[dims->in_batch];
  if (dims->batch_groups > 1) {
    self->input_group_stride = dims->in->dims[dims->in_batch] / groups * self->batch_stride;
  } else {
    self->input_group_stride =
        dims->kernel->dims[dims->kernel_in] * dims->in_strides[dims->in_feature];
  }
  return NULL;
}

static mp_status_t convolution_conv_kernel_side(mp_arena_t *arena, mp_conv_kernel_t *self,
                                                const conv_dims_t *dims, int64_t groups) {
  mp_operand_t *side = &self->kernel;
  mp_dtype_t real = mp_dtype_real_part(dims->kernel->dtype);
  mp_dtype_t acc = mp_acc_dtype(self->gemm.acc);
  if (!mp_convert_bind(real, acc, &side->convert)) {
    return mp_op_error(dims->op, MP_UNIMPLEMENTED, "convolution with a kernel of %s",
                       mp_dtype_name(dims->kernel->dtype));
  }
  side->element = (uint32_t)mp_dtype_size(real);
  side->acc_bytes = self->acc_bytes;
  side->crossed = self->complex;
  MP_RETURN_IF_ERROR(mp_axes_init(arena, 1, &side->batch));
  MP_RETURN_IF_ERROR(mp_axes_init(arena, 1, &side->rows));
  MP_RETURN_IF_ERROR(mp_axes_init(arena, dims->kernel->rank, &side->k));
  int64_t rows = dims->kernel->dims[dims->kernel_out] / groups;
  int64_t stride = dims->kernel_strides[dims->kernel_out];
  mp_axes_add(&side->batch, groups, rows * stride);
  mp_axes_add(&side->rows, rows, stride);
  mp_index_list_t reversal = mp_op_ints(dims->op, MP_ATTR_WINDOW_REVERSAL);
  for (uint32_t d = 0; d < self->num_spatial; ++d) {
    const int64_t extent = self->window[d].window, dim = dims->kernel_spatial.values[d];
    int64_t step = dims->kernel_strides[dim];
    if (convolution_value_or(reversal, d, 0) != 0 && extent > 0) {
      self->kernel_offset += (dims->kernel->dims[dim] - 1) * step;
      step = -step;
    }
    if (extent > 0) self->kernel_offset += dims->phase[d].tap * step;
    step *= dims->phase[d].by;
    self->window[d].kernel_stride = step;
    mp_axes_add(&side->k, extent, step);
  }
  self->kernel_in_stride = dims->kernel_strides[dims->kernel_in];
  mp_axes_add(&side->k, dims->kernel->dims[dims->kernel_in], self->kernel_in_stride);
  return NULL;
}

static void convolution_conv_plan(mp_conv_kernel_t *self, int64_t groups) {
  mp_gemm_t *gemm = &self->gemm;
  int64_t positions = self->out_positions.count, features = self->out_features.count;
  int64_t size = (int64_t)mp_dtype_size(self->store.to), step = 0;
  bool positions_run = mp_axes_step(&self->out_positions, &step) && step == size;
  bool features_run = mp_axes_step(&self->out_features, &step) && step == size;
  // The columns of C are the side that is contiguous in the result, or else the longer side.
  self->swapped = !self->complex && !features_run && (positions_run || positions > features);
  gemm->batch = groups;
  gemm->m = self->swapped ? features : positions;
  gemm->n = self->swapped ? positions : features;
  gemm->k = self->kernel.k.count * (self->complex ? 2 : 1);
  gemm->context = self;
  gemm->a.pack = self->swapped ? convolution_pack_kernel : mp_conv_pack_patches;
  const bool features_are_lines = mp_axes_step(&self->features, &step) && step == self->element;
  if (!self->swapped && features_are_lines) gemm->a.lines = mp_conv_pack_lines;
  gemm->b.pack = self->swapped ? mp_conv_pack_patches : convolution_pack_kernel;
  const mp_axes_t *rows = self->swapped ? &self->out_features : &self->out_positions;
  bool columns_run = self->swapped ? positions_run : features_run || gemm->n == 1;
  bool rows_run = mp_axes_step(rows, &step) && (gemm->m == 1 || step == gemm->n * size);
  bool direct = groups == 1 && columns_run && rows_run && mp_convert_is_copy(&self->store);
  gemm->store = direct ? NULL : convolution_store_block;
  mp_gemm_plan(gemm, &self->base);
  if (mp_conv_is_narrow(self)) {
    mp_conv_narrow_plan(self);
  } else if (mp_conv_is_gradient(self)) {
    mp_conv_gradient_plan(self);
  }
}

// Makes the kernel of the dimensions' phases.
static mp_status_t convolution_make_phase(mp_arena_t *arena, const conv_dims_t *dims,
                                          const mp_kernel_t **out_kernel) {
  const mp_op_t *op = dims->op;
  mp_conv_kernel_t *self = MP_ARENA_NEW(arena, mp_conv_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, convolution_conv_run, op);
  mp_dtype_t dtypes[3] = {dims->in->dtype, dims->kernel->dtype, dims->out->dtype};
  self->complex = mp_dtype_is_complex(dtypes[0]);
  self->gemm.acc = mp_acc_for(dtypes, 3);
  mp_dtype_t acc = mp_acc_dtype(self->gemm.acc), in = mp_dtype_real_part(dtypes[0]);
  if (self->complex != mp_dtype_is_complex(dtypes[1]) ||
      self->complex != mp_dtype_is_complex(dtypes[2]) ||
      !mp_convert_bind(in, acc, &self->convert) ||
      !mp_convert_bind(acc, mp_dtype_real_part(dtypes[2]), &self->store)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "convolution of %s and %s to %s",
                       mp_dtype_name(dtypes[0]), mp_dtype_name(dtypes[1]),
                       mp_dtype_name(dtypes[2]));
  }
  self->element = (uint32_t)mp_dtype_size(in);
  self->acc_bytes = (uint32_t)mp_acc_size(self->gemm.acc);
  int64_t groups = mp_max_i64(dims->feature_groups, dims->batch_groups);
  MP_RETURN_IF_ERROR(convolution_conv_window(self, dims));
  MP_RETURN_IF_ERROR(convolution_conv_positions(arena, self, dims));
  MP_RETURN_IF_ERROR(convolution_conv_features(arena, self, dims, groups));
  MP_RETURN_IF_ERROR(convolution_conv_kernel_side(arena, self, dims, groups));
  if (self->num_spatial > 0) {
    const mp_conv_dim_t *last = &self->window[self->num_spatial - 1];
    int64_t step = 0, count = self->features.count;
    self->fused = last->lhs_dilation == 1 && last->rhs_dilation == 1 &&
                  last->stride == count * self->element && mp_axes_step(&self->features, &step) &&
                  (count == 1 || step == self->element);
  }
  if (mp_conv_is_depthwise(self, groups)) {
    mp_conv_depthwise_plan(self);
  } else {
    convolution_conv_plan(self, groups);
  }
  *out_kernel = &self->base;
  return NULL;
}

// ---- Holes in the input ----

// How the spatial dimensions are divided into phases; false if they are not.
static bool convolution_has_phases(const conv_dims_t *dims, int64_t *by, int64_t *out_count) {
  const mp_index_list_t steps = mp_op_ints(dims->op, MP_ATTR_WINDOW_STRIDES);
  const mp_index_list_t lhs_dilation = mp_op_ints(dims->op, MP_ATTR_LHS_DILATION);
  const mp_index_list_t rhs_dilation = mp_op_ints(dims->op, MP_ATTR_RHS_DILATION);
  if (dims->feature_groups > 1 || dims->batch_groups > 1) return false;
  *out_count = 1;
  for (uint32_t d = 0; d < dims->in_spatial.count; ++d) {
    by[d] = convolution_value_or(lhs_dilation, d, 1);
    if (by[d] == 1) continue;
    if (convolution_value_or(steps, d, 1) != 1 || convolution_value_or(rhs_dilation, d, 1) != 1) {
      return false;
    }
    if (by[d] > MP_CONV_MOST_PHASES) return false;
    *out_count *= by[d];
    if (*out_count > MP_CONV_MOST_PHASES) return false;
  }
  return *out_count > 1;
}

// Sets the dimensions' phases to number `number` of all; returns where its results begin, in bytes.
static int64_t convolution_set_phase(conv_dims_t *dims, const int64_t *by, int64_t number) {
  const mp_index_list_t padding = mp_op_ints(dims->op, MP_ATTR_PADDING);
  int64_t offset = 0;
  for (uint32_t d = 0; d < dims->in_spatial.count; ++d) {
    const int64_t start = number % by[d];
    number /= by[d];
    dims->phase[d] = mp_conv_phase(by[d], start, convolution_value_or(padding, 2 * d, 0));
    offset += start * dims->out_strides[dims->out_spatial.values[d]];
  }
  return offset;
}

mp_status_t mp_kernel_make_convolution(mp_arena_t *arena, const mp_op_t *op,
                                       const mp_kernel_t **out_kernel) {
  conv_dims_t dims;
  int64_t by[MP_MAX_RANK], count = 1;
  convolution_conv_dims(op, &dims);
  if (!convolution_has_phases(&dims, by, &count)) {
    return convolution_make_phase(arena, &dims, out_kernel);
  }
  mp_conv_phases_t *phases = NULL;
  MP_RETURN_IF_ERROR(mp_conv_phases_create(arena, op, (uint32_t)count, &phases));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t offset = convolution_set_phase(&dims, by, i);
    const mp_kernel_t *kernel = NULL;
    MP_RETURN_IF_ERROR(convolution_make_phase(arena, &dims, &kernel));
    mp_conv_phases_add(phases, kernel, offset);
  }
  *out_kernel = mp_conv_phases_kernel(phases);
  return NULL;
}
