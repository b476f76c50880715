// TPU kernels (tpu_custom_call), by the program that the call carries.
#ifndef MINIPOD_SIM_CHIP_MOSAIC_MOSAIC_COST_H_
#define MINIPOD_SIM_CHIP_MOSAIC_MOSAIC_COST_H_

#include "sim/chip/cost/chip.h"
#include "sim/mosaic/price/price.h"

// The verified module of a call, which the caller releases. NULL: the op is no such call, its
// module cannot be read, or the chip's units are not described (`kernel.clock`).
mp_mosaic_module_t *mp_mosaic_price_module(const mp_chip_t *chip, const mp_op_t *op);

// The price of the kernel of a call with this module. `operands`: data of the call's operands;
// NULL, or without data: those that are constants of the program are known. False: it has no price.
bool mp_mosaic_price(const mp_chip_t *chip, const mp_op_t *op, const mp_mosaic_module_t *module,
                     const void *const *operands, mp_price_t *out_price);

// The seconds of the kernel, with those until it starts.
double mp_mosaic_seconds(const mp_chip_t *chip, const mp_price_t *price);

#endif  // MINIPOD_SIM_CHIP_MOSAIC_MOSAIC_COST_H_
