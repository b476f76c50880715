// Sides of products of small integers: two neighbouring k as one element (MP_ACC_PAIRS).
#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/vector.h"
#include "sim/kernels/contraction/operand.h"
#include "sim/kernels/shape.h"

enum { DEPTH = 2 * MP_GEMM_BLOCK_K };

bool mp_operand_is_short(mp_dtype_t dtype) {
  return !mp_dtype_is_float(dtype) && !mp_dtype_is_complex(dtype) &&
         (mp_dtype_bits(dtype) <= 8 || dtype == MP_DTYPE_S16);
}

// The k of a block, and where they are.
typedef struct {
  const mp_operand_t *side;
  const char *src;  // of this batch
  int64_t count;    // elements along k, of which there may be one less than two per pair
  int64_t depth;    // pairs
  int64_t offsets[DEPTH];
  bool is_contiguous;
} block_t;

static void operand_pairs_block(const mp_operand_t *side, const void *base, int64_t batch,
                                int64_t k, int64_t depth, block_t *block) {
  MP_ASSERT(!side->crossed && depth <= MP_GEMM_BLOCK_K && side->convert.to == MP_DTYPE_S16);
  int64_t batch_offset = 0, step = 0;
  mp_axes_offsets(&side->batch, batch, 1, &batch_offset);
  block->side = side;
  block->src = (const char *)base + batch_offset;
  block->depth = depth;
  block->count = mp_min_i64(2 * depth, side->k.count - 2 * k);
  mp_axes_offsets(&side->k, 2 * k, block->count, block->offsets);
  block->is_contiguous = (mp_axes_step(&side->k, &step) && step == side->element);
}

// Writes the pairs of the row at `row_offset`.
static void operand_pairs_line(const block_t *block, int64_t row_offset, uint16_t *to) {
  const mp_operand_t *side = block->side;
  const char *from = block->src + row_offset;
  char raw[DEPTH * 2];
  if (block->is_contiguous) {
    from += block->offsets[0];
  } else {
    for (int64_t i = 0; i < block->count; ++i) {
      memcpy(raw + i * side->element, from + block->offsets[i], side->element);
    }
    from = raw;
  }
  mp_convert_run(&side->convert, block->count, from, to);
  if (block->count < 2 * block->depth) to[block->count] = 0;
}

MP_VECTOR static void operand_pairs_zip(int64_t n, const uint16_t *low, const uint16_t *high,
                                        uint32_t *restrict out) {
  for (int64_t i = 0; i < n; ++i) out[i] = low[i] | (uint32_t)high[i] << 16;
}

// Packs rows that are contiguous in memory, one pair of k after the other.
static void operand_pairs_pack_by_k(const block_t *block, int64_t row_offset, int64_t rows,
                                    uint32_t width, char *panels) {
  const mp_operand_t *side = block->side;
  const size_t panel_bytes = mp_gemm_panel_bytes(width, block->depth, sizeof(uint32_t));
  const size_t stride = width * sizeof(uint32_t);
  uint16_t low[MP_GEMM_BLOCK_N], high[MP_GEMM_BLOCK_N] = {0};
  _Alignas(64) uint32_t pairs[MP_GEMM_BLOCK_N];
  MP_ASSERT(rows <= MP_GEMM_BLOCK_N);
  for (int64_t p = 0; p < block->depth; ++p, panels += stride) {
    const char *src = block->src + row_offset;
    mp_convert_run(&side->convert, rows, src + block->offsets[2 * p], low);
    if (2 * p + 1 < block->count) {
      mp_convert_run(&side->convert, rows, src + block->offsets[2 * p + 1], high);
    } else {
      memset(high, 0, sizeof(high));
    }
    operand_pairs_zip(rows, low, high, pairs);
    char *panel = panels;
    for (int64_t r = 0; r < rows; r += width, panel += panel_bytes) {
      memcpy(panel, pairs + r, (size_t)mp_min_i64(width, rows - r) * sizeof(uint32_t));
    }
  }
}

void mp_operand_pairs_pack(const mp_operand_t *side, const void *base, int64_t batch, int64_t row,
                           int64_t rows, int64_t k, int64_t depth, uint32_t width, void *panels) {
  const size_t panel_bytes = mp_gemm_panel_bytes(width, depth, sizeof(uint32_t));
  if (rows % width != 0) {
    memset((char *)panels + (size_t)(rows / width) * panel_bytes, 0, panel_bytes);
  }
  block_t block;
  operand_pairs_block(side, base, batch, k, depth, &block);
  int64_t row_offset = 0, step = 0;
  if (mp_axes_step(&side->rows, &step) && step == side->element) {
    mp_axes_offsets(&side->rows, row, 1, &row_offset);
    operand_pairs_pack_by_k(&block, row_offset, rows, width, panels);
    return;
  }
  _Alignas(64) uint16_t lines[MP_PANEL_LINES][DEPTH];
  const void *pointers[MP_PANEL_LINES];
  for (int64_t r = 0; r < rows;) {
    const uint32_t lane = (uint32_t)(r % width);
    const int64_t in_panel = mp_min_i64(width - lane, rows - r);
    const uint32_t count = (uint32_t)mp_min_i64(MP_PANEL_LINES, in_panel);
    for (uint32_t l = 0; l < count; ++l) {
      mp_axes_offsets(&side->rows, row + r + l, 1, &row_offset);
      operand_pairs_line(&block, row_offset, lines[l]);
      pointers[l] = lines[l];
    }
    mp_panel_set_lanes((char *)panels + (size_t)(r / width) * panel_bytes, width, lane, pointers,
                       count, depth, sizeof(uint32_t));
    r += count;
  }
}

void mp_operand_pairs_lines(const mp_operand_t *side, const void *base, int64_t batch, int64_t row,
                            int64_t rows, int64_t k, int64_t depth, int64_t step, void *lines) {
  block_t block;
  operand_pairs_block(side, base, batch, k, depth, &block);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t row_offset = 0;
    mp_axes_offsets(&side->rows, row + r, 1, &row_offset);
    operand_pairs_line(&block, row_offset, (uint16_t *)(void *)((char *)lines + r * step));
  }
}
