#include "sim/kernels/transpose.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/vector.h"
#include "sim/kernels/shape.h"

// ---- Tiles ----
//
// Rows are contiguous in the destination, columns in the source. Tiles of 64 x 64 bytes go through
// a buffer, so that every cache line on either side is touched once, whatever the steps are.

enum { LINE = 64, BLOCK = 16 };

// Transposes tiles of whole blocks of N x N elements, between lines that are `in_step` and
// `out_step` bytes apart. A block takes log2 N steps that each interleave the upper with the lower
// half of the vectors.
#define MP_TRANSPOSE_BLOCK(T, N, STEPS, LOW, HIGH)                                                \
  typedef T T##_vec_t __attribute__((vector_size(16), aligned(1)));                               \
  static inline void block_##T(const char *in, int64_t in_step, char *out, int64_t out_step) {    \
    T##_vec_t rows[N], next[N];                                                                   \
    for (int i = 0; i < (N); ++i) rows[i] = *(const T##_vec_t *)(const void *)(in + i * in_step); \
    for (int step = 0; step < (STEPS); ++step) {                                                  \
      for (int i = 0; i < (N) / 2; ++i) {                                                         \
        next[2 * i] = __builtin_shufflevector(rows[i], rows[i + (N) / 2], LOW);                   \
        next[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + (N) / 2], HIGH);              \
      }                                                                                           \
      for (int i = 0; i < (N); ++i) rows[i] = next[i];                                            \
    }                                                                                             \
    for (int i = 0; i < (N); ++i) *(T##_vec_t *)(void *)(out + i * out_step) = rows[i];           \
  }                                                                                               \
  static void tile_##T(const char *in, int64_t in_step, char *out, int64_t out_step,              \
                       int64_t height, int64_t width) {                                           \
    for (int64_t r = 0; r < height; r += (N)) {                                                   \
      for (int64_t c = 0; c < width; c += (N)) {                                                  \
        block_##T(in + c * in_step + r * (int)sizeof(T), in_step,                                 \
                  out + r * out_step + c * (int)sizeof(T), out_step);                             \
      }                                                                                           \
    }                                                                                             \
  }

#define LOW16  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW8   0, 8, 1, 9, 2, 10, 3, 11
#define HIGH8  4, 12, 5, 13, 6, 14, 7, 15
#define LOW4   0, 4, 1, 5
#define HIGH4  2, 6, 3, 7
#define LOW2   0, 2
#define HIGH2  1, 3
MP_TRANSPOSE_BLOCK(uint8_t, 16, 4, LOW16, HIGH16)
MP_TRANSPOSE_BLOCK(uint16_t, 8, 3, LOW8, HIGH8)
MP_TRANSPOSE_BLOCK(uint32_t, 4, 2, LOW4, HIGH4)
MP_TRANSPOSE_BLOCK(uint64_t, 2, 1, LOW2, HIGH2)

static void transpose_tile_pair(const char *in, int64_t in_step, char *out, int64_t out_step,
                                int64_t height, int64_t width) {
  for (int64_t r = 0; r < height; ++r) {
    for (int64_t c = 0; c < width; ++c) {
      memcpy(out + r * out_step + c * 16, in + c * in_step + r * 16, 16);
    }
  }
}

typedef void (*tile_fn_t)(const char *in, int64_t in_step, char *out, int64_t out_step,
                          int64_t height, int64_t width);
static const tile_fn_t tile_fns[] = {tile_uint8_t, tile_uint16_t, tile_uint32_t, tile_uint64_t,
                                     transpose_tile_pair};

// ---- Blocks of wide vectors ----
//
// A block of N x N elements is transposed in registers: for K = N / 2, N / 4, ..., 1 vectors that
// are K rows apart exchange the elements that are K columns apart.

#ifdef __x86_64__

#define LEFT_16_8  0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define RIGHT_16_8 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#define LEFT_16_4  0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define RIGHT_16_4 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define LEFT_16_2  0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define RIGHT_16_2 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define LEFT_16_1  0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define RIGHT_16_1 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31
#define LEFT_8_4   0, 1, 2, 3, 8, 9, 10, 11
#define RIGHT_8_4  4, 5, 6, 7, 12, 13, 14, 15
#define LEFT_8_2   0, 1, 8, 9, 4, 5, 12, 13
#define RIGHT_8_2  2, 3, 10, 11, 6, 7, 14, 15
#define LEFT_8_1   0, 8, 2, 10, 4, 12, 6, 14
#define RIGHT_8_1  1, 9, 3, 11, 5, 13, 7, 15
#define LEFT_4_2   0, 1, 4, 5
#define RIGHT_4_2  2, 3, 6, 7
#define LEFT_4_1   0, 4, 2, 6
#define RIGHT_4_1  1, 5, 3, 7

#define EXCHANGE(V, N, K)                                                   \
  _Pragma("GCC unroll 16") for (int i = 0; i < (N); ++i) {                  \
    if ((i & (K)) != 0) continue;                                           \
    const V upper = rows[i], lower = rows[i + (K)];                         \
    rows[i] = __builtin_shufflevector(upper, lower, LEFT_##N##_##K);        \
    rows[i + (K)] = __builtin_shufflevector(upper, lower, RIGHT_##N##_##K); \
  }
#define EXCHANGES_4(V, N)  EXCHANGE(V, N, 2) EXCHANGE(V, N, 1)
#define EXCHANGES_8(V, N)  EXCHANGE(V, N, 4) EXCHANGES_4(V, N)
#define EXCHANGES_16(V, N) EXCHANGE(V, N, 8) EXCHANGES_8(V, N)

// Transposes bands of `height` rows, which are whole blocks, and of all columns.
#define WIDE(NAME, TARGET, T, N)                                                            \
  typedef T NAME##_v __attribute__((vector_size((N) * sizeof(T))));                         \
  typedef T NAME##_u __attribute__((vector_size((N) * sizeof(T)), aligned(1), may_alias));  \
  TARGET static void NAME(int64_t height, int64_t width, char *dst, int64_t dst_step,       \
                          const char *src, int64_t src_step) {                              \
    for (int64_t c = 0; c < width; c += (N)) {                                              \
      for (int64_t r = 0; r < height; r += (N)) {                                           \
        const char *in = src + c * src_step + r * (int)sizeof(T);                           \
        char *out = dst + r * dst_step + c * (int)sizeof(T);                                \
        NAME##_v rows[N];                                                                   \
        _Pragma("GCC unroll 16") for (int i = 0; i < (N); ++i) rows[i] =                    \
            *(const NAME##_u *)(const void *)(in + i * src_step);                           \
        EXCHANGES_##N(NAME##_v, N) _Pragma("GCC unroll 16") for (int i = 0; i < (N); ++i) * \
            (NAME##_u *)(void *)(out + i * dst_step) = rows[i];                             \
      }                                                                                     \
    }                                                                                       \
  }

#define AVX2 __attribute__((target("avx2")))
WIDE(transpose_avx2_u32, AVX2, uint32_t, 8)
WIDE(transpose_avx2_u64, AVX2, uint64_t, 4)
WIDE(transpose_avx512_u16, MP_AVX512, uint16_t, 16)
WIDE(transpose_avx512_u32, MP_AVX512, uint32_t, 16)
WIDE(transpose_avx512_u64, MP_AVX512, uint64_t, 8)

#endif

typedef void (*wide_fn_t)(int64_t height, int64_t width, char *dst, int64_t dst_step,
                          const char *src, int64_t src_step);

// The function that transposes blocks of elements of a size; NULL: transpose as tiles.
typedef struct {
  wide_fn_t run;
  int64_t side;
} wide_t;

static wide_t transpose_wide(size_t element_bytes) {
#ifdef __x86_64__
  if (mp_has_avx512()) {
    if (element_bytes == 2) return (wide_t){transpose_avx512_u16, 16};
    if (element_bytes == 4) return (wide_t){transpose_avx512_u32, 16};
    if (element_bytes == 8) return (wide_t){transpose_avx512_u64, 8};
  }
  if (__builtin_cpu_supports("avx2")) {
    if (element_bytes == 4) return (wide_t){transpose_avx2_u32, 8};
    if (element_bytes == 8) return (wide_t){transpose_avx2_u64, 4};
  }
#endif
  return (wide_t){NULL, 1};
}

// ---- The whole ----

// Transposes the tile at `src` by the buffers `in` and `out`, or, if it is smaller but made of
// whole blocks, where it is.
static void transpose_tile(const mp_matrix_t *tile, size_t element, char *in, char *out, char *dst,
                           const char *src) {
  const tile_fn_t run = tile_fns[__builtin_ctzll(element)];
  const int64_t height = tile->height, width = tile->width, side = LINE / (int64_t)element;
  const size_t in_bytes = (size_t)height * element, out_bytes = (size_t)width * element;
  if (height == side && width == side) {  // here the compiler knows the sizes
    for (int64_t i = 0; i < side; ++i) memcpy(in + i * LINE, src + i * tile->src_step, LINE);
    run(in, LINE, out, LINE, side, side);
    for (int64_t i = 0; i < side; ++i) memcpy(dst + i * tile->dst_step, out + i * LINE, LINE);
  } else if (in_bytes % BLOCK == 0 && out_bytes % BLOCK == 0) {
    run(src, tile->src_step, dst, tile->dst_step, height, width);
  } else {
    for (int64_t i = 0; i < width; ++i) memcpy(in + i * LINE, src + i * tile->src_step, in_bytes);
    run(in, LINE, out, LINE, height, width);
    for (int64_t i = 0; i < height; ++i)
      memcpy(dst + i * tile->dst_step, out + i * LINE, out_bytes);
  }
}

static void transpose_by_tiles(const mp_matrix_t *matrix, size_t element, char *dst,
                               const char *src) {
  const int64_t side = LINE / (int64_t)element, size = (int64_t)element;
  _Alignas(64) char in[LINE * LINE], out[LINE * LINE];
  // Blocks at the edge are transposed whole, including memory of `in` that no element fills.
  if (matrix->height * size % BLOCK != 0 || matrix->width * size % BLOCK != 0) {
    memset(in, 0, sizeof(in));
  }
  mp_matrix_t tile = *matrix;
  for (int64_t c = 0; c < matrix->width; c += side) {
    tile.width = mp_min_i64(side, matrix->width - c);
    for (int64_t r = 0; r < matrix->height; r += side) {
      tile.height = mp_min_i64(side, matrix->height - r);
      transpose_tile(&tile, element, in, out, dst + r * matrix->dst_step + c * size,
                     src + c * matrix->src_step + r * size);
    }
  }
}

// Transposes a band: first its whole blocks, then the remaining columns and rows.
static void transpose_band(const mp_matrix_t *band, size_t element, const wide_t *wide, char *dst,
                           const char *src) {
  const int64_t height = band->height - band->height % wide->side, size = (int64_t)element;
  const int64_t width = band->width - band->width % wide->side;
  if (wide->run == NULL || height == 0 || width == 0) {
    transpose_by_tiles(band, element, dst, src);
    return;
  }
  wide->run(height, width, dst, band->dst_step, src, band->src_step);
  mp_matrix_t rest = *band;
  if (width < band->width) {
    rest.width = band->width - width;
    transpose_by_tiles(&rest, element, dst + width * size, src + width * band->src_step);
  }
  if (height < band->height) {
    rest.width = width;
    rest.height = band->height - height;
    transpose_by_tiles(&rest, element, dst + height * band->dst_step, src + height * size);
  }
}

// The number of neighbouring cache lines of the source that are read before the next column, so
// that each visit of a page uses several lines.
enum { LINES = 4 };

void mp_transpose(const mp_matrix_t *matrix, size_t element_bytes, void *dst, const void *src) {
  MP_ASSERT(element_bytes <= 16 && (element_bytes & (element_bytes - 1)) == 0);
  const wide_t wide = transpose_wide(element_bytes);
  const int64_t most = LINES * LINE / (int64_t)element_bytes;
  mp_matrix_t band = *matrix;
  for (int64_t r = 0; r < matrix->height; r += most) {
    band.height = mp_min_i64(most, matrix->height - r);
    transpose_band(&band, element_bytes, &wide, (char *)dst + r * matrix->dst_step,
                   (const char *)src + r * (int64_t)element_bytes);
  }
}
