#include "sim/kernels/contraction/matvec.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/contraction/matvec_lines.h"
#include "sim/kernels/contraction/matvec_short.h"
#include "sim/kernels/flush.h"
#include "sim/kernels/loops.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"

// BLOCK: rows or k that are handled at once. GRAIN: multiplications that are worth a part.
enum { BLOCK = 1024, LANES = MP_MATVEC_LANES, GRAIN = 1 << 19 };

typedef float f32_t;
typedef double f64_t;
typedef uint32_t u32_t;
typedef uint64_t u64_t;

// dot_ adds a[i] * b[i] to LANES sums, lane by lane. axpy_ is y += a * x; axpy4_ does it four
// times, with x that are `step` bytes apart.
#define MATVEC_LOOPS(T)                                                                    \
  MP_VECTOR static void dot_##T(int64_t n, const void *a_, const void *b_, void *sums_) {  \
    const T *a = a_, *b = b_;                                                              \
    T sums[LANES];                                                                         \
    memcpy(sums, sums_, sizeof(sums));                                                     \
    int64_t i = 0;                                                                         \
    for (; i + LANES <= n; i += LANES) {                                                   \
      for (int l = 0; l < LANES; ++l) sums[l] += a[i + l] * b[i + l];                      \
    }                                                                                      \
    for (; i < n; ++i) sums[i % LANES] += a[i] * b[i];                                     \
    memcpy(sums_, sums, sizeof(sums));                                                     \
  }                                                                                        \
  static void total_##T(const void *sums_, void *out) {                                    \
    T sums[LANES];                                                                         \
    memcpy(sums, sums_, sizeof(sums));                                                     \
    for (int width = LANES / 2; width > 0; width /= 2) {                                   \
      for (int l = 0; l < width; ++l) sums[l] += sums[l + width];                          \
    }                                                                                      \
    *(T *)out = sums[0];                                                                   \
  }                                                                                        \
  MP_VECTOR static void axpy_##T(int64_t n, const void *a_, const void *x_, void *y_) {    \
    const T *restrict x = x_;                                                              \
    T *restrict y = y_;                                                                    \
    T a = *(const T *)a_;                                                                  \
    for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];                                      \
  }                                                                                        \
  MP_VECTOR static void axpy4_##T(int64_t n, const void *a_, const void *x_, int64_t step, \
                                  void *y_) {                                              \
    const T *a = a_;                                                                       \
    const T *restrict x0 = x_;                                                             \
    const T *restrict x1 = (const void *)((const char *)x_ + step);                        \
    const T *restrict x2 = (const void *)((const char *)x_ + 2 * step);                    \
    const T *restrict x3 = (const void *)((const char *)x_ + 3 * step);                    \
    T *restrict y = y_;                                                                    \
    T a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];                                          \
    for (int64_t i = 0; i < n; ++i) {                                                      \
      y[i] = (((y[i] + a0 * x0[i]) + a1 * x1[i]) + a2 * x2[i]) + a3 * x3[i];               \
    }                                                                                      \
  }
MATVEC_LOOPS(f32_t)
MATVEC_LOOPS(f64_t)
MATVEC_LOOPS(u32_t)
MATVEC_LOOPS(u64_t)

typedef struct {
  void (*dot)(int64_t n, const void *a, const void *b, void *sums);
  void (*total)(const void *sums, void *out);
  void (*axpy)(int64_t n, const void *a, const void *x, void *y);
  void (*axpy4)(int64_t n, const void *a, const void *x, int64_t step, void *y);
} loops_t;

static const loops_t g_loops[MP_ACC_COUNT] = {
    {dot_f32_t, total_f32_t, axpy_f32_t, axpy4_f32_t},
    {dot_f64_t, total_f64_t, axpy_f64_t, axpy4_f64_t},
    {dot_u32_t, total_u32_t, axpy_u32_t, axpy4_u32_t},
    {dot_u64_t, total_u64_t, axpy_u64_t, axpy4_u64_t},
};

static void matvec_dot(const loops_t *loops, int64_t n, const void *a, const void *b, void *sums) {
  const unsigned before = mp_flush_begin();
  loops->dot(n, a, b, sums);
  mp_flush_end(before);
}

static void matvec_axpy(const loops_t *loops, int64_t n, const void *a, const void *x, void *y) {
  const unsigned before = mp_flush_begin();
  loops->axpy(n, a, x, y);
  mp_flush_end(before);
}

mp_status_t mp_matvec_plan(mp_arena_t *arena, mp_matvec_t *matvec, mp_kernel_t *kernel) {
  MP_ASSERT((unsigned)matvec->acc < MP_ACC_COUNT && matvec->vector->rows.count == 1);
  int64_t k = matvec->matrix->k.count;
  int64_t rows = matvec->matrix->batch.count * matvec->matrix->rows.count;
  int64_t parts = mp_part_count(MP_WORK(rows, mp_max_i64(k, 1)), GRAIN), step = 0;
  // If neighbouring rows are contiguous in memory, they are read in long runs.
  bool by_k = mp_axes_step(&matvec->matrix->rows, &step) && step == matvec->matrix->element;
  if (by_k) parts = mp_min_i64(parts, rows / BLOCK);
  kernel->num_parts = (uint32_t)mp_clamp_i64(parts, 1, mp_max_i64(rows, 1));
  kernel->scratch_bytes = (size_t)(k + 1) * mp_acc_size(matvec->acc);  // the vector
  // where rows are contiguous, sums have another order: one k after the other
  matvec->sums_by_k = by_k && matvec->matrix->rows.count >= LANES;
  matvec->is_short = !matvec->sums_by_k && mp_matvec_is_short(matvec);
  matvec->is_lines = !matvec->sums_by_k && !matvec->is_short && mp_matvec_is_lines(matvec);
  if (matvec->is_short) kernel->scratch_bytes = 0;
  if (matvec->is_lines) kernel->scratch_bytes = mp_matvec_lines_scratch(matvec);
  return matvec->is_short ? mp_matvec_place_short(arena, matvec) : NULL;
}

// Loads the vector of one batch into the scratch memory, in the accumulation type.
static void matvec_load_vector(const mp_matvec_t *matvec, const mp_kernel_call_t *call,
                               int64_t batch) {
  const mp_operand_t *side = matvec->vector;
  for (int64_t k = 0; k < side->k.count; k += MP_GEMM_BLOCK_K) {
    const mp_gemm_range_t range = {batch, .rows = 1, .k = k,
                                   .depth = mp_min_i64(MP_GEMM_BLOCK_K, side->k.count - k)};
    mp_operand_pack(side, call->operands[matvec->vector_operand], &range, 1,
                    (char *)call->scratch + (size_t)k * side->acc_bytes);
  }
}

// A line of the matrix along k or along its rows, in the accumulation type.
static const void *matvec_load_line(const mp_operand_t *side, const char *src, int64_t step,
                                    int64_t count, void *raw, void *line) {
  const void *values = src;
  if (step != side->element && count > 1) {
    mp_strided_t copy;
    mp_strided_init(&copy, side->element);
    mp_strided_add_dim(&copy, count, side->element, step);
    mp_strided_finish(&copy);
    mp_strided_run(&copy, raw, src);
    values = raw;
  }
  if (mp_convert_is_copy(&side->convert)) return values;
  mp_convert_run(&side->convert, count, values, line);
  return line;
}

typedef struct {
  const mp_matvec_t *matvec;
  const char *matrix;  // of this batch
  const char *vector;
  void *out;  // [count] in the accumulation type
} job_t;

// Computes rows [first, first + count), each as the product of two lines along k.
static void matvec_run_by_rows(const job_t *job, int64_t first, int64_t count) {
  const mp_operand_t *side = job->matvec->matrix;
  const loops_t *loops = &g_loops[job->matvec->acc];
  _Alignas(64) char raw[BLOCK * 8], line[BLOCK * 8];
  int64_t offsets[BLOCK], k_offsets[BLOCK], step = 0;
  bool even = mp_axes_step(&side->k, &step);
  mp_axes_offsets(&side->rows, first, count, offsets);
  for (int64_t r = 0; r < count; ++r) {
    _Alignas(64) char sums[LANES * 8] = {0};
    for (int64_t k = 0; k < side->k.count; k += BLOCK) {
      int64_t depth = mp_min_i64(BLOCK, side->k.count - k);
      if (even) {
        const void *values =
            matvec_load_line(side, job->matrix + offsets[r] + k * step, step, depth, raw, line);
        matvec_dot(loops, depth, values, job->vector + k * side->acc_bytes, sums);
      } else {
        mp_axes_offsets(&side->k, k, depth, k_offsets);
        for (int64_t i = 0; i < depth; ++i) {
          memcpy(raw + i * side->element, job->matrix + offsets[r] + k_offsets[i], side->element);
        }
        const void *values = matvec_load_line(side, raw, side->element, depth, NULL, line);
        matvec_dot(loops, depth, values, job->vector + k * side->acc_bytes, sums);
      }
    }
    loops->total(sums, (char *)job->out + r * side->acc_bytes);
  }
}

// Computes rows [first, first + count), which are contiguous in memory, one k after the other.
static void matvec_run_by_k(const job_t *job, int64_t first, int64_t count) {
  const mp_operand_t *side = job->matvec->matrix;
  const loops_t *loops = &g_loops[job->matvec->acc];
  _Alignas(64) char line[BLOCK * 8];
  int64_t row_offset = 0, k_offsets[MP_GEMM_BLOCK_K], step = 0;
  bool even = mp_axes_step(&side->k, &step) && mp_convert_is_copy(&side->convert);
  mp_axes_offsets(&side->rows, first, 1, &row_offset);
  memset(job->out, 0, (size_t)count * side->acc_bytes);
  for (int64_t k = 0; k < side->k.count; k += MP_GEMM_BLOCK_K) {
    int64_t depth = mp_min_i64(MP_GEMM_BLOCK_K, side->k.count - k);
    mp_axes_offsets(&side->k, k, depth, k_offsets);
    int64_t i = 0;
    const unsigned before = mp_flush_begin();
    for (; even && i + 4 <= depth; i += 4) {
      loops->axpy4(count, job->vector + (k + i) * side->acc_bytes,
                   job->matrix + row_offset + k_offsets[i], step, job->out);
    }
    mp_flush_end(before);
    for (; i < depth; ++i) {
      const void *values = matvec_load_line(side, job->matrix + row_offset + k_offsets[i],
                                            side->element, count, NULL, line);
      matvec_axpy(loops, count, job->vector + (k + i) * side->acc_bytes, values, job->out);
    }
  }
}

void mp_matvec_run_part(const mp_matvec_t *matvec, const mp_kernel_t *kernel,
                        const mp_kernel_call_t *call) {
  const mp_operand_t *side = matvec->matrix;
  int64_t rows = side->rows.count, begin = 0, end = 0, loaded = -1;
  mp_part_range(side->batch.count * rows, kernel->num_parts, call->part, &begin, &end);
  if (matvec->is_short) {
    mp_matvec_run_short(matvec, call, begin, end);
    return;
  }
  if (matvec->is_lines) {
    mp_matvec_run_lines(matvec, call, begin, end);
    return;
  }
  size_t out_size = mp_dtype_size(matvec->store.to);
  char *out = (char *)call->results[0] + (size_t)begin * out_size;
  _Alignas(64) char sums[BLOCK * 8];
  while (begin < end) {
    int64_t batch = begin / rows, row = begin % rows, batch_offset = 0;
    int64_t count = mp_min_i64(mp_min_i64(end - begin, rows - row), BLOCK);
    if (batch != loaded) matvec_load_vector(matvec, call, batch);
    loaded = batch;
    mp_axes_offsets(&side->batch, batch, 1, &batch_offset);
    job_t job = {matvec, (const char *)call->operands[matvec->matrix_operand] + batch_offset,
                 call->scratch, sums};
    if (matvec->sums_by_k) {
      matvec_run_by_k(&job, row, count);
    } else {
      matvec_run_by_rows(&job, row, count);
    }
    mp_convert_run(&matvec->store, count, sums, out);
    out += (size_t)count * out_size;
    begin += count;
  }
}
