// batch_norm_inference, batch_norm_training and batch_norm_grad (StableHLO specification, sections
// of these names). All of them compute in doubles; a part is a range of features.
#include <math.h>
#include <string.h>

#include "sim/kernels/elementwise/convert.h"
#include "sim/kernels/reduction/reduction_makers.h"
#include "sim/kernels/shape.h"

enum { BLOCK = 256, GRAIN = 1 << 15 };

typedef struct norm_kernel_s norm_kernel_t;

struct norm_kernel_s {
  mp_kernel_t base;
  int64_t outer, features, inner;  // the sizes before, of and after the feature dimension
  double epsilon;
  mp_dtype_t dtype;
  size_t size;
  mp_convert_t load, store;
};

// The offset of the `inner` elements of one feature in one of the `outer` rows.
static size_t batch_norm_offset_of(const norm_kernel_t *self, int64_t outer, int64_t feature) {
  return (size_t)((outer * self->features + feature) * self->inner) * self->size;
}

static double batch_norm_load_one(const norm_kernel_t *self, const void *array, int64_t i) {
  double value = 0;
  mp_convert_run(&self->load, 1, (const char *)array + (size_t)i * self->size, &value);
  return value;
}

static void batch_norm_store_one(const norm_kernel_t *self, double value, void *array, int64_t i) {
  mp_convert_run(&self->store, 1, &value, (char *)array + (size_t)i * self->size);
}

// sums[0] = sum of (x - shift), sums[1] = sum of (x - shift)^2, sums[2] = sum of y,
// sums[3] = sum of y * (x - shift). If `y` is NULL, the last two are not changed.
static void batch_norm_feature_sums(const norm_kernel_t *self, const void *x, const void *y,
                                    int64_t feature, double shift, double *sums) {
  double a[BLOCK], b[BLOCK];
  for (int64_t o = 0; o < self->outer; ++o) {
    size_t at = batch_norm_offset_of(self, o, feature);
    for (int64_t i = 0; i < self->inner; i += BLOCK, at += BLOCK * self->size) {
      int64_t count = mp_min_i64(BLOCK, self->inner - i);
      mp_convert_run(&self->load, count, (const char *)x + at, a);
      if (y != NULL) mp_convert_run(&self->load, count, (const char *)y + at, b);
      for (int64_t j = 0; j < count; ++j) {
        double d = a[j] - shift;
        sums[0] += d;
        sums[1] += d * d;
        if (y != NULL) {
          sums[2] += b[j];
          sums[3] += b[j] * d;
        }
      }
    }
  }
}

typedef struct {
  double a, b, c;
} map_t;

// out = a * x + b * y + c; `y` may be NULL.
static void batch_norm_feature_map(const norm_kernel_t *self, const void *x, const void *y,
                                   int64_t feature, map_t map, void *out) {
  const double a = map.a, b = map.b, c = map.c;
  double u[BLOCK], v[BLOCK];
  for (int64_t o = 0; o < self->outer; ++o) {
    size_t at = batch_norm_offset_of(self, o, feature);
    for (int64_t i = 0; i < self->inner; i += BLOCK, at += BLOCK * self->size) {
      int64_t count = mp_min_i64(BLOCK, self->inner - i);
      mp_convert_run(&self->load, count, (const char *)x + at, u);
      if (y != NULL) mp_convert_run(&self->load, count, (const char *)y + at, v);
      for (int64_t j = 0; j < count; ++j) u[j] = a * u[j] + (y != NULL ? b * v[j] : 0) + c;
      mp_convert_run(&self->store, count, u, (char *)out + at);
    }
  }
}

static mp_status_t batch_norm_inference_run(const mp_kernel_t *kernel,
                                            const mp_kernel_call_t *call) {
  const norm_kernel_t *self = (const norm_kernel_t *)kernel;
  int64_t begin = 0, end = 0;
  mp_part_range(self->features, kernel->num_parts, call->part, &begin, &end);
  for (int64_t f = begin; f < end; ++f) {
    double scale = batch_norm_load_one(self, call->operands[1], f),
           offset = batch_norm_load_one(self, call->operands[2], f);
    double mean = batch_norm_load_one(self, call->operands[3], f);
    double factor = scale / sqrt(batch_norm_load_one(self, call->operands[4], f) + self->epsilon);
    batch_norm_feature_map(self, call->operands[0], NULL, f,
                           (map_t){factor, 0, offset - mean * factor}, call->results[0]);
  }
  return NULL;
}

static mp_status_t batch_norm_training_run(const mp_kernel_t *kernel,
                                           const mp_kernel_call_t *call) {
  const norm_kernel_t *self = (const norm_kernel_t *)kernel;
  int64_t begin = 0, end = 0;
  mp_part_range(self->features, kernel->num_parts, call->part, &begin, &end);
  double count = (double)(self->outer * self->inner);
  for (int64_t f = begin; f < end; ++f) {
    double first[4] = {0}, second[4] = {0};
    batch_norm_feature_sums(self, call->operands[0], NULL, f, 0, first);
    double mean = first[0] / count;
    batch_norm_feature_sums(self, call->operands[0], NULL, f, mean, second);
    double variance = second[1] / count;
    double factor =
        batch_norm_load_one(self, call->operands[1], f) / sqrt(variance + self->epsilon);
    double offset = batch_norm_load_one(self, call->operands[2], f);
    batch_norm_feature_map(self, call->operands[0], NULL, f,
                           (map_t){factor, 0, offset - mean * factor}, call->results[0]);
    batch_norm_store_one(self, mean, call->results[1], f);
    batch_norm_store_one(self, variance, call->results[2], f);
  }
  return NULL;
}

static mp_status_t batch_norm_grad_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const norm_kernel_t *self = (const norm_kernel_t *)kernel;
  int64_t begin = 0, end = 0;
  mp_part_range(self->features, kernel->num_parts, call->part, &begin, &end);
  double count = (double)(self->outer * self->inner);
  for (int64_t f = begin; f < end; ++f) {
    double scale = batch_norm_load_one(self, call->operands[1], f),
           mean = batch_norm_load_one(self, call->operands[2], f);
    double variance = batch_norm_load_one(self, call->operands[3], f) + self->epsilon;
    double sums[4] = {0}, root = sqrt(variance);
    batch_norm_feature_sums(self, call->operands[0], call->operands[4], f, mean, sums);
    // scale / root * (g - sum(g) / count - (x - mean) * sum(g * (x - mean)) / variance / count)
    double factor = scale / root, slope = -factor * sums[3] / variance / count;
    const map_t map = {slope, factor, -factor * sums[2] / count - slope * mean};
    batch_norm_feature_map(self, call->operands[0], call->operands[4], f, map, call->results[0]);
    batch_norm_store_one(self, sums[3] / root, call->results[1], f);
    batch_norm_store_one(self, sums[2], call->results[2], f);
  }
  return NULL;
}

static mp_status_t batch_norm_make_norm(mp_arena_t *arena, const mp_op_t *op, mp_kernel_run_t run,
                                        const mp_kernel_t **out_kernel) {
  const mp_type_t *type = mp_op_operand_type(op, 0);
  norm_kernel_t *self = MP_ARENA_NEW(arena, norm_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, run, op);
  uint32_t dim = (uint32_t)mp_op_int(op, MP_ATTR_FEATURE_INDEX, 0);
  self->outer = mp_dims_product(type->dims, 0, dim);
  self->features = type->dims[dim];
  self->inner = mp_dims_product(type->dims, dim + 1, type->rank);
  self->dtype = type->dtype;
  self->size = mp_dtype_size(type->dtype);
  const mp_attr_t *epsilon = mp_op_attr(op, MP_ATTR_EPSILON);
  self->epsilon = epsilon != NULL ? epsilon->u.f64 : 0;
  if (!mp_dtype_is_float(type->dtype) || !mp_convert_bind(type->dtype, MP_DTYPE_F64, &self->load) ||
      !mp_convert_bind(MP_DTYPE_F64, type->dtype, &self->store)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "batch normalization of %s",
                       mp_dtype_name(type->dtype));
  }
  int64_t parts = mp_part_count(mp_shape_count(type), GRAIN);
  self->base.num_parts = (uint32_t)mp_clamp_i64(parts, 1, mp_max_i64(self->features, 1));
  *out_kernel = &self->base;
  return NULL;
}

mp_status_t mp_kernel_make_batch_norm_inference(mp_arena_t *arena, const mp_op_t *op,
                                                const mp_kernel_t **out_kernel) {
  return batch_norm_make_norm(arena, op, batch_norm_inference_run, out_kernel);
}

mp_status_t mp_kernel_make_batch_norm_training(mp_arena_t *arena, const mp_op_t *op,
                                               const mp_kernel_t **out_kernel) {
  return batch_norm_make_norm(arena, op, batch_norm_training_run, out_kernel);
}

mp_status_t mp_kernel_make_batch_norm_grad(mp_arena_t *arena, const mp_op_t *op,
                                           const mp_kernel_t **out_kernel) {
  return batch_norm_make_norm(arena, op, batch_norm_grad_run, out_kernel);
}
