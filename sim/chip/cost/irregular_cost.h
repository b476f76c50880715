// Ops with formulas of their own, beyond operations and bytes: lookups, sorts, cumulative ops,
// FFTs, decompositions, reversals, custom calls.
#ifndef MINIPOD_SIM_CHIP_COST_IRREGULAR_COST_H_
#define MINIPOD_SIM_CHIP_COST_IRREGULAR_COST_H_

#include "sim/chip/cost/chip.h"

// Whether the op is one of these. If so, its seconds, which include its bytes.
bool mp_irregular_seconds(const mp_chip_t *chip, const mp_op_t *op, double *out_seconds);

// ---- by kind ----

// indexed_cost.c: gathers, scatters and reversals.
double mp_gather_seconds(const mp_chip_t *chip, const mp_op_t *op);
double mp_scatter_seconds(const mp_chip_t *chip, const mp_op_t *op);
double mp_reverse_seconds(const mp_chip_t *chip, const mp_op_t *op);
double mp_strided_seconds(const mp_chip_t *chip, const mp_op_t *op);
// sort_cost.c.
double mp_sort_seconds(const mp_chip_t *chip, const mp_op_t *op);
// Sorts lines of `line` elements, `count` in all, of so many arrays.
double mp_sort_lines_seconds(const mp_chip_t *chip, double count, double line, double arrays);
// foreign_cost.c: a custom_call that is an attention kernel (attention_cost.h), or that states its
// cost in its backend_config, as Pallas kernels do; else 0.
double mp_foreign_seconds(const mp_chip_t *chip, const mp_op_t *op);
// The operations of its matmuls.
double mp_foreign_flops(const mp_op_t *op);

// The bytes of an op's operands and results.
static inline double mp_irregular_bytes(const mp_op_t *op) {
  double bytes = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) bytes += mp_work_bytes_of(op->operands[i]->type);
  for (uint32_t i = 0; i < op->num_results; ++i) bytes += mp_work_bytes_of(op->results[i].type);
  return bytes;
}

// Elements of an array; 0 of what is none.
static inline double mp_irregular_count(const mp_type_t *type) {
  int64_t count = 0;
  if (!mp_type_is_tensor(type) || !mp_type_num_elements(type, &count)) return 0;
  return (double)count;
}

#endif  // MINIPOD_SIM_CHIP_COST_IRREGULAR_COST_H_
