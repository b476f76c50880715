// cholesky (StableHLO specification, "cholesky"). The other triangle becomes zero; a matrix that is
// not positive definite gives NaN everywhere.
#include <complex.h>
#include <math.h>
#include <string.h>

#include "sim/kernels/elementwise/convert.h"
#include "sim/kernels/linalg/cholesky_many.h"
#include "sim/kernels/linalg/linalg_makers.h"
#include "sim/kernels/shape.h"

enum { GRAIN = 1 << 16 };

typedef struct {
  mp_kernel_t base;
  int64_t batch, n;
  bool lower, is_complex;
  mp_convert_t load, store;
} cholesky_kernel_t;

// Exchanges the triangles: a = a^H.
static void cholesky_adjoint(int64_t n, bool is_complex, void *a) {
  double *d = a;
  mp_complex_t *z = a;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      if (is_complex) {
        mp_complex_t kept = z[i * n + j];
        z[i * n + j] = conj(z[j * n + i]);
        z[j * n + i] = conj(kept);
      } else {
        double kept = d[i * n + j];
        d[i * n + j] = d[j * n + i];
        d[j * n + i] = kept;
      }
    }
  }
}

static bool cholesky_is_small(const cholesky_kernel_t *self) {
  return self->n <= MP_CHOLESKY_MANY_ROWS;
}

// Small matrices, MP_PANEL at a time.
static mp_status_t cholesky_run_small(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const cholesky_kernel_t *self = (const cholesky_kernel_t *)kernel;
  const int64_t n = self->n, size = (int64_t)mp_dtype_size(self->load.from);
  int64_t begin = 0, end = 0;
  mp_part_range(self->batch, kernel->num_parts, call->part, &begin, &end);
  for (int64_t b = begin, count; b < end; b += count) {
    count = mp_min_i64(MP_PANEL, end - b);
    void *a = call->scratch;
    double *panel = (double *)a + MP_PANEL * n * n * (self->is_complex ? 2 : 1);
    const int64_t at = b * n * n * size;
    mp_convert_run(&self->load, count * n * n, (const char *)call->operands[0] + at, a);
    if (self->is_complex) {
      mp_cholesky_many_z(n, count, !self->lower, a, panel);
    } else {
      mp_cholesky_many_d(n, count, !self->lower, a, panel);
    }
    mp_convert_run(&self->store, count * n * n, a, (char *)call->results[0] + at);
  }
  return NULL;
}

static mp_status_t cholesky_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const cholesky_kernel_t *self = (const cholesky_kernel_t *)kernel;
  int64_t begin = 0, end = 0, n = self->n, count = n * n;
  mp_part_range(self->batch, kernel->num_parts, call->part, &begin, &end);
  size_t bytes = (size_t)count * mp_dtype_size(self->load.from);
  for (int64_t b = begin; b < end; ++b) {
    void *a = call->scratch;
    mp_convert_run(&self->load, count, (const char *)call->operands[0] + (size_t)b * bytes, a);
    if (!self->lower) cholesky_adjoint(n, self->is_complex, a);
    double *panel = (double *)a + count * (self->is_complex ? 2 : 1);
    bool ok = self->is_complex ? mp_cholesky_z(n, a, panel) : mp_cholesky_d(n, a, panel);
    if (!ok) {
      for (int64_t i = 0; i < count * (self->is_complex ? 2 : 1); ++i)
        ((double *)a)[i] = (double)NAN;
    } else if (!self->lower) {
      cholesky_adjoint(n, self->is_complex, a);
    }
    mp_convert_run(&self->store, count, a, (char *)call->results[0] + (size_t)b * bytes);
  }
  return NULL;
}

mp_status_t mp_kernel_make_cholesky(mp_arena_t *arena, const mp_op_t *op,
                                    const mp_kernel_t **out_kernel) {
  const mp_type_t *type = mp_op_operand_type(op, 0);
  cholesky_kernel_t *self = MP_ARENA_NEW(arena, cholesky_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, cholesky_run, op);
  self->n = type->dims[type->rank - 1];
  self->batch = self->n == 0 ? 0 : mp_dims_product(type->dims, 0, type->rank - 2);
  if (self->batch == 0) self->n = 0;  // nothing to do, and sizes may be too large to count with
  self->lower = mp_op_bool(op, MP_ATTR_LOWER, true);
  self->is_complex = mp_dtype_is_complex(type->dtype);
  mp_dtype_t wide = self->is_complex ? MP_DTYPE_C128 : MP_DTYPE_F64;
  if (!mp_convert_bind(type->dtype, wide, &self->load) ||
      !mp_convert_bind(wide, type->dtype, &self->store)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "cholesky of %s", mp_dtype_name(type->dtype));
  }
  self->base.scratch_bytes = (size_t)((self->n + MP_PANEL) * self->n) * mp_dtype_size(wide);
  if (cholesky_is_small(self)) {
    self->base.run = cholesky_run_small;
    self->base.scratch_bytes = (size_t)(2 * MP_PANEL * self->n * self->n) * mp_dtype_size(wide);
  }
  int64_t parts = mp_part_count(MP_WORK(self->batch, self->n, self->n, self->n) / 3, GRAIN);
  self->base.num_parts = (uint32_t)mp_clamp_i64(parts, 1, mp_max_i64(self->batch, 1));
  *out_kernel = &self->base;
  return NULL;
}
