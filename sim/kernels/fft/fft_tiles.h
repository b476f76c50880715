// Tiles of pairs (re, im), transposed in registers: from lines that lie one after the other to
// lines side by side, and back. Private to fft.c.
//
// A tile is one vector of 16 bytes of each of TILE_LINES lines: that many bytes are a register on
// every machine.
#ifndef MINIPOD_SIM_KERNELS_FFT_FFT_TILES_H_
#define MINIPOD_SIM_KERNELS_FFT_FFT_TILES_H_

#include <stdint.h>

enum { TILE_LINES_f = 4, TILE_PAIRS_f = 2, TILE_LINES_d = 2, TILE_PAIRS_d = 1 };

typedef float tile_row_f __attribute__((vector_size(16), aligned(4), may_alias));
typedef double tile_row_d __attribute__((vector_size(16), aligned(8), may_alias));

// Pair i of line l, at src[l * stride + 2 * i], becomes element i * lines + l of `re` and `im`.
static inline void load_tile_f(const float *src, int64_t stride, int64_t lines, float *re,
                               float *im) {
  const tile_row_f a = *(const tile_row_f *)src, b = *(const tile_row_f *)(src + stride);
  const tile_row_f c = *(const tile_row_f *)(src + 2 * stride);
  const tile_row_f d = *(const tile_row_f *)(src + 3 * stride);
  tile_row_f ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  tile_row_f cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  *(tile_row_f *)re = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
  *(tile_row_f *)im = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  *(tile_row_f *)(re + lines) = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
  *(tile_row_f *)(im + lines) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

static inline void load_tile_d(const double *src, int64_t stride, int64_t lines, double *re,
                               double *im) {
  (void)lines;  // a tile is one element high
  const tile_row_d a = *(const tile_row_d *)src, b = *(const tile_row_d *)(src + stride);
  *(tile_row_d *)re = __builtin_shufflevector(a, b, 0, 2);
  *(tile_row_d *)im = __builtin_shufflevector(a, b, 1, 3);
}

// The way back; all numbers are multiplied by `scale`.
static inline void store_tile_f(const float *re, const float *im, int64_t lines, float scale,
                                int64_t stride, float *dst) {
  const tile_row_f re0 = *(const tile_row_f *)re * scale, im0 = *(const tile_row_f *)im * scale;
  const tile_row_f re1 = *(const tile_row_f *)(re + lines) * scale;
  const tile_row_f im1 = *(const tile_row_f *)(im + lines) * scale;
  tile_row_f first = __builtin_shufflevector(re0, im0, 0, 4, 1, 5);
  tile_row_f second = __builtin_shufflevector(re1, im1, 0, 4, 1, 5);
  *(tile_row_f *)dst = __builtin_shufflevector(first, second, 0, 1, 4, 5);
  *(tile_row_f *)(dst + stride) = __builtin_shufflevector(first, second, 2, 3, 6, 7);
  first = __builtin_shufflevector(re0, im0, 2, 6, 3, 7);
  second = __builtin_shufflevector(re1, im1, 2, 6, 3, 7);
  *(tile_row_f *)(dst + 2 * stride) = __builtin_shufflevector(first, second, 0, 1, 4, 5);
  *(tile_row_f *)(dst + 3 * stride) = __builtin_shufflevector(first, second, 2, 3, 6, 7);
}

static inline void store_tile_d(const double *re, const double *im, int64_t lines, double scale,
                                int64_t stride, double *dst) {
  (void)lines;
  const tile_row_d a = *(const tile_row_d *)re * scale, b = *(const tile_row_d *)im * scale;
  *(tile_row_d *)dst = __builtin_shufflevector(a, b, 0, 2);
  *(tile_row_d *)(dst + stride) = __builtin_shufflevector(a, b, 1, 3);
}

#endif  // MINIPOD_SIM_KERNELS_FFT_FFT_TILES_H_
