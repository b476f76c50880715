#include "sim/kernels/contraction/operand.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/vector.h"
#include "sim/kernels/shape.h"
enum {
  // Prefetches memory this many k before it is packed.
  PACK_AHEAD = 8
};

mp_status_t mp_axes_init(mp_arena_t *arena, uint32_t max_rank, mp_axes_t *axes) {
  axes->rank = 0;
  axes->count = 1;
  axes->extents = MP_ARENA_ARRAY(arena, int64_t, max_rank + 1);
  axes->strides = MP_ARENA_ARRAY(arena, int64_t, max_rank + 1);
  if (axes->extents == NULL || axes->strides == NULL) return mp_status_out_of_memory();
  return NULL;
}

void mp_axes_add(mp_axes_t *axes, int64_t extent, int64_t stride) {
  MP_ASSERT(extent >= 0 && axes->count >= 0);
  axes->count *= extent;
  if (extent == 1) return;
  if (axes->rank > 0 && axes->strides[axes->rank - 1] == extent * stride) {
    axes->extents[axes->rank - 1] *= extent;
    axes->strides[axes->rank - 1] = stride;
    return;
  }
  axes->extents[axes->rank] = extent;
  axes->strides[axes->rank++] = stride;
}

void mp_axes_offsets(const mp_axes_t *axes, int64_t first, int64_t count, int64_t *out_offsets) {
  MP_ASSERT(axes->rank <= MP_MAX_RANK + 2 && first >= 0 && first + count <= axes->count);
  if (count == 0) return;  // `first` need not be a position then
  int64_t step = 0;
  if (mp_axes_step(axes, &step)) {
    for (int64_t n = 0; n < count; ++n) out_offsets[n] = (first + n) * step;
    return;
  }
  int64_t position[MP_MAX_RANK + 2];
  int64_t offset = 0;
  for (uint32_t i = axes->rank; i-- > 0;) {
    position[i] = first % axes->extents[i];
    first /= axes->extents[i];
    offset += position[i] * axes->strides[i];
  }
  for (int64_t n = 0; n < count; ++n) {
    out_offsets[n] = offset;
    for (uint32_t i = axes->rank; i-- > 0;) {
      offset += axes->strides[i];
      if (++position[i] < axes->extents[i]) break;
      position[i] = 0;
      offset -= axes->extents[i] * axes->strides[i];
    }
  }
}

bool mp_axes_step(const mp_axes_t *axes, int64_t *out_step) {
  if (axes->rank > 1) return false;
  *out_step = axes->rank == 0 ? 0 : axes->strides[0];
  return true;
}

mp_acc_t mp_acc_for(const mp_dtype_t *dtypes, uint32_t count) {
  bool is_float = false, is_wide_float = false, is_wide = false;
  for (uint32_t i = 0; i < count; ++i) {
    mp_dtype_t real = mp_dtype_real_part(dtypes[i]);
    is_float |= mp_dtype_is_float(real);
    is_wide_float |= real == MP_DTYPE_F64;
    is_wide |= !mp_dtype_is_float(real) && mp_dtype_bits(real) > 32;
  }
  if (is_float) return is_wide_float ? MP_ACC_F64 : MP_ACC_F32;
  return is_wide ? MP_ACC_U64 : MP_ACC_U32;
}

mp_dtype_t mp_acc_dtype(mp_acc_t acc) {
  static const mp_dtype_t dtypes[MP_ACC_COUNT] = {MP_DTYPE_F32, MP_DTYPE_F64, MP_DTYPE_U32,
                                                  MP_DTYPE_U64, MP_DTYPE_U32, MP_DTYPE_U32};
  MP_ASSERT((unsigned)acc < MP_ACC_COUNT);
  return dtypes[acc];
}

static void operand_set_lane(const mp_panel_t *panel, uint32_t lane, const void *line,
                             int64_t first, int64_t count) {
  const uint32_t width = panel->width;
  if (panel->acc_bytes == 4) {
    uint32_t *to = (uint32_t *)panel->values + lane;
    const uint32_t *from = line;
    for (int64_t i = first; i < count; ++i) to[i * width] = from[i];
  } else {
    uint64_t *to = (uint64_t *)panel->values + lane;
    const uint64_t *from = line;
    for (int64_t i = first; i < count; ++i) to[i * width] = from[i];
  }
}

typedef uint32_t quad_t __attribute__((vector_size(16), aligned(4)));

// Writes four lanes of 4-byte values, four values at a time; returns how many values are done.
static int64_t operand_set_four_lanes(void *panel, uint32_t width, uint32_t lane,
                                      const void *const *lines, int64_t count) {
  const uint32_t *a = lines[0], *b = lines[1], *c = lines[2], *d = lines[3];
  uint32_t *to = (uint32_t *)panel + lane;
  int64_t i = 0;
  for (; i + 4 <= count; i += 4, to += 4 * (size_t)width) {
    quad_t va = *(const quad_t *)(a + i), vb = *(const quad_t *)(b + i);
    quad_t vc = *(const quad_t *)(c + i), vd = *(const quad_t *)(d + i);
    quad_t ab = __builtin_shufflevector(va, vb, 0, 4, 1, 5);
    quad_t cd = __builtin_shufflevector(vc, vd, 0, 4, 1, 5);
    *(quad_t *)to = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(quad_t *)(to + width) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    ab = __builtin_shufflevector(va, vb, 2, 6, 3, 7);
    cd = __builtin_shufflevector(vc, vd, 2, 6, 3, 7);
    *(quad_t *)(to + 2 * (size_t)width) = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(quad_t *)(to + 3 * (size_t)width) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  }
  return i;
}

typedef uint64_t pair_t __attribute__((vector_size(16), aligned(8), may_alias));

// The same for 8-byte values, two lanes and two values at a time.
static int64_t operand_set_wide_lanes(void *panel, uint32_t width, uint32_t lane,
                                      const void *const *lines, int64_t count) {
  int64_t i = 0;
  for (; i + 2 <= count; i += 2) {
    for (uint32_t l = 0; l < MP_PANEL_LINES; l += 2) {
      const pair_t a = *(const pair_t *)((const uint64_t *)lines[l] + i);
      const pair_t b = *(const pair_t *)((const uint64_t *)lines[l + 1] + i);
      uint64_t *to = (uint64_t *)panel + (size_t)i * width + lane + l;
      *(pair_t *)to = __builtin_shufflevector(a, b, 0, 2);
      *(pair_t *)(to + width) = __builtin_shufflevector(a, b, 1, 3);
    }
  }
  return i;
}

void mp_panel_set_lanes(const mp_panel_t *panel, uint32_t lane, const void *const *lines,
                        uint32_t num_lines, int64_t count) {
  MP_ASSERT(lane + num_lines <= panel->width && num_lines <= MP_PANEL_LINES);
  MP_ASSERT(panel->acc_bytes == 4 || panel->acc_bytes == 8);
  int64_t done = 0;
  if (num_lines == MP_PANEL_LINES) {
    done = panel->acc_bytes == 4
               ? operand_set_four_lanes(panel->values, panel->width, lane, lines, count)
               : operand_set_wide_lanes(panel->values, panel->width, lane, lines, count);
  }
  for (uint32_t l = 0; l < num_lines; ++l) {
    operand_set_lane(panel, lane + l, lines[l], done, count);
  }
}

// Copies elements at any offsets into a contiguous array.
static void operand_collect(const char *src, const int64_t *offsets, int64_t count,
                            uint32_t element, void *line) {
  char *to = line;
  for (int64_t i = 0; i < count; ++i, to += element) {
    switch (element) {
      case 1:
        memcpy(to, src + offsets[i], 1);
        break;
      case 2:
        memcpy(to, src + offsets[i], 2);
        break;
      case 4:
        memcpy(to, src + offsets[i], 4);
        break;
      default:
        memcpy(to, src + offsets[i], 8);
        break;
    }
  }
}

static bool operand_is_contiguous(const int64_t *offsets, int64_t count, uint32_t element) {
  for (int64_t i = 1; i < count; ++i) {
    if (offsets[i] != offsets[0] + i * element) return false;
  }
  return true;
}

typedef struct {
  const char *src;
  const int64_t *row_offsets, *k_offsets;
  int64_t rows, depth;
  uint32_t width;
  bool k_contiguous;
} panel_t;

// Packs row by row, which is good when k is contiguous in memory.
static void operand_pack_by_rows(const mp_operand_t *side, const panel_t *in, char *panel) {
  _Alignas(64) char raw[MP_GEMM_BLOCK_K * 8], line[MP_PANEL_LINES][MP_GEMM_BLOCK_K * 8];
  const void *lines[MP_PANEL_LINES];
  const mp_panel_t to = {panel, in->width, side->acc_bytes};
  uint32_t held = 0;
  for (int64_t r = 0; r < in->rows; ++r) {
    const char *src = in->src + in->row_offsets[r];
    bool copies = mp_convert_is_copy(&side->convert);
    lines[held] = src + in->k_offsets[0];
    if (!in->k_contiguous) {
      operand_collect(src, in->k_offsets, in->depth, side->element, copies ? line[held] : raw);
      lines[held] = copies ? line[held] : raw;
    }
    if (!copies) {
      mp_convert_run(&side->convert, in->depth, lines[held], line[held]);
      lines[held] = line[held];
    }
    if (++held == MP_PANEL_LINES || r + 1 == in->rows) {
      mp_panel_set_lanes(&to, (uint32_t)(r + 1) - held, lines, held, in->depth);
      held = 0;
    }
  }
}

// Packs all rows of one k at a time, which is good when rows are contiguous in memory. The panels
// are stored one after the other; the last one may have fewer rows than its width.
static void operand_pack_by_k(const mp_operand_t *side, const panel_t *in, char *panels) {
  const size_t stride = (size_t)in->width * side->acc_bytes;
  const size_t panel_bytes = mp_gemm_panel_bytes(in->width, in->depth, side->acc_bytes);
  const bool copies = mp_convert_is_copy(&side->convert);
  _Alignas(64) char line[MP_GEMM_BLOCK_N * 8];
  for (int64_t first = 0; first < in->rows; first += MP_GEMM_BLOCK_N) {
    const int64_t rows = mp_min_i64(MP_GEMM_BLOCK_N, in->rows - first);
    const size_t bytes = (size_t)rows * side->acc_bytes;
    const char *src = in->src + in->row_offsets[0] + first * side->element;
    char *to = panels + (size_t)(first / in->width) * panel_bytes;
    for (int64_t k = 0; k < in->depth; ++k, to += stride) {
      const char *from = src + in->k_offsets[k];
      if (k + PACK_AHEAD < in->depth) {
        mp_prefetch(src, in->k_offsets[k + PACK_AHEAD], rows * side->element);
      }
      if (!copies) {
        mp_convert_run(&side->convert, rows, from, line);
        from = line;
      }
      size_t at = 0;
      char *panel = to;
      // A constant size is a few instructions.
      for (; stride == 128 && at + 128 <= bytes; at += 128, panel += panel_bytes) {
        memcpy(panel, from + at, 128);
      }
      for (; stride == 56 && at + 56 <= bytes; at += 56, panel += panel_bytes) {
        memcpy(panel, from + at, 56);
      }
      for (; stride == 112 && at + 112 <= bytes; at += 112, panel += panel_bytes) {
        memcpy(panel, from + at, 112);
      }
      for (; at < bytes; at += stride, panel += panel_bytes) {
        memcpy(panel, from + at, bytes - at < stride ? bytes - at : stride);
      }
    }
  }
}

// Packs the crossed side of complex products; the range is in the real matrix, which is twice as
// large.
static void operand_pack_crossed(const mp_operand_t *side, const char *src,
                                 const mp_gemm_range_t *range, uint32_t width, void *panel) {
  const int64_t row = range->row, rows = range->rows, k = range->k, depth = range->depth;
  int64_t row_offsets[MP_GEMM_MAX_NR / 2 + 1], k_offsets[MP_GEMM_BLOCK_K / 2 + 1];
  // Both may begin or end in the middle of a complex element.
  mp_axes_offsets(&side->rows, row / 2, (row + rows + 1) / 2 - row / 2, row_offsets);
  mp_axes_offsets(&side->k, k / 2, (k + depth + 1) / 2 - k / 2, k_offsets);
  for (int64_t i = 0; i < depth; ++i) {
    int64_t q = (k + i) & 1;
    for (int64_t r = 0; r < rows; ++r) {
      int64_t p = (row + r) & 1;
      const char *at = src + row_offsets[(row + r) / 2 - row / 2] + k_offsets[(k + i) / 2 - k / 2] +
                       (p ^ q) * side->element;
      double value = side->element == 4 ? (double)*(const float *)at : *(const double *)at;
      if (q == 1 && p == 0) value = -value;
      if (side->acc_bytes == 4) {
        ((float *)panel)[i * width + r] = (float)value;
      } else {
        ((double *)panel)[i * width + r] = value;
      }
    }
  }
}

void mp_operand_pack(const mp_operand_t *side, const void *base, const mp_gemm_range_t *range,
                     uint32_t width, void *panels) {
  const int64_t rows = range->rows, depth = range->depth;
  int64_t batch_offset = 0, k_offsets[MP_GEMM_BLOCK_K], row_offsets[MP_GEMM_MAX_NR], step = 0;
  mp_axes_offsets(&side->batch, range->batch, 1, &batch_offset);
  const char *src = (const char *)base + batch_offset;
  panel_t in = {src, row_offsets, k_offsets, rows, depth, width, false};
  size_t panel_bytes = mp_gemm_panel_bytes(width, depth, side->acc_bytes);
  if (rows % width != 0) {
    memset((char *)panels + (size_t)(rows / width) * panel_bytes, 0, panel_bytes);
  }
  if (!side->crossed) {
    mp_axes_offsets(&side->k, range->k, depth, k_offsets);
    if (mp_axes_step(&side->rows, &step) && step == side->element && rows > 1) {
      mp_axes_offsets(&side->rows, range->row, 1, row_offsets);
      operand_pack_by_k(side, &in, panels);
      return;
    }
    in.k_contiguous = operand_is_contiguous(k_offsets, depth, side->element);
  }
  char *panel = panels;
  mp_gemm_range_t part = *range;
  for (int64_t r = 0; r < rows; r += width, panel += panel_bytes) {
    part.row = range->row + r;
    part.rows = in.rows = mp_min_i64(width, rows - r);
    if (side->crossed) {
      operand_pack_crossed(side, src, &part, width, panel);
      continue;
    }
    mp_axes_offsets(&side->rows, part.row, in.rows, row_offsets);
    if (in.rows > 1 && operand_is_contiguous(row_offsets, in.rows, side->element)) {
      operand_pack_by_k(side, &in, panel);
    } else {
      operand_pack_by_rows(side, &in, panel);
    }
  }
}

void mp_operand_lines(const mp_operand_t *side, const void *base, const mp_gemm_range_t *range,
                      int64_t step, void *lines) {
  const int64_t rows = range->rows, k = range->k, depth = range->depth;
  MP_ASSERT(!side->crossed && rows <= MP_GEMM_MAX_MR && depth <= MP_GEMM_BLOCK_K);
  int64_t batch_offset = 0, k_offsets[MP_GEMM_BLOCK_K], row_offsets[MP_GEMM_MAX_MR], k_step = 0;
  _Alignas(64) char raw[MP_GEMM_BLOCK_K * 8];
  mp_axes_offsets(&side->batch, range->batch, 1, &batch_offset);
  mp_axes_offsets(&side->rows, range->row, rows, row_offsets);
  bool is_contiguous = mp_axes_step(&side->k, &k_step) && k_step == side->element;
  if (is_contiguous) {
    k_offsets[0] = k * k_step;
  } else {
    mp_axes_offsets(&side->k, k, depth, k_offsets);
    is_contiguous = operand_is_contiguous(k_offsets, depth, side->element);
  }
  char *to = lines;
  for (int64_t r = 0; r < rows; ++r, to += step) {
    const char *from = (const char *)base + batch_offset + row_offsets[r];
    if (is_contiguous) {
      from += k_offsets[0];
    } else {
      operand_collect(from, k_offsets, depth, side->element, raw);
      from = raw;
    }
    if (mp_convert_is_copy(&side->convert)) {
      memcpy(to, from, (size_t)depth * side->acc_bytes);
    } else {
      mp_convert_run(&side->convert, depth, from, to);
    }
  }
}
