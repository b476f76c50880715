#include "sim/kernels/fused/tile/view_shuffle.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif
#include <string.h>

#include "sim/base/vector.h"
#include "sim/kernels/shape.h"

#ifdef __x86_64__

// The first lanes of a block, fewer than all, one by one.
static void view_shuffle_rest(const mp_view_shuffle_t *shuffle, const float *base, int64_t block,
                              int64_t lanes, float *out) {
  const mp_view_window_t *windows = shuffle->windows + block * shuffle->num_windows;
  for (int64_t i = 0; i < lanes; ++i) {
    uint32_t w = 0;
    while ((windows[w].to >> i & 1) == 0) ++w;
    memcpy(&out[i], &base[windows[w].place + shuffle->picks[block][i]], MP_SHUFFLE_LANE);
  }
}

// The lanes of a block, from its windows in the base.
MP_AVX512 static inline __attribute__((always_inline)) __m512 view_shuffle_block(
    const mp_view_window_t *windows, uint32_t num_windows, bool has_whole, __m512i pick,
    const float *base) {
  __m512 all = _mm512_setzero_ps();
  for (uint32_t w = 0; w < num_windows; ++w) {
    const float *from = base + windows[w].place;
    const __m512 in =
        has_whole ? _mm512_loadu_ps(from) : _mm512_maskz_loadu_ps(windows[w].from, from);
    all = _mm512_mask_permutexvar_ps(all, windows[w].to, pick, in);
  }
  return all;
}

MP_AVX512 static inline __m512i view_shuffle_pick(const uint8_t *picks) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)picks));
}

// Each number of windows has its own loop, in which it is a constant.
#define NUMS_OF_WINDOWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
_Static_assert(MP_SHUFFLE_MAX_WINDOWS == 6, "NUMS_OF_WINDOWS lists all");

// `lanes` lanes from block `first` on, of one period.
MP_AVX512 static inline __attribute__((always_inline)) void view_shuffle_blocks(
    const mp_view_shuffle_t *shuffle, uint32_t num_windows, bool has_whole, const float *base,
    int64_t first, int64_t lanes, float *out) {
  const mp_view_window_t *windows = shuffle->windows + first * num_windows;
  const uint8_t(*picks)[MP_SHUFFLE_LANES] = shuffle->picks + first;
  for (; lanes > 0; lanes -= MP_SHUFFLE_LANES, out += MP_SHUFFLE_LANES, ++picks) {
    const __m512 all =
        view_shuffle_block(windows, num_windows, has_whole, view_shuffle_pick(*picks), base);
    windows += num_windows;
    if (lanes >= MP_SHUFFLE_LANES) {
      _mm512_storeu_ps(out, all);
    } else {
      _mm512_mask_storeu_ps(out, (__mmask16)((1u << lanes) - 1), all);
    }
  }
}

MP_AVX512 static void view_shuffle_period(const mp_view_shuffle_t *shuffle, const float *base,
                                          int64_t first, int64_t lanes, float *out) {
  if (shuffle->is_cut && lanes % MP_SHUFFLE_LANES != 0) {
    const int64_t rest = lanes % MP_SHUFFLE_LANES;
    lanes -= rest;
    view_shuffle_rest(shuffle, base, first + lanes / MP_SHUFFLE_LANES, rest, out + lanes);
  }
  switch (shuffle->num_windows << 1 | shuffle->has_whole) {
#define CASE(count)                                                      \
  case (count) << 1:                                                     \
    view_shuffle_blocks(shuffle, count, false, base, first, lanes, out); \
    break;                                                               \
  case (count) << 1 | 1:                                                 \
    view_shuffle_blocks(shuffle, count, true, base, first, lanes, out);  \
    break;
    NUMS_OF_WINDOWS(CASE)
#undef CASE
    default:
      break;
  }
}

// `n` whole blocks that are alike. Vectors of the last one may extend beyond the base.
MP_AVX512 static inline __attribute__((always_inline)) void view_shuffle_alike_blocks(
    const mp_view_shuffle_t *shuffle, uint32_t num_windows, const float *base, int64_t n,
    float *out) {
  const __m512i pick = view_shuffle_pick(shuffle->picks[0]);
  for (int64_t b = 0; b + 1 < n; ++b, base += shuffle->step, out += MP_SHUFFLE_LANES) {
    _mm512_storeu_ps(out, view_shuffle_block(shuffle->windows, num_windows, true, pick, base));
  }
  view_shuffle_blocks(shuffle, num_windows, false, base, 0, MP_SHUFFLE_LANES, out);
}

MP_AVX512 static void view_shuffle_alike(const mp_view_shuffle_t *shuffle, const float *base,
                                         int64_t lanes, float *out) {
  const int64_t n = lanes / MP_SHUFFLE_LANES, rest = lanes % MP_SHUFFLE_LANES;
  view_shuffle_rest(shuffle, base + n * shuffle->step, 0, rest, out + n * MP_SHUFFLE_LANES);
  if (n == 0) return;
  switch (shuffle->num_windows) {
#define CASE(count)                                          \
  case count:                                                \
    view_shuffle_alike_blocks(shuffle, count, base, n, out); \
    break;
    NUMS_OF_WINDOWS(CASE)
#undef CASE
    default:
      break;
  }
}

bool mp_view_shuffle_load(const mp_view_shuffle_t *shuffle, size_t size, const void *base,
                          int64_t begin, int64_t count, void *out) {
  const int64_t per = (int64_t)(size / MP_SHUFFLE_LANE);
  if (begin * per % MP_SHUFFLE_LANES != 0) return false;
  int64_t block = begin * per / MP_SHUFFLE_LANES, lanes = count * per, in = 0;
  if (shuffle->is_alike) {
    view_shuffle_alike(shuffle, (const float *)base + block * shuffle->step, lanes, out);
    return true;
  }
  if (block >= shuffle->period) {
    in = block / shuffle->period * shuffle->step;
    block %= shuffle->period;
  }
  for (int64_t done = 0, n; done < lanes; done += n, in += shuffle->step, block = 0) {
    n = mp_min_i64(lanes - done, (shuffle->period - block) * MP_SHUFFLE_LANES);
    view_shuffle_period(shuffle, (const float *)base + in, block, n, (float *)out + done);
  }
  return true;
}

#else

bool mp_view_shuffle_load(const mp_view_shuffle_t *shuffle, size_t size, const void *base,
                          int64_t begin, int64_t count, void *out) {
  (void)shuffle, (void)size, (void)base, (void)begin, (void)count, (void)out;
  return false;
}

#endif
