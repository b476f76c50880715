// The custom calls of tridiagonal systems (linalg_makers.h): Gaussian elimination with
// partial pivoting, in complex doubles for all element types.
//
// A singular system gives NaN everywhere, as JAX does when LAPACK's gtsv reports an error. The
// perturbed form is for inverse iteration, where systems are singular except for rounding errors.
// It chooses pivots by their size relative to their rows and, like LAPACK's lagtf and lagts, moves
// a pivot away from zero only if a quotient would overflow otherwise.
#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "sim/kernels/elementwise/convert.h"
#include "sim/kernels/linalg/linalg.h"
#include "sim/kernels/linalg/linalg_makers.h"
#include "sim/kernels/shape.h"

enum { GRAIN = 1 << 14 };

typedef struct {
  mp_kernel_t base;
  int64_t batch, n, vectors;
  bool perturb;
  double epsilon, least;  // of the element type: the rounding unit, the smallest normal number
  size_t size;
  mp_convert_t load, store;
} tridiagonal_kernel_t;

// One system. below[i], diagonal[i] and above[i] are the elements of row i left of, on and right of
// the diagonal; second[i] is the element two right of it, which pivoting may make.
typedef struct {
  int64_t n, vectors;
  mp_complex_t *below, *diagonal, *above, *second, *b;  // b: [n, vectors]
} system_t;

// Subtracts `factor` times row i from row i + 1 on the right-hand side.
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

// Eliminates below[i + 1] by row i, after exchanging the two rows if requested.
static void tridiagonal_eliminate(const system_t *s, int64_t i, bool exchange) {
  mp_complex_t *below = s->below, *diagonal = s->diagonal, *above = s->above, factor = 0;
  if (exchange) {
    mp_complex_t kept = diagonal[i], right = above[i];
    diagonal[i] = below[i + 1];
    above[i] = diagonal[i + 1];
    if (i + 2 < s->n) s->second[i] = above[i + 1];
    tridiagonal_exchange_rows(s, i);
    factor = kept / diagonal[i];
    diagonal[i + 1] = right - factor * above[i];
    above[i + 1] = -factor * s->second[i];
  } else {
    factor = below[i + 1] / diagonal[i];
    diagonal[i + 1] -= factor * above[i];
  }
  tridiagonal_subtract_row(s, i, factor);
}

// Brings the system to upper triangular form; false when a pivot is zero.
static bool tridiagonal_factor(const system_t *s) {
  for (int64_t i = 0; i + 1 < s->n; ++i) {
    s->second[i] = 0;
    bool exchange = !(cabs(s->diagonal[i]) >= cabs(s->below[i + 1]));
    if (!exchange && s->diagonal[i] == 0) return false;
    tridiagonal_eliminate(s, i, exchange);
  }
  return s->diagonal[s->n - 1] != 0;
}

// The same with rows scaled to equal size; returns the size of the largest element of the result.
static double tridiagonal_factor_relative(const system_t *s) {
  double largest = 0, row = cabs(s->diagonal[0]) + cabs(s->above[0]);
  for (int64_t i = 0; i < s->n; ++i) {
    s->second[i] = 0;
    if (i + 1 < s->n) {
      double below = cabs(s->below[i + 1]);
      double next = below + cabs(s->diagonal[i + 1]) + cabs(s->above[i + 1]);
      double pivot = s->diagonal[i] == 0 ? 0 : cabs(s->diagonal[i]) / row;
      bool exchange = below != 0 && below / next > pivot;
      if (below != 0) tridiagonal_eliminate(s, i, exchange);
      row = exchange ? cabs(s->diagonal[i + 1]) + cabs(s->above[i + 1]) : next;
    }
    largest =
        fmax(largest, fmax(cabs(s->diagonal[i]), fmax(cabs(s->above[i]), cabs(s->second[i]))));
  }
  return largest;
}

// Moves pivot i away from zero, by steps that grow, until row i can be divided by it.
static void tridiagonal_raise_pivot(const system_t *s, int64_t i, double step, double least) {
  mp_complex_t *pivot = s->diagonal + i, *b = s->b + i * s->vectors;
  double size = cabs(*pivot), factor = 0;
  for (int64_t v = 0; v < s->vectors; ++v) factor = fmax(factor, cabs(b[v]));
  step = copysign(fmax(step, least), creal(*pivot));
  for (; size < 1 && (size == 0 || factor * least > size); size = cabs(*pivot)) {
    *pivot += step;
    step *= 2;
  }
}

// Substitutes backwards. `step` is how far pivots are moved at first if necessary; 0 leaves them as
// they are.
static void tridiagonal_substitute(const system_t *s, double step, double least) {
  for (int64_t i = s->n; i-- > 0;) {
    mp_complex_t *x = s->b + i * s->vectors;
    for (int64_t v = 0; v < s->vectors; ++v) {
      if (i + 1 < s->n) x[v] -= s->above[i] * x[v + s->vectors];
      if (i + 2 < s->n) x[v] -= s->second[i] * x[v + 2 * s->vectors];
    }
    if (step > 0) tridiagonal_raise_pivot(s, i, step, least);
    for (int64_t v = 0; v < s->vectors; ++v) x[v] /= s->diagonal[i];
  }
}

static void tridiagonal_solve(const tridiagonal_kernel_t *self, const system_t *s) {
  if (self->perturb) {
    double largest = tridiagonal_factor_relative(s);
    tridiagonal_substitute(s, fmax(self->epsilon * largest, self->least), self->least);
  } else if (tridiagonal_factor(s)) {
    tridiagonal_substitute(s, 0, 0);
  } else {
    for (int64_t i = 0; i < s->n * s->vectors; ++i) s->b[i] = (double)NAN;
  }
}

static mp_status_t tridiagonal_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const tridiagonal_kernel_t *self = (const tridiagonal_kernel_t *)kernel;
  int64_t begin = 0, end = 0, n = self->n, count = n * self->vectors;
  mp_part_range(self->batch, kernel->num_parts, call->part, &begin, &end);
  mp_complex_t *work = call->scratch;
  system_t s = {n, self->vectors, work, work + n, work + 2 * n, work + 3 * n, work + 4 * n};
  mp_complex_t *const diagonals[3] = {s.below, s.diagonal, s.above};
  for (int64_t b = begin; b < end; ++b) {
    for (int d = 0; d < 3; ++d) {
      const char *in = (const char *)call->operands[d] + (size_t)(b * n) * self->size;
      mp_convert_run(&self->load, n, in, diagonals[d]);
    }
    const char *in = (const char *)call->operands[3] + (size_t)(b * count) * self->size;
    mp_convert_run(&self->load, count, in, s.b);
    s.above[n - 1] = 0;
    tridiagonal_solve(self, &s);
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
                       "custom_call minipod.tridiagonal_solve takes three diagonals [..., n] and "
                       "right-hand sides [..., n, k]");
  }
  tridiagonal_kernel_t *self = MP_ARENA_NEW(arena, tridiagonal_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, tridiagonal_run, op);
  self->n = b->dims[b->rank - 2];
  self->vectors = b->dims[b->rank - 1];
  self->batch = mp_shape_count(b) == 0 ? 0 : mp_dims_product(b->dims, 0, b->rank - 2);
  if (self->batch == 0)
    self->n = self->vectors = 0;  // nothing to do, and sizes may be too large
                                  // to count with
  self->perturb = perturb;
  bool wide = mp_dtype_real_part(b->dtype) == MP_DTYPE_F64;
  self->epsilon = wide ? DBL_EPSILON : FLT_EPSILON;
  self->least = wide ? DBL_MIN : FLT_MIN;
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
