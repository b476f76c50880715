// Sides of products of small integers: neighbouring k as one element of 32 bits, two of 16 bits
// (MP_ACC_PAIRS) or four of 8 bits (MP_ACC_QUADS).
#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/vector.h"
#include "sim/kernels/contraction/operand.h"
#include "sim/kernels/shape.h"

enum { WORD = sizeof(uint32_t), DEPTH = WORD * MP_GEMM_BLOCK_K, DEPTH_BYTES = 2 * DEPTH };
// Turns signed bytes into unsigned ones that are 128 larger.
#define OFFSET_128 UINT32_C(0x80808080)

bool mp_operand_is_short(mp_dtype_t dtype) {
  return !mp_dtype_is_float(dtype) && !mp_dtype_is_complex(dtype) &&
         (mp_dtype_bits(dtype) <= 8 || dtype == MP_DTYPE_S16);
}

bool mp_operand_is_byte(mp_dtype_t dtype) {
  return mp_operand_is_short(dtype) && mp_dtype_bits(dtype) <= 8 && dtype != MP_DTYPE_U8;
}

int64_t mp_acc_k_per_element(mp_acc_t acc) {
  return acc == MP_ACC_PAIRS ? 2 : acc == MP_ACC_QUADS ? 4 : 1;
}

// The k of a block, and where they are.
typedef struct {
  const mp_operand_t *side;
  const char *src;         // of this batch
  int64_t part, parts;     // the bytes of a converted element, and how many are a word
  int64_t count;           // elements along k, of which there may be fewer than fill the last word
  int64_t depth;           // words
  int64_t offsets[DEPTH];  // of each element; if they are contiguous, of the first
  bool is_contiguous;
} block_t;

static void operand_words_block(const mp_operand_t *side, const void *base,
                                const mp_gemm_range_t *range, block_t *block) {
  MP_ASSERT(!side->crossed && range->depth <= MP_GEMM_BLOCK_K);
  MP_ASSERT(side->convert.to == MP_DTYPE_S16 || side->convert.to == MP_DTYPE_S8);
  int64_t batch_offset = 0, step = 0;
  mp_axes_offsets(&side->batch, range->batch, 1, &batch_offset);
  block->side = side;
  block->src = (const char *)base + batch_offset;
  block->part = (int64_t)mp_dtype_size(side->convert.to);
  block->parts = WORD / block->part;
  block->depth = range->depth;
  const int64_t k = block->parts * range->k;
  block->count = mp_min_i64(block->parts * range->depth, side->k.count - k);
  block->is_contiguous = mp_axes_step(&side->k, &step) && step == side->element;
  mp_axes_offsets(&side->k, k, block->is_contiguous ? 1 : block->count, block->offsets);
}

MP_VECTOR static void operand_words_offset(int64_t n, uint32_t *words) {
  for (int64_t i = 0; i < n; ++i) words[i] ^= OFFSET_128;
}

// Writes the words of the row at `row_offset`.
static void operand_words_line(const block_t *block, int64_t row_offset, char *to) {
  const mp_operand_t *side = block->side;
  const char *from = block->src + row_offset;
  char raw[DEPTH_BYTES];
  if (block->is_contiguous) {
    from += block->offsets[0];
  } else {
    for (int64_t i = 0; i < block->count; ++i) {
      memcpy(raw + i * side->element, from + block->offsets[i], side->element);
    }
    from = raw;
  }
  mp_convert_run(&side->convert, block->count, from, to);
  const int64_t bytes = block->count * block->part;
  memset(to + bytes, 0, (size_t)(WORD * block->depth - bytes));
}

MP_VECTOR static void operand_words_zip_pairs(int64_t n, const uint16_t *low, const uint16_t *high,
                                              uint32_t *restrict out) {
  for (int64_t i = 0; i < n; ++i) out[i] = low[i] | (uint32_t)high[i] << 16;
}

MP_VECTOR static void operand_words_zip_quads(int64_t n, const uint8_t *a, const uint8_t *b,
                                              const uint8_t *c, const uint8_t *d,
                                              uint32_t *restrict out) {
  for (int64_t i = 0; i < n; ++i) {
    out[i] = a[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16 | (uint32_t)d[i] << 24;
  }
}

// Packs rows that are contiguous in memory, one word of k after the other.
static void operand_words_pack_by_k(const block_t *block, const char *src, int64_t rows,
                                    uint32_t width, char *panels) {
  const mp_convert_t *convert = &block->side->convert;
  const bool is_copy = mp_convert_is_copy(convert);
  const size_t panel_bytes = mp_gemm_panel_bytes(width, block->depth, WORD);
  _Alignas(64) uint16_t converted[WORD + 1][MP_GEMM_BLOCK_N];
  _Alignas(64) uint32_t words[MP_GEMM_BLOCK_N];
  MP_ASSERT(rows <= MP_GEMM_BLOCK_N);
  memset(converted[WORD], 0, sizeof(converted[WORD]));
  for (int64_t p = 0; p < block->depth; ++p, panels += width * WORD) {
    const void *parts[WORD];
    for (int64_t i = 0; i < block->parts; ++i) {
      const int64_t k = p * block->parts + i;
      const bool is_there = k < block->count;
      // Beyond the last element the word is filled with zeros.
      parts[i] = converted[is_there ? i : WORD];
      if (!is_there) continue;
      const char *from = src + (block->is_contiguous ? block->offsets[0] + k * block->side->element
                                                     : block->offsets[k]);
      if (is_copy) {
        parts[i] = from;
      } else {
        mp_convert_run(convert, rows, from, converted[i]);
      }
    }
    if (block->parts == 2) {
      operand_words_zip_pairs(rows, parts[0], parts[1], words);
    } else {
      operand_words_zip_quads(rows, parts[0], parts[1], parts[2], parts[3], words);
    }
    char *panel = panels;
    for (int64_t r = 0; r < rows; r += width, panel += panel_bytes) {
      memcpy(panel, words + r, (size_t)mp_min_i64(width, rows - r) * WORD);
    }
  }
}

static void operand_words_pack_lines(const block_t *block, int64_t row, int64_t rows,
                                     uint32_t width, char *panels) {
  const size_t panel_bytes = mp_gemm_panel_bytes(width, block->depth, WORD);
  _Alignas(64) char lines[MP_PANEL_LINES][WORD * MP_GEMM_BLOCK_K];
  const void *pointers[MP_PANEL_LINES];
  for (int64_t r = 0; r < rows;) {
    const uint32_t lane = (uint32_t)(r % width);
    const int64_t in_panel = mp_min_i64(width - lane, rows - r);
    const uint32_t count = (uint32_t)mp_min_i64(MP_PANEL_LINES, in_panel);
    for (uint32_t l = 0; l < count; ++l) {
      int64_t row_offset = 0;
      mp_axes_offsets(&block->side->rows, row + r + l, 1, &row_offset);
      operand_words_line(block, row_offset, lines[l]);
      pointers[l] = lines[l];
    }
    const mp_panel_t panel = {panels + (size_t)(r / width) * panel_bytes, width, WORD};
    mp_panel_set_lanes(&panel, lane, pointers, count, block->depth);
    r += count;
  }
}

void mp_operand_words_pack(const mp_operand_t *side, const void *base, const mp_gemm_range_t *range,
                           uint32_t width, void *panels) {
  const int64_t row = range->row, rows = range->rows;
  const size_t panel_bytes = mp_gemm_panel_bytes(width, range->depth, WORD);
  const int64_t num_panels = (rows + width - 1) / width;
  if (rows % width != 0) {
    memset((char *)panels + (size_t)(num_panels - 1) * panel_bytes, 0, panel_bytes);
  }
  block_t block;
  operand_words_block(side, base, range, &block);
  int64_t row_offset = 0, step = 0;
  if (mp_axes_step(&side->rows, &step) && step == side->element) {
    mp_axes_offsets(&side->rows, row, 1, &row_offset);
    operand_words_pack_by_k(&block, block.src + row_offset, rows, width, panels);
  } else {
    operand_words_pack_lines(&block, row, rows, width, panels);
  }
  for (int64_t i = 0; side->has_offset && i < num_panels; ++i) {
    void *panel = (char *)panels + (size_t)i * panel_bytes;
    operand_words_offset(width * range->depth, panel);
  }
}

void mp_operand_words_lines(const mp_operand_t *side, const void *base,
                            const mp_gemm_range_t *range, int64_t step, void *lines) {
  block_t block;
  operand_words_block(side, base, range, &block);
  for (int64_t r = 0; r < range->rows; ++r) {
    int64_t row_offset = 0;
    mp_axes_offsets(&side->rows, range->row + r, 1, &row_offset);
    void *line = (char *)lines + r * step;
    operand_words_line(&block, row_offset, line);
    if (side->has_offset) operand_words_offset(range->depth, line);
  }
}
