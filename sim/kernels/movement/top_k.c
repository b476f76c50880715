// The custom calls that take the best elements of each row (movement_makers.h).
//
// Equal values keep their order. "TopK" takes NaN as the largest value of all.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kernels/elementwise/convert.h"
#include "sim/kernels/movement/movement_makers.h"
#include "sim/kernels/shape.h"

enum { GRAIN = 1 << 15 };

typedef struct {
  mp_kernel_t base;
  int64_t outer, length, inner, k;
  bool given_indices;  // operand 1 holds the indices; otherwise they are positions
  bool smallest;       // unless operand 2 tells
  mp_dtype_t dtype, index_dtype;
  mp_convert_t load;  // to f64, or s64 for integers
  bool is_float;
} top_k_kernel_t;

typedef struct {
  union {
    double f;
    int64_t i;
  } value;
  int64_t position;
} entry_t;

static int top_k_by_position(const entry_t *a, const entry_t *b) {
  return a->position < b->position ? -1 : 1;
}

static int top_k_largest_float_first(const void *a_, const void *b_) {
  const entry_t *a = a_, *b = b_;
  bool a_nan = isnan(a->value.f), b_nan = isnan(b->value.f);
  if (a_nan || b_nan) return a_nan && b_nan ? top_k_by_position(a, b) : a_nan ? -1 : 1;
  if (a->value.f != b->value.f) return a->value.f > b->value.f ? -1 : 1;
  return top_k_by_position(a, b);
}

static int top_k_smallest_float_first(const void *a_, const void *b_) {
  const entry_t *a = a_, *b = b_;
  bool a_nan = isnan(a->value.f), b_nan = isnan(b->value.f);
  if (a_nan || b_nan) return a_nan && b_nan ? top_k_by_position(a, b) : a_nan ? 1 : -1;
  if (a->value.f != b->value.f) return a->value.f < b->value.f ? -1 : 1;
  return top_k_by_position(a, b);
}

static int top_k_largest_integer_first(const void *a_, const void *b_) {
  const entry_t *a = a_, *b = b_;
  if (a->value.i != b->value.i) return a->value.i > b->value.i ? -1 : 1;
  return top_k_by_position(a, b);
}

static int top_k_smallest_integer_first(const void *a_, const void *b_) {
  const entry_t *a = a_, *b = b_;
  if (a->value.i != b->value.i) return a->value.i < b->value.i ? -1 : 1;
  return top_k_by_position(a, b);
}

static mp_status_t top_k_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const top_k_kernel_t *self = (const top_k_kernel_t *)kernel;
  bool smallest = self->smallest;
  if (self->given_indices) {  // the initial value is the worst one: its sign tells the order
    double worst = 0;
    mp_convert_run(&self->load, 1, call->operands[2], &worst);
    int64_t bits = 0;
    memcpy(&bits, &worst, sizeof(bits));
    smallest = self->is_float ? worst > 0 : bits > 0;
  }
  int (*order)(const void *, const void *) =
      self->is_float ? (smallest ? top_k_smallest_float_first : top_k_largest_float_first)
                     : (smallest ? top_k_smallest_integer_first : top_k_largest_integer_first);
  int64_t begin = 0, end = 0, inner = self->inner;
  mp_part_range(self->outer * inner, kernel->num_parts, call->part, &begin, &end);
  size_t size = mp_dtype_size(self->dtype), index_size = mp_dtype_size(self->index_dtype);
  entry_t *entries = call->scratch;
  for (int64_t row = begin; row < end; ++row) {
    int64_t in = row / inner * self->length * inner + row % inner;
    int64_t out = row / inner * self->k * inner + row % inner;
    for (int64_t i = 0; i < self->length; ++i) {
      mp_convert_run(&self->load, 1,
                     (const char *)call->operands[0] + (size_t)(in + i * inner) * size,
                     &entries[i].value);
      entries[i].position = i;
    }
    qsort(entries, (size_t)self->length, sizeof(entry_t), order);
    for (int64_t i = 0; i < self->k; ++i) {
      int64_t from = in + entries[i].position * inner, to = out + i * inner;
      memcpy((char *)call->results[0] + (size_t)to * size,
             (const char *)call->operands[0] + (size_t)from * size, size);
      const void *index = &entries[i].position;  // little endian: the low bytes
      if (self->given_indices) {
        index = (const char *)call->operands[1] + (size_t)from * index_size;
      }
      memcpy((char *)call->results[1] + (size_t)to * index_size, index, index_size);
    }
  }
  return NULL;
}

// Only calls of "mhlo.topk" have attributes that may ask for the smallest.
static bool top_k_is_of_smallest(const mp_op_t *op) {
  const mp_attr_t *attrs = mp_op_attr(op, MP_ATTR_MHLO_ATTRIBUTES);
  if (attrs == NULL || attrs->kind != MP_KIND_DICT) return false;
  const mp_attr_t *largest = mp_attr_dict_get_text(attrs, "largest");
  return largest != NULL && largest->kind == MP_KIND_BOOL && !largest->u.boolean;
}

static mp_status_t top_k_make(mp_arena_t *arena, const mp_op_t *op, int64_t reduction_dim,
                              bool given_indices, const mp_kernel_t **out_kernel) {
  const mp_type_t *in = mp_op_operand_type(op, 0), *out = mp_op_result_type(op, 0);
  const mp_type_t *indices = mp_op_result_type(op, 1);
  if (!mp_type_is_static(in) || !mp_type_is_static(out) || reduction_dim >= in->rank ||
      in->rank != out->rank || in->dtype != out->dtype || !mp_type_same_shape(out, indices) ||
      out->dims[reduction_dim] > in->dims[reduction_dim] || !mp_dtype_is_integer(indices->dtype)) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "the types of this top-k call do not fit");
  }
  const uint32_t dim = (uint32_t)reduction_dim;
  for (uint32_t i = 0; i < in->rank; ++i) {
    if (i != dim && in->dims[i] != out->dims[i]) {
      return mp_op_error(op, MP_INVALID_ARGUMENT, "the types of this top-k call do not fit");
    }
  }
  top_k_kernel_t *self = MP_ARENA_NEW(arena, top_k_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, top_k_run, op);
  self->outer = mp_dims_product(in->dims, 0, dim);
  self->length = in->dims[dim];
  self->inner = mp_dims_product(in->dims, dim + 1, in->rank);
  self->k = out->dims[dim];
  self->given_indices = given_indices;
  self->smallest = top_k_is_of_smallest(op);
  self->dtype = in->dtype;
  self->index_dtype = indices->dtype;
  self->is_float = mp_dtype_is_float(in->dtype);
  if (mp_dtype_is_complex(in->dtype) || in->dtype == MP_DTYPE_U64 ||
      !mp_convert_bind(in->dtype, self->is_float ? MP_DTYPE_F64 : MP_DTYPE_S64, &self->load)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "top-k of %s", mp_dtype_name(in->dtype));
  }
  self->base.scratch_bytes = (size_t)self->length * sizeof(entry_t);
  int64_t rows = self->length == 0 ? 0 : self->outer * self->inner;
  int64_t parts = mp_part_count(MP_WORK(rows, self->length), GRAIN);
  self->base.num_parts = (uint32_t)mp_clamp_i64(parts, 1, mp_max_i64(rows, 1));
  *out_kernel = &self->base;
  return NULL;
}

mp_status_t mp_call_make_approx_top_k(mp_arena_t *arena, const mp_op_t *op,
                                      const mp_kernel_t **out_kernel) {
  const mp_attr_t *config = mp_op_attr(op, MP_ATTR_BACKEND_CONFIG);
  if (config == NULL || config->kind != MP_KIND_DICT) {
    config = mp_op_attr(op, MP_ATTR_MHLO_BACKEND_CONFIG);
  }
  const mp_attr_t *dim = NULL;
  if (config != NULL && config->kind == MP_KIND_DICT) {
    dim = mp_attr_dict_get_text(config, "reduction_dim");
  }
  if (op->num_operands != 4 || op->num_results != 2 || dim == NULL || dim->kind != MP_KIND_INT ||
      !mp_type_same_shape(mp_op_operand_type(op, 0), mp_op_operand_type(op, 1)) ||
      mp_op_operand_type(op, 1)->dtype != mp_op_result_type(op, 1)->dtype ||
      mp_op_operand_type(op, 2)->dtype != mp_op_operand_type(op, 0)->dtype || dim->u.i64 < 0) {
    return mp_op_error(op, MP_UNIMPLEMENTED,
                       "custom_call ApproxTopK of more than one operand, or without "
                       "'reduction_dim' in its backend_config");
  }
  return top_k_make(arena, op, dim->u.i64, true, out_kernel);
}

mp_status_t mp_call_make_top_k(mp_arena_t *arena, const mp_op_t *op,
                               const mp_kernel_t **out_kernel) {
  if (op->num_operands != 1 || op->num_results != 2 || mp_op_operand_type(op, 0)->rank == 0) {
    return mp_op_error(op, MP_INVALID_ARGUMENT,
                       "custom_call TopK takes one operand and two results");
  }
  return top_k_make(arena, op, (int64_t)mp_op_operand_type(op, 0)->rank - 1, false, out_kernel);
}
