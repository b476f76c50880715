#include "sim/kernels/contraction/matvec_short.h"

#include "sim/kernels/flush.h"
#include "sim/kernels/loops.h"
#include "sim/kernels/shape.h"

// MOST_K: elements of a line. BLOCK: lines whose places are computed at once. MANY_ROWS: a matrix
// with at least so many rows fills vectors.
enum { MOST_K = 8, BLOCK = 512, MANY_ROWS = 16 };

typedef float f32_t;
typedef double f64_t;

// The product of element k, and the sum of two lanes' products.
#define SHORT_ONE(T, K, A, B, k) \
  const T one##k = k < K ? (T)0 + (A)[k < K ? k * a_step : 0] * (B)[k < K ? k * b_step : 0] : (T)0;
#define SHORT_TWO(K, x, y, second) (second < K ? x + y : x)

// Sums of K products. Line i begins at element a_at[i] of `a` and b_at[i] of `b`, or, in rows_, at
// the beginning of `b`. The elements of a line are a_step and b_step apart.
#define SHORT_SUM(T, K, A, B)                                                         \
  SHORT_ONE(T, K, A, B, 0)                                                            \
  SHORT_ONE(T, K, A, B, 1)                                                            \
  SHORT_ONE(T, K, A, B, 2)                                                            \
  SHORT_ONE(T, K, A, B, 3)                                                            \
  SHORT_ONE(T, K, A, B, 4)                                                            \
  SHORT_ONE(T, K, A, B, 5)                                                            \
  SHORT_ONE(T, K, A, B, 6)                                                            \
  SHORT_ONE(T, K, A, B, 7)                                                            \
  const T four0 = SHORT_TWO(K, one0, one4, 4), four1 = SHORT_TWO(K, one1, one5, 5);   \
  const T four2 = SHORT_TWO(K, one2, one6, 6), four3 = SHORT_TWO(K, one3, one7, 7);   \
  const T two0 = SHORT_TWO(K, four0, four2, 2), two1 = SHORT_TWO(K, four1, four3, 3); \
  out[i] = SHORT_TWO(K, two0, two1, 1);

#define SHORT_LOOPS(T, K)                                                                          \
  static void lines_##T##_##K(int64_t n, const int32_t *a_at, const int32_t *b_at, const void *a_, \
                              int64_t a_step, const void *b_, int64_t b_step, void *out_) {        \
    const T *a = a_, *b = b_;                                                                      \
    T *restrict out = out_;                                                                        \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                                               \
      SHORT_SUM(T, K, a + a_at[i], b + b_at[i])                                                    \
    }                                                                                              \
  }                                                                                                \
  static void rows_##T##_##K(int64_t n, const int32_t *a_at, const int32_t *b_at, const void *a_,  \
                             int64_t a_step, const void *b_, int64_t b_step, void *out_) {         \
    (void)b_at;                                                                                    \
    const T *a = a_, *b = b_;                                                                      \
    T *restrict out = out_;                                                                        \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                                               \
      SHORT_SUM(T, K, a + a_at[i], b)                                                              \
    }                                                                                              \
  }

// The same for lines that follow each other in both operands.
#define SHORT_PACKED(T, K)                                                                        \
  MP_VECTOR static void packed_##T##_##K(int64_t n, const void *a_, const void *b_, void *out_) { \
    enum { a_step = 1, b_step = 1 };                                                              \
    const T *a = a_, *b = b_;                                                                     \
    T *restrict out = out_;                                                                       \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                                              \
      SHORT_SUM(T, K, a + i * K, b + i * K)                                                       \
    }                                                                                             \
  }

#define FOR_EACH_K(X, T) X(T, 1) X(T, 2) X(T, 3) X(T, 4) X(T, 5) X(T, 6) X(T, 7) X(T, 8)
FOR_EACH_K(SHORT_LOOPS, f32_t)
FOR_EACH_K(SHORT_LOOPS, f64_t)
FOR_EACH_K(SHORT_PACKED, f32_t)
FOR_EACH_K(SHORT_PACKED, f64_t)

typedef void (*short_loop_t)(int64_t n, const int32_t *a_at, const int32_t *b_at, const void *a,
                             int64_t a_step, const void *b, int64_t b_step, void *out);

typedef void (*packed_loop_t)(int64_t n, const void *a, const void *b, void *out);

#define PACKED_ROW(T, K) packed_##T##_##K,
#define LINES_ROW(T, K)  lines_##T##_##K,
#define ROWS_ROW(T, K)   rows_##T##_##K,
static const short_loop_t g_lines[2][MOST_K] = {
    {FOR_EACH_K(LINES_ROW, f32_t)},
    {FOR_EACH_K(LINES_ROW, f64_t)},
};
static const short_loop_t g_rows[2][MOST_K] = {
    {FOR_EACH_K(ROWS_ROW, f32_t)},
    {FOR_EACH_K(ROWS_ROW, f64_t)},
};
static const packed_loop_t g_packed[2][MOST_K] = {
    {FOR_EACH_K(PACKED_ROW, f32_t)},
    {FOR_EACH_K(PACKED_ROW, f64_t)},
};

// Whether all elements have offsets that fit into 32 bits.
static bool matvec_short_has_small_places(const mp_operand_t *side) {
  return MP_WORK(side->batch.count, side->rows.count, side->k.count) < INT32_MAX;
}

bool mp_matvec_is_short(const mp_matvec_t *matvec) {
  if (matvec->acc != MP_ACC_F32 && matvec->acc != MP_ACC_F64) return false;
  const mp_operand_t *matrix = matvec->matrix, *vector = matvec->vector;
  int64_t step = 0;
  return matrix->k.count >= 1 && matrix->k.count <= MOST_K && mp_axes_step(&matrix->k, &step) &&
         mp_axes_step(&vector->k, &step) && mp_convert_is_copy(&matrix->convert) &&
         mp_convert_is_copy(&vector->convert) && mp_convert_is_copy(&matvec->store) &&
         matvec_short_has_small_places(matrix) && matvec_short_has_small_places(vector);
}

// ---- where lines begin ----

static void matvec_short_places(const mp_axes_t *axes, int64_t first, int64_t count, int64_t size,
                                int32_t *out_at) {
  int64_t offsets[BLOCK];
  mp_axes_offsets(axes, first, count, offsets);
  for (int64_t i = 0; i < count; ++i) out_at[i] = (int32_t)(offsets[i] / size);
}

// Where the lines of results [first, first + count) begin; these belong to several matrices.
static void matvec_short_places_of_lines(const mp_matvec_t *matvec, int64_t first, int64_t count,
                                         int32_t *a_at, int32_t *b_at) {
  const int64_t size = (int64_t)mp_acc_size(matvec->acc), rows = matvec->matrix->rows.count;
  int32_t row_at[MANY_ROWS], a_batch[BLOCK], b_batch[BLOCK];
  const int64_t batch = first / rows, num_batches = (first + count - 1) / rows + 1 - batch;
  matvec_short_places(&matvec->matrix->rows, 0, rows, size, row_at);
  matvec_short_places(&matvec->matrix->batch, batch, num_batches, size, a_batch);
  matvec_short_places(&matvec->vector->batch, batch, num_batches, size, b_batch);
  int64_t row = first - batch * rows;
  for (int64_t i = 0, at = 0; i < count; ++i) {
    a_at[i] = a_batch[at] + row_at[row];
    b_at[i] = b_batch[at];
    if (++row == rows) row = 0, ++at;
  }
}

static int64_t matvec_short_step(const mp_axes_t *k, int64_t size) {
  int64_t step = 0;
  (void)mp_axes_step(k, &step);
  return step / size;
}

mp_status_t mp_matvec_place_short(mp_arena_t *arena, mp_matvec_t *matvec) {
  const mp_operand_t *side = matvec->matrix;
  const int64_t count = MP_WORK(side->batch.count, side->rows.count, 1);
  if (count == 0 || count > BLOCK || side->rows.count >= MANY_ROWS) return NULL;
  int32_t *a_at = MP_ARENA_ARRAY(arena, int32_t, (size_t)count);
  int32_t *b_at = MP_ARENA_ARRAY(arena, int32_t, (size_t)count);
  if (a_at == NULL || b_at == NULL) return mp_status_out_of_memory();
  matvec_short_places_of_lines(matvec, 0, count, a_at, b_at);
  const int64_t size = (int64_t)mp_acc_size(matvec->acc), k = side->k.count;
  bool are_packed =
      matvec_short_step(&side->k, size) == 1 && matvec_short_step(&matvec->vector->k, size) == 1;
  for (int64_t i = 0; i < count; ++i) {
    are_packed = are_packed && a_at[i] == i * k && b_at[i] == i * k;
  }
  matvec->places = (mp_matvec_places_t){a_at, b_at, are_packed};
  return NULL;
}

// ---- running ----

// Results of matrices with many rows.
static void matvec_short_run_rows(const mp_matvec_t *matvec, const char *a, const char *b,
                                  int64_t begin, int64_t end, char *out) {
  const mp_operand_t *side = matvec->matrix;
  const int64_t size = (int64_t)mp_acc_size(matvec->acc), rows = side->rows.count;
  const int64_t a_step = matvec_short_step(&side->k, size),
                b_step = matvec_short_step(&matvec->vector->k, size);
  const short_loop_t loop = g_rows[matvec->acc][side->k.count - 1];
  int32_t at[BLOCK];
  int64_t placed = -1, num_placed = 0, a_batch = 0, b_batch = 0;
  for (int64_t n = 0; begin < end; begin += n) {
    const int64_t batch = begin / rows, row = begin % rows;
    n = mp_min_i64(mp_min_i64(end - begin, rows - row), BLOCK);
    if (placed != row || num_placed < n) matvec_short_places(&side->rows, row, n, size, at);
    placed = row;
    num_placed = n;
    mp_axes_offsets(&side->batch, batch, 1, &a_batch);
    mp_axes_offsets(&matvec->vector->batch, batch, 1, &b_batch);
    loop(n, at, NULL, a + a_batch, a_step, b + b_batch, b_step, out);
    out += n * size;
  }
}

static void matvec_short_run_lines(const mp_matvec_t *matvec, const char *a, const char *b,
                                   int64_t begin, int64_t end, char *out) {
  const mp_operand_t *side = matvec->matrix;
  const int64_t size = (int64_t)mp_acc_size(matvec->acc);
  const int64_t a_step = matvec_short_step(&side->k, size),
                b_step = matvec_short_step(&matvec->vector->k, size);
  const short_loop_t loop = g_lines[matvec->acc][side->k.count - 1];
  const mp_matvec_places_t *places = &matvec->places;
  if (places->are_packed) {
    const int64_t first = begin * side->k.count * size;
    g_packed[matvec->acc][side->k.count - 1](end - begin, a + first, b + first, out);
    return;
  }
  if (places->matrix != NULL) {
    loop(end - begin, places->matrix + begin, places->vector + begin, a, a_step, b, b_step, out);
    return;
  }
  int32_t a_at[BLOCK], b_at[BLOCK];
  for (int64_t n = 0; begin < end; begin += n) {
    n = mp_min_i64(end - begin, BLOCK);
    matvec_short_places_of_lines(matvec, begin, n, a_at, b_at);
    loop(n, a_at, b_at, a, a_step, b, b_step, out);
    out += n * size;
  }
}

void mp_matvec_run_short(const mp_matvec_t *matvec, const mp_kernel_call_t *call, int64_t begin,
                         int64_t end) {
  const char *a = call->operands[matvec->matrix_operand];
  const char *b = call->operands[matvec->vector_operand];
  char *out = (char *)call->results[0] + (size_t)begin * mp_acc_size(matvec->acc);
  const bool has_many_rows = matvec->matrix->rows.count >= MANY_ROWS;
  const unsigned before = mp_flush_begin();
  (has_many_rows ? matvec_short_run_rows : matvec_short_run_lines)(matvec, a, b, begin, end, out);
  mp_flush_end(before);
}
