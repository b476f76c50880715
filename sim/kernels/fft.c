// fft (StableHLO spec, "fft"): FFT, IFFT, RFFT and IRFFT over the last one to three dimensions.
//
// A group of transforms is converted to doubles, real and imaginary parts apart, transformed one
// dimension after the other, LINES lines at a time, and converted back.
#include <string.h>

#include "sim/kernels/fft_plan.h"
#include "sim/kernels/makers.h"
#include "sim/kernels/shape.h"

enum { MAX_DIMS = 3, LINES = 8, GRAIN = 1 << 15 };

typedef struct {
  mp_kernel_t base;
  bool inverse, real_in, real_out, is_double;
  uint32_t rank;           // transformed dimensions
  int64_t dims[MAX_DIMS];  // the transform's lengths
  int64_t half;            // elements of the last dimension on the complex side
  int64_t count;           // product of dims
  int64_t batch;           // transforms
  int64_t group;           // transforms that are held at once
  double scale;
  const mp_fft_plan_t *plans[MAX_DIMS];
} fft_kernel_t;

// --- In and out ---

// Rows of the last dimension: `count` rows of `in_row` elements, each at the head of a row of
// dims[rank - 1] doubles.
static void load_rows(const fft_kernel_t *self, const void *src, int64_t count, int64_t in_row,
                      double *re, double *im) {
  int64_t row = self->dims[self->rank - 1];
  for (int64_t r = 0; r < count; ++r, re += row, im += row) {
    if (self->real_in) {
      for (int64_t i = 0; i < in_row; ++i) {
        int64_t at = r * in_row + i;
        re[i] = self->is_double ? ((const double *)src)[at] : (double)((const float *)src)[at];
        im[i] = 0;
      }
      continue;
    }
    for (int64_t i = 0; i < in_row; ++i) {
      int64_t at = 2 * (r * in_row + i);
      if (self->is_double) {
        re[i] = ((const double *)src)[at];
        im[i] = ((const double *)src)[at + 1];
      } else {
        re[i] = (double)((const float *)src)[at];
        im[i] = (double)((const float *)src)[at + 1];
      }
    }
  }
}

static void store_rows(const fft_kernel_t *self, void *dst, int64_t count, int64_t out_row,
                       const double *re, const double *im) {
  int64_t row = self->dims[self->rank - 1];
  double scale = self->scale;
  for (int64_t r = 0; r < count; ++r, re += row, im += row) {
    if (self->real_out) {
      for (int64_t i = 0; i < out_row; ++i) {
        int64_t at = r * out_row + i;
        if (self->is_double) {
          ((double *)dst)[at] = re[i] * scale;
        } else {
          ((float *)dst)[at] = (float)(re[i] * scale);
        }
      }
      continue;
    }
    for (int64_t i = 0; i < out_row; ++i) {
      int64_t at = 2 * (r * out_row + i);
      if (self->is_double) {
        ((double *)dst)[at] = re[i] * scale;
        ((double *)dst)[at + 1] = im[i] * scale;
      } else {
        ((float *)dst)[at] = (float)(re[i] * scale);
        ((float *)dst)[at + 1] = (float)(im[i] * scale);
      }
    }
  }
}

// The other half of rows whose transform is real: X[n - i] is the conjugate of X[i].
static void mirror_rows(const fft_kernel_t *self, int64_t count, double *re, double *im) {
  int64_t n = self->dims[self->rank - 1];
  for (int64_t r = 0; r < count; ++r, re += n, im += n) {
    im[0] = 0;
    if (n % 2 == 0) im[n / 2] = 0;
    for (int64_t i = 1; i < (n + 1) / 2; ++i) {
      re[n - i] = re[i];
      im[n - i] = -im[i];
    }
  }
}

// --- Lines ---

typedef struct {
  double *re, *im;  // lines side by side
  double *scratch;  // the plan's
} lines_t;

static void run_lines(const fft_kernel_t *self, const mp_fft_plan_t *plan, int64_t lines,
                      const lines_t *work) {
  if (self->inverse) {
    mp_fft_run(plan, lines, work->im, work->re, work->scratch);
  } else {
    mp_fft_run(plan, lines, work->re, work->im, work->scratch);
  }
}

// Transforms dimension `dim` of an array [outer, n, inner]; only the first `used` of `inner`.
static void run_dim(const fft_kernel_t *self, uint32_t dim, int64_t outer, int64_t inner,
                    int64_t used, double *re, double *im, const lines_t *work) {
  int64_t n = self->dims[dim], total = outer * used;
  for (int64_t first = 0; first < total; first += LINES) {
    int64_t lines = mp_min_i64(LINES, total - first);
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t l = 0; l < lines; ++l) {
        int64_t at = (first + l) / used * n * inner + (first + l) % used;
        for (int64_t i = 0; i < n; ++i) {
          double *r = &re[at + i * inner], *c = &im[at + i * inner];
          double *lr = &work->re[i * lines + l], *lc = &work->im[i * lines + l];
          if (pass == 0) {
            *lr = *r;
            *lc = *c;
          } else {
            *r = *lr;
            *c = *lc;
          }
        }
      }
      if (pass == 0) run_lines(self, self->plans[dim], lines, work);
    }
  }
}

// All dimensions of `group` transforms.
static void run_group(const fft_kernel_t *self, int64_t group, double *re, double *im,
                      const lines_t *work) {
  uint32_t last = self->rank - 1;
  int64_t used = self->real_in || self->real_out ? self->half : self->dims[last];
  int64_t rows = group * self->count / self->dims[last];
  if (!self->real_out) run_dim(self, last, rows, 1, 1, re, im, work);
  int64_t outer = group, inner = self->count;
  for (uint32_t d = 0; d < last; ++d) {
    inner /= self->dims[d];
    // Columns of the last dimension beyond `used` are not part of the result.
    if (used == self->dims[last] || inner == self->dims[last]) {
      run_dim(self, d, outer, inner, used == self->dims[last] ? inner : used, re, im, work);
    } else {
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = 0; i < inner; i += self->dims[last]) {
          int64_t at = o * self->dims[d] * inner + i;
          run_dim(self, d, 1, inner, used, re + at, im + at, work);
        }
      }
    }
    outer *= self->dims[d];
  }
  if (self->real_out) {
    mirror_rows(self, rows, re, im);
    run_dim(self, last, rows, 1, 1, re, im, work);
  }
}

static mp_status_t fft_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const fft_kernel_t *self = (const fft_kernel_t *)kernel;
  int64_t begin = 0, end = 0;
  mp_part_range(self->batch, kernel->num_parts, call->part, &begin, &end);
  int64_t last = self->dims[self->rank - 1], rows = self->count / last, longest = 0;
  for (uint32_t d = 0; d < self->rank; ++d) longest = mp_max_i64(longest, self->dims[d]);
  int64_t in_row = self->real_out ? self->half : last;
  int64_t out_row = self->real_in ? self->half : last;
  int64_t size = self->is_double ? 8 : 4;
  int64_t in_bytes = rows * in_row * size * (self->real_in ? 1 : 2);
  int64_t out_bytes = rows * out_row * size * (self->real_out ? 1 : 2);
  double *re = call->scratch, *im = re + self->group * self->count;
  lines_t work = {.re = im + self->group * self->count};
  work.im = work.re + LINES * longest;
  work.scratch = work.im + LINES * longest;
  for (int64_t b = begin; b < end; b += self->group) {
    int64_t group = mp_min_i64(self->group, end - b);
    load_rows(self, (const char *)call->operands[0] + b * in_bytes, group * rows, in_row, re, im);
    run_group(self, group, re, im, &work);
    store_rows(self, (char *)call->results[0] + b * out_bytes, group * rows, out_row, re, im);
  }
  return NULL;
}

// Nothing goes in: whatever comes out is zero.
static mp_status_t fft_empty_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  size_t bytes = (size_t)mp_shape_bytes(mp_op_result_type(kernel->op, 0));
  if (bytes > 0) memset(call->results[0], 0, bytes);
  return NULL;
}

static mp_status_t fft_plan(mp_arena_t *arena, fft_kernel_t *self) {
  int64_t longest = 0, scratch = 0;
  self->count = 1;
  for (uint32_t d = 0; d < self->rank; ++d) {
    self->count *= self->dims[d];
    longest = mp_max_i64(longest, self->dims[d]);
    for (uint32_t e = 0; e < d; ++e) {
      if (self->dims[e] == self->dims[d]) self->plans[d] = self->plans[e];
    }
    if (self->plans[d] == NULL) {
      MP_RETURN_IF_ERROR(mp_fft_plan_create(arena, self->dims[d], &self->plans[d]));
    }
    scratch = mp_max_i64(scratch, mp_fft_plan_scratch(self->plans[d]));
  }
  self->half = self->dims[self->rank - 1] / 2 + 1;
  self->scale = self->inverse ? 1.0 / (double)self->count : 1.0;
  self->group = self->rank == 1 ? mp_min_i64(LINES, mp_max_i64(self->batch, 1)) : 1;
  self->base.scratch_bytes =
      (size_t)(2 * self->group * self->count + LINES * (2 * longest + scratch)) * sizeof(double);
  int64_t parts = mp_part_count(self->batch * self->count, GRAIN);
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
  return fft_plan(arena, self);
}
