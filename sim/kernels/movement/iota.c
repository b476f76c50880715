// iota (StableHLO specification, "iota"): the index along one dimension, in any element type.
#include "sim/base/assert.h"
#include "sim/kernels/counting.h"
#include "sim/kernels/movement/movement_makers.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"

enum { GRAIN_BYTES = 512 * 1024 };

typedef struct {
  mp_kernel_t base;
  mp_dtype_t dtype;
  int64_t outer, extent, inner;
} iota_kernel_t;

static mp_status_t iota_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const iota_kernel_t *self = (const iota_kernel_t *)kernel;
  // The result consists of runs of `inner` equal elements, which are numbered through outer and
  // extent.
  int64_t begin = 0, end = 0;
  mp_part_range(self->outer * self->extent, kernel->num_parts, call->part, &begin, &end);
  size_t size = mp_dtype_size(self->dtype);
  char *out = (char *)call->results[0] + begin * self->inner * (int64_t)size;
  while (begin < end) {
    int64_t index = begin % self->extent;
    int64_t count = mp_min_i64(end - begin, self->extent - index);
    if (self->inner == 1) {
      mp_count_line(self->dtype, index, 1, count, out);
    } else {
      for (int64_t i = 0; i < count; ++i) {
        char element[16];
        mp_count_line(self->dtype, index + i, 1, 1, element);
        mp_fill(out + i * self->inner * (int64_t)size, element, size, self->inner);
      }
    }
    out += count * self->inner * (int64_t)size;
    begin += count;
  }
  return NULL;
}

mp_status_t mp_kernel_make_iota(mp_arena_t *arena, const mp_op_t *op,
                                const mp_kernel_t **out_kernel) {
  const mp_type_t *out = mp_op_result_type(op, 0);
  uint32_t dim = (uint32_t)mp_op_int(op, MP_ATTR_IOTA_DIMENSION, 0);
  MP_ASSERT(dim < out->rank);
  iota_kernel_t *self = MP_ARENA_NEW(arena, iota_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, iota_run, op);
  self->dtype = out->dtype;
  self->outer = mp_dims_product(out->dims, 0, dim);
  self->extent = out->dims[dim];
  self->inner = mp_dims_product(out->dims, dim + 1, out->rank);
  if (self->inner == 0) self->extent = 0;
  uint32_t parts = mp_part_count(mp_shape_bytes(out), GRAIN_BYTES);
  self->base.num_parts = (uint32_t)mp_max_i64(mp_min_i64(parts, self->outer * self->extent), 1);
  *out_kernel = &self->base;
  return NULL;
}
