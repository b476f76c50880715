// fft (StableHLO specification, "fft"): FFT, IFFT, RFFT and IRFFT over one dimension. A transform
// over several dimensions is one op for each (sim/passes/transforms.c), the complex ones in place.
//
// LINES lines are transformed together, side by side, with real and imaginary parts apart.
#include <string.h>

#include "sim/base/vector.h"
#include "sim/kernels/fft/fft_makers.h"
#include "sim/kernels/fft/fft_plan.h"
#include "sim/kernels/fft/fft_tiles.h"
#include "sim/kernels/shape.h"

enum { LINES = 16, GRAIN = 1 << 15 };
// Longer lines are refused, because they would need gigabytes of tables at compile time.
enum { MAX_LENGTH = 1 << 24 };

typedef struct {
  mp_kernel_t base;
  bool inverse, real_in, real_out, is_double;
  int64_t n;      // the length of a line
  int64_t outer;  // the array is [outer, n, inner]: outer * inner lines
  int64_t inner;
  int64_t half;   // the values on the complex side of a line if the other side is real; else 0
  int64_t lines;  // the most lines that are transformed together
  double scale;
  const mp_fft_plan_t *plan;  // for half the length, if half_roots is set
  const void *half_roots;     // exp(-2 pi i k / n), when the line is real and even
} fft_kernel_t;

#define R    float
#define F(x) x##_f
#include "sim/kernels/fft/fft_lines_template.h"
#undef R
#undef F
#define R    double
#define F(x) x##_d
#include "sim/kernels/fft/fft_lines_template.h"

static mp_status_t fft_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const fft_kernel_t *self = (const fft_kernel_t *)kernel;
  const int64_t lines = self->outer * self->inner;
  int64_t begin = 0, end = 0;
  mp_part_range((lines + LINES - 1) / LINES, kernel->num_parts, call->part, &begin, &end);
  for (int64_t b = begin; b < end; ++b) {
    const int64_t first = b * LINES, count = mp_min_i64(LINES, lines - first);
    if (self->is_double) {
      run_block_d(self, first, count, call->operands[0], call->results[0], call->scratch);
    } else {
      run_block_f(self, first, count, call->operands[0], call->results[0], call->scratch);
    }
  }
  return NULL;
}

// For a transform without input elements: all results are zero.
static mp_status_t fft_empty_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  size_t bytes = (size_t)mp_shape_bytes(mp_op_result_type(kernel->op, 0));
  if (bytes > 0) memset(call->results[0], 0, bytes);
  return NULL;
}

static mp_status_t fft_plan(mp_arena_t *arena, fft_kernel_t *self) {
  const int64_t n = self->n, lines = self->outer * self->inner;
  const bool is_real = self->real_in || self->real_out, halved = is_real && n % 2 == 0;
  MP_RETURN_IF_ERROR(mp_fft_plan_create(arena, halved ? n / 2 : n, self->is_double, &self->plan));
  if (halved) {
    MP_RETURN_IF_ERROR(mp_fft_roots(arena, n, n / 2 + 1, self->is_double, &self->half_roots));
  }
  self->half = is_real ? n / 2 + 1 : 0;
  self->lines = mp_min_i64(LINES, lines);
  self->scale = self->inverse ? 1.0 / (double)n : 1.0;
  self->base.scratch_bytes =
      (size_t)(self->lines * (2 * n + 2 * self->half + mp_fft_plan_scratch(self->plan))) *
      (self->is_double ? sizeof(double) : sizeof(float));
  const int64_t parts = mp_part_count(MP_WORK(lines, n, 1), GRAIN);
  self->base.num_parts = (uint32_t)mp_clamp_i64(parts, 1, (lines + LINES - 1) / LINES);
  // A part reads all of its lines before it writes them.
  if (!is_real) self->base.in_place = 1;
  return NULL;
}

mp_status_t mp_kernel_make_fft(mp_arena_t *arena, const mp_op_t *op,
                               const mp_kernel_t **out_kernel) {
  const mp_type_t *in = mp_op_operand_type(op, 0), *out = mp_op_result_type(op, 0);
  const mp_index_list_t lengths = mp_op_ints(op, MP_ATTR_FFT_LENGTH);
  const uint32_t type = mp_op_enum(op, MP_ATTR_FFT_TYPE, MP_FFT_FFT);
  const uint32_t dim = in->rank - 1 - (uint32_t)mp_op_int(op, MP_ATTR_KEPT, 0);
  const mp_dtype_t real = mp_dtype_real_part(in->dtype);
  fft_kernel_t *self = MP_ARENA_NEW(arena, fft_kernel_t);
  MP_RETURN_IF_NULL(self);
  bool empty = mp_shape_count(in) == 0 || mp_shape_count(out) == 0;
  for (uint32_t d = 0; d < lengths.count; ++d) empty |= lengths.values[d] == 0;
  mp_kernel_init(&self->base, empty ? fft_empty_run : fft_run, op);
  *out_kernel = &self->base;
  if (empty) return NULL;
  if (lengths.count != 1 || (real != MP_DTYPE_F32 && real != MP_DTYPE_F64)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "fft of %u dimensions of %s", lengths.count,
                       mp_dtype_name(in->dtype));
  }
  self->n = lengths.values[0];
  if (self->n > MAX_LENGTH) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "fft of %lld points; at most %d are supported",
                       (long long)self->n, MAX_LENGTH);
  }
  self->inverse = type == MP_FFT_IFFT || type == MP_FFT_IRFFT;
  self->real_in = type == MP_FFT_RFFT;
  self->real_out = type == MP_FFT_IRFFT;
  self->is_double = real == MP_DTYPE_F64;
  self->outer = mp_dims_product(in->dims, 0, dim);
  self->inner = mp_dims_product(in->dims, dim + 1, in->rank);
  return fft_plan(arena, self);
}
