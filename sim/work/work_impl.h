// What the files of sim/work share.
#ifndef MINIPOD_SIM_WORK_WORK_IMPL_H_
#define MINIPOD_SIM_WORK_WORK_IMPL_H_

#include "sim/work/work.h"

// The elements of an operand or result; 0 of what is no array.
double mp_work_operand_count(const mp_op_t *op, uint32_t operand);
double mp_work_result_count(const mp_op_t *op, uint32_t result);

// Adds so many operations on elements of this type.
void mp_work_add(mp_work_t *work, mp_dtype_t dtype, double flops);

// ---- the work of ops, but for their class; each adds to what is in `work` ----

// work_count.c
void mp_work_count_elementwise(const mp_op_t *op, mp_work_t *work);
void mp_work_count_map(const mp_op_t *op, mp_work_t *work);
void mp_work_count_reduce(const mp_op_t *op, mp_work_t *work);
void mp_work_count_reduce_window(const mp_op_t *op, mp_work_t *work);
void mp_work_count_select_and_scatter(const mp_op_t *op, mp_work_t *work);
void mp_work_count_batch_norm(const mp_op_t *op, mp_work_t *work);
void mp_work_count_scatter(const mp_op_t *op, mp_work_t *work);
void mp_work_count_sort(const mp_op_t *op, mp_work_t *work);
void mp_work_count_fft(const mp_op_t *op, mp_work_t *work);
void mp_work_count_rng(const mp_op_t *op, mp_work_t *work);
void mp_work_count_random_bits(const mp_op_t *op, mp_work_t *work);
// work_matmul.c
void mp_work_count_dot(const mp_op_t *op, mp_work_t *work);
void mp_work_count_convolution(const mp_op_t *op, mp_work_t *work);
// work_call.c
void mp_work_count_cholesky(const mp_op_t *op, mp_work_t *work);
void mp_work_count_triangular_solve(const mp_op_t *op, mp_work_t *work);
// A custom_call, by its target; sets the class too.
void mp_work_count_call(const mp_op_t *op, mp_work_t *work);

#endif  // MINIPOD_SIM_WORK_WORK_IMPL_H_
