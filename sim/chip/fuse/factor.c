#include "sim/chip/fuse/factor.h"

uint64_t mp_matmul_dims(mp_index_list_t dims) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < dims.count; ++i) bits |= (uint64_t)1 << (dims.values[i] & 63);
  return bits;
}

// Those dimensions before a transpose.
static uint64_t factor_before(uint64_t bits, mp_index_list_t order) {
  uint64_t before = 0;
  for (uint32_t i = 0; i < order.count; ++i) {
    if (bits >> (i & 63) & 1) before |= (uint64_t)1 << (order.values[i] & 63);
  }
  return before;
}

mp_matmul_factor_t mp_matmul_factor(const mp_op_t *op, uint32_t operand) {
  static const mp_attr_name_t batches[] = {MP_ATTR_LHS_BATCHING_DIMENSIONS,
                                           MP_ATTR_RHS_BATCHING_DIMENSIONS};
  static const mp_attr_name_t summed[] = {MP_ATTR_LHS_CONTRACTING_DIMENSIONS,
                                          MP_ATTR_RHS_CONTRACTING_DIMENSIONS};
  mp_matmul_factor_t factor = {op->operands[operand],
                               mp_matmul_dims(mp_op_ints(op, batches[operand])),
                               mp_matmul_dims(mp_op_ints(op, summed[operand]))};
  while (factor.value->op != NULL && factor.value->op->code == MP_OP_TRANSPOSE) {
    const mp_index_list_t order = mp_op_ints(factor.value->op, MP_ATTR_PERMUTATION);
    factor = (mp_matmul_factor_t){factor.value->op->operands[0], factor_before(factor.batch, order),
                                  factor_before(factor.summed, order)};
  }
  return factor;
}

// ---- reshaped ----

enum { FACTOR_DIMS_MOST = 64 };

// Dimensions of more than one element, how far apart elements lie along each, and which they are.
typedef struct {
  uint32_t count;
  int64_t sizes[FACTOR_DIMS_MOST], strides[FACTOR_DIMS_MOST];
  uint32_t dims[FACTOR_DIMS_MOST];
} factor_lay_t;

// How the result of a transpose lies where it is left as its operand.
static factor_lay_t factor_left(const mp_op_t *transpose) {
  factor_lay_t lay = {0};
  const mp_type_t *from = transpose->operands[0]->type;
  const mp_index_list_t order = mp_op_ints(transpose, MP_ATTR_PERMUTATION);
  for (uint32_t i = 0; i < order.count; ++i) {
    int64_t stride = 1;
    for (uint32_t d = (uint32_t)order.values[i] + 1; d < from->rank; ++d) stride *= from->dims[d];
    if (from->dims[order.values[i]] == 1) continue;
    lay.sizes[lay.count] = from->dims[order.values[i]];
    lay.strides[lay.count++] = stride;
  }
  return lay;
}

// The same once it is reshaped; false: elements along a dimension are not equally far apart.
static bool factor_reshape(const factor_lay_t *lay, const mp_type_t *to, factor_lay_t *out) {
  uint32_t at = 0, dim = 0;
  *out = (factor_lay_t){0};
  while (at < lay->count && dim < to->rank) {
    // The fewest dimensions of both that have the same elements.
    const uint32_t first = at, first_dim = dim;
    int64_t from = lay->sizes[at++], size = to->dims[dim++];
    while (from != size) {
      if (size < from && dim < to->rank) {
        size *= to->dims[dim++];
      } else if (from < size && at < lay->count) {
        from *= lay->sizes[at++];
      } else {
        return false;
      }
    }
    for (uint32_t i = first; i + 1 < at; ++i) {
      if (lay->strides[i] != lay->sizes[i + 1] * lay->strides[i + 1]) return false;
    }
    int64_t stride = lay->strides[at - 1] * size;
    for (uint32_t d = first_dim; d < dim; ++d) {
      if (to->dims[d] == 1) continue;
      stride /= to->dims[d];
      out->dims[out->count] = d;
      out->strides[out->count++] = stride;
    }
  }
  return true;
}

// The dimensions from the outermost in memory to the innermost.
static void factor_sort(factor_lay_t *lay) {
  for (uint32_t i = 1; i < lay->count; ++i) {
    for (uint32_t j = i; j > 0 && lay->strides[j] > lay->strides[j - 1]; --j) {
      const int64_t stride = lay->strides[j];
      const uint32_t dim = lay->dims[j];
      lay->strides[j] = lay->strides[j - 1], lay->dims[j] = lay->dims[j - 1];
      lay->strides[j - 1] = stride, lay->dims[j - 1] = dim;
    }
  }
}

// Dimensions from the outermost to the innermost: batch, then rows and what is summed up, each of
// these together.
static bool factor_is_whole(const mp_matmul_factor_t *factor, const uint32_t *dims,
                            uint32_t count) {
  bool is_inside = false, was_summed = false;
  uint32_t num_changes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t d = dims[i];
    const bool is_batch = factor->batch >> (d & 63) & 1, is_summed = factor->summed >> (d & 63) & 1;
    if (is_batch && is_inside) return false;
    if (is_batch) continue;
    num_changes += is_inside && is_summed != was_summed;
    is_inside = true;
    was_summed = is_summed;
  }
  return num_changes < 2;
}

bool mp_matmul_is_whole(const mp_matmul_factor_t *factor) {
  const mp_type_t *type = factor->value->type;
  uint32_t dims[FACTOR_DIMS_MOST], count = 0;
  if (type->rank > FACTOR_DIMS_MOST) return true;
  for (uint32_t d = 0; d < type->rank; ++d) {
    if (type->dims[d] != 1) dims[count++] = d;
  }
  return factor_is_whole(factor, dims, count);
}

bool mp_matmul_lies_whole(const mp_matmul_factor_t *factor, const mp_op_t *transpose) {
  const mp_type_t *to = factor->value->type;
  if (to->rank > FACTOR_DIMS_MOST || transpose->results[0].type->rank > FACTOR_DIMS_MOST) {
    return true;
  }
  const factor_lay_t left = factor_left(transpose);
  factor_lay_t lay;
  if (!factor_reshape(&left, to, &lay)) return false;
  factor_sort(&lay);
  return factor_is_whole(factor, lay.dims, lay.count);
}
