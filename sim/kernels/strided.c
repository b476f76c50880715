#include "sim/kernels/strided.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/vector.h"
#include "sim/kernels/kernel.h"
#include "sim/kernels/shape.h"

// The number of bytes that is worth a part.
enum { GRAIN_BYTES = 512 * 1024 };

// Elements that are wider than the tensor's own, made of several of these, need not be aligned.
typedef uint8_t mp_u8_t;
typedef uint16_t mp_u16_t __attribute__((aligned(1)));
typedef uint32_t mp_u32_t __attribute__((aligned(1)));
typedef uint64_t mp_u64_t __attribute__((aligned(1)));
typedef struct {
  mp_u64_t low, high;
} mp_u128_t;

static bool strided_is_element_size(int64_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

static void strided_drop_dim(mp_strided_t *copy, uint32_t i) {
  MP_ASSERT(i < copy->rank);
  --copy->rank;
  memmove(&copy->dims[i], &copy->dims[i + 1], (copy->rank - i) * sizeof(copy->dims[0]));
}

void mp_strided_finish(mp_strided_t *copy) {
  MP_ASSERT(strided_is_element_size(copy->element));
  for (uint32_t i = 0; i < copy->rank;) {
    if (copy->dims[i].extent <= 0) copy->empty = true;
    if (copy->dims[i].extent == 1) {
      strided_drop_dim(copy, i);
    } else {
      ++i;
    }
  }
  if (copy->empty) {
    copy->rank = 0;
    return;
  }
  for (uint32_t i = 0; i + 1 < copy->rank;) {
    mp_strided_dim_t *outer = &copy->dims[i], *inner = &copy->dims[i + 1];
    if (outer->dst == inner->dst * inner->extent && outer->src == inner->src * inner->extent) {
      inner->extent *= outer->extent;
      strided_drop_dim(copy, i);
      if (i > 0) --i;
    } else {
      ++i;
    }
  }
  if (copy->rank > 1) {  // a short contiguous run becomes one wide element
    mp_strided_dim_t *last = &copy->dims[copy->rank - 1];
    if (last->dst == copy->element && last->src == copy->element && last->extent <= 16 &&
        strided_is_element_size(last->extent * copy->element)) {
      copy->element *= (uint32_t)last->extent;
      --copy->rank;
    }
  }
  // The outermost dimension that is long enough is cut into parts, or else the longest one.
  copy->split = 0;
  for (uint32_t i = 0; i < copy->rank; ++i) {
    if (copy->dims[i].extent >= 8) {
      copy->split = i;
      break;
    }
    if (copy->dims[i].extent > copy->dims[copy->split].extent) copy->split = i;
  }
}

uint32_t mp_strided_num_parts(const mp_strided_t *copy) {
  if (copy->empty || copy->rank == 0) return 1;
  int64_t bytes = copy->element;
  for (uint32_t i = 0; i < copy->rank; ++i) bytes *= copy->dims[i].extent;
  return (uint32_t)mp_min_i64(mp_part_count(bytes, GRAIN_BYTES), copy->dims[copy->split].extent);
}

// ---- Loops over the one or two innermost dimensions, per element size ----

#define MP_STRIDED_LOOPS(T)                                                              \
  MP_VECTOR static void fill_##T(void *dst, T value, int64_t count) {                    \
    T *d = dst;                                                                          \
    for (int64_t i = 0; i < count; ++i) d[i] = value;                                    \
  }                                                                                      \
  static void line_##T(const mp_strided_dim_t *dim, char *dst, const char *src) {        \
    int64_t n = dim->extent, ds = dim->dst, ss = dim->src;                               \
    if (ds == (int64_t)sizeof(T) && ss == 0) {                                           \
      fill_##T(dst, *(const T *)src, n);                                                 \
    } else if (ds == (int64_t)sizeof(T) && ss == -(int64_t)sizeof(T)) {                  \
      const T *s = (const T *)src - (n - 1);                                             \
      for (int64_t i = 0; i < n; ++i) ((T *)dst)[i] = s[n - 1 - i];                      \
    } else if (ds == (int64_t)sizeof(T)) {                                               \
      for (int64_t i = 0; i < n; ++i) ((T *)dst)[i] = *(const T *)(src + i * ss);        \
    } else {                                                                             \
      for (int64_t i = 0; i < n; ++i) *(T *)(dst + i * ds) = *(const T *)(src + i * ss); \
    }                                                                                    \
  }

MP_STRIDED_LOOPS(mp_u8_t)
MP_STRIDED_LOOPS(mp_u16_t)
MP_STRIDED_LOOPS(mp_u32_t)
MP_STRIDED_LOOPS(mp_u64_t)
MP_STRIDED_LOOPS(mp_u128_t)

typedef void (*line_fn_t)(const mp_strided_dim_t *dim, char *dst, const char *src);

static uint32_t strided_log2_of(uint32_t element) {
  MP_ASSERT(strided_is_element_size(element));
  return (uint32_t)__builtin_ctz(element);
}

static const line_fn_t line_fns[] = {line_mp_u8_t, line_mp_u16_t, line_mp_u32_t, line_mp_u64_t,
                                     line_mp_u128_t};

void mp_copy_line(void *dst, int64_t dst_step, const void *src, int64_t src_step,
                  size_t element_bytes, int64_t count) {
  if (count <= 0) return;
  mp_strided_dim_t dim = {count, dst_step, src_step};
  line_fns[strided_log2_of((uint32_t)element_bytes)](&dim, dst, src);
}

void mp_fill(void *dst, const void *element, size_t element_bytes, int64_t count) {
  if (count <= 0) return;
  mp_strided_dim_t dim = {count, (int64_t)element_bytes, 0};
  line_fns[strided_log2_of((uint32_t)element_bytes)](&dim, dst, element);
}

// ---- Transposition ----
//
// Rows are contiguous in the source, columns in the destination. Tiles of 64 x 64 bytes go through
// a buffer, so that every cache line on either side is touched once, whatever the strides are.

enum { LINE = 64, BLOCK = 16 };

// Transposes tiles of whole blocks of N x N elements, between lines that lie `in_step` and
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

static void strided_tile_pair(const char *in, int64_t in_step, char *out, int64_t out_step,
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
                                     strided_tile_pair};

// Transposes the tile at `src`, of `height` elements of each of `width` columns, by the buffers
// `in` and `out`, or, if it is smaller but made of whole blocks, where it is.
static void strided_transpose_tile(const mp_strided_dim_t *rows, const mp_strided_dim_t *columns,
                                   uint32_t element, int64_t height, int64_t width, char *in,
                                   char *out, char *dst, const char *src) {
  const tile_fn_t tile = tile_fns[strided_log2_of(element)];
  const int64_t side = LINE / element;
  const size_t in_bytes = (size_t)height * element, out_bytes = (size_t)width * element;
  if (height == side && width == side) {  // here the compiler knows the sizes
    for (int64_t i = 0; i < side; ++i) memcpy(in + i * LINE, src + i * columns->src, LINE);
    tile(in, LINE, out, LINE, side, side);
    for (int64_t i = 0; i < side; ++i) memcpy(dst + i * rows->dst, out + i * LINE, LINE);
  } else if (in_bytes % BLOCK == 0 && out_bytes % BLOCK == 0) {
    tile(src, columns->src, dst, rows->dst, height, width);
  } else {
    for (int64_t i = 0; i < width; ++i) memcpy(in + i * LINE, src + i * columns->src, in_bytes);
    tile(in, LINE, out, LINE, height, width);
    for (int64_t i = 0; i < height; ++i) memcpy(dst + i * rows->dst, out + i * LINE, out_bytes);
  }
}

// The tiles next to each other in the source that are done before those of the next columns: then
// a page of the source is used for several lines at a time.
enum { TILES = 4 };

static void strided_transpose(uint32_t element, const mp_strided_dim_t *rows,
                              const mp_strided_dim_t *columns, char *dst, const char *src) {
  MP_ASSERT(rows->src == element && columns->dst == element);
  const int64_t side = LINE / element;
  _Alignas(64) char in[LINE * LINE], out[LINE * LINE];
  // Of blocks that are not whole the rest is moved too.
  if (rows->extent * element % BLOCK != 0 || columns->extent * element % BLOCK != 0) {
    memset(in, 0, sizeof(in));
  }
  for (int64_t begin = 0; begin < rows->extent; begin += TILES * side) {
    const int64_t end = mp_min_i64(begin + TILES * side, rows->extent);
    for (int64_t c = 0; c < columns->extent; c += side) {
      for (int64_t r = begin; r < end; r += side) {
        strided_transpose_tile(rows, columns, element, mp_min_i64(side, end - r),
                               mp_min_i64(side, columns->extent - c), in, out,
                               dst + r * rows->dst + c * columns->dst,
                               src + r * rows->src + c * columns->src);
      }
    }
  }
}

// ---- Going over the outer dimensions ----

typedef struct {
  uint32_t rank;  // outer dimensions
  mp_strided_dim_t dims[MP_MAX_RANK];
  int64_t index[MP_MAX_RANK];
} walk_t;

// Goes to the next box of inner dimensions; false at the end.
static bool strided_walk_next(walk_t *walk, char **dst, const char **src) {
  for (uint32_t i = walk->rank; i-- > 0;) {
    const mp_strided_dim_t *dim = &walk->dims[i];
    *dst += dim->dst;
    *src += dim->src;
    if (++walk->index[i] < dim->extent) return true;
    *dst -= dim->dst * dim->extent;
    *src -= dim->src * dim->extent;
    walk->index[i] = 0;
  }
  return false;
}

// The dimension that is contiguous in the source when the innermost one is not, or -1.
static int strided_transposed_dim(const mp_strided_t *copy) {
  const mp_strided_dim_t *last = &copy->dims[copy->rank - 1];
  if (last->dst != copy->element || last->src == 0 || last->src == copy->element) return -1;
  if (last->extent < 4) return -1;
  for (uint32_t i = 0; i + 1 < copy->rank; ++i) {
    if (copy->dims[i].src == copy->element && copy->dims[i].extent >= 4) return (int)i;
  }
  return -1;
}

static void strided_run_lines(const mp_strided_t *copy, walk_t *walk, char *dst, const char *src) {
  const mp_strided_dim_t *last = &copy->dims[copy->rank - 1];
  if (last->dst == copy->element && last->src == copy->element) {
    size_t bytes = (size_t)last->extent * copy->element;
    do memcpy(dst, src, bytes);
    while (strided_walk_next(walk, &dst, &src));
  } else {
    line_fn_t line = line_fns[strided_log2_of(copy->element)];
    do line(last, dst, src);
    while (strided_walk_next(walk, &dst, &src));
  }
}

void mp_strided_run(const mp_strided_t *copy, void *dst, const void *src) {
  if (copy->empty) return;
  char *d = dst;
  const char *s = src;
  if (copy->rank == 0) {
    memcpy(d, s, copy->element);
    return;
  }
  int row = strided_transposed_dim(copy);
  walk_t walk;
  walk.rank = 0;
  for (uint32_t i = 0; i + 1 < copy->rank; ++i) {
    if ((int)i == row) continue;
    walk.index[walk.rank] = 0;
    walk.dims[walk.rank++] = copy->dims[i];
  }
  if (row < 0) {
    strided_run_lines(copy, &walk, d, s);
    return;
  }
  do strided_transpose(copy->element, &copy->dims[row], &copy->dims[copy->rank - 1], d, s);
  while (strided_walk_next(&walk, &d, &s));
}

void mp_strided_run_part(const mp_strided_t *copy, void *dst, const void *src, uint32_t num_parts,
                         uint32_t part) {
  if (num_parts <= 1) {
    mp_strided_run(copy, dst, src);
    return;
  }
  mp_strided_t piece = *copy;
  MP_ASSERT(part < num_parts && copy->split < copy->rank);
  mp_strided_dim_t *dim = &piece.dims[copy->split];
  int64_t begin = 0, end = 0;
  mp_part_range(dim->extent, num_parts, part, &begin, &end);
  dim->extent = end - begin;
  if (dim->extent <= 0) return;
  mp_strided_run(&piece, (char *)dst + begin * dim->dst, (const char *)src + begin * dim->src);
}
