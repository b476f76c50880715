// fft (StableHLO specification, "fft"): FFT, IFFT, RFFT and IRFFT over the last one to three
// dimensions.
//
// The dimensions are transformed one after the other, LINES lines at a time, in an array that holds
// real and imaginary parts separately.
#include <string.h>

#include "sim/base/vector.h"
#include "sim/kernels/fft/fft_plan.h"
#include "sim/kernels/kernel_makers.h"
#include "sim/kernels/shape.h"

enum { MAX_DIMS = 3, LINES = 16, GRAIN = 1 << 15 };
// Longer lines are refused, because they would need gigabytes of tables at compile time.
enum { MAX_LENGTH = 1 << 24 };

typedef struct {
  mp_kernel_t base;
  bool inverse, real_in, real_out, is_double;
  uint32_t rank;           // the number of dimensions that are transformed
  int64_t dims[MAX_DIMS];  // their lengths
  int64_t longest;         // the largest of dims
  int64_t half;            // the values of the last dimension that are stored if one side is real
  int64_t rows;            // the product of all dims but the last
  int64_t complex_count;   // the elements of one transform on its complex side
  int64_t batch;           // the number of transforms
  int64_t group;           // the number of transforms that are in memory at once
  double scale;
  const mp_fft_plan_t *plans[MAX_DIMS];  // the last one for half the length, if half_roots is set
  const void *half_roots;  // exp(-2 pi i k / n), when the last dimension is real and even
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
  int64_t begin = 0, end = 0;
  mp_part_range(self->batch, kernel->num_parts, call->part, &begin, &end);
  int64_t size = self->is_double ? 8 : 4, full = self->rows * self->dims[self->rank - 1];
  int64_t in_bytes = size * (self->real_in ? full : 2 * self->complex_count);
  int64_t out_bytes = size * (self->real_out ? full : 2 * self->complex_count);
  for (int64_t b = begin; b < end; b += self->group) {
    int64_t group = mp_min_i64(self->group, end - b);
    const char *src = (const char *)call->operands[0] + b * in_bytes;
    char *dst = (char *)call->results[0] + b * out_bytes;
    if (self->is_double) {
      run_group_d(self, group, src, dst, call->scratch);
    } else {
      run_group_f(self, group, src, dst, call->scratch);
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
  int64_t scratch = 0, count = 1;
  for (uint32_t d = 0; d < self->rank; ++d) {
    count *= self->dims[d];
    self->longest = mp_max_i64(self->longest, self->dims[d]);
    bool halved =
        d == self->rank - 1 && (self->real_in || self->real_out) && self->dims[d] % 2 == 0;
    for (uint32_t e = 0; e < d && !halved; ++e) {
      if (self->dims[e] == self->dims[d]) self->plans[d] = self->plans[e];
    }
    if (self->plans[d] == NULL) {
      MP_RETURN_IF_ERROR(mp_fft_plan_create(arena, halved ? self->dims[d] / 2 : self->dims[d],
                                            self->is_double, &self->plans[d]));
    }
    if (halved) {
      MP_RETURN_IF_ERROR(mp_fft_roots(arena, self->dims[d], self->dims[d] / 2 + 1, self->is_double,
                                      &self->half_roots));
    }
    scratch = mp_max_i64(scratch, mp_fft_plan_scratch(self->plans[d]));
  }
  int64_t last = self->dims[self->rank - 1];
  self->half = last / 2 + 1;
  self->rows = count / last;
  self->complex_count = self->rows * (self->real_in || self->real_out ? self->half : last);
  self->scale = self->inverse ? 1.0 / (double)count : 1.0;
  self->group = self->rank == 1 ? mp_clamp_i64(self->batch, 1, 2 * LINES) : 1;
  self->base.scratch_bytes =
      (size_t)(2 * self->group * self->complex_count + LINES * (2 * self->longest + scratch)) *
      (self->is_double ? sizeof(double) : sizeof(float));
  int64_t parts = mp_part_count(self->batch * count, GRAIN);
  self->base.num_parts = (uint32_t)mp_clamp_i64(parts, 1, mp_max_i64(self->batch, 1));
  return NULL;
}

mp_status_t mp_kernel_make_fft(mp_arena_t *arena, const mp_op_t *op,
                               const mp_kernel_t **out_kernel) {
  const mp_type_t *in = mp_op_operand_type(op, 0), *out = mp_op_result_type(op, 0);
  mp_index_list_t lengths = mp_op_ints(op, MP_ATTR_FFT_LENGTH);
  uint32_t type = mp_op_enum(op, MP_ATTR_FFT_TYPE, MP_FFT_FFT);
  fft_kernel_t *self = MP_ARENA_NEW(arena, fft_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_dtype_t real = mp_dtype_real_part(in->dtype);
  if (lengths.count < 1 || lengths.count > MAX_DIMS ||
      (real != MP_DTYPE_F32 && real != MP_DTYPE_F64)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "fft of %u dimensions of %s", lengths.count,
                       mp_dtype_name(in->dtype));
  }
  bool empty = mp_shape_count(in) == 0 || mp_shape_count(out) == 0;
  for (uint32_t d = 0; d < lengths.count; ++d) empty |= lengths.values[d] == 0;
  mp_kernel_init(&self->base, empty ? fft_empty_run : fft_run, op);
  *out_kernel = &self->base;
  if (empty) return NULL;
  self->inverse = type == MP_FFT_IFFT || type == MP_FFT_IRFFT;
  self->real_in = type == MP_FFT_RFFT;
  self->real_out = type == MP_FFT_IRFFT;
  self->is_double = real == MP_DTYPE_F64;
  self->rank = lengths.count;
  for (uint32_t d = 0; d < self->rank; ++d) self->dims[d] = lengths.values[d];
  self->batch = mp_dims_product(in->dims, 0, in->rank - self->rank);
  for (uint32_t d = 0; d < self->rank; ++d) {
    if (self->dims[d] > MAX_LENGTH) {
      return mp_op_error(op, MP_UNIMPLEMENTED, "fft of %lld points; at most %d are supported",
                         (long long)self->dims[d], MAX_LENGTH);
    }
  }
  return fft_plan(arena, self);
}
