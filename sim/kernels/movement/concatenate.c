// concatenate (StableHLO specification, "concatenate").
//
// Rows are numbered by all dimensions before the concatenated one. A row of the result consists of
// a row of each operand, one after the other.
#include <string.h>

#include "sim/base/vector.h"
#include "sim/kernels/movement/movement_makers.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"

enum { GRAIN_BYTES = 512 * 1024 };

typedef struct {
  mp_kernel_t base;
  int64_t rows;
  int64_t row_bytes;  // of the result
  bool cut_rows;      // parts are ranges of rows; otherwise ranges of the bytes of every row
  uint32_t num_operands;
  int64_t starts[];  // [num_operands + 1]: the byte offset of each operand in a row
} concatenate_kernel_t;

// Rows [begin, end), each of one element of `n` columns.
#define COLUMNS_2(i) out[2 * i] = a[i], out[2 * i + 1] = b[i]
#define COLUMNS_3(i) out[3 * i] = a[i], out[3 * i + 1] = b[i], out[3 * i + 2] = c[i]
#define COLUMNS_4(i) \
  out[4 * i] = a[i], out[4 * i + 1] = b[i], out[4 * i + 2] = c[i], out[4 * i + 3] = d[i]
#define JOIN_COLUMNS(n)                                                                            \
  MP_VECTOR static void concatenate_columns_##n(const void *const *in, int64_t begin, int64_t end, \
                                                void *result) {                                    \
    const uint32_t *a = in[0], *b = in[1], *c = in[n > 2 ? 2 : 0], *d = in[n > 3 ? 3 : 0];         \
    uint32_t *restrict out = result;                                                               \
    (void)c, (void)d;                                                                              \
    MP_INDEPENDENT for (int64_t i = begin; i < end; ++i) {                                         \
      COLUMNS_##n(i);                                                                              \
    }                                                                                              \
  }
JOIN_COLUMNS(2)
JOIN_COLUMNS(3)
JOIN_COLUMNS(4)

// Columns of elements of four bytes each, as components become vectors.
static mp_status_t concatenate_run_columns(const mp_kernel_t *kernel,
                                           const mp_kernel_call_t *call) {
  const concatenate_kernel_t *self = (const concatenate_kernel_t *)kernel;
  int64_t begin = 0, end = 0;
  mp_part_range(self->rows, kernel->num_parts, call->part, &begin, &end);
  if (self->num_operands == 2) {
    concatenate_columns_2(call->operands, begin, end, call->results[0]);
  } else if (self->num_operands == 3) {
    concatenate_columns_3(call->operands, begin, end, call->results[0]);
  } else {
    concatenate_columns_4(call->operands, begin, end, call->results[0]);
  }
  return NULL;
}

static bool concatenate_has_columns(const concatenate_kernel_t *self) {
  if (!self->cut_rows || self->num_operands < 2 || self->num_operands > 4) return false;
  for (uint32_t i = 0; i < self->num_operands; ++i) {
    if (self->starts[i + 1] - self->starts[i] != (int64_t)sizeof(uint32_t)) return false;
  }
  return true;
}

// Copies the `bytes` bytes of rows that are `to_step` and `from_step` bytes apart.
static void concatenate_copy(int64_t rows, int64_t bytes, char *to, int64_t to_step,
                             const char *from, int64_t from_step) {
  enum { FEW_ROWS = 32 };
  if (rows <= FEW_ROWS) {
    for (int64_t r = 0; r < rows; ++r) {
      memcpy(to + r * to_step, from + r * from_step, (size_t)bytes);
    }
    return;
  }
  mp_strided_t copy;
  mp_strided_init(&copy, 1);
  mp_strided_add_dim(&copy, rows, to_step, from_step);
  mp_strided_add_dim(&copy, bytes, 1, 1);
  mp_strided_finish(&copy);
  mp_strided_run(&copy, to, from);
}

static mp_status_t concatenate_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const concatenate_kernel_t *self = (const concatenate_kernel_t *)kernel;
  int64_t row_begin = 0, row_end = self->rows, begin = 0, end = self->row_bytes;
  if (self->cut_rows) {
    mp_part_range(self->rows, kernel->num_parts, call->part, &row_begin, &row_end);
  } else {
    mp_part_range(self->row_bytes, kernel->num_parts, call->part, &begin, &end);
  }
  for (uint32_t i = 0; i < self->num_operands; ++i) {
    int64_t start = self->starts[i], size = self->starts[i + 1] - start;
    int64_t from = mp_max_i64(begin, start), to = mp_min_i64(end, start + size);
    if (from >= to || row_begin >= row_end) continue;
    const char *src = (const char *)call->operands[i] + row_begin * size + (from - start);
    char *dst = (char *)call->results[0] + row_begin * self->row_bytes + from;
    concatenate_copy(row_end - row_begin, to - from, dst, self->row_bytes, src, size);
  }
  return NULL;
}

mp_status_t mp_kernel_make_concatenate(mp_arena_t *arena, const mp_op_t *op,
                                       const mp_kernel_t **out_kernel) {
  concatenate_kernel_t *self =
      mp_arena_alloc(arena, sizeof(*self) + (op->num_operands + 1) * sizeof(int64_t));
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, concatenate_run, op);
  const mp_type_t *out = mp_op_result_type(op, 0);
  uint32_t dim = (uint32_t)mp_op_int(op, MP_ATTR_DIMENSION, 0);
  int64_t inner =
      mp_dims_product(out->dims, dim + 1, out->rank) * (int64_t)mp_dtype_size(out->dtype);
  self->rows = mp_dims_product(out->dims, 0, dim);
  self->row_bytes = out->dims[dim] * inner;
  self->num_operands = op->num_operands;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    self->starts[i + 1] = self->starts[i] + mp_op_operand_type(op, i)->dims[dim] * inner;
  }
  uint32_t parts = mp_part_count(self->rows * self->row_bytes, GRAIN_BYTES);
  self->cut_rows = self->rows >= parts;
  self->base.num_parts = parts;
  if (concatenate_has_columns(self)) self->base.run = concatenate_run_columns;
  *out_kernel = &self->base;
  return NULL;
}
