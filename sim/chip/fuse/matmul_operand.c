#include "sim/chip/fuse/matmul_operand.h"

#include "sim/base/assert.h"

uint64_t mp_matmul_dims(mp_index_list_t dims) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < dims.count; ++i) bits |= (uint64_t)1 << (dims.values[i] & 63);
  return bits;
}

// Maps dimensions of a transpose's result to those of its operand.
static uint64_t matmul_operand_before(uint64_t bits, mp_index_list_t order) {
  uint64_t before = 0;
  for (uint32_t i = 0; i < order.count; ++i) {
    if (bits >> (i & 63) & 1) before |= (uint64_t)1 << (order.values[i] & 63);
  }
  return before;
}

mp_matmul_operand_t mp_matmul_operand(const mp_op_t *op, uint32_t operand) {
  static const mp_attr_name_t batches[] = {MP_ATTR_LHS_BATCHING_DIMENSIONS,
                                           MP_ATTR_RHS_BATCHING_DIMENSIONS};
  static const mp_attr_name_t summed[] = {MP_ATTR_LHS_CONTRACTING_DIMENSIONS,
                                          MP_ATTR_RHS_CONTRACTING_DIMENSIONS};
  mp_matmul_operand_t of = {op->operands[operand], mp_matmul_dims(mp_op_ints(op, batches[operand])),
                            mp_matmul_dims(mp_op_ints(op, summed[operand]))};
  while (of.value->op != NULL && of.value->op->code == MP_OP_TRANSPOSE) {
    const mp_index_list_t order = mp_op_ints(of.value->op, MP_ATTR_PERMUTATION);
    of = (mp_matmul_operand_t){of.value->op->operands[0], matmul_operand_before(of.batch, order),
                               matmul_operand_before(of.summed, order)};
  }
  MP_ASSERT((of.batch & of.summed) == 0);
  return of;
}

// ---- layouts ----

enum { MATMUL_OPERAND_DIMS_MOST = 64 };

// The dimensions with more than one element: their sizes, strides and numbers.
typedef struct {
  uint32_t count;
  int64_t sizes[MATMUL_OPERAND_DIMS_MOST], strides[MATMUL_OPERAND_DIMS_MOST];
  uint32_t dims[MATMUL_OPERAND_DIMS_MOST];
} matmul_operand_layout_t;

// The layout of a transpose's result, outermost dimension first, if no element moves.
static matmul_operand_layout_t matmul_operand_left(const mp_op_t *transpose) {
  matmul_operand_layout_t layout = {0};
  const mp_type_t *from = transpose->operands[0]->type;
  const mp_index_list_t order = mp_op_ints(transpose, MP_ATTR_PERMUTATION);
  for (uint32_t i = 0; i < order.count; ++i) {
    int64_t stride = 1;
    for (uint32_t d = (uint32_t)order.values[i] + 1; d < from->rank; ++d) stride *= from->dims[d];
    if (from->dims[order.values[i]] == 1) continue;
    layout.sizes[layout.count] = from->dims[order.values[i]];
    MP_ASSERT(layout.count < MATMUL_OPERAND_DIMS_MOST);
    layout.strides[layout.count++] = stride;
  }
  return layout;
}

// The layout after a reshape; false: a dimension has no single stride.
static bool matmul_operand_reshape(const matmul_operand_layout_t *layout, const mp_type_t *to,
                                   matmul_operand_layout_t *out) {
  uint32_t at = 0, dim = 0;
  *out = (matmul_operand_layout_t){0};
  while (at < layout->count && dim < to->rank) {
    // The smallest groups of dimensions on both sides with the same number of elements.
    const uint32_t first = at, first_dim = dim;
    int64_t from = layout->sizes[at++], size = to->dims[dim++];
    while (from != size) {
      if (size < from && dim < to->rank) {
        size *= to->dims[dim++];
      } else if (from < size && at < layout->count) {
        from *= layout->sizes[at++];
      } else {
        return false;
      }
    }
    for (uint32_t i = first; i + 1 < at; ++i) {
      if (layout->strides[i] != layout->sizes[i + 1] * layout->strides[i + 1]) return false;
    }
    int64_t stride = layout->strides[at - 1] * size;
    for (uint32_t d = first_dim; d < dim; ++d) {
      if (to->dims[d] == 1) continue;
      stride /= to->dims[d];
      out->dims[out->count] = d;
      out->strides[out->count++] = stride;
    }
  }
  return true;
}

// Sorts the dimensions from the outermost to the innermost.
static void matmul_operand_sort(matmul_operand_layout_t *layout) {
  for (uint32_t i = 1; i < layout->count; ++i) {
    for (uint32_t j = i; j > 0 && layout->strides[j] > layout->strides[j - 1]; --j) {
      const int64_t stride = layout->strides[j];
      const uint32_t dim = layout->dims[j];
      layout->strides[j] = layout->strides[j - 1], layout->dims[j] = layout->dims[j - 1];
      layout->strides[j - 1] = stride, layout->dims[j - 1] = dim;
    }
  }
}

// Whether the dimensions, outermost first, are the batch, then the contracted and the other
// dimensions, each of these together.
static bool matmul_operand_is_contiguous(const mp_matmul_operand_t *of, const uint32_t *dims,
                                         uint32_t count) {
  bool is_inside = false, was_summed = false;
  uint32_t num_changes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t d = dims[i];
    const bool is_batch = of->batch >> (d & 63) & 1, is_summed = of->summed >> (d & 63) & 1;
    if (is_batch && is_inside) return false;
    if (is_batch) continue;
    num_changes += is_inside && is_summed != was_summed;
    is_inside = true;
    was_summed = is_summed;
  }
  return num_changes < 2;
}

bool mp_matmul_is_contiguous(const mp_matmul_operand_t *of) {
  const mp_type_t *type = of->value->type;
  uint32_t dims[MATMUL_OPERAND_DIMS_MOST], count = 0;
  if (type->rank > MATMUL_OPERAND_DIMS_MOST) return true;
  for (uint32_t d = 0; d < type->rank; ++d) {
    if (type->dims[d] != 1) dims[count++] = d;
  }
  return matmul_operand_is_contiguous(of, dims, count);
}

bool mp_matmul_stays_contiguous(const mp_matmul_operand_t *of, const mp_op_t *transpose) {
  const mp_type_t *to = of->value->type;
  if (to->rank > MATMUL_OPERAND_DIMS_MOST ||
      transpose->results[0].type->rank > MATMUL_OPERAND_DIMS_MOST) {
    return true;
  }
  const matmul_operand_layout_t left = matmul_operand_left(transpose);
  matmul_operand_layout_t layout;
  if (!matmul_operand_reshape(&left, to, &layout)) return false;
  matmul_operand_sort(&layout);
  return matmul_operand_is_contiguous(of, layout.dims, layout.count);
}
