// stablehlo.sort: sorts slices along one dimension of any number of operands, always stably. The
// results may have the first rows of the sorted slices only (MP_ATTR_FIRST).
#include "sim/kernels/movement/sort.h"

#include <string.h>

#include "sim/kernels/movement/movement_makers.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"

typedef struct {
  mp_kernel_t base;
  uint32_t num_operands;
  const mp_region_fn_t *comparator;
  bool has_key;
  mp_sort_key_t key;
  size_t *sizes;   // [num_operands]: the bytes of an element
  bool *is_count;  // [num_operands]: mp_kernel_sort_counts
  int64_t length;  // the rows of a slice
  int64_t kept;    // the rows of a slice of the results, the first ones
  int64_t inner;   // the elements from one row of a slice to the next
  int64_t num_slices;
  int64_t group;         // the number of slices that are sorted together
  size_t copies_offset;  // where in scratch the copies of operands are, if slices have gaps
  size_t order_offset;
  size_t ways_offset;
} sort_t;

// GROUP_ROWS: the rows that are sorted together when slices are short.
enum { GROUP_ROWS = 4096, GRAIN = 16 * 1024 };

// Copies the elements of slices [begin, begin + count) between `dense`, where they are contiguous,
// and the array, where those of a slice are `inner` apart.
static void sort_copy_slices(const sort_t *kernel, uint32_t k, int64_t begin, int64_t count,
                             char *dense, const char *array) {
  size_t size = kernel->sizes[k];
  for (int64_t s = 0; s < count; ++s) {
    int64_t slice = begin + s;
    const char *from =
        array + (slice / kernel->inner * kernel->inner * kernel->length + slice % kernel->inner) *
                    (int64_t)size;
    mp_copy_line(dense + (size_t)(s * kernel->length) * size, (int64_t)size, from,
                 kernel->inner * (int64_t)size, size, kernel->length);
  }
}

// Row numbers of a group as numbers within their slice. If the integer type is too narrow for the
// numbers, their low bytes remain.
static void sort_write_counts(int64_t first, const uint32_t *rows, int64_t count, size_t size,
                              char *to, int64_t step) {
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t number = rows[i] - (uint64_t)first;
    memcpy(to + i * step, &number, size);  // little endian: the low bytes
  }
}

static void sort_write_sorted(const sort_t *kernel, const mp_kernel_call_t *call, uint32_t k,
                              int64_t begin, int64_t count, const uint32_t *order) {
  const char *dense = ((const char *const *)call->scratch)[k];
  char *array = call->results[k];
  size_t size = kernel->sizes[k];
  for (int64_t s = 0; s < count; ++s) {
    int64_t slice = begin + s;
    char *to =
        array + (slice / kernel->inner * kernel->inner * kernel->kept + slice % kernel->inner) *
                    (int64_t)size;
    int64_t step = kernel->inner * (int64_t)size;
    const uint32_t *rows = order + s * kernel->kept;
    if (dense == NULL) {
      sort_write_counts(s * kernel->length, rows, kernel->kept, size, to, step);
      continue;
    }
    switch (size) {
#define WRITE(bytes, T)                                                          \
  case bytes:                                                                    \
    for (int64_t i = 0; i < kernel->kept; ++i) {                                 \
      *(T *)(void *)(to + i * step) = ((const T *)(const void *)dense)[rows[i]]; \
    }                                                                            \
    break;
      WRITE(1, uint8_t)
      WRITE(2, uint16_t)
      WRITE(4, uint32_t)
      WRITE(8, uint64_t)
#undef WRITE
      default:
        for (int64_t i = 0; i < kernel->kept; ++i) {
          memcpy(to + i * step, dense + rows[i] * size, size);
        }
    }
  }
}

// Keeps only the first rows of each slice in an order of all rows.
static void sort_keep_first(const sort_t *kernel, int64_t count, uint32_t *order) {
  for (int64_t s = 1; s < count && kernel->kept < kernel->length; ++s) {
    memmove(order + s * kernel->kept, order + s * kernel->length,
            (size_t)kernel->kept * sizeof(*order));
  }
}

static void sort_group(const sort_t *kernel, const mp_kernel_call_t *call, int64_t begin,
                       int64_t count) {
  char *scratch = call->scratch;
  const void **data = call->scratch;
  uint32_t *order = (uint32_t *)(void *)(scratch + kernel->order_offset);
  char *copy = scratch + kernel->copies_offset;
  for (uint32_t k = 0; k < kernel->num_operands; ++k) {
    const char *array = call->operands[k];
    if (kernel->is_count[k]) {
      data[k] = NULL;
      continue;
    }
    if (kernel->inner == 1) {
      data[k] = array + (size_t)(begin * kernel->length) * kernel->sizes[k];
      continue;
    }
    sort_copy_slices(kernel, k, begin, count, copy, array);
    data[k] = copy;
    copy += mp_round_up_64((size_t)(kernel->group * kernel->length) * kernel->sizes[k]);
  }
  mp_sort_rows_t rows = {.num_slices = count,
                         .length = kernel->length,
                         .kept = kernel->kept,
                         .num_operands = kernel->num_operands,
                         .data = data,
                         .sizes = kernel->sizes,
                         .captures = call->operands + kernel->num_operands};
  void *rest = scratch + kernel->ways_offset;
  if (!kernel->has_key || !mp_sort_by_key(&kernel->key, &rows, order, rest)) {
    mp_sort_by_merging(kernel->comparator, &rows, order, rest);
    sort_keep_first(kernel, count, order);
  }
  for (uint32_t k = 0; k < kernel->num_operands; ++k) {
    sort_write_sorted(kernel, call, k, begin, count, order);
  }
}

static mp_status_t sort_run(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  const sort_t *kernel = (const sort_t *)base;
  int64_t begin, end;
  if (kernel->kept == 0) return NULL;
  mp_part_range(kernel->num_slices, base->num_parts, call->part, &begin, &end);
  for (; begin < end; begin += kernel->group) {
    sort_group(kernel, call, begin, mp_min_i64(end - begin, kernel->group));
  }
  return NULL;
}

static void sort_lay_out_scratch(sort_t *kernel) {
  const bool may_merge = !kernel->has_key || !mp_sort_key_is_total(&kernel->key);
  int64_t rows = kernel->group * kernel->length;
  size_t offset = mp_round_up_64(kernel->num_operands * sizeof(void *));
  kernel->copies_offset = offset;
  for (uint32_t k = 0; k < kernel->num_operands && kernel->inner != 1; ++k) {
    if (!kernel->is_count[k]) offset += mp_round_up_64((size_t)rows * kernel->sizes[k]);
  }
  kernel->order_offset = offset;
  const int64_t ordered = may_merge ? rows : kernel->group * kernel->kept;
  offset += mp_round_up_64((size_t)ordered * sizeof(uint32_t));
  kernel->ways_offset = offset;
  size_t merge = 0, key = 0;
  if (may_merge) merge = mp_sort_merge_scratch(kernel->comparator, kernel->num_operands, rows);
  if (kernel->has_key) {
    key = mp_sort_key_scratch(&kernel->key, kernel->num_operands, kernel->length, kernel->kept);
  }
  kernel->base.scratch_bytes = offset + (key > merge ? key : merge);
}

// Whether an op in the block, or in a region of one, uses the value.
static bool sort_block_uses(const mp_block_t *block, const mp_value_t *value) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      if (op->operands[i] == value) return true;
    }
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      if (sort_block_uses(op->regions[r], value)) return true;
    }
  }
  return false;
}

static int64_t sort_dimension(const mp_op_t *op) {
  const int64_t dimension = mp_op_int(op, MP_ATTR_DIMENSION, -1);
  return dimension < 0 ? dimension + mp_op_operand_type(op, 0)->rank : dimension;
}

bool mp_kernel_sort_counts(const mp_op_t *op, uint32_t operand) {
  const mp_op_t *maker = op->operands[operand]->op;
  if (operand == 0 || maker == NULL || maker->code != MP_OP_IOTA) return false;
  const mp_dtype_t dtype = maker->results[0].type->dtype;
  if (!mp_dtype_is_integer(dtype) || mp_dtype_bits(dtype) < 8) return false;
  if (mp_op_int(maker, MP_ATTR_IOTA_DIMENSION, -1) != sort_dimension(op)) return false;
  const mp_block_t *block = op->regions[0];
  return !sort_block_uses(block, &block->args[2 * operand]) &&
         !sort_block_uses(block, &block->args[2 * operand + 1]);
}

mp_status_t mp_kernel_make_sort(mp_arena_t *arena, const mp_op_t *op,
                                const mp_kernel_t **out_kernel) {
  sort_t *kernel = MP_ARENA_NEW(arena, sort_t);
  MP_RETURN_IF_NULL(kernel);
  kernel->sizes = MP_ARENA_ARRAY(arena, size_t, op->num_operands + 1);
  kernel->is_count = MP_ARENA_ARRAY(arena, bool, op->num_operands + 1);
  if (kernel->sizes == NULL || kernel->is_count == NULL) return mp_status_out_of_memory();
  mp_kernel_init(&kernel->base, sort_run, op);
  const mp_type_t *type = mp_op_operand_type(op, 0);
  const int64_t dimension = sort_dimension(op);
  if (dimension < 0 || dimension >= type->rank) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "the dimension is not one of the operands'");
  }
  MP_RETURN_IF_ERROR(mp_region_fn_create(arena, op->regions[0], &kernel->comparator));
  MP_RETURN_IF_ERROR(mp_sort_key_create(arena, op->regions[0], &kernel->key, &kernel->has_key));
  kernel->num_operands = op->num_operands;
  for (uint32_t k = 0; k < op->num_operands; ++k) {
    kernel->sizes[k] = mp_dtype_size(mp_op_operand_type(op, k)->dtype);
    kernel->is_count[k] = mp_kernel_sort_counts(op, k);
  }
  kernel->length = type->dims[dimension];
  kernel->kept = mp_op_result_type(op, 0)->dims[dimension];
  kernel->inner = mp_dims_product(type->dims, (uint32_t)dimension + 1, type->rank);
  kernel->num_slices = mp_dims_product(type->dims, 0, (uint32_t)dimension) * kernel->inner;
  kernel->group = mp_max_i64(1, GROUP_ROWS / mp_max_i64(kernel->length, 1));
  if (kernel->group * kernel->length > UINT32_MAX) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "more than 2^32 elements along one dimension");
  }
  int64_t grain = mp_max_i64(1, GRAIN / mp_max_i64(kernel->length, 1));
  kernel->base.num_parts = mp_part_count(kernel->num_slices, grain);
  sort_lay_out_scratch(kernel);
  *out_kernel = &kernel->base;
  return NULL;
}
