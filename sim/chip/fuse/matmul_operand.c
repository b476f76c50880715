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
