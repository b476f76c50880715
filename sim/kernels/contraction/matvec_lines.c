#include "sim/kernels/contraction/matvec_lines.h"

#include <string.h>

#include "sim/kernels/flush.h"
#include "sim/kernels/loops.h"
#include "sim/kernels/shape.h"

typedef float f32_t;
typedef double f64_t;
typedef uint32_t u32_t;
typedef uint64_t u64_t;

// BLOCK: matrices whose places are computed at once.
enum { LANES = MP_MATVEC_LANES, BLOCK = 256, MOST_COPIED = 1 << 14 };

// rows_ is dot_ and total_ of matvec.c for `count` lines of `a`, which are `step` bytes apart, with
// the same bits. Lane l is element l % PER of vector l / PER. If a line does not fill its lanes,
// elements after the line are read, too, and count as zero. So LANES - 1 elements after each line
// must be readable, in `a` and in `b`.
enum { VECTOR_BYTES = 32 };

#define LINES_LOOPS(T, INT)                                                                      \
  typedef T T##_vec_t __attribute__((vector_size(VECTOR_BYTES), aligned(1), may_alias));         \
  typedef INT T##_bits_t __attribute__((vector_size(VECTOR_BYTES), aligned(1), may_alias));      \
  typedef T T##_four_t __attribute__((vector_size(4 * sizeof(T))));                              \
  enum { PER_##T = VECTOR_BYTES / sizeof(T), NUM_##T = LANES / PER_##T };                        \
  static inline void line_##T(int64_t n, const T *a, const T *b, const T##_bits_t *masks,        \
                              T##_vec_t *lanes) {                                                \
    for (int v = 0; v < NUM_##T; ++v) lanes[v] = (T##_vec_t){0};                                 \
    int64_t i = 0;                                                                               \
    for (; i + LANES <= n; i += LANES) {                                                         \
      for (int v = 0; v < NUM_##T; ++v) {                                                        \
        lanes[v] += *(const T##_vec_t *)(const void *)(a + i + v * PER_##T) *                    \
                    *(const T##_vec_t *)(const void *)(b + i + v * PER_##T);                     \
      }                                                                                          \
    }                                                                                            \
    if (i == n) return;                                                                          \
    for (int v = 0; v < NUM_##T; ++v) {                                                          \
      const void *x = a + i + v * PER_##T, *y = b + i + v * PER_##T;                             \
      lanes[v] += (T##_vec_t)(*(const T##_bits_t *)x & masks[v]) *                               \
                  (T##_vec_t)(*(const T##_bits_t *)y & masks[v]);                                \
    }                                                                                            \
  }                                                                                              \
  /* The sums of the lanes whose numbers are equal modulo 4. */                                  \
  static inline void fold_##T(T##_vec_t *lanes, T##_four_t *out) {                               \
    T sums[PER_##T];                                                                             \
    for (int width = NUM_##T / 2; width > 0; width /= 2) {                                       \
      for (int v = 0; v < width; ++v) lanes[v] += lanes[v + width];                              \
    }                                                                                            \
    memcpy(sums, lanes, sizeof(sums));                                                           \
    memcpy(out, sums, sizeof(*out));                                                             \
    if (PER_##T == 4) return;                                                                    \
    T##_four_t upper;                                                                            \
    memcpy(&upper, sums + PER_##T - 4, sizeof(upper));                                           \
    *out += upper;                                                                               \
  }                                                                                              \
  MP_VECTOR static void rows_##T(int64_t count, int64_t n, const void *a, int64_t step,          \
                                 const void *b, void *out_) {                                    \
    T *out = out_;                                                                               \
    T##_bits_t masks[NUM_##T];                                                                   \
    for (int l = 0; l < LANES; ++l) {                                                            \
      masks[l / PER_##T][l % PER_##T] = l < n % LANES ? ~(INT)0 : 0;                             \
    }                                                                                            \
    for (int64_t r = 0; r < count; r += 4) {                                                     \
      T##_four_t fours[4] = {{0}};                                                               \
      const int some = count - r < 4 ? (int)(count - r) : 4;                                     \
      for (int l = 0; l < some; ++l) {                                                           \
        T##_vec_t lanes[NUM_##T];                                                                \
        line_##T(n, (const void *)((const char *)a + (r + l) * step), b, masks, lanes);          \
        fold_##T(lanes, &fours[l]);                                                              \
      }                                                                                          \
      const T##_four_t x = __builtin_shufflevector(fours[0], fours[1], 0, 1, 4, 5) +             \
                           __builtin_shufflevector(fours[0], fours[1], 2, 3, 6, 7);              \
      const T##_four_t y = __builtin_shufflevector(fours[2], fours[3], 0, 1, 4, 5) +             \
                           __builtin_shufflevector(fours[2], fours[3], 2, 3, 6, 7);              \
      const T##_four_t totals =                                                                  \
          __builtin_shufflevector(x, y, 0, 2, 4, 6) + __builtin_shufflevector(x, y, 1, 3, 5, 7); \
      memcpy(out + r, &totals, (size_t)some * sizeof(T));                                        \
    }                                                                                            \
  }
LINES_LOOPS(f32_t, uint32_t)
LINES_LOOPS(f64_t, uint64_t)
LINES_LOOPS(u32_t, uint32_t)
LINES_LOOPS(u64_t, uint64_t)

typedef void (*rows_loop_t)(int64_t count, int64_t n, const void *a, int64_t step, const void *b,
                            void *out);
static const rows_loop_t g_rows[MP_ACC_COUNT] = {rows_f32_t, rows_f64_t, rows_u32_t, rows_u64_t};

// Whether lines along k are contiguous and have the accumulation type.
static bool matvec_lines_can_be_read(const mp_operand_t *side) {
  int64_t step = 0;
  const bool is_even =
      mp_axes_step(&side->k, &step) && (step == side->element || side->k.count == 1);
  return is_even && mp_convert_is_copy(&side->convert);
}

bool mp_matvec_is_lines(const mp_matvec_t *matvec) {
  const int64_t k = matvec->matrix->k.count;
  int64_t step = 0;
  // The elements after a line are readable if another line of the same length follows. The last
  // lines are copied, so lines must be short enough for that.
  return (k % LANES == 0 || (k > LANES / 2 && k <= MOST_COPIED)) &&
         matvec_lines_can_be_read(matvec->matrix) && matvec_lines_can_be_read(matvec->vector) &&
         mp_convert_is_copy(&matvec->store) && mp_axes_step(&matvec->matrix->rows, &step);
}

size_t mp_matvec_lines_scratch(const mp_matvec_t *matvec) {
  const int64_t k = matvec->matrix->k.count;
  return k % LANES == 0 ? 0 : 2 * (size_t)(k + LANES) * mp_acc_size(matvec->acc);
}

typedef struct {
  const mp_matvec_t *matvec;
  int64_t n, size, row_step;
  bool has_rest;
  char *scratch, *out;
} lines_t;

// Copies a line to the scratch memory, followed by zeros.
static const char *matvec_lines_copy(const lines_t *l, const char *line, int place) {
  char *to = l->scratch + place * (l->n + LANES) * l->size;
  memcpy(to, line, (size_t)(l->n * l->size));
  memset(to + l->n * l->size, 0, (size_t)(LANES * l->size));
  return to;
}

// Computes `count` rows of a matrix, with which the matrix's operand ends if `is_end`.
static void matvec_lines_run_rows(lines_t *l, int64_t count, const char *a, const char *b,
                                  bool is_end) {
  const rows_loop_t loop = g_rows[l->matvec->acc];
  const int64_t last = is_end && l->has_rest ? 1 : 0;
  loop(count - last, l->n, a, l->row_step, b, l->out);
  l->out += (count - last) * l->size;
  if (last == 0) return;
  loop(1, l->n, matvec_lines_copy(l, a + (count - 1) * l->row_step, 1), 0, b, l->out);
  l->out += l->size;
}

// Results [begin, end), which belong to at most BLOCK matrices.
static void matvec_lines_run_block(lines_t *l, const char *a, const char *b, int64_t begin,
                                   int64_t end) {
  const mp_operand_t *matrix = l->matvec->matrix, *vector = l->matvec->vector;
  const int64_t rows = matrix->rows.count, first = begin / rows, last = (end - 1) / rows;
  int64_t a_at[BLOCK], b_at[BLOCK];
  mp_axes_offsets(&matrix->batch, first, last + 1 - first, a_at);
  mp_axes_offsets(&vector->batch, first, last + 1 - first, b_at);
  for (int64_t batch = first; batch <= last; ++batch) {
    const int64_t row = batch == first ? begin % rows : 0;
    const int64_t count = mp_min_i64(rows, end - batch * rows) - row;
    const char *of_batch = b + b_at[batch - first];
    // There are no elements after the last vector.
    const bool is_copied = l->has_rest && batch == matrix->batch.count - 1;
    if (is_copied) of_batch = matvec_lines_copy(l, of_batch, 0);
    matvec_lines_run_rows(l, count, a + a_at[batch - first] + row * l->row_step, of_batch,
                          batch == matrix->batch.count - 1 && row + count == rows);
  }
}

void mp_matvec_run_lines(const mp_matvec_t *matvec, const mp_kernel_call_t *call, int64_t begin,
                         int64_t end) {
  const int64_t rows = matvec->matrix->rows.count, size = (int64_t)mp_acc_size(matvec->acc);
  lines_t l = {.matvec = matvec,
               .n = matvec->matrix->k.count,
               .size = size,
               .has_rest = matvec->matrix->k.count % LANES != 0,
               .scratch = call->scratch,
               .out = (char *)call->results[0] + begin * size};
  (void)mp_axes_step(&matvec->matrix->rows, &l.row_step);
  const unsigned before = mp_flush_begin();
  for (int64_t next = begin; begin < end; begin = next) {
    next = mp_min_i64(end, (begin / rows + BLOCK) * rows);
    matvec_lines_run_block(&l, call->operands[matvec->matrix_operand],
                           call->operands[matvec->vector_operand], begin, next);
  }
  mp_flush_end(before);
}
