#include "sim/kernels/strided.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/vector.h"
#include "sim/kernels/kernel.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/transpose.h"

// The number of bytes that is worth a part.
enum { GRAIN_BYTES = 512 * 1024 };

// A wider element, made of several of the tensor's, need not be aligned.
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
//
// pick_few_ copies every second, third or fourth element: at such a known distance compilers
// shuffle vectors, where they would otherwise move one element at a time. short_ copies lines of
// few elements.

#define MP_STRIDED_LOOPS(T)                                                                    \
  MP_VECTOR static void fill_##T(void *dst, T value, int64_t count) {                          \
    T *d = dst;                                                                                \
    for (int64_t i = 0; i < count; ++i) d[i] = value;                                          \
  }                                                                                            \
  static inline void pick_##T(T *restrict d, const T *restrict s, int64_t n, int every) {      \
    for (int64_t i = 0; i < n; ++i) d[i] = s[i * every];                                       \
  }                                                                                            \
  MP_VECTOR static void pick_few_##T(void *d, const void *s, int64_t n, int64_t every) {       \
    if (every == 2) pick_##T(d, s, n, 2);                                                      \
    if (every == 3) pick_##T(d, s, n, 3);                                                      \
    if (every == 4) pick_##T(d, s, n, 4);                                                      \
  }                                                                                            \
  static void line_##T(const mp_strided_dim_t *dim, char *dst, const char *src) {              \
    int64_t n = dim->extent, ds = dim->dst, ss = dim->src;                                     \
    if (ds == (int64_t)sizeof(T) && ss == 0) {                                                 \
      fill_##T(dst, *(const T *)src, n);                                                       \
    } else if (ds == (int64_t)sizeof(T) && ss == -(int64_t)sizeof(T)) {                        \
      const T *s = (const T *)src - (n - 1);                                                   \
      for (int64_t i = 0; i < n; ++i) ((T *)dst)[i] = s[n - 1 - i];                            \
    } else if (ds == (int64_t)sizeof(T) && ss >= 2 * ds && ss <= 4 * ds && ss % ds == 0) {     \
      pick_few_##T(dst, src, n, ss / ds);                                                      \
    } else if (ds == (int64_t)sizeof(T)) {                                                     \
      for (int64_t i = 0; i < n; ++i) ((T *)dst)[i] = *(const T *)(src + i * ss);              \
    } else {                                                                                   \
      for (int64_t i = 0; i < n; ++i) *(T *)(dst + i * ds) = *(const T *)(src + i * ss);       \
    }                                                                                          \
  }                                                                                            \
  static void short_##T(const mp_strided_dim_t *lines, const mp_strided_dim_t *dim, char *dst, \
                        const char *src) {                                                     \
    const int64_t n = dim->extent, ds = dim->dst, ss = dim->src;                               \
    for (int64_t k = 0; k < lines->extent; ++k, dst += lines->dst, src += lines->src) {        \
      for (int64_t i = 0; i < n; ++i) *(T *)(dst + i * ds) = *(const T *)(src + i * ss);       \
    }                                                                                          \
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

typedef void (*short_fn_t)(const mp_strided_dim_t *lines, const mp_strided_dim_t *dim, char *dst,
                           const char *src);

static const short_fn_t short_fns[] = {short_mp_u8_t, short_mp_u16_t, short_mp_u32_t,
                                       short_mp_u64_t, short_mp_u128_t};

// Copies lines of neighbours, of at least sizeof(T) bytes and at most twice as many: the first ones
// and the last ones, which may overlap.
#define MP_STRIDED_PIECES(name, T)                                                             \
  static void name(const mp_strided_dim_t *lines, int64_t bytes, char *dst, const char *src) { \
    const int64_t rest = bytes - (int64_t)sizeof(T);                                           \
    for (int64_t k = 0; k < lines->extent; ++k, dst += lines->dst, src += lines->src) {        \
      T first, last;                                                                           \
      memcpy(&first, src, sizeof(T));                                                          \
      memcpy(&last, src + rest, sizeof(T));                                                    \
      memcpy(dst, &first, sizeof(T));                                                          \
      memcpy(dst + rest, &last, sizeof(T));                                                    \
    }                                                                                          \
  }

typedef uint64_t vector_16_t __attribute__((vector_size(16)));

MP_STRIDED_PIECES(strided_pieces_4, uint32_t)
MP_STRIDED_PIECES(strided_pieces_8, uint64_t)
MP_STRIDED_PIECES(strided_pieces_16, vector_16_t)

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

bool mp_copy_constant(const mp_op_t *op, void *dst) {
  const void *one = mp_op_splat(op), *all = mp_op_stored(op);
  const int64_t bytes = mp_shape_bytes(op->results[0].type);
  const size_t size = mp_dtype_size(op->results[0].type->dtype);
  if (one != NULL) {
    mp_fill(dst, one, size, bytes / (int64_t)size);
  } else if (all != NULL) {
    memcpy(dst, all, (size_t)bytes);
  }
  return one != NULL || all != NULL;
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

// Neighbours of few bytes; the dimension around them is `lines`.
static void strided_run_pieces(const mp_strided_dim_t *lines, int64_t bytes, walk_t *walk,
                               char *dst, const char *src) {
  do {
    if (bytes <= 8) {
      strided_pieces_4(lines, bytes, dst, src);
    } else if (bytes <= 16) {
      strided_pieces_8(lines, bytes, dst, src);
    } else {
      strided_pieces_16(lines, bytes, dst, src);
    }
  } while (strided_walk_next(walk, &dst, &src));
}

// Does a copy whose lines are short, with the dimension around them; false if they are not.
static bool strided_run_short(const mp_strided_t *copy, walk_t *walk, char *dst, const char *src) {
  enum { MIN_BYTES = 4, MAX_BYTES = 32, MAX_EXTENT = 8 };
  const mp_strided_dim_t *last = &copy->dims[copy->rank - 1];
  if (walk->rank == 0) return false;
  const mp_strided_dim_t *lines = &copy->dims[copy->rank - 2];
  if (last->dst == copy->element && last->src == copy->element) {
    const int64_t bytes = last->extent * copy->element;
    if (bytes < MIN_BYTES || bytes > MAX_BYTES) return false;
    --walk->rank;
    strided_run_pieces(lines, bytes, walk, dst, src);
    return true;
  }
  if (last->extent > MAX_EXTENT) return false;
  --walk->rank;
  const short_fn_t run = short_fns[strided_log2_of(copy->element)];
  do run(lines, last, dst, src);
  while (strided_walk_next(walk, &dst, &src));
  return true;
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
    if (!strided_run_short(copy, &walk, d, s)) strided_run_lines(copy, &walk, d, s);
    return;
  }
  const mp_strided_dim_t *rows = &copy->dims[row], *columns = &copy->dims[copy->rank - 1];
  const mp_matrix_t matrix = {rows->extent, columns->extent, rows->dst, columns->src};
  do mp_transpose(&matrix, copy->element, d, s);
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
