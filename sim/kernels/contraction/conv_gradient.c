// Convolutions that compute the gradient of a kernel. Their windows are as large as the images of a
// batch, so they have few positions. Neighbouring positions are channels of the input, and
// neighbouring columns are features of the result.
//
// Both sides are read in place: packing windows as rows of A would copy each pixel once for every
// position of the window. For one position and one row of the window, a line of the input (a column
// of A for each pixel) is multiplied with a line of the kernel (a row of B for each pixel).
#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/contraction/convolution.h"
#include "sim/kernels/shape.h"

// The multiplications that are worth a part.
#define GRAIN ((int64_t)1 << 20)
// VECTOR: a number of columns that is a multiple of any machine's vectors, because the method must
// not depend on the machine. BLOCK_...: channels and columns of the result that are computed
// together; they stay in the cache while lines are added to them. MOST_OF_SHORT: the most elements
// of the result per position of the window if lines are short.
enum { VECTOR = 16, BLOCK_CHANNELS = 42, BLOCK_COLUMNS = 128, MOST_OF_SHORT = 128 * 128 };

static const mp_position_dim_t *conv_gradient_channels(const mp_conv_kernel_t *self) {
  return &self->positions[self->num_positions - 1];
}

bool mp_conv_is_gradient(const mp_conv_kernel_t *self) {
  if (self->complex || self->swapped || self->num_spatial == 0 || self->gemm.batch != 1) {
    return false;
  }
  if (!mp_convert_is_copy(&self->convert) || !mp_convert_is_copy(&self->kernel.convert) ||
      !mp_convert_is_copy(&self->store)) {
    return false;
  }
  const int64_t n = self->gemm.n, size = self->acc_bytes;
  if (n == 0 || n % VECTOR != 0 || self->gemm.k == 0 || self->gemm.m == 0) return false;
  int64_t step = 0;
  if (!mp_axes_step(&self->out_features, &step) || step != size ||
      !mp_axes_step(&self->kernel.rows, &step) || step != size) {
    return false;
  }
  for (uint32_t d = 0; d < self->num_spatial; ++d) {
    if (self->window[d].lhs_dilation != 1) return false;
  }
  const mp_position_dim_t *channels = conv_gradient_channels(self);
  if (channels->spatial >= 0 || self->batch_stride != size) return false;
  // Adding a line reads and writes a whole block, so short lines pay only if the result stays in
  // the cache.
  const int64_t line = self->window[self->num_spatial - 1].window;
  return line >= 16 || (line >= 4 && channels->extent * n <= MOST_OF_SHORT);
}

// A block of the result: channels [begin, end) of the input and some columns, for one position of
// the window.
typedef struct {
  const mp_conv_kernel_t *self;
  char *out;  // of channel `begin`
  int64_t begin, end, columns;
  int64_t origin[MP_MAX_RANK];  // of the window, in the input
  bool accumulates;             // `out` already has a sum
} gradient_t;

// The pixels [first, last) of the window, in one dimension, that are inside of the input.
static void conv_gradient_range(const mp_conv_dim_t *dim, int64_t origin, int64_t *out_first,
                                int64_t *out_last) {
  const int64_t by = dim->rhs_dilation;
  const int64_t first = origin >= 0 ? 0 : (by - 1 - origin) / by;
  const int64_t last = origin >= dim->input ? 0 : (dim->input - 1 - origin) / by + 1;
  *out_first = mp_min_i64(first, dim->window);
  *out_last = mp_clamp_i64(last, *out_first, dim->window);
}

// Adds the products of one line of the window: those of its last dimension.
static void conv_gradient_line(gradient_t *block, const char *input, const char *kernel) {
  const mp_conv_kernel_t *self = block->self;
  const uint32_t last = self->num_spatial - 1;
  const mp_conv_dim_t *dim = &self->window[last];
  int64_t first, end;
  conv_gradient_range(dim, block->origin[last], &first, &end);
  if (first == end) return;
  const int64_t size = self->acc_bytes, c_row = conv_gradient_channels(self)->out_stride;
  mp_micro_tile_t tile = {.k = end - first,
                          .segments = 1,
                          .a_row = size,
                          .a_k = dim->rhs_dilation * dim->stride,
                          .c_row = c_row,
                          .accumulate = block->accumulates};
  const mp_gemm_columns_t columns = {.micro = self->gemm.micro,
                                     .acc_bytes = self->acc_bytes,
                                     .columns = block->columns,
                                     .read = kernel + first * dim->kernel_stride,
                                     .read_k = dim->kernel_stride};
  input += (block->origin[last] + first * dim->rhs_dilation) * dim->stride;
  const int64_t rows = self->gemm.micro->rows;
  for (int64_t i = block->begin; i < block->end; i += rows) {
    tile.a = input + i * size;
    mp_gemm_run_rows(&columns, &tile, MP_MICRO_BY_ROW, mp_min_i64(rows, block->end - i),
                     block->out + (i - block->begin) * c_row);
  }
  block->accumulates = true;
}

// Goes over the window's lines that are inside of the input, from spatial dimension `d` on.
static void conv_gradient_lines(gradient_t *block, uint32_t d, const char *input,
                                const char *kernel) {
  const mp_conv_kernel_t *self = block->self;
  if (d + 1 == self->num_spatial) {
    conv_gradient_line(block, input, kernel);
    return;
  }
  const mp_conv_dim_t *dim = &self->window[d];
  int64_t first, end;
  conv_gradient_range(dim, block->origin[d], &first, &end);
  for (int64_t w = first; w < end; ++w) {
    const int64_t x = block->origin[d] + w * dim->rhs_dilation;
    conv_gradient_lines(block, d + 1, input + x * dim->stride, kernel + w * dim->kernel_stride);
  }
}

static int64_t conv_gradient_channel_blocks(const mp_conv_kernel_t *self) {
  return (conv_gradient_channels(self)->extent + BLOCK_CHANNELS - 1) / BLOCK_CHANNELS;
}
static int64_t conv_gradient_column_blocks(const mp_conv_kernel_t *self) {
  return (self->gemm.n + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS;
}

// Computes block number `item`: columns count fastest, then channels, then positions.
static void conv_gradient_block(const mp_conv_kernel_t *self, const mp_kernel_call_t *call,
                                int64_t item) {
  const mp_position_dim_t *channels = conv_gradient_channels(self);
  const int64_t by_columns = conv_gradient_column_blocks(self), size = self->acc_bytes;
  const int64_t by_channels = conv_gradient_channel_blocks(self);
  const int64_t column = item % by_columns * BLOCK_COLUMNS;
  const int64_t position = item / by_columns / by_channels * channels->extent;
  gradient_t block = {.self = self, .columns = mp_min_i64(self->gemm.n - column, BLOCK_COLUMNS)};
  block.begin = item / by_columns % by_channels * BLOCK_CHANNELS;
  block.end = mp_min_i64(block.begin + BLOCK_CHANNELS, channels->extent);
  mp_patch_row_t corner;
  mp_conv_rows(self, position, 1, &corner);
  memcpy(block.origin, corner.origin, self->num_spatial * sizeof(block.origin[0]));
  int64_t offset = 0, step = 0;
  mp_axes_offsets(&self->out_positions, position + block.begin, 1, &offset);
  block.out = (char *)call->results[0] + offset + column * size;
  const char *input = call->operands[0];
  const char *kernel = (const char *)call->operands[1] + self->kernel_offset + column * size;
  const bool is_regular = mp_axes_step(&self->features, &step);  // there is one axis
  MP_ASSERT(is_regular);
  (void)is_regular;
  for (int64_t f = 0; f < self->features.count; ++f) {
    conv_gradient_lines(&block, 0, input + f * step, kernel + f * self->kernel_in_stride);
  }
  for (int64_t i = block.begin; i < block.end && !block.accumulates; ++i) {  // all is padding
    memset(block.out + (i - block.begin) * channels->out_stride, 0, (size_t)(block.columns * size));
  }
}

static int64_t conv_gradient_items(const mp_conv_kernel_t *self) {
  return self->out_positions.count / conv_gradient_channels(self)->extent *
         conv_gradient_channel_blocks(self) * conv_gradient_column_blocks(self);
}

static mp_status_t conv_gradient_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const mp_conv_kernel_t *self = (const mp_conv_kernel_t *)kernel;
  int64_t begin = 0, end = 0;
  mp_part_range(conv_gradient_items(self), kernel->num_parts, call->part, &begin, &end);
  for (int64_t item = begin; item < end; ++item) conv_gradient_block(self, call, item);
  return NULL;
}

void mp_conv_gradient_plan(mp_conv_kernel_t *self) {
  const int64_t items = conv_gradient_items(self);
  const int64_t each = MP_WORK(self->gemm.m, self->gemm.n, self->gemm.k) / items;
  self->base.run = conv_gradient_run;
  self->base.num_parts =
      (uint32_t)mp_clamp_i64(mp_part_count(items, GRAIN / mp_max_i64(each, 1) + 1), 1, items);
  self->base.scratch_bytes = 0;
}
