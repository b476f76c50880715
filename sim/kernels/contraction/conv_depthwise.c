// Depthwise convolutions in f32 and f64 whose features are contiguous. They are not matmuls: each
// adds up products of whole rows of features.
#include "sim/kernels/contraction/convolution.h"
#include "sim/kernels/flush.h"
#include "sim/kernels/loops.h"
#include "sim/kernels/shape.h"

// FEATURES: the features whose sums stay in registers. MAX_WINDOW: the largest window. GRAIN: the
// products that are worth a part.
enum { FEATURES = 64, MAX_WINDOW = 256, GRAIN = 1 << 19 };

// out[i] = sum over w of in[offsets[w] + i] * kernel[w * kernel_step + i]; padding has offset -1.
#define DEPTHWISE(T)                                                           \
  MP_VECTOR static void sum_##T(int64_t count, int64_t window, const char *in, \
                                const int64_t *offsets, const char *kernel,    \
                                const int64_t *kernel_offsets, void *out_) {   \
    T sums[FEATURES] = {0};                                                    \
    T *out = out_;                                                             \
    for (int64_t w = 0; w < window; ++w) {                                     \
      if (offsets[w] < 0) continue;                                            \
      const T *x = (const T *)(const void *)(in + offsets[w]);                 \
      const T *k = (const T *)(const void *)(kernel + kernel_offsets[w]);      \
      if (count == FEATURES) {                                                 \
        for (int i = 0; i < FEATURES; ++i) sums[i] += x[i] * k[i];             \
      } else {                                                                 \
        for (int64_t i = 0; i < count; ++i) sums[i] += x[i] * k[i];            \
      }                                                                        \
    }                                                                          \
    for (int64_t i = 0; i < count; ++i) out[i] = sums[i];                      \
  }
DEPTHWISE(float)
DEPTHWISE(double)

bool mp_conv_is_depthwise(const mp_conv_kernel_t *self, int64_t groups) {
  int64_t size = self->element;
  return groups > 1 && !self->complex && self->features.count == 1 &&
         self->out_features.count == 1 && self->gemm.acc <= MP_ACC_F64 &&
         mp_convert_is_copy(&self->convert) && mp_convert_is_copy(&self->kernel.convert) &&
         mp_convert_is_copy(&self->store) && self->input_group_stride == size &&
         self->output_group_stride == size && self->kernel.k.count <= MAX_WINDOW &&
         self->kernel.batch.rank == 1 && self->kernel.batch.strides[0] == size;
}

static void conv_depthwise_run_position(const mp_conv_kernel_t *self, const mp_kernel_call_t *call,
                                        const int64_t *offsets, const int64_t *kernel_offsets,
                                        int64_t out) {
  int64_t window = self->kernel.k.count, features = self->kernel.batch.count;
  const char *in = call->operands[0];
  const char *kernel = (const char *)call->operands[1] + self->kernel_offset;
  char *to = (char *)call->results[0] + out;
  const unsigned before = mp_flush_begin();
  for (int64_t f = 0; f < features; f += FEATURES) {
    int64_t count = mp_min_i64(FEATURES, features - f), at = f * self->element;
    if (self->gemm.acc == MP_ACC_F32) {
      sum_float(count, window, in + at, offsets, kernel + at, kernel_offsets, to + at);
    } else {
      sum_double(count, window, in + at, offsets, kernel + at, kernel_offsets, to + at);
    }
  }
  mp_flush_end(before);
}

// Runs one part of such a convolution (mp_kernel_run_t).
static mp_status_t conv_depthwise_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const mp_conv_kernel_t *self = (const mp_conv_kernel_t *)kernel;
  int64_t begin = 0, end = 0, window = self->kernel.k.count;
  mp_part_range(self->out_positions.count, kernel->num_parts, call->part, &begin, &end);
  int64_t offsets[MAX_WINDOW], kernel_offsets[MAX_WINDOW], at[MP_MAX_RANK];
  mp_axes_offsets(&self->kernel.k, 0, window, kernel_offsets);
  for (int64_t p = begin; p < end; ++p) {
    mp_patch_row_t row;
    int64_t out = 0;
    mp_conv_rows(self, p, 1, &row);
    for (int64_t w = 0; w < window; ++w) {
      int64_t rest = w;
      for (uint32_t d = self->num_spatial; d-- > 0;) {
        at[d] = rest % self->window[d].window;
        rest /= self->window[d].window;
      }
      offsets[w] = mp_conv_offset(self, &row, at, self->num_spatial);
    }
    mp_axes_offsets(&self->out_positions, p, 1, &out);
    conv_depthwise_run_position(self, call, offsets, kernel_offsets, out);
  }
  return NULL;
}

void mp_conv_depthwise_plan(mp_conv_kernel_t *self) {
  self->base.run = conv_depthwise_run;
  int64_t positions = self->out_positions.count, features = self->kernel.batch.count;
  int64_t parts = mp_part_count(MP_WORK(positions, features, self->kernel.k.count), GRAIN);
  self->base.num_parts = (uint32_t)mp_clamp_i64(parts, 1, mp_max_i64(positions, 1));
}
