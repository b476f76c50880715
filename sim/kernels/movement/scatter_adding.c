// scatter: adds windows of short contiguous rows. A call of the op's loop per row would take longer
// than the additions.
#include "sim/base/vector.h"
#include "sim/kernels/movement/scatter.h"
#include "sim/kernels/shape.h"

// Adds `rows` rows of `width` elements to others. The next rows begin to_step and from_step
// elements later.
#define ADD_ROWS(T)                                                                              \
  static inline __attribute__((always_inline)) void add_by_##T(                                  \
      T *to, int64_t to_step, const T *from, int64_t from_step, int64_t rows, int64_t width) {   \
    for (int64_t i = 0; i < rows; ++i, to += to_step, from += from_step) {                       \
      MP_INDEPENDENT for (int64_t k = 0; k < width; ++k) to[k] = (T)(to[k] + from[k]);           \
    }                                                                                            \
  }                                                                                              \
  MP_VECTOR static void add_rows_##T(char *to, int64_t to_step, const char *from,                \
                                     int64_t from_step, int64_t rows, int64_t width) {           \
    switch (width) {                                                                             \
      case 1:                                                                                    \
        add_by_##T((T *)(void *)to, to_step, (const T *)(const void *)from, from_step, rows, 1); \
        break;                                                                                   \
      case 2:                                                                                    \
        add_by_##T((T *)(void *)to, to_step, (const T *)(const void *)from, from_step, rows, 2); \
        break;                                                                                   \
      case 3:                                                                                    \
        add_by_##T((T *)(void *)to, to_step, (const T *)(const void *)from, from_step, rows, 3); \
        break;                                                                                   \
      case 4:                                                                                    \
        add_by_##T((T *)(void *)to, to_step, (const T *)(const void *)from, from_step, rows, 4); \
        break;                                                                                   \
      default:                                                                                   \
        add_by_##T((T *)(void *)to, to_step, (const T *)(const void *)from, from_step, rows,     \
                   width);                                                                       \
        break;                                                                                   \
    }                                                                                            \
  }
ADD_ROWS(float)
ADD_ROWS(double)
ADD_ROWS(uint32_t)
ADD_ROWS(uint64_t)

void mp_scatter_add_rows(const mp_scatter_part_t *part, int64_t operand_offset,
                         int64_t update_offset) {
  const mp_scatter_t *kernel = part->kernel;
  const mp_scatter_window_t none = {.dim = 1};
  const mp_scatter_window_t *rows = kernel->num_window_dims == 0 ? &none : kernel->window_dims;
  const int64_t size = (int64_t)kernel->sizes[0], width = part->end - part->begin;
  char *to = (char *)part->call->results[0] + (operand_offset + part->begin) * size;
  const char *from = (const char *)part->call->operands[2] + (update_offset + part->begin) * size;
  const int64_t to_step = rows->operand_stride, from_step = rows->update_stride;
  switch (kernel->adds) {
    case MP_DTYPE_F32:
      add_rows_float(to, to_step, from, from_step, rows->dim, width);
      break;
    case MP_DTYPE_F64:
      add_rows_double(to, to_step, from, from_step, rows->dim, width);
      break;
    case MP_DTYPE_U32:
      add_rows_uint32_t(to, to_step, from, from_step, rows->dim, width);
      break;
    default:
      add_rows_uint64_t(to, to_step, from, from_step, rows->dim, width);
      break;
  }
}

static mp_dtype_t scatter_adding_type(mp_dtype_t dtype) {
  switch (dtype) {
    case MP_DTYPE_F32:
    case MP_DTYPE_F64:
      return dtype;
    case MP_DTYPE_S32:
    case MP_DTYPE_U32:
      return MP_DTYPE_U32;
    case MP_DTYPE_S64:
    case MP_DTYPE_U64:
      return MP_DTYPE_U64;
    default:
      return MP_DTYPE_INVALID;
  }
}

void mp_scatter_recognize_adding(mp_scatter_t *kernel, const mp_op_t *op) {
  if (kernel->num_operands != 1 || !kernel->is_binary || kernel->sets) return;
  if (mp_region_fn_kind(kernel->fn) != MP_REDUCE_ADD) return;
  kernel->adds = scatter_adding_type(mp_op_operand_type(op, 0)->dtype);
  kernel->adds_rows = kernel->adds != MP_DTYPE_INVALID && kernel->num_window_dims <= 1 &&
                      kernel->run.operand_stride == 1 && kernel->run.update_stride == 1;
}
