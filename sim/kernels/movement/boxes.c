// Ops that place a box into a larger array, or take one out of it: pad, dynamic_slice
// and dynamic_update_slice (StableHLO specification, sections of these names).
//
// A part is a slab of the result along its first dimension of more than one element, so that each
// part writes one contiguous piece of memory.
#include <string.h>

#include "sim/kernels/movement/movement_makers.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"

enum { GRAIN_BYTES = 512 * 1024 };

typedef struct {
  uint32_t dim;        // the dimension of the slabs (0 when the result is a scalar)
  int64_t extent;      // its size (1 for a scalar)
  int64_t bytes_each;  // the bytes of one index of `dim`
} slabs_t;

static slabs_t boxes_slabs_of(const mp_type_t *type) {
  slabs_t slabs = {0, 1, (int64_t)mp_dtype_size(type->dtype)};
  while (slabs.dim + 1 < type->rank && type->dims[slabs.dim] == 1) ++slabs.dim;
  if (type->rank > 0) {
    slabs.extent = type->dims[slabs.dim];
    slabs.bytes_each *= mp_dims_product(type->dims, slabs.dim + 1, type->rank);
  }
  return slabs;
}

static uint32_t boxes_slabs_num_parts(const slabs_t *slabs) {
  uint32_t parts = mp_part_count(slabs->extent * slabs->bytes_each, GRAIN_BYTES);
  return slabs->extent < parts ? (uint32_t)mp_max_i64(slabs->extent, 1) : parts;
}

// ---- pad ----

typedef struct {
  int64_t low, step;  // element i of the operand becomes element low + i * step; step > 0
  int64_t in_extent;
  int64_t dst, src;  // byte strides
} pad_dim_t;

typedef struct {
  mp_kernel_t base;
  slabs_t slabs;
  uint32_t rank;
  uint32_t element;
  int64_t out_count;
  const int64_t *out_dims;
  pad_dim_t dims[];
} pad_kernel_t;

// The number of the operand's indices in one dimension that become indices below `end`. Padding may
// be as large as any int64, so distances are unsigned.
static int64_t boxes_pad_count_before(const pad_dim_t *dim, int64_t end) {
  if (end <= dim->low) return 0;
  uint64_t distance = (uint64_t)end - (uint64_t)dim->low;
  uint64_t count = (distance - 1) / (uint64_t)dim->step + 1;
  return count < (uint64_t)dim->in_extent ? (int64_t)count : dim->in_extent;
}

static mp_status_t boxes_pad_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const pad_kernel_t *self = (const pad_kernel_t *)kernel;
  if (self->out_count == 0) return NULL;
  int64_t begin = 0, end = 0;
  mp_part_range(self->slabs.extent, kernel->num_parts, call->part, &begin, &end);
  char *out = call->results[0];
  const char *in = call->operands[0];
  mp_fill(out + begin * self->slabs.bytes_each, call->operands[1], self->element,
          (end - begin) * self->slabs.bytes_each / self->element);
  mp_strided_t copy;
  mp_strided_init(&copy, self->element);
  for (uint32_t i = 0; i < self->rank; ++i) {
    const pad_dim_t *dim = &self->dims[i];
    bool cut = i == self->slabs.dim;
    int64_t first = boxes_pad_count_before(dim, cut ? begin : 0);
    int64_t count = boxes_pad_count_before(dim, cut ? end : self->out_dims[i]) - first;
    if (count == 0) return NULL;
    in += first * dim->src;
    out += (dim->low + first * dim->step) * dim->dst;
    mp_strided_add_dim(&copy, count, count > 1 ? dim->step * dim->dst : dim->dst, dim->src);
  }
  mp_strided_finish(&copy);
  mp_strided_run(&copy, out, in);
  return NULL;
}

mp_status_t mp_kernel_make_pad(mp_arena_t *arena, const mp_op_t *op,
                               const mp_kernel_t **out_kernel) {
  const mp_type_t *in = mp_op_operand_type(op, 0), *out = mp_op_result_type(op, 0);
  pad_kernel_t *self = mp_arena_alloc(arena, sizeof(*self) + in->rank * sizeof(pad_dim_t));
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, boxes_pad_run, op);
  self->slabs = boxes_slabs_of(out);
  self->base.num_parts = boxes_slabs_num_parts(&self->slabs);
  self->rank = in->rank;
  self->element = (uint32_t)mp_dtype_size(out->dtype);
  self->out_count = mp_shape_count(out);
  self->out_dims = out->dims;
  mp_index_list_t low = mp_op_ints(op, MP_ATTR_EDGE_PADDING_LOW);
  mp_index_list_t interior = mp_op_ints(op, MP_ATTR_INTERIOR_PADDING);
  int64_t dst[MP_MAX_RANK], src[MP_MAX_RANK];
  mp_dims_strides(out->dims, out->rank, self->element, dst);
  mp_dims_strides(in->dims, in->rank, self->element, src);
  for (uint32_t i = 0; i < in->rank; ++i) {
    // The step of a single element is not used, and may be too large for an int64.
    int64_t step = in->dims[i] > 1 ? interior.values[i] + 1 : 1;
    self->dims[i] = (pad_dim_t){low.values[i], step, in->dims[i], dst[i], src[i]};
  }
  *out_kernel = &self->base;
  return NULL;
}

// ---- dynamic_slice, dynamic_update_slice ----

typedef struct {
  mp_kernel_t base;
  uint32_t first_start;  // operand number of the first start index
  uint32_t rank;
  uint32_t element;
  slabs_t slabs;
  mp_dtype_t index_dtype;
  const mp_type_t *big, *box;
} box_kernel_t;

// The box's start in each dimension, clamped so that the box lies inside of the array.
static void boxes_box_starts(const box_kernel_t *self, const mp_kernel_call_t *call,
                             int64_t *starts) {
  for (uint32_t i = 0; i < self->rank; ++i) {
    int64_t start = mp_load_index(self->index_dtype, call->operands[self->first_start + i]);
    starts[i] = mp_clamp_i64(start, 0, self->big->dims[i] - self->box->dims[i]);
  }
}

static mp_status_t boxes_dynamic_slice_run(const mp_kernel_t *kernel,
                                           const mp_kernel_call_t *call) {
  const box_kernel_t *self = (const box_kernel_t *)kernel;
  if (mp_shape_count(self->box) == 0) return NULL;
  int64_t starts[MP_MAX_RANK], dst[MP_MAX_RANK], src[MP_MAX_RANK];
  boxes_box_starts(self, call, starts);
  mp_dims_strides(self->box->dims, self->rank, self->element, dst);
  mp_dims_strides(self->big->dims, self->rank, self->element, src);
  const char *in = call->operands[0];
  mp_strided_t copy;
  mp_strided_init(&copy, self->element);
  for (uint32_t i = 0; i < self->rank; ++i) {
    in += starts[i] * src[i];
    mp_strided_add_dim(&copy, self->box->dims[i], dst[i], src[i]);
  }
  mp_strided_finish(&copy);
  mp_strided_run_part(&copy, call->results[0], in, kernel->num_parts, call->part);
  return NULL;
}

static mp_status_t boxes_dynamic_update_slice_run(const mp_kernel_t *kernel,
                                                  const mp_kernel_call_t *call) {
  const box_kernel_t *self = (const box_kernel_t *)kernel;
  if (mp_shape_count(self->big) == 0) return NULL;
  int64_t begin = 0, end = 0;
  mp_part_range(self->slabs.extent, kernel->num_parts, call->part, &begin, &end);
  char *out = call->results[0];
  const char *big = call->operands[0], *update = call->operands[1];
  int64_t each = self->slabs.bytes_each;
  if (out != big) memcpy(out + begin * each, big + begin * each, (size_t)((end - begin) * each));
  if (mp_shape_count(self->box) == 0) return NULL;
  int64_t starts[MP_MAX_RANK], dst[MP_MAX_RANK], src[MP_MAX_RANK];
  boxes_box_starts(self, call, starts);
  mp_dims_strides(self->big->dims, self->rank, self->element, dst);
  mp_dims_strides(self->box->dims, self->rank, self->element, src);
  mp_strided_t copy;
  mp_strided_init(&copy, self->element);
  for (uint32_t i = 0; i < self->rank; ++i) {
    int64_t from = starts[i], to = starts[i] + self->box->dims[i];
    if (i == self->slabs.dim) {
      from = mp_max_i64(from, begin);
      to = mp_min_i64(to, end);
    }
    if (from >= to) return NULL;
    out += from * dst[i];
    update += (from - starts[i]) * src[i];
    mp_strided_add_dim(&copy, to - from, dst[i], src[i]);
  }
  mp_strided_finish(&copy);
  mp_strided_run(&copy, out, update);
  return NULL;
}

static mp_status_t boxes_box_new(mp_arena_t *arena, const mp_op_t *op, mp_kernel_run_t run,
                                 uint32_t first_start, box_kernel_t **out_kernel) {
  box_kernel_t *self = MP_ARENA_NEW(arena, box_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, run, op);
  self->first_start = first_start;
  self->big = mp_op_operand_type(op, 0);
  self->rank = self->big->rank;
  self->element = (uint32_t)mp_dtype_size(self->big->dtype);
  if (self->rank > 0) self->index_dtype = mp_op_operand_type(op, first_start)->dtype;
  *out_kernel = self;
  return NULL;
}

mp_status_t mp_kernel_make_dynamic_slice(mp_arena_t *arena, const mp_op_t *op,
                                         const mp_kernel_t **out_kernel) {
  box_kernel_t *self = NULL;
  MP_RETURN_IF_ERROR(boxes_box_new(arena, op, boxes_dynamic_slice_run, 1, &self));
  self->box = mp_op_result_type(op, 0);
  // The shape of the copy depends on the types alone, so its parts can be counted here.
  mp_strided_t copy;
  int64_t dst[MP_MAX_RANK], src[MP_MAX_RANK];
  mp_dims_strides(self->box->dims, self->rank, self->element, dst);
  mp_dims_strides(self->big->dims, self->rank, self->element, src);
  mp_strided_init(&copy, self->element);
  for (uint32_t i = 0; i < self->rank; ++i) {
    mp_strided_add_dim(&copy, self->box->dims[i], dst[i], src[i]);
  }
  mp_strided_finish(&copy);
  self->base.num_parts = mp_strided_num_parts(&copy);
  *out_kernel = &self->base;
  return NULL;
}

mp_status_t mp_kernel_make_dynamic_update_slice(mp_arena_t *arena, const mp_op_t *op,
                                                const mp_kernel_t **out_kernel) {
  box_kernel_t *self = NULL;
  MP_RETURN_IF_ERROR(boxes_box_new(arena, op, boxes_dynamic_update_slice_run, 2, &self));
  self->box = mp_op_operand_type(op, 1);
  self->slabs = boxes_slabs_of(self->big);
  // In place, as in loops, only the update takes time, so its size decides the number of parts. A
  // large array that is not updated in place is copied beforehand.
  uint32_t parts = mp_part_count(mp_shape_bytes(self->box), GRAIN_BYTES);
  self->base.num_parts = (uint32_t)mp_min_i64(parts, boxes_slabs_num_parts(&self->slabs));
  self->base.in_place = 1;
  self->base.begins_as = 1;
  *out_kernel = &self->base;
  return NULL;
}
