// How layouts go through ops that take arrays in any layout.
#include "sim/chip/layout/tile_layout.h"

static int32_t layout_transfer_find(mp_index_list_t list, int32_t dim) {
  for (uint32_t i = 0; i < list.count; ++i) {
    if (list.values[i] == dim) return (int32_t)i;
  }
  return -1;
}

// ---- reductions ----

// The dimension of the result that a dimension of the operand becomes; -1: it is reduced.
static int32_t layout_transfer_reduced(mp_index_list_t dims, int32_t dim) {
  int32_t before = 0;
  if (dim < 0 || mp_index_list_has(dims, dim)) return -1;
  for (uint32_t i = 0; i < dims.count; ++i) before += dims.values[i] < dim;
  return dim - before;
}

static mp_tile_layout_t layout_transfer_reduce(const mp_op_t *op, mp_tile_layout_t layout) {
  const mp_type_t *type = op->results[0].type;
  const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_DIMENSIONS);
  mp_tile_layout_t out = {layout_transfer_reduced(dims, layout.lane),
                          layout_transfer_reduced(dims, layout.sublane), false};
  if (out.lane < 0) out = (mp_tile_layout_t){out.sublane, -1, false};
  if (out.lane < 0) out.lane = mp_tile_layout_other(type, -1);
  if (out.sublane < 0) out.sublane = mp_tile_layout_other(type, out.lane);
  return out;
}

// The dimension of the operand that a dimension of the result was.
static int32_t layout_transfer_unreduced(mp_index_list_t dims, int32_t rank, int32_t dim) {
  int32_t left = dim;
  for (int32_t d = 0; d < rank && dim >= 0; ++d) {
    if (!mp_index_list_has(dims, d) && left-- == 0) return d;
  }
  return -1;
}

// ---- all ----

static bool layout_transfer_keeps_dims(const mp_op_t *op, uint32_t operand) {
  switch (op->code) {
    case MP_OP_SLICE:
    case MP_OP_PAD:
    case MP_OP_REVERSE:
    case MP_OP_DYNAMIC_SLICE:
    case MP_OP_REDUCE_WINDOW:
    case MP_OP_SELECT_AND_SCATTER:
    case MP_OP_ALL_GATHER:
    case MP_OP_ALL_REDUCE:
    case MP_OP_REDUCE_SCATTER:
    case MP_OP_ALL_TO_ALL:
    case MP_OP_COLLECTIVE_PERMUTE:
    case MP_OP_COLLECTIVE_BROADCAST:
      return op->operands[operand]->type->rank == op->results[0].type->rank &&
             operand < op->num_results + (op->code == MP_OP_SELECT_AND_SCATTER);
    case MP_OP_CONCATENATE:
    case MP_OP_SORT:
    case MP_OP_OPTIMIZATION_BARRIER:
      return true;
    case MP_OP_DYNAMIC_UPDATE_SLICE:
      return operand < 2;
    case MP_OP_SCATTER:
      return operand < op->num_results;
    default:
      return mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE) && op->num_results == 1 &&
             mp_type_is_tensor(op->operands[operand]->type) &&
             mp_type_same_shape(op->operands[operand]->type, op->results[0].type);
  }
}

static mp_tile_layout_t layout_transfer_transpose(mp_index_list_t order, mp_tile_layout_t layout) {
  return (mp_tile_layout_t){layout.lane < 0 ? -1 : layout_transfer_find(order, layout.lane),
                            layout.sublane < 0 ? -1 : layout_transfer_find(order, layout.sublane),
                            false};
}

bool mp_tile_layout_forward(const mp_op_t *op, uint32_t operand, mp_tile_layout_t layout,
                            mp_tile_layout_t *out) {
  *out = layout;
  if (op->num_results == 0 || !mp_type_is_tensor(op->operands[operand]->type)) return false;
  const mp_type_t *from = op->operands[operand]->type, *to = op->results[0].type;
  switch (op->code) {
    case MP_OP_TRANSPOSE:
      *out = layout_transfer_transpose(mp_op_ints(op, MP_ATTR_PERMUTATION), layout);
      return !layout.is_split;
    case MP_OP_RESHAPE:
      return mp_tile_layout_reshape(from, to, layout, out);
    case MP_OP_REDUCE:
      if (operand >= op->num_results) return false;
      *out = layout_transfer_reduce(op, layout);
      return true;
    case MP_OP_BITCAST_CONVERT:
      return from->rank == to->rank;
    default:
      return layout_transfer_keeps_dims(op, operand);
  }
}

bool mp_tile_layout_backward(const mp_op_t *op, uint32_t operand, mp_tile_layout_t layout,
                             mp_tile_layout_t *out) {
  *out = layout;
  if (op->num_results == 0 || !mp_type_is_tensor(op->operands[operand]->type)) return false;
  const mp_type_t *from = op->operands[operand]->type, *to = op->results[0].type;
  switch (op->code) {
    case MP_OP_TRANSPOSE: {
      const mp_index_list_t order = mp_op_ints(op, MP_ATTR_PERMUTATION);
      *out = (mp_tile_layout_t){layout.lane < 0 ? -1 : (int32_t)order.values[layout.lane],
                                layout.sublane < 0 ? -1 : (int32_t)order.values[layout.sublane],
                                false};
      return true;
    }
    case MP_OP_RESHAPE:
      return mp_tile_layout_reshape(to, from, layout, out);
    case MP_OP_BROADCAST_IN_DIM: {
      const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_BROADCAST_DIMENSIONS);
      *out = (mp_tile_layout_t){layout_transfer_find(dims, layout.lane),
                                layout_transfer_find(dims, layout.sublane), false};
      return out->lane >= 0 && out->sublane >= 0;
    }
    case MP_OP_REDUCE: {
      if (operand >= op->num_results) return false;
      const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_DIMENSIONS);
      out->lane = layout_transfer_unreduced(dims, (int32_t)from->rank, layout.lane);
      out->sublane = layout_transfer_unreduced(dims, (int32_t)from->rank, layout.sublane);
      return out->lane >= 0 && out->sublane >= 0;
    }
    default:
      return layout_transfer_keeps_dims(op, operand);
  }
}
