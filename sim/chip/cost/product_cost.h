// What a product of matrices takes on a chip.
#ifndef MINIPOD_SIM_CHIP_COST_PRODUCT_COST_H_
#define MINIPOD_SIM_CHIP_COST_PRODUCT_COST_H_

#include "sim/chip/cost/chip.h"

// The seconds of a product, without the latency of its kernel.
double mp_product_seconds(const mp_chip_t *chip, const mp_work_product_t *product);

#endif  // MINIPOD_SIM_CHIP_COST_PRODUCT_COST_H_
