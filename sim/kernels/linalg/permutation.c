// The custom call that converts the exchanges of an LU factorization to a permutation.
#include <inttypes.h>
#include <string.h>

#include "sim/kernels/linalg/linalg_makers.h"
#include "sim/kernels/shape.h"

enum { GRAIN = 1 << 16 };

typedef struct {
  mp_kernel_t base;
  int64_t batch, exchanges, rows;
} permutation_kernel_t;

// Row i is exchanged with row pivots[i]. Negative numbers count from the end. A row that does not
// exist is read as the nearest one and not written, as in JAX's indexing.
static void permutation_fill(const permutation_kernel_t *self, const int32_t *pivots,
                             int32_t *out) {
  const int64_t rows = self->rows;
  for (int64_t i = 0; i < rows; ++i) out[i] = (int32_t)i;
  for (int64_t i = 0; i < self->exchanges; ++i) {
    const int64_t other = pivots[i] < 0 ? pivots[i] + rows : pivots[i];
    const int32_t kept = out[i];
    out[i] = out[mp_clamp_i64(other, 0, rows - 1)];
    if (other >= 0 && other < rows) out[other] = kept;
  }
}

static mp_status_t permutation_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const permutation_kernel_t *self = (const permutation_kernel_t *)kernel;
  int64_t begin = 0, end = 0;
  mp_part_range(self->batch, kernel->num_parts, call->part, &begin, &end);
  for (int64_t b = begin; b < end; ++b) {
    permutation_fill(self, (const int32_t *)call->operands[0] + b * self->exchanges,
                     (int32_t *)call->results[0] + b * self->rows);
  }
  return NULL;
}

mp_status_t mp_call_make_pivots_to_permutation(mp_arena_t *arena, const mp_op_t *op,
                                               const mp_kernel_t **out_kernel) {
  const mp_type_t *in = op->num_operands == 1 ? mp_op_operand_type(op, 0) : NULL;
  const mp_type_t *out = op->num_results == 1 ? mp_op_result_type(op, 0) : NULL;
  const uint32_t last = in != NULL && in->rank > 0 ? in->rank - 1 : 0;
  if (in == NULL || out == NULL || !mp_type_is_static(in) || !mp_type_is_static(out) ||
      in->rank == 0 || out->rank != in->rank || in->dtype != MP_DTYPE_S32 ||
      out->dtype != MP_DTYPE_S32 || out->dims[last] < in->dims[last] ||
      memcmp(in->dims, out->dims, last * sizeof(int64_t)) != 0) {
    return mp_op_error(op, MP_INVALID_ARGUMENT,
                       "custom_call minipod.pivots_to_permutation takes pivots s32[..., k] and "
                       "gives a permutation s32[..., n], n >= k");
  }
  if (out->dims[last] > INT32_MAX) {
    return mp_op_error(op, MP_UNIMPLEMENTED,
                       "custom_call minipod.pivots_to_permutation of %" PRId64
                       " rows: 32-bit numbers can number %" PRId32,
                       out->dims[last], INT32_MAX);
  }
  permutation_kernel_t *self = MP_ARENA_NEW(arena, permutation_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, permutation_run, op);
  self->exchanges = in->dims[last];
  self->rows = out->dims[last];
  self->batch = self->rows == 0 ? 0 : mp_dims_product(out->dims, 0, last);
  const int64_t parts = mp_part_count(MP_WORK(self->batch, self->rows), GRAIN);
  self->base.num_parts = (uint32_t)mp_clamp_i64(parts, 1, mp_max_i64(self->batch, 1));
  *out_kernel = &self->base;
  return NULL;
}
