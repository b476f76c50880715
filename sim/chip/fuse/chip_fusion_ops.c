// Properties of ops for all compilers: what they are computed from, the elements that they iterate
// over, and the rows that they reduce.
#include <math.h>

#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/plan/plan.h"

// ---- values ----

const mp_value_t *mp_chip_fusion_root(const mp_value_t *value) {
  for (const mp_value_t *of; (of = mp_plan_aliased(value)) != NULL;) value = of;
  return value;
}

const mp_value_t *mp_chip_fusion_untransposed(const mp_value_t *value) {
  value = mp_chip_fusion_root(value);
  while (value->op != NULL && value->op->code == MP_OP_TRANSPOSE) {
    value = mp_chip_fusion_root(value->op->operands[0]);
  }
  return value;
}

bool mp_chip_fusion_is_generator(const mp_op_t *op) {
  return op->code == MP_OP_BROADCAST_IN_DIM || op->code == MP_OP_IOTA || op->code == MP_OP_CONSTANT;
}

static bool chip_fusion_ops_is_folded(const mp_value_t *value, uint32_t depth) {
  const mp_op_t *op = mp_chip_fusion_root(value)->op;
  if (op == NULL || depth == 0 || op->num_results != 1) return false;
  if (op->code == MP_OP_CONSTANT) return mp_op_splat(op) != NULL;
  const bool is_made = op->code == MP_OP_BROADCAST_IN_DIM ||
                       (op->num_operands > 0 && mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE));
  for (uint32_t i = 0; is_made && i < op->num_operands; ++i) {
    if (!chip_fusion_ops_is_folded(op->operands[i], depth - 1)) return false;
  }
  return is_made;
}

bool mp_chip_fusion_is_folded(const mp_value_t *value) {
  enum { OPS_MOST = 8 };
  return chip_fusion_ops_is_folded(value, OPS_MOST);
}

bool mp_chip_fusion_is_scaling_quotient(const mp_op_t *op) {
  return op->code == MP_OP_DIVIDE && mp_chip_fusion_is_folded(op->operands[1]);
}

bool mp_chip_fusion_is_constant(const mp_value_t *value) {
  while (value->op != NULL && value->op->code == MP_OP_BROADCAST_IN_DIM) {
    value = mp_chip_fusion_root(value->op->operands[0]);
  }
  return value->op != NULL && value->op->code == MP_OP_CONSTANT && mp_op_splat(value->op) != NULL;
}

// ---- elements ----

double mp_chip_fusion_value_count(const mp_value_t *value) {
  int64_t count = 0;
  if (!mp_type_is_tensor(value->type) || !mp_type_num_elements(value->type, &count)) return 0;
  return (double)count;
}

double mp_chip_fusion_op_count(const mp_op_t *op) {
  double most = 0;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    most = fmax(most, mp_chip_fusion_value_count(&op->results[i]));
  }
  return most;
}

double mp_chip_fusion_extent(const mp_op_t *op, mp_chip_fusion_kind_t kind) {
  if (kind == MP_CHIP_FUSION_REDUCTION && op->num_operands > 0) {
    const double count = mp_chip_fusion_value_count(op->operands[0]);
    if (op->code != MP_OP_DOT_GENERAL) return count;
    return fmax(count, mp_chip_fusion_value_count(op->operands[1]));
  }
  if (op->code == MP_OP_DYNAMIC_UPDATE_SLICE) return mp_chip_fusion_value_count(op->operands[1]);
  return mp_chip_fusion_op_count(op);
}

bool mp_chip_fusion_goes_along(const mp_op_t *op, mp_chip_fusion_kind_t kind, double count) {
  if (kind == MP_CHIP_FUSION_LOOP) {
    const bool moves = mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE) || op->code == MP_OP_TRANSPOSE;
    return moves && mp_chip_fusion_op_count(op) == count;
  }
  const bool is_along = kind == MP_CHIP_FUSION_REDUCTION || op->code == MP_OP_DYNAMIC_UPDATE_SLICE;
  return is_along && mp_chip_fusion_extent(op, kind) == count;
}

// ---- rows ----

double mp_chip_fusion_row(const mp_op_t *op) {
  if (op->code != MP_OP_REDUCE) return 0;
  const mp_type_t *type = op->operands[0]->type;
  const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_DIMENSIONS);
  if (dims.count != 1 || type->rank == 0 || dims.values[0] != type->rank - 1) return 0;
  return (double)type->dims[type->rank - 1];
}

bool mp_chip_fusion_is_cumulative(const mp_op_t *op) {
  enum { SHORT = 8 };
  if (op->code != MP_OP_REDUCE_WINDOW) return false;
  const mp_type_t *type = op->operands[0]->type;
  const mp_index_list_t sizes = mp_op_ints(op, MP_ATTR_WINDOW_DIMENSIONS);
  for (uint32_t d = 0; d < sizes.count; ++d) {
    if (sizes.values[d] > SHORT && sizes.values[d] == type->dims[d]) return true;
  }
  return false;
}

bool mp_chip_fusion_sets_window(const mp_op_t *op) {
  if (op->code == MP_OP_DYNAMIC_UPDATE_SLICE) return true;
  return op->code == MP_OP_SCATTER && op->num_operands == 3 && op->operands[1]->type->rank == 1;
}

uint64_t mp_chip_fusion_reduced_dims(const mp_op_t *op) {
  mp_index_list_t dims = {0};
  if (op->code == MP_OP_REDUCE) dims = mp_op_ints(op, MP_ATTR_DIMENSIONS);
  if (op->code == MP_OP_DOT_GENERAL) {
    const bool is_left =
        mp_chip_fusion_value_count(op->operands[0]) >= mp_chip_fusion_value_count(op->operands[1]);
    dims = mp_op_ints(
        op, is_left ? MP_ATTR_LHS_CONTRACTING_DIMENSIONS : MP_ATTR_RHS_CONTRACTING_DIMENSIONS);
  }
  uint64_t mask = 0;
  for (uint32_t i = 0; i < dims.count; ++i) mask |= (uint64_t)1 << (dims.values[i] & 63);
  return mask;
}
