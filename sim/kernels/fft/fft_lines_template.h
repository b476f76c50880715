// The stages of a transform over several dimensions, once for floats and once for doubles. No
// include guard: fft.c includes it with R (the real type) and F(name) (the name for it) defined.
//
// `re` and `im` are the array between the stages: [outer dimensions, row], a row being what the
// last dimension has on its complex side. `work` holds LINES lines side by side.

typedef struct {
  R *re, *im, *scratch;
} F(work_t);

static void F(run_lines)(const fft_kernel_t *self, const mp_fft_plan_t *plan, int64_t lines,
                         const F(work_t) * work) {
  if (self->inverse) {
    F(mp_fft_run)(plan, lines, work->im, work->re, work->scratch);
  } else {
    F(mp_fft_run)(plan, lines, work->re, work->im, work->scratch);
  }
}

// The elements of a line that are moved before those of the next line: the lines of powers of two
// fall into the same places of the cache, where there is no room for a cache line of each.
#define BLOCK 16

// Puts lines of pairs side by side: pair i of line l, at src[l * stride + 2 * i], becomes element
// i * lines + l of `re` and `im`.
MP_VECTOR static void F(load_pairs)(const R *src, int64_t stride, int64_t count, int64_t lines,
                                    R *restrict re, R *restrict im) {
  for (int64_t begin = 0; begin < count; begin += BLOCK) {
    const int64_t end = mp_min_i64(begin + BLOCK, count);
    for (int64_t l = 0; l < lines; ++l) {
      for (int64_t i = begin; i < end; ++i) {
        re[i * lines + l] = src[l * stride + 2 * i];
        im[i * lines + l] = src[l * stride + 2 * i + 1];
      }
    }
  }
}

// Puts lines that are side by side one after the other: element i of line l goes to
// dst[l * stride + i].
MP_VECTOR static void F(store_lines)(const R *src, int64_t count, int64_t lines, int64_t stride,
                                     R *restrict dst) {
  for (int64_t begin = 0; begin < count; begin += BLOCK) {
    const int64_t end = mp_min_i64(begin + BLOCK, count);
    for (int64_t l = 0; l < lines; ++l) {
      for (int64_t i = begin; i < end; ++i) dst[l * stride + i] = src[i * lines + l];
    }
  }
}

// The same for lines of pairs, element i of line l to dst[2 * (l * stride + i)], scaled.
MP_VECTOR static void F(store_pairs)(const R *re, const R *im, int64_t count, int64_t lines,
                                     int64_t stride, R scale, R *restrict dst) {
  for (int64_t begin = 0; begin < count; begin += BLOCK) {
    const int64_t end = mp_min_i64(begin + BLOCK, count);
    for (int64_t l = 0; l < lines; ++l) {
      for (int64_t i = begin; i < end; ++i) {
        dst[2 * (l * stride + i)] = re[i * lines + l] * scale;
        dst[2 * (l * stride + i) + 1] = im[i * lines + l] * scale;
      }
    }
  }
}

// Where transformed rows go: into the array, or, if there is no other stage, to the result.
typedef struct {
  R *re, *im;  // the array
  R *pairs;    // the result; NULL: into the array
  R scale;     // of the result
} F(rows_t);

// Stores `count` values of each line, of which the first is number `at` of all.
static void F(store_rows)(const F(rows_t) * to, const R *re, const R *im, int64_t count,
                          int64_t lines, int64_t stride, int64_t at) {
  if (to->pairs != NULL) {
    F(store_pairs)(re, im, count, lines, stride, to->scale, to->pairs + 2 * at);
  } else {
    F(store_lines)(re, count, lines, stride, to->re + at);
    F(store_lines)(im, count, lines, stride, to->im + at);
  }
}

// Transforms the last dimension of complex rows, from `src` into the array.
static void F(complex_rows)(const fft_kernel_t *self, const R *src, int64_t rows,
                            const F(rows_t) * to, const F(work_t) * work) {
  int64_t n = self->dims[self->rank - 1];
  for (int64_t first = 0; first < rows; first += LINES) {
    int64_t lines = mp_min_i64(LINES, rows - first), at = first * n;
    F(load_pairs)(src + 2 * at, 2 * n, n, lines, work->re, work->im);
    F(run_lines)(self, self->plans[self->rank - 1], lines, work);
    F(store_rows)(to, work->re, work->im, n, lines, n, at);
  }
}

// Values [begin, end) of the transforms of real lines of even length n, side by side in `re` and
// `im`, from the transforms Z of half the length, h, of the pairs (x[2i], x[2i + 1]):
// (Z[k] + conj Z[h - k]) / 2 - i w^k (Z[k] - conj Z[h - k]) / 2, w = exp(-2 pi i / n).
MP_VECTOR static void F(unfold)(const F(work_t) * work, const R *w, int64_t h, int64_t lines,
                                int64_t begin, int64_t end, R *restrict re, R *restrict im) {
  for (int64_t k = begin; k < end; ++k) {
    const R *zr = work->re + k % h * lines, *zi = work->im + k % h * lines;
    const R *yr = work->re + (h - k) % h * lines, *yi = work->im + (h - k) % h * lines;
    R *outr = re + (k - begin) * lines, *outi = im + (k - begin) * lines;
    const R c = w[2 * k], s = w[2 * k + 1];
    const bool is_real = k == 0 || k == h;
    for (int64_t l = 0; l < lines; ++l) {
      R ar = zr[l], ai = zi[l], br = yr[l], bi = -yi[l];
      R er = (ar + br) / 2, ei = (ai + bi) / 2;
      R dr = (ai - bi) / 2, di = (br - ar) / 2;  // -i (Z[k] - conj Z[h - k]) / 2
      outr[l] = er + c * dr - s * di;
      outi[l] = is_real ? 0 : ei + c * di + s * dr;
    }
  }
}

// Transforms the last dimension of real rows; for an even length by complex transforms of half of
// it.
static void F(real_rows)(const fft_kernel_t *self, const R *src, int64_t rows, const F(rows_t) * to,
                         const F(work_t) * work) {
  int64_t n = self->dims[self->rank - 1], half = self->half;
  const R *w = self->half_roots;
  for (int64_t first = 0; first < rows; first += LINES) {
    int64_t lines = mp_min_i64(LINES, rows - first);
    const R *x = src + first * n;
    if (w != NULL) F(load_pairs)(x, n, n / 2, lines, work->re, work->im);
    for (int64_t i = 0; w == NULL && i < n; ++i) {
      for (int64_t l = 0; l < lines; ++l) {
        work->re[i * lines + l] = x[l * n + i];
        work->im[i * lines + l] = 0;
      }
    }
    F(run_lines)(self, self->plans[self->rank - 1], lines, work);
    if (w == NULL) {
      for (int64_t l = 0; l < lines; ++l) work->im[l] = 0;
      F(store_rows)(to, work->re, work->im, half, lines, half, first * half);
    }
    for (int64_t k = 0, end; w != NULL && k < half; k = end) {
      R block_re[BLOCK * LINES], block_im[BLOCK * LINES];
      end = mp_min_i64(k + BLOCK, half);
      F(unfold)(work, w, n / 2, lines, k, end, block_re, block_im);
      F(store_rows)(to, block_re, block_im, end - k, lines, half, first * half + k);
    }
  }
}

// Transforms the last dimension back to real rows, by the same formulas in the other direction.
static void F(rows_to_real)(const fft_kernel_t *self, const R *re, const R *im, int64_t rows,
                            R *dst, const F(work_t) * work) {
  int64_t n = self->dims[self->rank - 1], half = self->half, h = n / 2;
  const R *w = self->half_roots;
  R scale = (R)self->scale;
  for (int64_t first = 0; first < rows; first += LINES) {
    int64_t lines = mp_min_i64(LINES, rows - first);
    for (int64_t l = 0; l < lines; ++l) {
      const R *xr = re + (first + l) * half, *xi = im + (first + l) * half;
      for (int64_t k = 0; w != NULL && k < h; ++k) {
        R ai = k == 0 ? 0 : xi[k], bi = k == 0 ? 0 : -xi[h - k];
        R er = xr[k] + xr[h - k], ei = ai + bi;
        R dr = xr[k] - xr[h - k], di = ai - bi;
        R tr = dr * w[2 * k] + di * w[2 * k + 1], ti = di * w[2 * k] - dr * w[2 * k + 1];
        work->re[k * lines + l] = er - ti;
        work->im[k * lines + l] = ei + tr;
      }
      for (int64_t k = 0; w == NULL && k < half; ++k) {  // an odd length, mirrored
        int64_t mirror = k == 0 ? 0 : n - k;
        R ai = k == 0 ? 0 : xi[k];
        work->re[k * lines + l] = work->re[mirror * lines + l] = xr[k];
        work->im[k * lines + l] = ai;
        work->im[mirror * lines + l] = -ai;
      }
    }
    F(run_lines)(self, self->plans[self->rank - 1], lines, work);
    for (int64_t l = 0; l < lines; ++l) {
      R *x = dst + (first + l) * n;
      for (int64_t i = 0; i < (w != NULL ? h : n); ++i) {
        if (w != NULL) {
          x[2 * i] = work->re[i * lines + l] * scale;
          x[2 * i + 1] = work->im[i * lines + l] * scale;
        } else {
          x[i] = work->re[i * lines + l] * scale;
        }
      }
    }
  }
}

// Transforms another dimension; the array is seen as [outer, n, inner].
static void F(columns)(const fft_kernel_t *self, uint32_t dim, int64_t outer, int64_t inner, R *re,
                       R *im, const F(work_t) * work) {
  int64_t n = self->dims[dim];
  for (int64_t o = 0; o < outer; ++o, re += n * inner, im += n * inner) {
    for (int64_t first = 0; first < inner; first += LINES) {
      int64_t lines = mp_min_i64(LINES, inner - first);
      size_t bytes = (size_t)lines * sizeof(R);
      for (int64_t i = 0; i < n; ++i) {
        memcpy(work->re + i * lines, re + i * inner + first, bytes);
        memcpy(work->im + i * lines, im + i * inner + first, bytes);
      }
      F(run_lines)(self, self->plans[dim], lines, work);
      for (int64_t i = 0; i < n; ++i) {
        memcpy(re + i * inner + first, work->re + i * lines, bytes);
        memcpy(im + i * inner + first, work->im + i * lines, bytes);
      }
    }
  }
}

MP_VECTOR static void F(split)(const R *src, int64_t count, R *re, R *im) {
  for (int64_t i = 0; i < count; ++i) {
    re[i] = src[2 * i];
    im[i] = src[2 * i + 1];
  }
}

MP_VECTOR static void F(join)(const R *re, const R *im, int64_t count, R scale, R *dst) {
  for (int64_t i = 0; i < count; ++i) {
    dst[2 * i] = re[i] * scale;
    dst[2 * i + 1] = im[i] * scale;
  }
}

// Does `group` whole transforms.
static void F(run_group)(const fft_kernel_t *self, int64_t group, const void *src, void *dst,
                         void *scratch) {
  R *re = scratch, *im = re + self->group * self->complex_count;
  F(work_t) work = {.re = im + self->group * self->complex_count};
  work.im = work.re + LINES * self->longest;
  work.scratch = work.im + LINES * self->longest;
  uint32_t last = self->rank - 1;
  int64_t row = self->complex_count / self->rows, rows = group * self->rows;
  const F(rows_t) to = {re, im, last == 0 ? dst : NULL, (R)self->scale};
  if (self->real_out) {
    F(split)(src, rows * row, re, im);
  } else if (self->real_in) {
    F(real_rows)(self, src, rows, &to, &work);
  } else {
    F(complex_rows)(self, src, rows, &to, &work);
  }
  int64_t outer = group, inner = self->complex_count;
  for (uint32_t d = 0; d < last; ++d) {
    inner /= self->dims[d];
    F(columns)(self, d, outer, inner, re, im, &work);
    outer *= self->dims[d];
  }
  if (self->real_out) {
    F(rows_to_real)(self, re, im, rows, dst, &work);
  } else if (last > 0) {
    F(join)(re, im, rows * row, (R)self->scale, dst);
  }
}

#undef BLOCK
