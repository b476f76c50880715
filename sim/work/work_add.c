// Code shared by the counting functions.
#include "sim/work/work_impl.h"

static double work_add_elements(const mp_type_t *type) {
  int64_t count = 0;
  if (!mp_type_is_tensor(type) || !mp_type_num_elements(type, &count)) return 0;
  return (double)count;
}

double mp_work_operand_count(const mp_op_t *op, uint32_t operand) {
  return operand < op->num_operands ? work_add_elements(op->operands[operand]->type) : 0;
}

double mp_work_result_count(const mp_op_t *op, uint32_t result) {
  return result < op->num_results ? work_add_elements(op->results[result].type) : 0;
}

double mp_work_weight(mp_dtype_t dtype) {
  if (mp_dtype_is_complex(dtype)) return 4 * mp_work_weight(mp_dtype_real_part(dtype));
  return mp_dtype_bits(dtype) > 32 ? 2 : 1;
}

void mp_work_add(mp_work_t *work, mp_dtype_t dtype, double flops) {
  work->flops += flops;
  work->vector_flops += flops * mp_work_weight(dtype);
}
