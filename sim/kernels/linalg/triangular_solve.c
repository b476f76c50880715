// triangular_solve (StableHLO specification, "triangular_solve").
//
// Every case is reduced to L * x = b with a lower triangular L: for an upper triangle rows and
// columns are numbered backwards, and an unknown on the left of the matrix is handled by
// transposing the equation. A part is a range of the unknown vectors.
#include <complex.h>

#include "sim/kernels/elementwise/convert.h"
#include "sim/kernels/kernel_makers.h"
#include "sim/kernels/linalg/linalg.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"

enum { GRAIN = 1 << 16 };

typedef struct {
  mp_kernel_t base;
  int64_t batch, n, vectors;  // each matrix of the batch has `vectors` unknown vectors of length n
  bool left, unit, is_complex;
  bool upper;       // the triangle that is read
  bool transposed;  // L is made of rows of `a` when false, of its columns when true
  bool conjugated;
  uint32_t wide_bytes;
  mp_convert_t load, store;
} solve_kernel_t;

// Loads L from `a`, with rows and columns numbered backwards when only that makes it lower
// triangular.
static void triangular_solve_load_matrix(const solve_kernel_t *self, const char *a, bool backwards,
                                         void *raw, void *l) {
  int64_t n = self->n, size = (int64_t)mp_dtype_size(self->load.from);
  int64_t row = self->transposed ? size : n * size, column = self->transposed ? n * size : size;
  if (backwards) {
    a += (n - 1) * (row + column);
    row = -row;
    column = -column;
  }
  mp_strided_t copy;
  mp_strided_init(&copy, (size_t)size);
  mp_strided_add_dim(&copy, n, n * size, row);
  mp_strided_add_dim(&copy, n, size, column);
  mp_strided_finish(&copy);
  mp_strided_run(&copy, raw, a);
  mp_convert_run(&self->load, n * n, raw, l);
  if (self->conjugated) {
    for (int64_t i = 0; i < n * n; ++i) ((mp_complex_t *)l)[i] = conj(((mp_complex_t *)l)[i]);
  }
}

// The bytes from one element of an unknown vector to the next, and from one vector to the next.
static void triangular_solve_vector_steps(const solve_kernel_t *self, int64_t *element_step,
                                          int64_t *vector_step) {
  int64_t size = (int64_t)mp_dtype_size(self->load.from);
  *element_step = self->left ? self->vectors * size : size;
  *vector_step = self->left ? size : self->n * size;
}

static void triangular_solve_vector(const solve_kernel_t *self, const void *l, bool backwards,
                                    const char *b, char *raw, void *x, char *out) {
  int64_t n = self->n, size = (int64_t)mp_dtype_size(self->load.from), step = 0, unused = 0;
  triangular_solve_vector_steps(self, &step, &unused);
  if (backwards) {
    b += (n - 1) * step;
    out += (n - 1) * step;
    step = -step;
  }
  mp_strided_t copy;
  mp_strided_init(&copy, (size_t)size);
  mp_strided_add_dim(&copy, n, size, step);
  mp_strided_finish(&copy);
  mp_strided_run(&copy, raw, b);
  mp_convert_run(&self->load, n, raw, x);
  if (self->is_complex) {
    mp_solve_lower_z(n, l, self->unit, x);
  } else {
    mp_solve_lower_d(n, l, self->unit, x);
  }
  mp_convert_run(&self->store, n, x, raw);
  mp_strided_init(&copy, (size_t)size);
  mp_strided_add_dim(&copy, n, step, size);
  mp_strided_finish(&copy);
  mp_strided_run(&copy, out, raw);
}

static mp_status_t triangular_solve_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const solve_kernel_t *self = (const solve_kernel_t *)kernel;
  int64_t begin = 0, end = 0, n = self->n, loaded = -1;
  mp_part_range(self->batch * self->vectors, kernel->num_parts, call->part, &begin, &end);
  int64_t size = (int64_t)mp_dtype_size(self->load.from), element_step = 0, vector_step = 0;
  triangular_solve_vector_steps(self, &element_step, &vector_step);
  // L is lower triangular without renumbering when a lower triangle is read by rows, or an upper
  // one by columns.
  bool backwards = self->upper != self->transposed;
  char *l = call->scratch, *x = l + n * n * self->wide_bytes, *raw = x + n * self->wide_bytes;
  for (int64_t v = begin; v < end; ++v) {
    int64_t batch = v / self->vectors;
    if (batch != loaded) {
      triangular_solve_load_matrix(self, (const char *)call->operands[0] + batch * n * n * size,
                                   backwards, raw, l);
      loaded = batch;
    }
    int64_t at = batch * n * self->vectors * size + v % self->vectors * vector_step;
    triangular_solve_vector(self, l, backwards, (const char *)call->operands[1] + at, raw, x,
                            (char *)call->results[0] + at);
  }
  return NULL;
}

mp_status_t mp_kernel_make_triangular_solve(mp_arena_t *arena, const mp_op_t *op,
                                            const mp_kernel_t **out_kernel) {
  const mp_type_t *a = mp_op_operand_type(op, 0), *b = mp_op_operand_type(op, 1);
  solve_kernel_t *self = MP_ARENA_NEW(arena, solve_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, triangular_solve_run, op);
  uint32_t transpose = mp_op_enum(op, MP_ATTR_TRANSPOSE_A, MP_TRANSPOSE_NO);
  self->left = mp_op_bool(op, MP_ATTR_LEFT_SIDE, true);
  self->unit = mp_op_bool(op, MP_ATTR_UNIT_DIAGONAL, false);
  self->upper = !mp_op_bool(op, MP_ATTR_LOWER, true);
  self->is_complex = mp_dtype_is_complex(a->dtype);
  // x * op(a) = b means op(a)^T * x^T = b^T.
  self->transposed =
      (transpose == MP_TRANSPOSE_YES || transpose == MP_TRANSPOSE_ADJOINT) == self->left;
  self->conjugated = transpose == MP_TRANSPOSE_ADJOINT && self->is_complex;
  self->n = a->dims[a->rank - 1];
  self->vectors = b->dims[b->rank - (self->left ? 1 : 2)];
  self->batch = mp_shape_count(b) == 0 ? 0 : mp_dims_product(a->dims, 0, a->rank - 2);
  if (self->batch == 0) self->n = self->vectors = 0;  // nothing to do: sizes that nothing bounds
  mp_dtype_t wide = self->is_complex ? MP_DTYPE_C128 : MP_DTYPE_F64;
  if (!mp_convert_bind(a->dtype, wide, &self->load) ||
      !mp_convert_bind(wide, a->dtype, &self->store)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "triangular_solve of %s", mp_dtype_name(a->dtype));
  }
  self->wide_bytes = (uint32_t)mp_dtype_size(wide);
  self->base.scratch_bytes = (size_t)((2 * self->n + 1) * self->n) * self->wide_bytes;
  int64_t vectors = self->batch * self->vectors;
  int64_t parts = mp_part_count(MP_WORK(vectors, self->n, self->n), GRAIN);
  // Every part reads the whole L, so each gets at least a few vectors.
  self->base.num_parts = (uint32_t)mp_clamp_i64(parts, 1, mp_max_i64(vectors / 8, 1));
  *out_kernel = &self->base;
  return NULL;
}
