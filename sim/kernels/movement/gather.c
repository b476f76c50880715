// gather (StableHLO specification, "gather"): copies one slice of the operand per index vector.
#include "sim/kernels/movement/gather.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/vector.h"
#include "sim/kernels/lanes.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"

enum { GRAIN_BYTES = 256 * 1024, GRAIN_SLICES = 4096 };

typedef struct {
  int64_t extent;
  int64_t dst;      // stride in the result, in bytes
  int64_t index;    // stride in start_indices, in elements
  int64_t operand;  // stride in the operand, in bytes; not 0 only for batching dimensions
} batch_dim_t;

typedef struct {
  int64_t stride;  // in the operand, in bytes
  int64_t limit;   // the largest start of a slice inside of the operand
} start_dim_t;

typedef struct {
  mp_kernel_t base;
  int64_t num_slices;
  mp_dtype_t index_dtype;
  uint32_t index_bytes;
  uint32_t element;       // bytes
  int64_t vector_stride;  // elements of start_indices from one component to the next
  int64_t vector;         // elements of an index vector
  uint32_t num_starts, num_batch;
  start_dim_t *starts;  // [num_starts], by component of an index vector
  batch_dim_t *batch;   // [num_batch], outermost first
  bool is_short;        // numbers of elements of the operand have 32 bits
  mp_strided_t slice;
} gather_kernel_t;

// The source and the destination of slice number `number`, and the place of its index vector.
typedef struct {
  int64_t position[MP_MAX_RANK];
  int64_t dst, index, operand;
} cursor_t;

static void gather_cursor_seek(const gather_kernel_t *self, int64_t number, cursor_t *cursor) {
  cursor->dst = cursor->index = cursor->operand = 0;
  for (uint32_t i = self->num_batch; i-- > 0;) {
    const batch_dim_t *dim = &self->batch[i];
    int64_t position = number % dim->extent;
    number /= dim->extent;
    cursor->position[i] = position;
    cursor->dst += position * dim->dst;
    cursor->index += position * dim->index;
    cursor->operand += position * dim->operand;
  }
}

static inline int64_t gather_load_start(const gather_kernel_t *self, const char *indices,
                                        int64_t i) {
  if (self->index_dtype == MP_DTYPE_S32) return ((const int32_t *)(const void *)indices)[i];
  if (self->index_dtype == MP_DTYPE_S64) return ((const int64_t *)(const void *)indices)[i];
  return mp_load_index(self->index_dtype, indices + i * self->index_bytes);
}

// The byte offset in the operand to which the index vector at element `index` points, clamped.
static inline int64_t gather_slice_start(const gather_kernel_t *self, const char *indices,
                                         int64_t index) {
  int64_t offset = 0;
  for (uint32_t i = 0; i < self->num_starts; ++i) {
    int64_t start = gather_load_start(self, indices, index + i * self->vector_stride);
    offset += mp_clamp_i64(start, 0, self->starts[i].limit) * self->starts[i].stride;
  }
  return offset;
}

// Several slices that follow each other along the innermost batch dimension.
typedef struct {
  const char *indices, *src;
  char *dst;
  int64_t index, count;
  batch_dim_t step;
} run_t;

// Slices of one element are gathered so many at a time: first all places, then all elements.
enum { BLOCK = 256 };

// Adds the offsets from one component of the index vectors to the places of `n` elements.
#define ADD_COMPONENT(I)                                                                 \
  MP_VECTOR static void gather_add_##I(int64_t n, const void *indices, int64_t step,     \
                                       int64_t limit, int64_t stride, int64_t *places) { \
    const I *index = indices;                                                            \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                                     \
      const int64_t start = index[i * step] < 0 ? 0 : index[i * step];                   \
      places[i] += (start > limit ? limit : start) * stride;                             \
    }                                                                                    \
  }
ADD_COMPONENT(int32_t)
ADD_COMPONENT(int64_t)

// The places of elements [begin, begin + n) of the run, in bytes from run->src on.
static void gather_find_places(const gather_kernel_t *self, const run_t *run, int64_t begin,
                               int64_t n, int64_t *places) {
  const bool is_s32 = self->index_dtype == MP_DTYPE_S32;
  const bool is_quick = is_s32 || self->index_dtype == MP_DTYPE_S64;
  const int64_t first = run->index + begin * run->step.index;
  for (int64_t i = 0; i < n; ++i) {
    places[i] = (begin + i) * run->step.operand;
    if (!is_quick) places[i] += gather_slice_start(self, run->indices, first + i * run->step.index);
  }
  for (uint32_t k = 0; k < self->num_starts && is_quick; ++k) {
    const char *indices =
        run->indices + (first + k * self->vector_stride) * (int64_t)self->index_bytes;
    (is_s32 ? gather_add_int32_t : gather_add_int64_t)(
        n, indices, run->step.index, self->starts[k].limit, self->starts[k].stride, places);
  }
}

// Gathers n elements of type T. Loads several before it stores any: a load would wait for the store
// before it, which might have written the same memory.
enum { TOGETHER = 8 };
#define GATHER_TAKE(name, T, place_t)                                                         \
  static void name(int64_t n, const char *src, const place_t *places, int64_t unit, T *dst) { \
    int64_t i = 0;                                                                            \
    for (; i + TOGETHER <= n; i += TOGETHER) {                                                \
      T taken[TOGETHER];                                                                      \
      for (int64_t k = 0; k < TOGETHER; ++k) {                                                \
        taken[k] = *(const T *)(const void *)(src + places[i + k] * unit);                    \
      }                                                                                       \
      for (int64_t k = 0; k < TOGETHER; ++k) dst[i + k] = taken[k];                           \
    }                                                                                         \
    for (; i < n; ++i) dst[i] = *(const T *)(const void *)(src + places[i] * unit);           \
  }

#define EACH_SIZE(X) X(uint8_t) X(uint16_t) X(uint32_t) X(uint64_t)

// Gathers slices of one element of type T.
#define GATHER_ELEMENTS(T)                                                    \
  GATHER_TAKE(gather_near_##T, T, int64_t)                                    \
  static void gather_##T(const gather_kernel_t *self, const run_t *run) {     \
    for (int64_t begin = 0, n; begin < run->count; begin += n) {              \
      int64_t places[BLOCK];                                                  \
      n = mp_min_i64(run->count - begin, BLOCK);                              \
      gather_find_places(self, run, begin, n, places);                        \
      char *dst = run->dst + begin * run->step.dst;                           \
      if (run->step.dst == sizeof(T)) {                                       \
        gather_near_##T(n, run->src, places, 1, (T *)(void *)dst);            \
        continue;                                                             \
      }                                                                       \
      for (int64_t i = 0; i < n; ++i, dst += run->step.dst) {                 \
        *(T *)(void *)dst = *(const T *)(const void *)(run->src + places[i]); \
      }                                                                       \
    }                                                                         \
  }
EACH_SIZE(GATHER_ELEMENTS)

// The same along one dimension of the operand, as in `table[index]`, for contiguous indices and
// results. Places are 32-bit numbers of elements.
#define CLAMP_TABLE(I)                                                                             \
  MP_VECTOR static void gather_clamp_##I(int64_t n, const void *indices, int64_t limit,            \
                                         uint32_t stride, uint32_t *places) {                      \
    const I *index = indices, most = (I)mp_min_i64(limit, sizeof(I) == 4 ? INT32_MAX : INT64_MAX); \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                                               \
      const I start = index[i] < 0 ? 0 : index[i];                                                 \
      places[i] = (uint32_t)(start > most ? most : start) * stride;                                \
    }                                                                                              \
  }
CLAMP_TABLE(int32_t)
CLAMP_TABLE(int64_t)

#define GATHER_TABLE(T)                                                                       \
  GATHER_TAKE(gather_take_##T, T, uint32_t)                                                   \
  static void gather_table_##T(const gather_kernel_t *self, const run_t *run) {               \
    const int64_t limit = self->starts[0].limit;                                              \
    const uint32_t stride = (uint32_t)(self->starts[0].stride / (int64_t)sizeof(T));          \
    const bool is_narrow = self->index_dtype == MP_DTYPE_S32;                                 \
    for (int64_t begin = 0, n; begin < run->count; begin += n) {                              \
      uint32_t places[BLOCK];                                                                 \
      n = mp_min_i64(run->count - begin, BLOCK);                                              \
      const char *indices = run->indices + (run->index + begin) * (int64_t)self->index_bytes; \
      (is_narrow ? gather_clamp_int32_t : gather_clamp_int64_t)(n, indices, limit, stride,    \
                                                                places);                      \
      gather_take_##T(n, run->src, places, sizeof(T), (T *)(void *)run->dst + begin);         \
    }                                                                                         \
  }
EACH_SIZE(GATHER_TABLE)

// Whether the run reads such a table.
static bool gather_is_table(const gather_kernel_t *self, const run_t *run) {
  const bool is_near =
      run->step.index == 1 && run->step.operand == 0 && run->step.dst == (int64_t)self->element;
  return self->num_starts == 1 && (is_near || run->count == 1) && self->is_short &&
         (self->index_dtype == MP_DTYPE_S32 || self->index_dtype == MP_DTYPE_S64);
}

// Gathers slices of one element, if elements have a size for which there is a loop.
static bool gather_elements(const gather_kernel_t *self, const run_t *run) {
  const bool is_table = gather_is_table(self, run);
  switch (self->element) {
#define CASE(bytes, T)                                     \
  case bytes:                                              \
    (is_table ? gather_table_##T : gather_##T)(self, run); \
    return true;
    CASE(1, uint8_t)
    CASE(2, uint16_t)
    CASE(4, uint32_t)
    CASE(8, uint64_t)
#undef CASE
    default:
      return false;
  }
}

static void gather_slices(const gather_kernel_t *self, const run_t *run) {
  const mp_strided_t *slice = &self->slice;
  bool is_row = slice->rank == 1 && slice->dims[0].dst == slice->element &&
                slice->dims[0].src == slice->element;
  for (int64_t i = 0; i < run->count; ++i) {
    const char *src = run->src + i * run->step.operand +
                      gather_slice_start(self, run->indices, run->index + i * run->step.index);
    char *dst = run->dst + i * run->step.dst;
    if (is_row) {
      memcpy(dst, src, (size_t)slice->dims[0].extent * slice->element);
    } else {
      mp_strided_run(slice, dst, src);
    }
  }
}

// Slices that are columns of the result are gathered row by row instead of slice by slice.
static bool gather_are_columns(const gather_kernel_t *self, const run_t *run) {
  const mp_strided_t *slice = &self->slice;
  return slice->rank == 1 && slice->element == self->element && run->count > 1 &&
         run->step.dst == (int64_t)self->element && slice->dims[0].dst != (int64_t)self->element;
}

static void gather_columns(const gather_kernel_t *self, const run_t *run) {
  const mp_strided_dim_t *dim = &self->slice.dims[0];
  const int64_t element = self->element;
  for (int64_t begin = 0, n; begin < run->count; begin += n) {
    int64_t index[BLOCK];
    n = mp_min_i64(run->count - begin, BLOCK);
    gather_find_places(self, run, begin, n, index);
    for (int64_t i = 0; i < n; ++i) index[i] /= element;
    for (int64_t row = 0; row < dim->extent; ++row) {
      mp_lanes_gather(self->element, n, run->src + row * dim->src, index,
                      run->dst + begin * element + row * dim->dst);
    }
  }
}

static void gather_one_run(const gather_kernel_t *self, const run_t *run) {
  const bool is_element = self->slice.rank == 0 && self->slice.element == self->element;
  if (is_element && gather_elements(self, run)) return;
  if (gather_are_columns(self, run)) {
    gather_columns(self, run);
  } else {
    gather_slices(self, run);
  }
}

// Gathers slices [begin, end). `indices` begins with element `first` of start_indices.
static void gather_range(const gather_kernel_t *self, const mp_kernel_call_t *call,
                         const char *indices, int64_t first, int64_t begin, int64_t end) {
  cursor_t cursor;
  gather_cursor_seek(self, begin, &cursor);
  run_t run = {.indices = indices, .step = {.extent = 1}};
  const uint32_t last = self->num_batch - 1;
  if (self->num_batch > 0) run.step = self->batch[last];
  for (int64_t n = begin; n < end; n += run.count) {
    int64_t rest = self->num_batch > 0 ? run.step.extent - cursor.position[last] : 1;
    run.count = mp_min_i64(rest, end - n);
    MP_ASSERT(run.count > 0);  // otherwise the loop would not end
    run.src = (const char *)call->operands[0] + cursor.operand;
    run.dst = (char *)call->results[0] + cursor.dst;
    run.index = cursor.index - first;
    gather_one_run(self, &run);
    if (n + run.count < end) gather_cursor_seek(self, n + run.count, &cursor);
  }
}

static mp_status_t gather_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const gather_kernel_t *self = (const gather_kernel_t *)kernel;
  int64_t begin = 0, end = 0;
  mp_part_range(self->num_slices, kernel->num_parts, call->part, &begin, &end);
  gather_range(self, call, call->operands[1], 0, begin, end);
  return NULL;
}

bool mp_gather_reads_runs(const mp_op_t *op) {
  if (op->code != MP_OP_GATHER) return false;
  const mp_type_t *indices = mp_op_operand_type(op, 1);
  const int64_t vector_dim = mp_op_int(op, MP_ATTR_INDEX_VECTOR_DIM, 0);
  const int64_t vector = vector_dim < indices->rank ? indices->dims[vector_dim] : 1;
  return vector_dim + 1 >= (int64_t)indices->rank && vector <= MP_SOURCE_MOST &&
         mp_dtype_bits(indices->dtype) >= 8 && mp_shape_count(indices) > 0 &&
         mp_shape_count(mp_op_operand_type(op, 0)) > 0;
}

void mp_gather_run_from(const mp_kernel_t *kernel, const mp_kernel_call_t *call,
                        mp_source_t *source) {
  const gather_kernel_t *self = (const gather_kernel_t *)kernel;
  const int64_t vector = self->vector, most = MP_SOURCE_MOST / vector;
  int64_t begin = 0, end = 0;
  mp_part_range(self->num_slices, kernel->num_parts, call->part, &begin, &end);
  source->limit = end * vector;
  for (int64_t n = begin, count; n < end; n += count) {
    count = mp_min_i64(end - n, most);
    const char *indices = source->load(source, n * vector, count * vector);
    gather_range(self, call, indices, n * vector, n, n + count);
  }
}

// For an operand without elements, which has nothing to gather: a dimension that the result leaves
// out may have size 0.
static mp_status_t gather_zeros(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  memset(call->results[0], 0, (size_t)mp_shape_bytes(mp_op_result_type(kernel->op, 0)));
  return NULL;
}

// Lists the dimensions of the result that number the slices, each with its dimension of
// start_indices.
static void gather_batch_dims(gather_kernel_t *self, const mp_op_t *op, const int64_t *dst,
                              const int64_t *src) {
  const mp_type_t *indices = mp_op_operand_type(op, 1), *out = mp_op_result_type(op, 0);
  mp_index_list_t offset_dims = mp_op_ints(op, MP_ATTR_OFFSET_DIMS);
  mp_index_list_t operand_batching = mp_op_ints(op, MP_ATTR_OPERAND_BATCHING_DIMS);
  mp_index_list_t index_batching = mp_op_ints(op, MP_ATTR_START_INDICES_BATCHING_DIMS);
  int64_t vector_dim = mp_op_int(op, MP_ATTR_INDEX_VECTOR_DIM, 0);
  int64_t strides[MP_MAX_RANK];
  mp_dims_strides(indices->dims, indices->rank, 1, strides);
  int64_t index_dim = 0;
  for (uint32_t i = 0; i < out->rank; ++i) {
    if (mp_index_list_has(offset_dims, i)) continue;
    if (index_dim == vector_dim) ++index_dim;
    MP_ASSERT(self->num_batch < out->rank && index_dim < (int64_t)indices->rank);
    batch_dim_t *dim = &self->batch[self->num_batch++];
    *dim = (batch_dim_t){out->dims[i], dst[i], strides[index_dim], 0};
    for (uint32_t b = 0; b < index_batching.count; ++b) {
      if (index_batching.values[b] == index_dim) dim->operand = src[operand_batching.values[b]];
    }
    self->num_slices *= dim->extent;
    ++index_dim;
  }
  const bool has_dim = vector_dim < (int64_t)indices->rank;
  self->vector_stride = has_dim ? strides[vector_dim] : 0;
  self->vector = has_dim ? indices->dims[vector_dim] : 1;
}

mp_status_t mp_gather_make(mp_arena_t *arena, const mp_op_t *op, const mp_kernel_t **out_kernel) {
  const mp_type_t *in = mp_op_operand_type(op, 0), *out = mp_op_result_type(op, 0);
  mp_index_list_t sizes = mp_op_ints(op, MP_ATTR_SLICE_SIZES);
  mp_index_list_t collapsed = mp_op_ints(op, MP_ATTR_COLLAPSED_SLICE_DIMS);
  mp_index_list_t operand_batching = mp_op_ints(op, MP_ATTR_OPERAND_BATCHING_DIMS);
  mp_index_list_t offset_dims = mp_op_ints(op, MP_ATTR_OFFSET_DIMS);
  mp_index_list_t start_map = mp_op_ints(op, MP_ATTR_START_INDEX_MAP);
  gather_kernel_t *self = MP_ARENA_NEW(arena, gather_kernel_t);
  MP_RETURN_IF_NULL(self);
  *out_kernel = &self->base;
  if (mp_shape_count(in) == 0) {
    mp_kernel_init(&self->base, gather_zeros, op);
    return NULL;
  }
  mp_kernel_init(&self->base, gather_run, op);
  self->batch = MP_ARENA_ARRAY(arena, batch_dim_t, out->rank + 1);
  self->starts = MP_ARENA_ARRAY(arena, start_dim_t, start_map.count + 1);
  if (self->batch == NULL || self->starts == NULL) return mp_status_out_of_memory();

  uint32_t element = (uint32_t)mp_dtype_size(in->dtype);
  int64_t dst[MP_MAX_RANK], src[MP_MAX_RANK];
  mp_dims_strides(out->dims, out->rank, element, dst);
  mp_dims_strides(in->dims, in->rank, element, src);
  self->element = element;
  self->is_short = mp_shape_count(in) <= UINT32_MAX;
  self->num_slices = 1;
  self->index_dtype = mp_op_operand_type(op, 1)->dtype;
  self->index_bytes = (uint32_t)mp_dtype_size(self->index_dtype);
  gather_batch_dims(self, op, dst, src);
  self->num_starts = start_map.count;
  for (uint32_t i = 0; i < start_map.count; ++i) {
    int64_t dim = start_map.values[i];
    // A slice has one element along a dimension that the result leaves out, even if its stated size
    // is 0.
    self->starts[i] = (start_dim_t){src[dim], in->dims[dim] - mp_max_i64(sizes.values[dim], 1)};
  }
  mp_strided_init(&self->slice, element);
  uint32_t offset = 0;
  for (uint32_t i = 0; i < in->rank; ++i) {
    if (mp_index_list_has(collapsed, i) || mp_index_list_has(operand_batching, i)) continue;
    mp_strided_add_dim(&self->slice, sizes.values[i], dst[offset_dims.values[offset++]], src[i]);
  }
  mp_strided_finish(&self->slice);
  uint32_t by_bytes = mp_part_count(mp_shape_bytes(out), GRAIN_BYTES);
  uint32_t by_slices = mp_part_count(self->num_slices, GRAIN_SLICES);
  uint32_t parts = by_bytes > by_slices ? by_bytes : by_slices;
  self->base.num_parts = (uint32_t)mp_max_i64(mp_min_i64(parts, self->num_slices), 1);
  return NULL;
}
