#include "sim/kernels/fused/tile/view.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/shape.h"

// ---- What a value is a view of ----

static void view_whole(const mp_type_t *type, mp_view_t *out_view) {
  *out_view = (mp_view_t){.rank = type->rank};
  int64_t strides[MP_MAX_RANK];
  mp_dims_strides(type->dims, type->rank, 1, strides);
  for (uint32_t d = 0; d < type->rank; ++d) {
    out_view->dims[d].extent = type->dims[d];
    out_view->dims[d].stride = strides[d];
  }
}

static void view_of_iota(const mp_op_t *op, mp_view_t *view) {
  const int64_t dim = mp_op_int(op, MP_ATTR_IOTA_DIMENSION, 0);
  for (uint32_t d = 0; d < view->rank; ++d) view->dims[d].stride = d == (uint32_t)dim;
}

static void view_broadcast(const mp_op_t *op, mp_view_t *view) {
  const mp_type_t *type = mp_op_result_type(op, 0);
  const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_BROADCAST_DIMENSIONS);
  mp_view_t result = {.rank = type->rank, .offset = view->offset};
  for (uint32_t d = 0; d < type->rank; ++d) result.dims[d].extent = type->dims[d];
  for (uint32_t k = 0; k < dims.count; ++k) {
    const bool repeats = view->dims[k].extent == 1;
    result.dims[dims.values[k]].stride = repeats ? 0 : view->dims[k].stride;
  }
  *view = result;
}

static void view_transpose(const mp_op_t *op, mp_view_t *view) {
  const mp_index_list_t order = mp_op_ints(op, MP_ATTR_PERMUTATION);
  mp_view_t result = {.rank = view->rank, .offset = view->offset};
  for (uint32_t d = 0; d < view->rank; ++d) {
    result.dims[d].extent = view->dims[order.values[d]].extent;
    result.dims[d].stride = view->dims[order.values[d]].stride;
  }
  *view = result;
}

static void view_slice(const mp_op_t *op, mp_view_t *view) {
  const mp_type_t *type = mp_op_result_type(op, 0);
  const mp_index_list_t starts = mp_op_ints(op, MP_ATTR_START_INDICES);
  const mp_index_list_t steps = mp_op_ints(op, MP_ATTR_STRIDES);
  for (uint32_t d = 0; d < view->rank; ++d) {
    view->offset += starts.values[d] * view->dims[d].stride;
    view->dims[d].stride = type->dims[d] == 1 ? 0 : view->dims[d].stride * steps.values[d];
    view->dims[d].extent = type->dims[d];
  }
}

static void view_reverse(const mp_op_t *op, mp_view_t *view) {
  const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_DIMENSIONS);
  for (uint32_t i = 0; i < dims.count; ++i) {
    const int64_t d = dims.values[i];
    view->offset += (view->dims[d].extent - 1) * view->dims[d].stride;
    view->dims[d].stride = -view->dims[d].stride;
  }
}

// Drops dimensions of one element, and makes one dimension of neighbours that have a common stride.
static void view_collapse(mp_view_t *view) {
  uint32_t rank = 0;
  for (uint32_t d = 0; d < view->rank; ++d) {
    const int64_t extent = view->dims[d].extent, stride = view->dims[d].stride;
    if (extent == 1) continue;
    if (rank > 0 && view->dims[rank - 1].stride == stride * extent) {
      view->dims[rank - 1].extent *= extent;
      view->dims[rank - 1].stride = stride;
      continue;
    }
    view->dims[rank].extent = extent;
    view->dims[rank].stride = stride;
    ++rank;
  }
  view->rank = rank;
}

// Gives a collapsed view the dimensions of `type`. False if they cut it where its strides change:
// the dimensions of the type must be divisions of the view's.
static bool view_reshape(const mp_type_t *type, mp_view_t *view) {
  mp_view_t result = {.rank = type->rank, .offset = view->offset};
  for (uint32_t d = 0; d < type->rank; ++d) result.dims[d].extent = type->dims[d];
  uint32_t from = view->rank;
  int64_t left = 1, stride = 0;  // what is left of the dimension `from`, and its next stride
  for (uint32_t d = type->rank; d-- > 0;) {
    if (type->dims[d] == 1) continue;
    if (left == 1) {
      if (from == 0) return false;
      left = view->dims[--from].extent;
      stride = view->dims[from].stride;
    }
    if (type->dims[d] == 0 || left % type->dims[d] != 0) return false;
    result.dims[d].stride = stride;
    stride *= type->dims[d];
    left /= type->dims[d];
  }
  *view = result;
  return left == 1 && from == 0;
}

// Applies an op to the view of its operand. False if the result is no view.
static bool view_apply(const mp_op_t *op, mp_view_t *view) {
  switch (op->code) {
    case MP_OP_BROADCAST_IN_DIM:
      view_broadcast(op, view);
      return true;
    case MP_OP_TRANSPOSE:
      view_transpose(op, view);
      return true;
    case MP_OP_SLICE:
      view_slice(op, view);
      return true;
    case MP_OP_REVERSE:
      view_reverse(op, view);
      return true;
    case MP_OP_RESHAPE:
      view_collapse(view);
      return view_reshape(mp_op_result_type(op, 0), view);
    default:
      return false;
  }
}

bool mp_view_looks_through(const mp_op_t *op) {
  switch (op->code) {
    case MP_OP_BROADCAST_IN_DIM:
    case MP_OP_TRANSPOSE:
    case MP_OP_SLICE:
    case MP_OP_REVERSE:
    case MP_OP_RESHAPE:
      return true;
    default:
      return false;
  }
}

void mp_view_of(const mp_value_t *value, uint32_t max_ops, mp_view_t *out_view,
                const mp_value_t **out_base) {
  const mp_op_t *chain[MP_VIEW_MAX_OPS];
  uint32_t count = 0;
  const mp_value_t *base = value;
  MP_ASSERT(max_ops <= MP_VIEW_MAX_OPS);
  while (count < max_ops && base->op != NULL && mp_view_looks_through(base->op)) {
    chain[count++] = base->op;
    base = base->op->operands[0];
  }
  mp_view_t view;
  view_whole(base->type, &view);
  if (base->op != NULL && base->op->code == MP_OP_IOTA) view_of_iota(base->op, &view);
  while (count > 0) {
    const mp_op_t *op = chain[--count];
    if (!view_apply(op, &view)) {
      base = &op->results[0];
      view_whole(base->type, &view);
    }
  }
  view_collapse(&view);
  *out_view = view;
  *out_base = base;
}

bool mp_view_is_whole(const mp_view_t *view, int64_t count) {
  if (view->offset != 0) return false;
  if (view->rank == 0) return count == 1;
  return view->rank == 1 && view->dims[0].stride == 1 && view->dims[0].extent == count;
}

bool mp_view_is_one(const mp_view_t *view) {
  for (uint32_t d = 0; d < view->rank; ++d) {
    if (view->dims[d].stride != 0) return false;
  }
  return true;
}

bool mp_view_is_spread(const mp_view_t *view, int64_t count, int64_t row) {
  if (view->offset != 0 || row < 2) return false;
  if (count == row) return mp_view_is_one(view);
  return view->rank == 2 && view->dims[0].extent == count / row && view->dims[1].extent == row &&
         view->dims[0].stride == 1 && view->dims[1].stride == 0;
}

bool mp_view_transposes(const mp_view_t *view) {
  if (view->rank < 2) return false;
  const int64_t stride = view->dims[view->rank - 1].stride;
  return stride != 0 && stride != 1 && view->dims[view->rank - 2].stride == 1;
}
