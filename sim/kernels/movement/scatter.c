// stablehlo.scatter: windows of the updates are combined into the operands at given positions, one
// position after the other in the order of the indices, so that the result is the same every time.
//
// A window that is not completely inside of the operand is skipped as a whole, as XLA does and
// JAX's rules of differentiation expect.
#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/vector.h"
#include "sim/kernels/movement/movement_makers.h"
#include "sim/kernels/movement/scatter.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"

// ---- Running ----

// Combines n <= MP_REGION_MAX_LANES elements; offsets are in elements.
static void scatter_combine(const mp_scatter_part_t *part, int64_t n, int64_t operand_offset,
                            int64_t update_offset) {
  MP_ASSERT(n > 0 && n <= MP_REGION_MAX_LANES && operand_offset >= 0 && update_offset >= 0);
  const mp_scatter_t *kernel = part->kernel;
  uint32_t num = kernel->num_operands;
  const mp_scatter_window_t *run = &kernel->run;
  bool dense = n == 1 || (run->operand_stride == 1 && run->update_stride == 1);
  for (uint32_t k = 0; k < num; ++k) {
    size_t size = kernel->sizes[k];
    char *operand = (char *)part->call->results[k] + operand_offset * (int64_t)size;
    const char *update =
        (const char *)part->call->operands[num + 1 + k] + update_offset * (int64_t)size;
    part->inputs[k] = part->outputs[k] = operand;
    part->inputs[num + k] = update;
    if (dense) continue;
    int64_t step = (int64_t)size;
    mp_copy_line(part->acc[k], step, operand, run->operand_stride * step, size, n);
    mp_copy_line(part->x[k], step, update, run->update_stride * step, size, n);
    part->inputs[k] = part->outputs[k] = part->acc[k];
    part->inputs[num + k] = part->x[k];
  }
  if (kernel->is_binary) {
    mp_ew_run(&kernel->binary, n, part->inputs, part->outputs[0]);
  } else {
    mp_region_fn_run(kernel->fn, n, part->inputs, part->call->operands + 2 * num + 1, part->outputs,
                     part->registers);
  }
  for (uint32_t k = 0; k < num && !dense; ++k) {
    int64_t step = (int64_t)kernel->sizes[k];
    mp_copy_line((char *)part->call->results[k] + operand_offset * step, run->operand_stride * step,
                 part->acc[k], step, kernel->sizes[k], n);
  }
}

// Combines a run of one element of one operand, as when single numbers are scattered.
static void scatter_do_element(const mp_scatter_part_t *part, int64_t operand_offset,
                               int64_t update_offset) {
  const mp_scatter_t *kernel = part->kernel;
  int64_t size = (int64_t)kernel->sizes[0];
  char *to = (char *)part->call->results[0] + operand_offset * size;
  const char *from = (const char *)part->call->operands[2] + update_offset * size;
  if (kernel->sets) {
    mp_scatter_copy_element((size_t)size, to, from);
  } else {
    const void *in[] = {to, from};
    mp_ew_run(&kernel->binary, 1, in, to);
  }
}

static void scatter_do_run(const mp_scatter_part_t *part, int64_t operand_offset,
                           int64_t update_offset) {
  const mp_scatter_t *kernel = part->kernel;
  const mp_scatter_window_t *run = &kernel->run;
  if (kernel->run.dim == 1 && (kernel->sets || kernel->is_binary)) {
    scatter_do_element(part, operand_offset, update_offset);
    return;
  }
  operand_offset += part->begin * run->operand_stride;
  update_offset += part->begin * run->update_stride;
  int64_t length = part->end - part->begin;
  if (kernel->sets) {
    size_t size = kernel->sizes[0];
    char *to = (char *)part->call->results[0] + operand_offset * (int64_t)size;
    const char *from = (const char *)part->call->operands[2] + update_offset * (int64_t)size;
    if (run->operand_stride == 1 && run->update_stride == 1) {
      memcpy(to, from, (size_t)length * size);
    } else {
      mp_copy_line(to, run->operand_stride * (int64_t)size, from,
                   run->update_stride * (int64_t)size, size, length);
    }
    return;
  }
  for (int64_t i = 0; i < length; i += MP_REGION_MAX_LANES) {
    scatter_combine(part, mp_min_i64(length - i, MP_REGION_MAX_LANES),
                    operand_offset + i * run->operand_stride,
                    update_offset + i * run->update_stride);
  }
}

static void scatter_do_window(const mp_scatter_part_t *part, int64_t operand_offset,
                              int64_t update_offset) {
  const mp_scatter_t *kernel = part->kernel;
  if (kernel->adds_rows) {
    mp_scatter_add_rows(part, operand_offset, update_offset);
    return;
  }
  if (kernel->num_window_dims == 0) {
    scatter_do_run(part, operand_offset, update_offset);
    return;
  }
  int64_t index[MP_MAX_RANK] = {0};
  for (int64_t r = 0; r < kernel->num_runs; ++r) {
    scatter_do_run(part, operand_offset, update_offset);
    for (uint32_t i = kernel->num_window_dims; i-- > 0;) {
      const mp_scatter_window_t *dim = &kernel->window_dims[i];
      operand_offset += dim->operand_stride;
      update_offset += dim->update_stride;
      if (++index[i] < dim->dim) break;
      operand_offset -= dim->operand_stride * dim->dim;
      update_offset -= dim->update_stride * dim->dim;
      index[i] = 0;
    }
  }
}

// The offset to which the index vector at `indices` points; false when the window would not fit.
static bool scatter_find_start(const mp_scatter_t *kernel, const char *indices,
                               int64_t *out_offset) {
  size_t size = mp_dtype_size(kernel->index_dtype);
  int64_t offset = 0;
  for (uint32_t i = 0; i < kernel->num_components; ++i) {
    int64_t start = mp_load_index(kernel->index_dtype, indices);
    if (start < 0 || start > kernel->components[i].limit) return false;
    offset += start * kernel->components[i].stride;
    indices += kernel->component_stride * (int64_t)size;
  }
  *out_offset = offset;
  return true;
}

enum { AHEAD = 8 };  // positions that are prefetched ahead

// Prefetches the memory of the first operand where a window begins: positions are scattered, so
// each access would wait for memory.
static void scatter_fetch(const mp_scatter_part_t *part, int64_t offset) {
  enum { MOST = 1024 };
  const mp_scatter_t *kernel = part->kernel;
  const int64_t size = (int64_t)kernel->sizes[0], step = kernel->run.operand_stride * size;
  const int64_t bytes = step == size ? mp_min_i64((part->end - part->begin) * size, MOST) : 1;
  mp_prefetch(part->call->results[0], offset * size + part->begin * step, bytes);
}

static void scatter_do_list(const mp_scatter_part_t *part) {
  const mp_scatter_t *kernel = part->kernel;
  for (int64_t p = 0, n; p < kernel->num_positions; p += n) {
    n = mp_min_i64(kernel->num_positions - p, MP_REGION_MAX_LANES);
    const int64_t count = mp_scatter_choose(part, p, n);
    for (int64_t i = 0; i < count; ++i) {
      if (i + AHEAD < count) scatter_fetch(part, part->offsets[part->chosen[i + AHEAD]]);
      scatter_do_window(part, part->offsets[part->chosen[i]],
                        (p + part->chosen[i]) * kernel->update_step);
    }
  }
}

static void scatter_do_positions(const mp_scatter_part_t *part) {
  const mp_scatter_t *kernel = part->kernel;
  size_t index_size = mp_dtype_size(kernel->index_dtype);
  const char *indices = part->call->operands[kernel->num_operands];
  int64_t position[MP_MAX_RANK] = {0}, at = 0, update = 0, batch = 0;
  const mp_scatter_position_t none = {.dim = 0}, *last = &none;
  uint32_t inner = 0;
  if (kernel->num_position_dims > 0) {
    inner = kernel->num_position_dims - 1;
    last = &kernel->position_dims[inner];
  }
  for (int64_t p = 0; p < kernel->num_positions; ++p) {
    int64_t start = 0;
    const char *next = indices + (at + AHEAD * last->index_stride) * (int64_t)index_size;
    if (position[inner] + AHEAD < last->dim && scatter_find_start(kernel, next, &start)) {
      scatter_fetch(part, start + batch + AHEAD * last->batch_stride);
    }
    if (scatter_find_start(kernel, indices + at * (int64_t)index_size, &start)) {
      scatter_do_window(part, start + batch, update);
    }
    for (uint32_t i = kernel->num_position_dims; i-- > 0;) {
      const mp_scatter_position_t *dim = &kernel->position_dims[i];
      at += dim->index_stride;
      update += dim->update_stride;
      batch += dim->batch_stride;
      if (++position[i] < dim->dim) break;
      at -= dim->index_stride * dim->dim;
      update -= dim->update_stride * dim->dim;
      batch -= dim->batch_stride * dim->dim;
      position[i] = 0;
    }
  }
}

// Copies this part of the operands to the results, which begin as copies of these.
static void scatter_copy_operands(const mp_scatter_part_t *part) {
  const mp_scatter_t *kernel = part->kernel;
  for (uint32_t k = 0; k < kernel->num_operands; ++k) {
    const char *from = part->call->operands[k];
    char *to = part->call->results[k];
    if (from == to || kernel->counts[k] == 0) continue;
    int64_t size = (int64_t)kernel->sizes[k], row = kernel->run.dim * size;
    if (!kernel->splits_columns) {
      memcpy(to + part->low * size, from + part->low * size,
             (size_t)((part->high - part->low) * size));
      continue;
    }
    for (int64_t i = part->begin * size; i < kernel->counts[k]; i += row) {
      memcpy(to + i, from + i, (size_t)((part->end - part->begin) * size));
    }
  }
}

static size_t scatter_arrays_bytes(uint32_t num_operands) {
  return (size_t)num_operands * 2 * MP_REGION_MAX_LANES * 16;
}

// Offsets, and which of them are chosen, by vectors of up to 64 bytes.
enum { SCATTER_LIST_BYTES = MP_REGION_MAX_LANES * (sizeof(int64_t) + sizeof(uint32_t)) + 64 };

static mp_status_t scatter_run(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  const mp_scatter_t *kernel = (const mp_scatter_t *)base;
  uint32_t num = kernel->num_operands;
  char *arrays = call->scratch;
  void **pointers = (void **)(void *)(arrays + scatter_arrays_bytes(num));
  mp_scatter_part_t part = {.kernel = kernel, .call = call, .end = kernel->run.dim};
  part.acc = (char **)pointers;
  part.x = (char **)pointers + num;
  part.inputs = (const void **)pointers + 2 * num;
  part.outputs = pointers + 4 * num;
  arrays += scatter_arrays_bytes(num) + mp_round_up_64(5 * num * sizeof(void *));
  part.offsets = (int64_t *)(void *)arrays;
  part.chosen = (uint32_t *)(void *)(part.offsets + MP_REGION_MAX_LANES);
  part.registers = arrays + SCATTER_LIST_BYTES;
  for (uint32_t k = 0; k < num; ++k) {
    part.acc[k] = (char *)call->scratch + (size_t)(2 * k) * MP_REGION_MAX_LANES * 16;
    part.x[k] = (char *)call->scratch + (size_t)(2 * k + 1) * MP_REGION_MAX_LANES * 16;
  }
  part.high = kernel->num_slices * kernel->slice;
  if (kernel->splits_columns) {
    mp_part_range(kernel->run.dim, base->num_parts, call->part, &part.begin, &part.end);
  } else {
    mp_part_range(kernel->num_slices, base->num_parts, call->part, &part.low, &part.high);
    part.low *= kernel->slice;
    part.high *= kernel->slice;
  }
  scatter_copy_operands(&part);
  if (kernel->is_elements) {
    mp_scatter_do_elements(&part);
  } else if (kernel->run.dim > 0 && kernel->num_runs > 0) {
    (kernel->is_list ? scatter_do_list : scatter_do_positions)(&part);
  }
  return NULL;
}

// ---- Making ----

static void scatter_set_positions(mp_scatter_t *kernel, const mp_op_t *op) {
  const mp_type_t *operand = mp_op_operand_type(op, 0);
  const mp_type_t *indices = mp_op_operand_type(op, kernel->num_operands);
  const mp_type_t *updates = mp_op_operand_type(op, kernel->num_operands + 1);
  mp_index_list_t window = mp_op_ints(op, MP_ATTR_UPDATE_WINDOW_DIMS);
  mp_index_list_t operand_batch = mp_op_ints(op, MP_ATTR_INPUT_BATCHING_DIMS);
  mp_index_list_t index_batch = mp_op_ints(op, MP_ATTR_SCATTER_INDICES_BATCHING_DIMS);
  int64_t vector_dim = mp_op_int(op, MP_ATTR_INDEX_VECTOR_DIM, indices->rank);
  int64_t operand_strides[MP_MAX_RANK], index_strides[MP_MAX_RANK], update_strides[MP_MAX_RANK];
  mp_dims_strides(operand->dims, operand->rank, 1, operand_strides);
  mp_dims_strides(indices->dims, indices->rank, 1, index_strides);
  mp_dims_strides(updates->dims, updates->rank, 1, update_strides);
  kernel->num_positions = 1;
  uint32_t d = 0;  // the dimension of the indices that belongs to the next one of the updates
  for (uint32_t i = 0; i < updates->rank; ++i) {
    if (mp_index_list_has(window, i)) continue;
    if (d == (uint64_t)vector_dim) ++d;
    mp_scatter_position_t *dim = &kernel->position_dims[kernel->num_position_dims++];
    *dim = (mp_scatter_position_t){updates->dims[i], index_strides[d], update_strides[i], 0};
    for (uint32_t b = 0; b < index_batch.count && b < operand_batch.count; ++b) {
      if (index_batch.values[b] == d) dim->batch_stride = operand_strides[operand_batch.values[b]];
    }
    kernel->num_positions *= dim->dim;
    ++d;
  }
  kernel->component_stride = vector_dim < indices->rank ? index_strides[vector_dim] : 0;
}

// Finds the window's extent along every dimension of the operand. Dimensions of the window that are
// contiguous in both operand and updates become one.
static void scatter_set_window(mp_scatter_t *kernel, const mp_op_t *op, int64_t *out_extents) {
  const mp_type_t *operand = mp_op_operand_type(op, 0);
  const mp_type_t *updates = mp_op_operand_type(op, kernel->num_operands + 1);
  mp_index_list_t window = mp_op_ints(op, MP_ATTR_UPDATE_WINDOW_DIMS);
  mp_index_list_t inserted = mp_op_ints(op, MP_ATTR_INSERTED_WINDOW_DIMS);
  mp_index_list_t batch = mp_op_ints(op, MP_ATTR_INPUT_BATCHING_DIMS);
  int64_t operand_strides[MP_MAX_RANK], update_strides[MP_MAX_RANK];
  mp_dims_strides(operand->dims, operand->rank, 1, operand_strides);
  mp_dims_strides(updates->dims, updates->rank, 1, update_strides);
  uint32_t w = 0, rank = 0;
  mp_scatter_window_t *dims = kernel->window_dims;
  for (uint32_t i = 0; i < operand->rank; ++i) {
    out_extents[i] = 1;
    if (mp_index_list_has(inserted, i) || mp_index_list_has(batch, i)) continue;
    int64_t update_dim = window.values[w++];
    mp_scatter_window_t dim = {updates->dims[update_dim], operand_strides[i],
                               update_strides[update_dim]};
    out_extents[i] = dim.dim;
    if (dim.dim == 1) continue;
    if (rank > 0 && dims[rank - 1].operand_stride == dim.operand_stride * dim.dim &&
        dims[rank - 1].update_stride == dim.update_stride * dim.dim) {
      dim.dim *= dims[--rank].dim;
    }
    dims[rank++] = dim;
  }
  kernel->run = rank > 0 ? dims[--rank] : (mp_scatter_window_t){1, 1, 1};
  kernel->num_window_dims = rank;
  kernel->num_runs = 1;
  for (uint32_t i = 0; i < rank; ++i) kernel->num_runs *= dims[i].dim;
}

static void scatter_set_components(mp_scatter_t *kernel, const mp_op_t *op,
                                   const int64_t *extents) {
  const mp_type_t *operand = mp_op_operand_type(op, 0);
  mp_index_list_t dims = mp_op_ints(op, MP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS);
  int64_t strides[MP_MAX_RANK];
  mp_dims_strides(operand->dims, operand->rank, 1, strides);
  kernel->num_components = dims.count;
  for (uint32_t i = 0; i < dims.count; ++i) {
    int64_t d = dims.values[i];
    kernel->components[i] = (mp_scatter_component_t){strides[d], operand->dims[d] - extents[d]};
  }
}

// Whether runs are whole rows of the operand, seen as a matrix; each part can then take some
// columns.
static bool scatter_can_split_columns(const mp_scatter_t *kernel, const mp_type_t *operand) {
  int64_t row = 1;
  for (uint32_t i = operand->rank; i-- > 0 && row < kernel->run.dim;) row *= operand->dims[i];
  return kernel->run.operand_stride == 1 && row == kernel->run.dim && row >= 256;
}

static mp_status_t scatter_set_region(mp_scatter_t *kernel, mp_arena_t *arena, const mp_op_t *op) {
  const mp_block_t *region = op->regions[0];
  uint32_t num = kernel->num_operands;
  for (uint32_t i = 0; i < 2 * num && i < region->num_args; ++i) {
    mp_dtype_t dtype = mp_op_operand_type(op, i < num ? i : i + 1)->dtype;
    if (region->args[i].type->dtype != dtype) {
      return mp_op_error(op, MP_UNIMPLEMENTED, "the region computes in %s, the operand is %s",
                         mp_dtype_name(region->args[i].type->dtype), mp_dtype_name(dtype));
    }
  }
  MP_RETURN_IF_ERROR(mp_region_fn_create(arena, region, &kernel->fn));
  mp_reduce_kind_t kind = mp_region_fn_kind(kernel->fn);
  kernel->sets = kind == MP_REDUCE_SECOND;
  if (kind != MP_REDUCE_SECOND && kind != MP_REDUCE_CUSTOM) {
    kernel->is_binary = mp_ew_bind_binary(mp_reduce_kind_opcode(kind), region->args[0].type->dtype,
                                          &kernel->binary);
  }
  return NULL;
}

enum {
  GRAIN = 64 * 1024,
  // Each range checks all positions, which takes little time compared to windows of so many
  // elements.
  FEW_RANGES = 4,
  MANY_RANGES = 8,
  LARGE_WINDOW = 32,
};

// The number of ranges of the operands' first dimension that are worth a part. No window may lie in
// two of them. Only the updates count. If there is one part, a separate command copies a large
// operand that is not updated in place (begins_as); and loops only run kernels of one part.
static uint32_t scatter_num_ranges(mp_scatter_t *kernel, const mp_type_t *operand,
                                   const int64_t *extents) {
  uint32_t d = 0;
  while (d + 1 < operand->rank && operand->dims[d] == 1) ++d;
  const int64_t count = mp_shape_count(operand), window = kernel->num_runs * kernel->run.dim;
  kernel->num_slices = operand->rank == 0 ? 1 : operand->dims[d];
  kernel->slice = kernel->num_slices == 0 ? 0 : count / kernel->num_slices;
  if (operand->rank == 0 || extents[d] != 1 || count == 0 || !kernel->is_list) return 1;
  const int64_t most =
      mp_min_i64(window < LARGE_WINDOW ? FEW_RANGES : MANY_RANGES, kernel->num_slices);
  const uint32_t parts = mp_part_count(kernel->num_positions * window, GRAIN);
  return (uint32_t)mp_min_i64(parts, most);
}

mp_status_t mp_kernel_make_scatter(mp_arena_t *arena, const mp_op_t *op,
                                   const mp_kernel_t **out_kernel) {
  mp_scatter_t *kernel = MP_ARENA_NEW(arena, mp_scatter_t);
  uint32_t num = (op->num_operands - 1) / 2;
  size_t *sizes = MP_ARENA_ARRAY(arena, size_t, num + 1);
  int64_t *counts = MP_ARENA_ARRAY(arena, int64_t, num + 1);
  if (kernel == NULL || sizes == NULL || counts == NULL) return mp_status_out_of_memory();
  mp_kernel_init(&kernel->base, scatter_run, op);
  kernel->num_operands = num;
  kernel->index_dtype = mp_op_operand_type(op, num)->dtype;
  kernel->sizes = sizes;
  kernel->counts = counts;
  for (uint32_t k = 0; k < num; ++k) {
    sizes[k] = mp_dtype_size(mp_op_operand_type(op, k)->dtype);
    counts[k] = mp_shape_bytes(mp_op_operand_type(op, k));
  }
  MP_RETURN_IF_ERROR(scatter_set_region(kernel, arena, op));
  int64_t extents[MP_MAX_RANK];
  scatter_set_positions(kernel, op);
  scatter_set_window(kernel, op, extents);
  scatter_set_components(kernel, op, extents);
  mp_scatter_recognize_adding(kernel, op);
  mp_scatter_recognize_elements(kernel);
  const mp_type_t *operand = mp_op_operand_type(op, 0);
  if (scatter_can_split_columns(kernel, operand)) {
    int64_t work = mp_shape_count(operand) + kernel->num_positions * kernel->run.dim;
    kernel->base.num_parts =
        (uint32_t)mp_min_i64(mp_part_count(work, GRAIN), kernel->run.dim / 128);
    kernel->splits_columns = kernel->base.num_parts > 1;
  }
  const uint32_t num_ranges = scatter_num_ranges(kernel, operand, extents);
  if (!kernel->splits_columns) kernel->base.num_parts = num_ranges;
  kernel->base.in_place = 1;
  if (kernel->base.num_parts == 1 && num <= 32) kernel->base.begins_as = UINT32_MAX >> (32 - num);
  kernel->base.scratch_bytes = scatter_arrays_bytes(num) +
                               mp_round_up_64(5 * num * sizeof(void *)) + SCATTER_LIST_BYTES +
                               mp_region_fn_scratch_bytes(kernel->fn);
  *out_kernel = &kernel->base;
  return NULL;
}
