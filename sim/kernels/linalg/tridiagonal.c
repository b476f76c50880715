// The custom calls of tridiagonal systems (sim/kernels/custom_call.h): Gaussian elimination with
// partial pivoting, in complex doubles for all element types.
#include <complex.h>
#include <math.h>
#include <string.h>

#include "sim/kernels/custom_call.h"
#include "sim/kernels/elementwise/convert.h"
#include "sim/kernels/linalg/linalg.h"
#include "sim/kernels/shape.h"

enum { GRAIN = 1 << 14 };

typedef struct {
  mp_kernel_t base;
  int64_t batch, n, vectors;
  bool perturb;
  double epsilon;  // of the element type
  size_t size;
  mp_convert_t load, store;
} tridiagonal_kernel_t;

// One system: below[i], diagonal[i], above[i] are row i's elements left of, on and right of the
// diagonal; second gets those that pivoting puts two right of it.
typedef struct {
  int64_t n, vectors;
  mp_complex_t *below, *diagonal, *above, *second, *b;  // b: [n, vectors]
  double least;                                         // smaller pivots are raised to it
} system_t;

// Row i + 1 minus `factor` times row i, right-hand sides.
static void tridiagonal_subtract_row(const system_t *s, int64_t i, mp_complex_t factor) {
  mp_complex_t *from = s->b + i * s->vectors, *to = from + s->vectors;
  for (int64_t v = 0; v < s->vectors; ++v) to[v] -= factor * from[v];
}

static void tridiagonal_exchange_rows(const system_t *s, int64_t i) {
  mp_complex_t *p = s->b + i * s->vectors, *q = p + s->vectors;
  for (int64_t v = 0; v < s->vectors; ++v) {
    mp_complex_t kept = p[v];
    p[v] = q[v];
    q[v] = kept;
  }
}

static void tridiagonal_raise_pivot(const system_t *s, int64_t i) {
  if (cabs(s->diagonal[i]) < s->least) s->diagonal[i] = s->least;
}

// A zero pivot gives infinities and NaN, as the division has it.
static void tridiagonal_solve(const system_t *s) {
  mp_complex_t *below = s->below, *diagonal = s->diagonal, *above = s->above;
  for (int64_t i = 0; i + 1 < s->n; ++i) {
    s->second[i] = 0;
    if (cabs(diagonal[i]) < cabs(below[i + 1])) {
      mp_complex_t kept = diagonal[i], right = above[i];
      diagonal[i] = below[i + 1];
      above[i] = diagonal[i + 1];
      if (i + 2 < s->n) s->second[i] = above[i + 1];
      tridiagonal_exchange_rows(s, i);
      mp_complex_t factor = kept / diagonal[i];
      diagonal[i + 1] = right - factor * above[i];
      above[i + 1] = -factor * s->second[i];
      tridiagonal_subtract_row(s, i, factor);
    } else {
      tridiagonal_raise_pivot(s, i);
      mp_complex_t factor = below[i + 1] / diagonal[i];
      diagonal[i + 1] -= factor * above[i];
      tridiagonal_subtract_row(s, i, factor);
    }
  }
  tridiagonal_raise_pivot(s, s->n - 1);
  for (int64_t i = s->n; i-- > 0;) {
    for (int64_t v = 0; v < s->vectors; ++v) {
      mp_complex_t *x = s->b + i * s->vectors + v;
      if (i + 1 < s->n) *x -= above[i] * x[s->vectors];
      if (i + 2 < s->n) *x -= s->second[i] * x[2 * s->vectors];
      *x /= diagonal[i];
    }
  }
}

static mp_status_t tridiagonal_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const tridiagonal_kernel_t *self = (const tridiagonal_kernel_t *)kernel;
  int64_t begin = 0, end = 0, n = self->n, count = n * self->vectors;
  mp_part_range(self->batch, kernel->num_parts, call->part, &begin, &end);
  mp_complex_t *work = call->scratch;
  system_t s = {n, self->vectors, work, work + n, work + 2 * n, work + 3 * n, work + 4 * n, 0};
  mp_complex_t *const diagonals[3] = {s.below, s.diagonal, s.above};
  for (int64_t b = begin; b < end; ++b) {
    double largest = 0;
    for (int d = 0; d < 3; ++d) {
      const char *in = (const char *)call->operands[d] + (size_t)(b * n) * self->size;
      mp_convert_run(&self->load, n, in, diagonals[d]);
      for (int64_t i = 0; i < n; ++i) largest = fmax(largest, cabs(diagonals[d][i]));
    }
    if (self->perturb) s.least = self->epsilon * (largest > 0 ? largest : 1);
    const char *in = (const char *)call->operands[3] + (size_t)(b * count) * self->size;
    mp_convert_run(&self->load, count, in, s.b);
    s.above[n - 1] = 0;
    tridiagonal_solve(&s);
    mp_convert_run(&self->store, count, s.b,
                   (char *)call->results[0] + (size_t)(b * count) * self->size);
  }
  return NULL;
}

static mp_status_t tridiagonal_make(mp_arena_t *arena, const mp_op_t *op, bool perturb,
                                    const mp_kernel_t **out_kernel) {
  bool fits = op->num_operands == 4 && op->num_results == 1;
  const mp_type_t *b = fits ? mp_op_operand_type(op, 3) : NULL;
  fits = fits && mp_type_is_static(b) && b->rank >= 2 && mp_type_equal(b, mp_op_result_type(op, 0));
  for (uint32_t d = 0; fits && d < 3; ++d) {
    const mp_type_t *type = mp_op_operand_type(op, d);
    fits = mp_type_is_static(type) && type->rank == b->rank - 1 && type->dtype == b->dtype &&
           memcmp(type->dims, b->dims, type->rank * sizeof(int64_t)) == 0;
  }
  if (!fits) {
    return mp_op_error(op, MP_INVALID_ARGUMENT,
                       "custom_call minipod.tridiagonal_solve wants three diagonals [..., n] and "
                       "right-hand sides [..., n, k]");
  }
  tridiagonal_kernel_t *self = MP_ARENA_NEW(arena, tridiagonal_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, tridiagonal_run, op);
  self->n = b->dims[b->rank - 2];
  self->vectors = b->dims[b->rank - 1];
  self->batch = mp_shape_count(b) == 0 ? 0 : mp_dims_product(b->dims, 0, b->rank - 2);
  self->perturb = perturb;
  self->epsilon = mp_dtype_real_part(b->dtype) == MP_DTYPE_F64 ? 0x1p-52 : 0x1p-23;
  self->size = mp_dtype_size(b->dtype);
  if (!mp_convert_bind(b->dtype, MP_DTYPE_C128, &self->load) ||
      !mp_convert_bind(MP_DTYPE_C128, b->dtype, &self->store)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "tridiagonal systems of %s", mp_dtype_name(b->dtype));
  }
  self->base.scratch_bytes = (size_t)(self->n * (4 + self->vectors)) * sizeof(mp_complex_t);
  int64_t parts = mp_part_count(mp_shape_count(b), GRAIN);
  self->base.num_parts = (uint32_t)mp_clamp_i64(parts, 1, mp_max_i64(self->batch, 1));
  *out_kernel = &self->base;
  return NULL;
}

mp_status_t mp_call_make_tridiagonal_solve(mp_arena_t *arena, const mp_op_t *op,
                                           const mp_kernel_t **out_kernel) {
  return tridiagonal_make(arena, op, false, out_kernel);
}

mp_status_t mp_call_make_tridiagonal_solve_perturbed(mp_arena_t *arena, const mp_op_t *op,
                                                     const mp_kernel_t **out_kernel) {
  return tridiagonal_make(arena, op, true, out_kernel);
}
