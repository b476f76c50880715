// What the vector unit does: arithmetic by kind, functions, reductions by direction, transposes.
#ifndef MINIPOD_SIM_CHIP_COST_VECTOR_COST_H_
#define MINIPOD_SIM_CHIP_COST_VECTOR_COST_H_

#include "sim/chip/cost/chip.h"

// Simple operations a second on 32-bit numbers: additions, comparisons, selections.
double mp_vector_rate(const mp_chip_t *chip);

// The seconds that an op takes on the vector unit; 0 of matmuls, and of what only moves elements.
double mp_vector_seconds(const mp_chip_t *chip, const mp_op_t *op);

// The parameter that decides most of these seconds.
mp_chip_figure_t mp_vector_figure(const mp_chip_t *chip, const mp_op_t *op);

#endif  // MINIPOD_SIM_CHIP_COST_VECTOR_COST_H_
