// Windows of a convolution's input as rows of a matrix.
#include <string.h>

#include "sim/kernels/contraction/convolution.h"
#include "sim/kernels/shape.h"

void mp_conv_rows(const mp_conv_kernel_t *self, int64_t first, int64_t count,
                  mp_patch_row_t *out_rows) {
  int64_t index[MP_MAX_RANK];
  for (uint32_t i = self->num_positions; i-- > 0;) {
    index[i] = first % self->positions[i].extent;
    first /= self->positions[i].extent;
  }
  for (int64_t r = 0; r < count; ++r) {
    for (uint32_t i = 0; i < self->num_positions; ++i) {
      int d = self->positions[i].spatial;
      if (d < 0) {
        out_rows[r].offset = index[i] * self->batch_stride;
      } else {
        out_rows[r].origin[d] = index[i] * self->window[d].step - self->window[d].pad;
      }
    }
    for (uint32_t i = self->num_positions; i-- > 0;) {
      if (++index[i] < self->positions[i].extent) break;
      index[i] = 0;
    }
  }
}

int64_t mp_conv_offset(const mp_conv_kernel_t *self, const mp_patch_row_t *row, const int64_t *at,
                       uint32_t num_dims) {
  int64_t offset = row->offset;
  for (uint32_t d = 0; d < num_dims; ++d) {
    const mp_conv_dim_t *dim = &self->window[d];
    int64_t x = row->origin[d] + at[d] * dim->rhs_dilation;
    if (dim->lhs_dilation != 1) {
      if (x < 0 || x % dim->lhs_dilation != 0) return -1;
      x /= dim->lhs_dilation;
    }
    if (x < 0 || x >= dim->input) return -1;
    offset += x * dim->stride;
  }
  return offset;
}

// One step of packing copies `count` values of up to `width` rows. They are the features, from
// `feature` on, of one window position. When `fused`, the next window positions are included: they
// follow in the input as they do in k.
typedef struct {
  const char *src;
  mp_patch_row_t windows[MP_GEMM_MAX_NR];
  bool is_beside[MP_GEMM_MAX_NR];       // the window is at the same place as the previous row's, in
                                        // another element of the batch
  int64_t row_offsets[MP_GEMM_MAX_NR];  // -1: zeros; if fused, without the last spatial dimension
  int64_t columns[MP_GEMM_MAX_NR];      // if fused, the first position in that dimension
  int64_t feature_offsets[MP_GEMM_BLOCK_K];
  int64_t feature, rows, count;
  uint32_t width;
  bool features_contiguous;
} patch_t;

// Packs rows whose elements are contiguous, or all zero.
typedef struct {
  int64_t first, count;
} run_t;

static uint32_t conv_patches_find_runs(const patch_t *patch, uint32_t element, run_t *runs) {
  uint32_t count = 0;
  for (int64_t r = 0; r < patch->rows; ++r) {
    const int64_t *offsets = patch->row_offsets;
    run_t *last = count > 0 ? &runs[count - 1] : NULL;
    bool joins = last != NULL && (offsets[last->first] < 0
                                      ? offsets[r] < 0
                                      : offsets[r] == offsets[last->first] + last->count * element);
    if (joins) {
      ++last->count;
    } else {
      runs[count++] = (run_t){r, 1};
    }
  }
  return count;
}

static void conv_patches_by_feature(const mp_conv_kernel_t *self, const patch_t *patch,
                                    const run_t *runs, uint32_t num_runs, char *panel) {
  size_t stride = (size_t)patch->width * self->acc_bytes;
  for (int64_t f = 0; f < patch->count; ++f, panel += stride) {
    for (uint32_t i = 0; i < num_runs; ++i) {
      int64_t offset = patch->row_offsets[runs[i].first];
      char *to = panel + (size_t)runs[i].first * self->acc_bytes;
      if (offset < 0) {
        memset(to, 0, (size_t)runs[i].count * self->acc_bytes);
      } else {
        mp_convert_run(&self->convert, runs[i].count,
                       patch->src + offset + patch->feature_offsets[f], to);
      }
    }
  }
}

// The values of one row as a contiguous array, which is in the input or in `buffer`.
static const void *conv_patches_line(const mp_conv_kernel_t *self, const patch_t *patch, int64_t r,
                                     char *buffer) {
  static const char zeros[MP_GEMM_BLOCK_K * 8];
  if (patch->row_offsets[r] < 0) return zeros;
  const char *src = patch->src + patch->row_offsets[r];
  if (!self->fused) {
    if (patch->features_contiguous) return src + patch->feature_offsets[0];
    for (int64_t f = 0; f < patch->count; ++f) {
      memcpy(buffer + f * self->element, src + patch->feature_offsets[f], self->element);
    }
    return buffer;
  }
  const mp_conv_dim_t *last = &self->window[self->num_spatial - 1];
  int64_t features = self->features.count, column = patch->columns[r];
  int64_t columns = (patch->feature + patch->count + features - 1) / features;
  src += column * last->stride + patch->feature * self->element;
  if (column >= 0 && column + columns <= last->input) return src;
  for (int64_t c = 0; c < columns; ++c) {  // at the border, where some of it is padding
    int64_t begin = mp_max_i64(c * features - patch->feature, 0);
    int64_t end = mp_min_i64((c + 1) * features - patch->feature, patch->count);
    size_t bytes = (size_t)((end - begin) * self->element);
    if (column + c < 0 || column + c >= last->input) {
      memset(buffer + begin * self->element, 0, bytes);
    } else {
      memcpy(buffer + begin * self->element, src + begin * self->element, bytes);
    }
  }
  return buffer;
}

static void conv_patches_by_row(const mp_conv_kernel_t *self, const patch_t *patch, char *panel) {
  _Alignas(64) char raw[MP_PANEL_LINES][MP_GEMM_BLOCK_K * 8];
  _Alignas(64) char wide[MP_PANEL_LINES][MP_GEMM_BLOCK_K * 8];
  const void *lines[MP_PANEL_LINES];
  const mp_panel_t to = {panel, patch->width, self->acc_bytes};
  uint32_t held = 0;
  for (int64_t r = 0; r < patch->rows; ++r) {
    lines[held] = conv_patches_line(self, patch, r, raw[held]);
    if (!mp_convert_is_copy(&self->convert)) {
      mp_convert_run(&self->convert, patch->count, lines[held], wide[held]);
      lines[held] = wide[held];
    }
    if (++held == MP_PANEL_LINES || r + 1 == patch->rows) {
      mp_panel_set_lanes(&to, (uint32_t)(r + 1) - held, lines, held, patch->count);
      held = 0;
    }
  }
}

// Finds the windows that are next to others, as all are if the result is a kernel's gradient. Their
// offsets follow from their neighbours', without looking at each dimension.
static void conv_patches_find_beside(const mp_conv_kernel_t *self, patch_t *patch) {
  const size_t bytes = self->num_spatial * sizeof(int64_t);
  patch->is_beside[0] = false;
  for (int64_t r = 1; r < patch->rows; ++r) {
    const mp_patch_row_t *window = &patch->windows[r];
    patch->is_beside[r] = memcmp(window->origin, window[-1].origin, bytes) == 0;
  }
}

// Where the rows [first, first + rows) of a group are read from.
static void conv_patches_begin(const mp_conv_kernel_t *self, const char *src, int64_t first,
                               int64_t rows, patch_t *patch) {
  int64_t step = 0;
  mp_conv_rows(self, first, rows, patch->windows);
  patch->src = src;
  patch->rows = rows;
  conv_patches_find_beside(self, patch);
  patch->features_contiguous = mp_axes_step(&self->features, &step) && step == self->element;
}

// Sets up the step that begins at `k` and has at most `depth` values.
static void conv_patches_step(const mp_conv_kernel_t *self, int64_t k, int64_t depth,
                              patch_t *patch) {
  int64_t at[MP_MAX_RANK], num_features = self->features.count, window = k / num_features;
  const uint32_t last = self->num_spatial - 1, dims = self->fused ? last : self->num_spatial;
  patch->feature = k % num_features;
  for (uint32_t d = self->num_spatial; d-- > 0;) {
    at[d] = window % self->window[d].window;
    window /= self->window[d].window;
  }
  int64_t columns = self->fused ? self->window[last].window - at[last] : 1;
  patch->count = mp_min_i64(columns * num_features - patch->feature, depth);
  for (int64_t r = 0; r < patch->rows; ++r) {
    if (patch->is_beside[r]) {
      const int64_t step = patch->windows[r].offset - patch->windows[r - 1].offset;
      patch->row_offsets[r] = patch->row_offsets[r - 1] < 0 ? -1 : patch->row_offsets[r - 1] + step;
    } else {
      patch->row_offsets[r] = mp_conv_offset(self, &patch->windows[r], at, dims);
    }
    if (self->fused) patch->columns[r] = patch->windows[r].origin[last] + at[last];
  }
  if (!self->fused) {
    mp_axes_offsets(&self->features, patch->feature, patch->count, patch->feature_offsets);
  }
}

// Packs one panel.
static void conv_patches_panel(const mp_conv_kernel_t *self, const char *src,
                               const mp_gemm_range_t *range, uint32_t width, char *panel) {
  patch_t patch;
  conv_patches_begin(self, src, range->row, range->rows, &patch);
  patch.width = width;
  for (int64_t done = 0; done < range->depth; done += patch.count) {
    conv_patches_step(self, range->k + done, range->depth - done, &patch);
    char *to = panel + (size_t)(done * width) * self->acc_bytes;
    run_t runs[MP_GEMM_MAX_NR];
    uint32_t num_runs = MP_GEMM_MAX_NR;
    if (!self->fused) num_runs = conv_patches_find_runs(&patch, self->element, runs);
    if (num_runs <= (patch.features_contiguous ? 1 : (uint32_t)range->rows / 4)) {
      conv_patches_by_feature(self, &patch, runs, num_runs, to);
    } else {
      conv_patches_by_row(self, &patch, to);
    }
  }
}

void mp_conv_pack_patches(const void *context, const mp_kernel_call_t *call,
                          const mp_gemm_range_t *range, uint32_t width, void *panels) {
  const mp_conv_kernel_t *self = context;
  const char *src = (const char *)call->operands[0] + range->batch * self->input_group_stride;
  size_t panel_bytes = mp_gemm_panel_bytes(width, range->depth, self->acc_bytes);
  char *panel = panels;
  mp_gemm_range_t part = *range;
  for (int64_t r = 0; r < range->rows; r += width, panel += panel_bytes) {
    part.row = range->row + r;
    part.rows = mp_min_i64(width, range->rows - r);
    if (part.rows < width) memset(panel, 0, panel_bytes);
    conv_patches_panel(self, src, &part, width, panel);
  }
}

void mp_conv_pack_lines(const void *context, const mp_kernel_call_t *call,
                        const mp_gemm_range_t *range, int64_t step, void *lines) {
  const mp_conv_kernel_t *self = context;
  const char *src = (const char *)call->operands[0] + range->batch * self->input_group_stride;
  _Alignas(64) char raw[MP_GEMM_BLOCK_K * 8];
  patch_t patch;
  conv_patches_begin(self, src, range->row, range->rows, &patch);
  for (int64_t done = 0; done < range->depth; done += patch.count) {
    conv_patches_step(self, range->k + done, range->depth - done, &patch);
    char *to = (char *)lines + done * self->acc_bytes;
    for (int64_t r = 0; r < range->rows; ++r, to += step) {
      mp_convert_run(&self->convert, patch.count, conv_patches_line(self, &patch, r, raw), to);
    }
  }
}
