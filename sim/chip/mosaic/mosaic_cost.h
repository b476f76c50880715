// TPU kernels (tpu_custom_call), by the program that the call carries.
#ifndef MINIPOD_SIM_CHIP_MOSAIC_MOSAIC_COST_H_
#define MINIPOD_SIM_CHIP_MOSAIC_MOSAIC_COST_H_

#include "sim/chip/cost/chip.h"
#include "sim/mosaic/price/price.h"

// The price of the kernel of a call. `operands`: data of the call's operands; NULL, or without
// data: those that are constants of the program are known. False: the op is no such call, the
// chip's units are not described (`kernel.clock`), or the module cannot be read or priced.
bool mp_mosaic_price(const mp_chip_t *chip, const mp_op_t *op, const void *const *operands,
                     mp_price_t *out_price);

// The seconds of the kernel, with those until it starts.
double mp_mosaic_seconds(const mp_chip_t *chip, const mp_price_t *price);

#endif  // MINIPOD_SIM_CHIP_MOSAIC_MOSAIC_COST_H_
