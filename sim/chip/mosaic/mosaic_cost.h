// TPU kernels (tpu_custom_call), by the program that the call carries.
#ifndef MINIPOD_SIM_CHIP_MOSAIC_MOSAIC_COST_H_
#define MINIPOD_SIM_CHIP_MOSAIC_MOSAIC_COST_H_

#include "sim/chip/cost/chip.h"
#include "sim/mosaic/price/price.h"

// The price of the kernel of a call. `operands`: values of the call's operands; NULL: those that
// are constants of the program are known. False: the op is no such call, the chip's units are not
// described (`kernel.clock`), or the module cannot be read or priced.
bool mp_mosaic_price(const mp_chip_t *chip, const mp_op_t *op, const mp_price_operand_t *operands,
                     mp_price_t *out_price);

#endif  // MINIPOD_SIM_CHIP_MOSAIC_MOSAIC_COST_H_
