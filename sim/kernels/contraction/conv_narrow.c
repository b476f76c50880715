// Convolutions with so few features that the windows of neighbouring positions overlap a lot, or
// that handling a window takes about as long as multiplying it.
//
// For a row of positions (all that differ in the last spatial dimension only) the rows of the input
// under it are copied to scratch memory, with zeros where there is padding. Then the windows of
// these positions begin at equal distances, and the innermost kernels read them there.
#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/contraction/convolution.h"
#include "sim/kernels/shape.h"

enum { MOST_ROWS_BYTES = 128 << 10, MOST_KERNEL_BYTES = 384 << 10, CACHE_LINE = 64 };
// The number of multiplications, and of positions, that are worth a part.
#define GRAIN ((int64_t)1 << 20)
enum { POSITIONS = 128 };

static int64_t conv_narrow_taps(const mp_conv_kernel_t *self) {
  int64_t taps = 1;
  for (uint32_t d = 0; d + 1 < self->num_spatial; ++d) {
    taps = MP_WORK(taps, self->window[d].window, 1);
  }
  return taps;
}

// The columns of the input, padding included, under a row of positions.
static int64_t conv_narrow_columns(const mp_conv_kernel_t *self) {
  const mp_conv_dim_t *last = &self->window[self->num_spatial - 1];
  return (self->positions[self->num_positions - 1].extent - 1) * last->step + last->window;
}

bool mp_conv_is_narrow(const mp_conv_kernel_t *self) {
  if (self->complex || self->swapped || self->num_spatial == 0 || self->gemm.k == 0) return false;
  if (self->gemm.m == 0 || self->gemm.n == 0 || self->gemm.n > MP_GEMM_BLOCK_N) return false;
  const int last_dim = (int)self->num_spatial - 1;
  const mp_conv_dim_t *last = &self->window[last_dim];
  int64_t step = 0, size = self->acc_bytes, features = self->features.count;
  if (self->positions[self->num_positions - 1].spatial != last_dim || last->lhs_dilation != 1 ||
      last->rhs_dilation != 1 || last->window == 1 || !mp_axes_step(&self->features, &step) ||
      (features > 1 && step != self->element) || !mp_axes_step(&self->out_features, &step) ||
      (self->gemm.n > 1 && step != (int64_t)mp_dtype_size(self->store.to))) {
    return false;
  }
  const int64_t row = MP_WORK(conv_narrow_columns(self), features, size);
  return MP_WORK(last->window, features, 1) <= MP_GEMM_BLOCK_K &&
         MP_WORK(conv_narrow_taps(self), row, 1) <= MOST_ROWS_BYTES &&
         MP_WORK(self->gemm.k, self->gemm.n + MP_GEMM_MAX_NR, size) <= MOST_KERNEL_BYTES;
}

// Packs the kernel of a group, block by block along k.
static void conv_narrow_pack_kernel(const mp_conv_kernel_t *self, const mp_kernel_call_t *call,
                                    int64_t group, char *packed) {
  const int64_t n = self->gemm.n, lanes = self->gemm.micro->lanes;
  const int64_t rest = n % (2 * lanes), wide = n - rest;
  const char *kernel = (const char *)call->operands[1] + self->kernel_offset;
  for (int64_t tap = 0; tap < self->narrow.taps; tap += self->narrow.block) {
    const int64_t taps = mp_min_i64(self->narrow.block, self->narrow.taps - tap);
    const int64_t k = tap * self->narrow.segment, depth = taps * self->narrow.segment;
    const size_t panel_bytes = mp_gemm_panel_bytes(2 * (uint32_t)lanes, depth, self->acc_bytes);
    mp_gemm_range_t range = {group, 0, wide, k, depth};
    if (wide > 0) mp_operand_pack(&self->kernel, kernel, &range, 2 * (uint32_t)lanes, packed);
    range.row = wide;
    range.rows = rest;
    if (rest > 0) {
      mp_operand_pack(&self->kernel, kernel, &range, (rest > lanes ? 2 : 1) * (uint32_t)lanes,
                      packed + (size_t)(wide / (2 * lanes)) * panel_bytes);
    }
    packed += self->narrow.block_bytes;
  }
}

// Copies the rows of the input under the row of positions that begins at `first`.
static void conv_narrow_copy_rows(const mp_conv_kernel_t *self, const char *src, int64_t first,
                                  char *rows) {
  const uint32_t last_dim = self->num_spatial - 1;
  const mp_conv_dim_t *last = &self->window[last_dim];
  const int64_t features = self->features.count, value = features * self->acc_bytes;
  mp_patch_row_t corner;
  mp_conv_rows(self, first, 1, &corner);
  const int64_t x = corner.origin[last_dim], columns = conv_narrow_columns(self);
  const int64_t begin = mp_clamp_i64(-x, 0, columns);
  const int64_t end = mp_clamp_i64(last->input - x, begin, columns);
  for (int64_t tap = 0; tap < self->narrow.taps; ++tap, rows += self->narrow.row_bytes) {
    int64_t at[MP_MAX_RANK], rest = tap;
    for (uint32_t d = last_dim; d-- > 0;) {
      at[d] = rest % self->window[d].window;
      rest /= self->window[d].window;
    }
    const int64_t offset = mp_conv_offset(self, &corner, at, last_dim);
    if (offset < 0 || begin == end) {
      memset(rows, 0, (size_t)self->narrow.row_bytes);
      continue;
    }
    memset(rows, 0, (size_t)(begin * value));
    memset(rows + end * value, 0, (size_t)((columns - end) * value));
    const char *from = src + offset + (x + begin) * last->stride;
    if (last->stride == features * self->element) {
      mp_convert_run(&self->convert, (end - begin) * features, from, rows + begin * value);
      continue;
    }
    for (int64_t c = begin; c < end; ++c, from += last->stride) {
      mp_convert_run(&self->convert, features, from, rows + c * value);
    }
  }
}

// Computes a row of positions; its rows of C begin at `c` and are `c_row` bytes apart.
static void conv_narrow_run_row(const mp_conv_kernel_t *self, const char *rows, const char *packed,
                                char *c, int64_t c_row) {
  const mp_gemm_t *gemm = &self->gemm;
  const int64_t positions = self->positions[self->num_positions - 1].extent;
  const int64_t value = self->features.count * self->acc_bytes;
  const uint32_t panels = (uint32_t)((positions + gemm->micro->rows - 1) / gemm->micro->rows);
  mp_micro_tile_t tile = {.k = self->narrow.segment,
                          .a_row = self->window[self->num_spatial - 1].step * value,
                          .a_k = self->acc_bytes,
                          .a_segment = self->narrow.row_bytes,
                          .c_row = c_row};
  mp_gemm_columns_t columns = {gemm->micro, self->acc_bytes, gemm->n, NULL, 0, packed, 0};
  for (int64_t tap = 0; tap < self->narrow.taps; tap += self->narrow.block) {
    tile.segments = mp_min_i64(self->narrow.block, self->narrow.taps - tap);
    tile.accumulate = tap > 0;
    columns.panel_bytes =
        mp_gemm_panel_bytes(2 * gemm->micro->lanes, tile.segments * tile.k, self->acc_bytes);
    for (uint32_t p = 0; p < panels; ++p) {
      int64_t begin = 0, end = 0;
      mp_part_range(positions, panels, p, &begin, &end);
      tile.a = rows + tap * self->narrow.row_bytes + begin * tile.a_row;
      mp_gemm_run_rows(&columns, &tile, MP_MICRO_BY_K, end - begin, c + begin * c_row);
    }
    columns.packed += self->narrow.block_bytes;
  }
}

static mp_status_t conv_narrow_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const mp_conv_kernel_t *self = (const mp_conv_kernel_t *)kernel;
  const mp_position_dim_t *last = &self->positions[self->num_positions - 1];
  const int64_t positions = last->extent, per_group = self->gemm.m / positions;
  char *rows = call->scratch, *packed = rows + self->narrow.rows_bytes;
  char *buffer = packed + self->narrow.kernel_bytes;
  const bool is_direct = mp_convert_is_copy(&self->store);
  int64_t begin = 0, end = 0, packed_group = -1;
  mp_part_range(self->gemm.batch * per_group, kernel->num_parts, call->part, &begin, &end);
  for (int64_t item = begin; item < end; ++item) {
    const int64_t group = item / per_group, first = item % per_group * positions;
    if (group != packed_group) conv_narrow_pack_kernel(self, call, group, packed);
    packed_group = group;
    conv_narrow_copy_rows(self, (const char *)call->operands[0] + group * self->input_group_stride,
                          first, rows);
    int64_t offset = 0;
    mp_axes_offsets(&self->out_positions, first, 1, &offset);
    char *out = (char *)call->results[0] + group * self->output_group_stride + offset;
    if (is_direct) {
      conv_narrow_run_row(self, rows, packed, out, last->out_stride);
      continue;
    }
    const int64_t c_row = self->gemm.n * self->acc_bytes;
    conv_narrow_run_row(self, rows, packed, buffer, c_row);
    for (int64_t p = 0; p < positions; ++p) {
      mp_convert_run(&self->store, self->gemm.n, buffer + p * c_row, out + p * last->out_stride);
    }
  }
  return NULL;
}

void mp_conv_narrow_plan(mp_conv_kernel_t *self) {
  const mp_gemm_t *gemm = &self->gemm;
  const int64_t size = self->acc_bytes, nr = 2 * (int64_t)gemm->micro->lanes;
  const int64_t positions = self->positions[self->num_positions - 1].extent;
  self->base.run = conv_narrow_run;
  self->narrow.taps = conv_narrow_taps(self);
  self->narrow.segment = self->window[self->num_spatial - 1].window * self->features.count;
  int64_t most = MP_GEMM_BLOCK_K / self->narrow.segment;
  int64_t blocks = (self->narrow.taps + most - 1) / most;
  self->narrow.block = (self->narrow.taps + blocks - 1) / blocks;
  self->narrow.row_bytes = conv_narrow_columns(self) * self->features.count * size;
  self->narrow.block_bytes =
      (gemm->n + nr - 1) / nr *
      (int64_t)mp_gemm_panel_bytes((uint32_t)nr, self->narrow.block * self->narrow.segment,
                                   (size_t)size);
  self->narrow.rows_bytes = (size_t)(self->narrow.taps * self->narrow.row_bytes + CACHE_LINE - 1) /
                            CACHE_LINE * CACHE_LINE;
  self->narrow.kernel_bytes = (size_t)(blocks * self->narrow.block_bytes);
  const size_t out_bytes =
      mp_convert_is_copy(&self->store) ? 0 : (size_t)(positions * gemm->n * size);
  self->base.scratch_bytes = self->narrow.rows_bytes + self->narrow.kernel_bytes + out_bytes;
  const int64_t rows = gemm->batch * (gemm->m / positions);
  const int64_t each = MP_WORK(positions, gemm->n, gemm->k);
  const int64_t grain = mp_max_i64(GRAIN / each + 1, (POSITIONS + positions - 1) / positions);
  self->base.num_parts = (uint32_t)mp_clamp_i64(mp_part_count(rows, grain), 1, rows);
}
