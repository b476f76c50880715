// The work on lines before and after their transform, once for floats and once for doubles. No
// include guard: fft.c includes it with R (the real type) and F(name) (the name for it) defined.
//
// `work` holds up to LINES lines side by side.

typedef struct {
  R *re, *im, *scratch;
  R *pairs_re, *pairs_im;  // the complex side of lines whose other side is real
} F(work_t);

static void F(run_lines)(const fft_kernel_t *self, int64_t lines, const F(work_t) * work) {
  if (self->inverse) {
    F(mp_fft_run)(self->plan, lines, work->im, work->re, work->scratch);
  } else {
    F(mp_fft_run)(self->plan, lines, work->re, work->im, work->scratch);
  }
}

// ---- Lines one after the other ----

// The number of pairs that are moved from one line before the next line's: a few cache lines. More
// of each would not fit, because lines of powers of two fall into the same places of the cache.
#define BLOCK 64

// Moves the pairs [begin, begin + count) of the lines [l, l + TILE_LINES) of `lines`, see
// load_pairs.
static inline void F(load_block)(const R *src, int64_t stride, int64_t begin, int64_t count,
                                 int64_t l, int64_t lines, R *restrict re, R *restrict im) {
  const R *from = src + l * stride + 2 * begin;
  for (int64_t i = 0; i < count; i += F(TILE_PAIRS)) {
    const int64_t at = (begin + i) * lines + l;
    F(load_tile)(from + 2 * i, stride, lines, re + at, im + at);
  }
}

static inline void F(store_block)(const R *re, const R *im, int64_t begin, int64_t count, int64_t l,
                                  int64_t lines, R scale, int64_t stride, R *restrict dst) {
  R *to = dst + l * stride + 2 * begin;
  for (int64_t i = 0; i < count; i += F(TILE_PAIRS)) {
    const int64_t at = (begin + i) * lines + l;
    F(store_tile)(re + at, im + at, lines, scale, stride, to + 2 * i);
  }
}

// Puts lines of pairs side by side: pair i of line l, at src[l * stride + 2 * i], becomes element
// i * lines + l of `re` and `im`.
MP_VECTOR static void F(load_pairs)(const R *src, int64_t stride, int64_t count, int64_t lines,
                                    R *restrict re, R *restrict im) {
  const int64_t tiled = count - count % F(TILE_PAIRS), tiled_lines = lines - lines % F(TILE_LINES);
  for (int64_t begin = 0, pairs; begin < tiled; begin += pairs) {
    pairs = mp_min_i64(BLOCK, tiled - begin);
    for (int64_t l = 0; l < tiled_lines; l += F(TILE_LINES)) {
      if (lines == LINES) {
        F(load_block)(src, stride, begin, pairs, l, LINES, re, im);
      } else {
        F(load_block)(src, stride, begin, pairs, l, lines, re, im);
      }
    }
  }
  for (int64_t l = 0; l < lines; ++l) {
    for (int64_t i = l < tiled_lines ? tiled : 0; i < count; ++i) {
      re[i * lines + l] = src[l * stride + 2 * i];
      im[i * lines + l] = src[l * stride + 2 * i + 1];
    }
  }
}

// Puts lines that are side by side one after the other as pairs, scaled: element i of line l goes
// to dst[l * stride + 2 * i].
MP_VECTOR static void F(store_pairs)(const R *re, const R *im, int64_t count, int64_t lines,
                                     R scale, int64_t stride, R *restrict dst) {
  const int64_t tiled = count - count % F(TILE_PAIRS), tiled_lines = lines - lines % F(TILE_LINES);
  for (int64_t begin = 0, pairs; begin < tiled; begin += pairs) {
    pairs = mp_min_i64(BLOCK, tiled - begin);
    for (int64_t l = 0; l < tiled_lines; l += F(TILE_LINES)) {
      if (lines == LINES) {
        F(store_block)(re, im, begin, pairs, l, LINES, scale, stride, dst);
      } else {
        F(store_block)(re, im, begin, pairs, l, lines, scale, stride, dst);
      }
    }
  }
  for (int64_t l = 0; l < lines; ++l) {
    for (int64_t i = l < tiled_lines ? tiled : 0; i < count; ++i) {
      dst[l * stride + 2 * i] = re[i * lines + l] * scale;
      dst[l * stride + 2 * i + 1] = im[i * lines + l] * scale;
    }
  }
}

// ---- Lines side by side already ----

// Lines have elements that are `inner` pairs apart. Values [begin, begin + count) of every element
// become lines [first, first + count) of `lines`.
MP_VECTOR static void F(load_columns)(const R *src, int64_t inner, int64_t n, int64_t count,
                                      int64_t lines, R *restrict re, R *restrict im) {
  for (int64_t i = 0; i < n; ++i) {
    const R *from = src + 2 * i * inner;
    R *to_re = re + i * lines, *to_im = im + i * lines;
    if (count == LINES) {
      for (int64_t c = 0; c < LINES; ++c) {
        to_re[c] = from[2 * c];
        to_im[c] = from[2 * c + 1];
      }
    } else {
      for (int64_t c = 0; c < count; ++c) {
        to_re[c] = from[2 * c];
        to_im[c] = from[2 * c + 1];
      }
    }
  }
}

// The way back; all numbers are multiplied by `scale`.
MP_VECTOR static void F(store_columns)(const R *re, const R *im, int64_t inner, int64_t n,
                                       int64_t count, int64_t lines, R scale, R *restrict dst) {
  for (int64_t i = 0; i < n; ++i) {
    const R *from_re = re + i * lines, *from_im = im + i * lines;
    R *to = dst + 2 * i * inner;
    if (count == LINES) {
      for (int64_t c = 0; c < LINES; ++c) {
        to[2 * c] = from_re[c] * scale;
        to[2 * c + 1] = from_im[c] * scale;
      }
    } else {
      for (int64_t c = 0; c < count; ++c) {
        to[2 * c] = from_re[c] * scale;
        to[2 * c + 1] = from_im[c] * scale;
      }
    }
  }
}

// Transforms `lines` lines of an array [outer, n, inner], of which the first has number `first` in
// [outer, inner]. The array of results may be the same.
static void F(columns)(const fft_kernel_t *self, int64_t first, int64_t lines, const R *src, R *dst,
                       const F(work_t) * work) {
  const int64_t n = self->n, inner = self->inner;
  for (int64_t l = 0, count; l < lines; l += count) {
    const int64_t outer = (first + l) / inner, c = (first + l) % inner;
    count = mp_min_i64(lines - l, inner - c);
    F(load_columns)
    (src + 2 * (outer * n * inner + c), inner, n, count, lines, work->re + l, work->im + l);
  }
  F(run_lines)(self, lines, work);
  for (int64_t l = 0, count; l < lines; l += count) {
    const int64_t outer = (first + l) / inner, c = (first + l) % inner;
    count = mp_min_i64(lines - l, inner - c);
    F(store_columns)
    (work->re + l, work->im + l, inner, n, count, lines, (R)self->scale,
     dst + 2 * (outer * n * inner + c));
  }
}

static void F(complex_rows)(const fft_kernel_t *self, int64_t first, int64_t lines, const R *src,
                            R *dst, const F(work_t) * work) {
  const int64_t n = self->n;
  F(load_pairs)(src + 2 * first * n, 2 * n, n, lines, work->re, work->im);
  F(run_lines)(self, lines, work);
  F(store_pairs)(work->re, work->im, n, lines, (R)self->scale, 2 * n, dst + 2 * first * n);
}

// ---- Real lines ----
//
// A line x of even length n is transformed as h = n / 2 pairs z[i] = (x[2i], x[2i + 1]): with Z the
// transform of z, Z[h] = Z[0] and w = exp(-2 pi i / n), that of x is, at k = 0 .. h,
//     E[k] + w^k O[k],  E[k] = (Z[k] + conj Z[h - k]) / 2,  O[k] = -i (Z[k] - conj Z[h - k]) / 2.

// Value k from Z[k] = (zr, zi) and Z[h - k] = (yr, yi), of `lines` lines.
static inline void F(unfold_value)(int64_t lines, const R *zr, const R *zi, const R *yr,
                                   const R *yi, R c, R s, R *restrict re, R *restrict im) {
  const R half = (R)0.5;
  for (int64_t l = 0; l < lines; ++l) {
    const R er = (zr[l] + yr[l]) * half, ei = (zi[l] - yi[l]) * half;
    const R dr = (zi[l] + yi[l]) * half, di = (yr[l] - zr[l]) * half;
    re[l] = er + c * dr - s * di;
    im[l] = ei + c * di + s * dr;
  }
}

// Values [begin, end) of lines side by side.
MP_VECTOR static void F(unfold)(const fft_kernel_t *self, int64_t lines, int64_t begin, int64_t end,
                                const F(work_t) * work, R *restrict re, R *restrict im) {
  const int64_t h = self->n / 2;
  const R *w = self->half_roots;
  for (int64_t k = begin; k < end; ++k, re += lines, im += lines) {
    const R *zr = work->re + (k == h ? 0 : k) * lines, *zi = work->im + (k == h ? 0 : k) * lines;
    const int64_t mirror = k == 0 ? 0 : h - k;
    const R *yr = work->re + mirror * lines, *yi = work->im + mirror * lines;
    if (lines == LINES) {
      F(unfold_value)(LINES, zr, zi, yr, yi, w[2 * k], w[2 * k + 1], re, im);
    } else {
      F(unfold_value)(lines, zr, zi, yr, yi, w[2 * k], w[2 * k + 1], re, im);
    }
    if (k == 0 || k == h) memset(im, 0, (size_t)lines * sizeof(R));
  }
}

static void F(rows_from_real)(const fft_kernel_t *self, int64_t first, int64_t lines, const R *src,
                              R *dst, const F(work_t) * work) {
  const int64_t n = self->n, half = n / 2 + 1;
  const R *x = src + first * n, scale = (R)self->scale;
  dst += 2 * first * half;
  if (self->half_roots != NULL) {
    F(load_pairs)(x, n, n / 2, lines, work->re, work->im);
    F(run_lines)(self, lines, work);
    for (int64_t k = 0, end; k < half; k = end) {
      R re[BLOCK * LINES], im[BLOCK * LINES];
      end = mp_min_i64(k + BLOCK, half);
      F(unfold)(self, lines, k, end, work, re, im);
      F(store_pairs)(re, im, end - k, lines, scale, 2 * half, dst + 2 * k);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t l = 0; l < lines; ++l) {
        work->re[i * lines + l] = x[l * n + i];
        work->im[i * lines + l] = 0;
      }
    }
    F(run_lines)(self, lines, work);
    for (int64_t l = 0; l < lines; ++l) work->im[l] = 0;
    F(store_pairs)(work->re, work->im, half, lines, scale, 2 * half, dst);
  }
}

// The same formulas in the other direction: 2 Z[k] = 2 (E[k] + i O[k]) from values k and h - k,
// (xr, xi) and (yr, yi), of `lines` lines.
static inline void F(fold_value)(int64_t lines, const R *xr, const R *xi, const R *yr, const R *yi,
                                 R c, R s, R *restrict re, R *restrict im) {
  for (int64_t l = 0; l < lines; ++l) {
    const R er = xr[l] + yr[l], ei = xi[l] - yi[l];
    const R dr = xr[l] - yr[l], di = xi[l] + yi[l];
    re[l] = er - (di * c - dr * s);
    im[l] = ei + (dr * c + di * s);
  }
}

MP_VECTOR static void F(fold)(const fft_kernel_t *self, int64_t lines, const F(work_t) * work) {
  const int64_t h = self->n / 2;
  const R *w = self->half_roots;
  // The real values of a real line's transform have imaginary part 0, whatever is stored there.
  for (int64_t l = 0; l < lines; ++l) work->pairs_im[l] = work->pairs_im[h * lines + l] = 0;
  for (int64_t k = 0; k < h; ++k) {
    const R *xr = work->pairs_re + k * lines, *xi = work->pairs_im + k * lines;
    const R *yr = work->pairs_re + (h - k) * lines, *yi = work->pairs_im + (h - k) * lines;
    R *re = work->re + k * lines, *im = work->im + k * lines;
    if (lines == LINES) {
      F(fold_value)(LINES, xr, xi, yr, yi, w[2 * k], w[2 * k + 1], re, im);
    } else {
      F(fold_value)(lines, xr, xi, yr, yi, w[2 * k], w[2 * k + 1], re, im);
    }
  }
}

// A line of odd length has no middle value; the values that are not stored are conjugates of
// others.
static void F(mirror)(const fft_kernel_t *self, int64_t lines, const F(work_t) * work) {
  const int64_t n = self->n, half = n / 2 + 1;
  for (int64_t k = 0; k < half; ++k) {
    const int64_t mirror = k == 0 ? 0 : n - k;
    for (int64_t l = 0; l < lines; ++l) {
      const R im = k == 0 ? 0 : work->pairs_im[k * lines + l];
      work->re[k * lines + l] = work->re[mirror * lines + l] = work->pairs_re[k * lines + l];
      work->im[mirror * lines + l] = -im;
      work->im[k * lines + l] = im;
    }
  }
}

static void F(rows_to_real)(const fft_kernel_t *self, int64_t first, int64_t lines, const R *src,
                            R *dst, const F(work_t) * work) {
  const int64_t n = self->n, half = n / 2 + 1;
  const R scale = (R)self->scale;
  R *x = dst + first * n;
  F(load_pairs)(src + 2 * first * half, 2 * half, half, lines, work->pairs_re, work->pairs_im);
  if (self->half_roots != NULL) {
    F(fold)(self, lines, work);
    F(run_lines)(self, lines, work);
    F(store_pairs)(work->re, work->im, n / 2, lines, scale, n, x);
  } else {
    F(mirror)(self, lines, work);
    F(run_lines)(self, lines, work);
    for (int64_t l = 0; l < lines; ++l) {
      for (int64_t i = 0; i < n; ++i) x[l * n + i] = work->re[i * lines + l] * scale;
    }
  }
}

// Transforms `lines` lines, of which the first has number `first`.
static void F(run_block)(const fft_kernel_t *self, int64_t first, int64_t lines, const void *src,
                         void *dst, void *scratch) {
  const int64_t most = self->lines;
  F(work_t) work = {.re = scratch};
  work.im = work.re + most * self->n;
  work.pairs_re = work.im + most * self->n;
  work.pairs_im = work.pairs_re + most * self->half;
  work.scratch = work.pairs_im + most * self->half;
  if (self->real_in) {
    F(rows_from_real)(self, first, lines, src, dst, &work);
  } else if (self->real_out) {
    F(rows_to_real)(self, first, lines, src, dst, &work);
  } else if (self->inner > 1) {
    F(columns)(self, first, lines, src, dst, &work);
  } else {
    F(complex_rows)(self, first, lines, src, dst, &work);
  }
}

#undef BLOCK
