// The custom calls of QR factorizations (linalg_makers.h).
#include <string.h>

#include "sim/kernels/elementwise/convert.h"
#include "sim/kernels/linalg/linalg.h"
#include "sim/kernels/linalg/linalg_makers.h"
#include "sim/kernels/shape.h"

enum { GRAIN = 1 << 16 };

typedef struct {
  mp_kernel_t base;
  int64_t batch, m, n, k;
  bool complex;
  size_t wide_bytes, size;
  mp_convert_t load, store;
} householder_kernel_t;

static const char *householder_matrix_of(const householder_kernel_t *self, const void *base,
                                         int64_t batch) {
  return (const char *)base + (size_t)(batch * self->m * self->n) * self->size;
}
static const char *householder_taus_of(const householder_kernel_t *self, const void *base,
                                       int64_t batch) {
  return (const char *)base + (size_t)(batch * self->k) * self->size;
}

static mp_status_t householder_qr_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const householder_kernel_t *self = (const householder_kernel_t *)kernel;
  int64_t begin = 0, end = 0, count = self->m * self->n;
  mp_part_range(self->batch, kernel->num_parts, call->part, &begin, &end);
  char *a = call->scratch, *taus = a + (size_t)count * self->wide_bytes;
  char *work = taus + (size_t)self->k * self->wide_bytes;
  for (int64_t b = begin; b < end; ++b) {
    mp_convert_run(&self->load, count, householder_matrix_of(self, call->operands[0], b), a);
    if (self->complex) {
      mp_qr_z(self->m, self->n, (void *)a, (void *)taus, (void *)work);
    } else {
      mp_qr_d(self->m, self->n, (void *)a, (void *)taus, (void *)work);
    }
    mp_convert_run(&self->store, count, a,
                   (void *)householder_matrix_of(self, call->results[0], b));
    mp_convert_run(&self->store, self->k, taus,
                   (void *)householder_taus_of(self, call->results[1], b));
  }
  return NULL;
}

static mp_status_t householder_product_run(const mp_kernel_t *kernel,
                                           const mp_kernel_call_t *call) {
  const householder_kernel_t *self = (const householder_kernel_t *)kernel;
  int64_t begin = 0, end = 0, count = self->m * self->n;
  mp_part_range(self->batch, kernel->num_parts, call->part, &begin, &end);
  char *a = call->scratch, *taus = a + (size_t)count * self->wide_bytes;
  char *work = taus + (size_t)self->k * self->wide_bytes;
  char *q = work + (size_t)self->n * self->wide_bytes;
  for (int64_t b = begin; b < end; ++b) {
    mp_convert_run(&self->load, count, householder_matrix_of(self, call->operands[0], b), a);
    mp_convert_run(&self->load, self->k, householder_taus_of(self, call->operands[1], b), taus);
    if (self->complex) {
      mp_householder_product_z(self->m, self->n, self->k, (void *)a, (void *)taus, (void *)q,
                               (void *)work);
    } else {
      mp_householder_product_d(self->m, self->n, self->k, (void *)a, (void *)taus, (void *)q,
                               (void *)work);
    }
    mp_convert_run(&self->store, count, q,
                   (void *)householder_matrix_of(self, call->results[0], b));
  }
  return NULL;
}

// Whether `vector` has the batch dimensions of `matrix` and one more.
static bool householder_shapes_fit(const mp_type_t *matrix, const mp_type_t *vector) {
  if (!mp_type_is_static(matrix) || !mp_type_is_static(vector) || matrix->rank < 2 ||
      vector->rank != matrix->rank - 1 || vector->dtype != matrix->dtype) {
    return false;
  }
  return memcmp(matrix->dims, vector->dims, (matrix->rank - 2) * sizeof(int64_t)) == 0;
}

static mp_status_t householder_make(mp_arena_t *arena, const mp_op_t *op, const mp_type_t *matrix,
                                    const mp_type_t *taus, mp_kernel_run_t run,
                                    const mp_kernel_t **out_kernel) {
  int64_t m = matrix->dims[matrix->rank - 2], n = matrix->dims[matrix->rank - 1];
  int64_t k = taus->dims[taus->rank - 1];
  householder_kernel_t *self = MP_ARENA_NEW(arena, householder_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, run, op);
  self->batch = m == 0 || n == 0 ? 0 : mp_dims_product(matrix->dims, 0, matrix->rank - 2);
  if (self->batch == 0) m = n = k = 0;  // nothing to do, and sizes may be too large to count with
  self->m = m;
  self->n = n;
  self->k = k;
  self->complex = mp_dtype_is_complex(matrix->dtype);
  self->size = mp_dtype_size(matrix->dtype);
  mp_dtype_t wide = self->complex ? MP_DTYPE_C128 : MP_DTYPE_F64;
  self->wide_bytes = mp_dtype_size(wide);
  if (self->size < 2 || !(mp_dtype_is_float(matrix->dtype) || self->complex) ||
      !mp_convert_bind(matrix->dtype, wide, &self->load) ||
      !mp_convert_bind(wide, matrix->dtype, &self->store)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "Unsupported dtype %s for a QR factorization",
                       mp_dtype_name(matrix->dtype));
  }
  self->base.scratch_bytes = (size_t)(2 * m * n + k + n) * self->wide_bytes;
  int64_t parts = mp_part_count(MP_WORK(self->batch, m, n, k), GRAIN);
  self->base.num_parts = (uint32_t)mp_clamp_i64(parts, 1, mp_max_i64(self->batch, 1));
  *out_kernel = &self->base;
  return NULL;
}

mp_status_t mp_call_make_qr(mp_arena_t *arena, const mp_op_t *op, const mp_kernel_t **out_kernel) {
  if (op->num_operands == 1 && op->num_results == 2) {
    const mp_type_t *a = mp_op_operand_type(op, 0), *taus = mp_op_result_type(op, 1);
    if (mp_type_equal(a, mp_op_result_type(op, 0)) && householder_shapes_fit(a, taus) &&
        taus->dims[taus->rank - 1] == mp_min_i64(a->dims[a->rank - 2], a->dims[a->rank - 1])) {
      return householder_make(arena, op, a, taus, householder_qr_run, out_kernel);
    }
  }
  return mp_op_error(op, MP_INVALID_ARGUMENT,
                     "custom_call Qr takes a [..., m, n] and gives that and [..., min(m, n)]");
}

mp_status_t mp_call_make_householder_product(mp_arena_t *arena, const mp_op_t *op,
                                             const mp_kernel_t **out_kernel) {
  if (op->num_operands == 2 && op->num_results == 1) {
    const mp_type_t *a = mp_op_operand_type(op, 0), *taus = mp_op_operand_type(op, 1);
    if (mp_type_equal(a, mp_op_result_type(op, 0)) && householder_shapes_fit(a, taus) &&
        taus->dims[taus->rank - 1] <= mp_min_i64(a->dims[a->rank - 2], a->dims[a->rank - 1])) {
      return householder_make(arena, op, a, taus, householder_product_run, out_kernel);
    }
  }
  return mp_op_error(op, MP_INVALID_ARGUMENT,
                     "custom_call ProductOfElementaryHouseholderReflectors takes a [..., m, n] and "
                     "taus [..., k], k <= min(m, n), and gives [..., m, n]");
}
