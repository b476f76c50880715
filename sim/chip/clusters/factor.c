#include "sim/chip/clusters/factor.h"

uint64_t mp_product_dims(mp_index_list_t dims) {
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

mp_product_factor_t mp_product_factor(const mp_op_t *op, uint32_t operand) {
  static const mp_attr_name_t batches[] = {MP_ATTR_LHS_BATCHING_DIMENSIONS,
                                           MP_ATTR_RHS_BATCHING_DIMENSIONS};
  static const mp_attr_name_t summed[] = {MP_ATTR_LHS_CONTRACTING_DIMENSIONS,
                                          MP_ATTR_RHS_CONTRACTING_DIMENSIONS};
  mp_product_factor_t factor = {op->operands[operand],
                                mp_product_dims(mp_op_ints(op, batches[operand])),
                                mp_product_dims(mp_op_ints(op, summed[operand]))};
  while (factor.value->op != NULL && factor.value->op->code == MP_OP_TRANSPOSE) {
    const mp_index_list_t order = mp_op_ints(factor.value->op, MP_ATTR_PERMUTATION);
    factor =
        (mp_product_factor_t){factor.value->op->operands[0], factor_before(factor.batch, order),
                              factor_before(factor.summed, order)};
  }
  return factor;
}
