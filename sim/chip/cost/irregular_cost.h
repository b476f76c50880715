// Ops whose time is not that of their operations or bytes alone: rows and scalars by index, sorts,
// cumulative ops, transforms, decompositions, reversals, functions of others.
#ifndef MINIPOD_SIM_CHIP_COST_IRREGULAR_COST_H_
#define MINIPOD_SIM_CHIP_COST_IRREGULAR_COST_H_

#include "sim/chip/cost/chip.h"

// Whether the op is one of these; then the seconds that it takes, in which its bytes move, too.
bool mp_irregular_seconds(const mp_chip_t *chip, const mp_op_t *op, double *out_seconds);

// ---- by kind ----

// indexed_cost.c: gathers, scatters and reversals.
double mp_gather_seconds(const mp_chip_t *chip, const mp_op_t *op);
double mp_scatter_seconds(const mp_chip_t *chip, const mp_op_t *op);
double mp_reverse_seconds(const mp_chip_t *chip, const mp_op_t *op);
double mp_strided_seconds(const mp_chip_t *chip, const mp_op_t *op);
// staged_cost.c: what is done in stages or column by column.
double mp_sort_seconds(const mp_chip_t *chip, const mp_op_t *op);
// Sorts lines of `line` elements, `count` in all, of so many arrays that are at hand.
double mp_sort_lines_seconds(const mp_chip_t *chip, double count, double line, double arrays);
double mp_window_seconds(const mp_chip_t *chip, const mp_op_t *op);
double mp_fft_seconds(const mp_chip_t *chip, const mp_op_t *op);
double mp_linalg_seconds(const mp_chip_t *chip, const mp_op_t *op);
// foreign_cost.c: a custom_call that is a kernel for attention (attention_cost.h), or says in its
// backend_config what it costs, as kernels written in Pallas do; else 0.
double mp_foreign_seconds(const mp_chip_t *chip, const mp_op_t *op);
// Which part of that time is the overhead of the steps of a kernel's grid: with one step for the
// same work and bytes it would be gone. 0 if the steps are not known.
double mp_foreign_step_overhead(const mp_chip_t *chip, const mp_op_t *op);
// The operations of its matmuls.
double mp_foreign_flops(const mp_op_t *op);

// Elements of an array; 0 of what is none.
static inline double mp_irregular_count(const mp_type_t *type) {
  int64_t count = 0;
  if (!mp_type_is_tensor(type) || !mp_type_num_elements(type, &count)) return 0;
  return (double)count;
}

#endif  // MINIPOD_SIM_CHIP_COST_IRREGULAR_COST_H_
