// The bytes that ops touch.
#include <math.h>

#include "sim/work/foreign_text.h"
#include "sim/work/work_impl.h"

double mp_work_bytes_of(const mp_type_t *type) {
  int64_t count = 0;
  if (!mp_type_is_tensor(type) || !mp_type_num_elements(type, &count)) return 0;
  const int bits = type->dtype == MP_DTYPE_BOOL ? 8 : mp_dtype_bits(type->dtype);
  return (double)count * bits / 8;
}

static double work_bytes_operand(const mp_op_t *op, uint32_t operand) {
  return mp_work_bytes_of(op->operands[operand]->type);
}

// What an op that takes elements out of its first operand reads of it: as much as it makes.
static bool work_bytes_is_slicing(const mp_op_t *op) {
  return op->code == MP_OP_SLICE || op->code == MP_OP_DYNAMIC_SLICE || op->code == MP_OP_GATHER;
}

// What an op in the region of a fused op reads of a value.
static double work_bytes_used(const mp_op_t *op, const mp_value_t *value) {
  double bytes = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (op->operands[i] == value) bytes += mp_work_bytes_read(op, i);
  }
  return bytes;
}

// A fused op reads an operand once, and no more of it than its ops do.
static double work_bytes_of_fused(const mp_op_t *op, uint32_t operand) {
  const mp_block_t *region = op->regions[0];
  if (operand >= region->num_args) return work_bytes_operand(op, operand);
  const mp_value_t *value = &region->args[operand];
  const double whole = mp_work_bytes_of(value->type);
  double bytes = 0;
  for (const mp_op_t *in = region->first; in != NULL && bytes < whole; in = in->next) {
    bytes += work_bytes_used(in, value);
  }
  return bytes < whole ? bytes : whole;
}

// The part of its operands and results that a kernel of the user's moves: those that it says, if
// these are fewer.
static double work_bytes_share(const mp_op_t *op) {
  const double said = mp_foreign_bytes(op);
  if (said == 0) return 1;
  double whole = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) whole += work_bytes_operand(op, i);
  for (uint32_t i = 0; i < op->num_results; ++i) whole += mp_work_bytes_of(op->results[i].type);
  return whole > 0 ? fmin(said / whole, 1) : 1;
}

double mp_work_bytes_read(const mp_op_t *op, uint32_t operand) {
  if (work_bytes_is_slicing(op) && operand == 0) return mp_work_bytes_of(op->results[0].type);
  switch (op->code) {
    case MP_OP_DYNAMIC_UPDATE_SLICE:
      return operand == 0 ? 0 : work_bytes_operand(op, operand);
    case MP_OP_SCATTER: {
      // The elements that are updated are read before they are written.
      const uint32_t num_inputs = op->num_operands / 2;
      return work_bytes_operand(op, operand < num_inputs ? num_inputs + 1 + operand : operand);
    }
    case MP_OP_FUSION:
      return work_bytes_of_fused(op, operand);
    case MP_OP_CUSTOM_CALL:
      return work_bytes_operand(op, operand) * work_bytes_share(op);
    default:
      return work_bytes_operand(op, operand);
  }
}

double mp_work_bytes_written(const mp_op_t *op, uint32_t result) {
  if (op->code == MP_OP_DYNAMIC_UPDATE_SLICE) return work_bytes_operand(op, 1);
  if (op->code == MP_OP_SCATTER) {
    return work_bytes_operand(op, op->num_operands / 2 + 1 + result);
  }
  const double share = op->code == MP_OP_CUSTOM_CALL ? work_bytes_share(op) : 1;
  return mp_work_bytes_of(op->results[result].type) * share;
}
